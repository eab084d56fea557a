"""Inserting rows: the shared way of append, overwrite and creation.

Knows what a new table looks like, and what an insert reads: an append nothing, an overwrite the rows that it takes away
(`Taking`). How rows become files is passed in (`Stage`), so that Spark's writer and the small Arrow writer share it.
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
from anabranch._transaction.commit import Committed, commit
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase import join_transactions
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, Declarations, IdentityUse, Transaction
from anabranch.commands.clustering import check_changeable, clusters_of, with_clustering
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
from anabranch.commands.sources import NOTHING, VersionsRead, check_newest, whole_table
from anabranch.errors import InvalidOption, ProtocolChangedException, TableAlreadyExists
from anabranch.errors.rows import note

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")
Stage = Callable[[Metadata], pa.Table]
"""Writes the rows under this metadata and gives the new files; may run twice, when a creation race is lost."""


class Taking(RebaseHandler, Protocol):
    """What an overwrite takes away of the table that there is, as the handler of its transaction."""

    def take(self, adds: pa.Table, metadata: Metadata, runtime: Runtime) -> Transaction:
        """Marks, removals and rewritten files on the base, with what was read for them.

        Args:
            adds: the files of the rows that take their place, staged already.
            metadata: under which they were written, which may be to come.
        """
        ...

    def finish(self) -> None:
        """Say that what was staged is committed."""
        ...


@dataclass(frozen=True)
class Insert:
    """An insert about to run: where, how, and what to do with rows; ``discard`` and ``finish`` end its staging.

    Attributes:
        takes: makes the handler of what an overwrite takes away.
        txn: how far an application has written with it.
        parameters: for the history, besides mode and partitioning where it ``says_mode``.
        at: the version for which it was understood; None: there was no table.
        reads: gives which versions of the table, as it stands there, the rows were computed from; where any, every
            change may matter.
        writer: by whom identity values are reserved.
        own_numbers: says, once rows are staged, of which identity columns they came with values.
        steps: says, once rows are staged, what has written them.
        evolve: makes of a table's metadata what the rows make of it: the same where they change nothing.
        lays_out: the partitioning and clustering of ``new`` take the place of the table's.
    """

    log: Log
    mode: str
    new: NewTable
    stage: Stage
    discard: Callable[[], None]
    finish: Callable[[], None]
    operation: str = "WRITE"
    user_metadata: str | None = None
    takes: Callable[[Snapshot], Taking] | None = None
    txn: AppTransaction | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    says_mode: bool = True
    at: Snapshot | Newest | None = "newest"
    reads: Callable[[Snapshot | None], VersionsRead] = lambda seen: NOTHING
    writer: str | None = None
    own_numbers: Callable[[], frozenset[str]] = frozenset
    steps: Callable[[], Sequence[Step]] = tuple
    evolve: Callable[[Metadata], Metadata] | None = None
    lays_out: bool = False


def run_insert(insert: Insert, context: RunContext) -> Committed | None:
    """Stage the rows and commit them; None where the mode is ``ignore`` and there is a table, and where the application
    has written as far already: then nothing is done.

    An append that loses the race to create the table is staged again under the winner's metadata and lands.

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
    """This very insert found that another writer created the table meanwhile."""

    def __init__(self, lost: ProtocolChangedException) -> None:
        super().__init__(str(lost))
        self.lost = lost


def _once(insert: Insert, context: RunContext) -> Committed | None:
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
        ours = with_txn(handler.stage(ours, runtime), insert.txn, began)
        reach("staged")
    except BaseException:  # an interrupt too: no commit names what was staged
        handler.discard()
        raise
    ours = ours.with_counts(executionTimeMs=runtime.now_ms() - began)
    try:
        committed = commit(ours, insert.log, handler, context.policy(blind=ours.is_blind), runtime)
    except ProtocolChangedException as lost:
        if snapshot is None and lost.facts.get("txn_id") == ours.txn_id:
            raise _CreationRaceLost(lost) from None
        raise
    handler.finish()
    return committed


def _transaction(insert: Insert, snapshot: Snapshot | None, runtime: Runtime) -> Transaction:
    """Ours before its files are staged."""
    if snapshot is None:
        return _creating(insert, runtime)
    overwrites = insert.takes is not None
    check_changeable(snapshot, "overwrite", changes_rows=overwrites)
    ours = Transaction.on(
        snapshot,
        str(runtime.new_id()),
        CommitInfo(insert.operation, user_metadata=insert.user_metadata),
        identity=IdentityUse(writer=insert.writer),
    )
    ours = ours if insert.evolve is None else under(ours, insert.evolve(snapshot.metadata), insert.new.properties)
    after = ours.says.metadata or snapshot.metadata
    check_metadata(after, snapshot.table)
    check_recordable(after)
    _check_layout(insert.new, snapshot.table, after)
    ours = replace(ours, info=replace(ours.info, parameters=_parameters(insert, after.partition_columns)))
    return with_clustering(ours, clusters_of(insert.new.cluster_by, after, snapshot, lays_out=insert.lays_out))


def under(ours: Transaction, metadata: Metadata, properties: Mapping[str, str] = NO_REQUESTS) -> Transaction:
    """Ours as it puts other metadata in place of its base's, with the protocol that this needs and that ``properties``
    ask for; the same metadata changes nothing, and no action is written.

    Raises:
        InvalidOption, UnsupportedFeature: no table may look like that.
    """
    base = ours.base
    assert base is not None
    if metadata == base.metadata:
        return ours
    asked = read_protocol_request(base.table, properties).on_top_of(base.protocol)
    check_moments(base.metadata.schema, metadata.schema, asked)
    protocol = upgrade_for_metadata(asked, metadata) or (None if asked == base.protocol else asked)
    iceberg.check_partitioning(base.metadata, metadata)
    check_columns(metadata.schema, metadata.partition_columns)
    check_spelling(metadata, base.metadata)
    check_hidden(metadata)
    check_writable(base.table, protocol or base.protocol, metadata)
    return replace(ours, says=replace(ours.says, metadata=metadata, protocol=protocol))


def _creating(insert: Insert, runtime: Runtime) -> Transaction:
    """The first version of a table."""
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
    return with_clustering(created, clusters_of(insert.new.cluster_by, metadata))


def _check_layout(new: NewTable, table: str, metadata: Metadata) -> None:
    """Refuse another partitioning than the table has, or is given now."""
    asked, columns = new.partition_columns, metadata.partition_columns
    if asked is not None and match_spelling(metadata.schema, asked) != columns:
        by = ", ".join(columns) or "nothing"
        reason = f"Partition columns do not match the partition columns of the table at {table}, which are: {by}."
        raise InvalidOption(option="partitionBy", value=list(asked), reason=reason)


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
    """The handler of an insert: of what it takes away, and of its own new files. An append selects no row, unless its
    rows come from the table.
    """

    def __init__(self, insert: Insert, snapshot: Snapshot | None, read: VersionsRead) -> None:
        self._insert, self._snapshot, self._read = insert, snapshot, read
        self._taking = insert.takes(snapshot) if insert.takes is not None and snapshot is not None else None

    def stage(self, ours: Transaction, runtime: Runtime) -> Transaction:
        """Ours with its new rows, and without those that they replace."""
        metadata = ours.metadata
        assert metadata is not None, "a transaction that creates a table brings its metadata"
        adds = self._insert.stage(metadata)
        ours = replace(
            ours,
            does=replace(ours.does, adds=adds),
            identity=replace(ours.identity, own_numbers=self._insert.own_numbers()),
        ).with_counts(**_metrics(adds), **self._of_a_batch(adds))
        ours = ours.with_steps(self._insert.steps())
        if self._taking is not None:
            taken = self._taking.take(adds, metadata, runtime)
            ours = replace(join_transactions(ours, taken), reads=taken.reads)
        if self._snapshot is None or self._read.oldest is None:
            return ours
        return replace(ours, reads=whole_table(self._snapshot, held=self._read.held))

    def _of_a_batch(self, adds: pa.Table) -> dict[str, int]:
        """What delta-spark counts of a batch that is appended, too; one that replaces rows is counted at the commit."""
        if self._insert.says_mode or self._taking is not None:
            return {}
        return {"numAddedFiles": len(adds), "numRemovedFiles": 0}

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._insert.log.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold rows to be taken away; any, where the new rows were computed from the table's."""
        if self._read.oldest is not None:
            return files
        return self._taking.could_match(files) if self._taking else files.slice(0, 0)

    def matches(self, files: pa.Table) -> Marks:
        """The rows to be taken away."""
        return self._taking.matches(files) if self._taking else {}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Take these rows away too, which blind appends brought before the place where this overwrite stands."""
        assert self._taking is not None, "an append selects no row"
        return self._taking.redo(files, rows)

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The values of a few rows that would have been taken away."""
        return self._taking.sample(file, rows) if self._taking else []

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """What could be added to the condition of what is taken away."""
        return self._taking.narrower(ours, file) if self._taking else None

    def discard(self) -> None:
        """Remove what was staged."""
        self._insert.discard()
        if self._taking is not None:
            self._taking.discard()

    def finish(self) -> None:
        """Say that what was staged is committed."""
        self._insert.finish()
        if self._taking is not None:
            self._taking.finish()
