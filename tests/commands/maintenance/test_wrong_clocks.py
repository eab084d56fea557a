"""Clocks that are wrong, and machines that sleep: no file of a version that may be read is deleted, nor a live one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from anabranch._log.log import forget
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import Delete
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.errors import (
    AnabranchError,
    ConcurrentWriteException,
    FeatureNotDropped,
    StoreError,
    VersionNotFound,
)
from anabranch.testing import Call, DictStore, ObservedStore, at_phase, mounted
from tests.support.worlds import World

HOUR = 3_600_000
DAY = 24 * HOUR


class Clock:
    """The store's, and that of most machines."""

    def __init__(self) -> None:
        self.now = 1_780_000_000_000

    def __call__(self) -> int:
        return self.now

    def ahead(self, milliseconds: int) -> RunContext:
        """A machine whose clock is ahead, or behind."""
        return RunContext(runtime=Runtime(now_ms=lambda: self.now + milliseconds))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "time_ns", lambda: found.now * 1_000_000)
    return found


@pytest.fixture
def world(clock: Clock) -> Iterator[World]:
    forget()
    with mounted(DictStore("memory://clocks/t", now_ms=clock)) as location:
        yield World(location)
    forget()


def test_a_retention_that_was_raised_counts_for_what_was_removed_before(world: World, clock: Clock) -> None:
    shorter = {"delta_deletedFileRetentionDuration": "interval 1 hours", "delta_checkpointInterval": "3"}
    world.create([{"id": 1}], **shorter)
    clock.now += 40 * DAY
    world.append({"id": 2})
    world.delete("id = 1")
    clock.now += 2 * HOUR
    world.append({"id": 3})  # its checkpoint drops the tombstone
    SetProperties(world.path, {"delta.deletedFileRetentionDuration": "interval 30 days"}).run()
    clock.now += 2 * HOUR
    forget()
    Vacuum(world.path).run()
    assert world.rows(1) == [{"id": 1}, {"id": 2}]


def test_what_a_clock_behind_removed_is_as_old_as_its_commit(world: World, clock: Clock) -> None:
    world.create([{"id": 1}, {"id": 2}])
    clock.now += 20 * DAY
    world.append({"id": 5})
    Delete(world.path, world.condition("id <= 2")).run(world.engine, clock.ahead(-8 * DAY))
    clock.now += HOUR
    Vacuum(world.path).run()
    assert world.rows(1) == [{"id": 1}, {"id": 2}, {"id": 5}]


def test_a_checkpoint_of_a_clock_ahead_forgets_no_file_that_a_vacuum_has_to_keep(world: World, clock: Clock) -> None:
    world.create([{"id": 1}, {"id": 2}], delta_checkpointInterval="3")
    clock.now += 20 * DAY
    world.append({"id": 5})
    world.delete("id <= 2")
    clock.now += HOUR
    Append(world.path, [{"id": 6}]).run(None, clock.ahead(8 * DAY))
    clock.now += HOUR
    Vacuum(world.path).run()
    assert world.rows(1) == [{"id": 1}, {"id": 2}, {"id": 5}]


@pytest.mark.parametrize("ahead", [2 * HOUR, DAY])
def test_a_restore_knows_how_far_a_vacuum_of_a_clock_ahead_deletes(world: World, clock: Clock, ahead: int) -> None:
    world.create([{"id": 1}, {"id": 2}])
    clock.now += 30 * DAY
    world.append({"id": 5})
    world.delete("id <= 2")
    clock.now += 7 * DAY - HOUR

    def restore() -> None:
        with pytest.raises(ConcurrentWriteException, match="VACUUM_UNDER_WAY"):
            world.restore(1)

    with at_phase("committed", restore):
        Vacuum(world.path).run(None, clock.ahead(ahead))
    assert world.rows() == [{"id": 5}]


def test_a_vacuum_that_slept_until_others_take_it_for_dead_deletes_nothing_more(world: World, clock: Clock) -> None:
    world.create([{"id": 1}])
    for number in (2, 3):
        world.append({"id": number})
    clock.now += 30 * DAY
    world.delete("id <= 3")
    clock.now += HOUR

    def sleep(step: str, done: int, _: int) -> None:
        clock.now += 8 * DAY if step == "removed" and done == 1 else 0

    context = RunContext(progress=sleep)
    done = Vacuum(world.path, 0, check_retention=False, threads=1).run(None, context)
    assert (len(done.files), len(done.failed)) == (1, 2)
    assert all("count it as dead" in why for why in done.failed.values())


@pytest.mark.parametrize("ahead", [40 * HOUR, 40 * DAY])
def test_a_writer_of_a_clock_ahead_cleans_up_no_version_inside_the_retention(
    world: World, clock: Clock, ahead: int
) -> None:
    properties = {"delta_checkpointInterval": "2", "delta_logRetentionDuration": "interval 10 days"}
    world.create([{"id": 0}], **properties)
    for number in (1, 2, 3):
        world.append({"id": number})
    clock.now += 10 * DAY - HOUR
    Append(world.path, [{"id": 4}]).run(None, clock.ahead(ahead))
    assert world.rows(0) == [{"id": 0}]
    clock.now += 3 * DAY
    world.append({"id": 5})
    Append(world.path, [{"id": 6}]).run(None, clock.ahead(ahead))
    forget()
    with pytest.raises(VersionNotFound):
        world.rows(0)


@pytest.mark.parametrize("ahead", [25 * HOUR, 40 * DAY])
def test_a_clock_ahead_cuts_off_no_history_inside_the_retention(world: World, clock: Clock, ahead: int) -> None:
    world.create([{"id": 0}])
    world.append({"id": 1})
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()
    DropFeature(world.path, "vacuumProtocolCheck").run(world.engine)
    clock.now += 23 * HOUR
    with pytest.raises(FeatureNotDropped):
        DropFeature(world.path, "checkpointProtection", truncate_history=True).run(world.engine, clock.ahead(ahead))
    assert world.rows(0) == [{"id": 0}]
    clock.now += 2 * HOUR
    DropFeature(world.path, "checkpointProtection", truncate_history=True).run(world.engine, clock.ahead(ahead))


def test_history_is_cut_off_though_the_file_that_showed_the_time_cannot_be_removed(clock: Clock) -> None:
    forget()
    inner = DictStore("memory://clocks/v", now_ms=clock)

    def fail(call: Call) -> AnabranchError | None:
        failing = call.method == "delete" and "clock" in str(call.about)
        return StoreError(name=str(call.about), root=inner.url, reason="403 forbidden") if failing else None

    with mounted(ObservedStore(inner, before=fail)) as location:
        world = World(location).create([{"id": 0}])
        AddFeatureSupport(location, "vacuumProtocolCheck").run()
        DropFeature(location, "vacuumProtocolCheck").run(world.engine)
        drop = DropFeature(location, "checkpointProtection", truncate_history=True)
        with pytest.raises(FeatureNotDropped):
            drop.run(world.engine)
        clock.now += 25 * HOUR
        drop.run(world.engine)
    assert len([name for name in inner.kept if "clock" in name]) == 1


def test_a_vacuum_of_a_clock_ahead_keeps_what_the_retention_covers(world: World, clock: Clock) -> None:
    world.create([{"id": 1}, {"id": 2}])
    clock.now += 20 * DAY
    world.append({"id": 5})
    world.delete("id <= 2")
    clock.now += 6 * DAY
    done = Vacuum(world.path).run(None, clock.ahead(40 * HOUR))
    assert list(done.files) == []
    assert world.rows(1) == [{"id": 1}, {"id": 2}, {"id": 5}]
    clock.now += 2 * DAY
    assert Vacuum(world.path, lite=True).run().files


def test_what_a_clock_behind_removed_and_stamped_is_as_old_as_its_commit(world: World, clock: Clock) -> None:
    world.create([{"id": 1}, {"id": 2}], delta_enableInCommitTimestamps="true")
    clock.now += 20 * DAY
    Append(world.path, [{"id": 5}]).run(None, clock.ahead(-10 * DAY))
    Delete(world.path, world.condition("id <= 2")).run(world.engine, clock.ahead(-9 * DAY))
    clock.now += HOUR
    Vacuum(world.path).run()
    assert world.rows(1) == [{"id": 1}, {"id": 2}, {"id": 5}]


@pytest.mark.parametrize("ahead", [0, 40 * HOUR])
def test_a_vacuum_that_removed_files_says_so_though_the_log_cannot_be_listed_then(clock: Clock, ahead: int) -> None:
    forget()
    inner = DictStore("memory://clocks/u", now_ms=clock)
    is_over: list[str] = []

    def fail(call: Call) -> AnabranchError | None:
        if call.method == "delete" and str(call.about).endswith(".parquet"):
            is_over.append(str(call.about))
        failing = is_over and call.method == "list_from"
        return StoreError(name=str(call.about), root=inner.url, reason="503 slow down") if failing else None

    with mounted(ObservedStore(inner, before=fail)) as location:
        world = World(location).create([{"id": 1}])
        world.append({"id": 2})
        world.delete("id = 1")
        clock.now += 30 * DAY
        world.append({"id": 3})
        done = Vacuum(location).run(None, clock.ahead(ahead))
    assert [entry.name for entry in done.files] == is_over
    assert is_over


def test_a_lite_vacuum_comes_back_to_what_it_kept_for_a_clock_behind(world: World, clock: Clock) -> None:
    world.create([{"id": 1}, {"id": 2}], delta_enableInCommitTimestamps="true")
    clock.now += 30 * DAY
    Append(world.path, [{"id": 5}]).run(None, clock.ahead(-20 * DAY))
    Delete(world.path, world.condition("id <= 2")).run(world.engine, clock.ahead(-20 * DAY))
    clock.now += DAY
    assert not Vacuum(world.path, lite=True).run().files
    clock.now += 8 * DAY
    forget()
    assert Vacuum(world.path, lite=True).run().files
