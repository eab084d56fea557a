"""The outcome of a MERGE's join in Spark: which clause acts on which rows, and on how many pairs.

Knows the columns of a join's result, in a folder; not what clauses do.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch._arrow.marks import positions_of
from anabranch._arrow.merge_outcome import Outcome
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._spark.reading.row_addresses import by_key, keys_of


def query_outcome(rows: DataFrame, files: FileSet) -> Outcome:
    """The outcome of a join, by one query over its result."""
    return Outcome(*_by_clause(rows, files), lambda matched: _ambiguous(rows, matched))


def _by_clause(rows: DataFrame, files: FileSet) -> tuple[dict[int | None, Marks], dict[int | None, int]]:
    """The table's rows and the number of pairs by acting clause (None if no clause acts on a pair)."""
    path_of, key = keys_of(files.files["path"].to_pylist())
    bit = F.expr("shiftleft(1L, cast(row & 63 as int))")
    words = rows.groupBy("clause", key(F.col("path")).alias("key"), F.shiftright(F.col("row"), 6).alias("number"))
    counted = words.agg(F.bit_or(bit).alias("word"), F.count(F.lit(1)).alias("pairs")).toArrow()
    marks: dict[int | None, Marks] = {}
    pairs: dict[int | None, int] = {}
    for clause in pc.unique(counted["clause"]).to_pylist():
        part = counted.filter(
            pc.equal(counted["clause"], clause) if clause is not None else pc.is_null(counted["clause"])
        )
        part = part.sort_by([("key", "ascending"), ("number", "ascending")])
        pairs[clause] = pc.sum(part["pairs"]).as_py()
        marks[clause] = {
            path_of[file_key]: positions_of(np.asarray(group["number"]), np.asarray(group["word"]))
            for file_key, group in by_key(part)
        }
    return marks, pairs


def _ambiguous(rows: DataFrame, matched: list[int]) -> int:
    acting = rows.filter(F.col("clause").isin(*matched))
    return acting.groupBy("path", "row").count().filter("count > 1").count()
