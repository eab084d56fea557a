"""Scans the live rows of a file set into a DataFrame.

Knows rows. Knows nothing of versions or conflicts. Guarantees: deleted rows are never shown; a file with an unexpected
path makes the query fail; the DataFrame is lazy and reads these files whatever happens to the table. Files without
vectors cost as much as a plain ``spark.read.parquet``; those with vectors are a branch of the plan.

PROTOCOL.md, section "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from anabranch._protocol.layout.addresses import address_of
from anabranch._protocol.layout.file_sets import FileSet, check_vectors
from anabranch._spark.columns.types import column, spark_schema
from anabranch._spark.reading import metadata_column
from anabranch._spark.reading.raw_rows import open_files, open_plain
from anabranch._spark.reading.relations import reuse_or_make
from anabranch._spark.reading.row_ids import names_of


def scan(
    spark: SparkSession,
    files: FileSet,
    columns: Sequence[str] | None = None,
    address: bool = False,
    *,
    ids: bool = False,
    metadata: bool = False,
) -> DataFrame:
    """The live rows of these files.

    Args:
        files: the files to read.
        columns: names of columns, in this order; None: all of the schema.
        address: add the two columns of `anabranch._spark.reading.raw_rows.address_of`: the file's path as in the log,
            and the position in that file, counted from 0.
        ids: add the hidden id columns, if the table tracks its rows.
        metadata: add the column of `anabranch._spark.reading.metadata_column`, unless the table has one of that name.

    Raises:
        UnknownColumn: one of ``columns`` is not in the schema.
        CorruptVector: a file has a vector in the log but none in the set.
        InvalidPartitionValue, MissingDataFile, CorruptLog, UnknownStore: the files cannot be read.

    Example:
        >>> scan(spark, files, columns=["id"]).count()
    """
    parts = parts_of(spark, files, columns, address, ids=ids, metadata=metadata)
    if parts:
        return reduce(DataFrame.unionAll, parts)
    return _no_rows(spark, files, _names_to_scan(files, columns, address, ids, metadata))


def parts_of(
    spark: SparkSession,
    files: FileSet,
    columns: Sequence[str] | None = None,
    address: bool = False,
    *,
    ids: bool = False,
    metadata: bool = False,
) -> list[DataFrame]:
    """The frames whose union is a `scan`: one of the files without deleted rows, and one of the others."""
    names = _names_to_scan(files, columns, address, ids, metadata)
    if address or ids or metadata:
        return [part.select(*map(column, names)) for part in _parts(spark, files, address, ids, metadata)]

    def make_parts() -> list[DataFrame]:
        return [part.select(*map(column, files.schema.names)) for part in _parts(spark, files, False, False, False)]

    parts = reuse_or_make(spark, files, make_parts)
    return list(parts) if columns is None else [part.select(*map(column, names)) for part in parts]


def _names_to_scan(
    files: FileSet, columns: Sequence[str] | None, address: bool, ids: bool, metadata: bool
) -> list[str]:
    names = files.schema.names if columns is None else [files.schema.field(name).name for name in columns]
    all_names = [*names, *(address_of(files.schema) if address else ()), *(names_of(files) if ids else ())]
    return [*all_names, metadata_column.NAME] if metadata else all_names


def with_vectors(files: FileSet) -> tuple[FileSet, FileSet]:
    """The files that have deleted rows, and the others. Raises CorruptVector, as `check_vectors`."""
    check_vectors(files)
    paths = files.files["path"]
    has = pc.is_in(paths, value_set=pa.array([path for path, rows in files.vectors.items() if rows], pa.string()))
    marked, plain = files.files.filter(has), files.files.filter(pc.invert(has))
    vectors = {path: files.vectors[path] for path in marked["path"].to_pylist()}
    return replace(files, files=marked, vectors=vectors), replace(files, files=plain, vectors={})


def _parts(spark: SparkSession, files: FileSet, address: bool, ids: bool, metadata: bool) -> Iterator[DataFrame]:
    marked, plain = with_vectors(files)
    ids = (ids or metadata) and files.tracked is not None
    if len(plain.files):
        opens = address or ids or metadata
        rows = open_files(spark, plain, ids=ids, metadata=metadata).rows if opens else open_plain(spark, plain)
        yield metadata_column.with_all_fields(rows, plain) if metadata else rows
    if len(marked.files):
        opened, deleted = open_files(spark, marked, ids=ids, metadata=metadata).with_mark_flag(marked.vectors)
        rows = opened.rows.filter(~deleted)
        yield metadata_column.with_all_fields(rows, marked) if metadata else rows


def _no_rows(spark: SparkSession, files: FileSet, columns: Sequence[str]) -> DataFrame:
    path, row = address_of(files.schema)
    schema = spark_schema(files.schema).add(path, T.StringType()).add(row, T.LongType())
    for name in names_of(files):
        schema = schema.add(name, T.LongType())
    if files.schema.find(metadata_column.NAME) is None:
        schema = schema.add(metadata_column.NAME, metadata_column.type_of(files))
    return spark.createDataFrame([], schema).select(*map(column, columns))
