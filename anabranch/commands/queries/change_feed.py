"""Reading changes: which rows each version of a range inserted and deleted, as far as the table recorded it.

Knows how a range is named, by versions and by timestamps, and delta-spark's rules for its ends.
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
from anabranch._log.timeline import first_since, last_until
from anabranch._protocol.change_feed import Feed
from anabranch._protocol.timestamps import milliseconds
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.field_id_names import is_by_id, layouts_of
from anabranch.commands.file_sizes import hold_sizes
from anabranch.commands.opening import Location, Masked, open_log
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
class ReadChanges(Masked):
    """Read the changes of ``table`` from a version to another, both included: by their numbers, or by timestamps,
    which mean the first version that was committed then or later, and the last one then or earlier.

    Without an end it is the newest version, and so is an ``end`` behind it. ``zone`` is that of timestamps which say
    none; ``beyond``: timestamps behind the newest version are taken, and a start there means no changes.

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
        """What to read; ``context.at`` counts as the newest version.

        Raises:
            NoChangeStart, InvalidChangeRange, ChangeStartAfterLatest: the range is none.
            InvalidOption, InvalidTimestamp: the range cannot be read.
            NotATable, VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no version is meant.
            ChangeDataNotRecorded, ChangeSchemaChanged, ChangeSchemaDiffers, ChangeFilesMissing, CorruptLog,
            CorruptVector: as `anabranch._log.changes.changes`.
            MissingDataFile: a file has another size than the log says.
        """
        log = open_log(self.table, self.storage_options)
        newest = context.snapshot(log)
        start, end = self._start(newest), self._end(newest)
        if start is None or (start > newest.version and self.beyond):
            return feed_of(newest, newest.metadata)
        if start > newest.version:
            raise ChangeStartAfterLatest(table=newest.table, version=start, earliest=0, latest=newest.version)
        if end is None or end >= start:
            found = changes(log, newest, start, newest.version if end is None else end)
            _hold_sizes(log, found)
            return _with_layouts(log, found)
        if self._lies_between_two_versions():
            return feed_of(newest, newest.metadata)
        raise InvalidChangeRange(table=newest.table, start=start, end=end)

    def _start(self, newest: Snapshot) -> int | None:
        """The first version; None where it lies behind the newest."""
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
        """Whether there is a time between the ends, though no version."""
        if self.start_timestamp is None or self.end_timestamp is None:
            return False
        return milliseconds(self.start_timestamp, self.zone) <= milliseconds(self.end_timestamp, self.zone)


def _only_one(option: str, value: Any, other: str, other_value: Any) -> None:
    if value is not None and other_value is not None:
        raise InvalidOption(option=option, value=value, reason=f"{other} says it too; give one of them.")


def _number(option: str, value: int | str) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value)):
        raise InvalidOption(option=option, value=value, reason="it takes a whole number from 0.")
    return int(value)


def _hold_sizes(log: Log, feed: Feed) -> None:
    tables = [table for each in feed.versions for table in (each.whole, each.partly, each.written)]
    named = [table.select(["path", "size"]) for table in tables if len(table)]
    if named:
        hold_sizes(log.store, pa.concat_tables(named), feed.read_at)


def _with_layouts(log: Log, feed: Feed) -> Feed:
    """The feed with what its files call their columns, where those are found by their numbers. Raises
    ChangeFilesMissing: a file is gone.
    """
    if not is_by_id(feed.metadata):
        return feed
    try:
        return replace(feed, layouts=layouts_of(log.store, feed.metadata, feed.paths))
    except MissingDataFile as error:
        file = str(error.facts["file"])
        raise ChangeFilesMissing(table=feed.root, file=file, version=feed.version_of(file), reason="is gone") from None
