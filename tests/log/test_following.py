"""Following a log: a snapshot that was brought up to date commit by commit holds what a fresh reading finds."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from anabranch._log import snapshot as snapshots
from anabranch._log.log import forget
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.predicates import Compare
from anabranch._protocol.stats import skipping
from anabranch._protocol.stats.skipping import could_match
from tests.support.worlds import World, table_path

ROWS = [{"id": i, "x": i} for i in range(8)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create(ROWS)


def by_path(snapshot: Snapshot) -> pa.Table:
    return snapshot.files.sort_by("path")


def read_anew(world: World) -> Snapshot:
    forget(world.log.table)
    return world.log.snapshot()


def change(world: World, dice: random.Random) -> None:
    some = dice.randrange(8)
    changes = [
        lambda: world.append({"id": some, "x": -1}),
        lambda: world.update(f"id = {some}", x=dice.randrange(100)),
        lambda: world.delete(f"id = {some} AND x < 50"),
        lambda: world.overwrite(*ROWS),
    ]
    dice.choices(changes, weights=[6, 3, 2, 1])[0]()


@pytest.mark.slow
@pytest.mark.parametrize("remembered", [1000, 3, 0], ids=lambda n: f"{n} commits remembered")
@pytest.mark.parametrize("seed", range(4))
def test_a_followed_snapshot_holds_what_a_fresh_one_reads(
    world: World, seed: int, remembered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "REMEMBERED_COMMITS", remembered)
    dice = random.Random(seed)
    for _ in range(25):
        change(world, dice)
        if dice.random() < 0.3:
            followed = world.log.snapshot()
            assert by_path(followed).equals(by_path(read_anew(world)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_of_statistics_follows_and_only_those_of_new_files_are_read(
    world: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, read = random.Random(seed), []
    real = skipping.stats_columns
    monkeypatch.setattr(skipping, "stats_columns", lambda stats, *rest: read.append(len(stats)) or real(stats, *rest))
    for _ in range(25):
        before = set(by_path(world.log.snapshot())["path"].to_pylist())
        assert world.log.snapshot().facts.column("id")
        count = dice.randrange(3)
        for _ in range(count):
            change(world, dice)
        read.clear()
        followed = world.log.snapshot()
        some = Compare("id", "=", dice.randrange(8))
        answer, now = followed.facts.could_match(some), set(followed.files["path"].to_pylist())
        assert sum(read) <= len(now - before) + count  # a file with a new vector is read again
        assert answer.equals(could_match(some, followed.files, followed.schema, []))


def test_an_append_reads_no_file_action_though_an_older_version_was_read(world: World) -> None:
    assert world.log.snapshot().files_are_loaded is False
    assert len(world.log.snapshot().files) == 1
    for i in range(3):
        world.append({"id": 100 + i, "x": 0})
    followed = world.log.snapshot()
    assert not followed.files_are_loaded
    assert len(followed.files) == 4


def test_an_older_snapshot_never_changes(world: World) -> None:
    old = world.log.snapshot()
    before = by_path(old)
    world.append({"id": 100, "x": 0})
    world.delete("id < 4")
    newer = world.log.snapshot()
    assert by_path(newer).num_rows == 2
    assert by_path(old).equals(before)


def test_what_was_remembered_is_let_go_once_it_is_worked_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "REMEMBERED_BYTES", 3000)
    assert world.log.snapshot().files is not None
    sizes = []
    for i in range(12):
        world.append({"id": 100 + i, "x": 0})
        ancestor = world.log.snapshot().ancestor
        assert ancestor is not None
        sizes.append(sum(len(raw.data) for raw in ancestor.since))
    assert max(sizes) <= 3000
    assert sizes.count(0) >= 2
    assert len(world.log.snapshot().files) == 13
