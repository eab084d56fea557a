"""A program alone has no conflict with itself: rows that it had read stay what it had read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.write import Write
from anabranch.commands.queries.read import Read
from anabranch.errors.process_state import STATE
from anabranch.protocol.merges import Matching
from anabranch.testing import Row, at_phase
from anabranch.testing.arrow_engine import read_from
from anabranch.transaction.own_commits import another_program
from tests.support.worlds import World, equal, insert_all, table_path, update_all

ROWS: list[Row] = [{"id": 1, "x": 10}, {"id": 2, "x": 20}, {"id": 3, "x": 30}]


@pytest.fixture(params=["WriteSerializable", "Serializable"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel=request.param)
    yield made
    made.assert_clean()


def frame(world: World, add: int = 100) -> pa.Table:
    """SELECT id + 100, x FROM t, as a DataFrame that holds it at the newest version."""
    version = world.version
    rows = [{"id": row["id"] + add, "x": row["x"]} for row in world.engine.rows(Read(world.path, version).run())]
    return read_from(pa.Table.from_pylist(rows), version)


def insert(world: World, source: pa.Table, mode: str = "append") -> Any:
    return Write(world.path, source, mode).run(world.engine)


def merge(world: World, source: pa.Table) -> Any:
    matching = Matching(lambda row, new: equal(row["id"], new["id"]), (update_all("id", "x"), insert_all("id", "x")))
    return Merge(world.path, source, matching, world.condition(None)).run(world.engine)


def ids(world: World) -> list[int]:
    return [row["id"] for row in world.rows()]


def set_property(world: World) -> None:
    SetProperties(world.path, {"owner": "me"}).run(world.engine)


OWN: dict[str, Callable[[World], Any]] = {
    "append": lambda world: world.append({"id": 9, "x": 90}),
    "update": lambda world: world.update("id = 2", x=99),
    "delete": lambda world: world.delete("id = 2"),
    "merge": lambda world: world.merge([{"id": 1, "x": 11}, {"id": 8, "x": 80}]),
    "overwrite": lambda world: world.overwrite({"id": 7, "x": 70}),
    "optimize": lambda world: (world.append({"id": 9, "x": 90}), world.optimize()),
    "properties": set_property,
    "the same frame": lambda world: insert(world, frame(world, 500)),
}


@pytest.mark.parametrize("own", list(OWN))
@pytest.mark.parametrize("bring", [insert, merge])
def test_a_program_writes_rows_that_it_had_read_before_its_own_commits(
    world: World, own: str, bring: Callable[[World, pa.Table], Any]
) -> None:
    source = frame(world)
    OWN[own](world)
    before = world.rows()
    bring(world, source)
    brought = [{"id": row["id"] + 100, "x": row["x"]} for row in ROWS]
    assert world.rows() == sorted([*before, *brought], key=lambda row: row["id"])
    assert world.info()["isBlindAppend"] is False


def test_one_frame_is_appended_twice_and_merged_twice(world: World) -> None:
    source = frame(world)
    insert(world, source)
    insert(world, source)
    merge(world, frame(world, 1000))
    merge(world, source.replace_schema_metadata(frame(world).schema.metadata))
    assert ids(world).count(101) == 2


def test_an_overwrite_puts_what_the_program_had_read_in_place_of_what_it_wrote_since(world: World) -> None:
    source = frame(world)
    world.append({"id": 9, "x": 90})
    insert(world, source, "overwrite")
    assert ids(world) == [101, 102, 103]


THEIRS: dict[str, Callable[[World], Any]] = {name: OWN[name] for name in OWN if name != "optimize"}


@pytest.mark.parametrize("theirs", list(THEIRS))
@pytest.mark.parametrize("bring", [insert, merge])
@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_what_others_committed_since_is_a_conflict_whatever_the_program_committed_itself(
    world: World, theirs: str, bring: Callable[[World, pa.Table], Any], place: str
) -> None:
    source, after = frame(world), world.version
    for step in ("before", "own", "between", "own", "after"):
        if step == "own":
            world.append({"id": 50, "x": 50})
        elif step == place:
            with another_program():
                THEIRS[theirs](world)
            after = world.version
    versions = world.version
    with pytest.raises(errors.DeltaConcurrentModificationException) as error:
        bring(world, source)
    assert world.version == versions
    assert error.value.facts["winner_version"] == after
    assert not error.value.retryable
    assert "Read the DataFrame anew" in str(error.value)


def test_others_may_move_rows_and_bring_what_they_take_away_again(world: World) -> None:
    source = frame(world)
    world.append({"id": 50, "x": 50})
    with another_program():
        world.append({"id": 60, "x": 60})
        world.delete("id = 60")
    world.append({"id": 51, "x": 51})
    with another_program():
        world.optimize()
    insert(world, source)
    assert ids(world) == [1, 2, 3, 50, 51, 101, 102, 103]


def test_what_another_thread_commits_is_not_the_programs_own(world: World) -> None:
    source = frame(world)
    with ThreadPoolExecutor(1) as another:
        another.submit(world.append, {"id": 9, "x": 90}).result()
        with pytest.raises(errors.ConcurrentAppendException):
            insert(world, source)
        another.submit(insert, world, frame(world)).result()


def test_a_process_that_remembers_no_commit_has_none_of_its_own(world: World) -> None:
    source = frame(world)
    world.append({"id": 9, "x": 90})
    with STATE.as_another_process(), pytest.raises(errors.ConcurrentAppendException):
        insert(world, source)


def test_a_frame_that_was_read_while_the_commit_was_under_way_was_not_read_before_it(world: World) -> None:
    """Our update stands before the append, which the frame shows; the update it does not show. No order has both."""
    held: list[pa.Table] = []

    def meanwhile() -> None:
        with another_program():
            world.append({"id": 9, "x": 90})
        held.append(frame(world))

    with at_phase("staged", meanwhile):
        world.update("id = 2", x=99)
    with pytest.raises(errors.DeltaConcurrentModificationException):
        insert(world, held[0])


def test_a_winner_during_the_write_is_a_conflict_that_the_same_frame_cannot_help(world: World) -> None:
    source = frame(world)
    world.append({"id": 50, "x": 50})

    def meanwhile() -> None:
        with another_program():
            world.delete("id = 1")

    with pytest.raises(errors.ConcurrentDeleteReadException) as error, at_phase("staged", meanwhile):
        insert(world, source)
    assert not error.value.retryable
    statement = Write(world.path, frame(world), "append", reads_anew=True)

    def again() -> None:
        with another_program():
            world.delete("id = 2")

    with pytest.raises(errors.ConcurrentDeleteReadException) as error, at_phase("staged", again):
        statement.run(world.engine)
    assert error.value.retryable


def test_what_a_program_within_a_program_commits_belongs_to_it_alone(world: World) -> None:
    source = frame(world)
    with another_program():
        world.append({"id": 9, "x": 90})
        insert(world, frame(world))
    with pytest.raises(errors.ConcurrentAppendException):
        insert(world, source)
