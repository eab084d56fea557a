"""No live file is ever missing: writers and VACUUM RETAIN 0 HOURS at once, in hundreds of seeded interleavings, where
the writers also sleep for so long that they are taken for dead.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest

from anabranch._expressions import Context, condition
from anabranch._log.commits import Commit
from anabranch._log.log import Log, forget
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch._protocol.layout.paths import store_name
from anabranch._protocol.merges import MergePlan
from anabranch._storage.local import LocalStore
from anabranch._transaction.fence import Fence, start_tags, starts_in
from anabranch._transaction.phases import reach
from anabranch._transaction.retry import RetryPolicy, Runtime
from anabranch._transaction.transaction import Transaction
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import Delete
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.vacuum import Vacuum, VacuumPlan
from anabranch.commands.maintenance.vacuum_candidates import Candidates
from anabranch.commands.maintenance.vacuum_retained import Retained
from anabranch.commands.opening import open_log
from anabranch.commands.queries.read import Read
from anabranch.commands.rewriting import Rewrite
from anabranch.errors import (
    AnabranchError,
    DeltaConcurrentModificationException,
    LiveFilesNotConfirmed,
    StagedFilesVacuumed,
)
from anabranch.testing import PHASES, ArrowEngine, DictStore, ObservedStore, at_phase, mounted
from anabranch.testing.stores import StoredObject
from laboratory.scheduler import Scheduler
from tests.support.patience import a_tick, end
from tests.support.raw_logs import info, put_commit
from tests.support.tiers import examples
from tests.support.worlds import World, insert_all, update_all

RETRY = RetryPolicy(attempts=60, seconds=3_600.0)
ROUNDS = 300
_numbers = count(1)

Rows = dict[int, int]


class Guarded(DictStore):
    """A store that knows at each moment which files the newest version needs, and notes whoever takes one away."""

    def __init__(
        self, url: str, kept: Mapping[str, StoredObject] | None = None, now_ms: Callable[[], int] | None = None
    ) -> None:
        super().__init__(url, kept, now_ms or (lambda: 0))
        self.live: dict[str, set[str]] = {}
        self.broken: list[str] = []
        for name in sorted(kept or {}):
            if name.startswith("_delta_log/") and name.endswith(".json"):
                self._follow(name, self.get(name))

    def put_if_absent(self, name: str, data: bytes) -> None:
        super().put_if_absent(name, data)
        if name.endswith(".json"):
            self._follow(name, data)

    def delete(self, name: str) -> None:
        self.broken += [
            f"{name} was deleted, and {path} needs it" for path, names in self.live.items() if name in names
        ]
        super().delete(name)

    def _follow(self, commit: str, data: bytes) -> None:
        actions = [json.loads(line) for line in data.splitlines()]
        for action in (each["remove"] for each in actions if "remove" in each):
            self.live.pop(action["path"], None)
        for action in (each["add"] for each in actions if "add" in each):
            names = {store_name(self.url, action["path"]) or ""}
            if (vector := action.get("deletionVector")) and vector["storageType"] == "u":
                names.add(Descriptor.from_row(vector).name)
            self.live[action["path"]] = names
            self.broken += [f"{commit} names {name}, which is not there" for name in names if name not in self.kept]
        changes = [store_name(self.url, each["cdc"]["path"]) or "" for each in actions if "cdc" in each]
        self.broken += [f"{commit} names {name}, which is not there" for name in changes if name not in self.kept]


@dataclass
class Writer:
    """One writer of a round: what it runs, and what its rows are afterwards."""

    name: str
    run: Callable[[str, ArrowEngine, Runtime], Any]
    after: Callable[[Rows], Rows]


def where(location: str, text: str) -> Condition:
    snapshot = open_log(location).snapshot()
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return condition(text, Context(snapshot.table, snapshot.schema, now, "UTC", lambda names: True))


def merged(location: str, engine: ArrowEngine, runtime: Runtime) -> Any:
    source = pa.table({"id": [3, 300], "x": [33, 33], "p": [0, 0]})
    clauses = update_all("x"), insert_all("id", "x", "p")
    matching = MergePlan(lambda row, source: row["id"] == source["id"], clauses, keys=(("id", "id"),))
    return Merge(location, source, matching, where(location, "id >= 0")).run(
        engine, RunContext(runtime=runtime, retry=RETRY)
    )


def reorganised(location: str, engine: ArrowEngine, runtime: Runtime) -> Any:
    log = open_log(location)
    snapshot = log.snapshot()
    reach("read")
    return Rewrite(snapshot, snapshot.files).run(engine, log, RunContext(retry=RETRY, runtime=runtime))


def appended(location: str, engine: ArrowEngine, runtime: Runtime) -> Any:
    return Append(location, [{"id": 100, "x": 1, "p": 0}, {"id": 101, "x": 1, "p": 1}]).run(
        context=RunContext(runtime=runtime)
    )


def written(location: str, engine: ArrowEngine, runtime: Runtime) -> Any:
    return Write(location, pa.table({"id": [200], "x": [2], "p": [1]}), "append").run(
        engine, RunContext(runtime=runtime)
    )


def updated(location: str, engine: ArrowEngine, runtime: Runtime) -> Any:
    return Update(location, {"x": 11}, where(location, "id = 1")).run(engine, RunContext(runtime=runtime, retry=RETRY))


def deleted(location: str, engine: ArrowEngine, runtime: Runtime) -> Any:
    return Delete(location, where(location, "id = 2")).run(engine, RunContext(runtime=runtime, retry=RETRY))


def replaced(location: str, engine: ArrowEngine, runtime: Runtime) -> Any:
    rows = pa.table({"id": [4], "x": [44], "p": [0]})
    write = Write(location, rows, "overwrite", replace_where=where(location, "id = 4"))
    return write.run(engine, RunContext(runtime=runtime, retry=RETRY))


WRITERS = [
    Writer("append", appended, lambda rows: {**rows, 100: 1, 101: 1}),
    Writer("bulk append", written, lambda rows: {**rows, 200: 2}),
    Writer("update", updated, lambda rows: {**rows, 1: 11}),
    Writer("delete", deleted, lambda rows: {id: x for id, x in rows.items() if id != 2}),
    Writer("merge", merged, lambda rows: {**rows, 3: 33, 300: 33}),
    Writer("replaceWhere", replaced, lambda rows: {**rows, 4: 44}),
    Writer("REORG", reorganised, lambda rows: rows),
]
BASE: Rows = {id: id * 10 for id in range(6)} | {8: 81}


def base_of(vectors: bool, partitioned: bool, records: bool) -> Mapping[str, StoredObject]:
    """A table with garbage, with vectors where it may have them, and with its changes where it ``records`` them."""
    store = Guarded(f"memory://fence/base-{next(_numbers)}")
    with mounted(store) as location:
        world = World(location)
        rows = [{"id": id, "x": id * 10, "p": id % 2} for id in (*range(6), 7, 8)]
        properties = {"delta_enableDeletionVectors": str(vectors).lower(), "delta_isolationLevel": "WriteSerializable"}
        properties["delta_enableChangeDataFeed"] = str(records).lower()
        world.create(rows, partition_by=("p",) if partitioned else (), anabranch_rowsInErrors="false", **properties)
        world.delete("id = 7")
        world.update("id = 8", x=80)
        world.update("id = 8", x=81)
        assert {row["id"]: row["x"] for row in world.rows()} == BASE
        forget(store.url)
    return dict(store.kept)


BASES: dict[tuple[bool, bool, bool], Mapping[str, StoredObject]] = {}


class Dice:
    """Goes on with the same task, or at some moments with another."""

    def __init__(self, rng: random.Random, switches: float) -> None:
        self._rng, self._switches, self.turns = rng, switches, list[tuple[int, int]]()

    def choose(self, step: int, ready: Sequence[int], current: int | None, moment: str) -> int:
        if current in ready and self._rng.random() >= self._switches:
            return current
        return self._rng.choice(list(ready))


@dataclass
class Round:
    """One interleaving of writers and VACUUMs."""

    seed: int
    told: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def play(self) -> Round:
        rng = random.Random(self.seed)
        kind = (rng.random() < 0.6, rng.random() < 0.3, self.seed % 5 < 2)
        if kind not in BASES:
            BASES[kind] = base_of(*kind)
        writers = rng.sample(WRITERS, rng.choice((1, 1, 2)))
        dead_after = rng.choice((0.0, 0.0, 600.0))
        scheduler = Scheduler(Dice(rng, rng.choice((0.01, 0.03, 0.1, 0.4))))
        clock = count(1_800_000_000_000)
        store = Guarded(f"memory://fence/round-{next(_numbers)}", BASES[kind], lambda: next(clock))
        stage = ObservedStore(store, before=lambda call: scheduler.pause(f"{call.method} {call.about}"))
        expected, rows = BASE, {}
        with mounted(stage) as location:
            committed: list[Writer] = []
            tasks = [self._task(w, location, self._runtime(i, clock), committed) for i, w in enumerate(writers)]
            for i in range(rng.choice((1, 1, 2))):
                tasks.append(self._vacuum(location, dead_after, rng, self._runtime(len(writers) + i, clock)))
            scheduler.run(tasks)
            for each in committed:
                expected = each.after(expected)
            if not store.broken and not self.missed:
                found = ArrowEngine().rows(Read(location).run())
                rows = {row["id"]: row["x"] for row in found}
                assert len(rows) == len(found), f"seed {self.seed}: a row stands there twice: {found}"
            forget(store.url)
        broken = store.broken + self.missed
        self.broken = broken + ([] if rows == expected or broken else [f"{rows} is not {expected}"])
        return self

    def _runtime(self, who: int, clock: Any) -> Runtime:
        ids = (UUID(int=((who + 1) << 96) | (self.seed << 32) | n) for n in count(1))
        now = lambda: next(clock)  # noqa: E731
        return Runtime(now, lambda: next(clock) / 1000, lambda s: None, lambda: 1.0, lambda: next(ids), lambda: "t")

    def _task(self, writer: Writer, location: str, runtime: Runtime, committed: list[Writer]) -> Callable[[], None]:
        def run() -> None:
            try:
                writer.run(location, ArrowEngine(runtime.new_id), runtime)
                committed.append(writer)
                self.told.append(f"{writer.name} committed")
            except AnabranchError as error:
                self.told.append(f"{writer.name} {type(error).__name__}")

        return run

    def _vacuum(self, location: str, dead_after: float, rng: random.Random, runtime: Runtime) -> Callable[[], None]:
        lite = rng.random() < 0.1
        command = Vacuum(location, 0, lite=lite, check_retention=False, dead_after_seconds=dead_after, threads=1)

        def run() -> None:
            try:
                done = command.run(context=RunContext(runtime=runtime))
            except LiveFilesNotConfirmed as error:
                self.missed.append(error.message)
                return
            self.told.append("VACUUM removed files" if done.files else "VACUUM found nothing")

        return run


def first_broken(rounds: int) -> Round | None:
    played = (Round(seed).play() for seed in range(rounds))
    return next((each for each in played if each.broken), None)


@pytest.mark.slow
def test_no_live_file_is_ever_missing_whatever_the_interleaving() -> None:
    told: Counter[str] = Counter()
    rounds = examples(ROUNDS, 25)
    for seed in range(rounds):
        played = Round(seed).play()
        assert not played.broken, f"seed {seed}: {played.told}: {played.broken}"
        told.update(played.told)
    assert told["VACUUM removed files"] > rounds / 2, told
    assert told["append committed"] == sum(n for word, n in told.items() if word.startswith("append ")), told
    for writer in WRITERS:
        assert told[f"{writer.name} committed"], told


def no_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fence, "restage_threatened", lambda self, ours, winners: ours)


def vectors_are_put_once(patch: pytest.MonkeyPatch) -> None:
    passed = Fence.restage_threatened

    def kept(self: Fence, ours: Transaction, winners: Sequence[Commit]) -> Transaction:
        now = passed(self, ours, winners)
        return ours if now.changes.adds["path"].equals(ours.changes.adds["path"]) else now

    patch.setattr(Fence, "restage_threatened", kept)


def no_second_look(patch: pytest.MonkeyPatch) -> None:
    keeping, known = VacuumPlan.keeping, dict[int, tuple[Any, Retained]]()

    def first(self: VacuumPlan, log: Log, snapshot: Snapshot, found: Candidates) -> Retained:
        return known.setdefault(id(found.files), (found.files, keeping(self, log, snapshot, found)))[1]

    patch.setattr(VacuumPlan, "keeping", first)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [no_fence, vectors_are_put_once, no_second_look])
def test_without_one_of_its_parts_the_fence_has_holes_and_these_rounds_find_them(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    # the look before each put hides most of the holes, and closes none
    monkeypatch.setattr(Fence, "before_put", lambda self, ours: None)
    assert first_broken(3 * ROUNDS) is not None


# -- one sleep, at each phase of each writer ---------------------------------------------------------------------------


def on_disk(tmp_path: Path) -> World:
    world = World(str(tmp_path / "t"))
    world.create([{"id": id, "x": id * 10, "p": id % 2} for id in (*range(6), 7, 8)], anabranch_rowsInErrors="false")
    world.delete("id = 7")
    world.update("id = 8", x=80)
    world.update("id = 8", x=81)
    return world


def vacuum(location: str, dead_after: float = 0.0, **how: Any) -> Any:
    a_tick()
    return Vacuum(location, 0, check_retention=False, dead_after_seconds=dead_after, **how).run()


def values(world: World) -> Rows:
    return {row["id"]: row["x"] for row in world.rows()}


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_a_writer_that_sleeps_past_its_heartbeat_lands_or_says_that_its_files_are_gone(
    writer: Writer, phase: str, tmp_path: Path
) -> None:
    world = on_disk(tmp_path)
    before, lands = values(world), True
    try:
        with at_phase(phase, lambda: vacuum(world.path)):
            writer.run(world.path, world.engine, Runtime())
    except StagedFilesVacuumed:
        lands = False
    assert values(world) == (writer.after(before) if lands else before)
    assert lands or writer.name != "append", "an append stages its rows again: it has them at hand"
    vacuum(world.path)
    assert values(world) == (writer.after(before) if lands else before)
    report = check(world.log.snapshot(), deep=True)
    assert report.is_clean, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_a_writer_whose_heart_beats_always_lands(writer: Writer, phase: str, tmp_path: Path) -> None:
    world = on_disk(tmp_path)
    before = values(world)
    with at_phase(phase, lambda: vacuum(world.path, dead_after=600)):
        writer.run(world.path, world.engine, Runtime())
    assert values(world) == writer.after(before)
    report = check(world.log.snapshot(), deep=True)
    assert report.is_clean, str(report)


class Sleepy(ArrowEngine):
    """Falls asleep once it has written."""

    def __init__(self, asleep: Callable[[], Any]) -> None:
        super().__init__()
        self._asleep = asleep

    def write(self, *given: Any, **named: Any) -> None:
        super().write(*given, **named)
        self._asleep()


@pytest.mark.slow
def test_what_is_staged_again_is_copied_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location, passed, peaks = str(tmp_path / "t"), Fence.restage_threatened, []
    Append(location, [{"x": b""}]).run()

    def measured(self: Fence, ours: Transaction, winners: Sequence[Commit]) -> Transaction:
        tracemalloc.start()
        try:
            return passed(self, ours, winners)
        finally:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    monkeypatch.setattr(Fence, "restage_threatened", measured)
    monkeypatch.setattr(LocalStore, "delete", lambda self, name: None)  # a VACUUM that has announced itself, no more
    rows = pa.table({"x": [random.Random(0).randbytes(24 << 20)]})
    with at_phase("put", lambda: vacuum(location)):
        Append(location, rows).run()
    report = check(open_log(location).snapshot(), deep=True)
    assert report.is_clean, str(report)
    assert 8 << 20 < max(peaks) < 20 << 20, "two chunks of 8 MiB, and not the file"


@pytest.mark.slow
def test_files_that_vanish_before_they_are_counted_are_missed_though_no_name_tells_of_them(tmp_path: Path) -> None:
    world = on_disk(tmp_path)
    before, version = values(world), world.version
    with pytest.raises(StagedFilesVacuumed) as error:
        written(world.path, Sleepy(lambda: vacuum(world.path)), Runtime())
    assert error.value.retryable
    assert isinstance(error.value, DeltaConcurrentModificationException)
    assert values(world) == before
    assert world.version == version + 2, "START and END, and nothing else"


@pytest.mark.slow
def test_a_file_that_another_vacuum_removed_after_it_was_replaced_is_not_lost(tmp_path: Path) -> None:
    world = on_disk(tmp_path)
    before = values(world)

    def meanwhile() -> None:
        world.delete("id = 0")
        vacuum(world.path)

    with at_phase("read", meanwhile):
        vacuum(world.path)
    assert values(world) == {id: x for id, x in before.items() if id != 0}


def test_a_start_threatens_no_file_of_a_job_that_it_spares_and_no_young_one_of_another(tmp_path: Path) -> None:
    spared, other = str(uuid4()), str(uuid4())
    put_commit(tmp_path, 0, info(operation="VACUUM START", tags=start_tags([spared], 1_000)))
    commit = World(str(tmp_path)).log.read(0)
    assert commit is not None
    (start,) = starts_in([commit])
    threatened = {
        (job, at)
        for job in (spared, other)
        for at in (999, 1_000)
        if start.threatens({"path": f"job-{job}/a.parquet", "modificationTime": at})
    }
    assert threatened == {(other, 999)}
    assert start.threatens({"path": "a.parquet", "modificationTime": 1_000}), "the log's time is the writer's own"


def test_what_a_redo_withdraws_is_known_by_its_new_name(tmp_path: Path) -> None:
    world = on_disk(tmp_path)
    before = values(world)

    def meanwhile() -> None:
        world.append({"id": 300, "x": 0, "p": 0})
        world.delete("id = 5")
        with pytest.raises(KeyboardInterrupt), at_phase("committed", _interrupt):
            vacuum(world.path)

    with at_phase("staged", meanwhile):
        merged(world.path, world.engine, Runtime())
    expected = {**{id: x for id, x in before.items() if id != 5}, 3: 33, 300: 33}
    assert [(row["id"], row["x"]) for row in world.rows()] == sorted(expected.items())


@pytest.mark.slow
def test_marks_that_an_optimize_has_taken_along_stay_with_its_copies(tmp_path: Path) -> None:
    world = on_disk(tmp_path)
    before = values(world)

    def begun() -> None:
        with pytest.raises(KeyboardInterrupt), at_phase("committed", _interrupt):
            vacuum(world.path)

    with at_phase("staged", lambda: world.delete("id = 1")), at_phase("put", begun):
        world.optimize()
    assert world.info()["operation"] == "OPTIMIZE"
    assert values(world) == {id: x for id, x in before.items() if id != 1}


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_second_vacuum_meets_the_copies_of_the_first(tmp_path: Path) -> None:
    world = on_disk(tmp_path)
    before, times = values(world), []

    def again() -> None:
        times.append(vacuum(world.path))
        if len(times) < 3:
            with at_phase("put", again):
                world.append({"id": 400 + len(times), "x": 0, "p": 0})

    with at_phase("put", again):
        appended(world.path, world.engine, Runtime())
    assert values(world) == {**before, 100: 1, 101: 1, 401: 0, 402: 0}
    vacuum(world.path)
    assert values(world) == {**before, 100: 1, 101: 1, 401: 0, 402: 0}


# -- real threads ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_that_write_while_others_vacuum_lose_nothing(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": i, "x": 0, "p": 0} for i in range(4)])
    over, problems, removed = threading.Event(), list[BaseException](), list[int]()
    rounds = examples(12, 3)
    landed = dict.fromkeys(range(4), 0)

    def writes(who: int) -> None:
        ours = World(world.path)
        try:
            for number in range(rounds):
                try:
                    if who % 2:
                        ours.append({"id": 1000 * who + number, "x": number, "p": who})
                    else:
                        ours.update(f"id = {who}", x=number + 1)
                    landed[who] = number + 1
                except StagedFilesVacuumed:
                    continue
        except BaseException as error:
            problems.append(error)

    def vacuums(who: int) -> None:
        dice = random.Random(who)
        try:
            while not over.is_set():
                removed.append(len(vacuum(world.path, dead_after=dice.choice((0.0, 600.0))).files))
        except BaseException as error:
            problems.append(error)

    writers = [threading.Thread(target=writes, args=(who,)) for who in landed]
    cleaners = [threading.Thread(target=vacuums, args=(who,)) for who in range(2)]
    for thread in (*writers, *cleaners):
        thread.start()
    end(*writers)
    over.set()
    end(*cleaners)
    assert not problems, problems
    assert sum(removed) + len(vacuum(world.path).files), "there was something to remove"
    found = values(world)
    for who, number in landed.items():
        if who % 2:
            assert number == rounds
            assert {id for id in found if id // 1000 == who} == {1000 * who + n for n in range(rounds)}
        else:
            assert found[who] == number
    report = check(world.log.snapshot(), deep=True)
    assert report.is_clean, str(report)
