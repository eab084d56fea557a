"""CLONE: a table, or a folder of Parquet files, becomes another table, at another place, as it stood at one version.

Knows two tables: the source at a pinned version, which is only read (files of Parquet as the table that
`anabranch.commands.maintenance.convert` would make of them), and the target, which gets one commit. A shallow
clone names the source's files, a deep one copies them; a clone onto an earlier one does only what has changed since.
Guarantees: nothing of the target is to be seen before its commit; a clone that dies leaves only files which nothing
names; where a file of the source is gone, nothing is committed; no byte of the source is ever written.
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
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import DomainMetadata, FileRow, Metadata, Protocol, compact_json, files_table
from anabranch._protocol.cloning import Copy, deep, shallow
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
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.layout.paths import is_absolute, lies_in
from anabranch._protocol.properties import PROTECTED_BEFORE, check_retention, extract_description, validate
from anabranch._protocol.rules.identity import keep_assigned_values
from anabranch._protocol.schema.column_mapping import highest_number, is_mapped, mode_of
from anabranch._protocol.schema.leaves import check_stats_columns
from anabranch._protocol.schema.types import Struct
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.commit import Committed, commit
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
from anabranch.commands.maintenance.file_copies import check_there, copy_files
from anabranch.commands.maintenance.returning_files import ReturningFiles
from anabranch.commands.opening import Location, Masked, open_log
from anabranch.commands.queries.time_travel import AsOf
from anabranch.commands.row_changes import with_counts
from anabranch.commands.sources import whole_table
from anabranch.commands.staging import Staging
from anabranch.commands.watching import watched
from anabranch.errors import CloneRefused, CorruptLog, InvalidProperty, TableAlreadyExists

_ALIAS = re.compile(r"^(s3a|s3n|abfs)://", re.IGNORECASE)
_OF_THE_SOURCE = (*KEPT_BY_WRITERS, PROTECTED_BEFORE)
"""Properties that speak of a table's own versions, and mean nothing in another."""


@dataclass(frozen=True)
class Clone(Masked):
    """Make a table at ``target`` that is as ``source`` was.

    Attributes:
        shallow: name the source's files instead of copying them.
        version, timestamp: of the source; the newest where both are None.
        zone: of timestamps that say none.
        replace: put the clone in the place of a table that is there.
        properties: set in the clone, whatever the source says.
        parquet: the source is a folder of Parquet files and no table, and these are the columns that its folders
            ``name=value`` stand for.
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

    @watched("CLONE", "target")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed:
        """Run it.

        Raises:
            TableAlreadyExists: there is a table at the target, and this is not ``replace``.
            CloneRefused: one lies in the other's folder, the target cannot become such a table, or a file that is to
            be copied is no Parquet file.
            FileOutsideTable: a file of the source lies on a store that is neither its own nor allowed; or the files of
            the source lie on another store than the target, which a shallow clone would have to name.
            MissingDataFile, CorruptVector: a file of the source is gone; nothing was committed.
            NotATable, VersionNotFound, TimestampBeforeEarliestCommit, TimestampAfterLatestCommit: no source is meant.
            EmptyDirectory, UnreadableFooter, ConversionRefused and others: a folder of Parquet files is no source, as
            `Convert` says.
            InvalidProperty, UnsupportedFeature, AppendOnlyTable: the target may not be so.
            ProtocolChangedException: another writer created or replaced the target meanwhile.
            DeltaConcurrentModificationException: another one wrote what is to be replaced.
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
        except BaseException:  # an interrupt too: no commit names what was copied
            handler.discard()
            raise
        committed = commit(ours, log, handler, context.policy(), context.runtime)
        work.finish()
        return committed

    def _resolve_source(self, runtime: Runtime) -> tuple[Location, Snapshot]:
        """Where the source lies, and what it is: the version that is meant, or the table that Parquet files make."""
        if self.parquet is not None:
            return self.source, Convert(self.source, self.parquet, storage_options=self.storage_options).as_table(
                runtime
            )
        location, version = AsOf(
            self.source, self.version, self.timestamp, self.zone, self.storage_options
        ).resolve_version()
        return location, open_log(location, self.storage_options).snapshot(version)


class CreationHandler(NoRows):
    """The handler of a clone where no table was."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def discard(self) -> None:
        """Remove what was copied."""
        self._staging.discard()


class CloneHandler(EveryRow):
    """The handler of a clone that takes a table's place: it has read all of it."""

    def __init__(self, snapshot: Snapshot, staging: Staging) -> None:
        super().__init__(snapshot)
        self._staging = staging

    def discard(self) -> None:
        """Remove what was copied."""
        self._staging.discard()


class ShallowCloneHandler(CloneHandler):
    """That of a clone whose files are there already (`Guarded`): some may have been the table's own before."""

    def __init__(self, snapshot: Snapshot, staging: Staging, ours: Transaction, runtime: Runtime) -> None:
        super().__init__(snapshot, staging)
        live = frozenset(snapshot.files["path"].to_pylist())
        paths = ours.does.adds["path"].to_pylist()
        back = pa.array([path not in live and not is_absolute(path) for path in paths], pa.bool_())
        self._returning = ReturningFiles(snapshot, ours.does.adds.filter(back), runtime)

    def before_put(self, winners: Sequence[Commit]) -> Conflict | None:
        """A VACUUM under way that may delete a file which comes back."""
        return self._returning.conflict(winners)


class _Cloning:
    """One running clone: what the target is to say, and its files."""

    def __init__(
        self, plan: Clone, source: Snapshot, root: str, log: Log, base: Snapshot | None, runtime: Runtime
    ) -> None:
        self._plan, self._source, self._root, self._base, self._runtime = plan, source, root, base, runtime
        self._table = log.table
        self.staging = Staging(log.store, str(runtime.new_id()))

    def stage_transaction(self) -> Transaction:
        """Ours, with every file that it names in its place."""
        metadata, base = self._metadata(), self._base
        protocol = self._protocol(metadata)
        check_writable(self._table, protocol, metadata)
        adds, removes = self._files()
        if base is not None and (removes or base.properties.append_only):
            check_changeable(base, "clone", changes_rows=True)
        gone = {row["path"]: row for row in self._present() if row["path"] in removes}
        sources = {path: Source(row, vector_of(self.staging.store, row)) for path, row in gone.items()}
        again = self._again(removes, metadata)
        ours = Transaction.on(
            base,
            self.staging.txn_id,
            CommitInfo("CLONE", self._parameters()),
            table=self._table,
            reads=None if base is None else whole_table(base),
            does=Changes(
                removes=removes,
                sources={**sources, **again},
                adds=self._with_source_row_ids(adds, protocol, metadata),
                recommits=frozenset(again),
                row_mark=_mark(self._source),
            ),
            says=Declarations(
                metadata=metadata,
                protocol=protocol if base is None or protocol != base.protocol else None,
                domains=self._domains(),
                app_transactions=self._app_transactions(),
            ),
        )
        return ours.with_counts(**self._metrics(gone))

    def check_source(self, ours: Transaction) -> None:
        """Raises MissingDataFile unless the files that a shallow clone would name are there."""
        if self._plan.shallow:
            check_there(self._source, self.staging.store, ours.does.adds.to_pylist())

    def finish(self) -> None:
        """Close the job folder's markers."""
        self.staging.finish()

    # -- what the table is to say --------------------------------------------------------------------------------------

    def _metadata(self) -> Metadata:
        """The source's, under the target's own name, with the properties that were asked for."""
        said, description = extract_description(self._plan.properties, None)
        asked, source, base = without_requests(said), self._source.metadata, self._base
        refuse_constraints(asked)
        validate(asked)
        check_stats_columns(source.schema, source.partition_columns, asked)
        known = {key: value for key, value in source.configuration.items() if key not in _OF_THE_SOURCE}
        configuration = {**known, **asked}
        check_retention(configuration, asked)
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
        """The clone's metadata in the place of another's: the table stays who it is, and gives no number twice."""
        if mode_of(old.configuration) != mode_of(new.configuration):
            reason = (
                f"its column mapping mode is {mode_of(new.configuration)}, the target's {mode_of(old.configuration)}."
            )
            raise CloneRefused(source=self._source.table, table=self._table, reason=reason)
        check_partitioning(old, new)
        guard = {key: value for key, value in old.configuration.items() if key in _OF_THE_SOURCE}
        numbers = [each for each in (old, new) if is_mapped(each.configuration)]
        highest = max((highest_number(each.configuration) for each in numbers), key=_number, default={})
        configuration = {**new.configuration, **guard, **highest}
        named = replace(new, id=old.id, name=old.name, description=old.description, configuration=configuration)
        return keep_assigned_values(old, named)

    def _protocol(self, metadata: Metadata) -> Protocol:
        """The source's, and what a table in its place has besides, with what the properties ask for."""
        protocol = self._source.protocol
        if self._base is not None:
            protocol = with_features(self._base.protocol, writer_features(protocol))
        asked = read_protocol_request(self._table, extract_description(self._plan.properties, None)[0]).on_top_of(
            protocol
        )
        return upgrade_for_metadata(asked, metadata) or asked

    def _domains(self) -> tuple[DomainMetadata, ...]:
        """The source's domains but for the mark of row ids; those that only the target has are taken away."""
        wanted = {name: each for name, each in self._source.state.domains.items() if name != ROW_IDS}
        known = dict(self._base.state.domains) if self._base is not None else {}
        gone = [replace(each, removed=True) for name, each in known.items() if name not in {*wanted, ROW_IDS}]
        new = [each for name, each in wanted.items() if known.get(name) != each]
        return (*new, *gone)

    def _app_transactions(self) -> tuple[Any, ...]:
        """How far applications have written, for a deep clone: a stream may go on where it left the source."""
        known = self._base.state.app_transactions if self._base is not None else {}
        apps = {} if self._plan.shallow else self._source.state.app_transactions
        return tuple(each for name, each in apps.items() if known.get(name) != each)

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
        """The files to be named, each in its place, and the paths to be given up."""
        try:
            if self._plan.shallow:
                found = shallow(self._rows(), self._root, self._table, self._present())
                self._copied: list[Copy] = []
                self._refuse_other(found.other)
                return found.adds, found.removes
            needed = deep(self._rows(), self._root, self._present())
        except ValueError as error:
            raise CorruptLog(table=self._source.table, file="_delta_log", reason=f"{error}.") from None
        self._copied = [each for each in needed.copies if each.had is None]
        if needed.copies:
            self.staging.start()
        return copy_files(self._source, needed.copies, self.staging, self._runtime.new_id), needed.removes

    def _refuse_other(self, paths: frozenset[str]) -> None:
        """No commit may take away and add one file with one vector, so that the log cannot say other things of it.
        Raises CloneRefused: it would have to.
        """
        if paths:
            reason = f"it names {min(paths)} already, of which the source now says another size, time or first row id."
            raise CloneRefused(source=self._source.table, table=self._table, reason=f"{reason} Take another path.")

    def _rows(self) -> list[FileRow]:
        rows: list[FileRow] = self._source.files.to_pylist()
        if row_tracking.tracking_columns(self._source.protocol, self._source.metadata) is not None:
            return rows
        return [{**row, "baseRowId": None} for row in rows]  # some may lack theirs: the clone gives all of them

    def _present(self) -> list[FileRow]:
        return [] if self._base is None else self._base.files.to_pylist()

    def _with_source_row_ids(self, adds: list[FileRow], protocol: Protocol, metadata: Metadata) -> pa.Table:
        """The files with the row ids that they have in the source; the others get theirs with their version. Raises
        CloneRefused: ids are asked for, and a file does not say how many rows it has.
        """
        files = files_table([{**row} for row in adds])
        if not row_tracking.assigns(protocol, metadata):
            return row_tracking.without_ids(files)
        if any(row["baseRowId"] is None and num_records(row["stats"]) is None for row in adds):
            reason = "its rows are to be tracked, and a file does not say how many it has."
            raise CloneRefused(source=self._source.table, table=self._table, reason=reason)
        return files

    def _again(self, removes: frozenset[str], metadata: Metadata) -> dict[str, Source]:
        """The files that stay and lack the row ids that each is to have, by path, with their rows counted."""
        base = self._base
        if base is None or not row_tracking.is_enabled(metadata):
            return {}
        lacking = without_ids(base)
        stays = pc.invert(pc.is_in(lacking["path"], value_set=pa.array(list(removes), pa.string())))
        files = FileSet(base.table, base.schema, base.partition_columns, lacking.filter(stays), {})
        rows = with_counts(base, files).files.to_pylist()
        return {row["path"]: Source(row, BitMap64()) for row in rows}  # no row is looked at

    def _metrics(self, gone: Mapping[str, FileRow]) -> dict[str, int]:
        sizes = self._source.files["size"].to_pylist()
        return {
            "sourceTableSize": sum(sizes),
            "sourceNumOfFiles": len(sizes),
            "numRemovedFiles": len(gone),
            "numCopiedFiles": len(self._copied),
            "removedFilesSize": sum(row["size"] for row in gone.values()),
            "copiedFilesSize": sum(each.row["size"] for each in self._copied),
        }


def _check_apart(source: str, target: str) -> None:
    """Raises CloneRefused if a table lies in the folder of the other, whichever of its names is used."""
    one, other = _real(source), _real(target)
    if not lies_in(one, other) and not lies_in(other, one):
        return
    inside = (
        "they are one folder." if lies_in(one, other) and lies_in(other, one) else "one lies in the other's folder."
    )
    raise CloneRefused(source=source, table=target, reason=inside)


def _real(url: str) -> str:
    return "file://" + os.path.realpath(url.removeprefix("file://")) if url.startswith("file://") else url


def _with_user_scheme(location: Location, url: str) -> str:
    """The source's root by the scheme that the user has for it: not every engine takes each name of a bucket."""
    alias = _ALIAS.match(os.fspath(location))
    return url if alias is None else f"{alias[1].lower()}{url[url.index('://') :]}"


def _check_files_fit(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raises InvalidProperty unless the source's files are such as the properties say: none is written anew."""
    for key in ("delta.columnMapping.mode", "delta.columnMapping.maxColumnId"):
        if key in after and after[key] != before.get(key) and (key in before or mode_of(after) != mode_of(before)):
            raise InvalidProperty(
                property=key, value=after[key], reason="a clone finds its columns as its source does."
            )
    for key in sorted(set(flags(after)) - set(flags(before))):
        raise InvalidProperty(property=key, value=after[key], reason="the source's files are not written for it.")


def _number(said: Mapping[str, str]) -> int:
    return max((int(value) for value in said.values()), default=0)


def _mark(snapshot: Snapshot) -> int:
    known = snapshot.state.domains.get(ROW_IDS)
    return row_tracking.highest(snapshot.files) if known is None else row_tracking.mark_of(known)
