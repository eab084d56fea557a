"""A source that reads its own table: whatever others have changed since the version that was read conflicts."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch.commands
from anabranch import errors
from anabranch._log.positions import SourceVersions
from anabranch._protocol.conditions import Condition
from anabranch._protocol.merges import MergePlan
from anabranch._transaction.own_commits import another_program
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.dml.delete import Delete
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.update import Update
from anabranch.commands.dml.write import Write
from anabranch.commands.idempotence import application
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.commands.maintenance.reorg import Purge
from anabranch.commands.queries.read import Read
from anabranch.commands.sources import parse_declared_version
from anabranch.testing import Row, at_phase
from anabranch.testing.arrow_engine import read_from
from tests.support.worlds import World, equal, insert_all, table_path, update_all

ROWS: list[Row] = [{"id": 1, "x": 10}, {"id": 2, "x": 20}, {"id": 3, "x": 30}]
LEVELS = ("WriteSerializable", "Serializable")
DIALS: dict[str, dict[str, str]] = {
    "row": {},
    "file": {"anabranch_conflictResolution": "file"},
    "no vectors": {"delta_enableDeletionVectors": "false"},
}


GONE = (errors.ConcurrentDeleteReadException, errors.ConcurrentAppendException)
"""Without vectors the winner adds a file of what is left, and added files are looked at first."""


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=list(DIALS.values()), ids=list(DIALS))
def world(request: pytest.FixtureRequest, tmp_path: Path, level: str) -> Iterator[World]:
    made = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel=level, **request.param)
    yield made
    made.assert_clean()


def doubled(world: World, version: int | None = None) -> pa.Table:
    """SELECT id + 100, x * 2 FROM t, at a version."""
    at = world.version if version is None else version
    rows = [{"id": row["id"] + 100, "x": row["x"] * 2} for row in world.engine.rows(Read(world.path, at).run())]
    return read_from(pa.Table.from_pylist(rows), at)


def insert(world: World, source: pa.Table, mode: str = "append", **more: Any) -> Any:
    return Write(world.path, source, mode, **more).run(world.engine)


def merge(world: World, source: pa.Table, where: Condition | None = None, **more: Any) -> Any:
    matching = MergePlan(lambda row, new: equal(row["id"], new["id"]), (update_all("id", "x"), insert_all("id", "x")))
    return Merge(world.path, source, matching, where or world.condition(None), **more).run(world.engine)


# -- alone -------------------------------------------------------------------------------------------------------------


def test_an_insert_of_the_tables_own_rows_is_no_blind_append(world: World) -> None:
    insert(world, doubled(world))
    assert [row["id"] for row in world.rows()] == [1, 2, 3, 101, 102, 103]
    assert world.info()["isBlindAppend"] is False
    assert world.info()["tags"]["anabranch.rowLocal"] == "false"


def test_a_table_is_overwritten_by_what_was_computed_from_it(world: World) -> None:
    insert(world, doubled(world), "overwrite")
    assert world.rows() == [{"id": 101, "x": 20}, {"id": 102, "x": 40}, {"id": 103, "x": 60}]


@pytest.mark.slow
def test_a_table_is_merged_with_its_own_rows(world: World) -> None:
    with another_program():
        world.append({"id": 101, "x": 0})
    source = doubled(world, 0)
    with pytest.raises(errors.ConcurrentAppendException):
        merge(world, source)  # the append came after what the source reads, and is matched
    assert merge(world, doubled(world)).rows == 4


def test_where_nothing_matches_the_version_that_was_read_newer_ones_still_count(world: World) -> None:
    matching = MergePlan(lambda row, new: equal(row["id"], new["id"]), (update_all("id", "x"),))
    source = read_from(pa.Table.from_pylist([{"id": 4, "x": 99}]), 0)
    assert Merge(world.path, source, matching, world.condition(None)).run(world.engine).rows == 0
    with another_program():
        world.append({"id": 4, "x": 40})
    with pytest.raises(errors.ConcurrentAppendException):  # as where some row matches
        Merge(world.path, source, matching, world.condition(None)).run(world.engine)
    with at_phase("staged", lambda: world.append({"id": 5, "x": 50})):  # came after the command began
        later = read_from(pa.Table.from_pylist([{"id": 5, "x": 99}]), world.version)
        assert Merge(world.path, later, matching, world.condition(None)).run(world.engine).rows == 0


ASKING: dict[type, Callable[[World, Condition], Any]] = {
    Delete: lambda world, where: Delete(world.path, where).run(world.engine),
    Update: lambda world, where: Update(world.path, {"x": 1}, where).run(world.engine),
    Write: lambda world, where: insert(world, pa.table({"id": [2], "x": [1]}), "overwrite", replace_where=where),
    Merge: lambda world, where: merge(world, pa.table({"id": [2], "x": [1]}), where),
}
"""All commands whose expressions may hold a query."""
ASKING_NOTHING = {Optimize, Purge, AddConstraint}
"""Commands whose condition holds none."""


def test_a_condition_that_asks_an_older_version_has_to_stand_behind_newer_ones_though_it_selects_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = replace(world.condition("id = 4"), row_local=False, asks=True)
    monkeypatch.setattr(world.engine, "query_versions", lambda *args: SourceVersions(0))
    assert Delete(world.path, asking).run(world.engine).rows == 0
    world.append({"id": 4, "x": 40})
    with pytest.raises(errors.ConcurrentAppendException):
        Delete(world.path, asking).run(world.engine)
    assert world.version == 1


@pytest.mark.parametrize("command", list(ASKING))
def test_a_condition_that_asks_an_older_version_has_to_stand_behind_newer_ones_whatever_it_selects(
    world: World, monkeypatch: pytest.MonkeyPatch, command: type
) -> None:
    """A row of another file than those that it selects rows of may be one that its subquery has read."""
    asking = replace(world.condition("id = 2"), row_local=False)
    world.append({"id": 7, "x": 70})
    for asked in ("query_versions", "merge_versions"):
        monkeypatch.setattr(world.engine, asked, lambda *args: SourceVersions(1))
    world.update("id = 7", x=71)
    with pytest.raises(GONE):
        ASKING[command](world, asking)
    assert world.version == 2
    for asked in ("query_versions", "merge_versions"):
        monkeypatch.setattr(world.engine, asked, lambda *args: SourceVersions(2))
    ASKING[command](world, asking)
    assert world.version == 3


def test_no_command_has_a_condition_of_which_nobody_asks_what_it_reads() -> None:
    assert commands_with_a_condition() == ASKING.keys() | ASKING_NOTHING


def commands_with_a_condition() -> set[type]:
    found: set[type] = set()
    for each in pkgutil.walk_packages(anabranch.commands.__path__, "anabranch.commands."):
        values = vars(importlib.import_module(each.name)).values()
        found |= {value for value in values if isinstance(value, type) and is_dataclass(value) and has_condition(value)}
    return found


def has_condition(command: type) -> bool:
    return hasattr(command, "run") and any("Condition" in str(field.type) for field in fields(command))


def test_another_tables_rows_are_blind(world: World, tmp_path: Path) -> None:
    insert(world, pa.Table.from_pylist([{"id": 7, "x": 70}]))
    assert world.info()["isBlindAppend"] is True


# -- against winners ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_that_were_deleted_since_they_were_read_stand_in_the_way(world: World, mode: str) -> None:
    with (
        pytest.raises(GONE) as error,
        at_phase("staged", lambda: world.delete("id = 2")),
    ):
        insert(world, doubled(world), mode)
    assert error.value.facts["sub_condition"] in ("WHOLE_TABLE_READ", "EMPTY_READ_PREDICATES")
    assert [row["id"] for row in world.rows()] == [1, 3]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_version_that_is_newer_than_what_was_read_is_a_winner_though_it_stood_at_the_start(
    world: World, mode: str
) -> None:
    source = doubled(world)
    with another_program():
        world.update("id = 2", x=99)
    with pytest.raises(errors.ConcurrentAppendException) as error:
        insert(world, source, mode)
    assert world.version == 1
    assert not error.value.retryable
    assert "Read the DataFrame anew" in str(error.value)


@pytest.mark.slow
def test_a_declared_version_counts_like_one_that_is_seen(world: World) -> None:
    hidden = doubled(world).replace_schema_metadata({})
    with another_program():
        world.update("id = 2", x=99)
    with pytest.raises(errors.ConcurrentAppendException):
        insert(world, hidden, reads_target=0)
    with pytest.raises(errors.ConcurrentAppendException):
        merge(world, hidden, reads_target=0)
    insert(world, hidden, reads_target=1)
    assert len(world.rows()) == 6


def test_the_older_of_what_is_seen_and_what_is_declared_counts(world: World) -> None:
    source = doubled(world)
    with another_program():
        world.update("id = 2", x=99)
    with pytest.raises(errors.ConcurrentAppendException):
        insert(world, source, reads_target=1)


def test_what_came_and_went_again_does_not_matter(world: World) -> None:
    def winners() -> None:
        world.append({"id": 9, "x": 90})
        world.delete("id = 9")

    with at_phase("staged", winners):
        insert(world, doubled(world))
    assert [row["id"] for row in world.rows()] == [1, 2, 3, 101, 102, 103]


def test_blind_appends_at_the_end_come_after_it_unless_the_level_is_serializable(world: World, level: str) -> None:
    def run() -> None:
        with at_phase("staged", lambda: world.append({"id": 9, "x": 90})):
            insert(world, doubled(world))

    if level == "Serializable":
        with pytest.raises(errors.ConcurrentAppendException):
            run()
    else:
        run()
    assert {row["id"] for row in world.rows()} >= {1, 2, 3, 9}


def test_a_blind_append_followed_by_a_reader_of_it_may_not_be_skipped(world: World) -> None:
    """Design 5.5: W blind, then one who read it; an insert of older rows can stand neither before nor behind both."""

    def winners() -> None:
        world.append({"id": 9, "x": 90})
        world.update("id = 9", x=91)

    with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", winners):
        insert(world, doubled(world))


def test_two_that_read_each_others_rows_cannot_both_commit(world: World) -> None:
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: insert(world, doubled(world))),
    ):
        insert(world, doubled(world))
    assert len(world.rows()) == 6


def test_a_merge_from_its_own_table_fails_behind_any_change(world: World) -> None:
    with (
        pytest.raises(GONE),
        at_phase("staged", lambda: world.delete("id = 3")),
    ):
        merge(world, doubled(world))
    assert [row["id"] for row in world.rows()] == [1, 2]


def test_a_write_that_an_application_has_committed_is_skipped_though_its_base_is_older(world: World) -> None:
    source, txn = doubled(world), application("job", 1)
    insert(world, source, txn=txn)
    assert insert(world, source, txn=txn) is None
    assert len(world.rows()) == 6


def test_where_there_is_no_table_any_more_its_old_rows_are_constants(world: World) -> None:
    source, path = doubled(world), world.path
    world.path = f"{path}-again"
    insert(world, source, "error")
    assert [row["id"] for row in world.rows()] == [101, 102, 103]


# -- declarations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["soon", -1, 1.5, 7, "7"])
def test_what_is_no_version_cannot_be_declared(given: Any) -> None:
    with pytest.raises(errors.InvalidOption, match="a version up to 6"):
        parse_declared_version("readsTarget", given, 6)


def test_true_declares_the_newest_version() -> None:
    given = {True: 6, "TRUE": 6, 5: 5, "0": 0, False: None, None: None}
    assert {each: parse_declared_version("option", each, 6) for each in given} == given
