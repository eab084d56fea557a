"""Reads the inserted and deleted rows of each version of a range from its commits.

Knows commit files and vectors; `anabranch._protocol.change_feed` has the rules. Guarantee: every version of the range
is read and has recorded its changes, or the feed is refused; columns whose meaning differs between versions are never
mixed.

PROTOCOL.md, sections "Add CDC File" and "Change Data Files".
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commit_files import read_commit
from anabranch._log.commits import Commit, parse_commit
from anabranch._log.file_locations import allowed_stores
from anabranch._log.file_names import commit_name, commit_version, first_name
from anabranch._log.log import Log
from anabranch._log.positions import LogPosition
from anabranch._log.segment import fill_gaps
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_location, vector_of
from anabranch._log.version_timestamps import Timeline, timeline
from anabranch._protocol.actions import FileRow, Metadata, empty_files
from anabranch._protocol.change_feed import (
    COLUMNS,
    Feed,
    VersionChanges,
    changes_from_cdc,
    changes_nothing,
    derive_changes,
    records_changes,
    unreadable,
)
from anabranch._protocol.in_commit_timestamps import IN_COMMIT
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch._protocol.schema.column_mapping import is_mapped
from anabranch._protocol.schema.types import Struct
from anabranch._storage.contract import Entry
from anabranch.errors import (
    ChangeDataNotRecorded,
    ChangeFilesMissing,
    ChangeSchemaChanged,
    ChangeSchemaDiffers,
    CorruptLog,
    CorruptVector,
    InvalidOption,
    VersionNotFound,
)

_ADD_LINE = re.compile(rb'^[ \t]*\{[ \t]*"add"[ \t]*:.*$', re.MULTILINE)


def changes(log: Log, newest: Snapshot, start: int, end: int) -> Feed:
    """The changes of the versions from ``start`` to ``end``, both included; a later ``end`` is cut to ``newest``. They
    have the columns that delta-spark uses: those of the newest version, or of ``end`` where the table maps columns.

    Raises:
        VersionNotFound: a version does not exist, or its files were cleaned up.
        ChangeDataNotRecorded: the feed was not enabled at one of them.
        ChangeSchemaChanged, ChangeSchemaDiffers: the columns of one of them cannot be read with the others.
        ChangeFilesMissing: the vector of a file is missing.
        InvalidOption: a column of the table has a name that the feed needs.
        CorruptLog, CorruptVector: a commit or a vector is damaged.
    """
    end = min(end, newest.version)
    first = log.snapshot(start)
    check_recorded(log.table, first.metadata, (start, start, end))
    target = _schema_snapshot(log, first, newest, end)
    commits = commits_between(log, start, end, target.partition_keys, newest.version)
    for commit in commits[1:]:
        if commit.head.metadata is not None:
            check_recorded(log.table, commit.head.metadata, (commit.version, start, end))
    _check_columns(log.table, first.metadata, commits, target, end)
    line = timeline(log.store, newest.metadata)
    versions = tuple(changes_of_commit(log, commit, line, target.metadata) for commit in commits)
    return feed_of(newest, target.metadata, versions)


def feed_of(newest: Snapshot, metadata: Metadata, versions: tuple[VersionChanges, ...] = ()) -> Feed:
    """A feed of these changes (none by default) with the columns of this metadata."""
    check_feed_columns(newest.table, metadata.schema)
    allowed, commit = allowed_stores(newest.store), LogPosition.snapshot(newest).mark
    return Feed(newest.table, metadata, versions, newest.version, allowed=allowed, commit=commit)


def check_feed_columns(table: str, columns: Struct) -> None:
    """Raises InvalidOption: the table has a column with a name that its feed needs."""
    for name in COLUMNS:
        if columns.find(name) is not None:
            reason = f"the table at {table} has a column {name} of its own."
            raise InvalidOption(option="readChangeFeed", value=True, reason=reason)


def change_files(commit: Commit) -> list[Mapping[str, Any]]:
    """The bodies of a commit's ``cdc`` actions, which no snapshot has. Raises CorruptLog: one is malformed."""
    lines = commit.raw.lines() if commit.has_change_feed else ()
    try:
        actions = [json.loads(text) for text in lines if b'"cdc"' in text or b"\\u" in text]
        bodies = [action["cdc"] for action in actions if "cdc" in action]
        if not all(isinstance(body["path"], str) for body in bodies):
            raise TypeError("a path is no text")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = f"an action cdc is not as it must be ({error!r})."
        raise CorruptLog(table=commit.table, file=commit.raw.file, reason=reason) from None
    return bodies


# -- which versions ----------------------------------------------------------------------------------------------------


def commits_between(log: Log, start: int, end: int, keys: Collection[str], latest: int) -> list[Commit]:
    """The commits of the versions from ``start`` to ``end``, both included; ``keys`` are those of partition values.

    Raises:
        VersionNotFound: the first one does not exist, or was cleaned up; ``latest`` is the newest, for the error.
        CorruptLog: one of them is missing or damaged.
    """
    listing = log.store.list_from(first_name(start))
    entries = [entry for entry in listing if start <= _version_of(entry) <= end]
    first = next(iter(entries), None)
    if (first is None or _version_of(first) != start) and log.store.head(commit_name(start)) is None:
        earliest = end if first is None else _version_of(first)
        raise VersionNotFound(table=log.table, version=start, earliest=earliest, latest=latest)
    complete = fill_gaps(log.store, entries, start, end)
    return [parse_commit(log.table, read_commit(log.store, entry), keys) for entry in complete]


def with_own_partition_columns(commit: Commit) -> Commit:
    """A commit of any age with the partition keys of its own adds only, since it may be older than the table's present
    partitioning. Its removes lack their partition values if it changes the partitioning.
    """
    if commit.head.metadata is not None:
        return replace(commit, columns=frozenset(commit.head.metadata.partition_keys))
    lines = (line[0] for part in commit.file_lines() for line in _ADD_LINE.finditer(part))
    stated = (frozenset[str](json.loads(line)["add"]["partitionValues"]) for line in lines)
    try:
        if (first := next(stated, commit.columns)) == commit.columns:
            return commit
        return replace(commit, columns=first.union(chain.from_iterable(stated)))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return commit  # the parser refuses its adds


def _version_of(entry: Entry) -> int:
    version = commit_version(entry.name)
    return -1 if version is None else version


def check_recorded(table: str, metadata: Metadata, at: tuple[int, int, int]) -> None:
    """Raises ChangeDataNotRecorded unless the feed is enabled; ``at`` are the version, and both ends of the range."""
    if not records_changes(metadata):
        version, start, end = at
        raise ChangeDataNotRecorded(table=table, version=version, start=start, end=end)


def _schema_snapshot(log: Log, first: Snapshot, newest: Snapshot, end: int) -> Snapshot:
    """The snapshot whose columns the feed has."""
    last = newest if end == newest.version else log.snapshot(end)
    mapped = any(is_mapped(snapshot.metadata.configuration) for snapshot in (first, last, newest))
    return last if mapped else newest


def _check_columns(table: str, first: Metadata, commits: list[Commit], target: Snapshot, end: int) -> None:
    start = commits[0].version
    facts = {"table": table, "start": start, "end": end, "read_version": target.version}
    for commit in commits[1:]:
        if commit.head.metadata is not None and (why := describe_mismatch(commit.head.metadata, target.metadata)):
            raise ChangeSchemaChanged(version=commit.version, reason=why, **facts)
    if why := describe_mismatch(first, target.metadata):
        raise ChangeSchemaDiffers(version=start, reason=why, **facts)


def describe_mismatch(older: Metadata, newer: Metadata) -> str | None:
    """The reason why rows of one version cannot be read whole with the columns of a newer one; None where they can."""
    if older.partition_columns != newer.partition_columns:
        return "the table is partitioned by other columns"
    return unreadable(older.schema, newer.schema)


# -- one version -------------------------------------------------------------------------------------------------------


def changes_of_commit(log: Log, commit: Commit, line: Timeline, metadata: Metadata) -> VersionChanges:
    """The changes of a commit for a feed: its files of change data, else as `changes_from_files`."""
    timestamp = commit_time(commit, line)
    files = change_files(commit)
    if files:
        return changes_from_cdc(commit.version, timestamp, files)
    if changes_nothing(commit.head.info):
        return VersionChanges(commit.version, timestamp)
    return changes_from_files(log, commit, timestamp, metadata)


def changes_from_files(log: Log, commit: Commit, timestamp: int, metadata: Metadata | None) -> VersionChanges:
    """The changes of a commit by its adds, removes and vectors alone; without ``metadata``, removed files may lack
    their partition values. Raises as `changes`.
    """
    version, partitioned = commit.version, metadata is not None and metadata.partition_columns
    removes = _fill_partition_values(log, commit) if partitioned else commit.removes
    return derive_changes(version, timestamp, commit.adds, removes, lambda row: _vector(log, version, row))


def commit_time(commit: Commit, line: Timeline) -> int:
    """The time of a commit, in milliseconds since 1970."""
    position = bisect.bisect_left(line.versions, commit.version)
    stated = commit.head.info.get(IN_COMMIT) if position >= line.first_in_commit_place else None
    return line.timestamp(position) if stated is None else int(stated)


def _fill_partition_values(log: Log, commit: Commit) -> pa.Table:
    """The removes with their partition values, which a remove may lack (``extendedFileMetadata``). Raises CorruptLog:
    the previous version has no such file.
    """
    removes = commit.removes
    stated = pc.and_(pc.fill_null(removes["extendedFileMetadata"], False), pc.is_valid(removes["partitionValues"]))
    if not len(removes) or pc.all(stated).as_py():
        return removes
    live = log.snapshot(commit.version - 1).files if commit.version else empty_files()
    positions = pc.index_in(removes["path"], value_set=live["path"].combine_chunks())
    for row in removes.filter(pc.and_(pc.invert(stated), pc.is_null(positions))).slice(0, 1).to_pylist():
        reason = f"it removes the file {row['path']}, which the version before does not have."
        raise CorruptLog(table=log.table, file=commit.raw.file, reason=reason)
    values = live["partitionValues"].combine_chunks().take(positions.combine_chunks())
    return removes.set_column(removes.column_names.index("partitionValues"), "partitionValues", values)


def _vector(log: Log, version: int, row: FileRow) -> BitMap64:
    """The vector of a file.

    Raises:
        ChangeFilesMissing: it is missing.
        CorruptVector: it is damaged.
    """
    try:
        return vector_of(log.store, row)
    except CorruptVector as error:
        if (missing := _missing_vector_name(log, row)) is not None:
            raise ChangeFilesMissing(table=log.table, version=version, file=missing, reason="is gone") from error
        raise


def _missing_vector_name(log: Log, row: FileRow) -> str | None:
    try:
        descriptor = Descriptor.from_row(row["deletionVector"])
        if descriptor.storage_type == "i":
            return None
        store, name = vector_location(log.store, descriptor)
        return name if store.head(name) is None else None
    except (ValueError, CorruptLog):
        return None
