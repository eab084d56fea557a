"""Iceberg compatibility: conditions under which a table's files can be read as an Iceberg table's.

Knows PROTOCOL.md, sections "Iceberg Compatibility V1" and "V2". Pure. Never writes Iceberg metadata.
Guarantee: a table with one of these flags is written only as its section allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from anabranch._protocol.actions import Metadata
from anabranch._protocol.schema.column_mapping import BY_NAME, ICEBERG_V2, MODE, PARQUET_ID, is_mapped
from anabranch._protocol.schema.editing import inside_of
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, decimal_of, kind_of, parts_of
from anabranch.errors import InvalidProperty

ICEBERG_V1 = "delta.enableIcebergCompatV1"
VECTORS = "delta.enableDeletionVectors"
_INTEGERS = ("byte", "short", "integer", "long")
_TYPES = frozenset(
    {*_INTEGERS, "float", "double", "string", "binary", "boolean", "timestamp", "timestamp_ntz", "date", "decimal"}
)


def flags(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """The compatibility properties that are true."""
    return tuple(key for key in (ICEBERG_V1, ICEBERG_V2) if configuration.get(key, "").strip().lower() == "true")


def numbers_inside(configuration: Mapping[str, str]) -> bool:
    """Whether elements of arrays, and keys and values of maps, have field ids in files."""
    return ICEBERG_V2 in flags(configuration)


def with_defaults(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table with those that its compatibility requires, unless set."""
    return {MODE: BY_NAME, VECTORS: "false", **properties} if flags(properties) else dict(properties)


def check(metadata: Metadata, *, vectors_listed: bool) -> None:
    """Raises `InvalidProperty`, with the reason, unless a table is compatible; ``vectors_listed``: whether its protocol
    lists deletion vectors.
    """
    configuration = metadata.configuration
    on = flags(configuration)
    if len(on) > 1:
        raise _refusal(ICEBERG_V2, "only one version of the compatibility can be on.")
    for flag in on:
        if not is_mapped(configuration):
            raise _refusal(flag, f"it needs {MODE}, name or id.")
        vectors = configuration.get(VECTORS, "").strip().lower() == "true"
        if vectors or (vectors_listed and flag == ICEBERG_V1):
            raise _refusal(flag, "it excludes deletion vectors; rows must be purged and the feature dropped first.")
        for path, type_ in _types(metadata.schema):
            if not _is_allowed(type_, flag):
                raise _refusal(flag, f"the column {path} has the type {kind_of(type_)}.")
        for field, change in _type_changes(metadata.schema):
            if not _is_known_to_iceberg(change):
                raise _refusal(flag, f"Iceberg does not support the change of the type of {field.name}.")


def check_partitioning(before: Metadata, after: Metadata) -> None:
    """Raises `InvalidProperty` if the partition columns change."""
    same = before.partition_columns == after.partition_columns or before.partition_keys == after.partition_keys
    for flag in flags(after.configuration) if before.partition_columns and not same else ():
        raise _refusal(flag, "a table cannot be partitioned by other columns than before.")


def lacks_numbers(file_fields: pa.Schema | pa.StructType, configuration: Mapping[str, str]) -> bool:
    """Whether some column of a file has no field id where Iceberg looks for one."""
    return any(_lacks(field, nested=numbers_inside(configuration)) for field in file_fields)


def _lacks(field: pa.Field, *, nested: bool, own: bool = True) -> bool:
    if own and PARQUET_ID not in (field.metadata or {}):
        return True
    type_ = field.type
    if pa.types.is_struct(type_):
        return any(_lacks(member, nested=nested) for member in type_)
    if pa.types.is_list(type_):
        return _lacks(type_.value_field, nested=nested, own=nested)
    if pa.types.is_map(type_):
        return any(_lacks(part, nested=nested, own=nested) for part in (type_.key_field, type_.item_field))
    return False


def _refusal(flag: str, reason: str) -> InvalidProperty:
    return InvalidProperty(property=flag, value="true", reason=reason)


def _types(type_: DataType, path: str = "") -> Iterator[tuple[str, DataType]]:
    """Every type inside this one, with its path."""
    if path:
        yield path, type_
    for step, inner in parts_of(type_):
        yield from _types(inner, f"{path}.{step}" if path else step)


def _is_allowed(type_: DataType, flag: str) -> bool:
    if isinstance(type_, Array | Map):
        return flag == ICEBERG_V2
    return isinstance(type_, Struct) or type_ in _TYPES or decimal_of(type_) is not None


def _type_changes(type_: DataType) -> Iterator[tuple[Field, Mapping[str, Any]]]:
    if isinstance(type_, Struct):
        for field in type_:
            for change in field.metadata.get("delta.typeChanges", ()):
                yield field, change
            yield from _type_changes(field.type)
    for inner in inside_of(type_).values():
        yield from _type_changes(inner)


def _is_known_to_iceberg(change: Mapping[str, Any]) -> bool:
    before, after = change.get("fromType"), change.get("toType")
    if (before in _INTEGERS and after in _INTEGERS) or (before, after) == ("float", "double"):
        return True
    before_digits, after_digits = decimal_of(str(before)), decimal_of(str(after))
    return (
        before_digits is not None
        and after_digits is not None
        and before_digits[1] == after_digits[1]
        and before_digits[0] <= after_digits[0]
    )
