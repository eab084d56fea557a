"""When each version was committed, and which version was the newest at a timestamp.

Knows the commit files of one table, by one listing, and reads few of them: a binary search over those with in-commit
timestamps, none of the others. Source: PROTOCOL.md, section "In-Commit Timestamps", and delta-spark's rule for
modification times: one that does not grow counts as one millisecond more than the one before. Guarantee: of two
versions the later has the greater timestamp; a timestamp without a version is refused, never rounded.
"""

from __future__ import annotations

import bisect
import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch._log.commit_files import read_commit
from anabranch._log.commits import parse_head
from anabranch._log.file_names import commit_name, commit_version, first_name
from anabranch._log.lazy import lazy
from anabranch._log.log import Log
from anabranch._log.segment import earliest_version
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, optional_number_in
from anabranch._protocol.in_commit_timestamps import IN_COMMIT, Boundary, boundary
from anabranch._storage.contract import Entry, Store
from anabranch.errors import CorruptLog, TimestampAfterLatestCommit, TimestampBeforeEarliestCommit

_HEAD_BYTES = 16 * 1024
_MAY_BE_UNLISTED = 100
"""Number of the newest versions that are looked up by name where a listing does not show them."""


@dataclass(frozen=True)
class Timeline:
    """Commit files by version, and where in-commit timestamps begin (None: nowhere)."""

    store: Store
    versions: Sequence[int]
    entries: Sequence[Entry]
    since: Boundary | None

    def __len__(self) -> int:
        return len(self.versions)

    def starting_at(self, version: int) -> Timeline:
        """The timeline from a version on."""
        first = bisect.bisect_left(self.versions, version)
        return Timeline(self.store, self.versions[first:], self.entries[first:], self.since)

    @property
    def first_in_commit_place(self) -> int:
        """The number of versions, all of them older than the rest, without an in-commit timestamp."""
        return len(self) if self.since is None else bisect.bisect_left(self.versions, self.since.version)

    @lazy
    def file_times_ms(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Modification times of the commit files by the store's clock, made strictly increasing."""
        steps = np.arange(len(self), dtype=np.int64)
        modified = np.fromiter((entry.modified_ms for entry in self.entries), np.int64, len(self))
        return np.maximum.accumulate(modified - steps) + steps if len(self) else modified

    def timestamp(self, place: int) -> int:
        """The commit time of the version at this index, in milliseconds. Raises CorruptLog: it lacks its in-commit
        timestamp.
        """
        name = self.entries[place].name
        if place < self.first_in_commit_place or commit_version(name) is None:
            return int(self.file_times_ms[place])
        stated = read_in_commit_ms(self.store, self.entries[place])
        if stated is None:
            reason = "its commitInfo has no inCommitTimestamp, which the table's properties promise."
            raise CorruptLog(table=self.store.url, file=name, reason=reason)
        return stated

    def at(self, moment_ms: int) -> int:
        """The index of the newest version committed at or before this time; -1 where there is none."""
        older = self.first_in_commit_place
        began = self.since.timestamp if self.since is not None else None
        if older and (older == len(self) or (began is not None and moment_ms < began)):
            return int(np.searchsorted(self.file_times_ms[:older], moment_ms, side="right")) - 1
        later = bisect.bisect_right(range(older, len(self)), moment_ms, key=self.timestamp)
        return -1 if later == 0 and older == 0 else older + later - 1


def timeline(store: Store, metadata: Metadata | None) -> Timeline:
    """The timeline of the commits in the store; the newest ``metadata`` determines from which version on they have
    in-commit timestamps (None: none has).
    """
    entries = {v: entry for entry in store.list_from(first_name(0)) if (v := commit_version(entry.name)) is not None}
    last = max(entries, default=-1)
    for version in range(max(min(entries, default=0), last - _MAY_BE_UNLISTED), last):
        if version not in entries and (missed := store.head(commit_name(version))) is not None:
            entries[version] = missed  # a folder's listing is not atomic
    versions = sorted(entries)
    since = None if metadata is None else boundary(metadata)
    return Timeline(store, versions, [entries[version] for version in versions], since)


def version_at(log: Log, moment_ms: int) -> int:
    """The newest version of a table at a timestamp.

    Raises:
        NotATable: there is no table.
        TimestampBeforeEarliestCommit: it is before the oldest version that can still be read.
        TimestampAfterLatestCommit: it is after the newest version: the next commit could still belong to it.
        CorruptLog: a commit lacks its in-commit timestamp.
    """
    return last_until(log.snapshot(), moment_ms)


def last_until(snapshot: Snapshot, moment_ms: int, *, beyond: bool = False) -> int:
    """As `version_at`, where ``snapshot`` is the newest version; ``beyond`` maps a later timestamp to it."""
    commits = _readable(snapshot)
    position = commits.at(moment_ms)
    if position < 0:
        raise TimestampBeforeEarliestCommit(**_facts(commits, snapshot, moment_ms))
    if not beyond and commits.versions[position] == snapshot.version and commits.timestamp(position) < moment_ms:
        raise TimestampAfterLatestCommit(**_facts(commits, snapshot, moment_ms))
    return commits.versions[position]


def first_since(snapshot: Snapshot, moment_ms: int, *, beyond: bool = False) -> int | None:
    """The oldest version committed at or after a timestamp whose commit exists, where ``snapshot`` is the newest; it
    may be too old to be rebuilt. With ``beyond``, a timestamp after the newest version gives None.

    Raises:
        TimestampAfterLatestCommit: it is after the newest version.
        CorruptLog: as `version_at`.
    """
    commits = _until(timeline(snapshot.store, snapshot.metadata), snapshot)
    position = commits.at(moment_ms - 1) + 1
    if position < len(commits):
        return commits.versions[position]
    if beyond:
        return None
    raise TimestampAfterLatestCommit(**_facts(commits, snapshot, moment_ms))


def _readable(snapshot: Snapshot) -> Timeline:
    """The timeline up to a snapshot, of the versions that can be rebuilt."""
    commits = timeline(snapshot.store, snapshot.metadata)
    return _until(commits.starting_at(earliest_version(snapshot.store)), snapshot)


def _until(commits: Timeline, snapshot: Snapshot) -> Timeline:
    end = bisect.bisect_right(commits.versions, snapshot.version)
    versions, entries = list(commits.versions[:end]), list(commits.entries[:end])
    if snapshot.version not in versions:  # its commit file was cleaned up: the checkpoint replaces it
        versions, entries = [*versions, snapshot.version], [*entries, snapshot.segment.newest]
    return Timeline(commits.store, versions, entries, commits.since)


def _facts(commits: Timeline, snapshot: Snapshot, moment_ms: int) -> dict[str, object]:
    first, last = commits.timestamp(0), commits.timestamp(len(commits) - 1)
    return {
        "table": snapshot.table,
        "timestamp": in_words(moment_ms),
        "timestamp_ms": moment_ms,
        "earliest": in_words(first),
        "earliest_ms": first,
        "earliest_version": commits.versions[0],
        "latest": in_words(last),
        "latest_ms": last,
        "latest_version": snapshot.version,
    }


def in_words(milliseconds: int) -> str:
    """A timestamp for messages; always in UTC, so that messages are comparable."""
    try:
        moment = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")


def read_in_commit_ms(store: Store, entry: Entry) -> int | None:
    """The in-commit timestamp of a commit, from its first line; from the whole file where that is no ``commitInfo``."""
    line, ended, _ = store.read_range(entry.name, 0, min(_HEAD_BYTES, max(entry.size, 1))).partition(b"\n")
    info = _commit_info(line) if ended or entry.size <= _HEAD_BYTES else None
    info = parse_head(store.url, read_commit(store, entry)).info if info is None else info
    stated = info.get(IN_COMMIT)
    return None if stated is None else int(stated)


def _commit_info(line: bytes) -> Mapping[str, Any] | None:
    try:
        info = json.loads(line)["commitInfo"]
        optional_number_in(info, IN_COMMIT)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # parsing the whole file reports the fault, with the file's name
    return info
