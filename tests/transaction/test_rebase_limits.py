"""A command does not hang behind what others wrote: looking and redoing are bounded, in bytes and in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch._log.log import Log
from anabranch._protocol.conditions import Condition
from anabranch._protocol.layout.file_sets import FileSet, Marks
from anabranch._storage import open_store
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.commands.row_changes import Change, run_change
from anabranch.testing import ArrowEngine, ObservedStore, at_phase
from anabranch.testing.faults import instant
from anabranch.testing.stores import Call
from tests.support.raw_logs import listing
from tests.support.worlds import World, table_path

ROWS = [{"id": i, "x": i} for i in range(4)]


class Clock:
    """A clock that stands still until somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    @property
    def runtime(self) -> Runtime:
        return replace(instant(), seconds=lambda: self.now, sleep=self.pass_)

    def pass_(self, seconds: float) -> None:
        self.now += seconds


class Slow(ArrowEngine):
    """An engine for which finding and updating rows takes a while."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self._clock, self._seconds_each = clock, seconds

    def find(self, files: FileSet, condition: Condition) -> Marks:
        self._clock.pass_(self._seconds_each)
        return super().find(files, condition)

    def update(self, *args: Any) -> None:
        self._clock.pass_(self._seconds_each)
        super().update(*args)


def made(folder: Path, **properties: str) -> World:
    return World(table_path(folder)).create(ROWS, **properties)


def bring(world: World, count: int = 1) -> Callable[[], None]:
    """A winner that is no blind append, whose new file has to be looked at: its statistics allow x = 1."""

    def winner() -> None:
        for _ in range(count):
            world.append({"id": 90, "x": 0}, {"id": 91, "x": 2})
        world.update("id = 3", x=99)

    return winner


def exceeded(ours: Callable[[], Any], winner: Callable[[], Any]) -> Any:
    with pytest.raises(errors.ConcurrentWriteException) as refused, at_phase("staged", winner):
        ours()
    assert refused.value.getCondition() == "DELTA_CONCURRENT_WRITE.ALLOTTED_TIME_EXCEEDED"
    assert refused.value.retryable
    return refused.value


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_winners_files_that_are_too_big_to_look_at_are_a_conflict(tmp_path: Path) -> None:
    world = made(tmp_path, anabranch_resolutionBytes="10")
    said = exceeded(lambda: world.update("x = 1", x=7), bring(world))
    assert (said.bound, said.allowed) == ("anabranch.resolutionBytes", 10)
    assert said.needed > 100
    assert said.winner_version == world.version == 2
    assert {row["x"] for row in world.rows() if row["id"] == 1} == {1}
    world.assert_clean()


@pytest.mark.slow
def test_as_many_bytes_as_allowed_may_be_read_and_not_one_more(tmp_path: Path) -> None:
    needed = exceeded_bytes(tmp_path)
    enough = made(tmp_path, anabranch_resolutionBytes=str(needed))
    with at_phase("staged", bring(enough)):
        assert enough.update("x = 1", x=7).rows == 1
    short = made(tmp_path, anabranch_resolutionBytes=str(needed - 1))
    exceeded(lambda: short.update("x = 1", x=7), bring(short))


def exceeded_bytes(folder: Path) -> int:
    world = made(folder, anabranch_resolutionBytes="0")
    return int(exceeded(lambda: world.update("x = 1", x=7), bring(world)).needed)


def test_what_statistics_rule_out_costs_nothing(tmp_path: Path) -> None:
    world = made(tmp_path, anabranch_resolutionBytes="0")

    def winner() -> None:
        world.append({"id": 90, "x": 500})
        world.update("id = 3", x=99)

    with at_phase("staged", winner):
        assert world.update("x = 1", x=7).rows == 1


@pytest.mark.slow
def test_all_looks_of_one_command_count_together(tmp_path: Path) -> None:
    """Twice the bytes of one look are not enough for three: each lost put brings another winner."""
    needed = exceeded_bytes(tmp_path)
    world = made(tmp_path, anabranch_resolutionBytes=str(2 * needed))

    def again(call: Call) -> None:
        if call.is_commit:
            bring(world)()

    def ours() -> None:
        base = Log(ObservedStore(open_store(world.path), before=again)).snapshot()
        change = Change("UPDATE", world.condition("x = 1"), {"x": 7}, {})
        run_change(change, base, world.engine, RunContext(runtime=instant()))

    assert exceeded(ours, bring(world)).needed == 3 * needed


# -- time --------------------------------------------------------------------------------------------------------------


def test_time_spent_in_looking_is_bounded_before_anything_is_redone(tmp_path: Path) -> None:
    """The winners brought a row that ours selects, so it had to be run on that: but the look took too long already."""
    world, clock = made(tmp_path, anabranch_resolutionSeconds="5"), Clock()
    files = listing(world.path)

    def winner() -> None:
        world.append({"id": 90, "x": 1})
        world.update("id = 3", x=99)

    change = Change("UPDATE", world.condition("x = 1"), {"x": 7}, {})
    snapshot = world.log.snapshot()
    said = exceeded(lambda: run_change(change, snapshot, Slow(clock, 6.0), RunContext(runtime=clock.runtime)), winner)
    assert (said.bound, said.allowed, said.needed) == ("anabranch.resolutionSeconds", 5, 6)
    assert {name for name in listing(world.path).keys() - files.keys() if name.startswith("job-")} == job_of(world, 2)


def job_of(world: World, version: int) -> set[str]:
    """What the winner of a version staged: nothing of ours is left."""
    (path,) = [p for p in world.log.read(version).adds["path"].to_pylist() if p.startswith("job-")]  # type: ignore[union-attr]
    return {name for name in listing(world.path) if name.startswith(path.split("/")[0])}


def test_a_look_that_was_begun_in_time_is_finished_and_counts(tmp_path: Path) -> None:
    world, clock = made(tmp_path, anabranch_resolutionSeconds="5"), Clock()
    change = Change("UPDATE", world.condition("x = 1"), {"x": 7}, {})
    snapshot = world.log.snapshot()
    with at_phase("staged", bring(world)):
        assert run_change(change, snapshot, Slow(clock, 6.0), RunContext(runtime=clock.runtime)).rows == 1


def test_time_before_the_commit_does_not_count(tmp_path: Path) -> None:
    """A command may work for hours; only what it does for others is bounded."""
    world, clock = made(tmp_path, anabranch_resolutionSeconds="0"), Clock()
    change = Change("UPDATE", world.condition("x = 1"), {"x": 7}, {})
    assert run_change(change, world.log.snapshot(), Slow(clock, 9999.0), RunContext(runtime=clock.runtime)).rows == 1


# -- appends -----------------------------------------------------------------------------------------------------------


def test_no_bound_meets_a_blind_append(tmp_path: Path) -> None:
    world = made(tmp_path, anabranch_resolutionBytes="0", anabranch_resolutionSeconds="0")
    with at_phase("staged", bring(world, 5)):
        assert Append(world.path, [{"id": 7, "x": 1}]).run().version == 7


def test_a_bound_that_is_no_number_is_refused_when_it_is_set(tmp_path: Path) -> None:
    for wrong in ("-1", "many", "1.5"):
        with pytest.raises(errors.InvalidProperty):
            made(tmp_path, anabranch_resolutionBytes=wrong)
