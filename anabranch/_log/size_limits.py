"""Limits the size of log files of JSON lines, and of hints: a table may come from an untrusted source.

Knows names, bytes and two settings. Guarantee: a file larger than the setting allows is not fetched at all, and one for
which memory runs out is refused by name, in whichever step that happens. A hint, which nothing depends on, is fetched
up to its maximum size only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from anabranch._storage.contract import Entry, Store
from anabranch.errors import CorruptLog, InvalidOption

LARGEST = "ANABRANCH_LARGEST_COMMIT"
"""The environment variable with the maximum size of a commit, or of a checkpoint in JSON, in bytes."""
LARGEST_BYTES = 4 << 30
MAX_CHECKPOINT_MEMORY = "ANABRANCH_LARGEST_CHECKPOINT"
"""The environment variable with the maximum memory of a Parquet file of the log, in bytes."""
_MIN_UNFOLDED_BYTES, _UNFOLDED_FACTOR = 1 << 30, 100
LARGEST_HINT_BYTES = 64 << 20
"""Maximum size of a ``.crc`` or ``_last_checkpoint``, in bytes; a larger one is ignored."""


def whole(store: Store, entry: Entry) -> bytes:
    """All bytes of a listed file of JSON lines.

    Raises:
        CorruptLog: it is larger than `LARGEST` allows, or than memory.
        NotFound: it does not exist, or was replaced.
    """
    check_size(store, entry)
    with enough_memory(store.url, entry.name):
        return store.get(entry.name, etag=entry.etag)


def hint(store: Store, name: str) -> bytes:
    """All bytes of an optional file.

    Raises:
        ValueError: it is larger than `LARGEST_HINT_BYTES`.
        NotFound: it does not exist.
    """
    data = store.read_range(name, 0, LARGEST_HINT_BYTES + 1)
    if len(data) > LARGEST_HINT_BYTES:
        raise ValueError(f"it has more than {LARGEST_HINT_BYTES} bytes")
    return data


def check_size(store: Store, entry: Entry) -> None:
    """Raises CorruptLog: a file of JSON lines is larger than `LARGEST` allows."""
    if entry.size > (limit := largest()):
        reason = f"it has {entry.size} bytes, and the environment variable {LARGEST} allows {limit}."
        raise CorruptLog(table=store.url, file=entry.name, reason=reason)


def largest() -> int:
    """The allowed number of bytes. Raises InvalidOption: the environment variable is not a positive integer."""
    return _read_variable(LARGEST) or LARGEST_BYTES


def largest_unfolded_bytes(size: int) -> int:
    """The maximum memory, in bytes, of a Parquet file of this size: by default 1 GiB, or a hundred times its size if
    that is more. Raises InvalidOption: the environment variable is not a positive integer.
    """
    return _read_variable(MAX_CHECKPOINT_MEMORY) or max(_MIN_UNFOLDED_BYTES, _UNFOLDED_FACTOR * size)


def _read_variable(variable: str) -> int:
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
