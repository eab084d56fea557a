"""Inserting rows: the shared way of append, overwrite and creation.

Knows what a new table looks like, and what an insert reads: an append nothing, an overwrite every row. How rows
become files is passed in (`Stage`), so that Spark's writer and the small Arrow writer share it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyroaring import BitMap64

from anabranch.commands.delete import EVERY_ROW
from anabranch.commands.opening import live_rows
from anabranch.errors import AppendOnlyTable, InvalidOption, ProtocolChangedException, TableAlreadyExists
from anabranch.log.log import Log
from anabranch.log.snapshot import Snapshot
from anabranch.log.vectors import vector_of
from anabranch.protocol.actions import FileRow, Metadata
from anabranch.protocol.features import check_writable, protocol_for
from anabranch.protocol.filesets import Marks
from anabranch.protocol.properties import Properties, validate
from anabranch.protocol.schema import Struct, schema_json
from anabranch.protocol.stats import num_records
from anabranch.transaction.commit import Committed, commit
from anabranch.transaction.footprint import Reads, Source, Transaction
from anabranch.transaction.patience import Chance, Patience, patience_for
from anabranch.transaction.phases import reach

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")
Stage = Callable[[Metadata], pa.Table]
"""Writes the rows under this metadata and gives the new files; may run twice, when a creation race is lost."""


@dataclass(frozen=True)
class NewTable:
    """What a table is created with, where there is none; the partitioning is checked where there is one.

    ``schema`` may be a function, which is called only to create: rows that fit a table need not be able to make one.
    """

    schema: Struct | Callable[[], Struct]
    partition_columns: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None


@dataclass(frozen=True)
class Insert:
    """An insert about to run: where, how, and what to do with rows; ``discard`` and ``finish`` end its staging."""

    log: Log
    mode: str
    new: NewTable
    stage: Stage
    discard: Callable[[], None]
    finish: Callable[[], None]
    operation: str = "WRITE"
    user_metadata: str | None = None


def run_insert(insert: Insert, *, patience: Patience | None = None, chance: Chance | None = None) -> Committed | None:
    """Stage the rows and commit them; None where the mode is ``ignore`` and there is a table.

    An append that loses the race to create the table is staged again under the winner's metadata and lands.

    Raises:
        TableAlreadyExists: mode ``error`` and there is a table.
        ProtocolChangedException: another writer created the table meanwhile (an overwrite, or resolution ``file``).
    """
    chance = chance or Chance()
    try:
        return _once(insert, patience, chance)
    except _CreationRaceLost as race:
        if insert.mode != "append" or insert.log.snapshot().properties.conflict_resolution == "file":
            raise race.lost from None
        return _once(insert, patience, chance)


class _CreationRaceLost(Exception):
    """This very insert found that another writer created the table meanwhile."""

    def __init__(self, lost: ProtocolChangedException) -> None:
        super().__init__(str(lost))
        self.lost = lost


def _once(insert: Insert, patience: Patience | None, chance: Chance) -> Committed | None:
    snapshot = insert.log.newest()
    if snapshot is not None and insert.mode in ("error", "errorifexists"):
        raise TableAlreadyExists(table=insert.log.table)
    if snapshot is not None and insert.mode == "ignore":
        return None
    began = chance.now_ms()
    mine = _transaction(insert, snapshot, chance)
    reach("read")
    try:
        adds = insert.stage(mine.metadata or _existing(snapshot))
        reach("staged")
    except Exception:
        insert.discard()
        raise
    mine = replace(mine, adds=adds).with_counts(**_metrics(adds), executionTimeMs=chance.now_ms() - began)
    hands = InsertHands(insert, snapshot)
    try:
        committed = commit(mine, insert.log, hands, patience or patience_for(blind=mine.is_blind), chance)
    except ProtocolChangedException as lost:
        if snapshot is None and lost.facts.get("txn_id") == mine.txn_id:
            raise _CreationRaceLost(lost) from None
        raise
    insert.finish()
    return committed


def _transaction(insert: Insert, snapshot: Snapshot | None, chance: Chance) -> Transaction:
    """Mine before its files are staged."""
    if snapshot is None:
        return _creating(insert, chance)
    overwrites = insert.mode == "overwrite"
    check_writable(snapshot.table, snapshot.protocol, snapshot.metadata, changes_rows=overwrites)
    _check_layout(insert.new, snapshot)
    mine = Transaction(
        base=snapshot,
        table=snapshot.table,
        txn_id=str(chance.new_id()),
        operation=insert.operation,
        parameters=_parameters(insert.mode, snapshot.partition_columns),
        isolation=snapshot.properties.isolation_level,
        resolution=snapshot.properties.conflict_resolution,
        user_metadata=insert.user_metadata,
    )
    return _replacing(mine, snapshot) if overwrites else mine


def _replacing(mine: Transaction, snapshot: Snapshot) -> Transaction:
    """An overwrite: DELETE of every row, and an insert."""
    if snapshot.properties.append_only:
        raise AppendOnlyTable(table=snapshot.table, operation="overwrite")
    rows = snapshot.files.to_pylist()
    sources = {row["path"]: Source(row, vector_of(snapshot.store, row)) for row in rows}
    return replace(mine, reads=Reads(EVERY_ROW, frozenset(sources)), removes=frozenset(sources), sources=sources)


def _creating(insert: Insert, chance: Chance) -> Transaction:
    """The first version of a table."""
    metadata = new_metadata(insert.new, chance)
    properties = Properties(metadata.configuration)
    return Transaction(
        base=None,
        table=insert.log.table,
        txn_id=str(chance.new_id()),
        operation=insert.operation,
        parameters=_parameters(insert.mode, metadata.partition_columns),
        isolation=properties.isolation_level,
        resolution=properties.conflict_resolution,
        metadata=metadata,
        protocol=protocol_for(metadata.schema, vectors=properties.vectors),
        user_metadata=insert.user_metadata,
    )


def new_metadata(new: NewTable, chance: Chance) -> Metadata:
    """The metadata of a new table; deletion vectors are on unless the properties say otherwise.

    Raises:
        InvalidProperty, InvalidOption: the table cannot be created so.
    """
    validate(new.properties)
    columns = new.partition_columns or ()
    schema = new.schema() if callable(new.schema) else new.schema
    _check_columns(schema, columns)
    vectors = {"delta.enableDeletionVectors": "true", **new.properties}
    return Metadata(
        id=str(chance.new_id()),
        name=new.name,
        description=new.description,
        schema_string=schema_json(schema),
        partition_columns=columns,
        configuration=vectors,
        created_time=chance.now_ms(),
    )


def _check_columns(schema: Struct, partition_columns: tuple[str, ...]) -> None:
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
    if partition_columns and len(partition_columns) == len(schema.names):
        raise InvalidOption(
            option="partitionBy", value=list(partition_columns), reason="one column must be left for the data."
        )


def _check_layout(new: NewTable, snapshot: Snapshot) -> None:
    """Refuse another partitioning than the table has."""
    asked = new.partition_columns
    if asked is not None and tuple(asked) != snapshot.partition_columns:
        reason = (
            f"the table at {snapshot.table} is partitioned by {', '.join(snapshot.partition_columns) or 'nothing'}."
        )
        raise InvalidOption(option="partitionBy", value=list(asked), reason=reason)


def _existing(snapshot: Snapshot | None) -> Metadata:
    assert snapshot is not None
    return snapshot.metadata


def _parameters(mode: str, partition_columns: tuple[str, ...]) -> dict[str, str]:
    names = {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}
    return {"mode": names.get(mode, "ErrorIfExists"), "partitionBy": json.dumps(list(partition_columns))}


def _metrics(adds: pa.Table) -> dict[str, int]:
    return {
        "numFiles": len(adds),
        "numOutputRows": live_rows(adds) or 0,
        "numOutputBytes": sum(adds["size"].to_pylist()),
    }


class InsertHands:
    """The hands of an insert: an overwrite selects every row, an append none."""

    def __init__(self, insert: Insert, snapshot: Snapshot | None) -> None:
        self._insert, self._snapshot = insert, snapshot

    def vector(self, file: FileRow) -> BitMap64:
        """The deleted positions of a file."""
        return vector_of(self._insert.log.store, file)

    def could_match(self, files: pa.Table) -> pa.Table:
        """Every file: an overwrite reads them all."""
        return files

    def matches(self, files: pa.Table) -> Marks:
        """Every file that has a live row, with the positions of its live rows."""
        rows = {row["path"]: self._live(row) for row in files.to_pylist()}
        return {path: live for path, live in rows.items() if live}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Remove the files that blind appends brought in before the place where this overwrite stands."""
        assert self._snapshot is not None
        found = {row["path"]: Source(row, self.vector(row)) for row in files.to_pylist()}
        blank = Transaction(
            base=self._snapshot,
            table=self._snapshot.table,
            txn_id="",
            operation="",
            parameters={},
            isolation="",
            resolution="",
        )
        return replace(blank, removes=frozenset(found), sources=found)

    def discard(self) -> None:
        """Remove what was staged."""
        self._insert.discard()

    def _live(self, row: FileRow) -> BitMap64:
        records = num_records(row.get("stats"))
        if records is None:
            return BitMap64([0])  # unknown: some row may be alive, whatever a vector says
        return BitMap64(range(records)) - self.vector(row)
