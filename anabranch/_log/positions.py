"""Positions in a log: a version that somebody has read, and how it is known again.

Knows what a listing shows of a commit, and not what it says. Guarantee: two commits of one number are told apart
wherever the store tells their files apart: a log that was put back and has grown again is not the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from anabranch._log.commits import Commit
from anabranch._log.file_names import commit_version
from anabranch._log.snapshot import Snapshot

SOME_VERSION = 1 << 62
"""Above every version: rows that may or may not be the table's; if they are, they are of the newest version then."""


@dataclass(frozen=True)
class LogPosition:
    """A version that somebody has read: its number, size and etag of its commit (None where that was not there), and
    the id of its table (None where there was no table).
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
        """The commit's `commit_mark`; None where it was not there."""
        return None if self.identity is None else commit_mark(*self.identity)


@dataclass(frozen=True)
class SourceVersions:
    """The versions of one table that rows were read from.

    Attributes:
        oldest: of them all; `SOME_VERSION` where the rows may be of the table.
        commits: those whose commits are known, with their marks.
    """

    oldest: int
    commits: frozenset[tuple[int, str]] = frozenset()


def all_versions(found: Iterable[SourceVersions | None]) -> SourceVersions | None:
    """What rows were read from that come from several sources; None where none names a version."""
    named = [each for each in found if each is not None]
    if not named:
        return None
    return SourceVersions(min(each.oldest for each in named), frozenset().union(*(each.commits for each in named)))


def commit_mark(size: int, etag: str | None) -> str:
    """Sixteen hexadecimal digits that stand for a commit file, by its size and its etag."""
    return hashlib.sha256(f"{size} {etag}".encode()).hexdigest()[:16]
