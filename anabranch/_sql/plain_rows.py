"""Plain rows: evaluates an INSERT whose VALUES are all literals without Spark.

Guarantee: the rows equal Spark's for the same text. If that is uncertain, or the table computes values of its own,
there is no result and nothing was written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from anabranch._arrow.assigned_values import build_rows
from anabranch._expressions.computations import computation_of
from anabranch._expressions.context import Context
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.expressions.common_types import common_type
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.table import Argument, ArgumentsNotSupported
from anabranch._protocol.rules.identity import identities
from anabranch._protocol.rules.table_rules import default_of, rules_of
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, Field, Struct, decimal_of
from anabranch._protocol.store_assignment import cast_to_column, is_plain_column
from anabranch._sql.grammar.parts import Expression
from anabranch._sql.grammar.row_values import InsertRows
from anabranch.errors import InvalidOption, UnknownColumn

MOST_CELLS = 1000
"""Maximum number of literals; Spark evaluates more of them faster."""


def plain_rows(
    statement: InsertRows,
    fields: Sequence[Field],
    snapshot: Snapshot,
    context: Context,
    *,
    most: int | None = MOST_CELLS,
) -> pa.Table | None:
    """Evaluate the rows of an INSERT, with the table's columns; None if only Spark can evaluate or refuse them.

    Args:
        fields: the columns that get values, in the statement's order.
        most: the maximum number of literals; None for no limit.

    Raises:
        Unsupported: only Spark can evaluate a value.
    """
    rows = statement.values
    if not rows or statement.says_default or statement.by_name or statement.partition:
        return None
    if {len(row) for row in rows} != {len(fields)} or (most is not None and len(rows) * len(fields) > most):
        return None
    if not _stores_rows_verbatim(snapshot, fields):
        return None
    stored = [
        _try_store_column(column, field, context) for column, field in zip(zip(*rows, strict=True), fields, strict=True)
    ]
    stored_columns = [stored_column for stored_column in stored if stored_column is not None]
    if len(stored_columns) != len(stored):
        return None
    return build_rows(list(zip(*stored_columns, strict=True)), fields, snapshot.schema)


def fields_of(statement: InsertRows, snapshot: Snapshot, columns: Struct, static: Collection[str] = ()) -> list[Field]:
    """Return the columns that an INSERT gives values, in its order, without those of a ``static`` partition.

    Raises:
        UnknownColumn: a column does not exist. InvalidOption: it is named twice, or does not partition the table.
    """
    for name, _ in statement.partition:
        if field_of(name, snapshot, columns).name not in snapshot.partition_columns:
            reason = f"the table is partitioned by {', '.join(snapshot.partition_columns) or 'nothing'}."
            raise InvalidOption(option="PARTITION", value=name, reason=reason)
    if statement.columns is None:
        return [field for field in snapshot.schema if field.name not in static]
    fields = [field_of(name, snapshot, columns) for name in statement.columns]
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1 or name in static:
            raise InvalidOption(option="columns", value=name, reason="the column is named twice.")
    return fields


def field_of(name: str, snapshot: Snapshot, columns: Struct) -> Field:
    """Return the column of a name; ``columns`` determines case sensitivity. Raises UnknownColumn if there is none."""
    field = columns.find(name)
    if field is None:
        raise UnknownColumn(table=snapshot.table, column=name, columns=", ".join(snapshot.schema.names))
    return field


def _stores_rows_verbatim(snapshot: Snapshot, fields: Sequence[Field]) -> bool:
    """Whether the table stores the values unchanged and computes none; columns without a value are NULL."""
    schema, given_names = snapshot.schema, {field.name for field in fields}
    absent = [field for field in schema if field.name not in given_names]
    computes = identities(schema) or any(default_of(field) is not None for field in absent)
    computes = computes or bool(rules_of(snapshot.metadata).generated)
    return not computes and all(map(is_plain_column, schema))


def _try_store_column(cells: Sequence[Expression | None], field: Field, context: Context) -> list[Computation] | None:
    """Return what a column stores of the rows' values; None if only Spark can tell.

    Spark casts all values to a common type before it stores them. That changes no value if all are whole numbers, or
    all are decimals whose common type holds them.
    """
    computations = []
    for cell in cells:
        value = None if cell is None or cell.references else computation_of(cell.source.text, context)
        if value is None or value.reason is not None or value.columns:
            return None
        computations.append(value)
    kinds = [computation.tree.type for computation in computations if computation.tree.type != VOID]
    if len(set(kinds)) > 1 and not _have_common_type(kinds):
        return None
    stored = [cast_to_column(computation, field) for computation in computations]
    return None if any(computation.reason is not None for computation in stored) else stored


def _have_common_type(kinds: Sequence[DataType | None]) -> bool:
    """Whether all types are integers, or all decimals, and have a common type that holds every value."""
    if not (all(kind in INTEGERS for kind in kinds) or all(decimal_of(str(kind)) for kind in kinds)):
        return False
    try:
        return common_type([Argument(kind) for kind in kinds]) is not None
    except ArgumentsNotSupported:
        return False
