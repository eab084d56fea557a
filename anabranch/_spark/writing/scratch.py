"""Keeps rows in a hidden folder of the table while a transaction runs.

Knows Spark's Parquet reader and writer; not what the rows mean, nor who removes them. Guarantee: rows that are read
back are those that were written, evaluated once, and match by position: columns may have any names, which never reach
the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anabranch._protocol.schema.types import DataType, Field, Struct
from anabranch._protocol.schema.voids import check_writable, type_in_files
from anabranch._spark.columns.shapes import convert_value
from anabranch._spark.columns.types import delta_type, is_void, local_rows, spark_type, tree_reduce
from anabranch._spark.reading.paths import literal, spark_root
from anabranch._spark.reading.raw_rows import read_options
from anabranch._spark.sessions import timestamps
from anabranch._spark.writing.write import write_options
from anabranch.errors import UnsupportedType

_NOT_IN_PARQUET = ("interval", "time")


def keep(spark: SparkSession, rows: DataFrame, root: str, folder: str) -> str:
    """Evaluate rows and write them to ``root/folder``; return its URL. Raises UnsupportedType if Parquet cannot hold a
    column's type.
    """
    url = f"{spark_root(spark, root)}/{folder}"
    schema = rows.schema
    check_types(schema)
    numbered = rows.toDF(*map(_name, range(len(schema))))  # by position, since names may be duplicate
    storable = numbered.select(
        *[_without_void_members(_name(i), field) for i, field in enumerate(schema) if not is_void(field.dataType)]
    )
    with timestamps.in_micros(spark):
        storable.write.mode("append").options(**write_options()).parquet(url)
    return url


def check_types(schema: T.StructType) -> None:
    """Raises UnsupportedType, with the column, unless Parquet can hold these columns."""
    for field in schema:
        if field.dataType.typeName() in _NOT_IN_PARQUET:
            raise UnsupportedType(column=field.name, type=field.dataType.simpleString())
        if _has_void_members(field.dataType):
            check_writable(Struct((Field(field.name, delta_type(field.dataType, field.name)),)))


def read_scratch(spark: SparkSession, places: Sequence[str | pa.Table], schema: T.StructType) -> DataFrame:
    """The rows of folders that were written with these columns, and of tables that begin with them."""
    tables = [place for place in places if not isinstance(place, str)]
    parts = [_local(spark, table, schema) for table in tables]
    if urls := [place for place in places if isinstance(place, str)]:
        parts.append(_in_folders(spark, urls, schema))
    return tree_reduce(DataFrame.unionAll, parts)


def _local(spark: SparkSession, rows: pa.Table, schema: T.StructType) -> DataFrame:
    names = [_name(i) for i in range(len(schema))]  # by position, since names may be duplicate
    plain = T.StructType([T.StructField(name, field.dataType) for name, field in zip(names, schema, strict=True)])
    named_rows = local_rows(spark, rows.select(range(len(schema))).rename_columns(names), plain)
    return named_rows.select(
        *[F.col(name).alias(field.name, **_metadata_argument(field)) for name, field in zip(names, schema, strict=True)]
    )


def _metadata_argument(field: T.StructField) -> dict[str, Any]:
    return {"metadata": field.metadata} if field.metadata else {}


def _in_folders(spark: SparkSession, urls: Sequence[str], schema: T.StructType) -> DataFrame:
    fields = [(_name(i), field) for i, field in enumerate(schema)]
    storable = [(name, field) for name, field in fields if not is_void(field.dataType)]
    stored = T.StructType(
        [T.StructField(name, _type_without_void_members(field), True, field.metadata) for name, field in storable]
    )
    read = spark.read.schema(stored).options(**read_options()).parquet(*map(literal, urls))
    return read.select(*[_value(name, field).alias(field.name) for name, field in fields])


def size_of(spark: SparkSession, url: str) -> tuple[int, int]:
    """Number of rows in a folder, and their size in bytes."""
    read = spark.read.schema(T.StructType()).options(**read_options()).parquet(literal(url))
    metadata = read.metadataColumn("_metadata")
    by_file = read.groupBy(metadata["file_path"].alias("file"), metadata["file_size"].alias("bytes")).count().toArrow()
    return sum(by_file["count"].to_pylist()), sum(by_file["bytes"].to_pylist())


def _name(position: int) -> str:
    return f"c{position}"


def _value(name: str, field: T.StructField) -> Column:
    if is_void(field.dataType):
        return F.lit(None)
    if not _has_void_members(field.dataType):
        return F.col(name)
    whole = delta_type(field.dataType, field.name)
    return convert_value(F.col(name), _require_file_type(whole), whole)


def _without_void_members(name: str, field: T.StructField) -> Column:
    """A column in its form for Parquet, without void members."""
    if not _has_void_members(field.dataType):
        return F.col(name)
    whole = delta_type(field.dataType, field.name)
    return convert_value(F.col(name), whole, _require_file_type(whole)).alias(name)


def _type_without_void_members(field: T.StructField) -> T.DataType:
    is_whole = not _has_void_members(field.dataType)
    return field.dataType if is_whole else spark_type(_require_file_type(delta_type(field.dataType, field.name)))


def _require_file_type(whole: DataType) -> DataType:
    file_type = type_in_files(whole)
    assert file_type is not None, "check_types refuses such columns"
    return file_type


def _has_void_members(data_type: T.DataType) -> bool:
    """Whether a nested type contains void."""
    if isinstance(data_type, T.StructType):
        inside = [member.dataType for member in data_type]
    elif isinstance(data_type, T.ArrayType):
        inside = [data_type.elementType]
    else:
        inside = [data_type.keyType, data_type.valueType] if isinstance(data_type, T.MapType) else []
    return any(is_void(part) or _has_void_members(part) for part in inside)
