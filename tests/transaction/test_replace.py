"""Overwrites of a part against winners: judged as a DELETE of just that part, together with an INSERT."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.write import Write
from anabranch.commands.idempotence import application
from anabranch.testing import Row, at_phase
from tests.support.raw_logs import info, put_commit, put_rows
from tests.support.worlds import World, table_path

LEVELS = ("WriteSerializable", "Serializable")
BY_ROWS: dict[str, str] = {}
BY_FILES = {"anabranch_conflictResolution": "file"}
WITHOUT_VECTORS = {"delta_enableDeletionVectors": "false"}
DIALS = {"row": BY_ROWS, "file": BY_FILES, "no vectors": WITHOUT_VECTORS}
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("day", pa.string())])
ROWS: list[Row] = [{"id": i, "x": i * 10, "day": f"d{i % 3}"} for i in range(6)]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=list(DIALS.values()), ids=list(DIALS))
def dial(request: pytest.FixtureRequest) -> dict[str, str]:
    return dict(request.param)


@pytest.fixture
def flat(tmp_path: Path, level: str, dial: dict[str, str]) -> Iterator[World]:
    yield from world(tmp_path, (), delta_isolationLevel=level, **dial)


@pytest.fixture
def by_row(tmp_path: Path, level: str) -> Iterator[World]:
    yield from world(tmp_path, (), delta_isolationLevel=level)


@pytest.fixture(params=[BY_FILES, WITHOUT_VECTORS], ids=["file", "no vectors"])
def by_file(request: pytest.FixtureRequest, tmp_path: Path, level: str) -> Iterator[World]:
    yield from world(tmp_path, (), delta_isolationLevel=level, **request.param)


@pytest.fixture
def by_day(tmp_path: Path, level: str, dial: dict[str, str]) -> Iterator[World]:
    yield from world(tmp_path, ("day",), delta_isolationLevel=level, **dial)


def world(folder: Path, columns: tuple[str, ...], **properties: str) -> Iterator[World]:
    made = World(table_path(folder)).create(ROWS, partition_by=columns, **properties)
    yield made
    made.assert_clean()


def row(id_: int, day: str | None = "d0") -> Row:
    return {"id": id_, "x": 1, "day": day}


def table_of(rows: tuple[Row, ...]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def replace_where(world: World, where: str, *rows: Row) -> Any:
    return Write(world.path, table_of(rows), "overwrite", replace_where=world.condition(where)).run(world.engine)


def replace_partitions(world: World, *rows: Row) -> Any:
    return Write(world.path, table_of(rows), "overwrite", dynamic=True).run(world.engine)


def write_once(world: World, version: int, *rows: Row, mode: str = "append") -> Any:
    return Write(world.path, table_of(rows), mode, txn=application("stream", version)).run(world.engine)


def ids(world: World) -> list[int]:
    return [each["id"] for each in world.rows()]


# -- replaceWhere against inserts --------------------------------------------------------------------------------------


def test_a_replace_stands_behind_an_append_of_other_rows(flat: World) -> None:
    with at_phase("staged", lambda: flat.append(row(50))):
        replace_where(flat, "id <= 2", row(0))
    assert ids(flat) == [0, 3, 4, 5, 50]


def test_a_replace_stands_before_an_append_of_a_matching_row_at_write_serializable(flat: World) -> None:
    if flat.log.snapshot().properties.isolation_level == "Serializable":
        with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", lambda: flat.append(row(1))):
            replace_where(flat, "id <= 2", row(0))
        assert ids(flat) == [0, 1, 1, 2, 3, 4, 5]
        return
    with at_phase("staged", lambda: flat.append(row(1))):
        replace_where(flat, "id <= 2", row(0))
    assert ids(flat) == [0, 1, 3, 4, 5]


@pytest.mark.slow
@pytest.mark.parametrize("dial", DIALS.values(), ids=DIALS.keys())
def test_a_replace_takes_the_matching_row_of_a_blind_append_that_it_must_stand_behind(
    tmp_path: Path, dial: dict[str, str]
) -> None:
    """The append is followed by a winner that is not blind, so the replace stands behind both."""
    for made in world(tmp_path, (), **dial):

        def winners(made: World = made) -> None:
            made.append(row(1), row(50))
            put_commit(made.path, 2, info(), {"txn": {"appId": "a", "version": 1}})

        with at_phase("staged", winners):
            replace_where(made, "id <= 2", row(0))
        assert ids(made) == [0, 3, 4, 5, 50]
        metrics = made.info()["operationMetrics"]
        assert (metrics["numDeletedRows"], metrics["numOutputRows"]) == ("4", "1")


def test_a_replace_that_finds_no_row_is_not_blind(flat: World) -> None:
    """Else another replace of the same range would not see it."""
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: replace_where(flat, "id > 100", row(101))),
    ):
        replace_where(flat, "id > 100", row(102))
    assert flat.info()["isBlindAppend"] is False
    assert ids(flat) == [0, 1, 2, 3, 4, 5, 101]


def test_an_append_never_conflicts_with_a_replace(flat: World) -> None:
    with at_phase("staged", lambda: replace_where(flat, "id <= 2", row(0))):
        flat.append(row(1))
    assert ids(flat) == [0, 1, 3, 4, 5]


# -- replaceWhere against changes --------------------------------------------------------------------------------------


CHANGES: dict[str, Callable[[World, str], Any]] = {
    "update": lambda world, where: world.update(where, x=7),
    "delete": lambda world, where: world.delete(where),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_by_rows_a_change_outside_the_condition_and_a_replace_both_land(by_row: World, change: str) -> None:
    with at_phase("staged", lambda: CHANGES[change](by_row, "id = 5")):
        replace_where(by_row, "id <= 2", row(0))
    with at_phase("staged", lambda: replace_where(by_row, "id <= 2", row(1))):
        CHANGES[change](by_row, "id = 4")
    left = {"update": [1, 3, 4, 5], "delete": [1, 3]}[change]
    assert ids(by_row) == left


@pytest.mark.parametrize("change", CHANGES)
def test_by_rows_a_replace_of_a_changed_row_is_refused(by_row: World, change: str) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException) as refused,
        at_phase("staged", lambda: CHANGES[change](by_row, "id = 1")),
    ):
        replace_where(by_row, "id <= 2", row(0))
    assert refused.value.getCondition() == "DELTA_CONCURRENT_DELETE_READ.ROW_LEVEL_CHANGES"
    assert (refused.value.operation, refused.value.predicate) == ("WRITE", "id <= 2")
    assert by_row.version == 1


@pytest.mark.parametrize("change", CHANGES)
def test_by_rows_a_change_of_a_replaced_row_is_refused(by_row: World, change: str) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: replace_where(by_row, "id <= 2", row(0))),
    ):
        CHANGES[change](by_row, "id = 1")
    assert ids(by_row) == [0, 3, 4, 5]


def test_by_rows_an_update_that_moves_a_row_into_the_condition_stops_a_replace(by_row: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: by_row.update("id = 5", id=2)),
    ):
        replace_where(by_row, "id <= 2", row(0))


def test_by_rows_a_change_of_what_a_replace_brought_is_refused(by_row: World) -> None:
    """The new row satisfies the change's condition, which has not seen it."""
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: replace_where(by_row, "id >= 90", row(95))),
    ):
        by_row.update("id > 4", x=7)


def test_a_replace_without_rows_against_a_delete_of_one_of_its_rows_is_two_deletes(by_row: World) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteDeleteException),
        at_phase("staged", lambda: by_row.delete("id = 1")),
    ):
        replace_where(by_row, "id <= 2")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", ["id = 1", "id = 5"])
def test_by_files_any_change_of_a_file_that_is_read_stops_a_replace(by_file: World, change: str, where: str) -> None:
    expected = (errors.ConcurrentDeleteReadException, errors.ConcurrentAppendException)
    with pytest.raises(expected) as refused, at_phase("staged", lambda: CHANGES[change](by_file, where)):
        replace_where(by_file, "id <= 2", row(0))
    assert refused.value.sub_condition == "WITHOUT_HINT"
    assert by_file.version == 1


@pytest.mark.parametrize("change", CHANGES)
def test_partitions_keep_a_change_and_a_replace_apart(by_day: World, change: str) -> None:
    with at_phase("staged", lambda: CHANGES[change](by_day, "day = 'd1'")):
        replace_where(by_day, "day = 'd0'", row(9))
    assert ids(by_day) == {"update": [1, 2, 4, 5, 9], "delete": [2, 5, 9]}[change]


# -- replaceWhere against each other -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_by_rows_replaces_of_disjoint_ranges_of_one_file_both_land(by_row: World) -> None:
    with at_phase("staged", lambda: replace_where(by_row, "id >= 4", row(4), row(44))):
        replace_where(by_row, "id <= 2", row(0))
    assert ids(by_row) == [0, 3, 4, 44]


def test_replaces_of_different_partitions_both_land(by_day: World) -> None:
    with at_phase("staged", lambda: replace_where(by_day, "day = 'd1'", row(11, "d1"))):
        replace_where(by_day, "day = 'd0'", row(10))
    assert ids(by_day) == [2, 5, 10, 11]


def test_replaces_of_overlapping_ranges_conflict(flat: World) -> None:
    refused_as = (errors.ConcurrentDeleteReadException, errors.ConcurrentAppendException)
    with pytest.raises(refused_as), at_phase("staged", lambda: replace_where(flat, "id >= 2", row(8))):
        replace_where(flat, "id <= 2", row(0))
    assert ids(flat) == [0, 1, 8]


def test_overlapping_replaces_conflict_by_the_rows_that_the_first_brought(by_row: World) -> None:
    """No row of the base is in both ranges, the winner's new one is."""
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: replace_where(by_row, "x >= 1000", {"id": 1, "x": 1000, "day": "d0"})),
    ):
        replace_where(by_row, "id <= 2", row(0))


@pytest.mark.slow
def test_a_plain_overwrite_and_a_replace_conflict_either_way(flat: World) -> None:
    conflict = errors.DeltaConcurrentModificationException
    with pytest.raises(conflict), at_phase("staged", lambda: flat.overwrite(row(1))):
        replace_where(flat, "id <= 2", row(0))
    with pytest.raises(conflict), at_phase("staged", lambda: replace_where(flat, "id <= 2", row(0))):
        flat.overwrite(row(9))
    assert ids(flat) == [0]


def test_a_replace_that_is_refused_leaves_none_of_its_files(flat: World) -> None:
    refused_as = errors.DeltaConcurrentModificationException
    with pytest.raises(refused_as), at_phase("staged", lambda: flat.delete("id = 1")):
        replace_where(flat, "id <= 2", row(0))
    named = {each for commit in range(2) for each in paths_named(flat, commit)}
    lying = {str(p.relative_to(flat.path)) for p in Path(flat.path).rglob("*.parquet")}
    assert lying <= named


def paths_named(world: World, version: int) -> set[str]:
    commit = world.log.read(version)
    assert commit is not None
    return {str(each) for each in commit.adds["path"].to_pylist()}


# -- dynamic overwrites ------------------------------------------------------------------------------------------------


def test_dynamic_overwrites_of_different_partitions_both_land(by_day: World) -> None:
    with at_phase("staged", lambda: replace_partitions(by_day, row(11, "d1"), row(13, None))):
        replace_partitions(by_day, row(10), row(12, "d2"))
    assert ids(by_day) == [10, 11, 12, 13]


def test_of_two_dynamic_overwrites_of_one_partition_the_second_is_refused(by_day: World) -> None:
    conflict = (errors.ConcurrentDeleteReadException, errors.ConcurrentAppendException)
    with (
        pytest.raises(conflict) as refused,
        at_phase("staged", lambda: replace_partitions(by_day, row(10), row(11, "d1"))),
    ):
        replace_partitions(by_day, row(20), row(22, "d2"))
    assert refused.value.predicate == "day = 'd0' OR day = 'd2'"
    assert ids(by_day) == [2, 5, 10, 11]


@pytest.mark.parametrize("day", [None, "new"])
def test_of_two_dynamic_overwrites_that_bring_one_new_partition_the_second_is_refused(
    by_day: World, day: str | None
) -> None:
    """Neither has anything to remove, and each should have read the other's rows."""
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: replace_partitions(by_day, row(10, day))),
    ):
        replace_partitions(by_day, row(20, day))
    assert ids(by_day) == [0, 1, 2, 3, 4, 5, 10]


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_dynamic_overwrite_meets_changes_of_its_partitions_only(by_day: World, change: str) -> None:
    with at_phase("staged", lambda: CHANGES[change](by_day, "day = 'd1'")):
        replace_partitions(by_day, row(10))
    version = by_day.version
    conflict = (errors.ConcurrentDeleteReadException, errors.ConcurrentAppendException)
    with pytest.raises(conflict), at_phase("staged", lambda: CHANGES[change](by_day, "day = 'd0' AND id = 10")):
        replace_partitions(by_day, row(30))
    assert by_day.version == version + 1


def test_a_dynamic_overwrite_against_an_append_to_its_partition(by_day: World) -> None:
    if by_day.log.snapshot().properties.isolation_level == "Serializable":
        with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", lambda: by_day.append(row(50))):
            replace_partitions(by_day, row(10))
    else:
        with at_phase("staged", lambda: by_day.append(row(50))):
            replace_partitions(by_day, row(10))
        assert ids(by_day) == [1, 2, 4, 5, 10, 50]


@pytest.mark.slow
def test_a_dynamic_overwrite_takes_what_a_blind_append_brought_to_its_partition_before_its_place(
    tmp_path: Path,
) -> None:
    for made in world(tmp_path, ("day",)):

        def winners(made: World = made) -> None:
            made.append(row(50), row(51, "d1"))
            put_commit(made.path, 2, info(), {"txn": {"appId": "a", "version": 1}})

        with at_phase("staged", winners):
            replace_partitions(made, row(10))
        assert ids(made) == [1, 2, 4, 5, 10, 51]


def test_a_dynamic_overwrite_goes_by_values_whatever_their_spelling(tmp_path: Path) -> None:
    """Another engine may write the integer 7 as 07, and NULL as an empty text."""
    made = World(table_path(tmp_path)).create([{"k": 7, "x": 1}, {"k": None, "x": 2}], partition_by=("k",))

    def spelled(name: str, text: str) -> Any:
        return put_rows(made.path, name, [{"x": 3}], partitionValues={"k": text})

    put_commit(made.path, 1, info(), spelled("a.parquet", "07"), spelled("b.parquet", ""), spelled("c.parquet", "8"))
    rows = pa.table({"k": pa.array([7, None], pa.int64()), "x": [9, 9]})
    Write(made.path, rows, "overwrite", dynamic=True).run(made.engine)
    assert made.rows() == [{"k": 7, "x": 9}, {"k": 8, "x": 3}, {"k": None, "x": 9}]


# -- idempotent writes -------------------------------------------------------------------------------------------------


def test_a_write_that_was_committed_before_is_skipped(flat: World) -> None:
    assert write_once(flat, 1, row(10)).version == 1
    assert write_once(flat, 1, row(10)) is None
    assert write_once(flat, 0, row(11), mode="overwrite") is None
    assert write_once(flat, 2, row(12)).version == 2
    assert ids(flat) == [0, 1, 2, 3, 4, 5, 10, 12]


def test_of_two_writes_of_one_application_at_once_the_second_is_refused_and_then_skipped(flat: World) -> None:
    with (
        pytest.raises(errors.ConcurrentTransactionException) as refused,
        at_phase("staged", lambda: write_once(flat, 1, row(10))),
    ):
        write_once(flat, 1, row(10))
    assert refused.value.retryable
    assert write_once(flat, 1, row(10)) is None
    assert ids(flat) == [0, 1, 2, 3, 4, 5, 10]


def test_an_older_version_of_the_application_stops_it_too(flat: World) -> None:
    """As in Delta: whether the two would have been in order is for the application to say."""
    with (
        pytest.raises(errors.ConcurrentTransactionException),
        at_phase("staged", lambda: write_once(flat, 1, row(10))),
    ):
        write_once(flat, 2, row(20))


def test_writes_of_different_applications_do_not_meet(flat: World) -> None:
    with at_phase("staged", lambda: Append(flat.path, [row(10)], txn=application("other", 1)).run()):
        write_once(flat, 1, row(20))
    assert ids(flat) == [0, 1, 2, 3, 4, 5, 10, 20]


def test_a_replace_may_be_idempotent(flat: World) -> None:
    def run() -> Any:
        where = flat.condition("id <= 2")
        command = Write(flat.path, table_of((row(0),)), "overwrite", replace_where=where, txn=application("stream", 3))
        return command.run(flat.engine)

    assert run().version == 1
    flat.append(row(1))
    assert run() is None
    assert ids(flat) == [0, 1, 3, 4, 5]


def test_the_race_to_create_a_table_that_the_same_application_won_is_no_error(tmp_path: Path) -> None:
    """The append that lost it looks again, and finds its rows there."""
    made = World(table_path(tmp_path))
    with at_phase("staged", lambda: write_once(made, 1, row(10))):
        assert write_once(made, 1, row(10)) is None
    assert ids(made) == [10]
    assert not list(Path(made.path).glob("job-*/_started_*"))


def test_the_commit_says_how_far_the_application_has_written(flat: World) -> None:
    write_once(flat, 5, row(10))
    lines = (Path(flat.path) / "_delta_log" / "00000000000000000001.json").read_text().splitlines()
    (txn,) = [action["txn"] for action in map(json.loads, lines) if "txn" in action]
    assert (txn["appId"], txn["version"]) == ("stream", 5)
    assert txn["lastUpdated"] > 1_600_000_000_000
