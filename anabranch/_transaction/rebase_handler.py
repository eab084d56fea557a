"""What a command does for its transaction, since only it knows rows and the store.

Knows transactions and positions. A command passes in a `RebaseHandler`; where it names files of others, a `Guarded`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.file_sets import Marks
from anabranch._transaction.conflict_errors import Conflict, ConflictDetails
from anabranch._transaction.transaction import Transaction


class RebaseHandler(ConflictDetails, Protocol):
    """What a command does for its transaction, since only it knows rows and the store."""

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        ...

    def could_match(self, files: pa.Table) -> pa.Table:
        """Those of these files that may hold a row which the condition selects, by statistics and partition values."""
        ...

    def matches(self, files: pa.Table) -> Marks:
        """The live rows of these files which the condition selects, by running it."""
        ...

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Run the command on exactly these rows of these files, and give what that adds to ours as a transaction."""
        ...

    def discard(self) -> None:
        """Remove what was staged; called only when it is known that no commit names it."""
        ...


@runtime_checkable
class Guarded(Protocol):
    """A handler that looks once more at what its transaction names, at every attempt, between looking and putting.

    Commands that bring old files back, or take missing ones away, have such a handler: what they saw when they staged
    may be another way by now.
    """

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """Why ours may not be put now; None where it may.

        Args:
            winners: all commits since its base, oldest first; the last one is the version before.

        Raises:
            AnabranchError: what it needs is not there any more; nothing is committed.
        """
        ...


class NoRows:
    """The handler of a transaction that neither reads nor touches a row, such as a change of properties."""

    def vector(self, file: FileRow) -> BitMap64:
        """Nothing is known of rows."""
        return BitMap64()

    def could_match(self, files: pa.Table) -> pa.Table:
        """No row is read."""
        return files.slice(0, 0)

    def matches(self, files: pa.Table) -> Marks:
        """No row is read."""
        return {}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Never asked for."""
        raise AssertionError("a transaction without rows has nothing to redo")

    def discard(self) -> None:
        """Nothing was staged."""

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """No row is in the way."""
        return ()

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """There is no condition."""
        return None
