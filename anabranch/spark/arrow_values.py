"""Values on Arrow rows: what plain assignments make of rows, without Spark.

Knows plain values and Arrow's functions. Pure. Guarantee: the values are those that Spark would store; what leaves the
type of its column, or takes more memory than rows may here, raises an error of Arrow's, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.protocol.plain_values import Assigned, Computed, Constant, OldValue, Operator, PlainValue
from anabranch.protocol.schema.types import Field, Struct, arrow_type
from anabranch.spark.arrow_reading import MOST_BYTES

_OPERATIONS: Mapping[Operator, Callable[..., Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}


def assigned(rows: pa.Table, schema: Struct, assignments: Mapping[str, Assigned]) -> pa.Table:
    """The rows with new values in the assigned columns, all computed from the old row.

    Args:
        rows: the schema's columns, in Arrow's types for them.
        assignments: plain ones (`anabranch.protocol.plain_values.are_plain`).

    Raises:
        pa.ArrowException: a value leaves the type of its column, or a text is too long for so many rows.
    """
    texts = sum(_size(each.plain) for each in assignments.values())
    if len(rows) * texts > MOST_BYTES:
        raise pa.ArrowCapacityError(f"{len(rows)} times {texts} bytes of literals")
    columns = [
        _made(assignments[each.name].plain, each, rows) if each.name in assignments else rows[each.name]
        for each in schema
    ]
    return pa.table(columns, rows.schema)


def rows_of(rows: Sequence[Sequence[Constant]], columns: Sequence[Field], schema: Struct) -> pa.Table:
    """Rows of a schema with literals in some columns, and NULL in the others.

    Args:
        rows: plain ones (`anabranch.protocol.plain_values.are_plain_rows`), in the order of ``columns``.

    Raises:
        pa.ArrowException: a value leaves the type of its column.
    """
    given = {field.name: list(values) for field, values in zip(columns, zip(*rows, strict=True), strict=True)}
    nothing = [Constant(None)] * len(rows)
    arrays = [_array(given.get(each.name, nothing), arrow_type(each.type)) for each in schema]
    return pa.table(arrays, list(schema.names))


def _array(values: Sequence[Constant], kind: pa.DataType) -> pa.Array:
    return pa.array([_scalar(each.value, kind).as_py() for each in values], kind)


def _made(value: PlainValue, field: Field, rows: pa.Table) -> Any:
    kind = arrow_type(field.type)
    match value:
        case Constant(constant):
            return pa.repeat(_scalar(constant, kind), len(rows))
        case OldValue(column):
            return rows[column]
        case Computed(column, operator, number):
            wide = pa.float64() if pa.types.is_floating(kind) else pa.int64()
            found = _OPERATIONS[operator](rows[column].cast(wide), _scalar(number, wide))
            return found.cast(kind)


def _size(value: PlainValue) -> int:
    return len(value.value.encode()) if isinstance(value, Constant) and isinstance(value.value, str) else 0


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    of_doubles = pa.types.is_floating(kind) and isinstance(value, Decimal)
    return pa.scalar(float(value) if of_doubles else value, kind)
