"""Void columns and members, which are NULL in every row and in no data file.

Knows PROTOCOL.md, section "Void Type". Knows nothing of rows or files. Pure. Guarantee: the `type_in_files` part of a
type has no void in it, at any depth, and keeps the order of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from anabranch._protocol.schema.evolution import sql_name
from anabranch._protocol.schema.types import VOID, Array, DataType, Map, Struct, parts_of
from anabranch.errors import UnwritableVoid

_IN_ARRAY_OR_MAP = "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"
_ALL_VOID = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS"
_ALL_VOID_MEMBERS = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS"
"""delta-spark's names for these cases."""


def has_void(data_type: DataType) -> bool:
    """Whether a type contains void, at any depth.

    Example:
        >>> has_void("void"), has_void(Array("long"))
        (True, False)
    """
    return data_type == VOID or any(has_void(inner) for _, inner in parts_of(data_type))


def type_in_files(data_type: DataType) -> DataType | None:
    """The part of a type that data files store; None if they store nothing of it.

    Example:
        >>> type_in_files("long"), type_in_files("void"), type_in_files(Array("void"))
        ('long', None, None)
    """
    if isinstance(data_type, Struct):
        members = columns_in_files(data_type)
        return None if len(data_type) and not len(members) else members
    if isinstance(data_type, Array):
        element = type_in_files(data_type.element)
        return None if element is None else replace(data_type, element=element)
    if isinstance(data_type, Map):
        key, value = type_in_files(data_type.key), type_in_files(data_type.value)
        return None if key is None or value is None else replace(data_type, key=key, value=value)
    return None if data_type == VOID else data_type


def columns_in_files(schema: Struct) -> Struct:
    """The columns that data files store, each with the members that they store."""
    both = [(column, type_in_files(column.type)) for column in schema]
    return Struct(tuple(replace(field, type=type_) for field, type_ in both if type_ is not None))


def check_writable(schema: Struct, partition_columns: Sequence[str] = ()) -> None:
    """Raises UnwritableVoid unless data files can store rows with these columns: void is inside an array or map, or a
    struct or the data files would store nothing else.
    """
    if not has_void(schema):
        return
    for field in schema:
        _check(field.type, field.name)
    if not any(type_in_files(field.type) is not None for field in schema if field.name not in partition_columns):
        voids = ", ".join(field.name for field in schema if field.name not in partition_columns)
        raise _unwritable(voids, VOID, "the data files would hold no column.", _ALL_VOID)


def _check(data_type: DataType, column: str) -> None:
    if isinstance(data_type, Struct):
        for member in data_type:
            _check(member.type, f"{column}.{member.name}")
        if type_in_files(data_type) is None:
            raise _unwritable(column, sql_name(data_type), "the struct has no other member.", _ALL_VOID_MEMBERS)
    elif data_type != VOID and has_void(data_type):
        raise _unwritable(column, sql_name(data_type), "no file can hold its elements.", _IN_ARRAY_OR_MAP)


def _unwritable(column: str, type_: str, reason: str, condition: str) -> UnwritableVoid:
    return UnwritableVoid(column=column, type=type_, reason=reason, delta_condition=condition)


# -- Arrow -------------------------------------------------------------------------------------------------------------


def without_voids(rows: pa.Table) -> pa.Table:
    """The rows without their void parts, outside arrays and maps."""
    if not any(_has_null(field.type) for field in rows.schema):
        return rows
    stored = {field.name: rows.column(field.name) for field in rows.schema if not pa.types.is_null(field.type)}
    return pa.table({name: _column_without(column) for name, column in stored.items()})


def _has_null(arrow: pa.DataType) -> bool:
    if pa.types.is_struct(arrow):
        return any(_has_null(arrow.field(i).type) for i in range(arrow.num_fields))
    return bool(pa.types.is_null(arrow))


def _column_without(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not _has_null(column.type):
        return column
    whole = [chunk.take(pa.array(range(len(chunk)), pa.int64())) for chunk in column.chunks]  # begins at its buffers
    target = _type_without(column.type)
    return pa.chunked_array([_struct_without(chunk, target) for chunk in whole], target)


def _type_without(arrow: pa.DataType) -> pa.DataType:
    if not pa.types.is_struct(arrow):
        return arrow
    fields = [arrow.field(i) for i in range(arrow.num_fields)]
    return pa.struct(
        [field.with_type(_type_without(field.type)) for field in fields if not pa.types.is_null(field.type)]
    )


def _struct_without(values: pa.Array, target: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(target):
        return values
    inside = [_struct_without(values.field(field.name), field.type) for field in target]
    return pa.StructArray.from_arrays(inside, fields=list(target), mask=values.is_null())
