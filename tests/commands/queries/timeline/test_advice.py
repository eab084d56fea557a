"""Advice: each of it from a figure, and none where the figure is unknown or fine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.commands.queries.timeline.advice import Figures, advise, in_units
from anabranch.commands.queries.timeline.entries import Totals
from anabranch.commands.queries.timeline.read import timeline
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit, remove
from tests.support.worlds import World, table_path

GB = 1 << 30
TABLE = "file:///a`b"
NAME = "delta.`file:///a``b`"
FINE = Figures(Totals(10, 10 * GB, 1000, 0, 0))
HOUR_MS = 3_600_000


def topics(figures: Figures) -> list[tuple[str, str]]:
    return [(each.topic, each.weight) for each in advise(figures, TABLE)]


def test_a_table_that_needs_nothing_is_told_so() -> None:
    assert topics(FINE) == [("table", "fine")]


@pytest.mark.parametrize(("packable", "weight"), [(2, None), (19, None), (20, "act")])
def test_small_files_ask_for_optimize_from_where_the_page_says(packable: int, weight: str | None) -> None:
    (found,) = advise(replace(FINE, packable=packable, packed=1), TABLE)
    assert found.topic == ("small files" if weight else "table")
    assert not weight or f"{packable} files into about 1" in found.sentence


def test_a_command_can_be_run_as_it_stands() -> None:
    figures = Figures(Totals(10, 10 * GB, 1000, 300, 0), packable=20, packed=1, removed_files=10, removed_bytes=GB)
    commands = [each.command for each in advise(figures, TABLE)]
    assert commands == [f"OPTIMIZE {NAME}", f"REORG TABLE {NAME} APPLY (PURGE)", f"VACUUM {NAME}"]


def test_files_that_would_stay_as_many_ask_for_nothing() -> None:
    assert topics(replace(FINE, packable=5, packed=5)) == [("table", "fine")]


@pytest.mark.parametrize(("deleted", "weight"), [(52, None), (53, "consider"), (249, "consider"), (250, "act")])
def test_deleted_rows_ask_for_reorg(deleted: int, weight: str | None) -> None:
    found = topics(Figures(Totals(10, 10 * GB, 1000, deleted, 0)))
    assert found == ([("deleted rows", weight)] if weight else [("table", "fine")])


def test_an_unknown_number_of_rows_asks_for_nothing() -> None:
    assert topics(Figures(Totals(10, 10 * GB, None, 500, 0))) == [("table", "fine")]


@pytest.mark.parametrize(("behind", "interval", "is_due"), [(31, 10, True), (30, 10, False), (300, 100, False)])
def test_many_commits_behind_the_last_checkpoint_are_told(behind: int, interval: int, is_due: bool) -> None:
    found = topics(replace(FINE, behind=behind, checkpoint_interval=interval))
    assert found == ([("checkpoint", "act")] if is_due else [("table", "fine")])


def test_removed_files_ask_for_vacuum() -> None:
    assert topics(replace(FINE, removed_files=10, removed_bytes=GB)) == [("removed files", "consider")]
    assert topics(replace(FINE, removed_files=10, removed_bytes=5 * GB)) == [("removed files", "act")]
    assert topics(replace(FINE, removed_files=10, removed_bytes=None)) == [("table", "fine")]


def test_races_are_told_and_refusals_before_them() -> None:
    assert topics(replace(FINE, commits=100, raced=25)) == [("conflicts", "consider")]
    assert topics(replace(FINE, commits=100, raced=24)) == [("table", "fine")]
    assert topics(replace(FINE, commits=10, raced=10)) == [("table", "fine")]
    assert topics(replace(FINE, commits=100, raced=25, refused=1)) == [("conflicts", "act")]


def test_what_matters_most_stands_first() -> None:
    found = topics(replace(FINE, removed_files=10, removed_bytes=GB, refused=3))
    assert found == [("conflicts", "act"), ("removed files", "consider")]


def test_sizes_are_told_in_units() -> None:
    assert [in_units(each) for each in (0, 1023, 1536, 200 << 20)] == ["0 B", "1023 B", "1.5 KB", "200 MB"]


@pytest.mark.slow
@pytest.mark.parametrize("cluster_by", [(), ("id",)])
def test_what_optimize_would_do_is_what_it_does(tmp_path: Path, cluster_by: tuple[str, ...]) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0, "x": 0}], cluster_by=cluster_by)
    for number in range(24):
        world.append({"id": number, "x": 0})
    (said,) = [each for each in timeline(world.path).advice if each.topic == "small files"]
    done = world.optimize()
    assert said.sentence == f"OPTIMIZE would pack {len(done.removed)} files into about {len(done.added)}."
    assert said.weight == "act"


@pytest.mark.slow
def test_vacuum_is_advised_for_what_was_removed_before_the_retention_and_not_for_more(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0, "x": 0}])
    for number in range(15):
        world.append({"id": number, "x": 0})
    world.optimize()
    moment = timeline(world.path).entries[-1].timestamp
    soon, late = (timeline(world.path, now_ms=moment + hours * HOUR_MS).advice for hours in (24, 24 * 8))
    assert not [each for each in soon if each.topic == "removed files"]
    (found,) = [each for each in late if each.topic == "removed files"]
    assert "16 files" in found.sentence
    world.vacuum(0)
    later = timeline(world.path, now_ms=moment + 24 * 8 * HOUR_MS).advice
    assert not [each for each in later if each.topic == "removed files"]


def removable(table: str) -> list[str]:
    """What the timeline says of removed files, long after the last commit."""
    moment = timeline(table).entries[-1].timestamp
    return [
        each.sentence for each in timeline(table, now_ms=moment + 24 * 8 * HOUR_MS).advice if "VACUUM" in each.sentence
    ]


@pytest.mark.slow
def test_files_that_a_restore_brought_back_are_not_for_vacuum(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0, "x": 0}])
    for number in range(15):
        world.append({"id": number, "x": 0})
    full = world.version
    world.overwrite({"id": 0, "x": 0})
    assert "16 files" in removable(world.path)[0]
    world.restore(full)
    assert removable(world.path) == []
    world.overwrite({"id": 0, "x": 0})
    assert "17 files" in removable(world.path)[0]


def test_files_of_another_table_are_not_for_vacuum(tmp_path: Path) -> None:
    paths = [f"file:///elsewhere/part-{number}.parquet" for number in range(12)]
    put_commit(tmp_path, 0, info(operation="CLONE"), PROTOCOL, metadata(), *map(add, paths))
    put_commit(tmp_path, 1, info(operation="WRITE"), *map(remove, paths), add("own.parquet"))
    assert removable(str(tmp_path)) == []


def test_files_that_fsck_took_out_are_not_for_vacuum_since_they_are_gone(tmp_path: Path) -> None:
    paths = [f"part-{number}.parquet" for number in range(12)]
    put_commit(tmp_path, 0, info(operation="WRITE"), PROTOCOL, metadata(), *map(add, paths))
    put_commit(tmp_path, 1, info(operation="FSCK"), *map(remove, paths))
    assert removable(str(tmp_path)) == []
