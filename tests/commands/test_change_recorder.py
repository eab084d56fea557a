"""Recording changes: what commits say of their own changes, whoever else writes meanwhile."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.changes import change_files
from anabranch._log.file_names import commit_name
from anabranch._protocol.change_feed import CHANGE_TYPE, COMMIT_VERSION, ENABLED, FOLDER
from anabranch._protocol.merges import Clause
from anabranch._protocol.schema.types import Field
from anabranch.commands import change_recorder
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.testing import Row, at_phase
from tests.support.feeds import applied, plain, rows_of
from tests.support.raw_logs import put_commit
from tests.support.worlds import World, insert_all, table_path, update_all

Change = tuple[str, int, int]
KINDS = {
    "by marks": {},
    "by files": {"delta_enableDeletionVectors": "false"},
    "with row ids": {"delta_enableRowTracking": "true"},
    "with names of columns": {"delta_columnMapping.mode": "name"},
}


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """Six rows in two partitions, with their changes recorded from version 0 on."""
    properties = {"delta_enableChangeDataFeed": "true", **KINDS[request.param]}
    rows = [{"id": i, "g": i % 2, "x": i * 10} for i in range(6)]
    return World(table_path(tmp_path)).create(rows, partition_by=("g",), **properties)


@pytest.fixture(params=["behind the new files", "beside the new files"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A MERGE records what its rows were when it has written the new ones, or meanwhile."""
    if request.param.startswith("beside"):
        monkeypatch.setattr(change_recorder, "WORTH_A_JOB", 0)


def changes(world: World, version: int | None = None) -> list[Change]:
    """The changes of one version, the newest by default: what, id, x."""
    asked = world.version if version is None else version
    found = rows_of(ReadChanges(world.path, asked, asked).run())
    return sorted((row[CHANGE_TYPE], row["id"], row["x"]) for row in found)


def recorded(world: World, version: int | None = None) -> list[str]:
    """The files of change data that a version names."""
    commit = world.log.read(world.version if version is None else version)
    assert commit is not None
    return [each["path"] for each in change_files(commit)]


def assert_leads_to_every_version(world: World) -> None:
    """The changes of each version lead from the rows before it to the rows behind it."""
    found = rows_of(ReadChanges(world.path, 0).run())
    for version in range(world.version + 1):
        before = world.rows(version - 1) if version else []
        here = [row for row in found if row[COMMIT_VERSION] == version]
        assert applied(before, here) == Counter(map(plain, world.rows(version))), f"version {version}"
    world.assert_clean()


# -- alone -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_update_shows_each_row_as_it_was_and_as_it_became(world: World) -> None:
    world.update("id IN (1, 4)", x=7)
    assert changes(world) == [
        ("update_postimage", 1, 7),
        ("update_postimage", 4, 7),
        ("update_preimage", 1, 10),
        ("update_preimage", 4, 40),
    ]
    assert all(path.startswith(f"{FOLDER}/") for path in recorded(world))
    assert world.info()["operationMetrics"]["numAddedChangeFiles"] == str(len(recorded(world)))
    assert_leads_to_every_version(world)


def test_an_update_that_moves_a_row_to_another_partition_shows_it_in_both(world: World) -> None:
    world.update("id = 1", g=0)
    found = rows_of(ReadChanges(world.path, 1).run())
    assert sorted((row[CHANGE_TYPE], row["g"]) for row in found) == [("update_postimage", 0), ("update_preimage", 1)]
    assert_leads_to_every_version(world)


def test_a_delete_shows_its_rows_and_nothing_that_it_only_copied(world: World) -> None:
    world.delete("id IN (1, 3)")
    assert changes(world) == [("delete", 1, 10), ("delete", 3, 30)]
    assert_leads_to_every_version(world)


def test_a_delete_of_whole_files_and_of_a_part_of_one_shows_all(world: World) -> None:
    world.delete("g = 0 OR id = 1")
    assert changes(world) == [("delete", i, i * 10) for i in (0, 1, 2, 4)]
    assert_leads_to_every_version(world)


@pytest.mark.slow
@pytest.mark.usefixtures("each_way")
def test_a_merge_shows_what_each_of_its_clauses_did(world: World) -> None:
    doomed = Clause("matched", "delete", lambda row, source: source["x"] is None, {})
    source = [{"id": 1, "g": 1, "x": 7}, {"id": 2, "g": 0, "x": None}, {"id": 9, "g": 1, "x": 90}]
    world.merge(source, doomed, update_all("id", "g", "x"), insert_all("id", "g", "x"))
    assert changes(world) == [
        ("delete", 2, 20),
        ("insert", 9, 90),
        ("update_postimage", 1, 7),
        ("update_preimage", 1, 10),
    ]
    assert_leads_to_every_version(world)


@pytest.mark.usefixtures("each_way")
def test_a_merge_that_only_inserts_needs_no_file_of_change_data(world: World) -> None:
    world.merge([{"id": 9, "g": 1, "x": 90}])
    assert changes(world) == [("insert", 9, 90)]
    assert recorded(world) == []


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_an_overwrite_shows_what_went_and_what_came_without_a_file_of_change_data(world: World, dynamic: bool) -> None:
    rows = pa.table({"id": [9], "g": [1], "x": [90]})
    Write(world.path, rows, "overwrite", dynamic=dynamic).run(world.engine)
    gone = (1, 3, 5) if dynamic else range(6)
    assert changes(world) == [*(("delete", i, i * 10) for i in gone), ("insert", 9, 90)]
    assert recorded(world) == []
    assert_leads_to_every_version(world)


@pytest.mark.slow
def test_replace_where_shows_what_it_replaced(world: World) -> None:
    rows = pa.table({"id": [4, 9], "g": [0, 0], "x": [44, 90]})
    Write(world.path, rows, "overwrite", replace_where=world.condition("id >= 4")).run(world.engine)
    assert changes(world) == [("delete", 4, 40), ("delete", 5, 50), ("insert", 4, 44), ("insert", 9, 90)]
    assert_leads_to_every_version(world)


def test_replace_where_with_a_new_column_records_rows_under_the_new_columns(world: World) -> None:
    rows = pa.table({"id": [4], "g": [0], "x": [44], "y": ["new"]})
    where = world.condition("id >= 4")
    Write(world.path, rows, "overwrite", replace_where=where, schema_change="merge").run(world.engine)
    found = rows_of(ReadChanges(world.path, 1).run())
    assert sorted((row[CHANGE_TYPE], row["id"], row.get("y")) for row in found) == [
        ("delete", 4, None),
        ("delete", 5, None),
        ("insert", 4, "new"),
    ]


def test_a_table_that_does_not_record_its_changes_gets_no_such_files(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 1}])
    world.update(None, x=2)
    assert recorded(world) == []
    assert not Path(world.path, FOLDER).exists()


def test_a_column_of_a_name_that_the_feed_needs_is_refused_by_whoever_writes(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "its_change_type": "a"}], delta_enableChangeDataFeed="true")
    first = (Path(world.path) / commit_name(0)).read_text(encoding="utf-8").splitlines()
    (renamed,) = [line for line in first if '"metaData"' in line]
    put_commit(world.path, 1, renamed.replace("its_change_type", "_change_type"))  # as others may have done
    version = world.version
    for write in (
        lambda: world.append({"id": 2, "_change_type": "b"}),
        lambda: world.update(None, id=3),
        lambda: world.delete("id = 1"),
        lambda: world.overwrite({"id": 2, "_change_type": "b"}),
        lambda: World(table_path(tmp_path)).create([{"_commit_version": 1}], delta_enableChangeDataFeed="true"),
    ):
        with pytest.raises(errors.InvalidSchema, match="_c") as error:
            write()
        assert error.value.getCondition() == "RESERVED_CDC_COLUMNS_ON_WRITE"
    assert world.version == version
    SetProperties(world.path, {ENABLED: "false"}).run()
    world.append({"id": 2, "_change_type": "b"})


def test_a_change_of_the_table_never_takes_a_name_that_the_feed_needs(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 1}], **{"delta_columnMapping.mode": "name"})
    added = AddColumns(world.path, [NewColumn(Field("_Commit_Version", "long"))])
    SetProperties(world.path, {ENABLED: "true"}).run()
    for change in (added, RenameColumn(world.path, ("x",), "_commit_timestamp")):
        with pytest.raises(errors.InvalidSchema, match="the change data feed needs"):
            change.run()
    SetProperties(world.path, {ENABLED: "false"}).run()
    added.run()
    with pytest.raises(errors.InvalidSchema, match="the change data feed needs"):
        SetProperties(world.path, {ENABLED: "true"}).run()
    world.update("id = 1", x=2)


@pytest.mark.slow
def test_what_is_refused_leaves_no_file_of_change_data(world: World) -> None:
    def winner() -> None:
        world.update("id = 1", x=1)

    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", winner):
        world.update("id = 1", x=2)
    named = {path for version in range(world.version + 1) for path in recorded(world, version)}
    there = {str(each.relative_to(world.path)) for each in Path(world.path, FOLDER).rglob("*.parquet")}
    assert {each.replace("%3D", "=") for each in named} == there
    assert_leads_to_every_version(world)


# -- behind winners ----------------------------------------------------------------------------------------------------


def appended_and_read(world: World, row: Row) -> None:
    """A blind append, and a winner behind it that ours has to follow, so that ours is redone on the new row."""
    world.append(row)
    world.update("id = 0", x=-1)


@pytest.mark.slow
def test_an_update_carried_over_a_winner_shows_its_own_rows_only(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "x": i} for i in range(4)], delta_enableChangeDataFeed="true")
    with at_phase("staged", lambda: world.update("id = 1", x=11)):
        world.update("id = 2", x=22)
    assert changes(world, 1) == [("update_postimage", 1, 11), ("update_preimage", 1, 1)]
    assert changes(world, 2) == [("update_postimage", 2, 22), ("update_preimage", 2, 2)]
    assert_leads_to_every_version(world)


@pytest.mark.slow
def test_rows_that_are_redone_are_recorded_too(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "x": i} for i in range(4)], delta_enableChangeDataFeed="true")
    with at_phase("staged", lambda: appended_and_read(world, {"id": 1, "x": 100})):
        world.update("id = 1", x=7)
    assert changes(world) == [
        ("update_postimage", 1, 7),
        ("update_postimage", 1, 7),
        ("update_preimage", 1, 1),
        ("update_preimage", 1, 100),
    ]
    assert_leads_to_every_version(world)


@pytest.mark.slow
@pytest.mark.usefixtures("each_way")
def test_a_merge_that_is_redone_records_each_insert_once(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "x": i} for i in range(4)], delta_enableChangeDataFeed="true")
    with at_phase("staged", lambda: appended_and_read(world, {"id": 8, "x": 8})):
        world.merge([{"id": 1, "x": 11}, {"id": 8, "x": 88}, {"id": 9, "x": 99}])
    assert changes(world) == [
        ("insert", 9, 99),
        ("update_postimage", 1, 11),
        ("update_postimage", 8, 88),
        ("update_preimage", 1, 1),
        ("update_preimage", 8, 8),
    ]
    assert_leads_to_every_version(world)


@pytest.mark.slow
@pytest.mark.usefixtures("each_way")
def test_a_merge_that_only_inserted_records_all_of_it_once_a_redo_updates_a_row(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0, "x": 0}], delta_enableChangeDataFeed="true")
    with at_phase("staged", lambda: appended_and_read(world, {"id": 8, "x": 8})):
        world.merge([{"id": 8, "x": 88}, {"id": 9, "x": 99}])
    assert changes(world) == [("insert", 9, 99), ("update_postimage", 8, 88), ("update_preimage", 8, 8)]
    assert_leads_to_every_version(world)


@pytest.mark.slow
@pytest.mark.usefixtures("each_way")
def test_what_needed_no_record_at_first_is_recorded_once_a_redo_needs_one(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "x": i} for i in range(4)], delta_enableChangeDataFeed="true")
    doomed = Clause("matched", "delete", lambda row, source: source["x"] is None, {})
    with at_phase("staged", lambda: appended_and_read(world, {"id": 8, "x": 8})):
        world.merge([{"id": 1, "x": None}, {"id": 8, "x": 88}], doomed, update_all("id", "x"))
    assert changes(world) == [("delete", 1, 1), ("update_postimage", 8, 88), ("update_preimage", 8, 8)]
    assert_leads_to_every_version(world)


@pytest.mark.slow
def test_an_update_behind_an_optimize_shows_the_rows_that_it_moved_with(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "x": i} for i in range(4)], delta_enableChangeDataFeed="true")
    world.append({"id": 7, "x": 7})
    with at_phase("staged", lambda: world.optimize("x")):
        world.update("id IN (2, 7)", x=0)
    assert changes(world) == [
        ("update_postimage", 2, 0),
        ("update_postimage", 7, 0),
        ("update_preimage", 2, 2),
        ("update_preimage", 7, 7),
    ]
    assert_leads_to_every_version(world)


def test_files_of_change_data_that_a_vacuum_may_take_are_put_again(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "x": i} for i in range(4)], delta_enableChangeDataFeed="true")

    def vacuum_that_has_only_begun() -> None:
        with pytest.raises(KeyboardInterrupt), at_phase("committed", _interrupt):
            Vacuum(world.path, 0, check_retention=False, dead_after_seconds=0).run()

    with at_phase("staged", vacuum_that_has_only_begun):
        world.update("id = 2", x=22)
    assert recorded(world)
    assert all("/job-" not in path for path in recorded(world)), "the job's folder may go as a whole"
    assert changes(world) == [("update_postimage", 2, 22), ("update_preimage", 2, 2)]


@pytest.mark.slow
@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("seed", range(12))
def test_whatever_runs_at_once_the_changes_lead_from_each_version_to_the_next(world: World, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(6):
        ours, winners = _verb(world, dice), [_verb(world, dice) for _ in range(dice.randrange(3))]
        try:
            if winners:
                with at_phase("staged", lambda winners=winners: [_attempted(each) for each in winners]):  # type: ignore[misc]
                    ours()
            else:
                ours()
        except errors.AnabranchError as refusal:
            assert isinstance(refusal, errors.DeltaConcurrentModificationException | errors.InvalidOption)  # noqa: PT017
    assert_leads_to_every_version(world)


def _attempted(verb: Callable[[], Any]) -> None:
    with contextlib.suppress(errors.DeltaConcurrentModificationException, errors.InvalidOption):
        verb()


def _verb(world: World, dice: random.Random) -> Callable[[], Any]:
    """One of the ways to write, with its values drawn now."""
    ids = sorted({dice.randrange(12) for _ in range(3)})
    where, x, g = f"id IN ({', '.join(map(str, ids))})", dice.randrange(1000), dice.randrange(2)
    some = [{"id": each, "g": dice.randrange(2), "x": x + each} for each in ids]
    replaced = pa.Table.from_pylist([{"id": ids[0], "g": g, "x": x}])
    doomed = Clause("matched", "delete", lambda row, source: source["x"] % 3 == 0, {})
    verbs: list[Callable[[], Any]] = [
        lambda: world.append(*some),
        lambda: world.delete(where),
        lambda: world.update(where, x=x),
        lambda: world.update(where, g=g),
        lambda: world.merge(some),
        lambda: world.merge(some, doomed, insert_all("id", "g", "x")),
        lambda: Write(world.path, replaced, "overwrite", replace_where=world.condition(f"id = {ids[0]}")).run(
            world.engine
        ),
        lambda: world.optimize("x"),
        lambda: world.reorg(),
        lambda: world.restore(dice.randrange(world.version + 1)),
    ]
    return dice.choice(verbs)


def _interrupt() -> None:
    raise KeyboardInterrupt
