"""Iceberg compatibility: conditions under which a table's files can be read as an Iceberg table's.

Knows PROTOCOL.md, sections "Iceberg Compatibility V1" and "V2", and protocol_rfcs/iceberg-compat-v3.md. Pure. Never
writes Iceberg metadata. Guarantee: a table with one of these flags is written only as its section allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from anabranch._protocol.actions import Metadata
from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.syntax import Literal, TypedLiteral
from anabranch._protocol.schema.column_mapping import (
    BY_NAME,
    ICEBERG_V2,
    ICEBERG_V3,
    MODE,
    PARQUET_ID,
    fields_of,
    is_mapped,
    numbers_inside,
)
from anabranch._protocol.schema.editing import inside_of
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, decimal_of, kind_of, parts_of
from anabranch.errors import InvalidProperty

ICEBERG_V1 = "delta.enableIcebergCompatV1"
VERSIONS = {1: ICEBERG_V1, 2: ICEBERG_V2, 3: ICEBERG_V3}
"""The property of each version of the compatibility."""
VECTORS = "delta.enableDeletionVectors"
TRACKED = "delta.enableRowTracking"
HIDDEN_IDS = (2147483540, 2147483539)
"""The field ids of the hidden columns of row tracking in the third version: of row ids and of commit versions."""
_DEFAULT = "CURRENT_DEFAULT"
_INTEGERS = ("byte", "short", "integer", "long")
_TYPES = frozenset(
    {*_INTEGERS, "float", "double", "string", "binary", "boolean", "timestamp", "timestamp_ntz", "date", "decimal"}
)


def flags(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """The compatibility properties that are true."""
    return tuple(key for key in VERSIONS.values() if configuration.get(key, "").strip().lower() == "true")


def with_defaults(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table with those that its compatibility requires, unless set."""
    on = flags(properties)
    needed = {TRACKED: "true"} if on == (ICEBERG_V3,) else {VECTORS: "false"}
    return {MODE: BY_NAME, **needed, **properties} if on else dict(properties)


def check(metadata: Metadata, *, vectors_listed: bool) -> None:
    """Raises `InvalidProperty`, with the reason, unless a table is compatible; ``vectors_listed``: whether its protocol
    lists deletion vectors.
    """
    configuration = metadata.configuration
    on = flags(configuration)
    if len(on) > 1:
        raise _refusal(on[-1], "only one version of the compatibility can be on.")
    for flag in on:
        if not is_mapped(configuration):
            raise _refusal(flag, f"it needs {MODE}, name or id.")
        if flag == ICEBERG_V3:
            _check_third(metadata)
        elif _is_true(configuration, VECTORS) or (vectors_listed and flag == ICEBERG_V1):
            raise _refusal(flag, "it excludes deletion vectors; rows must be purged and the feature dropped first.")
        for path, type_ in _types(metadata.schema):
            if not _is_allowed(type_, flag):
                raise _refusal(flag, f"the column {path} has the type {kind_of(type_)}.")
        for field, change in _type_changes(metadata.schema):
            if not _is_known_to_iceberg(change):
                raise _refusal(flag, f"Iceberg does not support the change of the type of {field.name}.")


def _check_third(metadata: Metadata) -> None:
    """Raises `InvalidProperty` if a table lacks what only the third version asks for."""
    if not _is_true(metadata.configuration, TRACKED):
        raise _refusal(ICEBERG_V3, f"it needs {TRACKED} = true.")
    for field in fields_of(metadata.schema):
        default = field.metadata.get(_DEFAULT)
        if default is not None and not _is_literal(default):
            raise _refusal(ICEBERG_V3, f"the default of the column {field.name} is not a literal.")


def _is_true(configuration: Mapping[str, str], key: str) -> bool:
    return configuration.get(key, "").strip().lower() == "true"


def _is_literal(text: str) -> bool:
    try:
        return isinstance(parse_expression(text), Literal | TypedLiteral)
    except ParseError:
        return False


def hidden_ids(configuration: Mapping[str, str]) -> tuple[int, int] | None:
    """The field ids of the hidden columns of row tracking in new files; None if they have none."""
    return HIDDEN_IDS if flags(configuration) == (ICEBERG_V3,) else None


def check_partitioning(before: Metadata, after: Metadata) -> None:
    """Raises `InvalidProperty` if the partition columns change."""
    same = before.partition_columns == after.partition_columns or before.partition_keys == after.partition_keys
    for flag in flags(after.configuration) if before.partition_columns and not same else ():
        raise _refusal(flag, "a table cannot be partitioned by other columns than before.")


def lacks_numbers(
    file_fields: pa.Schema | pa.StructType, configuration: Mapping[str, str], hidden: Sequence[str] = ()
) -> bool:
    """Whether some column of a file has no field id where Iceberg looks for one.

    Args:
        file_fields: the columns of the file.
        configuration: the table's properties.
        hidden: the names of the hidden columns of row tracking, which have fixed ids in the third version, else none.
    """
    fixed = hidden_ids(configuration)
    shown = [field for field in file_fields if field.name not in hidden]
    if fixed is not None and any(
        field.name in hidden and _number_of(field) != fixed[hidden.index(field.name)] for field in file_fields
    ):
        return True
    return any(_lacks(field, nested=numbers_inside(configuration)) for field in shown)


def _number_of(field: pa.Field) -> int | None:
    number = (field.metadata or {}).get(PARQUET_ID)
    return None if number is None else int(number)


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
        return flag != ICEBERG_V1
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
