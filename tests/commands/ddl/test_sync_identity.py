"""SYNC IDENTITY: numbers go on behind those that users gave, beside other writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import errors
from anabranch._protocol.rules.identity import identities, identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Create
from anabranch.commands.ddl.sync_identity import SyncIdentity
from anabranch.commands.dml.new_table import NewTable
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path


def made(folder: Path, start: int = 1, step: int = 1) -> World:
    number = Field("n", "long", True, identity_metadata(start, step, explicit=True))
    path = table_path(folder)
    Create(path, NewTable(Struct((Field("id", "long"), number)))).run()
    return World(path)


def sync(world: World, column: str = "n") -> object:
    return SyncIdentity(world.path, column).run(world.engine)


@pytest.mark.parametrize(
    ("start", "step", "given", "following"),
    [(1, 1, 7, 8), (1, 5, 7, 16), (1, 5, 11, 16), (-1, -2, -6, -9), (10, 1, 3, 10)],
)
def test_the_next_number_lies_behind_the_farthest(
    tmp_path: Path, start: int, step: int, given: int, following: int
) -> None:
    world = made(tmp_path, start, step)
    world.append({"id": 1, "n": given}, {"id": 2, "n": None})
    sync(world)
    world.append({"id": 3})
    assert {row["id"]: row["n"] for row in world.rows()} == {1: given, 2: None, 3: following}
    world.assert_clean()


def test_a_mark_never_goes_back_and_nothing_is_written_where_it_stands(tmp_path: Path) -> None:
    world = made(tmp_path)
    assert sync(world) is None
    world.append({"id": 1, "n": 50})
    assert sync(world) is not None
    assert world.info()["operation"] == "CHANGE COLUMN"
    world.delete("id = 1")
    assert sync(world) is None
    world.append({"id": 2})
    assert world.rows() == [{"id": 2, "n": 51}]


def test_rows_that_were_deleted_do_not_count(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.append({"id": 1, "n": 50}, {"id": 2, "n": 4})
    world.delete("id = 1")
    sync(world)
    assert [each.mark for each in identities(world.log.snapshot().schema)] == [4]


@pytest.mark.slow
def test_rows_that_come_meanwhile_are_a_conflict_and_a_sync_stops_no_writer(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.append({"id": 1, "n": 5})
    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", lambda: world.append({"id": 2, "n": 90})):
        sync(world)
    with at_phase("staged", lambda: sync(world)):
        world.append({"id": 3, "n": 6})
    world.append({"id": 4})
    assert {row["id"]: row["n"] for row in world.rows()} == {1: 5, 2: 90, 3: 6, 4: 91}
    world.assert_clean()


@pytest.mark.slow
def test_under_redo_a_sync_reads_the_rows_that_came_meanwhile(tmp_path: Path) -> None:
    world = made(tmp_path)
    SetProperties(world.path, {"anabranch.conflictResolution": "redo"}).run()
    world.append({"id": 1, "n": 5})
    with at_phase("staged", lambda: world.append({"id": 2, "n": 90})):
        sync(world)
    assert world.info()["operationMetrics"]["numRedoneRuns"] == "1"
    world.append({"id": 3})
    assert {row["id"]: row["n"] for row in world.rows()} == {1: 5, 2: 90, 3: 91}


def test_a_column_that_no_table_numbers_is_refused(tmp_path: Path) -> None:
    world = made(tmp_path)
    with pytest.raises(errors.InvalidOption, match="cannot be called on non IDENTITY columns") as refused:
        sync(world, "id")
    assert refused.value.getCondition() == "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"
    with pytest.raises(errors.UnknownColumn):
        sync(world, "nope")
    world.append({"id": 1, "n": (1 << 63) - 2})
    other = made(tmp_path, 1, 5)
    other.append({"id": 1, "n": (1 << 63) - 1})
    with pytest.raises(errors.InvalidSchema, match="left after"):
        sync(other)
