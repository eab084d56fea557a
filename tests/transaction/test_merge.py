"""MERGE among others: conflicts by key and by row, cell by cell, without any condition on the table in ON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch import errors
from anabranch._protocol.merges import Clause
from anabranch.testing import at_phase
from tests.support.worlds import World, insert_all, table_path, update_all

ROWS = [{"id": i, "x": i * 10} for i in range(4)]
LEVELS = ("WriteSerializable", "Serializable")


@pytest.fixture(params=LEVELS)
def any_level(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    yield from world(tmp_path, request.param)


@pytest.fixture
def write_serializable(tmp_path: Path) -> Iterator[World]:
    yield from world(tmp_path, "WriteSerializable")


@pytest.fixture
def serializable(tmp_path: Path) -> Iterator[World]:
    yield from world(tmp_path, "Serializable")


def world(folder: Path, level: str) -> Iterator[World]:
    made = World(table_path(folder)).create(ROWS, delta_isolationLevel=level)
    yield made
    made.assert_clean()


def xs(world: World) -> dict[int, int]:
    return {row["id"]: row["x"] for row in world.rows()}


@pytest.mark.slow
def test_two_upserts_of_different_keys_of_one_file_both_land(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.merge([{"id": 1, "x": 11}, {"id": 8, "x": 88}])):
        any_level.merge([{"id": 2, "x": 22}, {"id": 9, "x": 99}])
    assert xs(any_level) == {0: 0, 1: 11, 2: 22, 3: 30, 8: 88, 9: 99}


def test_two_inserts_of_one_new_key_conflict(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException) as refused,
        at_phase("staged", lambda: any_level.merge([{"id": 9, "x": 1}])),
    ):
        any_level.merge([{"id": 9, "x": 2}])
    assert refused.value.sub_condition == "ROW_LEVEL_CHANGES"
    assert xs(any_level)[9] == 1


def test_two_updates_of_one_key_conflict(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: any_level.merge([{"id": 1, "x": 1}])),
    ):
        any_level.merge([{"id": 1, "x": 2}])


def test_a_matched_row_that_goes_is_a_conflict_though_no_clause_touched_it(any_level: World) -> None:
    """C3: behind the delete the source row would have been inserted."""
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: any_level.delete("id = 1")),
    ):
        any_level.merge([{"id": 1, "x": 2}, {"id": 9, "x": 9}], insert_all("id", "x"))


def test_without_inserts_a_matched_row_that_goes_untouched_is_of_no_concern(any_level: World) -> None:
    never = Clause("matched", "delete", lambda row, source: row["x"] > 25)
    with at_phase("staged", lambda: any_level.delete("id = 1")):
        any_level.merge([{"id": 1, "x": 2}, {"id": 3, "x": 3}], never)
    assert xs(any_level) == {0: 0, 2: 20}


@pytest.mark.slow
def test_a_blind_append_of_my_new_key_is_merged_into_at_write_serializable(write_serializable: World) -> None:
    """What was to be inserted is withdrawn: behind the append, and a reader that ties it, the key is matched."""
    world = write_serializable

    def append_and_read() -> None:
        world.append({"id": 9, "x": 1})
        world.update("id = 0", x=5)

    with at_phase("staged", append_and_read):
        done = world.merge([{"id": 9, "x": 2}, {"id": 8, "x": 8}])
    assert xs(world) == {0: 5, 1: 10, 2: 20, 3: 30, 8: 8, 9: 2}
    assert (done.metrics["numTargetRowsUpdated"], done.metrics["numTargetRowsInserted"]) == (1, 1)


def test_a_blind_append_of_my_new_key_alone_stays_behind_mine_at_write_serializable(write_serializable: World) -> None:
    world = write_serializable
    with at_phase("staged", lambda: world.append({"id": 9, "x": 1})):
        world.merge([{"id": 9, "x": 2}])
    assert sorted(row["x"] for row in world.rows() if row["id"] == 9) == [1, 2]


@pytest.mark.slow
def test_a_blind_append_of_my_new_key_is_a_conflict_at_serializable(serializable: World) -> None:
    world = serializable
    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", lambda: world.append({"id": 9, "x": 1})):
        world.merge([{"id": 9, "x": 2}])
    with at_phase("staged", lambda: world.append({"id": 7, "x": 1})):
        world.merge([{"id": 9, "x": 2}])


@pytest.mark.slow
def test_a_clause_for_rows_without_match_is_done_to_appended_rows_too(write_serializable: World) -> None:
    world = write_serializable
    others = Clause("not matched by source", "update", None, {"x": -1})

    def append_and_read() -> None:
        world.append({"id": 9, "x": 1})
        world.delete("id = 0")

    with pytest.raises(errors.ConcurrentDeleteReadException), at_phase("staged", append_and_read):
        world.merge([{"id": 1, "x": 11}], update_all("x"), others)

    def append_and_merge() -> None:
        world.append({"id": 10, "x": 1})
        world.merge([{"id": 50, "x": 50}], insert_all("id", "x"))

    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", append_and_merge):
        world.merge([{"id": 1, "x": 11}], update_all("x"), others)
    with at_phase("staged", lambda: world.append({"id": 11, "x": 1})):
        world.merge([{"id": 1, "x": 11}], update_all("x"), others)
    assert xs(world)[11] == 1
    assert xs(world)[2] == -1


def test_an_update_into_my_key_is_a_conflict(any_level: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: any_level.update("id = 0", id=9)),
    ):
        any_level.merge([{"id": 9, "x": 2}])


def test_an_insert_beside_a_delete_of_other_rows_lands(any_level: World) -> None:
    with at_phase("staged", lambda: any_level.delete("id = 0")):
        any_level.merge([{"id": 9, "x": 9}], insert_all("id", "x"))
    assert xs(any_level) == {1: 10, 2: 20, 3: 30, 9: 9}


@pytest.mark.parametrize("level", LEVELS)
def test_in_file_mode_two_upserts_of_different_keys_of_one_file_conflict(tmp_path: Path, level: str) -> None:
    made = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel=level, anabranch_conflictResolution="file")
    with (
        pytest.raises(errors.DeltaConcurrentModificationException),
        at_phase("staged", lambda: made.merge([{"id": 1, "x": 11}])),
    ):
        made.merge([{"id": 2, "x": 22}])


def test_partition_predicates_in_on_keep_file_level_merges_apart(tmp_path: Path) -> None:
    """The documentation's way to avoid conflicts: name the partition in ON."""
    rows = [{"id": i, "day": i % 2, "x": 0} for i in range(4)]
    made = World(table_path(tmp_path)).create(rows, partition_by=("day",), anabranch_conflictResolution="file")
    with at_phase("staged", lambda: made.merge([{"id": 0, "day": 0, "x": 1}], also="day = 0")):
        made.merge([{"id": 1, "day": 1, "x": 2}], also="day = 1")
    assert xs(made) == {0: 1, 1: 2, 2: 0, 3: 0}
