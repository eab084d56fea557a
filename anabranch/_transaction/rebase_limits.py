"""Bounds: how much a transaction may spend on finding its place behind its winners.

Knows bytes and seconds, and a command's handler, which it wraps; never a row. Reading the winners' rows and redoing
ours on them costs as much as *they* wrote, so a short command could hang behind a huge one. Guarantee: no step begins
past a bound; a step that has begun is finished, and its outcome counts. Blind appends need nothing of their handler, so
no bound applies to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.properties import RESOLUTION_BYTES, RESOLUTION_SECONDS
from anabranch._transaction.rebase_handler import RebaseHandler, RowReleaser
from anabranch._transaction.transaction import Transaction


@dataclass(frozen=True)
class Bounds:
    """The budget of one command: the bytes of winners' files that it reads, and seconds in all."""

    bytes: int
    seconds: int


class Exceeded(Exception):
    """A bound was reached: the property ``bound`` allows ``allowed``, and ``needed`` would be more."""

    def __init__(self, bound: str, allowed: int, needed: float) -> None:
        self.bound, self.allowed, self.needed = bound, allowed, ceil(needed)
        super().__init__(f"{bound} = {allowed}, {self.needed} needed")


class BoundedHandler:
    """A `RebaseHandler` that raises `Exceeded` where the budget is spent.

    Args:
        handler: does the work.
        bounds: called on the first use, so that a blind append never reads them.
        seconds: a clock.
    """

    def __init__(self, handler: RebaseHandler, bounds: Callable[[], Bounds], seconds: Callable[[], float]) -> None:
        self._handler, self._bounds, self._clock = handler, bounds, seconds
        self._bytes, self._seconds = 0, 0.0
        self._began: float | None = None

    @contextmanager
    def count_time(self) -> Iterator[None]:
        """Count the time of the block; waiting for the next put is not part of one."""
        self._began = self._clock()
        try:
            yield
        finally:
            self._seconds, self._began = self._total_seconds(), None

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file; while ours is judged, within the time."""
        if self._began is not None:
            self.check_time()
        return self._handler.vector(file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """See `RebaseHandler.could_match`; it reads nothing."""
        return self._handler.could_match(files)

    def matches(self, files: pa.Table) -> Marks:
        """The rows that the condition selects, if the files fit the budget."""
        self.check_time()
        needed, allowed = self._bytes + int(pc.sum(files["size"]).as_py() or 0), self._bounds().bytes
        if needed > allowed:
            raise Exceeded(RESOLUTION_BYTES, allowed, needed)
        self._bytes = needed
        return self._handler.matches(files)

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """See `RebaseHandler.redo`; within the time."""
        self.check_time()
        with self.count_time():
            return self._handler.redo(files, rows)

    def let_go(self, ours: Transaction, lost: Marks) -> Transaction | None:
        """See `RowReleaser.let_go`; within the time. None for a command that cannot."""
        if not isinstance(self._handler, RowReleaser):
            return None
        self.check_time()
        with self.count_time():
            return self._handler.let_go(ours, lost)

    def discard(self) -> None:
        """Remove the staged files, whatever was spent."""
        self._handler.discard()

    def finish(self) -> None:
        """See `RebaseHandler.finish`."""
        self._handler.finish()

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """See `ConflictDetails.sample`."""
        return self._handler.sample(file, rows)

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """See `ConflictDetails.narrower`."""
        return self._handler.narrower(ours, file)

    def check_time(self) -> None:
        """Raises Exceeded if no time is left."""
        spent, allowed = self._total_seconds(), self._bounds().seconds
        if spent > allowed:
            raise Exceeded(RESOLUTION_SECONDS, allowed, spent)

    def _total_seconds(self) -> float:
        return self._seconds + (0.0 if self._began is None else self._clock() - self._began)
