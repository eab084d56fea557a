"""What of a MERGE needs no Spark where its source and the outcome of its join are here.

Knows Arrow tables, and which of them say already what Spark would compute. Guarantee: an answer is what Spark's would
be; where that is not certain there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.merges import Clause, Joined, Matching, SourceColumn
from anabranch.protocol.rules.table_rules import LENGTH
from anabranch.protocol.schema.types import Field, arrow_type
from anabranch.spark import few_rows
from anabranch.spark.merge_source import Held
from anabranch.spark.write import rows_in

ROW_ID, IMAGE = "row_id", "image"
"""Columns of what a join leaves behind: a row's id, and, before their numbers, the new values of the table's."""


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


def inserts_here(files: FileSet, matching: Matching, held: Held, acting: pa.Table | None = None) -> pa.Table | None:
    """What NOT MATCHED clauses make of a source's rows, if each takes all columns as they are.

    ``acting`` says which clause acts on which row, by their numbers; the one there is acts on all where None.
    """
    rows, made = held.here, list[pa.Table]()
    if rows is None:
        return None
    for number, clause in enumerate(matching.clauses):
        if clause.when == "not matched":
            found = _inserted(files, clause, held, rows if acting is None else _acted_on(rows, acting, number))
            if found is None:
                return None
            made.append(found)
    return pa.concat_tables(made)


def _acted_on(rows: pa.Table, acting: pa.Table, clause: int) -> pa.Table:
    numbers = acting.filter(pc.equal(acting["clause"], clause))["number"]
    return rows.filter(pc.is_in(rows.column(rows.num_columns - 1), value_set=numbers.combine_chunks()))


def _inserted(files: FileSet, clause: Clause, held: Held, rows: pa.Table) -> pa.Table | None:
    values = {name.lower(): value for name, value in clause.values.items()}
    found = [_as_it_is(rows, held, each, values.get(each.name.lower())) for each in files.schema]
    columns = [each for each in found if each is not None]
    return pa.table(columns, names=list(files.schema.names)) if len(columns) == len(found) else None


def _as_it_is(rows: pa.Table, held: Held, field: Field, value: object) -> pa.ChunkedArray | None:
    """A column of the source that is the table's as it is."""
    if not isinstance(value, SourceColumn) or value.members or LENGTH in field.metadata or field.type == "variant":
        return None
    named = [i for i, name in enumerate(held.schema.names) if name.lower() == value.name.lower()]
    column = rows.column(named[0]) if len(named) == 1 else None
    return column if column is not None and column.type == arrow_type(field.type) else None
