"""Queries without Spark: which columns, values and aggregates a SELECT shows, read and computed by Arrow as they are
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from anabranch._arrow.backend import without_spark
from anabranch._cli.arrow_aggregates import Aggregate, from_log, from_rows
from anabranch._cli.arrow_rows import ArrowRows
from anabranch._cli.path_tables import PathTable, plain_value
from anabranch._expressions.dialect import TokenizedText
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.schema.types import VOID, Field, arrow_type
from anabranch._protocol.stats.literals import domain
from anabranch._sql.grammar.cursor import Cursor
from anabranch._sql.grammar.selects import Selected, SelectRows
from anabranch.errors import UnreadableExpression

Values: TypeAlias = str | Computation | None
"""A column of the table, or how values are computed; None where a row counts, whatever it holds."""


@dataclass(frozen=True)
class Shown:
    """A column of the result: what it is called, and the values in it, or those that are aggregated."""

    name: str
    values: Values
    aggregate: str = ""


def select(statement: SelectRows) -> Callable[[], ArrowRows]:
    """What gives the rows of a query.

    Raises:
        NeedsSpark: Spark computes a value, or reads a column. InvalidCondition: it names what is no column.
    """
    read = PathTable(statement.table)
    where = None if statement.where is None else read.text(statement.where)
    read.check(where, {})
    shown = [column for each in statement.selected for column in _output_columns(each, read)]
    batches = (_aggregate_rows if statement.selected[0].aggregate else _project_rows)(shown, read, where)
    return lambda: ArrowRows.of([each.name for each in shown], batches).first(statement.limit)


def _output_columns(selected: Selected, read: PathTable) -> list[Shown]:
    schema, function = read.snapshot.schema, selected.aggregate
    if selected.value is None:
        everything = [Shown(name, name) for name in schema.names]
        return [Shown(selected.name or f"{function}(1)", None, function)] if function else everything
    text = read.text(plain_value(selected.value))
    path = _path(text) if selected.path else ()
    field = schema.find(path[0]) if len(path) == 1 else None
    value: str | Computation
    if field is None:
        value = _parse_computation(text, read)
        kind = Field("", value.tree.type or VOID)
    else:
        value, kind = field.name, field
    if selected.name is None and field is None and (function or len(path) < 2):
        raise read.needs_spark(f"{text} without a name", "it makes a name of the text; AS says another one")
    if function in ("min", "max") and domain(kind) is None:
        raise read.needs_spark(f"{function} of {text}", "it knows the order of such values")
    name = selected.name or (f"{function}({path[-1]})" if function else path[-1])
    return [Shown(name, value, function)]


def _parse_computation(text: str, read: PathTable) -> Computation:
    try:
        return read.texts.computation(text)
    except UnreadableExpression:
        raise read.needs_spark(f"the value {text}", "it is none that is read here") from None


def _path(text: str) -> tuple[str, ...]:
    return Cursor(text, TokenizedText(text).tokens).path()


def _aggregate_rows(shown: list[Shown], read: PathTable, where: str | None) -> Iterator[pa.RecordBatch]:
    """The one row of aggregates. Raises NeedsSpark: rows cannot be read here."""
    asked = [Aggregate(each.aggregate, each.values) for each in shown]
    counts_rows = all(each.values is None for each in shown)
    known = from_log(asked, read.snapshot) if where is None else None
    batches = iter(()) if counts_rows or known else _project_rows(shown, read, where)

    def row() -> Iterator[pa.RecordBatch]:
        if counts_rows:
            found = [pa.scalar(read.table.count(where, version=read.version))] * len(shown)
        else:
            found = known or from_rows(asked, batches)
        arrays = [pa.array([each.as_py()], each.type) for each in found]
        yield pa.RecordBatch.from_arrays(arrays, [each.name for each in shown])

    return row()


def _columns_to_read(shown: Iterable[Shown], read: PathTable) -> list[str]:
    """The table's columns that have to be read: one at least, since rows without columns are not counted."""
    found = dict[str, None]()
    for value in (each.values for each in shown if each.values is not None):
        found |= dict.fromkeys([value] if isinstance(value, str) else sorted(value.columns))
    return [*found] or [*read.snapshot.schema.names[:1]]


def _project_rows(shown: list[Shown], read: PathTable, where: str | None) -> Iterator[pa.RecordBatch]:
    """The values, row by row. Raises NeedsSpark: rows cannot be read here."""
    rows = read.table.to_batches(_columns_to_read(shown, read), where, version=read.version)

    def project() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            with without_spark("the query", read.snapshot.table):
                columns = [_column(batch, each.values) for each in shown]
            yield pa.RecordBatch.from_arrays(columns, [each.name for each in shown])

    return project()


def _column(batch: pa.RecordBatch, value: Values) -> pa.Array:
    if isinstance(value, str):
        return batch.column(value)
    kind = None if value is None else value.tree.type
    return pa.nulls(len(batch)) if value is None or kind in (None, VOID) else value.values(batch).cast(arrow_type(kind))
