"""Inserts rows: the common part of append, overwrite and creation.

Knows the definition of a new table, and what an insert reads: an append reads nothing, an overwrite the rows that it
replaces (`ReplacedRows`). Callers pass in how rows become files (`Stage`), so Spark's writer and the small Arrow writer
share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol import iceberg
from anabranch._protocol.actions import AppTransaction, FileRow, Metadata, compact_json
from anabranch._protocol.change_feed import check_recordable
from anabranch._protocol.features.requested_by_properties import NO_REQUESTS, read_protocol_request
from anabranch._protocol.features.row_tracking import check_columns as check_hidden
from anabranch._protocol.features.table_features import check_writable, upgrade_for_metadata
from anabranch._protocol.features.widening import check_moments
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.rules.allowed import check_metadata
from anabranch._protocol.rules.column_names import check_spelling
from anabranch._protocol.steps import Step
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase import join_transactions
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, Declarations, IdentityUse, Transaction
from anabranch.commands.clustering import check_changeable, clustering_of_write, with_clustering
from anabranch.commands.context import Newest, RunContext
from anabranch.commands.dml.new_table import (
    NewTable,
    check_columns,
    first_protocol,
    match_spelling,
    new_metadata,
    with_session_defaults,
)
from anabranch.commands.idempotence import is_written, with_txn
from anabranch.commands.opening import live_rows
from anabranch.commands.redoing import with_redone_runs
from anabranch.commands.sources import NO_VERSIONS, VersionsRead, check_newest, whole_table
from anabranch.errors import InvalidOption, ProtocolChangedException, TableAlreadyExists
from anabranch.errors.rows import note

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")
Stage = Callable[[Metadata], pa.Table]
"""Writes the rows with this metadata and returns the new files; runs twice if a creation race is lost."""


class ReplacedRows(RebaseHandler, Protocol):
    """The rows that an overwrite replaces, as the handler of its transaction."""

    def take(self, adds: pa.Table, metadata: Metadata, runtime: Runtime) -> Transaction:
        """Marks, removals and rewritten files on the base, with their read set.

        Args:
            adds: the staged files of the new rows.
            metadata: the metadata with which they were written, which may be new.
        """
        ...

    def finish(self) -> None:
        """Close the staging after the commit."""
        ...


@dataclass(frozen=True)
class Insert:
    """An insert about to run: its table, its mode, and how it writes rows; ``discard`` and ``finish`` end its staging.

    Attributes:
        takes: makes the handler of the rows that an overwrite replaces.
        txn: the application transaction.
        parameters: parameters in the history, besides mode and partitioning if it ``says_mode``.
        at: the version for which it was parsed; None: there was no table.
        reads: returns the versions of the table from which the rows were computed; if any, every change may conflict.
        writer: the name under which identity values are reserved.
        own_numbers: returns, once rows are staged, the identity columns for which they brought values.
        steps: returns, once rows are staged, the steps that wrote them.
        evolve: returns the table's metadata with the changes that the rows require; the same if none.
        lays_out: the partitioning and clustering of ``new`` replace the table's.
    """

    log: Log
    mode: str
    new: NewTable
    stage: Stage
    discard: Callable[[], None]
    finish: Callable[[], None]
    operation: str = "WRITE"
    user_metadata: str | None = None
    takes: Callable[[Snapshot], ReplacedRows] | None = None
    txn: AppTransaction | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    says_mode: bool = True
    at: Snapshot | Newest | None = "newest"
    reads: Callable[[Snapshot | None], VersionsRead] = lambda seen: NO_VERSIONS
    writer: str | None = None
    own_numbers: Callable[[], frozenset[str]] = frozenset
    steps: Callable[[], Sequence[Step]] = tuple
    evolve: Callable[[Metadata], Metadata] | None = None
    lays_out: bool = False


def run_insert(insert: Insert, context: RunContext) -> CommitResult | None:
    """Stage the rows and commit them. None, without doing anything, if the mode is ``ignore`` and there is a table, or
    if the log records the application transaction already.

    An append that loses the race to create the table is staged again with the winner's metadata, and commits.

    Raises:
        TableAlreadyExists: mode ``error`` and there is a table.
        ProtocolChangedException: another writer created the table meanwhile (an overwrite, or resolution ``file``).
    """
    try:
        return _once(insert, context)
    except _CreationRaceLost as race:
        if insert.mode != "append" or insert.log.snapshot().properties.conflict_resolution == "file":
            raise race.lost from None
        return _once(replace(insert, at="newest"), context)


class _CreationRaceLost(Exception):
    """Another writer created the table meanwhile, as this insert found at its commit."""

    def __init__(self, lost: ProtocolChangedException) -> None:
        super().__init__(str(lost))
        self.lost = lost


def _once(insert: Insert, context: RunContext) -> CommitResult | None:
    runtime = context.runtime
    snapshot = insert.log.newest() if insert.at == "newest" else insert.at
    if is_written(insert.txn, snapshot, runtime.now_ms()):
        return None
    if snapshot is not None and insert.mode in ("error", "errorifexists"):
        raise TableAlreadyExists(table=insert.log.table)
    if snapshot is not None and insert.mode == "ignore":
        return None
    read = insert.reads(snapshot)
    if snapshot is not None:
        check_newest(read, insert.log, snapshot, insert.operation, runtime)
    began = runtime.now_ms()
    ours = _transaction(insert, snapshot, runtime)
    handler = InsertHandler(insert, snapshot, read)
    reach("read")
    try:
        ours = with_txn(with_redone_runs(handler.stage(ours, runtime), runtime), insert.txn, began)
        reach("staged")
    except BaseException:  # an interrupt too: no commit references the staged files
        handler.discard()
        raise
    ours = ours.with_metrics(executionTimeMs=runtime.now_ms() - began)
    try:
        committed = commit(ours, insert.log, handler, context.policy(blind=ours.is_blind), runtime)
    except ProtocolChangedException as lost:
        if snapshot is None and lost.facts.get("txn_id") == ours.txn_id:
            raise _CreationRaceLost(lost) from None
        raise
    handler.finish()
    return committed


def _transaction(insert: Insert, snapshot: Snapshot | None, runtime: Runtime) -> Transaction:
    """The transaction before its files are staged."""
    if snapshot is None:
        return _creation(insert, runtime)
    overwrites = insert.takes is not None
    check_changeable(snapshot, "overwrite", changes_rows=overwrites)
    ours = Transaction.on(
        snapshot,
        str(runtime.new_id()),
        CommitInfo(insert.operation, user_metadata=insert.user_metadata),
        identity=IdentityUse(writer=insert.writer),
    )
    ours = (
        ours if insert.evolve is None else with_metadata(ours, insert.evolve(snapshot.metadata), insert.new.properties)
    )
    after = ours.says.metadata or snapshot.metadata
    check_metadata(after, snapshot.table)
    check_recordable(after)
    _check_layout(insert.new, snapshot.table, after)
    ours = replace(ours, info=replace(ours.info, parameters=_parameters(insert, after.partition_columns)))
    return with_clustering(ours, clustering_of_write(insert.new.cluster_by, after, snapshot, lays_out=insert.lays_out))


def with_metadata(ours: Transaction, metadata: Metadata, properties: Mapping[str, str] = NO_REQUESTS) -> Transaction:
    """The transaction with new metadata, and the protocol that it needs and ``properties`` request; unchanged if the
    metadata equals the base's.

    Raises:
        InvalidOption, UnsupportedFeature: there cannot be such a table.
    """
    base = ours.base
    assert base is not None
    if metadata == base.metadata:
        return ours
    requested = read_protocol_request(base.table, properties).on_top_of(base.protocol)
    check_moments(base.metadata.schema, metadata.schema, requested)
    protocol = upgrade_for_metadata(requested, metadata) or (None if requested == base.protocol else requested)
    iceberg.check_partitioning(base.metadata, metadata)
    check_columns(metadata.schema, metadata.partition_columns)
    check_spelling(metadata, base.metadata)
    check_hidden(metadata)
    check_writable(base.table, protocol or base.protocol, metadata)
    return replace(ours, says=replace(ours.says, metadata=metadata, protocol=protocol))


def _creation(insert: Insert, runtime: Runtime) -> Transaction:
    """The transaction that creates a table."""
    new = with_session_defaults(insert.new)
    metadata = new_metadata(new, runtime)
    note(insert.log.table, -1, metadata.configuration)
    check_metadata(metadata, insert.log.table)
    check_recordable(metadata)
    note(insert.log.table, -1, metadata.configuration)
    protocol = first_protocol(insert.log.table, new, metadata)
    check_writable(insert.log.table, protocol, metadata)
    created = Transaction.on(
        None,
        str(runtime.new_id()),
        CommitInfo(
            insert.operation, _parameters(insert, metadata.partition_columns), user_metadata=insert.user_metadata
        ),
        table=insert.log.table,
        says=Declarations(metadata=metadata, protocol=protocol),
    )
    return with_clustering(created, clustering_of_write(insert.new.cluster_by, metadata))


def _check_layout(new: NewTable, table: str, metadata: Metadata) -> None:
    """Raises InvalidOption if the requested partitioning is not the table's."""
    requested, columns = new.partition_columns, metadata.partition_columns
    if requested is not None and match_spelling(metadata.schema, requested) != columns:
        by = ", ".join(columns) or "nothing"
        reason = f"Partition columns do not match the partition columns of the table at {table}, which are: {by}."
        raise InvalidOption(option="partitionBy", value=list(requested), reason=reason)


def _parameters(insert: Insert, partition_columns: tuple[str, ...]) -> dict[str, str]:
    if not insert.says_mode:
        return dict(insert.parameters)
    names = {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}
    mode = names.get(insert.mode, "ErrorIfExists")
    return {"mode": mode, "partitionBy": compact_json(list(partition_columns)), **insert.parameters}


def _metrics(adds: pa.Table) -> dict[str, int]:
    return {
        "numFiles": len(adds),
        "numOutputRows": live_rows(adds) or 0,
        "numOutputBytes": sum(adds["size"].to_pylist()),
    }


class InsertHandler:
    """The handler of an insert: of the rows that it replaces, and of its new files. An append selects no row, unless
    its rows come from the table.
    """

    def __init__(self, insert: Insert, snapshot: Snapshot | None, read: VersionsRead) -> None:
        self._insert, self._snapshot, self._read = insert, snapshot, read
        self._taking = insert.takes(snapshot) if insert.takes is not None and snapshot is not None else None

    def stage(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The transaction with its new rows, and without those that they replace."""
        metadata = ours.metadata
        assert metadata is not None, "a transaction that creates a table brings its metadata"
        adds = self._insert.stage(metadata)
        ours = replace(
            ours,
            does=replace(ours.does, adds=adds),
            identity=replace(ours.identity, own_numbers=self._insert.own_numbers()),
        ).with_metrics(**_metrics(adds), **self._batch_metrics(adds))
        ours = ours.with_steps(self._insert.steps())
        if self._taking is not None:
            replaced = self._taking.take(adds, metadata, runtime)
            ours = replace(join_transactions(ours, replaced), reads=replaced.reads)
        if self._snapshot is None or self._read.oldest is None:
            return ours
        return replace(ours, reads=whole_table(self._snapshot, held=self._read.held))

    def _batch_metrics(self, adds: pa.Table) -> dict[str, int]:
        """The further metrics of delta-spark for an appended batch; the commit adds those of a replacing one."""
        if self._insert.says_mode or self._taking is not None:
            return {}
        return {"numAddedFiles": len(adds), "numRemovedFiles": 0}

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._insert.log.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold rows to replace; all files if the new rows were computed from the table's."""
        if self._read.oldest is not None:
            return files
        return self._taking.could_match(files) if self._taking else files.slice(0, 0)

    def matches(self, files: pa.Table) -> Marks:
        """The rows to replace."""
        return self._taking.matches(files) if self._taking else {}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Replace these rows too, which blind appends added that come before this overwrite in the serial order."""
        assert self._taking is not None, "an append selects no row"
        return self._taking.redo(files, rows)

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The values of a few rows that would have been replaced."""
        return self._taking.sample(file, rows) if self._taking else []

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """A condition that would narrow the rows to replace."""
        return self._taking.narrower(ours, file) if self._taking else None

    def discard(self) -> None:
        """Remove what was staged."""
        self._insert.discard()
        if self._taking is not None:
            self._taking.discard()

    def finish(self) -> None:
        """Close the staging after the commit."""
        self._insert.finish()
        if self._taking is not None:
            self._taking.finish()
