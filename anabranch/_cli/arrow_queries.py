"""Queries without Spark: Arrow reads and computes the columns, values and aggregates of a SELECT, as they are
consumed.
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
from anabranch._protocol.schema.intervals import YEAR_MONTH, interval_text
from anabranch._protocol.schema.types import VOID, DataType, Field, arrow_type, parts_of
from anabranch._protocol.stats.literals import domain
from anabranch._sql.grammar.cursor import Cursor
from anabranch._sql.grammar.selects import SelectItem, SelectRows
from anabranch.errors import UnreadableExpression

Values: TypeAlias = str | Computation | None
"""A column of the table, or a computation of values; None where every row counts."""


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result: its name, and its values or the values that it aggregates, with their type."""

    name: str
    values: Values
    aggregate: str = ""
    type: DataType = VOID


def select(statement: SelectRows) -> Callable[[], ArrowRows]:
    """Prepares a query; the result returns its rows.

    Raises:
        NeedsSpark: only Spark can compute a value or read a column. InvalidCondition: it names an unknown column.
    """
    read = PathTable(statement.table)
    shown, where = _output(statement, read)
    if statement.selected[0].aggregate:
        batches = _aggregate_rows(shown, read, where)
    else:
        batches = (_with_spelled_months(batch, shown) for batch in _project_rows(shown, read, where))
    return lambda: ArrowRows.of([column.name for column in shown], batches).first(statement.limit)


def rows_of(statement: SelectRows, read: PathTable) -> pa.RecordBatchReader:
    """The rows of a query without aggregates. Raises NeedsSpark, InvalidCondition: as `select`, or a column has months,
    which are numbers in Arrow.
    """
    shown, where = _output(statement, read)
    for column in shown:
        if column.type == YEAR_MONTH:
            raise read.needs_spark(f"the column {column.name}", "without it the rows of a query have no months")
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in shown])
    return pa.RecordBatchReader.from_batches(schema, _project_rows(shown, read, where))


def _output(statement: SelectRows, read: PathTable) -> tuple[list[OutputColumn], str | None]:
    """The columns of the result, and the condition."""
    where = None if statement.where is None else read.text(statement.where)
    read.check(where, {})
    return [column for item in statement.selected for column in _output_columns(item, read)], where


def _output_columns(selected: SelectItem, read: PathTable) -> list[OutputColumn]:
    schema, function = read.snapshot.schema, selected.aggregate
    if selected.value is None:
        everything = [OutputColumn(field.name, field.name, type=_printable(field, read)) for field in schema]
        return [OutputColumn(selected.name or f"{function}(1)", None, function)] if function else everything
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
        raise read.needs_spark(f"{text} without a name", "it derives the column's name from the text; AS sets another")
    if function in ("min", "max") and domain(kind) is None:
        raise read.needs_spark(f"{function} of {text}", "it knows the order of such values")
    name = selected.name or (f"{function}({path[-1]})" if function else path[-1])
    return [OutputColumn(name, value, function, _printable(kind, read))]


def _printable(field: Field, read: PathTable) -> DataType:
    """The type of a column. Raises NeedsSpark: it has months inside, which Arrow would show as numbers."""
    if field.type != YEAR_MONTH and _has_months(field.type):
        raise read.needs_spark(f"the column {field.name}", "it prints the months inside")
    return field.type


def _has_months(data_type: DataType) -> bool:
    return data_type == YEAR_MONTH or any(_has_months(inner) for _, inner in parts_of(data_type))


def _parse_computation(text: str, read: PathTable) -> Computation:
    try:
        return read.texts.computation(text)
    except UnreadableExpression:
        raise read.needs_spark(f"the value {text}", "it cannot be computed without Spark") from None


def _path(text: str) -> tuple[str, ...]:
    return Cursor(text, TokenizedText(text).tokens).path()


def _aggregate_rows(shown: list[OutputColumn], read: PathTable, where: str | None) -> Iterator[pa.RecordBatch]:
    """The row of aggregates. Raises NeedsSpark: rows cannot be read without Spark."""
    aggregates = [Aggregate(column.aggregate, column.values) for column in shown]
    counts_rows = all(column.values is None for column in shown)
    logged = from_log(aggregates, read.snapshot) if where is None else None
    batches = iter(()) if counts_rows or logged else _project_rows(shown, read, where)

    def row() -> Iterator[pa.RecordBatch]:
        if counts_rows:
            values = [pa.scalar(read.table.count(where, version=read.version))] * len(shown)
        else:
            values = logged or from_rows(aggregates, batches)
        arrays = [pa.array([value.as_py()], value.type) for value in values]
        yield pa.RecordBatch.from_arrays(arrays, [column.name for column in shown])

    return row()


def _columns_to_read(shown: Iterable[OutputColumn], read: PathTable) -> list[str]:
    """The table's columns to read: at least one, since rows without columns are not counted."""
    names = dict[str, None]()
    for value in (column.values for column in shown if column.values is not None):
        names |= dict.fromkeys([value] if isinstance(value, str) else sorted(value.columns))
    return [*names] or [*read.snapshot.schema.names[:1]]


def _project_rows(shown: list[OutputColumn], read: PathTable, where: str | None) -> Iterator[pa.RecordBatch]:
    """The values, row by row. Raises NeedsSpark: rows cannot be read without Spark."""
    rows = read.table.to_batches(_columns_to_read(shown, read), where, version=read.version)

    def project() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            with without_spark("the query", read.snapshot.table):
                columns = [_column(batch, column.values) for column in shown]
            yield pa.RecordBatch.from_arrays(columns, [column.name for column in shown])

    return project()


def _with_spelled_months(batch: pa.RecordBatch, shown: list[OutputColumn]) -> pa.RecordBatch:
    columns = [_spell_months(values, column.type) for values, column in zip(batch.columns, shown, strict=True)]
    return pa.RecordBatch.from_arrays(columns, [column.name for column in shown])


def _spell_months(values: pa.Array, data_type: DataType) -> pa.Array:
    """The values, with months as the literals that a session prints."""
    if data_type != YEAR_MONTH:
        return values
    return pa.array([None if value is None else interval_text(value, YEAR_MONTH) for value in values.to_pylist()])


def _column(batch: pa.RecordBatch, value: Values) -> pa.Array:
    if isinstance(value, str):
        return batch.column(value)
    kind = None if value is None else value.tree.type
    return pa.nulls(len(batch)) if value is None or kind in (None, VOID) else value.values(batch).cast(arrow_type(kind))
