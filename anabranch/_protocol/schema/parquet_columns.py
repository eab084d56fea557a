"""The Delta columns of a Parquet file, as Spark reads them, and those of many files merged.

Knows footers and Spark's ``ParquetToSparkSchemaConverter``; knows no rows. Pure. Guarantee: a column that Spark would
not read, or would read differently from one file to the next, is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from anabranch._protocol.schema.intervals import DAY_SECOND, INTERVALS, YEAR_MONTH, canonical_type
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, kind_of
from anabranch.errors import UnsupportedType

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_NARROW = ("byte", "short", "integer")
"""Integer types that Parquet stores alike, in 32 bits."""

_SIGNED = {8: "byte", 16: "short", 32: "integer", 64: "long"}
_UNSIGNED = {8: "short", 16: "integer", 32: "long", 64: "decimal(20,0)"}
_TEXTS = ("String", "Enum", "JSON")
_STORED_AS = {YEAR_MONTH: "integer", DAY_SECOND: "long"}


class MergeConflict(Exception):
    """Two files disagree on a column; ``reason`` explains how."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column, self.reason = column, reason


def columns_of(footer: pq.FileMetaData) -> Struct:
    """The columns of one file, all nullable, with the comments that Spark wrote, and the intervals that it noted.

    Raises:
        UnsupportedType: Spark or Delta has no type for a column.
        MergeConflict: two columns have one name, in any case.
    """
    leaves = (footer.schema.column(i) for i in range(footer.num_columns))
    struct = _struct(footer.schema.to_arrow_schema(), leaves, "")
    spark_fields = _spark_metadata(footer)
    noted = ((field, spark_fields.get(field.name)) for field in struct)
    fields = [
        replace(field, type=_noted_type(field.type, _part(note, "type")), metadata=_comment(note))
        for field, note in noted
    ]
    return Struct(tuple(fields))


def merge_columns(earlier: Struct, more: Struct, prefix: str = "") -> Struct:
    """Merge the columns of earlier files with those of one more: new columns last, 32-bit integers at their widest.
    Raises MergeConflict: the types of a column are incompatible, or its names differ in case.
    """
    fields = {column.name: column for column in earlier}
    spellings = {name.lower(): name for name in fields}
    for field in more:
        path = f"{prefix}{field.name}"
        before = spellings.setdefault(field.name.lower(), field.name)
        if before != field.name:
            raise MergeConflict(
                path, f"is spelled {before} in earlier files, which some engines take for another column"
            )
        present = fields.get(field.name)
        fields[field.name] = (
            field if present is None else replace(present, type=_merge_types(present.type, field.type, path))
        )
    return Struct(tuple(fields.values()))


def with_partitions(columns: Struct, partitions: Struct) -> Struct:
    """The columns of files and of their partition folders: the latter last, or in their place if the files have them
    too.
    """
    by_name = {partition.name.lower(): partition for partition in partitions}
    inside = [by_name.pop(column.name.lower(), column) for column in columns]
    return Struct((*inside, *by_name.values()))


def _merge_types(earlier: DataType, more: DataType, path: str) -> DataType:
    if isinstance(earlier, Struct) and isinstance(more, Struct):
        return merge_columns(earlier, more, f"{path}.")
    if isinstance(earlier, Array) and isinstance(more, Array):
        return replace(earlier, element=_merge_types(earlier.element, more.element, f"{path}.element"))
    if isinstance(earlier, Map) and isinstance(more, Map):
        key, value = (
            _merge_types(earlier.key, more.key, f"{path}.key"),
            _merge_types(earlier.value, more.value, f"{path}.value"),
        )
        return replace(earlier, key=key, value=value)
    if earlier in _NARROW and more in _NARROW:
        return max(str(earlier), str(more), key=_NARROW.index)
    if earlier != more:
        raise MergeConflict(path, f"is {kind_of(more)} but {kind_of(earlier)} in earlier files")
    return earlier


# -- one file ----------------------------------------------------------------------------------------------------------


def _struct(fields: Any, leaves: Iterator[pq.ColumnSchema], prefix: str) -> Struct:
    """The fields of an Arrow schema or struct; the leaves are in the order of the file's columns."""
    struct_fields: dict[str, Field] = {}
    for field in fields:
        if field.name.lower() in struct_fields:
            raise MergeConflict(f"{prefix}{field.name}", "occurs twice (ignoring case)")
        struct_fields[field.name.lower()] = Field(field.name, _type(field.type, leaves, f"{prefix}{field.name}"))
    return Struct(tuple(struct_fields.values()))


def _type(arrow: pa.DataType, leaves: Iterator[pq.ColumnSchema], path: str) -> DataType:
    """The structure comes from Arrow; leaf types come from Parquet only, since Spark ignores Arrow's own metadata."""
    while isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if pt.is_struct(arrow):
        return _struct([arrow.field(i) for i in range(arrow.num_fields)], leaves, f"{path}.")
    if pt.is_map(arrow):
        return Map(_type(arrow.key_type, leaves, f"{path}.key"), _type(arrow.item_type, leaves, f"{path}.value"))
    if pt.is_list(arrow) or pt.is_large_list(arrow) or pt.is_fixed_size_list(arrow):
        return Array(_type(arrow.value_type, leaves, f"{path}.element"))
    return _leaf(next(leaves), path)


def _leaf(column: pq.ColumnSchema, path: str) -> DataType:
    logical = json.loads(column.logical_type.to_json())
    data_type = _of_annotation(column, logical) if logical["Type"] != "None" else _PLAIN.get(column.physical_type)
    if data_type is None:
        shown = column.physical_type if logical["Type"] == "None" else f"{column.physical_type} ({logical['Type']})"
        raise UnsupportedType(column=path, type=shown)
    return data_type


_PLAIN = {
    "BOOLEAN": "boolean",
    "INT32": "integer",
    "INT64": "long",
    "INT96": "timestamp",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BYTE_ARRAY": "binary",
    "FIXED_LEN_BYTE_ARRAY": "binary",
}
"""Types of columns without an annotation."""


def _of_annotation(column: pq.ColumnSchema, logical: Mapping[str, Any]) -> str | None:
    kind = logical["Type"]
    if kind == "Int":
        return (_SIGNED if logical["isSigned"] else _UNSIGNED).get(logical["bitWidth"])
    if kind == "Decimal":
        return f"decimal({logical['precision']},{logical['scale']})" if logical["precision"] <= 38 else None
    if kind == "Timestamp" and logical["timeUnit"] in ("milliseconds", "microseconds"):
        return "timestamp" if logical["isAdjustedToUTC"] else "timestamp_ntz"
    if kind == "Date":
        return "date"
    if kind in _TEXTS:
        return "string"
    return "binary" if kind == "BSON" else None


def _spark_metadata(footer: pq.FileMetaData) -> Mapping[str, Any]:
    """Spark's metadata of the top-level columns, if Spark wrote the file. Raises UnsupportedType: a type is stored as
    another one, such as a time as a number.
    """
    try:
        fields = json.loads((footer.metadata or {})[_SPARK_SCHEMA])["fields"]
        spark_fields = {field["name"]: field for field in fields}
    except (KeyError, ValueError, TypeError, RecursionError):
        return {}
    for name, spark_field in spark_fields.items():
        for type_ in _types_in(spark_field.get("type")):
            is_other = type_.startswith(("interval", "time(", "variant", "void", "geometry", "geography"))
            if is_other and canonical_type(type_) not in INTERVALS:
                raise UnsupportedType(column=name, type=type_)
    return spark_fields


def _types_in(spark_type: Any) -> Iterator[str]:
    if isinstance(spark_type, str):
        yield spark_type
    elif isinstance(spark_type, Mapping):
        for key in ("elementType", "keyType", "valueType"):
            yield from _types_in(spark_type.get(key))
        for field in spark_type.get("fields") or ():
            yield from _types_in(field.get("type") if isinstance(field, Mapping) else None)


def _noted_type(data_type: DataType, note: Any) -> DataType:
    """The type with the intervals that Spark notes; files hold them as numbers."""
    match data_type:
        case Struct():
            notes = {_part(member, "name"): _part(member, "type") for member in _part(note, "fields") or ()}
            return Struct(
                tuple(replace(field, type=_noted_type(field.type, notes.get(field.name))) for field in data_type)
            )
        case Array():
            return replace(data_type, element=_noted_type(data_type.element, _part(note, "elementType")))
        case Map():
            key, value = (
                _noted_type(data_type.key, _part(note, "keyType")),
                _noted_type(data_type.value, _part(note, "valueType")),
            )
            return replace(data_type, key=key, value=value)
    name = canonical_type(note) if isinstance(note, str) else ""
    return name if _STORED_AS.get(name) == data_type else data_type


def _part(note: Any, key: str) -> Any:
    return note.get(key) if isinstance(note, Mapping) else None


def _comment(spark_field: Any) -> dict[str, Any]:
    metadata = spark_field.get("metadata") if isinstance(spark_field, Mapping) else None
    comment = metadata.get("comment") if isinstance(metadata, Mapping) else None
    return {"comment": comment} if isinstance(comment, str) else {}
