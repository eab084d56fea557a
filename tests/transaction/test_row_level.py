"""Two writers, one file: what commits and what is refused, cell by cell, through the real commands and the real log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch import errors
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

LEVELS = ("WriteSerializable", "Serializable")
ROWS = [{"id": i, "x": i * 10, "y": i * 10} for i in range(6)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return table_path(tmp_path)


@pytest.fixture(params=LEVELS)
def any_level(request: pytest.FixtureRequest, path: str) -> Iterator[World]:
    yield from world(path, delta_isolationLevel=request.param)


@pytest.fixture
def write_serializable(path: str) -> Iterator[World]:
    yield from world(path, delta_isolationLevel="WriteSerializable")


@pytest.fixture
def serializable(path: str) -> Iterator[World]:
    yield from world(path, delta_isolationLevel="Serializable")


def world(path: str, **properties: str) -> Iterator[World]:
    made = World(path).create(ROWS, **properties)
    yield made
    made.assert_clean()


def ids(world: World) -> list[int]:
    return [row["id"] for row in world.rows()]


@pytest.mark.slow
def test_updates_of_different_rows_of_one_file_both_land(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.update("id = 1", x=111)):
        any_level.update("id = 2", x=222)
    assert {row["id"]: row["x"] for row in any_level.rows()} == {0: 0, 1: 111, 2: 222, 3: 30, 4: 40, 5: 50}
    assert any_level.info()["tags"]["anabranch.carriedOver"] == "1"


@pytest.mark.slow
def test_update_and_delete_of_different_rows_commute(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.delete("id = 1")):
        any_level.update("id = 2", x=222)
    with at_phase("staged", lambda: any_level.update("id = 3", x=333)):
        any_level.delete("id = 4")
    assert {row["id"]: row["x"] for row in any_level.rows()} == {0: 0, 2: 222, 3: 333, 5: 50}


@pytest.mark.slow
def test_three_writers_on_one_file_all_land(any_level: World) -> None:
    def second() -> None:
        with at_phase("staged", lambda: any_level.update("id = 3", x=333)):
            any_level.delete("id = 2")

    with at_phase("staged", second):
        any_level.update("id = 1", x=111)
    assert {row["id"]: row["x"] for row in any_level.rows()} == {0: 0, 1: 111, 3: 333, 4: 40, 5: 50}


def test_two_deletes_of_one_row_conflict_as_delete_delete(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteDeleteException) as refused,
        at_phase("staged", lambda: any_level.delete("id = 1")),
    ):
        any_level.delete("id <= 1")
    assert refused.value.getCondition() == "DELTA_CONCURRENT_DELETE_DELETE.ROW_LEVEL_CHANGES"
    assert refused.value.winner_version == 1
    assert refused.value.rows == [1]
    assert ids(any_level) == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("winner", ["update", "delete"])
def test_changes_of_one_row_conflict_as_delete_read(any_level: World, winner: str) -> None:
    first = {"update": lambda: any_level.update("id = 1", y=7), "delete": lambda: any_level.delete("id = 1")}[winner]
    with pytest.raises(errors.ConcurrentDeleteReadException) as refused, at_phase("staged", first):
        any_level.update("id = 1", x=1)
    assert refused.value.getCondition() == "DELTA_CONCURRENT_DELETE_READ.ROW_LEVEL_CHANGES"
    assert refused.value.retryable


def test_a_delete_that_loses_to_an_update_of_its_row_conflicts_as_delete_read(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: any_level.update("id = 1", x=1)),
    ):
        any_level.delete("id = 1")


def test_a_blind_append_of_a_matching_row_does_not_stop_an_update_at_write_serializable(
    write_serializable: World,
) -> None:
    with at_phase("staged", lambda: write_serializable.append({"id": 1, "x": 5, "y": 5})):
        write_serializable.update("id = 1", x=111)
    assert [row["x"] for row in write_serializable.rows() if row["id"] == 1] == [5, 111]


def test_a_blind_append_of_a_matching_row_stops_an_update_at_serializable(serializable: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException) as refused,
        at_phase("staged", lambda: serializable.append({"id": 1, "x": 5, "y": 5})),
    ):
        serializable.update("id = 1", x=111)
    assert refused.value.getCondition() == "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"


def test_a_blind_append_of_other_rows_stops_nobody(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.append({"id": 99, "x": 5, "y": 5})):
        any_level.update("id = 1", x=111)
    assert len(any_level.rows()) == 7


@pytest.mark.slow
def test_write_skew_is_refused(any_level: World) -> None:
    """SET x = 15 WHERE y > 10 against SET y = 15 WHERE x > 10: disjoint rows, yet each brings a row that the other
    selects.
    """
    any_level.overwrite({"id": 1, "x": 20, "y": 0}, {"id": 2, "x": 0, "y": 20})
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: any_level.update("y > 10", x=15)),
    ):
        any_level.update("x > 10", y=15)


def test_a_row_moved_into_my_condition_is_refused(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: any_level.update("id = 5", x=10)),
    ):
        any_level.update("x = 10", y=1)


@pytest.mark.slow
def test_a_row_moved_out_of_my_condition_is_accepted_when_i_did_not_mark_it(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.update("id = 5", x=999)):
        any_level.update("x <= 40", y=1)
    assert {row["id"]: (row["x"], row["y"]) for row in any_level.rows()}[5] == (999, 50)


def test_inserts_never_conflict(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.delete()):
        any_level.append({"id": 7, "x": 7, "y": 7})
    assert ids(any_level) == [7]


@pytest.mark.slow
def test_a_blind_append_before_a_reading_winner_is_redone_and_not_skipped(write_serializable: World) -> None:
    """The history of design 5.5: W1 appends blindly, W2 has seen it. Ours must stand behind both, so it is run on
    W1's row.
    """

    def winners() -> None:
        write_serializable.append({"id": 1, "x": 1, "y": 1})
        write_serializable.update("id = 4", x=444)

    with at_phase("staged", winners):
        write_serializable.update("id = 1", y=8)
    assert [row["y"] for row in write_serializable.rows() if row["id"] == 1] == [8, 8]
    assert write_serializable.info()["tags"]["anabranch.cut"] == "2"


@pytest.mark.slow
def test_a_blind_append_after_a_reading_winner_stays_behind_mine(write_serializable: World) -> None:
    def winners() -> None:
        write_serializable.update("id = 4", x=444)
        write_serializable.append({"id": 1, "x": 1, "y": 1})

    with at_phase("staged", winners):
        write_serializable.update("id = 1", y=8)
    assert [row["y"] for row in write_serializable.rows() if row["id"] == 1] == [1, 8]
    assert write_serializable.info()["tags"]["anabranch.cut"] == "1"


@pytest.mark.slow
def test_a_window_that_grows_between_puts_is_judged_whole(write_serializable: World) -> None:
    """A blind append that was last in the window is no longer last when a reading winner comes before the put."""
    with (
        at_phase("staged", lambda: write_serializable.append({"id": 1, "x": 1, "y": 1})),
        at_phase("put", lambda: write_serializable.update("id = 4", x=444)),
    ):
        write_serializable.update("id = 1", y=8)
    assert [row["y"] for row in write_serializable.rows() if row["id"] == 1] == [8, 8]


def test_overwrite_against_delete_of_a_row_is_refused(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: any_level.delete("id = 1")),
    ):
        any_level.overwrite({"id": 100, "x": 0, "y": 0})


def test_overwrite_against_blind_append_keeps_the_appended_row_at_write_serializable(write_serializable: World) -> None:
    with at_phase("staged", lambda: write_serializable.append({"id": 7, "x": 7, "y": 7})):
        write_serializable.overwrite({"id": 100, "x": 0, "y": 0})
    assert ids(write_serializable) == [7, 100]


def test_overwrite_against_blind_append_is_refused_at_serializable(serializable: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: serializable.append({"id": 7, "x": 7, "y": 7})),
    ):
        serializable.overwrite({"id": 100, "x": 0, "y": 0})


def test_an_update_against_an_overwrite_is_refused(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: any_level.overwrite({"id": 100, "x": 0, "y": 0})),
    ):
        any_level.update("id = 1", x=1)


def test_a_change_that_selects_no_row_commits_nothing_and_still_comes_to_staged(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.delete("id = 1")):
        assert any_level.update("id = 77", x=1).committed is None
    assert any_level.version == 1


def test_a_file_whose_last_row_is_deleted_is_removed_from_the_table(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.delete("id <= 2")):
        any_level.delete("id > 2")
    assert any_level.rows() == []
    assert len(any_level.log.snapshot().files) == 0
