"""Writes rows as data files, from this process.

Knows Parquet and how partitions name folders; not what the rows mean. Guarantee: files hold what Spark's own writer
would have put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.protocol.iceberg import folder_key
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.protocol.parquet_files import nan_free, parquet_bytes, saying_nan_free
from anabranch.protocol.partitions import HIVE_NULL, hive_segment, split, written_texts
from anabranch.protocol.schema.column_mapping import FIELD_ID, PARQUET_ID, file_schema, relabelled
from anabranch.protocol.schema.types import Field, Struct
from anabranch.protocol.schema.voids import check_writable, held_columns, without_voids
from anabranch.protocol.unsupported import Unsupported
from anabranch.storage.contract import Store

FILE_ROWS = 250_000
"""So many rows go into one file."""
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
    """

    names: Mapping[str, str]
    codec: str
    says: Mapping[str, str] = field(default_factory=dict)
    materialised: bool = False


def shape_of(files: FileSet, says: Mapping[str, str]) -> Shape:
    """How rows with the columns of a file set lie in its table's files."""
    names = {each.physical_name: each.name for each in files.schema}
    return Shape(names, files.rules.codec, says, files.rules.materialised)


def put_rows(store: Store, folder: str, rows: pa.Table, files: FileSet, says: Mapping[str, str]) -> None:
    """Write rows with the columns of a file set, in their order and types, below a folder of its table.

    Raises:
        UnwritableVoid: no file can hold such rows.
        Unsupported: no folder can be named by a partition value.
    """
    partitions = [files.schema.field(name) for name in files.partition_columns]
    texts = {each.physical_name: _texts(rows[each.name], each) for each in partitions}
    put(store, folder, _stored(rows, files), texts, shape_of(files, says))


def put_one(store: Store, folder: str, rows: pa.Table, files: FileSet) -> None:
    """Write rows of one partition, whose folder this is, as one file. Raises UnwritableVoid: no file can hold them."""
    _put_one(store, folder, _stored(rows, files), shape_of(files, {}))


def _stored(rows: pa.Table, files: FileSet) -> pa.Table:
    """Rows with the columns of a file set as files hold them."""
    schema, partitions = files.schema, [files.schema.field(name) for name in files.partition_columns]
    check_writable(schema, files.partition_columns)
    inside = [each for each in schema if each not in partitions]
    stored = Struct((*inside, *(partitions if files.rules.materialised else ())))
    return relabelled(without_voids(rows.select(list(stored.names))), file_schema(held_columns(stored)))


def put(store: Store, folder: str, data: pa.Table, texts: Mapping[str, pa.Array], shape: Shape) -> None:
    """Write rows as files hold them below a folder of a table: one file for each combination of partition values, or
    more where they are many.

    Args:
        texts: for each partition column, by its physical name, the text of each row's value.

    Raises:
        Unsupported: no folder can be named by a partition value.
    """
    check_folders(texts)
    for values, part in split(data, texts):
        folders = {folder_key(name, materialised=shape.materialised): value for name, value in values.items()}
        inside = "/".join([folder, *(hive_segment(name, value) for name, value in folders.items())])
        for first in range(0, len(part), FILE_ROWS):
            _put_one(store, inside, part.slice(first, FILE_ROWS), shape)


def _texts(column: pa.ChunkedArray, field: Field) -> pa.Array:
    try:
        return written_texts(column, str(field.type))
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


def _put_one(store: Store, folder: str, rows: pa.Table, shape: Shape) -> None:
    known = [shape.names[each] for each in nan_free(rows) if isinstance(each, str)]
    data = parquet_bytes(rows.replace_schema_metadata({**shape.says, **saying_nan_free(known)}), shape.codec)
    store.put(f"{folder}/part-00000-{uuid4()}-c000.{shape.codec}.parquet", data)


def numbered(rows: pa.Table, schema: Struct) -> pa.Table:
    """Rows under the physical names of some of a schema's columns, with the Parquet field ids that these have."""
    ids = {each.physical_name: each.metadata[FIELD_ID] for each in schema if FIELD_ID in each.metadata}
    if not ids:
        return rows
    said = [{PARQUET_ID: str(ids[name]).encode()} if name in ids else None for name in rows.column_names]
    both = zip(rows.schema, said, strict=True)
    return pa.Table.from_arrays(rows.columns, schema=pa.schema([each.with_metadata(ids) for each, ids in both]))
