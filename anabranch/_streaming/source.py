"""The source of a stream: which rows of a table belong to each of its batches.

Knows the log of one table and the options of a stream; reads no row. Guarantee: the rows between two offsets are the
same on every request; no row is left out or shown twice unless an option allows it; a change of the table's metadata
stops the stream after all rows that were committed before it.

Source: Delta Lake documentation, "Table streaming reads and writes"; PROTOCOL.md, section "Change Data Files".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NoReturn

import pyarrow.compute as pc

from anabranch._log import changes
from anabranch._log.changes import check_recorded, commits_between
from anabranch._log.commits import Commit
from anabranch._log.file_names import commit_name, commit_version, first_name
from anabranch._log.segment import earliest_version
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vectors_of
from anabranch._log.version_timestamps import first_since, timeline
from anabranch._protocol.actions import Metadata
from anabranch._protocol.change_feed import data_changes
from anabranch._protocol.rules.identity import same_but_marks
from anabranch._streaming.marks import Marks
from anabranch._streaming.offsets import Offset, Position, display_text
from anabranch._streaming.pieces import Group, Piece, groups_of_changes, groups_of_inserts, of_snapshot
from anabranch._streaming.reading import LATEST, Limits, StreamRead
from anabranch._streaming.schema_changes import difference, loss, unreadable
from anabranch._streaming.schema_log import SchemaLog, StreamColumns
from anabranch.commands.opening import open_log
from anabranch.errors import (
    AnabranchError,
    ChangeDataNotRecorded,
    CorruptLog,
    InvalidStreamOffset,
    StreamChanges,
    StreamDeletes,
    StreamMetadataChanged,
    StreamSchemaIncompatible,
    StreamStopped,
    StreamTableReplaced,
    StreamVersionsLost,
    VersionNotFound,
)

COMMITS_AT_ONCE = 100
"""Maximum number of commits that are read in one go."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Step:
    """Pieces that are shown together, and the position behind them."""

    pieces: tuple[Piece, ...]
    behind: Position


class Source:
    """Plans the batches of one stream.

    Example:
        >>> source = Source(read)
        >>> end = source.latest(source.initial())
        >>> source.pieces(source.initial(), end)
    """

    def __init__(self, read: StreamRead) -> None:
        self.read, self.metadata = read, read.columns
        self.log = open_log(read.table)
        self._start: Position | None = None
        self._last_version: int | None = None
        self._commits = dict[int, Commit]()
        self._snapshot: tuple[int, list[Piece]] | None = None
        self._new_metadata: StreamColumns | None = None
        self._columns_version = self._last_checked = read.known_at
        self._known_metadata = range(-1), self.metadata
        self._has_columns = read.schemas is None
        self._marks = Marks()
        self._has_change_data = False

    def initial(self) -> Offset:
        """The offset before the first batch."""
        return Offset(self.metadata.id, None)

    def offset(self, state: dict[str, object]) -> Offset:
        """Reads the offset in a checkpoint. Raises InvalidStreamOffset, StreamTableReplaced: it is of other history."""
        offset = Offset.from_json(state, self.log.table, self.metadata.id)
        now = None if offset.position is None or offset.commit is None else self._mark(offset.position)
        if offset.position is not None and now not in (None, offset.commit):
            self._refuse(offset, f"its version {offset.position.read} is another commit; an older table was put back.")
        return offset

    def stop_at_newest(self) -> None:
        """Ignores all later commits: ``Trigger.AvailableNow``."""
        self._last_version = self._newest().version

    def newest(self) -> Offset:
        """The offset behind the newest version."""
        return Offset(self.metadata.id, Position(self._newest().version + 1))

    def latest(self, start: Offset, limits: Limits | None = None) -> Offset:
        """The offset where the next batch ends: as far as the limits allow, by default the newest version.

        Raises:
            StreamStopped, ChangeDataNotRecorded: the next commit cannot be shown.
            StreamVersionsLost: the next version was cleaned up.
            VersionNotFound: the starting version does not exist.
        """
        begins, shows = self._begins(start), start.position is not None
        if self._is_beyond(begins) and start.position is None:
            return start
        self._take_columns(begins)
        end, batch = begins, _Batch(limits or Limits(None, None))
        try:
            for step in self._steps(begins):
                if not batch.admits(step):
                    break
                end, shows = step.behind, shows or bool(step.pieces)
        except (StreamStopped, StreamVersionsLost, ChangeDataNotRecorded) as stop:
            if end == begins or not shows:  # else the commits before it are shown first
                self._note(stop)
                raise
        if end == begins or not shows:  # a stream begins with a batch that has rows
            return start
        return Offset(self.metadata.id, end, begins if start.position is None else None, self._mark(end))

    def behind_newest(self) -> Offset:
        """As `latest` without limits, for callers without a start; `pieces` raises what `latest` would raise."""
        start = self._begins(self.initial())
        if self._is_beyond(start) and self.read.start != LATEST:  # no mark identifies a future start
            return self.initial()
        end = Position(self._newest().version + 1)
        return Offset(self.metadata.id, end, start, self._mark(end))

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """The rows between two offsets. Raises as `latest`, and InvalidStreamOffset: the end is before the start or
        behind the table's newest version.
        """
        if end == start:
            return []  # Spark runs the first batch in any case
        begins = start.position or end.began or self._began_of(end)
        if end.position is None or end.position.rank < begins.rank:
            self._refuse(end, "it is before the start of the batch.")
        self._take_columns(begins, end.position)
        pieces = list[Piece]()
        try:
            for step in self._steps(begins, end.position):
                pieces += step.pieces
        except StreamMetadataChanged as stop:
            if not pieces:
                self._note(stop)
            raise
        return pieces

    def _mark(self, at: Position) -> str | None:
        return self._marks.of(at, self._newest())

    # -- the start -----------------------------------------------------------------------------------------------------

    def _begins(self, start: Offset) -> Position:
        if start.position is not None:
            return start.position
        if self._start is None:
            self._start = self._first()
        return self._start

    def _first(self) -> Position:
        """The position where the stream begins according to its options."""
        newest, read = self._newest(), self.read
        last = newest.version if self._last_version is None else min(self._last_version, newest.version)
        if read.start == LATEST:
            return Position(last + 1)
        if read.start_timestamp is not None:
            since = first_since(newest, read.start_timestamp, beyond=read.beyond)
            return Position(last + 1 if since is None else since)
        if read.start is None:
            return Position(last, in_snapshot=True)
        version = int(read.start)
        if version > newest.version and not read.beyond:
            earliest = earliest_version(self.log.store)
            raise VersionNotFound(table=self.log.table, version=version, earliest=earliest, latest=newest.version)
        return Position(version)

    def _is_beyond(self, at: Position) -> bool:
        """Whether a stream begins at a version that does not exist yet."""
        return self.read.beyond and at.version > self._newest().version

    def _began_of(self, end: Offset) -> Position:
        """The start of the first batch, for an end without it, as delta-spark writes them: the snapshot in which the
        batch ends, else the start in the options, else the snapshot before its end.
        """
        at, read = end.position, self.read
        if at is not None and at.in_snapshot:
            return Position(at.version, in_snapshot=True)
        if read.start_timestamp is not None or isinstance(read.start, int):
            return self._begins(self.initial())
        if at is None or at.version == 0 or read.start == LATEST:
            self._refuse(end, "it does not contain the start of the first batch.")
        return Position(at.version - 1, in_snapshot=True)

    # -- the steps -----------------------------------------------------------------------------------------------------

    def _steps(self, begins: Position, ends: Position | None = None) -> Iterator[Step]:
        """All steps between two positions, else up to the newest version or to the error that stops the stream."""
        newest = self._newest().version
        for at in (begins, ends or begins):
            if at.version > newest + (not at.in_snapshot):
                self._refuse(Offset(self.metadata.id, at), f"the table has versions up to {newest} only.")
        if begins.in_snapshot:
            yield from self._of_snapshot(begins, ends)
            begins = Position(begins.version + 1)
        if ends is None or (not ends.in_snapshot and ends.rank > begins.rank):
            last = newest if self._last_version is None else min(self._last_version, newest)
            yield from self._of_commits(begins, ends, last)

    def _of_snapshot(self, begins: Position, ends: Position | None) -> Iterator[Step]:
        """Yields the files of the version at which the stream began."""
        pieces = self._live(begins.version)
        if pieces is None:
            return
        last = len(pieces) - 1
        until = ends.index if ends is not None and ends.in_snapshot else last
        self._check_index(begins, last)
        self._check_index(replace(begins, index=until), last)
        if self.read.at_once and begins.index < until == last:
            yield Step(tuple(pieces[begins.index + 1 :]), Position(begins.version + 1))
            return
        for index in range(begins.index + 1, until + 1):
            behind = Position(begins.version + 1) if index == last else replace(begins, index=index)
            yield Step((pieces[index],), behind)

    def _live(self, version: int) -> list[Piece] | None:
        """The rows of a version, cached while the stream reads them; None if it was cleaned up and an option allows
        that.

        Raises:
            StreamMetadataChanged, StreamSchemaIncompatible: its columns are not the stream's.
            ChangeDataNotRecorded: the stream reads the change data feed, and none is recorded.
            StreamVersionsLost: it was cleaned up.
        """
        if self._snapshot is None or self._snapshot[0] != version:
            try:
                snapshot = self.log.snapshot(version)
            except VersionNotFound as gone:
                self._leave_out(version, version, gone.facts)
                return None
            self._check_metadata(snapshot.metadata, version)
            self._check_recorded(snapshot.metadata, version)
            moment = snapshot.timestamp if self.read.feed else None
            vectors = vectors_of(self.log.store, snapshot.files)
            pieces = of_snapshot(snapshot.files, vectors, version, moment)
            self._check_loss(pieces, version)
            self._snapshot = (version, pieces)
        return self._snapshot[1]

    def _of_commits(self, begins: Position, ends: Position | None, last: int) -> Iterator[Step]:
        if ends is not None:
            last = min(last, ends.version - (ends.index < 0))
        is_fed = self.read.feed and begins.version <= last
        line = timeline(self.log.store, self._newest().metadata) if is_fed else None
        for commit in self._read(begins.version, last):
            self._check(commit)
            if line is None:
                groups = self._groups_of_adds(commit)
            else:
                fed = changes.changes_of_commit(self.log, commit, line, self.metadata)
                groups = groups_of_changes(fed, commit.in_order)
            for at in (begins, ends):
                if groups and at is not None and at.version == commit.version:
                    self._check_index(at, len(groups) - 1)
            steps = list(_cut(commit.version, groups, begins, ends, whole=self.read.feed))
            self._check_loss(chain.from_iterable(step.pieces for step in steps), commit.version)
            yield from steps

    def _check_index(self, at: Position, last: int) -> None:
        """Raises InvalidStreamOffset if a position is behind the last file of its version."""
        if at.index > last:
            self._refuse(Offset(self.metadata.id, at), f"the last file of version {at.version} is {last}.")

    def _read(self, first: int, last: int) -> Iterator[Commit]:
        """Yields the commits of versions; reads each only once, unless the file was replaced."""
        entries = self.log.store.list_from(first_name(first)) if self._commits and first <= last else []
        identities = {version: (e.size, e.etag) for e in entries if (version := commit_version(e.name)) is not None}
        self._commits = {
            version: commit
            for version, commit in self._commits.items()
            if version >= first and identities.get(version, commit.identity) == commit.identity
        }
        for start in range(first, last + 1, COMMITS_AT_ONCE):
            end = min(start + COMMITS_AT_ONCE - 1, last)
            missing = [version for version in range(start, end + 1) if version not in self._commits]
            if missing:
                for commit in self._find_commits(missing[0], end):
                    self._commits[commit.version] = commit
            yield from (self._commits[version] for version in range(start, end + 1) if version in self._commits)

    def _find_commits(self, first: int, last: int) -> list[Commit]:
        """Reads the existing commits of a range. Raises StreamVersionsLost: one is missing, and no option allows it."""
        keys, newest = self.metadata.partition_keys, self._newest().version
        try:
            commits = commits_between(self.log, first, last, keys, newest) if first <= last else []
            own, before = changes.with_own_partition_columns, self._columns_version
            return [own(commit) if commit.version < before else commit for commit in commits]
        except (VersionNotFound, CorruptLog):
            entries = list(self.log.store.list_from(first_name(first)))
            versions = {version for entry in entries if (version := commit_version(entry.name)) is not None}
            missing = (version for version in range(first, last + 1) if version not in versions)
            lost = next((version for version in missing if self.log.store.head(commit_name(version)) is None), None)
            if lost is None:  # a commit is damaged
                raise
            behind = min((version for version in versions if version > lost), default=newest + 1)
            facts = {"table": self.log.table, "version": lost, "earliest": behind, "latest": newest}
            self._leave_out(lost, min(behind - 1, last), facts)
            return [*self._find_commits(first, lost - 1), *self._find_commits(behind, last)]

    def _leave_out(self, first: int, last: int, facts: Mapping[str, Any]) -> None:
        """Skips versions that were cleaned up. Raises StreamVersionsLost: no option allows it."""
        if not self.read.tolerance.lost_versions:
            raise StreamVersionsLost(**facts) from None
        _logger.warning("a stream of %s leaves out the versions %s to %s", self.log.table, first, last)

    # -- one commit ----------------------------------------------------------------------------------------------------

    def _groups_of_adds(self, commit: Commit) -> list[Group]:
        """The rows that a commit added. Raises StreamDeletes, StreamChanges: it deleted rows; no option allows it."""
        tolerance = self.read.tolerance
        removes, adds = data_changes(commit.removes), data_changes(commit.adds)
        if len(removes) and tolerance.change_commits:
            return []
        writes = len(adds) and not pc.all(pc.is_in(adds["path"], value_set=removes["path"].combine_chunks())).as_py()
        inserts = groups_of_inserts(changes.changes_from_files(self.log, commit, 0, None), commit.in_order)
        # A RESTORE brings rows back.
        if len(removes) and not tolerance.changes and (writes or any(inserts) or not tolerance.deletes):
            kind = StreamChanges if len(adds) else StreamDeletes
            facts = {"version": commit.version, "operation": commit.head.info.get("operation", "unknown")}
            raise kind(table=self.log.table, file=removes["path"][0].as_py(), **facts)
        return inserts

    def _check(self, commit: Commit) -> None:
        """Raises:
        StreamMetadataChanged: the commit changes the metadata, or the stream's columns are older than the commit.
        StreamSchemaIncompatible: its rows cannot be read as the columns of the stream.
        ChangeDataNotRecorded: the stream reads the change data feed, which ends here.
        """
        self._follow(commit)
        if commit.version > self._last_checked + 1:  # the stream begins here, or skipped versions
            self._check_metadata(self._metadata_at(commit.version), commit.version)
        self._last_checked = max(self._last_checked, commit.version)
        if self.read.feed and not self._has_change_data:
            self._check_recorded(self._metadata_at(commit.version), commit.version)
            self._has_change_data = True
        if commit.head.metadata is not None:
            self._check_metadata(commit.head.metadata, commit.version)
            self._check_recorded(commit.head.metadata, commit.version)
        if self.read.feed and commit.columns != set(self.metadata.partition_keys):  # of deleted rows
            reason = "the table was partitioned by other columns"
            raise StreamSchemaIncompatible(table=self.log.table, version=self._columns_version, reason=reason)

    def _follow(self, commit: Commit) -> None:
        """Remembers the metadata at the commit, if the commit contains it or the previous commit's is known."""
        known_versions, metadata = self._known_metadata
        if commit.head.metadata is not None:
            self._known_metadata = range(commit.version, commit.version + 1), commit.head.metadata
        elif commit.version == known_versions.stop:
            self._known_metadata = range(known_versions.start, commit.version + 1), metadata

    def _metadata_at(self, version: int) -> Metadata:
        """The metadata of a version, remembered for the next commits; rebuilt if unknown."""
        if version not in self._known_metadata[0]:
            self._known_metadata = range(version, version + 1), self._rebuild_metadata(version)
        return self._known_metadata[1]

    def _rebuild_metadata(self, version: int) -> Metadata:
        """The metadata of a version; if that version is lost and an option allows it, of the oldest existing one.
        Raises StreamVersionsLost: no option allows it.
        """
        try:
            return self.log.snapshot(version).metadata
        except VersionNotFound as gone:
            if not self.read.tolerance.lost_versions:
                raise StreamVersionsLost(**gone.facts) from None
            return self.log.snapshot(earliest_version(self.log.store)).metadata

    def _check_metadata(self, metadata: Metadata, version: int) -> None:
        """Raises StreamMetadataChanged, StreamSchemaIncompatible unless the metadata has the stream's columns."""
        if same_but_marks(metadata, self.metadata):
            return
        table = self.log.table
        if version > self._columns_version:
            self._new_metadata = StreamColumns(metadata, version)
            raise StreamMetadataChanged(table=table, version=version, changed=difference(self.metadata, metadata))
        if (why := unreadable(metadata.schema, self.metadata.schema)) is not None:
            raise StreamSchemaIncompatible(table=table, version=self._columns_version, reason=why)

    # -- the columns ---------------------------------------------------------------------------------------------------

    def _take_columns(self, begins: Position, ends: Position | None = None) -> None:
        """Takes the columns' version from the schema log. If that is empty, records there the columns of the next
        rows, or of a batch that was planned before.

        Raises:
            StreamMetadataChanged: the log has other columns; the restarted stream uses these.
        """
        if self._has_columns:
            return
        log = SchemaLog(self.read.schemas or "", self.metadata.id)
        if (noted := log.newest()) is None:
            version = min(begins.version if ends is None else ends.read, self._newest().version)
            first = StreamColumns(self._metadata_at(version), version)
            log.note(first)
            noted = log.newest() or first
        if not same_but_marks(noted.metadata, self.metadata):
            changed = difference(self.metadata, noted.metadata)
            raise StreamMetadataChanged(table=self.log.table, version=noted.version, changed=changed)
        self._columns_version = self._last_checked = noted.version
        self._has_columns = True

    def _check_loss(self, pieces: Iterable[Piece], version: int) -> None:
        """Raises StreamSchemaIncompatible if these rows lack columns in the schema log, which are of a later version:
        the batch was planned without that log, or the log is another stream's.
        """
        if self.read.schemas is None or version >= self._columns_version or not any(pieces):
            return
        if (why := loss(self._metadata_at(version), self.metadata)) is not None:
            reason = f"{why}, and schemaTrackingLocation has the columns of version {self._columns_version}"
            raise StreamSchemaIncompatible(table=self.log.table, version=self._columns_version, reason=reason)

    def _note(self, stop: AnabranchError) -> None:
        """Records the metadata that stopped the stream, after all earlier rows were shown, for the restart."""
        if self.read.schemas is not None and self._new_metadata is not None and isinstance(stop, StreamMetadataChanged):
            SchemaLog(self.read.schemas, self.metadata.id).note(self._new_metadata)

    def _check_recorded(self, metadata: Metadata, version: int) -> None:
        if self.read.feed:
            check_recorded(self.log.table, metadata, (version, version, self._newest().version))

    def _newest(self) -> Snapshot:
        """The newest snapshot. Raises StreamTableReplaced: another table is now at this path."""
        newest = self.log.snapshot()
        if newest.metadata.id != self.metadata.id:
            facts = {"version": newest.version, "expected": self.metadata.id, "found": newest.metadata.id}
            raise StreamTableReplaced(table=self.log.table, **facts)
        return newest

    def _refuse(self, offset: Offset, reason: str) -> NoReturn:
        at = offset.position.version if offset.position is not None else 0
        text = display_text(offset.to_json())
        raise InvalidStreamOffset(table=self.log.table, version=at, offset=text, reason=reason)


def _cut(version: int, groups: list[Group], begins: Position, ends: Position | None, *, whole: bool) -> Iterator[Step]:
    """The steps of a commit between two positions: one per action, or one for the whole commit. A commit without rows
    is a step too, so that a stream never waits at a version that will be cleaned up.
    """
    if not groups:
        yield Step((), Position(version + 1))
        return
    end = len(groups) - 1
    first = begins.index + 1 if begins.version == version else 0
    last = end if ends is None or ends.version > version else min(ends.index, end)
    for start, stop in [(first, last)] if whole else [(index, index) for index in range(first, last + 1)]:
        behind = Position(version + 1) if stop == end else Position(version, stop)
        yield Step(tuple(chain.from_iterable(groups[start : stop + 1])), behind)


class _Batch:
    """The size of a batch so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._files, self._size = limits, 0, 0

    def admits(self, step: Step) -> bool:
        """Whether the batch has room for one more step; counts the step if so. There is room while no limit is
        reached; a step of several files must fit entirely, unless it is the first.
        """
        most_files, most_size = self._limits.files, self._limits.size
        is_full = (most_files is not None and self._files >= most_files) or (
            most_size is not None and self._size >= most_size
        )
        files, size = len(step.pieces), sum(piece.size for piece in step.pieces)
        exceeds = (most_files is not None and self._files + files > most_files) or (
            most_size is not None and self._size + size > most_size
        )
        if step.pieces and (is_full or (exceeds and files > 1 and self._files)):
            return False
        self._files += files
        self._size += size
        return True
