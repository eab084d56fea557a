"""The race: several writers read one version and then commit, each when it is ready.

Every writer waits at the phase ``read`` until all have pinned the same version, so that each is really concurrent with
all others: later writers are checked against earlier ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from anabranch._api.merge_builder import DeltaMergeBuilder
from anabranch._cli.demo.flights import KEY
from anabranch._protocol.layout.clustering import paths_of
from anabranch._spark.engine import SparkEngine
from anabranch._sql.conditions import resolve_condition
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.phases import listen, unlisten
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import Delete
from anabranch.commands.dml.update import Update
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.opening import open_log
from anabranch.errors import DeltaConcurrentModificationException

CORRECTED = ("UA", "B6", "EV", "DL")
ZORDER = ("carrier", "dep_delay")


@dataclass(frozen=True)
class Writer:
    """A writer: its name, a description of at most 37 characters, and its command, given the table's path."""

    name: str
    says: str
    run: Callable[[str], CommitResult | None]


@dataclass
class Run:
    """The outcome of one writer."""

    writer: Writer
    phase: str = "waiting"
    committed: CommitResult | None = None
    refused: DeltaConcurrentModificationException | None = None
    seconds: float = 0.0


@dataclass
class Race:
    """Some writers on one table."""

    path: str
    runs: list[Run] = field(default_factory=list)

    def start(self, writers: list[Writer]) -> None:
        """Runs all writers at once, and waits for the last."""
        self.runs = [Run(writer) for writer in writers]
        gate = threading.Barrier(len(writers))
        with ThreadPoolExecutor(len(writers)) as pool:
            for finished in [pool.submit(self._one, run, gate) for run in self.runs]:
                finished.result()

    def _one(self, run: Run, gate: threading.Barrier) -> None:
        def on_phase(phase: str) -> None:
            run.phase = phase
            if phase == "read":
                gate.wait()

        listen(on_phase)
        began = time.monotonic()
        try:
            run.committed = run.writer.run(self.path)
        except DeltaConcurrentModificationException as refused:
            run.refused = refused
        except BaseException:
            gate.abort()
            raise
        finally:
            unlisten(on_phase)
            run.seconds = time.monotonic() - began

    @property
    def refusals(self) -> list[DeltaConcurrentModificationException]:
        """The conflicts, in the writers' order."""
        return [run.refused for run in self.runs if run.refused is not None]


def writers(engine: SparkEngine, late: pa.Table, changes: Mapping[str, pa.Table]) -> list[Writer]:
    """The writers of the demo: all touch the same files, no two the same row; one moves all rows to other files.
    ``changes`` are rows to merge by `KEY` for each carrier without a correction.
    """
    corrections = [_correction(engine, carrier) for carrier in CORRECTED]
    purge = Writer("purge", "DELETE WHERE dep_time IS NULL", lambda path: _delete(engine, path, "dep_time IS NULL"))
    arrivals = Writer("late arrivals", f"append {len(late):,} rows", lambda path: Append(path, late).run())
    upserts = [_upsert(engine, carrier, rows) for carrier, rows in changes.items()]
    return [*corrections, *upserts, purge, _zorder(engine), arrivals]


def _zorder(engine: SparkEngine) -> Writer:
    """Moves all rows to other files, in the middle of the race."""
    columns = paths_of(ZORDER)
    says = f"ZORDER BY {', '.join(ZORDER)}"
    return Writer("optimize", says, lambda path: Optimize(path, zorder_by=columns).run(engine).committed)


def _upsert(engine: SparkEngine, carrier: str, rows: pa.Table) -> Writer:
    on = " AND ".join(f"t.{name} = s.{name}" for name in KEY)
    says = f"MERGE {len(rows):,} rows by key"
    values, delay = {name: f"s.{name}" for name in rows.column_names}, {"dep_delay": "s.dep_delay"}

    def run(path: str) -> CommitResult | None:
        source = engine.rows(rows).alias("s")
        builder = DeltaMergeBuilder(path, engine, source, on, "t").whenMatchedUpdate(set=delay)
        snapshot = open_log(path).snapshot()
        merge = builder.whenNotMatchedInsert(values=values).command(snapshot)
        return merge.run(engine, RunContext(at=snapshot)).committed

    return Writer(f"schedule {carrier}", says, run)


def _correction(engine: SparkEngine, carrier: str) -> Writer:
    where, set_ = f"carrier = '{carrier}' AND dep_delay > 0", {"dep_delay": "dep_delay - 1"}
    says = f"UPDATE the late flights of {carrier}"
    return Writer(f"correct {carrier}", says, lambda path: _update(engine, path, set_, where))


def _update(engine: SparkEngine, path: str, values: Mapping[str, str], where: str) -> CommitResult | None:
    snapshot = open_log(path).snapshot()
    return (
        Update(path, values, resolve_condition(where, snapshot, engine)).run(engine, RunContext(at=snapshot)).committed
    )


def _delete(engine: SparkEngine, path: str, where: str) -> CommitResult | None:
    snapshot = open_log(path).snapshot()
    return Delete(path, resolve_condition(where, snapshot, engine)).run(engine, RunContext(at=snapshot)).committed
