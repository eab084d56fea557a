"""Writes rows as data files, from this process.

Knows Parquet and how partitions name folders; not what the rows mean. Guarantee: files hold what Spark's own writer
would have put there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.protocol.parquet_files import nan_free, parquet_bytes, saying_nan_free
from anabranch.protocol.partitions import HIVE_NULL, hive_segment, split
from anabranch.protocol.schema.column_mapping import PARQUET_ID
from anabranch.storage.contract import Store

FILE_ROWS = 250_000
"""So many rows go into one file."""
_LONGEST_NAME = 255
"""So many bytes has a folder's name at most, on most disks."""


@dataclass(frozen=True)
class Shape:
    """How rows lie in files: the columns with texts of partition values, which name the folders; physical names with
    the logical ones, and with Parquet field ids where they have some; the codec; and what footers say besides.
    """

    folders: Sequence[str]
    names: Mapping[str, str]
    ids: Mapping[str, int]
    codec: str
    says: Mapping[str, str]


def put(store: Store, folder: str, rows: pa.Table, shape: Shape) -> None:
    """Write rows below a folder of a table, one file for each combination of partition values, or more where they are
    many: they have the columns that files hold, under physical names, and the texts of the partition values.
    """
    data = _numbered(rows.drop_columns(list(shape.folders)), shape.ids)
    for values, part in split(data, {name: rows[name] for name in shape.folders}):
        segments = [hive_segment(name, value) for name, value in values.items()]
        for first in range(0, len(part), FILE_ROWS):
            _put_one(store, "/".join([folder, *segments]), part.slice(first, FILE_ROWS), shape)


def names_folders(rows: pa.Table, folders: Sequence[str]) -> bool:
    """Whether these columns hold texts that folders can be named by, and that folders give back. Raises ArrowInvalid:
    one is no UTF-8.
    """
    for name in folders:
        rows[name].validate(full=True)
    texts = [(name, text) for name in folders for text in pc.unique(rows[name]).to_pylist()]
    return all(text != HIVE_NULL and len(hive_segment(name, text).encode()) <= _LONGEST_NAME for name, text in texts)


def _put_one(store: Store, folder: str, rows: pa.Table, shape: Shape) -> None:
    known = [shape.names[each] for each in nan_free(rows) if isinstance(each, str)]
    data = parquet_bytes(rows.replace_schema_metadata({**shape.says, **saying_nan_free(known)}), shape.codec)
    store.put(f"{folder}/part-00000-{uuid4()}-c000.{shape.codec}.parquet", data)


def _numbered(rows: pa.Table, ids: Mapping[str, int]) -> pa.Table:
    """The rows with Parquet field ids."""
    if not ids:
        return rows
    said = [{PARQUET_ID: str(ids[name]).encode()} if name in ids else None for name in rows.column_names]
    both = zip(rows.schema, said, strict=True)
    return pa.Table.from_arrays(rows.columns, schema=pa.schema([each.with_metadata(ids) for each, ids in both]))
