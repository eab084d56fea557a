"""Tables that we wrote, as delta-rs and DuckDB read them; tables that delta-rs wrote, as we do; and both by turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import anabranch
from anabranch._log.file_names import LAST_CHECKPOINT
from anabranch._log.log import forget
from anabranch.errors import ConcurrentAppendException, ConcurrentDeleteReadException
from anabranch.testing import Row, at_phase
from tests.support.changes import CHANGES, NASTY, ROWS, TYPED, TYPES
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World, table_path

pytestmark = pytest.mark.interop


@pytest.fixture(params=[(), ("day",)], ids=["flat", "by day"])
def partition_by(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(request.param)


@pytest.fixture(params=["true", "false"], ids=["vectors", "no vectors"])
def world(request: pytest.FixtureRequest, tmp_path: Path, partition_by: tuple[str, ...]) -> World:
    made = World(table_path(tmp_path))
    return made.create(ROWS, partition_by=partition_by, delta_enableDeletionVectors=str(request.param))


def assert_all_read_the_same(world: World) -> None:
    """We, delta-rs and DuckDB; ours both from the shared snapshot and from a log read anew."""
    shared = world.rows()
    forget(world.log.table)
    assert same_rows(world.rows(), shared)
    assert same_rows(deltalake_rows(world.path), shared)
    assert same_rows(duckdb_rows(world.path), shared)


@pytest.mark.slow
def test_others_read_every_version_that_our_commands_make(world: World) -> None:
    assert_all_read_the_same(world)
    for change in CHANGES.values():
        change(world)
        assert_all_read_the_same(world)
    world.assert_clean()


def test_others_read_a_table_from_our_checkpoint(world: World) -> None:
    for i in range(11):
        world.append({"id": 1000 + i, "day": f"d{i}", "x": None})
        world.update(f"id = {i}", x=-1.0)
    assert world.log.store.head(LAST_CHECKPOINT) is not None
    for version in range(10):  # what the checkpoint holds is read from nowhere else
        world.log.store.delete(f"_delta_log/{version:020d}.json")
    assert_all_read_the_same(world)


def test_others_read_nasty_partition_values(tmp_path: Path) -> None:
    values = [*NASTY, None]
    world = World(table_path(tmp_path))
    world.create([{"id": i, "p": value} for i, value in enumerate(values)], partition_by=("p",))
    world.delete("id > 9 AND id < 13")
    world.update("id < 5", id=-1)
    assert {row["p"] for row in world.rows()} == {*values[:10], *values[13:]}
    assert_all_read_the_same(world)


@pytest.mark.parametrize("name", TYPED)
def test_others_read_every_type(tmp_path: Path, name: str) -> None:
    values = TYPED[name]
    rows = pa.table({"id": range(len(values)), "value": pa.array(values, TYPES.get(name))})
    path = table_path(tmp_path)
    anabranch.append(path, rows)
    assert_all_read_the_same(World(path))


@pytest.mark.parametrize("name", ["boolean", "long", "double", "date", "timestamp", "decimal"])
def test_others_read_partition_values_of_every_type(tmp_path: Path, name: str) -> None:
    values = [value for value in TYPED[name] if value == value]  # NaN does not name a partition the same everywhere
    rows = pa.table({"id": range(len(values)), "value": pa.array(values, TYPES.get(name))})
    path = table_path(tmp_path)
    anabranch.append(path, rows, partition_by=["value"])
    assert_all_read_the_same(World(path))


# -- delta-rs writes ---------------------------------------------------------------------------------------------------


def theirs(path: str, *rows: Row, **options: Any) -> None:
    """An append, or a creation, by delta-rs."""
    types = pa.schema([("id", pa.int64()), ("day", pa.string()), ("x", pa.float64())])
    deltalake.write_deltalake(path, pa.Table.from_pylist(list(rows), schema=types), mode="append", **options)


@pytest.mark.slow
def test_we_go_on_with_a_table_that_delta_rs_made(tmp_path: Path, partition_by: tuple[str, ...]) -> None:
    world = World(table_path(tmp_path))
    theirs(world.path, *ROWS, partition_by=list(partition_by) or None)
    assert same_rows(world.rows(), ROWS)
    for change in CHANGES.values():
        change(world)
        theirs(world.path, {"id": 500, "day": "d1", "x": 5.0}, {"id": 4, "day": None, "x": None})
        assert_all_read_the_same(world)
    world.assert_clean()


@pytest.mark.slow
def test_rows_that_delta_rs_changes_are_changed_for_us(world: World) -> None:
    for i in range(12):  # past a checkpoint of ours
        world.append({"id": 50 + i, "day": "d1", "x": None})
    table = deltalake.DeltaTable(world.path)
    table.delete("id = 2 OR id >= 58")
    table.update(updates={"x": "x + 100"}, predicate="day = 'd2'")
    assert {row["id"] for row in world.rows()} == {*range(12), *range(50, 58)} - {2}
    assert {row["x"] for row in world.rows() if row["day"] == "d2"} == {101.25, 102.75}
    world.update("id = 5", x=0.0)
    world.delete("id = 50")
    assert_all_read_the_same(world)
    world.assert_clean()


def test_rows_with_vectors_stay_deleted_when_delta_rs_rewrites_their_file(world: World) -> None:
    world.delete("id = 3 OR id = 6")
    deltalake.DeltaTable(world.path).update(updates={"x": "-1"}, predicate="id = 9 OR id = 10")
    world.delete("id = 0")
    assert {row["id"] for row in world.rows()} == set(range(12)) - {0, 3, 6}
    assert_all_read_the_same(world)
    world.assert_clean()


def test_we_read_a_checkpoint_of_delta_rs(world: World) -> None:
    world.update("id = 5", x=0.0)
    before = world.rows()
    deltalake.DeltaTable(world.path).create_checkpoint()
    for version in range(2):
        world.log.store.delete(f"_delta_log/{version:020d}.json")
    forget()
    assert same_rows(world.rows(), before)
    world.delete("id = 5")
    assert_all_read_the_same(world)


# -- both at once ------------------------------------------------------------------------------------------------------


def test_a_change_of_ours_is_carried_over_an_append_of_delta_rs(world: World) -> None:
    with at_phase("staged", lambda: theirs(world.path, {"id": 500, "day": "d9", "x": 5.0})):
        world.update("id = 5", x=0.0)
    assert {row["id"]: row["x"] for row in world.rows() if row["id"] in (5, 500)} == {5: 0.0, 500: 5.0}
    assert_all_read_the_same(world)
    world.assert_clean()


def test_an_append_of_ours_is_carried_over_a_change_of_delta_rs(world: World) -> None:
    with at_phase("staged", lambda: deltalake.DeltaTable(world.path).delete("id < 6")):
        world.append({"id": 500, "day": "d9", "x": 5.0})
    assert {row["id"] for row in world.rows()} == {*range(6, 12), 500}
    assert_all_read_the_same(world)
    world.assert_clean()


def test_a_change_of_rows_that_delta_rs_deletes_meanwhile_is_refused(world: World) -> None:
    expected = (ConcurrentDeleteReadException, ConcurrentAppendException)  # the second where it rewrote the file
    with (
        pytest.raises(expected),
        at_phase("staged", lambda: deltalake.DeltaTable(world.path).delete("day = 'd1'")),
    ):
        world.update("day = 'd1'", x=0.0)
    assert "d1" not in {row["day"] for row in world.rows()}
    world.assert_clean()


def test_we_follow_delta_rs_when_it_replaces_the_schema_and_the_partitioning(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    assert len(world.rows()) == len(ROWS)
    rows = pa.table({"id": [1, 2], "part": ["a", None]})
    deltalake.write_deltalake(
        world.path, rows, mode="overwrite", schema_mode="overwrite", partition_by=["part"], configuration={}
    )
    world.append({"id": 3, "part": "b"})
    assert_all_read_the_same(world)
    assert {row["part"] for row in world.rows()} == {"a", "b", None}


def test_same_rows_sees_what_pythons_own_equality_hides() -> None:
    nan = float("nan")
    assert same_rows([{"a": nan}, {"a": None}], [{"a": None}, {"a": float("nan")}])
    assert same_rows([{"a": 1, "b": 2}], [{"b": 2, "a": 1}])
    assert not same_rows([{"a": 1}], [{"a": 1}, {"a": 1}])
    assert not same_rows([{"a": 1}], [{"a": 1.0}])
    assert not same_rows([{"a": None}], [{"a": 0}])
    assert not same_rows([{"a": None}], [{}])


def test_an_append_may_leave_a_column_without_any_value(world: World) -> None:
    world.append({"id": 900, "day": None, "x": None}, {"id": 901, "day": None, "x": None})
    assert_all_read_the_same(world)
    world.assert_clean()
