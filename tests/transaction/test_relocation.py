"""OPTIMIZE against everyone who writes rows: neither fails because of the other, and no row is lost or comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

LEVELS = ("WriteSerializable", "Serializable")
DIALS = ("row", "file")
MOVES: dict[str, Callable[[World], object]] = {
    "pack": lambda world: world.optimize(),
    "zorder": lambda world: world.optimize("x", "y"),
}
LOSERS = ("staged", "put")


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=DIALS)
def dial(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[(), ("p",)], ids=["flat", "partitioned"])
def table(request: pytest.FixtureRequest, tmp_path: Path, level: str, dial: str) -> Iterator[World]:
    made = World(table_path(tmp_path))
    properties = {"delta_isolationLevel": level, "anabranch_conflictResolution": dial}
    rows = [{"id": i, "x": (i * 7) % 5, "y": (i * 3) % 4, "p": i % 2} for i in range(12)]
    made.create(rows[:4], partition_by=request.param, **properties)
    made.append(*rows[4:8])
    made.append(*rows[8:])
    made.delete("id = 6")
    yield made
    made.assert_clean()


def ids(world: World) -> list[int]:
    return [row["id"] for row in world.rows()]


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_the_same_rows_in_fewer_files_and_nothing_more_to_do(table: World, move: str) -> None:
    before, files = table.rows(), len(table.log.snapshot().files)
    MOVES[move](table)
    assert table.rows() == before
    assert len(table.log.snapshot().files) < files
    commit = table.log.read(table.version)
    assert commit is not None
    assert not any(commit.adds["dataChange"].to_pylist())
    assert not any(commit.removes["dataChange"].to_pylist())
    version = table.version
    MOVES[move](table)
    assert table.version == version


@pytest.mark.slow
@pytest.mark.parametrize("phase", LOSERS)
@pytest.mark.parametrize("move", MOVES)
def test_a_delete_follows_its_rows(table: World, move: str, phase: str) -> None:
    with at_phase(phase, lambda: MOVES[move](table)):
        table.delete("id IN (1, 5, 9)")
    assert ids(table) == [0, 2, 3, 4, 7, 8, 10, 11]


@pytest.mark.slow
@pytest.mark.parametrize("phase", LOSERS)
@pytest.mark.parametrize("move", MOVES)
def test_an_optimize_takes_along_what_a_delete_marked(table: World, move: str, phase: str) -> None:
    with at_phase(phase, lambda: table.delete("id IN (1, 5, 9)")):
        MOVES[move](table)
    assert ids(table) == [0, 2, 3, 4, 7, 8, 10, 11]
    assert table.info()["operation"] == "OPTIMIZE"


@pytest.mark.slow
@pytest.mark.parametrize("phase", LOSERS)
@pytest.mark.parametrize("move", MOVES)
def test_an_optimize_takes_along_that_a_whole_file_was_deleted(table: World, move: str, phase: str) -> None:
    with at_phase(phase, lambda: table.delete("id >= 8")):
        MOVES[move](table)
    assert ids(table) == [0, 1, 2, 3, 4, 5, 7]
    assert table.info()["operation"] == "OPTIMIZE"


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_everything_is_deleted_before_an_optimize_lands(table: World, move: str) -> None:
    with at_phase("staged", lambda: table.delete()):
        MOVES[move](table)
    assert ids(table) == []
    assert table.info()["operation"] == "DELETE"


@pytest.mark.slow
@pytest.mark.parametrize("phase", LOSERS)
@pytest.mark.parametrize("move", MOVES)
def test_a_whole_file_is_deleted_though_its_rows_were_moved(table: World, move: str, phase: str) -> None:
    with at_phase(phase, lambda: MOVES[move](table)):
        table.delete("id >= 8")
    assert ids(table) == [0, 1, 2, 3, 4, 5, 7]


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_every_row_is_deleted_though_they_were_moved(table: World, move: str) -> None:
    with at_phase("staged", lambda: MOVES[move](table)):
        table.delete()
    assert ids(table) == []
    assert len(table.log.snapshot().files) == 0


@pytest.mark.slow
@pytest.mark.parametrize("phase", LOSERS)
@pytest.mark.parametrize("move", MOVES)
def test_an_update_follows_its_rows(table: World, move: str, phase: str) -> None:
    with at_phase(phase, lambda: MOVES[move](table)):
        table.update("id IN (2, 7)", x=99)
    assert {row["id"] for row in table.rows() if row["x"] == 99} == {2, 7}
    assert len(ids(table)) == 11


@pytest.mark.slow
@pytest.mark.parametrize("phase", LOSERS)
@pytest.mark.parametrize("move", MOVES)
def test_a_merge_follows_its_rows(table: World, move: str, phase: str) -> None:
    with at_phase(phase, lambda: MOVES[move](table)):
        table.merge([{"id": 3, "x": 99, "y": 0, "p": 1}, {"id": 50, "x": 99, "y": 0, "p": 0}])
    assert {row["id"] for row in table.rows() if row["x"] == 99} == {3, 50}
    assert len(ids(table)) == 12


@pytest.mark.parametrize("move", MOVES)
def test_an_overwrite_takes_away_rows_that_were_moved(table: World, move: str) -> None:
    with at_phase("staged", lambda: MOVES[move](table)):
        table.overwrite({"id": 100, "x": 1, "y": 1, "p": 0})
    assert ids(table) == [100]


@pytest.mark.slow
@pytest.mark.parametrize("phase", LOSERS)
@pytest.mark.parametrize("second", MOVES)
@pytest.mark.parametrize("first", MOVES)
def test_of_two_optimizes_the_second_has_nothing_left_to_do(table: World, first: str, second: str, phase: str) -> None:
    before, version = table.rows(), table.version
    with at_phase(phase, lambda: MOVES[first](table)):
        MOVES[second](table)
    assert table.rows() == before
    assert table.version == version + 1


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_an_append_and_an_optimize_do_not_meet(table: World, move: str) -> None:
    with at_phase("staged", lambda: table.append({"id": 70, "x": 0, "y": 0, "p": 1})):
        MOVES[move](table)
    with at_phase("staged", lambda: MOVES[move](table)):
        table.append({"id": 71, "x": 0, "y": 0, "p": 1})
    assert ids(table)[-2:] == [70, 71]
    assert len(ids(table)) == 13


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_a_delete_follows_its_rows_through_several_moves(table: World, move: str) -> None:
    def moved_twice() -> None:
        MOVES[move](table)
        table.append({"id": 72, "x": 3, "y": 0, "p": 0})
        table.optimize("y")

    with at_phase("staged", moved_twice):
        table.delete("id IN (1, 5)")
    assert ids(table) == [0, 2, 3, 4, 7, 8, 9, 10, 11, 72]


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_rows_of_a_blind_append_are_done_as_well_and_followed(tmp_path: Path, move: str) -> None:
    table = World(table_path(tmp_path)).create([{"id": 1, "x": 1, "y": 1}])
    table.append({"id": 2, "x": 2, "y": 2})

    def meanwhile() -> None:
        table.append({"id": 70, "x": 0, "y": 0})
        MOVES[move](table)
        table.update("id = 2", x=50)
        table.optimize("y")

    with at_phase("staged", meanwhile):
        table.delete("id IN (1, 70)")
    assert ids(table) == [2]
    table.assert_clean()


@pytest.mark.parametrize("move", MOVES)
def test_mine_may_precede_a_blind_append_whose_rows_were_moved_since(tmp_path: Path, move: str) -> None:
    table = World(table_path(tmp_path)).create([{"id": 1, "x": 1, "y": 1}])
    table.append({"id": 2, "x": 2, "y": 2})

    def meanwhile() -> None:
        table.append({"id": 70, "x": 0, "y": 0})
        MOVES[move](table)

    with at_phase("staged", meanwhile):
        table.delete("id IN (1, 70)")
    assert ids(table) == [2, 70]
    assert table.info()["tags"]["anabranch.cut"] == "1"
    table.assert_clean()
