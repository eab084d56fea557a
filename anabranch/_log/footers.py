"""Reads the footers of Parquet files with as few bytes as possible.

Knows a store and where Parquet keeps its footer. Guarantee: no row is read.
"""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.row_groups import RowGroups
from anabranch._storage.contract import Entry, Store
from anabranch.errors import NotFound

_TAIL_BYTES = 64 * 1024
_LARGEST_BYTES = 256 << 20  # many times the size for the widest files; a file may come from an untrusted source
_LEAST_BYTES, _LAST_BYTES = 12, 8
MAGIC = b"PAR1"
_MAGICS = (MAGIC, b"PARE")  # the latter ends a file whose footer is encrypted


def read_footer(store: Store, entry: Entry) -> pq.FileMetaData:
    """A Parquet file's footer, in most cases with one short read."""
    return pq.read_metadata(io.BytesIO(read_tail(store, entry)))


def read_whole_footer(store: Store, entry: Entry) -> pq.FileMetaData:
    """A Parquet file's footer, after a check that it is consistent: Arrow aborts the process when it reads a column
    chunk of another type than its column. Raises ValueError: it contradicts itself.
    """
    tail = read_tail(store, entry)
    footer = pq.read_metadata(io.BytesIO(tail))
    RowGroups(footer_in(tail, entry.name), footer.num_row_groups).check()
    return footer


def read_tail(store: Store, entry: Entry) -> bytes:
    """The end of a Parquet file, with its whole footer. Raises ValueError: the file is too short, or its footer exceeds
    the limit.
    """
    tail = store.read_range(entry.name, -min(_TAIL_BYTES, entry.size), min(_TAIL_BYTES, entry.size))
    length = _length(tail, entry.name)
    if length > _LARGEST_BYTES:
        raise ValueError(f"{entry.name} has a footer of {length} bytes, and none of more than {_LARGEST_BYTES} is read")
    return tail if length <= len(tail) else store.read_range(entry.name, -length, length)


def footer_in(tail: bytes, name: str) -> bytes:
    """The footer in the end of a Parquet file. Raises ValueError: it is incomplete."""
    length = _length(tail, name)
    if length > len(tail):
        raise ValueError(f"{name} has {len(tail)} bytes, and a footer of {length}")
    return tail[-length:-_LAST_BYTES]


def check_is_parquet(store: Store, name: str) -> None:
    """Raises ValueError unless a file begins and ends as Parquet does and has a readable footer, NotFound where there
    is none.
    """
    entry = store.head(name)
    if entry is None:
        raise NotFound(name=name, root=store.url)
    if store.read_range(name, 0, len(MAGIC)) != MAGIC:
        raise ValueError(f"{name} does not begin as a Parquet file does")
    try:
        _ = read_footer(store, entry)
    except (pa.ArrowException, OSError):
        raise ValueError(f"{name} has no footer that could be read") from None


def _length(tail: bytes, name: str) -> int:
    """The length of the footer and the bytes after it. Other files are not quoted: they may hold anything."""
    if len(tail) < _LEAST_BYTES:
        raise ValueError(f"{name} has {len(tail)} bytes, which is less than any Parquet file")
    if tail[-4:] not in _MAGICS:
        raise ValueError(f"{name} does not end as a Parquet file does")
    return int(struct.unpack("<I", tail[-8:-4])[0]) + _LAST_BYTES
