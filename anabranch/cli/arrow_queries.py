"""Queries without Spark: which columns and values a SELECT shows, read and computed by Arrow as they are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from anabranch.arrow.backend import without_spark
from anabranch.cli.arrow_rows import ArrowRows
from anabranch.cli.path_tables import PathTable, given
from anabranch.errors import UnreadableExpression
from anabranch.expressions.dialect import TokenizedText
from anabranch.protocol.expressions.computation import Computation
from anabranch.protocol.schema.types import VOID, arrow_type
from anabranch.statements.grammar.cursor import Cursor
from anabranch.statements.grammar.selects import Selected, SelectRows

Shown: TypeAlias = tuple[str, str | Computation]
"""What a column of the result is called; and the table's column, or how its values are computed."""


def select(statement: SelectRows) -> Callable[[], ArrowRows]:
    """What gives the rows of a query.

    Raises:
        NeedsSpark: Spark computes a value, or reads a column. InvalidCondition: it names what is no column.
    """
    read = PathTable(statement.table)
    where = None if statement.where is None else read.text(statement.where)
    read.check(where, {})
    if statement.counted is not None:
        names = [statement.counted]
        return lambda: ArrowRows(names, [(read.table.count(where, version=read.version),)]).first(statement.limit)
    shown = [column for each in statement.selected for column in _shown(each, read)]
    rows = read.table.to_batches(_needed(shown, read), where, version=read.version)
    batches = _projected(rows, shown, read.snapshot.table)
    return lambda: ArrowRows.of([name for name, _ in shown], batches).first(statement.limit)


def _shown(selected: Selected, read: PathTable) -> list[Shown]:
    schema = read.snapshot.schema
    if selected.value is None:
        return [(name, name) for name in schema.names]
    text = read.text(given(selected.value))
    path = _path(text) if selected.path else ()
    field = schema.find(path[0]) if len(path) == 1 else None
    value = _computed(text, read) if field is None else field.name
    if selected.name is None and field is None and len(path) < 2:
        raise read.needs_spark(f"{text} without a name", "it makes a name of the text; AS says another one")
    return [(selected.name or path[-1], value)]


def _computed(text: str, read: PathTable) -> Computation:
    try:
        return read.texts.computation(text)
    except UnreadableExpression:
        raise read.needs_spark(f"the value {text}", "it is none that is read here") from None


def _path(text: str) -> tuple[str, ...]:
    return Cursor(text, TokenizedText(text).tokens).path()


def _needed(shown: Iterable[Shown], read: PathTable) -> list[str]:
    """The table's columns that have to be read: one at least, since rows without columns are not counted."""
    found = dict[str, None]()
    for _, value in shown:
        found |= dict.fromkeys([value] if isinstance(value, str) else sorted(value.columns))
    return [*found] or [*read.snapshot.schema.names[:1]]


def _projected(rows: Iterable[pa.RecordBatch], shown: list[Shown], table: str) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        with without_spark("the query", table):
            columns = [_column(batch, value) for _, value in shown]
        yield pa.RecordBatch.from_arrays(columns, [name for name, _ in shown])


def _column(batch: pa.RecordBatch, value: str | Computation) -> pa.Array:
    if isinstance(value, str):
        return batch.column(value)
    kind = value.tree.type
    return pa.nulls(len(batch)) if kind in (None, VOID) else value.values(batch).cast(arrow_type(kind))
