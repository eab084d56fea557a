"""Translates columns between their logical names and the physical names in files.

Knows how Spark renames members of structs (by a cast, which matches by position) and writes Parquet field ids. Knows
nothing of files. Guarantee: values do not change; a column without physical names is passed through.

PROTOCOL.md, section "Column Mapping".
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.features.widening import type_to_read
from anabranch._protocol.schema.column_mapping import FIELD_ID, NESTED_IDS, fields_of, is_renamed
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch._protocol.schema.voids import type_in_files
from anabranch._spark.columns.shapes import convert_value
from anabranch._spark.columns.types import column, spark_type
from anabranch.errors import NotBuilt

_PARQUET_ID = "parquet.field.id"
"""Key in a column's metadata under which Spark's writer expects the field id."""


def logical(schema: Struct) -> list[Column]:
    """Columns that were read under physical names, under their logical ones."""
    return [_logical(field) for field in schema]


def _logical(field: Field) -> Column:
    value, file_type = column(field.physical_name), type_in_files(field.type)
    if file_type is None:
        return F.lit(None).cast(spark_type(field.type)).alias(field.name)
    is_read_as_it_is = type_to_read(field) == field.type
    if is_renamed(field.type) or not is_read_as_it_is:
        value = value.cast(spark_type(file_type))
    if file_type != field.type:
        value = convert_value(value, file_type, field.type)
    is_unchanged = field.physical_name == field.name and file_type == field.type and not is_renamed(field.type)
    is_unchanged = is_unchanged and is_read_as_it_is
    return value if is_unchanged else value.alias(field.name)


def is_stored_as_it_is(field: Field) -> bool:
    """Whether files have a column just as the table has it, so that `to_file_column` changes nothing."""
    return type_in_files(field.type) == field.type and not _metadata(field)


def to_file_column(field: Field, *, numbered_inside: bool) -> Column:
    """A column in its form for files: with physical names and Parquet field ids, also inside, and without void
    members.

    Raises:
        NotBuilt: elements, keys and values need field ids too, which Spark's writer cannot set.
    """
    value, metadata, file_type = column(field.name), _metadata(field), type_in_files(field.type)
    assert file_type is not None, "files hold it"
    if file_type != field.type:
        value = convert_value(value, field.type, file_type).alias(field.name)
    if not metadata:
        return value
    if numbered_inside and any(each.metadata.get(NESTED_IDS) for each in (field, *fields_of(field.type))):
        what = f"writing the array or map {field.name} with Spark into a table of icebergCompatV2 or V3"
        raise NotBuilt(what=what, instead="Append Arrow rows instead; Spark's writer cannot number what lies inside.")
    if not isinstance(file_type, str):
        value = value.cast(_file_type(file_type))
    return value.alias(field.physical_name, metadata=metadata)


def _metadata(field: Field) -> dict[str, int]:
    return {_PARQUET_ID: field.metadata[FIELD_ID]} if FIELD_ID in field.metadata else {}


def _file_type(data_type: DataType) -> T.DataType:
    if isinstance(data_type, Struct):
        return T.StructType(
            [
                T.StructField(member.physical_name, _file_type(member.type), True, _metadata(member))
                for member in data_type
            ]
        )
    if isinstance(data_type, Array):
        return T.ArrayType(_file_type(data_type.element))
    if isinstance(data_type, Map):
        return T.MapType(_file_type(data_type.key), _file_type(data_type.value))
    return spark_type(data_type)
