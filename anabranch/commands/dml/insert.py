"""Inserting rows: the shared way of append, overwrite and creation.

Knows what a new table looks like, and what an insert reads: an append nothing, an overwrite the rows that it takes away
(`Taking`). How rows become files is passed in (`Stage`), so that Spark's writer and the small Arrow writer share it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
from pyroaring import BitMap64

from anabranch.commands.clustering import check_changeable, clustered, clusters_of
from anabranch.commands.context import Newest, RunContext
from anabranch.commands.idempotence import is_written, with_txn
from anabranch.commands.opening import live_rows
from anabranch.commands.sources import whole_table
from anabranch.errors import InvalidOption, ProtocolChangedException, TableAlreadyExists
from anabranch.errors.rows import note
from anabranch.log.log import Log
from anabranch.log.snapshot import Snapshot
from anabranch.log.vectors import vector_of
from anabranch.protocol import iceberg
from anabranch.protocol.actions import AppTransaction, FileRow, Metadata
from anabranch.protocol.actions import Protocol as TableProtocol
from anabranch.protocol.features.requested_by_properties import NO_REQUESTS, Requested, requested, without_requests
from anabranch.protocol.features.row_tracking import check_columns as check_hidden
from anabranch.protocol.features.row_tracking import with_columns
from anabranch.protocol.features.table_features import check_writable, needed_by, protocol_for, upgraded
from anabranch.protocol.layout.clustering import Path
from anabranch.protocol.layout.file_sets import Marks
from anabranch.protocol.properties import (
    IGNORE_DEFAULTS,
    PROTECTED_BEFORE,
    Properties,
    check_retention,
    described,
    validate,
)
from anabranch.protocol.rules.allowed import check_metadata
from anabranch.protocol.rules.column_names import check_spelling
from anabranch.protocol.rules.identity import values_kept
from anabranch.protocol.schema.column_mapping import highest_number, is_mapped
from anabranch.protocol.schema.keys import check_keys
from anabranch.protocol.schema.leaves import check_stats_columns
from anabranch.protocol.schema.types import VOID, Struct, schema_json
from anabranch.protocol.session_says import current
from anabranch.transaction.commit import Committed, commit
from anabranch.transaction.conflicts import RebaseHandler
from anabranch.transaction.phases import reach
from anabranch.transaction.rebase import joined
from anabranch.transaction.retry import Runtime
from anabranch.transaction.transaction import CommitInfo, Declarations, IdentityUse, Transaction

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")
Stage = Callable[[Metadata], pa.Table]
"""Writes the rows under this metadata and gives the new files; may run twice, when a creation race is lost."""


@dataclass(frozen=True)
class NewTable:
    """What a table is created with, where there is none; the partitioning is checked where there is one.

    ``schema`` may be a function, which is called only to create: rows that fit a table need not be able to make one.
    ``cluster_by`` is None where nothing is said of it.
    """

    schema: Struct | Callable[[], Struct]
    partition_columns: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    cluster_by: tuple[Path, ...] | None = None


class Taking(RebaseHandler, Protocol):
    """What an overwrite takes away of the table that there is, as the hands of its transaction."""

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

    ``takes`` makes the hands of what an overwrite takes away, ``txn`` says how far an application has written with it,
    ``parameters`` are further ones for the history, ``at`` is the version for which it was understood (None: there was
    no table). ``computed_from``: the rows were computed from those of ``at``, so every change since may matter; this is
    the newest version that the user has seen. ``writer`` is by whom identity values are reserved;
    ``own_numbers`` says, once rows are staged, of which identity columns they came with values. ``evolve`` makes of a
    table's metadata what the rows make of it: the same where they change nothing. ``lays_out``: the partitioning and
    clustering of ``new`` take the place of the table's.
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
    at: Snapshot | Newest | None = "newest"
    computed_from: int | None = None
    writer: str | None = None
    own_numbers: Callable[[], frozenset[str]] = frozenset
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
    known = snapshot if insert.computed_from is None else insert.log.newest()  # else the base may be older
    if is_written(insert.txn, known, runtime.now_ms()):
        return None
    if snapshot is not None and insert.mode in ("error", "errorifexists"):
        raise TableAlreadyExists(table=insert.log.table)
    if snapshot is not None and insert.mode == "ignore":
        return None
    began = runtime.now_ms()
    ours = _transaction(insert, snapshot, runtime)
    handler = InsertHands(insert, snapshot)
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
    _check_layout(insert.new, snapshot.table, after.partition_columns)
    ours = replace(ours, info=replace(ours.info, parameters=_parameters(insert, after.partition_columns)))
    return clustered(ours, clusters_of(insert.new.cluster_by, after, snapshot, lays_out=insert.lays_out))


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
    asked = requested(base.table, properties).on_top_of(base.protocol)
    protocol = upgraded(asked, metadata) or (None if asked == base.protocol else asked)
    iceberg.check_partitioning(base.metadata, metadata)
    check_columns(metadata.schema, metadata.partition_columns)
    check_spelling(metadata, base.metadata)
    check_hidden(metadata)
    check_writable(base.table, protocol or base.protocol, metadata, changes_rows=bool(ours.touched))
    return replace(ours, says=replace(ours.says, metadata=metadata, protocol=protocol))


def _creating(insert: Insert, runtime: Runtime) -> Transaction:
    """The first version of a table."""
    new = completed(insert.new)
    metadata = new_metadata(new, runtime)
    note(insert.log.table, -1, metadata.configuration)
    check_metadata(metadata, insert.log.table)
    note(insert.log.table, -1, metadata.configuration)
    protocol = first_protocol(insert.log.table, new, metadata)
    check_writable(insert.log.table, protocol, metadata, changes_rows=False)
    created = Transaction.on(
        None,
        str(runtime.new_id()),
        CommitInfo(
            insert.operation, _parameters(insert, metadata.partition_columns), user_metadata=insert.user_metadata
        ),
        table=insert.log.table,
        says=Declarations(metadata=metadata, protocol=protocol),
    )
    return clustered(created, clusters_of(insert.new.cluster_by, metadata))


def first_protocol(table: str, new: NewTable, metadata: Metadata) -> TableProtocol:
    """The protocol of a new table: what its metadata needs, and what its properties ask for."""
    asked = requested(table, new.properties)
    if asked == Requested():
        return protocol_for(metadata, vectors=Properties(metadata.configuration).vectors)
    return asked.least_for(needed_by(metadata) | asked.unversioned)


def completed(new: NewTable) -> NewTable:
    """A new table with the properties that its session gives every one; its own count more, whatever the case of their
    names. The property ``comment`` is its description, unless it has one.

    Where ``delta.ignoreProtocolDefaults`` is true, those that speak of the protocol are left out.
    """
    defaults = current().defaults()
    own, comment = described(new.properties, None)
    if {**defaults, **own}.get(IGNORE_DEFAULTS, "false").strip().lower() == "true":
        defaults = without_requests(defaults)
    description = comment if new.description is None else new.description
    return replace(new, properties={**defaults, **own}, description=description)


def new_metadata(new: NewTable, runtime: Runtime, before: Metadata | None = None, *, named: bool = False) -> Metadata:
    """The metadata of a new table; deletion vectors are on unless the properties say otherwise. Numbers of columns that
    a table had ``before`` are not given again; where files have the columns already, they are ``named`` as there.

    Raises:
        InvalidProperty, InvalidOption: the table cannot be created so.
    """
    properties = iceberg.with_defaults(without_requests(new.properties))
    validate(properties)
    check_retention(properties)
    columns = new.partition_columns or ()
    schema = new.schema() if callable(new.schema) else new.schema
    check_columns(schema, columns)
    check_keys(schema, properties)
    check_stats_columns(schema, columns, properties)
    older = requested("", new.properties).is_older_than_vectors
    vectors = properties if older else {"delta.enableDeletionVectors": "true", **properties}
    metadata = Metadata(
        id=str(runtime.new_id()),
        name=new.name,
        description=new.description,
        schema_string=schema_json(schema),
        partition_columns=columns,
        configuration={**vectors, **(highest_number(before.configuration) if before and is_mapped(vectors) else {})},
        created_time=runtime.now_ms(),
    )
    metadata = metadata.with_schema(schema, runtime.new_id, named=named) if is_mapped(vectors) else metadata
    check_spelling(metadata)
    return with_columns(metadata, runtime.new_id, old=before)


def replaced_metadata(new: NewTable, metadata: Metadata, runtime: Runtime) -> Metadata:
    """What REPLACE TABLE makes of a table's metadata: nothing of it stays but who the table is, which identity values
    it has given, and what guards its history.
    """
    made = new_metadata(new, runtime, metadata)  # its own time: it is never the same metadata
    guard = {key: value for key, value in metadata.configuration.items() if key == PROTECTED_BEFORE}
    made = replace(made, id=metadata.id, configuration={**made.configuration, **guard})
    return values_kept(metadata, made)


def check_columns(schema: Struct, partition_columns: tuple[str, ...]) -> None:
    """Hold that a table can have these columns and this partitioning.

    Raises:
        InvalidOption: with the reason.
    """
    lowered = [name.lower() for name in schema.names]
    doubled = sorted({name for name in lowered if lowered.count(name) > 1})
    if doubled:
        raise InvalidOption(option="columns", value=doubled, reason="a column is named twice (case does not count).")
    if not schema.names:
        raise InvalidOption(option="columns", value="none", reason="a table needs at least one column.")
    for name in partition_columns:
        found = schema.find(name)
        if found is None or found.name != name:
            raise InvalidOption(option="partitionBy", value=name, reason=f"the columns are {', '.join(schema.names)}.")
        if not isinstance(found.type, str):
            raise InvalidOption(option="partitionBy", value=name, reason="a nested column cannot partition a table.")
        if found.type in ("variant", VOID):
            raise InvalidOption(option="partitionBy", value=name, reason=f"a {found.type} cannot partition a table.")
    if partition_columns and len(partition_columns) == len(schema.names):
        raise InvalidOption(
            option="partitionBy", value=list(partition_columns), reason="one column must be left for the data."
        )


def _check_layout(new: NewTable, table: str, columns: tuple[str, ...]) -> None:
    """Refuse another partitioning than the table has, or is given now."""
    asked = new.partition_columns
    if asked is not None and tuple(asked) != columns:
        reason = f"the table at {table} is partitioned by {', '.join(columns) or 'nothing'}."
        raise InvalidOption(option="partitionBy", value=list(asked), reason=reason)


def _parameters(insert: Insert, partition_columns: tuple[str, ...]) -> dict[str, str]:
    names = {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}
    mode = names.get(insert.mode, "ErrorIfExists")
    return {"mode": mode, "partitionBy": json.dumps(list(partition_columns)), **insert.parameters}


def _metrics(adds: pa.Table) -> dict[str, int]:
    return {
        "numFiles": len(adds),
        "numOutputRows": live_rows(adds) or 0,
        "numOutputBytes": sum(adds["size"].to_pylist()),
    }


class InsertHands:
    """The hands of an insert: those of what it takes away, and its own new files. An append selects no row, unless its
    rows come from the table.
    """

    def __init__(self, insert: Insert, snapshot: Snapshot | None) -> None:
        self._insert, self._snapshot = insert, snapshot
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
        ).with_counts(**_metrics(adds))
        if self._taking is not None:
            taken = self._taking.take(adds, metadata, runtime)
            ours = replace(joined(ours, taken), reads=taken.reads)
        if self._snapshot is None or self._insert.computed_from is None:
            return ours
        return replace(
            ours, reads=whole_table(self._snapshot), stands=replace(ours.stands, must_follow=self._insert.computed_from)
        )

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._insert.log.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """The files that may hold rows to be taken away; any, where the new rows were computed from the table's."""
        if self._insert.computed_from is not None:
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
