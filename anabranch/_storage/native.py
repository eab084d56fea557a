"""Bytes for Arrow's readers, in memory that Arrow owns.

Knows Arrow's buffers and range reads of a store. Guarantee: these files hold no Python object. Arrow's threads release
their buffers some moments after the result was returned; to release a Python object they need the interpreter, and
where that has ended meanwhile, the whole process dies by ``std::terminate``. So every reader with threads reads from
here.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from anabranch._storage.contract import Store

_GAP_BYTES = 64 << 10
_MAX_BYTES = 8 << 20
_READERS = 8


class Span(NamedTuple):
    """A range of bytes in a file: start, and end (exclusive)."""

    start: int
    end: int


def native_file(data: bytes | memoryview) -> pa.NativeFile:
    """A file with a copy of these bytes."""
    buffer = pa.allocate_buffer(len(data))
    _fill(buffer, 0, data)
    return pa.BufferReader(buffer)


def file_with(store: Store, name: str, size: int, spans: Iterable[Span]) -> pa.NativeFile:
    """A file as long as the stored one, of which only these ranges are fetched.

    Memory is used only for the fetched ranges: the other pages are never touched, and their content is undefined. So is
    the end where the stored file has become shorter; the caller checks afterwards that it is still the same file.

    Raises:
        NotFound: the name is not there.
    """
    buffer = pa.allocate_buffer(size)
    pieces = list(_pieces(spans, size))

    def fetch(piece: Span) -> None:
        _fill(buffer, piece.start, store.read_range(name, piece.start, piece.end - piece.start))

    if len(pieces) < 2:
        list(map(fetch, pieces))
    else:
        with ThreadPoolExecutor(min(_READERS, len(pieces)), thread_name_prefix="anabranch-read") as pool:
            list(pool.map(fetch, pieces))
    return pa.BufferReader(buffer)


def _fill(buffer: pa.Buffer, at: int, data: bytes | memoryview) -> None:
    with memoryview(buffer) as memory:
        memory.cast("B")[at : at + len(data)] = data


def _pieces(spans: Iterable[Span], size: int) -> Iterable[Span]:
    """Ranges merged where they are close, cut at the end of the file, none larger than one request should be."""
    start = end = 0
    for span in sorted(spans):
        if span.start > end + _GAP_BYTES:
            yield from _cut(start, end)
            start = span.start
        end = max(end, min(span.end, size))
    yield from _cut(start, end)


def _cut(start: int, end: int) -> Iterable[Span]:
    return (Span(at, min(at + _MAX_BYTES, end)) for at in range(start, end, _MAX_BYTES))
