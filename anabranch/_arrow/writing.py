"""Writes rows as data files, from this process.

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
from anabranch._protocol.iceberg import folder_key
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.parquet_files import WrittenFile, nan_free, parquet_bytes, saying_nan_free
from anabranch._protocol.partitions import HIVE_NULL, hive_segment, split, write_values
from anabranch._protocol.schema.column_mapping import FIELD_ID, PARQUET_ID, file_schema, relabel
from anabranch._protocol.schema.types import Field, Struct, decimal_of
from anabranch._protocol.schema.voids import check_writable, columns_in_files, without_voids
from anabranch._protocol.unsupported import Unsupported
from anabranch._storage.contract import Store
from anabranch._storage.told import bind_context
from anabranch.errors import StagedFilesRemain, StoreError

FILE_ROWS = 250_000
"""So many rows go into one file."""
_SPELLED_BY_SPARK, _PLAIN_SCALE = ("float", "double", "timestamp_ntz"), 6
"""Types of partition values that have several texts, of which Spark chooses by its settings, or its Java; no decimal of
so few digits behind the point is spelled with an exponent."""
_LONGEST_NAME = 255
"""So many bytes has a folder's name at most, on most disks."""


@dataclass(frozen=True)
class Shape:
    """How rows lie in files.

    Attributes:
        names: physical names of columns with the logical ones.
        codec: how they are compressed.
        says: what footers say besides.
        materialised: whether files hold partition columns too.
        most_rows: the most rows of a file; None: as many as there are.
    """

    names: Mapping[str, str]
    codec: str
    says: Mapping[str, str] = field(default_factory=dict)
    materialised: bool = False
    most_rows: int | None = None


def shape_of(files: FileSet, says: Mapping[str, str]) -> Shape:
    """How rows with the columns of a file set lie in its table's files."""
    names = {each.physical_name: each.name for each in files.schema}
    rules = files.rules
    return Shape(names, rules.codec, says, rules.materialised, rules.most_rows)


@contextmanager
def undone(store: Store) -> Iterator[list[str]]:
    """Within the block files are written, and their names noted. Where it fails they are removed, so that another
    attempt may write to the same folder. Raises StagedFilesRemain: they cannot be removed.
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
    """Write rows with the columns of a file set, in their order and types, below a folder of its table, on a few
    threads; with at most ``most_rows`` in a file, and in as few files as memory allows. Where it fails nothing is left.

    Raises:
        UnwritableVoid: no file can hold such rows.
        Unsupported: only Spark writes such files.
        StagedFilesRemain: something is left.
    """
    check_written(site, files)
    with undone(site.store) as names:
        put = bind_context(lambda table: put_rows(site.store, folder, table, files, site.says, names))
        tables, most_bytes = _regroup_rows(rows, most_rows), 2 * MOST_BYTES
        done = map_ahead(put, tables, site.threads, waits=True, size_of=_size, most_bytes=most_bytes)
        return [file for _, several in done for file in several]


def _size(rows: pa.Table) -> int:
    return int(rows.nbytes)


def _regroup_rows(several: Iterable[pa.Table], most_rows: int | None) -> Iterator[pa.Table]:
    """The same rows in tables as large as they may be."""
    held, count, size = list[pa.Table](), 0, 0
    for rows in (part for each in several for part in _cut(each, most_rows)):
        if held and ((most_rows is not None and count + len(rows) > most_rows) or size + rows.nbytes > MOST_BYTES):
            yield pa.concat_tables(held)
            held, count, size = [], 0, 0
        held.append(rows)
        count, size = count + len(rows), size + rows.nbytes
    if count:
        yield pa.concat_tables(held)


def _cut(rows: pa.Table, most_rows: int | None) -> Iterator[pa.Table]:
    most = most_rows or max(len(rows), 1)
    yield from (rows.slice(first, most) for first in range(0, len(rows), most))


def check_written(site: Site, files: FileSet) -> None:
    """Raises Unsupported unless files hold the same, whether they are written here or by the session's own writer."""
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
    """Write rows with the columns of a file set, in their order and types, below a folder of its table.

    Args:
        names: takes the name of each file before it is there.

    Raises:
        UnwritableVoid: no file can hold such rows.
        Unsupported: no folder can be named by a partition value.
    """
    partitions = [files.schema.field(name) for name in files.partition_columns]
    texts = {each.physical_name: _texts(rows[each.name], each) for each in partitions}
    return put(store, folder, _to_file_rows(rows, files), texts, shape_of(files, says), names)


def put_one(site: Site, folder: str, rows: pa.Table, files: FileSet) -> None:
    """Write rows of one partition, whose folder this is, as one file. Raises UnwritableVoid: no file can hold them."""
    _put_one(site.store, folder, _to_file_rows(rows, files), shape_of(files, site.says), [])


def _to_file_rows(rows: pa.Table, files: FileSet) -> pa.Table:
    """Rows with the columns of a file set as files hold them."""
    schema, partitions = files.schema, [files.schema.field(name) for name in files.partition_columns]
    check_writable(schema, files.partition_columns)
    inside = [each for each in schema if each not in partitions]
    stored = Struct((*inside, *(partitions if files.rules.materialised else ())))
    return relabel(without_voids(rows.select(list(stored.names))), file_schema(columns_in_files(stored)))


def put(
    store: Store,
    folder: str,
    data: pa.Table,
    texts: Mapping[str, pa.Array],
    shape: Shape,
    names: list[str] | None = None,
) -> list[WrittenFile]:
    """Write rows as files hold them below a folder of a table: one file for each combination of partition values, or
    more where they are many.

    Args:
        texts: for each partition column, by its physical name, the text of each row's value.
        names: takes the name of each file before it is there.

    Raises:
        Unsupported: no folder can be named by a partition value.
    """
    check_folders(texts)
    written = list[WrittenFile]()
    for values, part in split(data, texts):
        folders = {folder_key(name, materialised=shape.materialised): value for name, value in values.items()}
        inside = "/".join([folder, *(hive_segment(name, value) for name, value in folders.items())])
        most = shape.most_rows or max(len(part), 1)
        for first in range(0, len(part), most):
            written.append(_put_one(store, inside, part.slice(first, most), shape, [] if names is None else names))
    return written


def _texts(column: pa.ChunkedArray, field: Field) -> pa.Array:
    try:
        return write_values(column, str(field.type))
    except (ValueError, OverflowError):  # its words may hold the value
        raise Unsupported(f"a value of the partition column {field.name} has no text") from None


def check_folders(texts: Mapping[str, pa.Array]) -> None:
    """Raises Unsupported unless folders can be named by these texts, and give them back."""
    for name, column in texts.items():
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise Unsupported(f"a value of the partition column {name} is no text") from None
        for text in pc.unique(column).to_pylist():
            if text == HIVE_NULL or len(hive_segment(name, text).encode()) > _LONGEST_NAME:
                raise Unsupported(f"no folder can be named by a value of the partition column {name}")


def _put_one(store: Store, folder: str, rows: pa.Table, shape: Shape, names: list[str]) -> WrittenFile:
    known = [shape.names[each] for each in nan_free(rows) if isinstance(each, str)]
    data = parquet_bytes(rows.replace_schema_metadata({**shape.says, **saying_nan_free(known)}), shape.codec)
    name = f"{folder}/part-00000-{uuid4()}-c000.{shape.codec}.parquet"
    names.append(name)  # before it is there: of a put that fails there may be something, too
    store.put(name, data)
    return WrittenFile(name, len(data), time.time_ns() // 1_000_000, pq.read_metadata(io.BytesIO(data)))


def with_field_ids(rows: pa.Table, schema: Struct) -> pa.Table:
    """Rows under the physical names of some of a schema's columns, with the Parquet field ids that these have."""
    ids = {each.physical_name: each.metadata[FIELD_ID] for each in schema if FIELD_ID in each.metadata}
    if not ids:
        return rows
    said = [{PARQUET_ID: str(ids[name]).encode()} if name in ids else None for name in rows.column_names]
    both = zip(rows.schema, said, strict=True)
    return pa.Table.from_arrays(rows.columns, schema=pa.schema([each.with_metadata(ids) for each, ids in both]))
