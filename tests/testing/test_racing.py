"""The proof of a race finds what is lost, doubled, or there though refused, and what another took the place of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from anabranch._log.log import forget
from anabranch.commands.dml.append import Append
from tests.clouds import racers
from tests.interop.test_several_engines import lost
from tests.support.racing import SHARED, Done, expected, faults, journals, seen_in
from tests.support.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "t")).create([{"id": each, "x": 0} for each in range(SHARED)])


def appended(world: World, tag: str, row: int) -> Done:
    Append(world.path, [{"id": row, "x": 0}], user_metadata=tag).run()
    return Done(tag, "append", new=[row], stood=seen_in(world.path)(tag))


@pytest.mark.slow
def test_a_race_that_went_well_has_no_faults(world: World, tmp_path: Path) -> None:
    (tmp_path / "told").mkdir()
    racer = replace(racers.plain(world.path, 7), pause=0.0)
    racer.race(0.5, tmp_path / "told" / "plain.jsonl")
    told = journals(tmp_path / "told")
    assert told
    assert all(each.told == "committed" and each.stood for each in told)
    assert faults(told, Path(world.path)) == []


def test_what_was_acknowledged_and_is_not_there_or_twice_is_found(world: World) -> None:
    done = appended(world, "a-1", 100)
    missing = Done("a-2", "append", new=[101])
    assert faults([done, missing], Path(world.path)) == ["a-2 (append) was acknowledged, and stands 0 times in the log"]
    appended(world, "a-1", 102)
    assert "a-1 stands twice" in faults([done], Path(world.path))


def test_what_was_refused_and_is_there_is_found(world: World) -> None:
    done = replace(appended(world, "a-1", 100), told="refused")
    assert faults([done], Path(world.path)) == ["a-1 (append) was refused, and stands 1 times in the log"]


def test_an_update_that_was_lost_shows_in_the_sum(world: World) -> None:
    done = [appended(world, f"a-{each}", 100 + each) for each in range(2)]
    wrong = [done[0], replace(done[1], verb="update", plus=[3])]
    assert faults(wrong, Path(world.path)) == ["row 3 has x = 0, and should have 1"]
    assert expected(wrong)[3] == 1


def test_a_commit_whose_place_another_took_is_told_with_the_engine_that_took_it(world: World) -> None:
    done = appended(world, "a-1", 100)
    commit = Path(world.path, "_delta_log", f"{done.stood:020d}.json")
    info = {"commitInfo": {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0", "userMetadata": "theirs-1"}}
    commit.write_text(json.dumps(info) + "\n", encoding="utf-8")
    forget(world.path)
    overwritten = lost([done], Path(world.path))
    assert overwritten == {"a-1": "delta-spark"}
    assert faults([done], Path(world.path), overwritten) == []
    assert faults([done], Path(world.path)) != []
