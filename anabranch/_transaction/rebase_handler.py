"""The part of a commit that only the command can do, since only it knows rows and the store.

Knows transactions and positions. A command passes in a `RebaseHandler`; where it names older files, a `FileGuard` too;
where it can do without some of its rows, a `RowReleaser`.
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
    """The part of a commit that only the command can do, since only it knows rows and the store."""

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        ...

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold a row which the condition selects, by statistics and partition values."""
        ...

    def matches(self, files: pa.Table) -> Marks:
        """The live rows of these files which the condition selects, found by running it."""
        ...

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Run the command on exactly these rows of these files, and return its changes as a transaction."""
        ...

    def discard(self) -> None:
        """Remove staged files; called only when it is certain that no commit names them."""
        ...

    def finish(self) -> None:
        """Close the staging; called once the commit stands."""
        ...


@runtime_checkable
class RowReleaser(Protocol):
    """A handler that can take rows out of its transaction again, so that the command need not run again as a whole."""

    def let_go(self, ours: Transaction, lost: Marks) -> Transaction | None:
        """Ours without what it did to these rows, which winners have changed; None where that cannot be separated from
        the rest, or nothing would be left.
        """
        ...


@runtime_checkable
class FileGuard(Protocol):
    """A handler that checks the files of its transaction once more at every attempt, between looking and putting.

    Commands that restore old files, or remove missing ones, have such a handler: files may have changed since they were
    staged.
    """

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """The reason why ours may not be put now; None where it may.

        Args:
            winners: all commits since its base, oldest first; the last one is the previous version.

        Raises:
            AnabranchError: a file that it needs is missing; nothing is committed.
        """
        ...


class NoRows:
    """The handler of a transaction that neither reads nor touches a row, such as a change of properties."""

    def vector(self, file: FileRow) -> BitMap64:
        """An empty vector."""
        return BitMap64()

    def could_match(self, files: pa.Table) -> pa.Table:
        """No row is read."""
        return files.slice(0, 0)

    def matches(self, files: pa.Table) -> Marks:
        """No row is read."""
        return {}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Never called."""
        raise AssertionError("a transaction without rows has nothing to redo")

    def discard(self) -> None:
        """Nothing was staged."""

    def finish(self) -> None:
        """Nothing was staged."""

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """No row is part of a conflict."""
        return ()

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """There is no condition."""
        return None
