"""Positions in a log: a version that was read, and how it is recognised again.

Knows a commit's listing, and not its content. Guarantee: two commits of one version are distinguished wherever the
store distinguishes their files: a log that was restored and has grown again is not the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from anabranch._log.commits import Commit
from anabranch._log.file_names import commit_version
from anabranch._log.snapshot import Snapshot

SOME_VERSION = 1 << 62
"""Above every version: for rows that may or may not be the table's; if they are, they are of its newest version."""


@dataclass(frozen=True)
class LogPosition:
    """A version that was read: its number, size and etag of its commit (None where that did not exist), and the id of
    its table (None where there was no table).
    """

    version: int
    identity: tuple[int, str | None] | None
    table_id: str | None

    @classmethod
    def nothing(cls) -> LogPosition:
        """The position before there is a table."""
        return cls(-1, None, None)

    @classmethod
    def snapshot(cls, snapshot: Snapshot) -> LogPosition:
        """The position of a snapshot."""
        is_commit = commit_version(snapshot.segment.newest.name) is not None
        return cls(snapshot.version, snapshot.identity if is_commit else None, snapshot.metadata.id)

    @classmethod
    def commit(cls, commit: Commit, table_id: str | None) -> LogPosition:
        """The position of a commit to a table."""
        return cls(commit.version, commit.identity, table_id)

    @property
    def mark(self) -> str | None:
        """The commit's `commit_mark`; None where it did not exist."""
        return None if self.identity is None else commit_mark(*self.identity)


@dataclass(frozen=True)
class SourceVersions:
    """The versions of one table that rows were read from.

    Attributes:
        oldest: the oldest of them; `SOME_VERSION` where the rows may be of the table.
        commits: the versions whose commits are known, with their marks.
    """

    oldest: int
    commits: frozenset[tuple[int, str]] = frozenset()


def all_versions(sources: Iterable[SourceVersions | None]) -> SourceVersions | None:
    """The versions behind rows from several sources; None where no source names a version."""
    present = [source for source in sources if source is not None]
    if not present:
        return None
    return SourceVersions(
        min(source.oldest for source in present), frozenset().union(*(source.commits for source in present))
    )


def commit_mark(size: int, etag: str | None) -> str:
    """Sixteen hexadecimal digits that identify a commit file by its size and its etag."""
    return hashlib.sha256(f"{size} {etag}".encode()).hexdigest()[:16]
