"""Fits rows to a table: its columns, in its order and types, with the values of those that the rows lack. Pure.

Guarantee: what comes back obeys the table's rules; what does not fit is refused, and nothing is cut or lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from anabranch._protocol.row_rules import default_scalars, obedient
from anabranch._protocol.rules.table_rules import Rules
from anabranch._protocol.schema.evolution import DIFFER, misfit, nullable_type, sql_name, with_names_of
from anabranch._protocol.schema.types import INTEGERS, Array, DataType, Field, Map, Struct, arrow_type, from_arrow
from anabranch.errors import SchemaMismatch
from anabranch.errors.rows import NOT_SHOWN, may_show_rows

_CAST = "Cast it first."


def fit_to_rules(
    table: str, rows: pa.Table, schema: Struct, rules: Rules, altered: frozenset[str] = frozenset()
) -> pa.Table:
    """The rows under the table's columns, with the defaults of those that they lack, as its rules want them.

    Args:
        altered: as for `anabranch._protocol.row_rules.obedient`.

    Raises:
        SchemaMismatch: a column does not fit. RowViolation: a row breaks a rule. NotBuilt: only Spark can hold one.
    """
    there = {name.lower() for name in rows.column_names}
    absent = [name for name in schema.names if name.lower() not in there]
    defaults = default_scalars(table, schema, rules, absent)
    given = frozenset(schema.names) - {*absent}
    return obedient(table, fit_to_schema(table, rows, schema, defaults), schema, rules, given, altered, new=True)


def fit_to_schema(
    table: str, rows: pa.Table, schema: Struct, defaults: Mapping[str, pa.Scalar] | None = None
) -> pa.Table:
    """The rows under the table's columns, in its order and types; one that they lack holds its default, or NULL. Raises
    SchemaMismatch: a column is too many, is missing though NOT NULL, or does not fit by its type or values.
    """
    by_name: dict[str, int] = {}
    for i, name in enumerate(rows.column_names):
        if by_name.setdefault(name.lower(), i) != i:
            reason = "the rows have two columns of this name (case does not count)."
            raise SchemaMismatch(table=table, column=name, reason=reason, expected="one", found="two")
    given = defaults or {}
    arrays = [
        pa.repeat(given[each.name], len(rows))
        if each.name in given
        else _fit_column(table, rows, by_name.get(each.name.lower()), each)
        for each in schema.fields
    ]
    for name in rows.column_names:  # last, since delta-spark speaks of types first
        if schema.find(name) is None:
            known, found = ", ".join(schema.names) or "none", ", ".join(rows.column_names)
            reason = "it is not one of its columns."
            raise SchemaMismatch(table=table, column=name, reason=reason, expected=known, found=found)
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def _fit_column(table: str, rows: pa.Table, position: int | None, target: Field) -> pa.ChunkedArray | pa.Array:
    # Whether something inside is NULL is for the table's rules to say, of each row.
    wanted = arrow_type(nullable_type(target.type))
    if position is None:
        return pa.nulls(len(rows), wanted)
    column = rows.column(position)
    if column.type == wanted or pa.types.is_null(column.type):
        return column.cast(wanted)
    found = from_arrow(pa.schema([pa.field(target.name, column.type)])).fields[0].type
    why = None if found in INTEGERS and target.type in INTEGERS else misfit(found, target.type, target.name)
    if why is not None:
        raise why.error(table, _CAST if why.reason == DIFFER else "")
    try:
        return _rename_members(column, found, target.type).cast(wanted)
    except pa.ArrowException as error:
        reason = str(error) if may_show_rows(table) else f"a value does not fit; {NOT_SHOWN}"
        raise SchemaMismatch(
            table=table, column=target.name, reason=reason, expected=sql_name(target.type), found=sql_name(found)
        ) from None


def _rename_members(column: pa.ChunkedArray, found: DataType, target: DataType) -> pa.ChunkedArray:
    """The values with members named as the table spells them: Arrow's cast knows case, and would drop the others."""
    spelled = with_names_of(found, target)
    if spelled == found:
        return column
    # By way of Python: Arrow cannot rename the members of a struct inside a list or map.
    values = [_rename_in_value(value, found, spelled) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(values, arrow_type(spelled))])


def _rename_in_value(value: Any, found: DataType, spelled: DataType) -> Any:
    if value is None or isinstance(found, str):
        return value
    if isinstance(found, Struct):
        assert isinstance(spelled, Struct)
        pairs = zip(found, spelled, strict=True)
        return {after.name: _rename_in_value(value[before.name], before.type, after.type) for before, after in pairs}
    if isinstance(found, Array):
        assert isinstance(spelled, Array)
        return [_rename_in_value(each, found.element, spelled.element) for each in value]
    assert isinstance(spelled, Map)
    return [
        (_rename_in_value(k, found.key, spelled.key), _rename_in_value(v, found.value, spelled.value)) for k, v in value
    ]
