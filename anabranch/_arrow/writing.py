"""Writes rows as data files from this process.

Knows Parquet and how partitions name folders; not what the rows mean. Guarantee: files hold what Spark's own writer
would have put there.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch._arrow.reading import MOST_BYTES, map_ahead
from anabranch._arrow.site import Site
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.materialised_partitions import folder_key
from anabranch._protocol.parquet_files import WrittenFile, nan_free, nan_free_metadata, parquet_bytes
from anabranch._protocol.partitions import HIVE_NULL, hive_segment, split, write_values
from anabranch._protocol.schema.column_mapping import FIELD_ID, PARQUET_ID, file_schema, relabel
from anabranch._protocol.schema.types import Field, Struct, decimal_of
from anabranch._protocol.schema.voids import check_writable, columns_in_files, without_voids
from anabranch._protocol.unsupported import Unsupported
from anabranch._storage.contract import Store
from anabranch._storage.store_settings import bind_context
from anabranch.errors import StagedFilesRemain, StoreError

FILE_ROWS = 250_000
"""Maximum number of rows of a file."""
_SPELLED_BY_SPARK, _PLAIN_SCALE = ("float", "double", "timestamp_ntz"), 6
"""Types of partition values whose text depends on Spark's settings or its Java. Decimals with at most this scale never
have an exponent in their text.
"""
_LONGEST_NAME = 255
"""Maximum length of a folder's name, in bytes, on most disks."""


@dataclass(frozen=True)
class Shape:
    """How rows are stored in files.

    Attributes:
        names: physical names of columns with the logical ones.
        codec: compression codec.
        pages: version of data pages.
        says: further key-value metadata of footers.
        materialised: whether files also hold partition columns.
        most_rows: maximum number of rows of a file; None: unlimited.
    """

    names: Mapping[str, str]
    codec: str
    says: Mapping[str, str] = field(default_factory=dict)
    materialised: bool = False
    most_rows: int | None = None
    pages: str = "1.0"


def shape_of(files: FileSet, says: Mapping[str, str]) -> Shape:
    """How rows with the columns of a file set are stored in its table's files."""
    names = {column.physical_name: column.name for column in files.schema}
    rules = files.rules
    return Shape(names, rules.compression, says, rules.materialised, rules.most_rows, rules.pages)


@contextmanager
def remove_on_failure(store: Store) -> Iterator[list[str]]:
    """Collect the names of files that the block writes. If the block fails they are removed, so that another attempt
    may write to the same folder.

    Raises:
        StagedFilesRemain: they cannot be removed.
    """
    names = list[str]()
    try:
        yield names
    except Exception:
        for name in names:
            try:
                store.delete(name)
            except StoreError as reason:
                raise StagedFilesRemain(table=store.url, file=name, reason=reason) from None
        raise


def put_all(
    site: Site, folder: str, rows: Iterable[pa.Table], files: FileSet, *, most_rows: int | None = FILE_ROWS
) -> list[WrittenFile]:
    """Write rows with the columns of a file set, in the set's order and types, below a folder of its table, on a few
    threads; at most ``most_rows`` to a file, and in as few files as memory allows. Nothing is left behind on failure.

    Raises:
        UnwritableVoid: no file can hold such rows.
        Unsupported: only Spark writes such files.
        StagedFilesRemain: files of a failed attempt are left behind.
    """
    check_writer(site, files)
    with remove_on_failure(site.store) as names:
        put = bind_context(lambda table: put_rows(site.store, folder, table, files, site.says, names))
        tables, most_bytes = regroup(rows, most_rows), 2 * MOST_BYTES
        written = map_ahead(put, tables, site.threads, waits=True, size_of=_size, most_bytes=most_bytes)
        return [file for _, files_of_table in written for file in files_of_table]


def _size(rows: pa.Table) -> int:
    return int(rows.nbytes)


def regroup(tables: Iterable[pa.Table], most_rows: int | None, most_bytes: int = MOST_BYTES) -> Iterator[pa.Table]:
    """Regroup rows into tables as large as allowed; one table of several has at most so many bytes."""
    group, count, size = list[pa.Table](), 0, 0
    for rows in (part for table in tables for part in _cut(table, most_rows)):
        if group and ((most_rows is not None and count + len(rows) > most_rows) or size + rows.nbytes > most_bytes):
            yield pa.concat_tables(group)
            group, count, size = [], 0, 0
        group.append(rows)
        count, size = count + len(rows), size + rows.nbytes
    if count:
        yield pa.concat_tables(group)


def _cut(rows: pa.Table, most_rows: int | None) -> Iterator[pa.Table]:
    most = most_rows or max(len(rows), 1)
    yield from (rows.slice(first, most) for first in range(0, len(rows), most))


def check_writer(site: Site, files: FileSet) -> None:
    """Raises Unsupported unless this writer's files would hold the same as those of the session's own writer."""
    if not site.is_plain:
        raise Unsupported("the session's settings are for Spark's own reader and writer")
    for name in () if site.spells else files.partition_columns:
        kind = str(files.schema.field(name).type)
        digits = decimal_of(kind)
        if kind in _SPELLED_BY_SPARK or (digits is not None and digits[1] > _PLAIN_SCALE):
            raise Unsupported(f"Spark spells the values of the partition column {name}")


def put_rows(
    store: Store,
    folder: str,
    rows: pa.Table,
    files: FileSet,
    says: Mapping[str, str],
    names: list[str] | None = None,
) -> list[WrittenFile]:
    """Write rows with the columns of a file set, in the set's order and types, below a folder of its table.

    Args:
        names: receives the name of each file before the file exists.

    Raises:
        UnwritableVoid: no file can hold such rows.
        Unsupported: a partition value cannot name a folder.
    """
    partitions = [files.schema.field(name) for name in files.partition_columns]
    texts = {column.physical_name: _texts(rows[column.name], column) for column in partitions}
    return put(store, folder, _to_file_rows(rows, files), texts, shape_of(files, says), names)


def put_one(site: Site, folder: str, rows: pa.Table, files: FileSet) -> None:
    """Write rows of one partition as one file in its folder. Raises UnwritableVoid if no file can hold them."""
    _put_one(site.store, folder, _to_file_rows(rows, files), shape_of(files, site.says), [])


def _to_file_rows(rows: pa.Table, files: FileSet) -> pa.Table:
    """Rows with the columns of a file set, as its files hold them."""
    schema, partitions = files.schema, [files.schema.field(name) for name in files.partition_columns]
    check_writable(schema, files.partition_columns)
    non_partition = [column for column in schema if column not in partitions]
    stored = Struct((*non_partition, *(partitions if files.rules.materialised else ())))
    return relabel(without_voids(rows.select(list(stored.names))), file_schema(columns_in_files(stored)))


def put(
    store: Store,
    folder: str,
    data: pa.Table,
    texts: Mapping[str, pa.Array],
    shape: Shape,
    names: list[str] | None = None,
) -> list[WrittenFile]:
    """Write rows that have the columns of files below a folder of a table: one file for each combination of partition
    values, or several if there are many rows.

    Args:
        texts: for each partition column, by its physical name, the text of each row's value.
        names: receives the name of each file before the file exists.

    Raises:
        Unsupported: a partition value cannot name a folder.
    """
    check_folders(texts)
    written = list[WrittenFile]()
    for values, part in split(data, texts):
        folders = {folder_key(name, materialised=shape.materialised): value for name, value in values.items()}
        subfolder = "/".join([folder, *(hive_segment(name, value) for name, value in folders.items())])
        most = shape.most_rows or max(len(part), 1)
        for first in range(0, len(part), most):
            written.append(_put_one(store, subfolder, part.slice(first, most), shape, [] if names is None else names))
    return written


def _texts(column: pa.ChunkedArray, field: Field) -> pa.Array:
    try:
        return write_values(column, str(field.type))
    except (ValueError, OverflowError):  # the error's text may contain the value
        raise Unsupported(f"a value of the partition column {field.name} has no text") from None


def check_folders(texts: Mapping[str, pa.Array]) -> None:
    """Raises Unsupported unless these texts can name folders and be read back."""
    for name, column in texts.items():
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise Unsupported(f"a value of the partition column {name} is not valid text") from None
        for text in pc.unique(column).to_pylist():
            if text == HIVE_NULL or len(hive_segment(name, text).encode()) > _LONGEST_NAME:
                raise Unsupported(f"no folder can be named by a value of the partition column {name}")


def _put_one(store: Store, folder: str, rows: pa.Table, shape: Shape, names: list[str]) -> WrittenFile:
    nan_free_names = [shape.names[path] for path in nan_free(rows) if isinstance(path, str)]
    said = rows.replace_schema_metadata({**shape.says, **nan_free_metadata(nan_free_names)})
    data = parquet_bytes(said, shape.codec, shape.pages)
    name = f"{folder}/part-00000-{uuid4()}-c000.{shape.codec}.parquet"
    names.append(name)  # first, because even a put that fails may leave something
    store.put(name, data)
    return WrittenFile(name, len(data), time.time_ns() // 1_000_000, pq.read_metadata(io.BytesIO(data)))


def with_field_ids(rows: pa.Table, schema: Struct) -> pa.Table:
    """Rows under the physical names of some of a schema's columns, with the Parquet field ids of these columns."""
    ids = {column.physical_name: column.metadata[FIELD_ID] for column in schema if FIELD_ID in column.metadata}
    if not ids:
        return rows
    metadata = [{PARQUET_ID: str(ids[name]).encode()} if name in ids else None for name in rows.column_names]
    fields = zip(rows.schema, metadata, strict=True)
    return pa.Table.from_arrays(rows.columns, schema=pa.schema([column.with_metadata(ids) for column, ids in fields]))
