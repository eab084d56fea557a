"""Compactions of engines that record no moves: followed where row ids prove them, a conflict in any doubt."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._protocol.features.row_tracking import tracking_columns
from anabranch.errors import ConcurrentDeleteReadException, DeltaConcurrentModificationException
from anabranch.testing import at_phase
from tests.support.row_ids import wrong_ids
from tests.support.worlds import World, insert_all, table_path

Body = dict[str, Any]
Actions = list[Body]
ROWS = [{"id": i, "x": (i * 7) % 5, "p": i % 2} for i in range(12)]
EVERY = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11]
TRACKED = {"delta_enableRowTracking": "true"}
COMPACTIONS: dict[str, tuple[str, ...]] = {"pack": (), "zorder": ("x", "id")}


def tracked(folder: Path, partition_by: tuple[str, ...] = (), **properties: str) -> World:
    """A table of three files, in which a row was updated and another one is marked as deleted."""
    made = World(table_path(folder)).create(ROWS[:4], partition_by=partition_by, **{**TRACKED, **properties})
    made.append(*ROWS[4:8])
    made.append(*ROWS[8:])
    made.update("id = 9", x=90)
    made.delete("id = 6")
    return made


@pytest.fixture
def table(tmp_path: Path) -> World:
    return tracked(tmp_path)


def ids(world: World) -> list[int]:
    return [row["id"] for row in world.rows()]


def commit_file(world: World) -> Path:
    return Path(world.path) / "_delta_log" / f"{world.version:020}.json"


def edited(world: World, change: Callable[[Actions], object]) -> None:
    """Change the actions of the newest version."""
    file = commit_file(world)
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    change(actions)
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))


def compact_elsewhere(world: World, *by: str) -> None:
    """Compact as an engine does that keeps row ids, and records no moves."""
    world.optimize(*by)
    without_record(world)


def without_record(world: World) -> None:
    edited(world, lambda actions: actions[0]["commitInfo"].update(tags={"delta.rowTracking.preserved": "true"}))


# -- followed ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["WriteSerializable", "Serializable"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["row", "file"])
def dial(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[(), ("p",)], ids=["flat", "partitioned"])
def each_table(request: pytest.FixtureRequest, tmp_path: Path, level: str, dial: str) -> Iterator[World]:
    made = tracked(tmp_path, request.param, delta_isolationLevel=level, anabranch_conflictResolution=dial)
    yield made
    made.assert_clean()
    assert wrong_ids(made.log.store, ("id", "x", "p")) == []


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["staged", "put"])
@pytest.mark.parametrize("compaction", COMPACTIONS)
def test_a_delete_follows_its_rows(each_table: World, compaction: str, phase: str) -> None:
    with at_phase(phase, lambda: compact_elsewhere(each_table, *COMPACTIONS[compaction])):
        each_table.delete("id IN (1, 5, 9)")
    assert ids(each_table) == [0, 2, 3, 4, 7, 8, 10, 11]


@pytest.mark.slow
@pytest.mark.parametrize("compaction", COMPACTIONS)
def test_an_update_follows_its_rows_and_they_keep_their_ids(each_table: World, compaction: str) -> None:
    with at_phase("staged", lambda: compact_elsewhere(each_table, *COMPACTIONS[compaction])):
        each_table.update("id IN (0, 9, 11)", x=7)
    assert [row["x"] for row in each_table.rows() if row["id"] in (0, 9, 11)] == [7, 7, 7]
    assert ids(each_table) == EVERY


@pytest.mark.slow
@pytest.mark.parametrize("compaction", COMPACTIONS)
def test_a_merge_follows_what_it_matched(each_table: World, compaction: str) -> None:
    with at_phase("staged", lambda: compact_elsewhere(each_table, *COMPACTIONS[compaction])):
        each_table.merge([{"id": 3, "x": 30, "p": 1}, {"id": 20, "x": 20, "p": 0}])
    assert ids(each_table) == [*EVERY, 20]
    assert [row["x"] for row in each_table.rows() if row["id"] in (3, 20)] == [30, 20]


@pytest.mark.slow
@pytest.mark.parametrize("compaction", COMPACTIONS)
def test_a_whole_file_is_deleted_though_its_rows_were_moved(each_table: World, compaction: str) -> None:
    with at_phase("staged", lambda: compact_elsewhere(each_table, *COMPACTIONS[compaction])):
        each_table.delete("id >= 8")
    assert ids(each_table) == [0, 1, 2, 3, 4, 5, 7]


def test_compactions_of_both_kinds_are_followed_one_after_the_other(table: World) -> None:
    def meanwhile() -> None:
        compact_elsewhere(table)
        table.append({"id": 20, "x": 0, "p": 0})
        table.update("id = 2", x=22)
        table.optimize("x")
        table.append({"id": 21, "x": 0, "p": 0})
        compact_elsewhere(table, "x", "id")

    with at_phase("staged", meanwhile):
        table.delete("id IN (1, 5, 9)")
    assert ids(table) == [0, 2, 3, 4, 7, 8, 10, 11, 20, 21]
    table.assert_clean()


def test_a_change_of_a_row_that_was_changed_before_the_compaction_conflicts(table: World) -> None:
    def meanwhile() -> None:
        table.update("id = 1", x=11)
        compact_elsewhere(table)

    with pytest.raises(ConcurrentDeleteReadException), at_phase("staged", meanwhile):
        table.update("id = 1", x=12)
    assert [row["x"] for row in table.rows() if row["id"] == 1] == [11]


def test_a_change_of_a_row_that_was_changed_after_the_compaction_conflicts(table: World) -> None:
    def meanwhile() -> None:
        compact_elsewhere(table)
        table.update("id = 1", x=11)

    with pytest.raises(ConcurrentDeleteReadException), at_phase("staged", meanwhile):
        table.update("id = 1", x=12)
    assert [row["x"] for row in table.rows() if row["id"] == 1] == [11]


def test_a_change_that_follows_stands_behind_the_compaction(table: World) -> None:
    with at_phase("staged", lambda: compact_elsewhere(table)):
        table.update("id = 1", x=12)
    assert table.info()["tags"]["anabranch.cut"] == str(table.version - 1)


# -- not proved, so a conflict -----------------------------------------------------------------------------------------


def each_add(change: Callable[[Body], object]) -> Callable[[World], None]:
    return lambda world: edited(world, lambda actions: [change(each["add"]) for each in actions if "add" in each])


def each_remove(change: Callable[[Body], object]) -> Callable[[World], None]:
    return lambda world: edited(world, lambda actions: [change(each["remove"]) for each in actions if "remove" in each])


def rewritten(change: Callable[[World, pa.Table], pa.Table]) -> Callable[[World], None]:
    """Write the file that the compaction made anew."""

    def run(world: World) -> None:
        def of_file(add: Body) -> None:
            file = Path(world.path) / add["path"]
            pq.write_table(change(world, pq.read_table(file)), file)
            stats = json.loads(add["stats"])
            add.update(
                size=file.stat().st_size, stats=json.dumps({**stats, "numRecords": pq.read_metadata(file).num_rows})
            )

        each_add(of_file)(world)

    return run


def hidden(world: World) -> tuple[str, str]:
    snapshot = world.log.snapshot()
    names = tracking_columns(snapshot.protocol, snapshot.metadata)
    assert names is not None
    return names.row_id, names.commit_version


def with_values(name: str, rows: pa.Table, values: list[int | None]) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, pa.int64()))


def nothing_in(number: int, every: bool) -> Callable[[World, pa.Table], pa.Table]:
    """NULL in a hidden column, in all rows or in the first: the row is a new one, or was changed."""

    def change(world: World, rows: pa.Table) -> pa.Table:
        name = hidden(world)[number]
        kept = rows[name].to_pylist()
        return with_values(name, rows, [None] * len(kept) if every else [None, *kept[1:]])

    return change


def first_twice(world: World, rows: pa.Table) -> pa.Table:
    name = hidden(world)[0]
    kept = rows[name].to_pylist()
    return with_values(name, rows, [kept[0], kept[0], *kept[2:]])


def without_ids(world: World, rows: pa.Table) -> pa.Table:
    return rows.drop_columns([*hidden(world)])


def of_another_type(world: World, rows: pa.Table) -> pa.Table:
    name = hidden(world)[0]
    return rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int32()))


def is_gone(world: World) -> None:
    each_add(lambda add: (Path(world.path) / add["path"]).unlink())(world)


DOUBTS: dict[str, Callable[[World], None]] = {
    "new ids": rewritten(without_ids),
    "one new id": rewritten(nothing_in(0, every=False)),
    "all rows changed": rewritten(nothing_in(1, every=True)),
    "one row changed": rewritten(nothing_in(1, every=False)),
    "one id twice": rewritten(first_twice),
    "ids of another type": rewritten(of_another_type),
    "a row too few": rewritten(lambda world, rows: rows.slice(1)),
    "a row too many": rewritten(lambda world, rows: pa.concat_tables([rows, rows.slice(0, 1)])),
    "another count in the log": each_add(lambda add: add.update(stats='{"numRecords": 100}')),
    "a change of data": each_add(lambda add: add.update(dataChange=True)),
    "data that was removed": each_remove(lambda remove: remove.update(dataChange=True)),
    "removes without ids": each_remove(lambda remove: remove.pop("baseRowId")),
    "removes of other ids": each_remove(lambda remove: remove.update(baseRowId=remove["baseRowId"] + 1)),
    "removes of another version": each_remove(lambda remove: remove.update(defaultRowCommitVersion=0)),
    "adds without ids": each_add(lambda add: add.pop("baseRowId")),
    "another application's transaction": lambda world: edited(
        world, lambda actions: actions.append({"txn": {"appId": "other", "version": 1}})
    ),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_doubt_is_a_conflict(table: World, doubt: str) -> None:
    def meanwhile() -> None:
        compact_elsewhere(table)
        DOUBTS[doubt](table)

    before = table.version
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", meanwhile):
        table.delete("id IN (1, 5, 9)")
    assert table.version == before + 1


def test_ids_that_two_files_share_prove_nothing(tmp_path: Path) -> None:
    table = World(table_path(tmp_path)).create(ROWS[:4], **TRACKED)
    table.append(*ROWS[4:8])
    each_add(lambda add: add.update(baseRowId=0, defaultRowCommitVersion=0))(table)
    table = table.copy(tmp_path)
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", lambda: compact_elsewhere(table)):
        table.delete("id = 1")
    assert ids(table) == list(range(8))


@pytest.mark.parametrize("change", ["delete", "merge"])
def test_ids_that_a_winner_states_of_the_wrong_files_prove_nothing(tmp_path: Path, change: str) -> None:
    """Two files of one commit: the ids of all rows are those of all rows, and each leads to another row."""
    table = World(table_path(tmp_path)).create(ROWS[:4], partition_by=("p",), **TRACKED)
    for row in ROWS[4:8]:
        table.append(row)
    swap = {0: 2, 2: 0}

    def meanwhile() -> None:
        compact_elsewhere(table)
        each_remove(lambda remove: remove.update(baseRowId=swap.get(remove["baseRowId"], remove["baseRowId"])))(table)

    def run() -> None:
        if change == "delete":
            table.delete("id = 1")
        else:
            table.merge([{"id": 1, "x": 1, "p": 1}, {"id": 50, "x": 1, "p": 1}], insert_all("id", "x", "p"))

    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", meanwhile):
        run()
    assert ids(table) == list(range(8))


def test_a_file_that_was_removed_with_an_older_vector_is_not_followed(table: World, tmp_path: Path) -> None:
    """PROTOCOL.md, "Action Reconciliation": such a ``remove`` leaves the file, with its newer vector, in the table."""
    other = table.copy(tmp_path)
    compact_elsewhere(other)

    def meanwhile() -> None:
        late = commit_file(other)
        table.delete("id = 2")
        shutil.copytree(other.path, table.path, dirs_exist_ok=True, ignore=lambda *_: ["_delta_log"])
        shutil.copy(late, late_place(table))

    before = table.version
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", meanwhile):
        table.delete("id = 1")
    assert not late_place(table, before + 3).exists()


def late_place(world: World, version: int | None = None) -> Path:
    """The commit file of a version, else of the one to come."""
    number = world.version + 1 if version is None else version
    return Path(world.path) / "_delta_log" / f"{number:020}.json"


def test_a_file_that_a_vacuum_removed_proves_nothing(table: World) -> None:
    def meanwhile() -> None:
        compact_elsewhere(table)
        table.vacuum(0)

    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", meanwhile):
        table.delete("id IN (1, 5, 9)")
    assert ids(table) == EVERY


@pytest.mark.parametrize(
    "properties",
    [{"delta_enableRowTracking": "false"}, {"delta_enableDeletionVectors": "false"}],
    ids=["no row tracking", "no vectors"],
)
def test_without_row_tracking_or_vectors_a_foreign_compaction_conflicts(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    table = tracked(tmp_path, **properties)
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", lambda: compact_elsewhere(table)):
        table.delete("id IN (1, 5, 9)")
    assert ids(table) == EVERY


def test_a_record_of_moves_needs_no_proof(table: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch._transaction.rebase.row_ids_of", lambda *_: pytest.fail("row ids were read"))
    with at_phase("staged", table.optimize):
        table.delete("id = 1")
    assert ids(table) == EVERY[:1] + EVERY[2:]


def test_a_compaction_of_other_files_needs_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tracked(tmp_path, ("p",))
    monkeypatch.setattr("anabranch._transaction.rebase.row_ids_of", lambda *_: pytest.fail("row ids were read"))

    def meanwhile() -> None:
        table.optimize(where="p = 0")
        without_record(table)

    with at_phase("staged", meanwhile):
        table.delete("p = 1 AND id = 1")
    assert ids(table) == EVERY[:1] + EVERY[2:]
    table.assert_clean()


def test_more_rows_than_are_compared_are_a_conflict(table: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch._transaction.foreign_moves.MOST_ROWS", 10)
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", lambda: compact_elsewhere(table)):
        table.delete("id IN (1, 5, 9)")
    assert ids(table) == EVERY
