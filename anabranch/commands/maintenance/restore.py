"""RESTORE: the table is again what it was at an older version.

Knows two versions of one table, and what of a table never goes back. Guarantees: rows, columns, partitioning,
clustering and properties are those of the old version, in one commit behind all others; no ``add`` is committed whose
data file or vector's file is not there, or may yet be deleted by a VACUUM that runs; what only ever goes on stays at
its farther mark: the protocol, identity values, numbers of columns, row ids.

Source: Delta Lake documentation, "Restore a Delta table to an earlier state".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.metadata_history import metadata_between
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.file_existence import absent
from anabranch.commands.opening import Location, open_log, without_options
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.row_changes import with_counts
from anabranch.commands.sources import whole_table
from anabranch.errors import AppendOnlyTable, ConcurrentWriteException, CorruptLog, InvalidOption, RestoreFilesMissing
from anabranch.log.commits import Commit, parse_head
from anabranch.log.file_names import commit_name
from anabranch.log.log import Log
from anabranch.log.replay import keys
from anabranch.log.snapshot import Snapshot, read_commit
from anabranch.log.timeline import in_words, timeline
from anabranch.log.vectors import vector_of
from anabranch.protocol import iceberg
from anabranch.protocol.actions import DomainMetadata, FileRow, Metadata, Protocol, files_table
from anabranch.protocol.features import row_tracking
from anabranch.protocol.features.table_features import (
    check_writable,
    reader_features,
    upgraded,
    with_features,
    writer_features,
)
from anabranch.protocol.layout import clustering
from anabranch.protocol.layout.file_sets import FileSet, Marks
from anabranch.protocol.properties import PROTECTED_BEFORE
from anabranch.protocol.rules.identity import identities, is_watermark, marks_of, values_kept
from anabranch.protocol.schema.column_mapping import MAX_ID, number_in
from anabranch.transaction.commit import Committed, commit
from anabranch.transaction.conflict_errors import Conflict
from anabranch.transaction.phases import reach
from anabranch.transaction.retry import Runtime
from anabranch.transaction.running_vacuums import DEAD_AFTER_MS, Event, event_of, under_way
from anabranch.transaction.transaction import Changes, CommitInfo, Declarations, Source, Transaction

_NAMED = 100
"""So many missing files are named at most."""
_READERS = 8

METRICS = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}
"""The columns of what RESTORE returns, as delta-spark calls them -> the same in the history."""

RESULT = pa.schema([(name, pa.int64()) for name in METRICS])


@dataclass(frozen=True)
class Restored:
    """What a RESTORE did.

    Attributes:
        version: the one that it went back to. committed: where it stands, None where the table was that already.
        metrics: Delta's, as the history has them. missing: the files that it did without.
    """

    version: int
    committed: Committed | None
    metrics: Mapping[str, int]
    missing: tuple[str, ...] = ()

    @property
    def row(self) -> dict[str, int]:
        """The one row of `RESULT`."""
        return {column: self.metrics[name] for column, name in METRICS.items()}


@dataclass(frozen=True)
class Restore:
    """Make the table again what it was at ``version``, or at ``timestamp``.

    It has read the whole table and puts another in its place: whoever changed rows meanwhile, or the metadata, is in
    its way. At WriteSerializable blind appends are not, unless the metadata goes back too: they stand behind it.

    Attributes:
        ignore_missing: do without the files that are not there, instead of raising. zone: of timestamps which say none.

    Example:
        >>> Restore("/data/flights", version=7).run().metrics["numRestoredFiles"]
    """

    table: Location
    version: int | str | None = None
    timestamp: Any = None
    ignore_missing: bool = False
    zone: str = "UTC"
    storage_options: Mapping[str, str] | None = None

    __repr__ = without_options

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Restored:
        """Run it.

        Raises:
            InvalidOption: no version is named, or the newest, or one of another table that stood here.
            AmbiguousTimeTravel, InvalidTimestamp: it is named twice, or by something that is none.
            VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: there is no such version.
            RestoreFilesMissing: a file of it is not there any more.
            AppendOnlyTable, UnsupportedFeature: the table may not be changed so.
            DeltaConcurrentModificationException: a winner stands in the way, or a VACUUM that runs.
        """
        runtime, log = context.runtime, open_log(self.table, self.storage_options)
        base = context.snapshot(log)
        target = self._target(log, base)
        reach("read")
        plan = planned(base, target)
        plan, missing = self._without_missing(plan)
        handler = RestoreHands(plan, runtime)
        ours = plan.transaction(self._parameters(target.version), runtime)
        reach("staged")
        if plan.is_nothing:
            return Restored(target.version, None, ours.info.metrics, missing)
        committed = commit(ours, log, handler, context.policy(), runtime)
        return Restored(target.version, committed, committed.metrics, missing)

    def _target(self, log: Log, base: Snapshot) -> Snapshot:
        if self.version is None and self.timestamp is None:
            reason = "it takes a version, or a timestamp, to which the table is to go back."
            raise InvalidOption(option="version", value=None, reason=reason)
        _, version = AsOf(self.table, self.version, self.timestamp, self.zone, self.storage_options).pinned()
        target = log.snapshot(version)
        if target.version >= base.version:
            raise InvalidOption(option="version", value=version, reason="that is what the table is now, the newest.")
        if target.metadata.id != base.metadata.id:
            reason = "it is of another table, which was replaced since by the one that stands here now."
            raise InvalidOption(option="version", value=version, reason=reason)
        return target

    def _without_missing(self, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
        found = absent(plan.base.store, plan.adds)
        if not found:
            return plan, ()
        if not self.ignore_missing:
            raise missing_files(plan, [each.missing for each in found])
        gone = {each.path for each in found}
        return plan.without(gone), tuple(sorted(each.missing for each in found))

    def _parameters(self, version: int) -> dict[str, Any]:
        """What was asked for, as delta-spark says it."""
        said = None if self.timestamp is None else str(self.timestamp)
        return {"version": None if self.version is None else version, "timestamp": said}


def missing_files(plan: Plan, names: Sequence[str]) -> RestoreFilesMissing:
    """The error that names them and the version."""
    facts = {"version": plan.target.version, "files": sorted(names)[:_NAMED], "count": len(names)}
    return RestoreFilesMissing(table=plan.base.table, file=min(names), **facts)


# -- what has to be done -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What makes ``base`` look like ``target``.

    Attributes:
        adds: the files of the target that are not live, or have another vector now. removes: the live ones that the
        target does not have so. again: live ones that stay, and are named again since they lack row ids that the table
        is to have. left_out: the paths that it has to do without. metadata, protocol, domains: what the table is to
        say; None, or none, where it says so. row_mark: the highest row id of the target, where it was forgotten since.
    """

    base: Snapshot
    target: Snapshot
    adds: pa.Table
    removes: pa.Table
    again: pa.Table
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    domains: tuple[DomainMetadata, ...] = ()
    row_mark: int = row_tracking.NOTHING
    left_out: frozenset[str] = frozenset()

    @property
    def is_nothing(self) -> bool:
        """Whether the table is like that already."""
        changes_files = len(self.adds) or len(self.removes) or len(self.again)
        return not changes_files and self.metadata is None and self.protocol is None and not self.domains

    def without(self, paths: set[str]) -> Plan:
        """The same without these files among those that come back."""
        return replace(self, adds=_without(self.adds, paths), left_out=self.left_out | paths)

    def transaction(self, parameters: Mapping[str, Any], runtime: Runtime) -> Transaction:
        """All of it as one transaction.

        What a vector of a live file holds is never asked: after a RESTORE it counts for nothing, and whoever touches
        that file meanwhile is a conflict. So a table whose newest vectors are lost can be restored.
        """
        base = self.base
        touched = pa.concat_tables([self.removes, self._counted(self.again)]).to_pylist()
        return Transaction.on(
            base,
            str(runtime.new_id()),
            CommitInfo("RESTORE", parameters, metrics=self._metrics()),
            reads=whole_table(base),
            does=Changes(
                removes=frozenset(self.removes["path"].to_pylist()),
                sources={row["path"]: Source(row, BitMap64()) for row in touched},
                adds=self._counted(self.adds),
                recommits=frozenset(self.again["path"].to_pylist()),
                row_mark=self.row_mark,
            ),
            says=Declarations(metadata=self.metadata, protocol=self.protocol, domains=self.domains),
        )

    def _counted(self, files: pa.Table) -> pa.Table:
        """These files, each with its number of rows where it is to get row ids."""
        protocol, metadata = self.protocol or self.base.protocol, self.metadata or self.base.metadata
        if not row_tracking.assigns(protocol, metadata):
            return files
        chosen = FileSet(self.base.table, metadata.schema, metadata.partition_columns, files, {})
        return with_counts(self.target, chosen).files

    def _metrics(self) -> dict[str, int]:
        kept = self.target.files
        if self.left_out:
            kept = kept.filter(
                pc.invert(pc.is_in(kept["path"], value_set=pa.array(sorted(self.left_out), pa.string())))
            )
        return {
            "tableSizeAfterRestore": _bytes(kept),
            "numOfFilesAfterRestore": len(kept),
            "numRemovedFiles": len(self.removes),
            "numRestoredFiles": len(self.adds),
            "removedFilesSize": _bytes(self.removes),
            "restoredFilesSize": _bytes(self.adds),
        }


def _without(files: pa.Table, paths: Iterable[str]) -> pa.Table:
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=pa.array(list(paths), pa.string()))))


def _bytes(files: pa.Table) -> int:
    return int(pc.sum(files["size"]).as_py() or 0)


def planned(base: Snapshot, target: Snapshot) -> Plan:
    """What has to be done to ``base`` so that it looks like ``target``.

    Raises:
        AppendOnlyTable: files would go, and the table's may not. UnsupportedFeature: it may not be written here.
    """
    check_writable(base.table, base.protocol, base.metadata, changes_rows=False)
    now, then = keys(base.files), keys(target.files)
    removes = base.files.filter(pc.invert(pc.is_in(now, value_set=_set(then))))
    if len(removes) and base.properties.append_only:
        raise AppendOnlyTable(table=base.table, operation="RESTORE")
    adds = _with_known_ids(target.files.filter(pc.invert(pc.is_in(then, value_set=_set(now)))), removes)
    mark = _mark(target)
    forgotten = mark > _mark(base)
    between = metadata_between(base, target) if identities(target.schema) else ()
    metadata = restored_metadata(base.metadata, target.metadata, between)
    after = metadata or base.metadata
    protocol = restored_protocol(base, target, after)
    iceberg.check_partitioning(base.metadata, after)
    check_writable(base.table, protocol or base.protocol, after, changes_rows=False)
    stays = base.files.filter(pc.is_in(now, value_set=_set(then)))
    lacks = pc.is_null(stays["baseRowId"])
    again = stays.filter(lacks) if row_tracking.is_enabled(after) else stays.slice(0, 0)
    if metadata is None and forgotten:
        metadata = base.metadata  # said again as it is: whoever gives ids meanwhile would give some that come back
    row_mark = mark if forgotten else row_tracking.NOTHING
    return Plan(base, target, adds, removes, again, metadata, protocol, _domains(base, target), row_mark)


def _set(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if values.num_chunks else pa.array([], pa.string())


def _with_known_ids(adds: pa.Table, removes: pa.Table) -> pa.Table:
    """The files that come back; one that is live now with row ids keeps them, though it had none then."""
    fields = ("baseRowId", "defaultRowCommitVersion")
    lacking = adds.filter(pc.is_null(adds["baseRowId"]))["path"]
    both = removes.filter(
        pc.and_(pc.is_valid(removes["baseRowId"]), pc.is_in(removes["path"], value_set=_set(lacking)))
    )
    if not len(both):
        return adds
    known = {row["path"]: {name: row[name] for name in fields} for row in both.to_pylist()}
    return files_table([{**row, **known.get(row["path"], {})} for row in adds.to_pylist()])


def _mark(snapshot: Snapshot) -> int:
    """The highest row id that was given by then; of a table without, that nothing was."""
    domain = snapshot.state.domains.get(row_tracking.DOMAIN)
    try:
        return row_tracking.NOTHING if domain is None else row_tracking.mark_of(domain)
    except (ValueError, RecursionError) as error:
        reason = f"the domain {row_tracking.DOMAIN} is not as it must be ({error})."
        raise CorruptLog(table=snapshot.table, file=commit_name(snapshot.version), reason=reason) from None


# -- what the table says -----------------------------------------------------------------------------------------------


def restored_metadata(base: Metadata, target: Metadata, between: Iterable[Metadata] = ()) -> Metadata | None:
    """The metadata of an older version as it may stand again; None where the table says the same already.

    ``between`` are those that the table had in the meantime, of which only identity values matter.

    What identifies things goes on: identity values that were reserved, numbers that columns were given, the names of
    the columns that hold row ids, the version up to which history is guarded.
    """
    names = (row_tracking.ROW_ID_COLUMN, row_tracking.COMMIT_VERSION_COLUMN)
    kept = {key: base.configuration[key] for key in names if key in base.configuration}
    configuration = {**kept, **target.configuration}
    for key in (MAX_ID, PROTECTED_BEFORE):
        known = [number_in(each.configuration, key) for each in (base, target) if key in each.configuration]
        if known:
            configuration[key] = str(max(known))
    found = replace(target, configuration=configuration)
    for each in (*between, base):
        found = values_kept(each, found)
    only_marks = is_watermark(base, found) and marks_of(base.schema) == marks_of(found.schema)
    return None if found == base or only_marks else found


def restored_protocol(base: Snapshot, target: Snapshot, metadata: Metadata) -> Protocol | None:
    """What the table has to ask for: all that it asks for now, and what the old files and metadata need; None where it
    does.

    Raises:
        UnsupportedFeature: the old version needs what is not written here.
    """
    check_writable(target.table, target.protocol, target.metadata, changes_rows=False)
    needed = reader_features(target.protocol) | writer_features(target.protocol)
    merged = with_features(base.protocol, needed)
    merged = upgraded(merged, metadata) or merged
    return None if merged == base.protocol else merged


def _domains(base: Snapshot, target: Snapshot) -> tuple[DomainMetadata, ...]:
    """The clustering of the old version; other writers' domains are left as they are."""
    now, then = (each.state.domains.get(clustering.DOMAIN) for each in (base, target))
    if then is not None:
        return () if clustering.same_clustering(then, now) else (then,)
    return () if now is None else (replace(now, removed=True),)


# -- before the put ----------------------------------------------------------------------------------------------------


class RestoreHands:
    """The hands of one RESTORE (`RebaseHandler`, and `Guarded`): every row matters to it."""

    def __init__(self, plan: Plan, runtime: Runtime) -> None:
        self._plan, self._runtime = plan, runtime
        self._known_vacuums: tuple[Event, ...] | None = None

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """Hold that what comes back is there, and stays.

        That a file is there now is not enough: a VACUUM that has said its START before this RESTORE stands, and knows
        nothing of it, may delete the file a moment later. One whose START comes behind this commit sees the file live.
        So, of all that is committed up to the version before: a VACUUM that has a START and no END, and whose retention
        does not spare what comes back, is a conflict, to be tried again when it has ended; and the files are looked at
        *after* that, so that what VACUUMs that have ended deleted is noticed. This holds as long as a VACUUM says its
        END only when nothing that it does can delete a file any more.
        """
        conflict = self._vacuum_under_way(winners) or self._clustering_changed(winners)
        if conflict is None:
            self.check_files()
        return conflict

    def check_files(self) -> None:
        """Hold that each file that comes back, and the file of its vector, is there.

        Raises:
            RestoreFilesMissing: one is not; nothing is committed.
        """
        found = absent(self._plan.base.store, self._plan.adds)
        if found:
            raise missing_files(self._plan, [each.missing for each in found])

    def _vacuum_under_way(self, winners: Sequence[Commit]) -> Conflict | None:
        if not len(self._plan.adds):
            return None
        if self._known_vacuums is None:
            self._known_vacuums = tuple(vacuums_until(self._plan.base))
        said = (event_of(each.version, each.timestamp, each.head.info) for each in winners)
        events = [*self._known_vacuums, *(each for each in said if each is not None)]
        for vacuum in under_way(events, self._runtime.now_ms()):
            file = next((row for row, removed in self._removed() if vacuum.may_delete(removed)), None)
            if file is not None:
                return self._conflict(vacuum, file, winners)
        return None

    def _conflict(self, vacuum: Event, file: FileRow, winners: Sequence[Commit]) -> Conflict:
        winner = next((each for each in winners if each.version == vacuum.version), None)
        winner = winner or Log(self._plan.base.store).read(vacuum.version)
        moment = in_words(vacuum.timestamp)
        said = f"a VACUUM that began at {moment} has not said its end, and may delete a file that would come back"
        return Conflict(ConcurrentWriteException, "VACUUM_UNDER_WAY", said, winner, file)

    def _removed(self) -> Iterator[tuple[FileRow, int | None]]:
        """The files that come back, each with the moment at which it was removed, where the log still says it."""
        tombstones = self._plan.base.tombstones
        moments = dict(zip(keys(tombstones).to_pylist(), tombstones["deletionTimestamp"].to_pylist(), strict=True))
        names = keys(self._plan.adds).to_pylist()
        for name, row in zip(names, self._plan.adds.to_pylist(), strict=True):
            yield row, moments.get(name)

    def _clustering_changed(self, winners: Sequence[Commit]) -> Conflict | None:
        """How the table is clustered goes back as well, so nobody may change it meanwhile."""
        for winner in winners:
            if any(each.domain == clustering.DOMAIN for each in winner.head.domains):
                said = f"both wrote the domain {clustering.DOMAIN}"
                return Conflict(ConcurrentWriteException, "METADATA_CHANGE", said, winner)
        return None

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._plan.base.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """Every file matters."""
        return files

    def matches(self, files: pa.Table) -> Marks:
        """Never asked for: it is judged by files."""
        raise AssertionError("a RESTORE does not look at rows")

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Never asked for."""
        raise AssertionError("a RESTORE is not redone on rows")

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """Files go and come whole; none of their rows says more."""
        return ()

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """There is no condition."""
        return None

    def discard(self) -> None:
        """Nothing was staged: what it names was there before."""


def vacuums_until(snapshot: Snapshot) -> Iterator[Event]:
    """What the commits up to a snapshot say of VACUUMs, as far back as one may still run, oldest first."""
    line = timeline(snapshot.store, snapshot.metadata)
    oldest = snapshot.timestamp - DEAD_AFTER_MS
    recent = [
        entry
        for version, entry in zip(line.versions, line.entries, strict=True)
        if version <= snapshot.version and entry.modified_ms >= oldest
    ]

    def said(entry: Any) -> Event | None:
        raw = read_commit(snapshot.store, entry)
        return event_of(raw.version, raw.timestamp, parse_head(snapshot.table, raw).info)

    with ThreadPoolExecutor(_READERS) as pool:
        yield from (event for event in pool.map(said, recent) if event is not None)
