"""How large a file of the log may be that is read whole: a table may come from a stranger.

Knows names, bytes and one setting. Guarantee: a file that is larger than the setting allows is not fetched at all, and
one for which there is not enough memory is refused by its name, whichever part of the work runs out of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from anabranch.errors import CorruptLog, InvalidOption
from anabranch.storage.contract import Entry, Store

LARGEST = "ANABRANCH_LARGEST_COMMIT"
"""The environment variable that says how many bytes a commit, or a checkpoint in JSON, may have."""
LARGEST_BYTES = 4 << 30


def whole(store: Store, entry: Entry) -> bytes:
    """All bytes of a file of JSON lines, as a listing announced it.

    Raises:
        CorruptLog: it is larger than `LARGEST` allows, or than there is memory.
        NotFound: it is not there.
    """
    if entry.size > (most := largest()):
        reason = f"it has {entry.size} bytes, and the environment variable {LARGEST} allows {most}."
        raise CorruptLog(table=store.url, file=entry.name, reason=reason)
    with enough_memory(store.url, entry.name):
        return store.get(entry.name)


def largest() -> int:
    """How many bytes are allowed.

    Raises:
        InvalidOption: the environment variable is no whole number from 1.
    """
    text = os.environ.get(LARGEST, "").strip()
    if not text:
        return LARGEST_BYTES
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text)):
        raise InvalidOption(option=LARGEST, value=text[:20], reason="it takes a number of bytes, from 1.")
    return int(text)


@contextmanager
def enough_memory(table: str, file: str) -> Iterator[None]:
    """Give what runs out of memory in here the name of the file that it reads.

    Raises:
        CorruptLog: there is not enough memory.
    """
    try:
        yield
    except MemoryError as error:
        raise CorruptLog(table=table, file=file, reason="there is not enough memory to read it.") from error
