"""Limits the size of log files of JSON lines, and of hints: a table may come from a stranger.

Knows names, bytes and two settings. Guarantee: a file larger than the setting allows is not fetched at all, and one for
which memory runs out is refused by name, in whichever step that happens. Of a hint, which nothing depends on, no more
is fetched than the largest may have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from anabranch._storage.contract import Entry, Store
from anabranch.errors import CorruptLog, InvalidOption

LARGEST = "ANABRANCH_LARGEST_COMMIT"
"""The environment variable with the most bytes that a commit, or a checkpoint in JSON, may have."""
LARGEST_BYTES = 4 << 30
LARGEST_UNFOLDED = "ANABRANCH_LARGEST_CHECKPOINT"
"""The environment variable with the most bytes that a Parquet file of the log may take in memory."""
_UNFOLDED_BYTES, _UNFOLDED_TIMES = 1 << 30, 100
LARGEST_HINT_BYTES = 64 << 20
"""The most bytes of a ``.crc`` or ``_last_checkpoint``; a larger one is as good as none."""


def whole(store: Store, entry: Entry) -> bytes:
    """All bytes of a file of JSON lines, as a listing described it.

    Raises:
        CorruptLog: it is larger than `LARGEST` allows, or than memory.
        NotFound: it is not there, or another file is there now.
    """
    check_size(store, entry)
    with enough_memory(store.url, entry.name):
        return store.get(entry.name, etag=entry.etag)


def hint(store: Store, name: str) -> bytes:
    """All bytes of a file that only helps.

    Raises:
        ValueError: it is larger than `LARGEST_HINT_BYTES`.
        NotFound: it is not there.
    """
    found = store.read_range(name, 0, LARGEST_HINT_BYTES + 1)
    if len(found) > LARGEST_HINT_BYTES:
        raise ValueError(f"it has more than {LARGEST_HINT_BYTES} bytes")
    return found


def check_size(store: Store, entry: Entry) -> None:
    """Raises CorruptLog: a file of JSON lines is larger than `LARGEST` allows."""
    if entry.size > (most := largest()):
        reason = f"it has {entry.size} bytes, and the environment variable {LARGEST} allows {most}."
        raise CorruptLog(table=store.url, file=entry.name, reason=reason)


def largest() -> int:
    """The allowed number of bytes. Raises InvalidOption: the environment variable is not a positive integer."""
    return _set(LARGEST) or LARGEST_BYTES


def largest_unfolded_bytes(size: int) -> int:
    """The number of bytes that a Parquet file of so many may take in memory: by default 1 GiB, or a hundred times its
    size if that is more. Raises InvalidOption: the environment variable is not a positive integer.
    """
    return _set(LARGEST_UNFOLDED) or max(_UNFOLDED_BYTES, _UNFOLDED_TIMES * size)


def _set(variable: str) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text)):
        raise InvalidOption(option=variable, value=text[:20], reason="it takes a number of bytes, from 1.")
    return int(text)


@contextmanager
def enough_memory(table: str, file: str) -> Iterator[None]:
    """Converts a `MemoryError` within the block into an error with the name of the file. Raises CorruptLog: there is
    not enough memory.
    """
    try:
        yield
    except MemoryError as error:
        raise CorruptLog(table=table, file=file, reason="there is not enough memory to read it.") from error
