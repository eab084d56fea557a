"""``anabranch.conflictResolution = redo``: what another transaction refused runs again on the newest version."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import Table, errors
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.properties import REDO
from anabranch._protocol.schema.keys import FOREIGN, Key
from anabranch._protocol.schema.types import Field, Struct
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, Transaction
from anabranch.commands.clustering import ClusterBy
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import AddColumns, DropConstraint, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport, UpgradeProtocol
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.keys import AddKey, DropKey
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.ddl.replace_columns import ReplaceColumns
from anabranch.commands.dml.write import Write
from anabranch.commands.opening import open_log
from anabranch.commands.rerunning import rerun, with_redone_runs
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

ROWS = [{"id": number, "n": 0} for number in range(4)]


@pytest.fixture
def two(tmp_path: Path) -> Callable[..., tuple[Table, Table]]:
    """One table, opened twice."""

    def opened(**properties: str) -> tuple[Table, Table]:
        chosen = {name.replace("_", "."): value for name, value in properties.items()}
        anabranch.append(tmp_path / "t", ROWS, properties={"anabranch.conflictResolution": REDO, **chosen})
        return anabranch.table(tmp_path / "t"), anabranch.table(tmp_path / "t")

    return opened


def numbers(table: Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in table.to_arrow().to_pylist())


def metrics(table: Table) -> dict[str, int]:
    return {name: int(value) for name, value in table.history(1)[0]["operationMetrics"].items()}


def add(table: Table, amount: int, where: str = "id = 1") -> Any:
    return table.update(where, {"n": f"n + {amount}"})


Two = Callable[..., tuple[Table, Table]]


def test_two_updates_of_one_row_both_count(two: Two) -> None:
    mine, theirs = two()
    with at_phase("staged", lambda: add(theirs, 10)):
        add(mine, 1)
    assert numbers(mine) == [(0, 0), (1, 11), (2, 0), (3, 0)]
    assert metrics(mine)["numRedoneRuns"] == 1
    assert metrics(mine)["redoneTimeMs"] >= 0


def test_a_first_run_that_commits_counts_no_other(two: Two) -> None:
    mine, _ = two()
    add(mine, 1)
    assert not {"numRedoneRuns", "redoneTimeMs"} & metrics(mine).keys()


def test_a_row_that_no_longer_matches_is_left_alone(two: Two) -> None:
    mine, theirs = two()
    with at_phase("staged", lambda: theirs.update("id = 1", {"id": "100"})):
        assert add(mine, 1).rows == 0
    assert numbers(mine) == [(0, 0), (2, 0), (3, 0), (100, 0)]


def test_a_delete_of_rows_that_are_gone_deletes_the_others(two: Two) -> None:
    mine, theirs = two()
    with at_phase("staged", lambda: theirs.delete("id = 1")):
        assert mine.delete("id < 3").rows == 2
    assert numbers(mine) == [(3, 0)]


LETS_GO: dict[str, tuple[dict[str, str], Callable[[Table], Any]]] = {
    "a DELETE": ({}, lambda table: table.delete("id < 3")),
    "a DELETE whose changes are recorded": (
        {"delta_enableChangeDataFeed": "true"},
        lambda table: table.delete("id < 3"),
    ),
    "a DELETE of a whole file": ({}, lambda table: table.delete("id < 99")),
    "an UPDATE": ({}, lambda table: add(table, 1, "id < 3")),
    "an UPDATE of a whole file": ({}, lambda table: add(table, 1, "id < 99")),
    "an UPDATE of all": ({}, lambda table: table.update(None, {"n": "n + 1"})),
    "an UPDATE that makes rows equal": ({}, lambda table: table.update("id < 3", {"n": "7", "id": "id % 2"})),
    "an UPDATE whose changes are recorded": (
        {"delta_enableChangeDataFeed": "true"},
        lambda table: add(table, 1, "id < 3"),
    ),
    "an UPDATE with row ids": ({"delta_enableRowTracking": "true"}, lambda table: add(table, 1, "id < 3")),
}
THEIRS: dict[str, Callable[[Table], Any]] = {
    "changes one": lambda table: add(table, 10),
    "deletes one": lambda table: table.delete("id = 1"),
    "moves one away": lambda table: table.update("id = 1", {"id": "100"}),
    "changes two": lambda table: add(table, 10, "id IN (0, 1)"),
}


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
@pytest.mark.parametrize("their", THEIRS)
@pytest.mark.parametrize("mine", LETS_GO)
def test_rows_that_both_changed_are_let_go_and_the_rest_is_not_run_again(
    two: Two, tmp_path: Path, mine: str, their: str, level: str
) -> None:
    properties, change = LETS_GO[mine]
    ours, theirs = two(delta_isolationLevel=level, **properties)
    with at_phase("staged", lambda: THEIRS[their](theirs)):
        changed = change(ours).rows
    assert "numRedoneRuns" not in metrics(ours)
    anabranch.append(tmp_path / "after", ROWS)
    after = anabranch.table(tmp_path / "after")
    THEIRS[their](after)
    assert changed == change(after).rows
    assert numbers(ours) == numbers(after)
    assert anabranch.check(tmp_path / "t", deep=True).is_clean


def upsert(table: Table, *ids: int, **more: Any) -> Any:
    source = pa.table({"id": list(ids), "n": [1000 + number for number in ids]})
    builder = table.merge(source, "target.id = source.id")
    if more.get("deletes"):
        builder = builder.when_matched_delete()
    else:
        builder = builder.when_matched_update({"n": "target.n + source.n"})
    if more.get("others"):
        builder = builder.when_not_matched_by_source_update({"n": "target.n - 1"})
    return (builder if more.get("only") else builder.when_not_matched_insert_all()).execute()


MERGES: dict[str, Callable[[Table], Any]] = {
    "an upsert": lambda table: upsert(table, 0, 1, 2, 9),
    "an upsert of moved keys": lambda table: upsert(table, 1, 2, 100, 101),
    "an update": lambda table: upsert(table, 0, 1, 2, only=True),
    "a deletion": lambda table: upsert(table, 0, 1, 2, 9, deletes=True, only=True),
    "a deletion and inserts": lambda table: upsert(table, 0, 1, 2, 9, deletes=True),
    "others too": lambda table: upsert(table, 1, 2, 9, others=True),
}


@pytest.mark.parametrize("properties", [{}, {"delta_enableRowTracking": "true"}], ids=["plain", "row ids"])
@pytest.mark.parametrize("their", THEIRS)
@pytest.mark.parametrize("mine", MERGES)
def test_a_merge_lets_rows_go_that_both_changed_and_inserts_what_matched_them_alone(
    two: Two, tmp_path: Path, mine: str, their: str, properties: dict[str, str]
) -> None:
    ours, theirs = two(**properties)
    with at_phase("staged", lambda: THEIRS[their](theirs)):
        outcome = MERGES[mine](ours)
    assert "numRedoneRuns" not in metrics(ours)
    anabranch.append(tmp_path / "after", ROWS)
    after = anabranch.table(tmp_path / "after")
    THEIRS[their](after)
    wanted = MERGES[mine](after)
    assert numbers(ours) == numbers(after)
    assert outcome.counts == wanted.counts
    assert anabranch.check(tmp_path / "t", deep=True).is_clean
    names = ("numOutputRows", "numTargetRowsInserted", "numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted")
    assert [metrics(ours)[name] for name in names] == [metrics(after)[name] for name in names]


def test_a_feed_of_a_delete_that_let_rows_go_tells_the_others(two: Two) -> None:
    mine, theirs = two(delta_enableChangeDataFeed="true")
    with at_phase("staged", lambda: theirs.delete("id = 1")):
        mine.delete("id < 3")
    changes = mine.changes(2, 2).to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in changes) == [("delete", 0), ("delete", 2)]


def test_a_feed_of_an_update_that_let_rows_go_tells_what_it_made_of_the_winners(two: Two, tmp_path: Path) -> None:
    mine, theirs = two(delta_enableChangeDataFeed="true")
    with (
        at_phase("staged", lambda: add(theirs, 10)),
        at_phase("put", lambda: add(theirs, 100, "id IN (1, 2)")),
    ):
        add(mine, 1, "id < 3")
    changes = mine.changes(3, 3).to_pylist()
    images = sorted((row["id"], row["_change_type"], row["n"]) for row in changes)
    wanted = (
        (id_, f"update_{when}image", n)
        for id_, old in ((0, 0), (1, 110), (2, 100))
        for when, n in (("post", old + 1), ("pre", old))
    )
    assert images == list(wanted)
    assert "numRedoneRuns" not in metrics(mine)
    assert len(list((tmp_path / "t" / "_change_data").rglob("*.parquet"))) == _change_files(tmp_path / "t")


def _change_files(table: Path) -> int:
    return sum(commit.read_text().count('{"cdc"') for commit in (table / "_delta_log").glob("*.json"))


def test_rows_are_let_go_to_one_winner_after_the_other(two: Two) -> None:
    mine, theirs = two()
    with (
        at_phase("staged", lambda: add(theirs, 10, "id = 0")),
        at_phase("put", lambda: add(theirs, 100, "id IN (0, 1)")),
    ):
        assert add(mine, 1, "id < 3").rows == 3
    assert numbers(mine) == [(0, 111), (1, 101), (2, 1), (3, 0)]
    assert "numRedoneRuns" not in metrics(mine)


def test_a_new_file_whose_rows_were_all_let_go_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    anabranch.append(path, ROWS, partition_by=["id"], properties={"anabranch.conflictResolution": REDO})
    table = anabranch.table(path)
    with at_phase("staged", lambda: add(table, 10)):
        add(table, 1, "id < 3")
    assert numbers(table) == [(0, 1), (1, 11), (2, 1), (3, 0)]
    assert "numRedoneRuns" not in metrics(table)
    versions = range(len(table.history()))
    named = {name for version in versions for name in anabranch.files(path, version=version)["path"].to_pylist()}
    assert len(list(path.rglob("part-*.parquet"))) == len(named)


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
def test_rows_that_a_winner_brought_are_changed_without_another_run(two: Two, level: str) -> None:
    mine, theirs = two(delta_isolationLevel=level)

    def bring() -> None:
        theirs.merge(pa.table({"id": [9], "n": [5]}), "target.id = source.id").whenNotMatchedInsertAll().execute()

    with at_phase("staged", bring):
        assert add(mine, 1, "id > 2").rows == 2
    assert numbers(mine) == [(0, 0), (1, 0), (2, 0), (3, 1), (9, 6)]
    assert "numRedoneRuns" not in metrics(mine)


def test_a_blind_append_at_serializable_is_changed_too(two: Two) -> None:
    mine, theirs = two(delta_isolationLevel="Serializable")
    with at_phase("staged", lambda: theirs.append([{"id": 9, "n": 5}])):
        add(mine, 1, "id > 2")
    assert numbers(mine)[-2:] == [(3, 1), (9, 6)]


def test_a_merge_updates_what_another_has_inserted(two: Two) -> None:
    mine, theirs = two()
    source = pa.table({"id": [1, 9], "n": [7, 7]})

    def merge(table: Table) -> None:
        builder = table.merge(source, "target.id = source.id")
        builder.whenMatchedUpdate(set={"n": "target.n + source.n"}).whenNotMatchedInsertAll().execute()

    with at_phase("staged", lambda: merge(theirs)):
        merge(mine)
    assert numbers(mine) == [(0, 0), (1, 14), (2, 0), (3, 0), (9, 14)]


def test_an_overwrite_replaces_what_another_has_written(two: Two) -> None:
    mine, theirs = two()
    with at_phase("staged", lambda: add(theirs, 10, "id = 0")):
        mine.overwrite([{"id": 5, "n": 5}])
    assert numbers(mine) == [(5, 5)]


def test_without_vectors_files_are_judged_and_the_command_runs_again(two: Two) -> None:
    mine, theirs = two(delta_enableDeletionVectors="false")
    with at_phase("staged", lambda: add(theirs, 10, "id = 2")):
        add(mine, 1)
    assert numbers(mine) == [(0, 0), (1, 1), (2, 10), (3, 0)]
    assert metrics(mine)["numRedoneRuns"] == 1


NEW = Field("y", "long")
EVOLVED = pa.table({"id": [9], "n": [9], "y": [9]})
CHANGES: dict[str, Callable[[World], Any]] = {
    "set properties": lambda w: SetProperties(w.path, {"team": "x"}).run(),
    "number the rows": lambda w: SetProperties(w.path, {"delta.enableRowTracking": "true"}).run(),
    "map columns": lambda w: SetProperties(w.path, {"delta.columnMapping.mode": "name"}).run(),
    "unset a property": lambda w: UnsetProperties(w.path, ["custom.old"]).run(),
    "add a feature": lambda w: AddFeatureSupport(w.path, "rowTracking").run(),
    "raise the protocol": lambda w: UpgradeProtocol(w.path, 1, 4).run(),
    "add columns": lambda w: AddColumns(w.path, (NewColumn(NEW),)).run(),
    "change a column": lambda w: ChangeColumn(w.path, ("n",), comment="count").run(),
    "replace columns": lambda w: ReplaceColumns(w.path, Struct((*w.log.snapshot().schema, NEW))).run(),
    "rename a column": lambda w: RenameColumn(w.path, ("n",), "m").run(),
    "drop a column": lambda w: DropColumns(w.path, (("n",),)).run(),
    "drop a constraint": lambda w: DropConstraint(w.path, "old").run(),
    "drop a key": lambda w: DropKey(w.path, FOREIGN, ("id",)).run(),
    "add a key": lambda w: AddKey(w.path, Key("k", FOREIGN, ("id",), ("t",))).run(),
    "add a constraint": lambda w: AddConstraint(w.path, "c", w.condition("n >= 0")).run(w.engine),
    "cluster": lambda w: ClusterBy(w.path, (("id",),)).run(),
    "append more columns": lambda w: Write(w.path, EVOLVED, "append", schema_change="merge").run(w.engine),
    "overwrite the columns": lambda w: Write(w.path, EVOLVED, "overwrite", schema_change="overwrite").run(w.engine),
}


OWN_LOOP = {"number the rows"}
"""They follow others' writes by themselves, whatever the dial."""
MAPPED = {"rename a column", "drop a column"}
WRITES: dict[str, Callable[[World], Any]] = {
    "a blind append": lambda w: w.append({"id": 7, "n": 0}),
    "an update": lambda w: w.update("id = 1", n=5),
}


def plain(folder: Path, change: str, dial: str) -> World:
    properties = {"delta_columnMapping.mode": "name"} if change in MAPPED else {"delta_enableDeletionVectors": "false"}
    made = World(table_path(folder)).create(ROWS, anabranch_conflictResolution=dial, custom_old="1", **properties)
    AddKey(made.path, Key("old", FOREIGN, ("id",), ("t",))).run()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_command_that_changes_the_metadata_runs_again_beside_a_writer_that_does_not(
    tmp_path: Path, change: str, write: str
) -> None:
    made = plain(tmp_path, change, REDO)
    before = made.log.snapshot()
    with at_phase("staged", lambda: WRITES[write](made)):
        CHANGES[change](made)
    after = made.log.snapshot()
    assert (before.metadata, before.protocol, before.state.domains) != (
        after.metadata,
        after.protocol,
        after.state.domains,
    )
    assert (change in OWN_LOOP) or made.info()["operationMetrics"]["numRedoneRuns"] == "1"
    made.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("change", [name for name in CHANGES if name not in OWN_LOOP])
def test_under_another_dial_it_is_refused(tmp_path: Path, change: str) -> None:
    made = plain(tmp_path, change, "row")
    with (
        pytest.raises(errors.DeltaConcurrentModificationException),
        at_phase("staged", lambda: made.append({"id": 7, "n": 0})),
    ):
        CHANGES[change](made)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_beside_another_change_of_the_metadata_it_is_refused(tmp_path: Path, change: str) -> None:
    made = plain(tmp_path, change, REDO)
    with (
        pytest.raises(errors.MetadataChangedException),
        at_phase("staged", lambda: SetProperties(made.path, {"other.key": "1"}).run()),
    ):
        CHANGES[change](made)


def test_a_change_of_the_metadata_is_refused_all_the_same(two: Two, tmp_path: Path) -> None:
    mine, _ = two()
    with pytest.raises(errors.MetadataChangedException), at_phase("staged", lambda: _set_property(tmp_path)):
        add(mine, 1)
    assert numbers(mine) == [(each["id"], 0) for each in ROWS]


def test_a_change_of_the_metadata_behind_the_conflict_is_refused_too(two: Two, tmp_path: Path) -> None:
    """The command was understood for the columns that there were."""
    mine, theirs = two()
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: add(theirs, 10)),
        at_phase("checked", lambda: _set_property(tmp_path)),
    ):
        add(mine, 1)
    assert numbers(theirs)[1] == (1, 10)


def _set_property(folder: Path) -> None:
    from anabranch.commands.ddl.alter import SetProperties

    SetProperties(folder / "t", {"custom.key": "1"}).run()


def test_one_application_id_is_written_once(two: Two) -> None:
    mine, theirs = two()
    with (
        pytest.raises(errors.ConcurrentTransactionException),
        at_phase("staged", lambda: theirs.append(ROWS[:1], txn_app_id="app", txn_version=1)),
    ):
        mine.append(ROWS[:1], txn_app_id="app", txn_version=1)


@dataclass
class Work:
    """Work that takes 3 s and is refused ``times`` times; at last it takes 100 s, and gives a transaction."""

    folder: Path
    times: int
    now: float = 0.0
    began: list[float] = field(default_factory=list)

    def run(self) -> Transaction:
        self.began.append(self.now)
        if len(self.began) > self.times:
            self.now += 100
            return with_redone_runs(Transaction.on(self.newest(), "ours", CommitInfo("UPDATE")))
        self.now += 3
        raise errors.ConcurrentDeleteReadException(table="t", explanation="no", resolution=REDO)

    def newest(self) -> Snapshot:
        return open_log(self.folder / "t").snapshot()

    def rerun(self) -> Transaction:
        runtime = Runtime(seconds=lambda: self.now, sleep=lambda _: None)
        return rerun(self.run, lambda _conflict, _newest: self.run, self.newest, runtime)


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_runs_are_bounded_and_the_conflict_names_the_bound(two: Two, tmp_path: Path, runs: int) -> None:
    two(anabranch_redoRuns=str(runs))
    work = Work(tmp_path, times=99)
    with pytest.raises(errors.ConcurrentDeleteReadException) as refused:
        work.rerun()
    said = refused.value
    assert len(work.began) == runs + 1
    assert (said.bound, said.allowed, said.needed) == ("anabranch.redoRuns", runs, runs + 1)
    assert f"Runs so far: {runs + 1}; anabranch.redoRuns = {runs} allows no other." in str(said)


def test_no_run_begins_after_their_time_is_over_and_the_conflict_says_so(two: Two, tmp_path: Path) -> None:
    two(anabranch_resolutionSeconds="5")
    work = Work(tmp_path, times=99)
    with pytest.raises(errors.ConcurrentDeleteReadException) as refused:
        work.rerun()
    said = refused.value
    assert work.began == [0, 3]
    assert (said.bound, said.allowed, said.needed) == ("anabranch.resolutionSeconds", 5, 6)
    assert "Runs so far: 2; anabranch.resolutionSeconds = 5 allows no other." in str(said)


def test_no_second_allows_no_other_run_and_no_look_at_rows(two: Two, tmp_path: Path) -> None:
    mine, theirs = two(anabranch_resolutionSeconds="0")
    with pytest.raises(errors.ConcurrentWriteException) as refused, at_phase("staged", lambda: add(theirs, 10)):
        add(mine, 1)
    said = refused.value
    assert (said.bound, said.allowed, said.needed) == ("anabranch.resolutionSeconds", 0, 1)
    work = Work(tmp_path, times=1)
    with pytest.raises(errors.ConcurrentDeleteReadException):
        work.rerun()


def test_the_time_of_the_run_that_commits_is_not_counted(two: Two, tmp_path: Path) -> None:
    two()
    assert Work(tmp_path, times=2).rerun().info.metrics == {"numRedoneRuns": 2, "redoneTimeMs": 6000}


@pytest.mark.slow
def test_a_row_that_many_count_on_loses_no_count(two: Two, tmp_path: Path) -> None:
    two()
    failures = list[BaseException]()

    def count() -> None:
        try:
            for _ in range(5):
                add(anabranch.table(tmp_path / "t"), 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert numbers(anabranch.table(tmp_path / "t"))[1] == (1, 20)
