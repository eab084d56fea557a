"""Reads changes: the rows that each version of a range inserted and deleted, as far as the table recorded them.

Knows how a range is specified, by versions or by timestamps, and delta-spark's rules for its ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from anabranch._log.changes import changes, feed_of
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.version_timestamps import first_since, last_until
from anabranch._protocol.change_feed import Feed
from anabranch._protocol.timestamps import milliseconds
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.field_id_names import is_by_id, layouts_of
from anabranch.commands.file_sizes import check_sizes
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.queries.read import note_whole_table
from anabranch.errors import (
    ChangeFilesMissing,
    ChangeStartAfterLatest,
    InvalidChangeRange,
    InvalidOption,
    MissingDataFile,
    NoChangeStart,
)

START, START_TIME = "startingVersion", "startingTimestamp"
END, END_TIME = "endingVersion", "endingTimestamp"


@dataclass(frozen=True)
class ReadChanges(SecretFree):
    """Read the changes of ``table`` from one version to another, both included. Ends are version numbers or timestamps:
    a start is the first version committed at that time or later, an end the last one at that time or earlier.

    The default end is the newest version, which also replaces a later ``end``. ``zone`` applies to timestamps without
    one. ``beyond`` accepts timestamps after the newest version; a start there yields no changes.

    Example:
        >>> ReadChanges("/data/flights", start=3).run()
    """

    table: Location
    start: int | str | None = None
    end: int | str | None = None
    start_timestamp: Any = None
    end_timestamp: Any = None
    zone: str = "UTC"
    beyond: bool = False
    storage_options: Mapping[str, str] | None = None

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Feed:
        """The files to read; ``context.at`` counts as the newest version.

        Raises:
            NoChangeStart, InvalidChangeRange, ChangeStartAfterLatest: the range is invalid.
            InvalidOption, InvalidTimestamp: an end cannot be parsed.
            NotATable, VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version matches.
            ChangeDataNotRecorded, ChangeSchemaChanged, ChangeSchemaDiffers, ChangeFilesMissing, CorruptLog,
            CorruptVector: as `anabranch._log.changes.changes`.
            MissingDataFile: the size of a file differs from the log's.
        """
        log = open_log(self.table, self.storage_options)
        newest = context.snapshot(log)
        note_whole_table(newest)
        start, end = self._start(newest), self._end(newest)
        if start is None or (start > newest.version and self.beyond):
            return feed_of(newest, newest.metadata)
        if start > newest.version:
            raise ChangeStartAfterLatest(table=newest.table, version=start, earliest=0, latest=newest.version)
        if end is None or end >= start:
            feed = changes(log, newest, start, newest.version if end is None else end)
            _check_sizes(log, feed)
            return _with_file_layouts(log, feed)
        if self._lies_between_two_versions():
            return feed_of(newest, newest.metadata)
        raise InvalidChangeRange(table=newest.table, start=start, end=end)

    def _start(self, newest: Snapshot) -> int | None:
        """The first version; None if it lies after the newest."""
        _only_one(START, self.start, START_TIME, self.start_timestamp)
        if self.start is not None:
            return _number(START, self.start)
        if self.start_timestamp is None:
            raise NoChangeStart(table=newest.table)
        return first_since(newest, milliseconds(self.start_timestamp, self.zone), beyond=self.beyond)

    def _end(self, newest: Snapshot) -> int | None:
        _only_one(END, self.end, END_TIME, self.end_timestamp)
        if self.end is not None:
            return _number(END, self.end)
        if self.end_timestamp is None:
            return None
        return last_until(newest, milliseconds(self.end_timestamp, self.zone), beyond=self.beyond)

    def _lies_between_two_versions(self) -> bool:
        """Whether the ends enclose a time span that holds no version."""
        if self.start_timestamp is None or self.end_timestamp is None:
            return False
        return milliseconds(self.start_timestamp, self.zone) <= milliseconds(self.end_timestamp, self.zone)


def _only_one(option: str, value: Any, other: str, other_value: Any) -> None:
    if value is not None and other_value is not None:
        raise InvalidOption(option=option, value=value, reason=f"{other} specifies it too; give one of them.")


def _number(option: str, value: int | str) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value)):
        raise InvalidOption(option=option, value=value, reason="it takes a whole number from 0.")
    return int(value)


def _check_sizes(log: Log, feed: Feed) -> None:
    tables = [table for version in feed.versions for table in (version.whole, version.partly, version.written)]
    non_empty = [table.select(["path", "size"]) for table in tables if len(table)]
    if non_empty:
        check_sizes(log.store, pa.concat_tables(non_empty), feed.read_at)


def _with_file_layouts(log: Log, feed: Feed) -> Feed:
    """The feed with the column names of its files, if columns are matched by field id. Raises ChangeFilesMissing: a
    file does not exist.
    """
    if not is_by_id(feed.metadata):
        return feed
    try:
        return replace(feed, layouts=layouts_of(log.store, feed.metadata, feed.paths))
    except MissingDataFile as error:
        file = str(error.facts["file"])
        raise ChangeFilesMissing(table=feed.root, file=file, version=feed.version_of(file), reason="is gone") from None
