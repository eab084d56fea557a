"""The source of a stream: which rows of a table each of its batches has.

Knows the log of one table and what a stream asks of it; reads no row. Guarantee: between two offsets lie the same rows
whenever, and however often, they are asked for; no row is left out or shown twice, unless an option says so; a change
of the table's metadata stops the stream behind all rows that were there before it.

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
from anabranch._log.timeline import first_since, timeline
from anabranch._log.vectors import vectors_of
from anabranch._protocol.actions import Metadata
from anabranch._protocol.change_feed import changing
from anabranch._protocol.rules.identity import same_but_marks
from anabranch._streaming.marks import Marks
from anabranch._streaming.offsets import Offset, Position, display_text
from anabranch._streaming.pieces import Group, Piece, groups_of_changes, groups_of_inserts, of_snapshot
from anabranch._streaming.reading import LATEST, Limits, StreamRead
from anabranch._streaming.schema_changes import difference, loss, unreadable
from anabranch._streaming.schema_log import Known, SchemaLog
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
"""So many commits are read in one go."""
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
        self._began: Position | None = None
        self._until: int | None = None
        self._commits = dict[int, Commit]()
        self._snapshot: tuple[int, list[Piece]] | None = None
        self._met: Known | None = None
        self._known_at = self._followed = read.known_at
        self._kept = range(-1), self.metadata
        self._is_settled = read.schemas is None
        self._marks = Marks()
        self._is_recorded = False

    def initial(self) -> Offset:
        """The offset before the first batch."""
        return Offset(self.metadata.id, None)

    def offset(self, said: dict[str, object]) -> Offset:
        """The offset in a checkpoint. Raises InvalidStreamOffset, StreamTableReplaced: it is none of this table, or of
        another history of it.
        """
        found = Offset.from_json(said, self.log.table, self.metadata.id)
        now = None if found.position is None or found.commit is None else self._mark(found.position)
        if found.position is not None and now not in (None, found.commit):
            self._refuse(found, f"its version {found.position.read} is another commit; an older table was put back.")
        return found

    def stop_at_newest(self) -> None:
        """Show nothing that is committed from now on: ``Trigger.AvailableNow``."""
        self._until = self._newest().version

    def newest(self) -> Offset:
        """The offset behind everything that there is now."""
        return Offset(self.metadata.id, Position(self._newest().version + 1))

    def latest(self, start: Offset, limits: Limits | None = None) -> Offset:
        """The offset to which the next batch goes: as far as the limits let it, by default to the newest version.

        Raises:
            StreamStopped, ChangeDataNotRecorded: what comes next cannot be shown.
            StreamVersionsLost: it was cleaned up.
            VersionNotFound: the stream was to begin at a version that there is not.
        """
        begins, shows = self._begins(start), start.position is not None
        if self._is_beyond(begins) and start.position is None:
            return start
        self._settle(begins)
        end, taken = begins, _Taken(limits or Limits(None, None))
        try:
            for step in self._steps(begins):
                if not taken.admits(step):
                    break
                end, shows = step.behind, shows or bool(step.pieces)
        except (StreamStopped, StreamVersionsLost, ChangeDataNotRecorded) as stop:
            if end == begins or not shows:  # else what comes before it is shown first
                self._note(stop)
                raise
        if end == begins or not shows:  # a stream begins with a batch that has rows
            return start
        return Offset(self.metadata.id, end, begins if start.position is None else None, self._mark(end))

    def behind_newest(self) -> Offset:
        """As `latest` without limits, where Spark does not say where the batch starts, nor whether it is the first;
        `pieces` raises what is raised there.
        """
        began = self._begins(self.initial())
        if self._is_beyond(began) and self.read.start != LATEST:  # the newest of today is no mark of a later start
            return self.initial()
        end = Position(self._newest().version + 1)
        return Offset(self.metadata.id, end, began, self._mark(end))

    def pieces(self, start: Offset, end: Offset) -> list[Piece]:
        """The rows between two offsets. Raises as `latest`, and InvalidStreamOffset: the end lies before the start, or
        behind the table's newest version.
        """
        if end == start:
            return []  # Spark runs the first batch in any case
        begins = start.position or end.began or self._began_of(end)
        if end.position is None or end.position.rank < begins.rank:
            self._refuse(end, "it lies before the one where the batch begins.")
        self._settle(begins, end.position)
        found = list[Piece]()
        try:
            for step in self._steps(begins, end.position):
                found += step.pieces
        except StreamMetadataChanged as stop:
            if not found:
                self._note(stop)
            raise
        return found

    def _mark(self, at: Position) -> str | None:
        return self._marks.of(at, self._newest())

    # -- where it begins -----------------------------------------------------------------------------------------------

    def _begins(self, start: Offset) -> Position:
        if start.position is not None:
            return start.position
        if self._began is None:
            self._began = self._first()
        return self._began

    def _first(self) -> Position:
        """Where the stream begins, as its options say."""
        newest, read = self._newest(), self.read
        last = newest.version if self._until is None else min(self._until, newest.version)
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
        """Whether a stream begins at a version that is yet to come."""
        return self.read.beyond and at.version > self._newest().version

    def _began_of(self, end: Offset) -> Position:
        """Where the first batch began whose end says it not, as delta-spark wrote it: at the snapshot in which it ends,
        else where the options say, else at the snapshot before its end.
        """
        at, read = end.position, self.read
        if at is not None and at.in_snapshot:
            return Position(at.version, in_snapshot=True)
        if read.start_timestamp is not None or isinstance(read.start, int):
            return self._begins(self.initial())
        if at is None or at.version == 0 or read.start == LATEST:
            self._refuse(end, "it does not say where the first batch began.")
        return Position(at.version - 1, in_snapshot=True)

    # -- step by step --------------------------------------------------------------------------------------------------

    def _steps(self, begins: Position, ends: Position | None = None) -> Iterator[Step]:
        """All steps from a position on, up to another one, or else to the newest version or what stops the stream."""
        newest = self._newest().version
        for at in (begins, ends or begins):
            if at.version > newest + (not at.in_snapshot):
                self._refuse(Offset(self.metadata.id, at), f"the table has versions up to {newest} only.")
        if begins.in_snapshot:
            yield from self._of_snapshot(begins, ends)
            begins = Position(begins.version + 1)
        if ends is None or (not ends.in_snapshot and ends.rank > begins.rank):
            yield from self._of_commits(begins, ends, newest if self._until is None else min(self._until, newest))

    def _of_snapshot(self, begins: Position, ends: Position | None) -> Iterator[Step]:
        """The files of the version at which the stream began."""
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
        """The rows of a version, kept while the stream reads them; None where it was cleaned up, and an option lets it.

        Raises:
            StreamMetadataChanged, StreamSchemaIncompatible: it has not the columns of the stream.
            ChangeDataNotRecorded: a feed is read, and none is recorded.
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
            self._check_kept(pieces, version)
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
            self._check_kept(chain.from_iterable(step.pieces for step in steps), commit.version)
            yield from steps

    def _check_index(self, at: Position, last: int) -> None:
        """Raises InvalidStreamOffset: a position is behind the last file of its version, which it would pass over."""
        if at.index > last:
            self._refuse(Offset(self.metadata.id, at), f"the last file of version {at.version} is {last}.")

    def _read(self, first: int, last: int) -> Iterator[Commit]:
        """The commits of versions, each read once, unless another is there by now."""
        there = self.log.store.list_from(first_name(first)) if self._commits and first <= last else []
        others = {version: (e.size, e.etag) for e in there if (version := commit_version(e.name)) is not None}
        self._commits = {
            version: kept
            for version, kept in self._commits.items()
            if version >= first and others.get(version, kept.identity) == kept.identity
        }
        for start in range(first, last + 1, COMMITS_AT_ONCE):
            end = min(start + COMMITS_AT_ONCE - 1, last)
            missing = [version for version in range(start, end + 1) if version not in self._commits]
            if missing:
                for commit in self._find_commits(missing[0], end):
                    self._commits[commit.version] = commit
            yield from (self._commits[version] for version in range(start, end + 1) if version in self._commits)

    def _find_commits(self, first: int, last: int) -> list[Commit]:
        """The commits of versions that are there. Raises StreamVersionsLost: one is not, and no option lets it."""
        keys, newest = self.metadata.partition_keys, self._newest().version
        try:
            found = commits_between(self.log, first, last, keys, newest) if first <= last else []
            own, before = changes.with_own_partition_columns, self._known_at
            return [own(each) if each.version < before else each for each in found]
        except (VersionNotFound, CorruptLog):
            entries = list(self.log.store.list_from(first_name(first)))
            there = {version for entry in entries if (version := commit_version(entry.name)) is not None}
            missing = (version for version in range(first, last + 1) if version not in there)
            lost = next((each for each in missing if self.log.store.head(commit_name(each)) is None), None)
            if lost is None:  # one is damaged
                raise
            behind = min((version for version in there if version > lost), default=newest + 1)
            facts = {"table": self.log.table, "version": lost, "earliest": behind, "latest": newest}
            self._leave_out(lost, min(behind - 1, last), facts)
            return [*self._find_commits(first, lost - 1), *self._find_commits(behind, last)]

    def _leave_out(self, first: int, last: int, facts: Mapping[str, Any]) -> None:
        """Pass over versions that were cleaned up. Raises StreamVersionsLost: no option lets it."""
        if not self.read.tolerance.lost_versions:
            raise StreamVersionsLost(**facts) from None
        _logger.warning("a stream of %s leaves out the versions %s to %s", self.log.table, first, last)

    # -- one commit ----------------------------------------------------------------------------------------------------

    def _groups_of_adds(self, commit: Commit) -> list[Group]:
        """The rows that a commit added. Raises StreamDeletes, StreamChanges: it deleted rows, which no option lets."""
        lets = self.read.tolerance
        removes, adds = changing(commit.removes), changing(commit.adds)
        if len(removes) and lets.change_commits:
            return []
        writes = len(adds) and not pc.all(pc.is_in(adds["path"], value_set=removes["path"].combine_chunks())).as_py()
        found = groups_of_inserts(changes.changes_from_files(self.log, commit, 0, None), commit.in_order)
        # A RESTORE brings rows back.
        if len(removes) and not lets.changes and (writes or any(found) or not lets.deletes):
            kind = StreamChanges if len(adds) else StreamDeletes
            facts = {"version": commit.version, "operation": commit.head.info.get("operation", "unknown")}
            raise kind(table=self.log.table, file=removes["path"][0].as_py(), **facts)
        return found

    def _check(self, commit: Commit) -> None:
        """Raises:
        StreamMetadataChanged: a stream cannot go on behind the commit, or before it, since its columns are too old.
        StreamSchemaIncompatible: its rows cannot be read as the columns of the stream.
        ChangeDataNotRecorded: a feed is read, and from here on none is recorded.
        """
        self._follow(commit)
        if commit.version > self._followed + 1:  # it begins here, or versions before it were left out
            self._check_metadata(self._metadata_at(commit.version), commit.version)
        self._followed = max(self._followed, commit.version)
        if self.read.feed and not self._is_recorded:
            self._check_recorded(self._metadata_at(commit.version), commit.version)
            self._is_recorded = True
        if commit.head.metadata is not None:
            self._check_metadata(commit.head.metadata, commit.version)
            self._check_recorded(commit.head.metadata, commit.version)
        if self.read.feed and commit.columns != set(self.metadata.partition_keys):  # of rows that are gone
            reason = "the table was partitioned by other columns"
            raise StreamSchemaIncompatible(table=self.log.table, version=self._known_at, reason=reason)

    def _follow(self, commit: Commit) -> None:
        """Keep the metadata of the commit, if it says it, or that of the commit before it is kept."""
        versions, metadata = self._kept
        if commit.head.metadata is not None:
            self._kept = range(commit.version, commit.version + 1), commit.head.metadata
        elif commit.version == versions.stop:
            self._kept = range(versions.start, commit.version + 1), metadata

    def _metadata_at(self, version: int) -> Metadata:
        """The metadata of a version, which is kept for the commits behind it; else as `_rebuilt`."""
        if version not in self._kept[0]:
            self._kept = range(version, version + 1), self._rebuilt(version)
        return self._kept[1]

    def _rebuilt(self, version: int) -> Metadata:
        """The metadata of a version; of one that cannot be rebuilt, if an option lets it, that of the oldest that can.
        Raises StreamVersionsLost: no option does.
        """
        try:
            return self.log.snapshot(version).metadata
        except VersionNotFound as gone:
            if not self.read.tolerance.lost_versions:
                raise StreamVersionsLost(**gone.facts) from None
            return self.log.snapshot(earliest_version(self.log.store)).metadata

    def _check_metadata(self, found: Metadata, version: int) -> None:
        """Raises StreamMetadataChanged, StreamSchemaIncompatible unless rows of a version with this metadata have the
        columns of the stream.
        """
        if same_but_marks(found, self.metadata):
            return
        table = self.log.table
        if version > self._known_at:
            self._met = Known(found, version)
            raise StreamMetadataChanged(table=table, version=version, changed=difference(self.metadata, found))
        if (why := unreadable(found.schema, self.metadata.schema)) is not None:
            raise StreamSchemaIncompatible(table=table, version=self._known_at, reason=why)

    # -- with which columns --------------------------------------------------------------------------------------------

    def _settle(self, begins: Position, ends: Position | None = None) -> None:
        """Take the version of the columns from the log of schemas; where it is empty, note there those of the rows that
        come next, or of a batch that was planned before.

        Raises:
            StreamMetadataChanged: the stream has other columns, and goes on with these.
        """
        if self._is_settled:
            return
        log = SchemaLog(self.read.schemas or "", self.metadata.id)
        if (noted := log.newest()) is None:
            version = min(begins.version if ends is None else ends.read, self._newest().version)
            first = Known(self._metadata_at(version), version)
            log.note(first)
            noted = log.newest() or first
        if not same_but_marks(noted.metadata, self.metadata):
            changed = difference(self.metadata, noted.metadata)
            raise StreamMetadataChanged(table=self.log.table, version=noted.version, changed=changed)
        self._known_at = self._followed = noted.version
        self._is_settled = True

    def _check_kept(self, pieces: Iterable[Piece], version: int) -> None:
        """Raises StreamSchemaIncompatible: a log of schemas has columns of after a version, which these rows of it have
        not, as of a batch that was planned without it, or of another stream.
        """
        if self.read.schemas is None or version >= self._known_at or not any(pieces):
            return
        if (why := loss(self._metadata_at(version), self.metadata)) is not None:
            reason = f"{why}, and schemaTrackingLocation has the columns of version {self._known_at}"
            raise StreamSchemaIncompatible(table=self.log.table, version=self._known_at, reason=reason)

    def _note(self, stop: AnabranchError) -> None:
        """Note the metadata that stopped the stream, now that all before it was shown: it goes on with that."""
        if self.read.schemas is not None and self._met is not None and isinstance(stop, StreamMetadataChanged):
            SchemaLog(self.read.schemas, self.metadata.id).note(self._met)

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
    """What a commit adds between two positions: action by action, or as a whole. One that adds nothing is a step too,
    so that a stream never waits at a version that will be cleaned up.
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


class _Taken:
    """How much a batch has so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._files, self._size = limits, 0, 0

    def admits(self, step: Step) -> bool:
        """Whether there is room for one more step, as there is while neither limit is reached; several files together
        have to fit, unless they are the first. It then counts.
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
