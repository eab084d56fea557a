"""Places: where the table of a run stands, and which engine works on it.

Knows stores and engines. A place makes the table of a `Setup` once and gives every run a copy of its own. In memory by
default; the laboratory has one on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, cast
from uuid import UUID

import pyarrow as pa

from anabranch._log.log import forget
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.merges import Action, Clause, MergePlan, SourceColumn
from anabranch._protocol.merges import When as When_
from anabranch._storage import Store
from anabranch._storage.open import mounted
from anabranch._transaction.retry import RetryPolicy, Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append as AppendCommand
from anabranch.commands.engine import Engine
from anabranch.commands.opening import open_log
from anabranch.testing.arrow_engine import ArrowEngine, read_from
from anabranch.testing.stores import DictStore, StoredObject
from laboratory.plans import Setup
from laboratory.statements import COLUMNS, Assignment, Copy, Merge, Plus, Row, Take, When
from laboratory.verbs import Session, play, table_of

RETRY = RetryPolicy(attempts=60, seconds=3_600.0, unknown_seconds=120.0)
EPOCH_MS = 1_800_000_000_000
_numbers = count()


@dataclass(frozen=True)
class Base:
    """A table to start from: its store, and its snapshot where the place keeps one."""

    store: Store
    version: int
    snapshot: Snapshot | None = None


class Place(Protocol):
    """Where runs take place."""

    def base(self, setup: Setup, now_ms: Callable[[], int]) -> Base:
        """A fresh copy of the setup's table, by the clock of the run."""
        ...

    def engine(self, new_id: Callable[[], UUID], store: Store) -> Engine:
        """The engine of one writer, on the table in a store."""
        ...

    def value(self, assignment: Assignment) -> Any:
        """What the engine takes for an assignment's value."""
        ...

    def matching(self, merge: Merge) -> MergePlan:
        """A MERGE's condition and clauses, in the engine's words."""
        ...

    def source(self, select: Copy, location: str, version: int, rows: pa.Table) -> Any:
        """What an INSERT SELECT reads of a version of the table at a location; these rows, if all is well."""
        ...


class InMemory:
    """Tables in dictionaries, rows by Arrow: thousands of runs a minute.

    Args:
        properties: of every table, besides those of its setup.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = dict(properties or {})
        self._made: dict[Setup, tuple[Mapping[str, StoredObject], Snapshot]] = {}

    def base(self, setup: Setup, now_ms: Callable[[], int]) -> Base:
        """A copy of the table, which is made once."""
        if setup not in self._made:
            self._made[setup] = self._make(setup)
        kept, snapshot = self._made[setup]
        return Base(DictStore(snapshot.table, kept, now_ms), snapshot.version, snapshot)

    def engine(self, new_id: Callable[[], UUID], store: Store) -> Engine:
        """An engine of Arrow rows."""
        return ArrowEngine(new_id)

    def value(self, assignment: Assignment) -> Any:
        """A plain value, or a function of the old row."""
        if not isinstance(assignment, Plus):
            return assignment.value
        column, step = assignment.column, assignment.step
        return lambda row: None if row[column] is None else row[column] + step

    def matching(self, merge: Merge) -> MergePlan:
        """Functions of both rows."""
        clauses = tuple(_clause(when) for when in merge.clauses)
        return MergePlan(lambda row, source: merge.matches(_plain(row), _plain(source)), clauses)

    def source(self, select: Copy, location: str, version: int, rows: pa.Table) -> pa.Table:
        """The rows, which say where they come from."""
        return read_from(rows, version)

    def _make(self, setup: Setup) -> tuple[Mapping[str, StoredObject], Snapshot]:
        store = DictStore(f"memory://laboratory/base-{next(_numbers)}", now_ms=lambda: EPOCH_MS)
        with mounted(store) as location:
            make(setup, location, store, self, self._properties)
            snapshot = open_log(location).snapshot()
            _ = snapshot.files
            forget(location)
        return dict(store.kept), snapshot


def _plain(row: Mapping[str, Any]) -> Row:
    return tuple(row[name] for name in COLUMNS)


def _clause(when: When) -> Clause:
    inserts = when.kind == "not matched"
    action: Action = "insert" if inserts else "delete" if when.sets is None else "update"

    def holds(row: Mapping[str, Any], source: Mapping[str, Any]) -> bool | None:
        return when.where.truth(_plain(source if inserts else row))

    columns = [Take(name) for name in COLUMNS] if inserts else when.sets or ()
    return Clause(cast(When_, when.kind), action, holds, {each.column: _merged(each) for each in columns})


def _merged(assignment: Assignment | Take) -> Any:
    if isinstance(assignment, Take):
        return SourceColumn(assignment.column)
    return lambda row, source: assignment.of(_plain(row))


def make(setup: Setup, location: str, store: Store, place: Place, properties: Mapping[str, str] | None = None) -> None:
    """Create the table of a setup at a location, perhaps with further properties."""
    ids = (UUID(int=(next(_numbers) << 32) | n) for n in count(1))
    runtime = Runtime(now_ms=lambda: EPOCH_MS, new_id=lambda: next(ids), user=lambda: "setup")
    for rows in setup.files:
        partition_by = ("p",) if setup.partitioned else None
        AppendCommand(location, table_of(rows), partition_by, {**_properties(setup), **(properties or {})}).run(
            context=RunContext(runtime=runtime)
        )
    session = Session(location, store, place.engine(runtime.new_id, store), place, RETRY, runtime, "before")
    for statement in setup.before:
        play(statement, session)


def _properties(setup: Setup) -> dict[str, str]:
    return {
        "delta.isolationLevel": setup.isolation,
        "anabranch.conflictResolution": setup.resolution,
        "delta.enableDeletionVectors": str(setup.vectors).lower(),
        "delta.checkpointInterval": str(setup.checkpoints),
        **({"delta.enableChangeDataFeed": "true"} if setup.feed else {}),
        **({"delta.enableRowTracking": "true"} if setup.row_ids else {}),
        "anabranch.rowsInErrors": "false",  # messages are not what is tried here, and cost reads
    }
