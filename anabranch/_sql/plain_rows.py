"""Plain rows: those of an INSERT whose VALUES are literals alone, which Spark need not make.

Guarantee: the rows are those that Spark would make of the same text; where that is not certain, or the table makes
something of rows by itself, there are none, and nothing was written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from anabranch._arrow.values import rows_of
from anabranch._expressions.computations import computation_of
from anabranch._expressions.context import Context
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.meeting import common
from anabranch._protocol.expressions.table import Given, Unfit
from anabranch._protocol.rules.identity import identities
from anabranch._protocol.rules.table_rules import default_of, rules_of
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, Field, Struct, decimal_of
from anabranch._protocol.storing import cast_to_column, is_plain_column
from anabranch._sql.grammar.parts import Expression
from anabranch._sql.grammar.row_values import InsertRows
from anabranch.errors import InvalidOption, UnknownColumn

MOST_CELLS = 1000
"""More literals are read faster by Spark."""


def plain_rows(
    statement: InsertRows,
    fields: Sequence[Field],
    snapshot: Snapshot,
    context: Context,
    *,
    most: int | None = MOST_CELLS,
) -> pa.Table | None:
    """The rows under the table's columns; None where only Spark can say what they are, or that they cannot be.

    Args:
        fields: the columns that the statement gives values, in its order.
        most: of so many literals, and no more.

    Raises:
        Unsupported: only Spark says what a value is.
    """
    rows = statement.values
    if not rows or statement.says_default or statement.by_name or statement.partition:
        return None
    if {len(row) for row in rows} != {len(fields)} or (most is not None and len(rows) * len(fields) > most):
        return None
    if not _takes_rows_as_they_are(snapshot, fields):
        return None
    stored = [
        _try_store_column(column, field, context) for column, field in zip(zip(*rows, strict=True), fields, strict=True)
    ]
    known = [each for each in stored if each is not None]
    if len(known) != len(stored):
        return None
    return rows_of(list(zip(*known, strict=True)), fields, snapshot.schema)


def fields_of(statement: InsertRows, snapshot: Snapshot, named: Struct, static: Collection[str] = ()) -> list[Field]:
    """The columns that an INSERT gives values, in its order, without those of a ``static`` partition.

    Raises:
        UnknownColumn: one is not there. InvalidOption: it is named twice, or does not partition the table.
    """
    for name, _ in statement.partition:
        if field_of(name, snapshot, named).name not in snapshot.partition_columns:
            reason = f"the table is partitioned by {', '.join(snapshot.partition_columns) or 'nothing'}."
            raise InvalidOption(option="PARTITION", value=name, reason=reason)
    if statement.columns is None:
        return [field for field in snapshot.schema if field.name not in static]
    fields = [field_of(name, snapshot, named) for name in statement.columns]
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1 or name in static:
            raise InvalidOption(option="columns", value=name, reason="the column is named twice.")
    return fields


def field_of(name: str, snapshot: Snapshot, named: Struct) -> Field:
    """The column of a name; ``named`` says whether its case counts. Raises UnknownColumn: there is none."""
    found = named.find(name)
    if found is None:
        raise UnknownColumn(table=snapshot.table, column=name, columns=", ".join(snapshot.schema.names))
    return found


def _takes_rows_as_they_are(snapshot: Snapshot, fields: Sequence[Field]) -> bool:
    """Whether the table computes no value, and has only columns that hold values as they are; NULL is what the other
    columns have.
    """
    schema, given = snapshot.schema, {field.name for field in fields}
    absent = [each for each in schema if each.name not in given]
    computes = identities(schema) or any(default_of(each) is not None for each in absent)
    computes = computes or bool(rules_of(snapshot.metadata).generated)
    return not computes and all(map(is_plain_column, schema))


def _try_store_column(cells: Sequence[Expression | None], field: Field, context: Context) -> list[Computation] | None:
    """What a column stores of the values that rows give it; None where only Spark says that. Spark makes one type of
    all before it stores them, which changes no value where all are whole numbers, or all are decimals with room.
    """
    found = []
    for cell in cells:
        value = None if cell is None or cell.references else computation_of(cell.source.text, context)
        if value is None or value.reason is not None or value.columns:
            return None
        found.append(value)
    kinds = [each.tree.type for each in found if each.tree.type != VOID]
    if len(set(kinds)) > 1 and not _widen(kinds):
        return None
    stored = [cast_to_column(each, field) for each in found]
    return None if any(each.reason is not None for each in stored) else stored


def _widen(kinds: Sequence[DataType | None]) -> bool:
    """Whether types are of one family of exact numbers, one of which holds the values of all."""
    if not (all(kind in INTEGERS for kind in kinds) or all(decimal_of(str(kind)) for kind in kinds)):
        return False
    try:
        return common([Given(kind) for kind in kinds]) is not None
    except Unfit:
        return False
