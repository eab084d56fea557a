"""The documented matrix without row-level concurrency: the dial at ``file``, or a table without deletion vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch import errors
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

ROWS = [{"id": i, "day": f"d{i % 2}", "x": i} for i in range(6)]
WITHOUT_ROW_LEVEL = {
    "file dial": {"anabranch_conflictResolution": "file"},
    "no vectors": {"delta_enableDeletionVectors": "false"},
}


@pytest.fixture(params=["WriteSerializable", "Serializable"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WITHOUT_ROW_LEVEL.values(), ids=WITHOUT_ROW_LEVEL.keys())
def dial(request: pytest.FixtureRequest) -> dict[str, str]:
    return dict(request.param)


@pytest.fixture
def flat(tmp_path: Path, dial: dict[str, str], level: str) -> Iterator[World]:
    made = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel=level, **dial)
    yield made
    made.assert_clean()


@pytest.fixture
def by_day(tmp_path: Path, dial: dict[str, str], level: str) -> Iterator[World]:
    made = World(table_path(tmp_path)).create(ROWS, partition_by=("day",), delta_isolationLevel=level, **dial)
    yield made
    made.assert_clean()


def test_changes_of_different_rows_of_one_file_conflict(flat: World) -> None:
    """By marks the winner changed a file that ours read; by rewriting it also added one that ours should have read."""
    marks = flat.log.snapshot().properties.vectors
    expected = errors.ConcurrentDeleteReadException if marks else errors.ConcurrentAppendException
    with pytest.raises(expected) as refused, at_phase("staged", lambda: flat.delete("id = 1")):
        flat.delete("id = 2")
    assert flat.version == 1
    assert "row-level" in refused.value.suggestion


def test_an_update_that_brings_a_file_which_mine_may_have_to_read_conflicts_as_append(flat: World) -> None:
    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", lambda: flat.update("id = 2", x=99)):
        flat.update("id >= 1", x=0)


@pytest.mark.slow
def test_statistics_that_keep_the_files_apart_avoid_the_conflict(flat: World) -> None:
    flat.append({"id": 100, "day": "d9", "x": 100})
    with at_phase("staged", lambda: flat.update("id = 100", x=1)):
        flat.update("id = 1", x=1)
    assert {row["id"]: row["x"] for row in flat.rows()} == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 100: 1}


def test_explicit_partition_predicates_avoid_the_conflict(by_day: World) -> None:
    with at_phase("staged", lambda: by_day.delete("day = 'd0' AND id = 2")):
        by_day.update("day = 'd1' AND id = 3", x=33)
    assert {row["id"]: row["x"] for row in by_day.rows()} == {0: 0, 1: 1, 3: 33, 4: 4, 5: 5}


def test_without_a_partition_predicate_the_same_commands_conflict(by_day: World) -> None:
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: by_day.delete("x = 2")):
        by_day.update("x > 0", x=33)


def test_a_blind_append_stops_a_change_only_at_serializable(flat: World, level: str) -> None:
    def attempt() -> None:
        with at_phase("staged", lambda: flat.append({"id": 1, "day": "d0", "x": 5})):
            flat.update("id = 1", x=111)

    if level == "Serializable":
        with pytest.raises(errors.ConcurrentAppendException):
            attempt()
    else:
        attempt()
        assert [row["x"] for row in flat.rows() if row["id"] == 1] == [5, 111]


@pytest.mark.slow
def test_a_blind_append_before_a_reading_winner_is_redone(flat: World, level: str) -> None:
    """The matrix says that an insert cannot conflict at WriteSerializable; the row that came in is changed too."""
    flat.append({"id": 100, "day": "d9", "x": 100})

    def winners() -> None:
        flat.append({"id": 1, "day": "d0", "x": 5})
        flat.update("id = 100", x=1)

    def attempt() -> None:
        with at_phase("staged", winners):
            flat.update("id = 1", x=111)

    if level == "Serializable":
        with pytest.raises(errors.ConcurrentAppendException):
            attempt()
    else:
        attempt()
        assert [row["x"] for row in flat.rows() if row["id"] == 1] == [111, 111]


def test_inserts_never_conflict(flat: World) -> None:
    with at_phase("staged", lambda: flat.update(None, x=0)):
        flat.append({"id": 7, "day": "d0", "x": 7})
    assert flat.version == 2
