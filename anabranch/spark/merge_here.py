"""What of a MERGE needs no Spark where its source and the outcome of its join are here.

Knows Arrow tables, and which of them say already what Spark would compute. Guarantee: an answer is what Spark's would
be; where that is not certain there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from anabranch.arrow.pairs import Half, Pairs, acting_on, stored
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.merges import Joined, Matching
from anabranch.spark import few_rows
from anabranch.spark.merge_clauses import columns_set
from anabranch.spark.merge_source import Held
from anabranch.spark.merge_values import computed_clauses
from anabranch.spark.rules import obeying_here
from anabranch.spark.write import rows_in

ROW_ID, IMAGE, OLD = "row_id", "image", "old"
"""Columns of what a join leaves behind: a row's id, and, before their numbers, the table's new and old values."""


def few_changes(rows: DataFrame, files: FileSet, held: Held) -> pa.Table | None:
    """The join's outcome, where both sides are few."""
    count = rows_in(files)
    if held.here is None or not few_rows.is_small(files, count):
        return None
    return few_rows.collected(rows, count * max(held.rows, 1))


def images_here(rows: pa.Table, updates: Collection[int], files: FileSet) -> pa.Table:
    """The rows that a join found to be updated, as they become, with all columns of a file set."""
    updated = rows.filter(pc.is_in(rows["clause"], value_set=pa.array(list(updates), pa.int32())))
    images = [name for name in rows.column_names if name.startswith(IMAGE)]
    hidden = [ROW_ID] if len(files.schema.names) > len(images) else []
    return updated.select([*images, *hidden]).rename_columns(list(files.schema.names))


def left_here(held: Held, joined: Sequence[Joined]) -> tuple[Held, Sequence[Joined]]:
    """A source that is here without the rows that joins have matched whose outcome is here, and the other joins."""
    tables = [(each, each.handle.place) for each in joined if each.handle is not None]
    here = [(each, place) for each, place in tables if not isinstance(place, str)]
    others = [each for each, place in tables if isinstance(place, str)]
    if held.arrow is None or (held.here is None and others):
        return held, joined
    matched = [place["number"].combine_chunks() for _, place in here]
    numbers = pa.concat_arrays([pa.array([], pa.int64()), *matched])
    left = held.arrow.filter(pc.invert(pc.is_in(held.arrow.column(len(held.schema)), value_set=numbers)))
    return replace(held, here=left, arrow=left, rows=len(left)), others


def inserts_here(spark: SparkSession, files: FileSet, matching: Matching, held: Held) -> pa.Table | None:
    """What NOT MATCHED clauses make of a source's rows that are here; None where Spark computes some part of it.

    Raises:
        LeftToSpark, NotBuilt: only Spark says what some value is, or how a rule is held.
        RuleRefused, RowViolation: as `obeying_here`.
    """
    clauses = computed_clauses(matching, "not matched", files, held.schema)
    if held.here is None or clauses is None:
        return None
    source = held.here.rename_columns([*held.schema.names, ""])
    every = np.arange(len(source))
    pairs = Pairs(len(source), {"source": Half(source, every)})
    acts = acting_on(clauses, pairs, every)
    inserts, made = columns_set(matching, files.schema, "insert"), []
    for each in clauses:
        rows, given = pa.table(stored(each, pairs, every[acts == each.number], files.schema)), inserts[each.number]
        made.append(obeying_here(spark, rows, files, given, new=True))
    return pa.concat_tables(made)
