"""CLONE makes a table at another place from one version of a table, or from a folder of Parquet files.

Knows two tables: the source at a pinned version, which is only read (Parquet files as the table that
`anabranch.commands.maintenance.convert` would make of them), and the target, which gets one commit. A shallow clone
references the source's files, a deep one copies them; a clone onto an earlier one handles only what has changed since.
Guarantees: nothing of the target is visible before its commit; a clone that dies leaves only unreferenced files; if a
file of the source is gone, nothing is committed; no byte of the source is ever written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import descriptor_of, vector_of
from anabranch._protocol.actions import DomainMetadata, FileRow, Metadata, Protocol, compact_json, files_table
from anabranch._protocol.cloning import Copy, plan_deep, plan_shallow
from anabranch._protocol.features import row_tracking
from anabranch._protocol.features.requested_by_properties import read_protocol_request, without_requests
from anabranch._protocol.features.row_tracking import DOMAIN as ROW_IDS
from anabranch._protocol.features.table_features import (
    check_writable,
    upgrade_for_metadata,
    with_features,
    writer_features,
)
from anabranch._protocol.iceberg import check_partitioning, flags
from anabranch._protocol.in_commit_timestamps import KEPT_BY_WRITERS
from anabranch._protocol.inactive_properties import PROTECTED_BEFORE
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.layout.paths import is_absolute, lies_in
from anabranch._protocol.properties import canonical_properties, check_properties, check_retention
from anabranch._protocol.rules.identity import keep_assigned_values
from anabranch._protocol.schema.column_mapping import highest_number, is_mapped, mode_of
from anabranch._protocol.schema.leaves import check_stats_columns
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, Source, Transaction
from anabranch.commands.clustering import check_changeable
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import refuse_constraints
from anabranch.commands.ddl.row_tracking import without_ids
from anabranch.commands.dml.replaced_rows import EveryRow
from anabranch.commands.engine import Engine
from anabranch.commands.maintenance.convert import Convert
from anabranch.commands.maintenance.file_copies import check_files_exist, copy_files
from anabranch.commands.maintenance.returning_files import ReturningFiles
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.row_changes import with_row_counts
from anabranch.commands.sources import whole_table
from anabranch.commands.staging import Staging
from anabranch.commands.watching import watch
from anabranch.errors import CloneRefused, CorruptLog, InvalidProperty, TableAlreadyExists

_ALIAS = re.compile(r"^(s3a|s3n|abfs)://", re.IGNORECASE)
_OF_THE_SOURCE = (*KEPT_BY_WRITERS, PROTECTED_BEFORE)
"""Properties that concern a table's own versions, and mean nothing in another table."""


@dataclass(frozen=True)
class Clone(SecretFree):
    """Make a table at ``target`` that equals ``source`` at one version.

    Attributes:
        shallow: reference the source's files instead of copying them.
        version, timestamp: the version of the source; the newest if both are None.
        zone: the zone of timestamps without one.
        replace: replace an existing table at the target.
        properties: properties of the clone, which override the source's.
        parquet: the partition columns of the source's folders ``name=value``; the source is a folder of Parquet files,
            not a table.
        storage_options: of the source, and of the target unless it has ``target_options``.

    Example:
        >>> Clone("/data/flights", "/data/copy").run().metrics["numCopiedFiles"]
        14
    """

    source: Location
    target: Location
    shallow: bool = False
    version: int | str | None = None
    timestamp: Any = None
    zone: str = "UTC"
    replace: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] | None = None
    target_options: Mapping[str, str] | None = None
    parquet: Struct | None = None

    @watch("CLONE", "target")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult:
        """Run it.

        Raises:
            TableAlreadyExists: there is a table at the target, and ``replace`` is not set.
            CloneRefused: one table lies in the other's folder, the target cannot become such a table, or a file to
            copy is not a Parquet file.
            FileOutsideTable: a file of the source lies on a store that is neither its own nor allowed; or a shallow
            clone would have to reference files on another store than the target's.
            MissingDataFile, CorruptVector: a file of the source is gone; nothing was committed.
            NotATable, VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: there is no such
            source.
            EmptyDirectory, UnreadableFooter, ConversionRefused and others: the folder of Parquet files cannot be a
            source; see `Convert`.
            InvalidProperty, UnsupportedFeature, AppendOnlyTable: the target does not allow the change.
            ProtocolChangedException: another writer created or replaced the target meanwhile.
            DeltaConcurrentModificationException: another transaction wrote rows that the clone replaces.
        """
        location, source = self._resolve_source(context.runtime)
        log = open_log(self.target, self.target_options or self.storage_options)
        _check_apart(source.table, log.table)
        base = context.snapshot_if_any(log)
        if base is not None and not self.replace:
            raise TableAlreadyExists(table=log.table)
        work = _Cloning(self, source, _with_user_scheme(location, source.table), log, base, context.runtime)
        reach("read")
        handler = CloneHandler(base, work.staging) if base is not None else CreationHandler(work.staging)
        try:
            ours = work.stage_transaction()
            if base is not None and self.shallow:
                handler = ShallowCloneHandler(base, work.staging, ours, context.runtime)
            reach("staged")
            work.check_source(ours)
        except BaseException:  # an interrupt too: no commit references the copies
            handler.discard()
            raise
        return commit(ours, log, handler, context.policy(), context.runtime)

    def _resolve_source(self, runtime: Runtime) -> tuple[Location, Snapshot]:
        """The source's location and snapshot: of the requested version, or of the table that the Parquet files make."""
        if self.parquet is not None:
            return self.source, Convert(self.source, self.parquet, storage_options=self.storage_options).as_table(
                runtime
            )
        location, version = AsOf(
            self.source, self.version, self.timestamp, self.zone, self.storage_options
        ).resolve_version()
        return location, open_log(location, self.storage_options).snapshot(version)


class CreationHandler(NoRows):
    """The handler of a clone that creates the target."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def discard(self) -> None:
        """Remove what was copied."""
        self._staging.discard()

    def finish(self) -> None:
        """Close the job folder's markers."""
        self._staging.finish()


class CloneHandler(EveryRow):
    """The handler of a clone that replaces a table: it has read all of that table."""

    def __init__(self, snapshot: Snapshot, staging: Staging) -> None:
        super().__init__(snapshot)
        self._staging = staging

    def discard(self) -> None:
        """Remove what was copied."""
        self._staging.discard()

    def finish(self) -> None:
        """Close the job folder's markers."""
        self._staging.finish()


class ShallowCloneHandler(CloneHandler):
    """The handler of a shallow clone that replaces a table (`FileGuard`), whose files may have been the table's."""

    def __init__(self, snapshot: Snapshot, staging: Staging, ours: Transaction, runtime: Runtime) -> None:
        super().__init__(snapshot, staging)
        live = frozenset(snapshot.files["path"].to_pylist())
        paths = ours.changes.adds["path"].to_pylist()
        back = pa.array([path not in live and not is_absolute(path) for path in paths], pa.bool_())
        self._returning = ReturningFiles(snapshot, ours.changes.adds.filter(back), runtime)

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """The conflict with a running VACUUM that may delete a file which comes back."""
        return self._returning.conflict(winners)


class _Cloning:
    """One running clone: the metadata of the target, and its files."""

    def __init__(
        self, plan: Clone, source: Snapshot, root: str, log: Log, base: Snapshot | None, runtime: Runtime
    ) -> None:
        self._plan, self._source, self._root, self._base, self._runtime = plan, source, root, base, runtime
        self._table = log.table
        self.staging = Staging(log.store, str(runtime.new_id()))

    def stage_transaction(self) -> Transaction:
        """The transaction; every file that it references is in place."""
        metadata, base = self._metadata(), self._base
        protocol = self._protocol(metadata)
        check_writable(self._table, protocol, metadata)
        adds, removes = self._files()
        if base is not None and (removes or base.properties.append_only):
            check_changeable(base, "clone", changes_rows=True)
        removed = {row["path"]: row for row in self._present() if row["path"] in removes}
        sources = {path: Source(row, vector_of(self.staging.store, row)) for path, row in removed.items()}
        recommitted = self._files_without_row_ids(removes, metadata)
        ours = Transaction.on(
            base,
            self.staging.txn_id,
            CommitInfo("CLONE", self._parameters()),
            table=self._table,
            reads=None if base is None else whole_table(base),
            changes=Changes(
                removes=removes,
                sources={**sources, **recommitted},
                adds=self._with_source_row_ids(adds, protocol, metadata),
                recommits=frozenset(recommitted),
                row_mark=_mark(self._source),
            ),
            declarations=Declarations(
                metadata=metadata,
                protocol=protocol if base is None or protocol != base.protocol else None,
                domains=self._domains(),
                app_transactions=self._app_transactions(),
            ),
        )
        return ours.with_metrics(**self._metrics(removed))

    def check_source(self, ours: Transaction) -> None:
        """Raises MissingDataFile unless the files that a shallow clone would name are there."""
        if self._plan.shallow:
            check_files_exist(self._source, self.staging.store, ours.changes.adds.to_pylist())

    # -- metadata ------------------------------------------------------------------------------------------------------

    def _metadata(self) -> Metadata:
        """The source's metadata, without its name, with the requested properties."""
        requested, description = canonical_properties(self._plan.properties, None)
        properties, source, base = without_requests(requested), self._source.metadata, self._base
        refuse_constraints(properties)
        check_properties(properties)
        check_stats_columns(source.schema, source.partition_columns, properties)
        inherited = {key: value for key, value in source.configuration.items() if key not in _OF_THE_SOURCE}
        configuration = {**inherited, **properties}
        check_retention(configuration, properties)
        _check_files_fit(source.configuration, configuration)
        metadata = replace(
            source,
            id=str(self._runtime.new_id()),
            name=None,
            description=description,
            configuration=configuration,
            created_time=self._runtime.now_ms(),
        )
        metadata = metadata if base is None else self._in_place_of(base.metadata, metadata)
        return row_tracking.with_columns(metadata, self._runtime.new_id)

    def _in_place_of(self, old: Metadata, new: Metadata) -> Metadata:
        """The clone's metadata as a change of the target's: its identity stays, and no column number is reused."""
        if mode_of(old.configuration) != mode_of(new.configuration):
            reason = (
                f"its column mapping mode is {mode_of(new.configuration)}, the target's {mode_of(old.configuration)}."
            )
            raise CloneRefused(source=self._source.table, table=self._table, reason=reason)
        check_partitioning(old, new)
        guard = {key: value for key, value in old.configuration.items() if key in _OF_THE_SOURCE}
        numbers = [metadata for metadata in (old, new) if is_mapped(metadata.configuration)]
        highest = max((highest_number(metadata.configuration) for metadata in numbers), key=_highest_number, default={})
        configuration = {**new.configuration, **guard, **highest}
        merged = replace(new, id=old.id, name=old.name, description=old.description, configuration=configuration)
        return keep_assigned_values(old, merged)

    def _protocol(self, metadata: Metadata) -> Protocol:
        """The source's protocol, with the features of the target that it replaces and those that properties request."""
        protocol = self._source.protocol
        if self._base is not None:
            protocol = with_features(self._base.protocol, writer_features(protocol))
        requested = read_protocol_request(self._table, canonical_properties(self._plan.properties, None)[0]).on_top_of(
            protocol
        )
        return upgrade_for_metadata(requested, metadata) or requested

    def _domains(self) -> tuple[DomainMetadata, ...]:
        """The source's domains except the mark of row ids; domains that only the target has are removed."""
        source_domains = {name: domain for name, domain in self._source.state.domains.items() if name != ROW_IDS}
        present = dict(self._base.state.domains) if self._base is not None else {}
        removed = [
            replace(domain, removed=True) for name, domain in present.items() if name not in {*source_domains, ROW_IDS}
        ]
        new = [domain for name, domain in source_domains.items() if present.get(name) != domain]
        return (*new, *removed)

    def _app_transactions(self) -> tuple[Any, ...]:
        """The application transactions, for a deep clone: a stream may go on where it left the source."""
        present = self._base.state.app_transactions if self._base is not None else {}
        apps = {} if self._plan.shallow else self._source.state.app_transactions
        return tuple(app for name, app in apps.items() if present.get(name) != app)

    def _parameters(self) -> dict[str, str]:
        is_table = self._plan.parquet is None
        return {
            "source": f"{'delta' if is_table else 'parquet'}.`{self._root}`",
            **({"sourceVersion": str(self._source.version)} if is_table else {}),
            "isShallow": str(self._plan.shallow).lower(),
            "properties": compact_json(dict(self._plan.properties)),
        }

    # -- files ---------------------------------------------------------------------------------------------------------

    def _files(self) -> tuple[list[FileRow], frozenset[str]]:
        """The files to add, which are in place, and the paths to remove."""
        try:
            if self._plan.shallow:
                split = plan_shallow(self._rows(), self._root, self._table, self._present())
                self._copied: list[Copy] = []
                self._refuse_other(split.other)
                return split.adds, split.removes
            needed = plan_deep(self._rows(), self._root, self._present())
        except ValueError as error:
            raise CorruptLog(table=self._source.table, file="_delta_log", reason=f"{error}.") from None
        self._copied = [copy for copy in needed.copies if copy.had is None]
        if needed.copies:
            self.staging.start()
        return copy_files(self._source, needed.copies, self.staging, self._runtime.new_id), needed.removes

    def _refuse_other(self, paths: frozenset[str]) -> None:
        """Raises CloneRefused if the source has other numbers now for files that stay: no commit may remove and add one
        file with the same vector.
        """
        if paths:
            reason = f"it names {min(paths)} already, of which the source now says another size, time or first row id."
            raise CloneRefused(source=self._source.table, table=self._table, reason=f"{reason} Take another path.")

    def _rows(self) -> list[FileRow]:
        """The source's files. Raises CorruptVector, UnsupportedVector: it is not known where a vector is."""
        rows: list[FileRow] = self._source.files.to_pylist()
        for row in rows:
            if row["deletionVector"] is not None:
                descriptor_of(self._source.table, row)
        if row_tracking.tracking_columns(self._source.protocol, self._source.metadata) is not None:
            return rows
        return [{**row, "baseRowId": None} for row in rows]  # some may lack theirs: the clone assigns all of them

    def _present(self) -> list[FileRow]:
        return [] if self._base is None else self._base.files.to_pylist()

    def _with_source_row_ids(self, adds: list[FileRow], protocol: Protocol, metadata: Metadata) -> pa.Table:
        """The files with their row ids of the source; the others get theirs from the commit. Raises CloneRefused: ids
        are required, and a file has no row count.
        """
        files = files_table([{**row} for row in adds])
        if not row_tracking.assigns(protocol, metadata):
            return row_tracking.without_ids(files)
        if any(row["baseRowId"] is None and num_records(row["stats"]) is None for row in adds):
            reason = "its rows are to be tracked, and a file does not say how many it has."
            raise CloneRefused(source=self._source.table, table=self._table, reason=reason)
        return files

    def _files_without_row_ids(self, removes: frozenset[str], metadata: Metadata) -> dict[str, Source]:
        """The files that stay and lack the row ids that the clone requires, by path, with their rows counted."""
        base = self._base
        if base is None or not row_tracking.is_enabled(metadata):
            return {}
        lacking = without_ids(base)
        stays = pc.invert(pc.is_in(lacking["path"], value_set=pa.array(list(removes), pa.string())))
        files = FileSet(base.table, base.schema, base.partition_columns, lacking.filter(stays), {})
        rows = with_row_counts(base, files).files.to_pylist()
        return {row["path"]: Source(row, BitMap64()) for row in rows}  # no row is read

    def _metrics(self, removed: Mapping[str, FileRow]) -> dict[str, int]:
        sizes = self._source.files["size"].to_pylist()
        return {
            "sourceTableSize": sum(sizes),
            "sourceNumOfFiles": len(sizes),
            "numRemovedFiles": len(removed),
            "numCopiedFiles": len(self._copied),
            "removedFilesSize": sum(row["size"] for row in removed.values()),
            "copiedFilesSize": sum(copy.row["size"] for copy in self._copied),
        }


def _check_apart(source: str, target: str) -> None:
    """Raises CloneRefused if a table lies in the folder of the other, whichever of its names is used."""
    one, other = _real(source), _real(target)
    if not lies_in(one, other) and not lies_in(other, one):
        return
    reason = (
        "they are one folder." if lies_in(one, other) and lies_in(other, one) else "one lies in the other's folder."
    )
    raise CloneRefused(source=source, table=target, reason=reason)


def _real(url: str) -> str:
    return "file://" + os.path.realpath(url.removeprefix("file://")) if url.startswith("file://") else url


def _with_user_scheme(location: Location, url: str) -> str:
    """The source's root with the user's scheme: not every engine accepts every scheme of a bucket."""
    alias = _ALIAS.match(os.fspath(location))
    return url if alias is None else f"{alias[1].lower()}{url[url.index('://') :]}"


def _check_files_fit(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raises InvalidProperty unless the source's files satisfy the properties: a clone rewrites no file."""
    for key in ("delta.columnMapping.mode", "delta.columnMapping.maxColumnId"):
        if key in after and after[key] != before.get(key) and (key in before or mode_of(after) != mode_of(before)):
            raise InvalidProperty(
                property=key, value=after[key], reason="a clone finds its columns as its source does."
            )
    for key in sorted(set(flags(after)) - set(flags(before))):
        raise InvalidProperty(property=key, value=after[key], reason="the source's files are not written for it.")


def _highest_number(numbers: Mapping[str, str]) -> int:
    return max((int(value) for value in numbers.values()), default=0)


def _mark(snapshot: Snapshot) -> int:
    domain = snapshot.state.domains.get(ROW_IDS)
    return row_tracking.highest(snapshot.files) if domain is None else row_tracking.mark_of(domain)
