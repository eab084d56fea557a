"""Addresses: which rows of which files a condition selects.

Knows rows and bitmaps. Knows nothing of what becomes of the rows. Guarantee: exactly the live rows for which the
condition is TRUE, each once; nothing but the condition's columns is read, and no Python runs on the executors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.protocol.filesets import FileSet
from anabranch.protocol.predicates import Condition
from anabranch.spark.failures import reported
from anabranch.spark.opened import Address, address_of
from anabranch.spark.positions import file_keys, rows_of
from anabranch.spark.scan import scan
from anabranch.spark.types import column, quoted


def find(spark: SparkSession, files: FileSet, condition: Condition) -> dict[str, BitMap64]:
    """The live rows for which ``condition`` is TRUE: path as in the log -> positions; files without any are left out.

    Raises:
        InvalidCondition: the condition does not parse, does not fit the columns, or is not a condition.
        ExecutionFailed: it cannot be evaluated on some row.
    """
    if len(files.files) == 0:
        return {}
    rows = scan(spark, files, address=True)
    with reported(condition.text, files.root):
        hits = rows.filter(as_column(condition.expression))
        return collect(hits, address_of(files.schema), files.files["path"].to_pylist())


def as_column(expression: object) -> Column:
    """An expression as the engine gets it: SQL text, or a Column already."""
    return F.expr(expression) if isinstance(expression, str) else expression  # type: ignore[return-value]


def collect(hits: DataFrame, address: Address, paths: list[str]) -> dict[str, BitMap64]:
    """The addresses of rows, brought here: sets of positions by path, for paths that have any.

    Sent are 64-bit words with their numbers, OR-ed together where the rows are, so at most 24 bytes for 64 rows.
    """
    keys, key = file_keys(paths)
    path_of = dict(zip(keys.to_pylist(), paths, strict=True))
    bit = F.expr(f"shiftleft(1L, cast({quoted(address.row)} & 63 as int))")
    words = hits.groupBy(key(column(address.path)).alias("key"), F.shiftright(column(address.row), 6).alias("number"))
    found = words.agg(F.bit_or(bit).alias("word")).toArrow().sort_by([("key", "ascending"), ("number", "ascending")])
    return {path_of[each]: rows for each, rows in _by_key(found)}


def _by_key(found: pa.Table) -> Iterator[tuple[int | str, BitMap64]]:
    """Each key of a table sorted by key and number, with its positions."""
    numbers, words = np.asarray(found["number"]), np.asarray(found["word"])
    runs = pc.run_end_encode(found["key"].combine_chunks())
    start = 0
    for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield key, rows_of(numbers[start:end], words[start:end])
        start = end
