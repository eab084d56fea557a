"""Reading the footers of Parquet files, by as little of each as will do.

Knows a store and where Parquet keeps its footer. Guarantee: no row is read.
"""

from __future__ import annotations

import io
import struct

import pyarrow.parquet as pq

from anabranch.storage.contract import Entry, Store

_TAIL_BYTES = 64 * 1024


def read_footer(store: Store, entry: Entry) -> pq.FileMetaData:
    """A Parquet file's footer, by one short read in most cases."""
    tail = store.read_range(entry.name, -min(_TAIL_BYTES, entry.size), min(_TAIL_BYTES, entry.size))
    if len(tail) < 12:
        raise ValueError(f"{entry.name} has {len(tail)} bytes, which is less than any Parquet file")
    (length,) = struct.unpack("<I", tail[-8:-4])
    if length + 8 > len(tail):
        tail = store.read_range(entry.name, -(length + 8), length + 8)
    return pq.read_metadata(io.BytesIO(tail))
