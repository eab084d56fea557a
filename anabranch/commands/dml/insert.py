"""Inserts rows: the common part of append, overwrite and creation.

Knows the definition of a new table, and what an insert reads: an append reads nothing, an overwrite the rows that it
replaces (`ReplacedRows`). Callers pass in how rows become files (`NewRows`), so Spark's writer and the small Arrow
writer share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol import iceberg
from anabranch._protocol.actions import AppTransaction, FileRow, Metadata, compact_json
from anabranch._protocol.change_feed import check_recordable
from anabranch._protocol.dials import strengthen
from anabranch._protocol.features.requested_by_properties import NO_REQUESTS, read_protocol_request
from anabranch._protocol.features.row_tracking import check_columns as check_hidden
from anabranch._protocol.features.table_features import check_writable, upgrade_for_metadata
from anabranch._protocol.features.widening import check_moments
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.rules.allowed import check_metadata
from anabranch._protocol.rules.column_names import check_spelling
from anabranch._protocol.session_settings import current_dials
from anabranch._storage.contract import Store
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.phases import reach
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, Declarations, Transaction
from anabranch.commands.clustering import check_changeable, clustering_of_write, with_clustering
from anabranch.commands.context import Newest, RunContext
from anabranch.commands.dml.new_rows import NewRows
from anabranch.commands.dml.new_table import (
    MetadataChange,
    NewTable,
    check_columns,
    evolve_metadata,
    first_protocol,
    match_spelling,
    new_metadata,
    with_session_defaults,
)
from anabranch.commands.dml.replaced_rows import NothingReplaced, ReplacedRows
from anabranch.commands.idempotence import is_written, with_txn
from anabranch.commands.rerunning import with_redone_runs
from anabranch.commands.sources import VersionsRead, check_newest, whole_table
from anabranch.errors import InvalidOption, ProtocolChangedException, TableAlreadyExists
from anabranch.errors.rows import note

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")
_SAYS_NO_MODE = frozenset({"CREATE TABLE", "STREAMING UPDATE"})
"""Operations whose parameters in the history are without mode and partitioning."""


@dataclass(frozen=True)
class Insert:
    """An insert about to run: its table, its mode, and its rows.

    Attributes:
        new: the definition of the table, if there is none, or if ``change`` replaces it.
        info: its operation, its parameters besides mode and partitioning, and the user's metadata.
        txn: the application transaction.
        at: the version for which it was parsed; None: there was no table.
        change: its change of the metadata of a table; if None, there is none.
        casts: values of other types than the table's are cast, so columns of other types need no change.
    """

    log: Log
    mode: str
    new: NewTable
    rows: NewRows
    info: CommitInfo
    txn: AppTransaction | None = None
    at: Snapshot | Newest | None = "newest"
    change: MetadataChange | None = None
    casts: bool = False


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
        properties = strengthen(insert.log.snapshot().properties, current_dials(), insert.log.table)
        if insert.mode != "append" or properties.conflict_resolution == "file":
            raise race.lost from None
        return _once(replace(insert, at="newest"), context)


class _CreationRaceLost(Exception):
    """Another writer created the table meanwhile, as this insert found at its commit."""

    def __init__(self, lost: ProtocolChangedException) -> None:
        super().__init__(str(lost))
        self.lost = lost


def _once(insert: Insert, context: RunContext) -> CommitResult | None:
    runtime = context.runtime
    base = insert.log.newest() if insert.at == "newest" else insert.at
    if not _has_work(insert, base, runtime):
        return None
    read = insert.rows.versions_read(base)
    if base is not None:
        check_newest(read, insert.log, base, insert.info.operation, runtime)
    began = runtime.now_ms()
    ours = _creation(insert, runtime) if base is None else _on_table(insert, base, runtime)
    replaced = NothingReplaced() if base is None else insert.rows.replaced_rows(base)
    handler = InsertHandler(insert.rows, replaced, read, insert.log.store)
    reach("read")
    ours = _stage(insert, ours, handler, began, runtime)
    return _commit(insert, ours, handler, context)


def _has_work(insert: Insert, base: Snapshot | None, runtime: Runtime) -> bool:
    """Whether there is something to do. Raises TableAlreadyExists: mode ``error`` and there is a table."""
    if is_written(insert.txn, base, runtime.now_ms()):
        return False
    if base is not None and insert.mode in ("error", "errorifexists"):
        raise TableAlreadyExists(table=insert.log.table)
    return base is None or insert.mode != "ignore"


def _stage(insert: Insert, ours: Transaction, handler: InsertHandler, began: int, runtime: Runtime) -> Transaction:
    """The transaction as it is before any winner is read."""
    try:
        ours = _with_batch_counts(insert, handler.stage(ours, runtime))
        ours = with_txn(with_redone_runs(ours), insert.txn, began)
        reach("staged")
    except BaseException:  # an interrupt too: no commit references the staged files
        handler.discard()
        raise
    return ours.with_metrics(executionTimeMs=runtime.now_ms() - began)


def _with_batch_counts(insert: Insert, ours: Transaction) -> Transaction:
    """The transaction with the further metrics of delta-spark for an appended batch; the commit adds those of a
    replacing one.
    """
    replaces = insert.mode == "overwrite" and ours.base is not None
    if replaces or insert.info.operation not in _SAYS_NO_MODE:
        return ours
    return ours.with_metrics(numAddedFiles=len(ours.changes.adds), numRemovedFiles=0)


def _commit(insert: Insert, ours: Transaction, handler: InsertHandler, context: RunContext) -> CommitResult:
    try:
        return commit(ours, insert.log, handler, context.policy(blind=ours.is_blind), context.runtime)
    except ProtocolChangedException as lost:
        if ours.base is None and lost.facts.get("txn_id") == ours.txn_id:
            raise _CreationRaceLost(lost) from None
        raise


def _on_table(insert: Insert, base: Snapshot, runtime: Runtime) -> Transaction:
    """The transaction that inserts into a table, before its files are staged."""
    check_changeable(base, "overwrite", changes_rows=insert.mode == "overwrite")
    ours = Transaction.on(base, str(runtime.new_id()), insert.info)
    named_in_errors = None if insert.casts else base.table
    metadata = evolve_metadata(insert.new, base.metadata, insert.change, named_in_errors, runtime)
    ours = with_metadata(ours, metadata, insert.new.properties)
    check_metadata(metadata, base.table)
    check_recordable(metadata)
    _check_layout(insert.new, base.table, metadata)
    ours = replace(ours, info=_info(insert, metadata))
    lays_out = insert.change in ("overwrite", "replace")
    return with_clustering(ours, clustering_of_write(insert.new.cluster_by, metadata, base, lays_out=lays_out))


def _creation(insert: Insert, runtime: Runtime) -> Transaction:
    """The transaction that creates a table, before its files are staged."""
    new, table = with_session_defaults(insert.new), insert.log.table
    metadata = new_metadata(new, runtime)
    note(table, -1, metadata.configuration)
    check_metadata(metadata, table)
    check_recordable(metadata)
    protocol = first_protocol(table, new, metadata)
    check_writable(table, protocol, metadata)
    says = Declarations(metadata=metadata, protocol=protocol)
    created = Transaction.on(None, str(runtime.new_id()), _info(insert, metadata), table=table, declarations=says)
    return with_clustering(created, clustering_of_write(insert.new.cluster_by, metadata))


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
    return replace(ours, declarations=replace(ours.declarations, metadata=metadata, protocol=protocol))


def _check_layout(new: NewTable, table: str, metadata: Metadata) -> None:
    """Raises InvalidOption if the requested partitioning is not the table's."""
    requested, columns = new.partition_columns, metadata.partition_columns
    if requested is not None and match_spelling(metadata.schema, requested) != columns:
        by = ", ".join(columns) or "nothing"
        reason = f"Partition columns do not match the partition columns of the table at {table}, which are: {by}."
        raise InvalidOption(option="partitionBy", value=list(requested), reason=reason)


def _info(insert: Insert, metadata: Metadata) -> CommitInfo:
    """The entry in the history of an insert into a table with this metadata."""
    if insert.info.operation in _SAYS_NO_MODE:
        return insert.info
    names = {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}
    mode = names.get(insert.mode, "ErrorIfExists")
    layout = {"mode": mode, "partitionBy": compact_json(list(metadata.partition_columns))}
    return replace(insert.info, parameters={**layout, **insert.info.parameters})


class InsertHandler:
    """The handler of an insert: of its new rows, and of the rows that they replace.

    If the new rows come from the table, any row may conflict with them.
    """

    def __init__(self, rows: NewRows, replaced: ReplacedRows, read: VersionsRead, store: Store) -> None:
        self._rows, self._replaced, self._read, self._store = rows, replaced, read, store

    def stage(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """The transaction with its new rows, and without those that they replace."""
        assert ours.metadata is not None, "a transaction that creates a table brings its metadata"
        assert ours.protocol is not None, "and its protocol"
        staged = self._rows.stage(ours.metadata, ours.protocol)
        ours = replace(ours, changes=replace(ours.changes, adds=staged.adds), identity=staged.identity)
        ours = ours.with_metrics(**staged.metrics).with_steps(staged.steps)
        ours = self._replaced.with_removals(ours, runtime)
        if ours.base is None or self._read.oldest is None:
            return ours
        return replace(ours, reads=whole_table(ours.base, held=self._read.held))

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold rows to replace; all files if the new rows were computed from the table's."""
        return files if self._read.oldest is not None else self._replaced.could_match(files)

    def matches(self, files: pa.Table) -> Marks:
        """The rows to replace."""
        return self._replaced.matches(files)

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Replace these rows too, which blind appends added that come before this overwrite in the serial order."""
        return self._replaced.redo(files, rows)

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The values of a few rows that would have been replaced."""
        return self._replaced.sample(file, rows)

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """A condition that would narrow the rows to replace."""
        return self._replaced.narrower(ours, file)

    def discard(self) -> None:
        """Remove what was staged."""
        self._rows.discard()
        self._replaced.discard()

    def finish(self) -> None:
        """Close the staging after the commit."""
        self._rows.finish()
        self._replaced.finish()
