"""Detects that the newest commit of a log was lost.

Knows names in the log folder, and the checksum file of a later version. Guarantee: if the newest commit was lost and
its checksum file still exists, the version before does not count as the newest. Costs no request unless a listing shows
such a file without its commit.

A checksum file is put after its commit, and a clean-up removes no newest commit unless a checkpoint has its version. So
one without both is left over: from a lost commit, or from another table that was at this path before, which its own
metadata shows. But a listing is not an atomic view of a folder: files come and go while it is made. So a single look
never decides that a commit was lost.
"""

from __future__ import annotations

from enum import Enum

from anabranch._log.checksum import read_checksum
from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.table_features import writer_features
from anabranch.errors import CorruptLog

_COMMITS_ELSEWHERE = frozenset({"coordinatedCommits-preview", "managed-commit"})
"""Commits of such tables are copied into the log some time after their checksum files."""


class End(Enum):
    """The meaning of a later version's checksum file for the newest version of a listing."""

    RIGHT = "no such file speaks of this table"
    MISSED = "the commit is there, and the listing left it out"
    LOST = "the commit is not there"


def end_of(snapshot: Snapshot, stated: int | None) -> End:
    """Whether the log ends with this snapshot, though a listing has the checksum file of version ``stated``."""
    if stated is None or _COMMITS_ELSEWHERE & writer_features(snapshot.protocol):
        return End.RIGHT
    checksum = read_checksum(snapshot.store, stated)
    if checksum is None or checksum.metadata.id != snapshot.metadata.id:
        return End.RIGHT
    return End.LOST if snapshot.store.head(commit_name(stated)) is None else End.MISSED


def lost_commit_error(table: str, version: int) -> CorruptLog:
    """The error for a lost commit that has a checksum file."""
    reason = (
        f"the file is missing, though {checksum_name(version)} refers to that version. If the commit is meant to be "
        "gone, remove that file too."
    )
    return CorruptLog(table=table, file=commit_name(version), reason=reason)
