"""A program alone has no conflict with itself: rows that it had read stay what it had read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._log.log import forget
from anabranch._log.positions import LogPosition, all_versions
from anabranch._protocol.merges import MergePlan
from anabranch._transaction.own_commits import another_program, is_own
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.write import Write
from anabranch.commands.queries.read import Read
from anabranch.errors.process_state import STATE
from anabranch.testing import Row, at_phase
from anabranch.testing.arrow_engine import read_from
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
    mark = LogPosition.snapshot(world.log.snapshot(version)).mark
    assert mark is not None
    return read_from(pa.Table.from_pylist(rows), version, mark)


def insert(world: World, source: pa.Table, mode: str = "append") -> Any:
    return Write(world.path, source, mode).run(world.engine)


def merge(world: World, source: pa.Table) -> Any:
    matching = MergePlan(lambda row, new: equal(row["id"], new["id"]), (update_all("id", "x"), insert_all("id", "x")))
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


def test_others_may_move_rows(world: World) -> None:
    source = frame(world)
    world.append({"id": 50, "x": 50})
    with another_program():
        world.optimize()
    world.append({"id": 51, "x": 51})
    insert(world, source)
    assert ids(world) == [1, 2, 3, 50, 51, 101, 102, 103]


def test_what_others_bring_and_take_away_again_may_have_been_read_in_between(world: World) -> None:
    first = world.version
    with another_program():
        world.append({"id": 60, "x": 60})
        source = frame(world)
        world.delete("id = 60")
    with pytest.raises(errors.DeltaConcurrentModificationException):
        Write(world.path, source, "append", reads_target=first).run(world.engine)
    assert 160 not in ids(world)


def test_what_runs_behind_an_append_of_many_callers_is_no_part_of_it(world: World) -> None:
    source = frame(world)
    with anabranch.appender(world.path) as appender:
        with ThreadPoolExecutor(1) as another:
            another.submit(lambda: appender.append([{"id": 9, "x": 90}])).result()
        told = appender.submit([{"id": 10, "x": 100}])
        told.add_done_callback(lambda done: insert(world, source, "overwrite"))
        told.result()
    assert ids(world) == [1, 2, 3, 9, 10]


def test_a_commit_that_only_bears_the_programs_id_is_not_its_own(world: World) -> None:
    source = frame(world)
    world.append({"id": 9, "x": 90})
    own = Path(world.path, "_delta_log", f"{world.version:020}.json")
    theirs = own.with_name(f"{world.version + 1:020}.json")
    info, *_ = own.read_text("utf-8").splitlines()
    removes = [
        {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1}}
        for path in anabranch.files(world.path, version=0)["path"].to_pylist()
    ]
    theirs.write_text("\n".join([info, *map(json.dumps, removes), ""]), encoding="utf-8")
    with pytest.raises(errors.DeltaConcurrentModificationException):
        insert(world, source)


def test_a_forked_process_is_a_program_of_its_own(world: World) -> None:
    source = frame(world)
    world.append({"id": 9, "x": 90})
    own = world.log.read(world.version)
    assert own is not None
    assert is_own(own, world.log.table, since=0)
    assert is_own(own, world.log.table, since=None)
    assert not is_own(own, world.log.table, since=1)
    assert not is_own(own, "file:///elsewhere", since=0)
    pid = os.fork()
    if pid == 0:
        os._exit(1 if is_own(own, world.log.table, since=0) else 0)
    assert os.waitpid(pid, 0)[1] == 0
    insert(world, source)


def test_a_version_that_the_log_has_forgotten_can_never_be_written(world: World) -> None:
    source = frame(world)
    world.append({"id": 9, "x": 90})
    world.log.write_checkpoint(world.log.snapshot(), now_ms=0)
    for version in (0, 1):
        Path(world.path, "_delta_log", f"{version:020}.json").unlink()
    forget(world.log.table)
    with pytest.raises(errors.VersionNotFound) as error:
        insert(world, source)
    assert not error.value.retryable


def test_rows_of_a_version_that_was_put_back_are_of_no_version(world: World) -> None:
    source = frame(world)
    with pytest.raises(errors.VersionNotFound):
        insert(world, read_from(source.replace_schema_metadata({}), 7))
    assert ids(world) == [1, 2, 3]


def take_away_newest(world: World) -> None:
    """The newest commit is taken away by hand, as where a log is put back from a backup."""
    newest = Path(world.path, "_delta_log", f"{world.version:020}.json")
    newest.unlink()
    newest.with_suffix(".crc").unlink(missing_ok=True)
    forget(world.log.table)


@pytest.mark.parametrize("grown", [1, 2])
def test_a_version_is_known_by_its_commit_and_not_by_its_number(world: World, grown: int) -> None:
    """The log was put back, and has grown again to the version of the frame, or beyond it by own commits."""
    world.append({"id": 8, "x": 80})
    source = frame(world)
    take_away_newest(world)
    for number in range(grown):
        world.append({"id": 20 + number, "x": 0})
    with pytest.raises(errors.VersionReplaced) as error:
        insert(world, source)
    assert (error.value.facts["version"], error.value.retryable) == (1, False)
    assert ids(world) == [1, 2, 3, 20, 21][: 3 + grown]


def test_each_version_that_a_frame_reads_is_known_by_its_commit(world: World) -> None:
    """A version of the log as it stands, and one of what was put back: the older one alone would be right."""
    old = frame(world)
    world.append({"id": 8, "x": 80})
    engine, table = world.engine, (world.log.table, world.log.snapshot().metadata.id)
    read = all_versions(engine.source_versions(each, *table) for each in (old, frame(world)))
    assert read is not None
    assert (read.oldest, world.log.find_oldest_replaced(read.commits)) == (0, None)
    take_away_newest(world)
    assert world.log.find_oldest_replaced(read.commits) is None  # a version that is not there is not replaced
    world.append({"id": 9, "x": 90})
    assert world.log.find_oldest_replaced(read.commits) == 1


def test_a_table_that_stands_there_again_when_the_write_has_begun_is_asked_for_what_it_had(world: World) -> None:
    source, path = frame(world), Path(world.path)
    with another_program():
        world.delete("id = 1")
    aside = path.rename(path.with_name("aside"))
    forget(world.log.table)

    def back() -> None:
        aside.rename(path)

    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("read", back):
        insert(world, source)
    assert ids(world) == [2, 3]


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
