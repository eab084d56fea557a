"""Marks: short texts by which a stream recognises the commits that it has read.

Knows the log's commit files. Guarantee: a copy of a commit has the same mark, and another commit of its version has a
different one, so that a stream notices when its table was restored from a copy and has grown again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress

from anabranch._log.file_names import commit_name, commit_version
from anabranch._log.snapshot import Snapshot
from anabranch._storage.contract import Entry
from anabranch._streaming.offsets import Position
from anabranch.errors import NotFound

_BYTES = 4096
"""Number of bytes at the beginning of a commit that identify its writer, time and changes."""


class Marks:
    """The marks of one table; caches the last one, with its file."""

    def __init__(self) -> None:
        self._last: tuple[Entry | None, str | None] = (None, None)

    def of(self, at: Position, newest: Snapshot) -> str | None:
        """The mark of the commit at a position; None if it was cleaned up, or does not exist yet.

        Raises:
            StoreError: the store did not answer.
        """
        if not 0 <= at.read <= newest.version:
            return None
        listed = (file for file in newest.segment.commits if commit_version(file.name) == at.read)
        entry = next(listed, None) or newest.store.head(commit_name(at.read))
        if entry is not None and self._last[0] != entry:
            with suppress(NotFound):
                beginning = newest.store.read_range(entry.name, 0, _BYTES)
                self._last = (entry, hashlib.sha256(b"%d:%b" % (entry.size, beginning)).hexdigest()[:16])
        return self._last[1] if self._last[0] == entry else None
