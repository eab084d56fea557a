"""Marks: short texts by which a stream knows the commits again that it has read.

Knows the log's commit files. Guarantee: a copy of a commit has its mark, whenever and wherever it was put back, and
another commit of its version has not, so that a stream notices that its table was put back and has grown again.
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
"""So many at its beginning say who made a commit, when, and to what."""


class Marks:
    """The marks of one table; the last one is kept, with the file that it is of."""

    def __init__(self) -> None:
        self._last: tuple[Entry | None, str | None] = (None, None)

    def of(self, at: Position, newest: Snapshot) -> str | None:
        """The mark of the commit behind, or in, which a position stands; None where it was cleaned up, or is to come.

        Raises:
            StoreError: it could not be found out.
        """
        if not 0 <= at.read <= newest.version:
            return None
        listed = (each for each in newest.segment.commits if commit_version(each.name) == at.read)
        entry = next(listed, None) or newest.store.head(commit_name(at.read))
        if entry is not None and self._last[0] != entry:
            with suppress(NotFound):
                beginning = newest.store.read_range(entry.name, 0, _BYTES)
                self._last = (entry, hashlib.sha256(b"%d:%b" % (entry.size, beginning)).hexdigest()[:16])
        return self._last[1] if self._last[0] == entry else None
