"""Fits rows to a table: its columns, in its order and types, with default values for missing columns. Pure.

Guarantee: the result obeys the table's rules; rows that do not fit are refused, and no value is truncated or lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from anabranch._protocol.row_rules import default_scalars, enforce_rules
from anabranch._protocol.rules.table_rules import Rules
from anabranch._protocol.schema.evolution import DIFFER, misfit, nullable_type, sql_name, with_names_of
from anabranch._protocol.schema.intervals import YEAR_MONTH
from anabranch._protocol.schema.types import (
    INTEGERS,
    Array,
    DataType,
    Field,
    Map,
    Struct,
    arrow_type,
    from_arrow,
    upcastable,
)
from anabranch.errors import SchemaMismatch
from anabranch.errors.rows import NOT_SHOWN, may_show_rows

_CAST = "Cast it first."


def fit_to_rules(
    table: str, rows: pa.Table, schema: Struct, rules: Rules, altered: frozenset[str] = frozenset()
) -> pa.Table:
    """The rows under the table's columns, with defaults for missing ones, checked against the table's rules.

    Args:
        altered: as for `anabranch._protocol.row_rules.enforce_rules`.

    Raises:
        SchemaMismatch: a column does not fit. RowViolation: a row breaks a rule. NotBuilt: only Spark can check a rule.
    """
    present = {name.lower() for name in rows.column_names}
    absent = [name for name in schema.names if name.lower() not in present]
    defaults = default_scalars(table, schema, rules, absent)
    provided = frozenset(schema.names) - {*absent}
    return enforce_rules(
        table, fit_to_schema(table, rows, schema, defaults), schema, rules, provided, altered, new=True
    )


def fit_to_schema(
    table: str, rows: pa.Table, schema: Struct, defaults: Mapping[str, pa.Scalar] | None = None
) -> pa.Table:
    """The rows under the table's columns, in its order and types; a missing column gets its default, or NULL.

    Raises:
        SchemaMismatch: a column is unknown, is missing though NOT NULL, or has a type or values that do not fit.
    """
    by_name: dict[str, int] = {}
    for i, name in enumerate(rows.column_names):
        if by_name.setdefault(name.lower(), i) != i:
            reason = "the rows have two columns of this name (case does not count)."
            raise SchemaMismatch(table=table, column=name, reason=reason, expected="one", found="two")
    default_values = defaults or {}
    arrays = [
        pa.repeat(default_values[field.name], len(rows))
        if field.name in default_values
        else _fit_column(table, rows, by_name.get(field.name.lower()), field)
        for field in schema.fields
    ]
    for name in rows.column_names:  # last, since delta-spark reports types first
        if schema.find(name) is None:
            expected, actual = ", ".join(schema.names) or "none", ", ".join(rows.column_names)
            reason = "it is not one of its columns."
            raise SchemaMismatch(table=table, column=name, reason=reason, expected=expected, found=actual)
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def _fit_column(table: str, rows: pa.Table, position: int | None, target: Field) -> pa.ChunkedArray | pa.Array:
    # NULLs inside a value are checked later, by the table's rules, row by row.
    target_type = arrow_type(nullable_type(target.type), target.name)
    if position is None:
        return pa.nulls(len(rows), target_type)
    column = rows.column(position)
    if column.type == target_type or pa.types.is_null(column.type):
        return column.cast(target_type)
    source_type = from_arrow(pa.schema([pa.field(target.name, column.type)])).fields[0].type
    is_whole = source_type in INTEGERS and target.type in INTEGERS
    why = None if is_whole else misfit(source_type, target.type, target.name, fits=_fits)
    if why is not None:
        raise why.error(table, _CAST if why.reason == DIFFER else "")
    try:
        return _rename_members(column, source_type, target.type).cast(target_type)
    except pa.ArrowException as error:
        reason = str(error) if may_show_rows(table) else f"a value does not fit; {NOT_SHOWN}"
        raise SchemaMismatch(
            table=table, column=target.name, reason=reason, expected=sql_name(target.type), found=sql_name(source_type)
        ) from None


def _fits(source: DataType, target: DataType) -> bool:
    """Whether values of one primitive type fit another; whole numbers are months, as in files."""
    return upcastable(source, target) or (target == YEAR_MONTH and source in INTEGERS)


def _rename_members(column: pa.ChunkedArray, source_type: DataType, target: DataType) -> pa.ChunkedArray:
    """The values with members named as in the table: Arrow's cast is case-sensitive, and would drop the others."""
    spelled = with_names_of(source_type, target)
    if spelled == source_type:
        return column
    # In Python, because Arrow cannot rename the members of a struct inside a list or map.
    values = [_rename_in_value(value, source_type, spelled) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(values, arrow_type(spelled))])


def _rename_in_value(value: Any, source_type: DataType, spelled: DataType) -> Any:
    if value is None or isinstance(source_type, str):
        return value
    if isinstance(source_type, Struct):
        assert isinstance(spelled, Struct)
        pairs = zip(source_type, spelled, strict=True)
        return {after.name: _rename_in_value(value[before.name], before.type, after.type) for before, after in pairs}
    if isinstance(source_type, Array):
        assert isinstance(spelled, Array)
        return [_rename_in_value(element, source_type.element, spelled.element) for element in value]
    assert isinstance(spelled, Map)
    return [
        (_rename_in_value(k, source_type.key, spelled.key), _rename_in_value(v, source_type.value, spelled.value))
        for k, v in value
    ]
