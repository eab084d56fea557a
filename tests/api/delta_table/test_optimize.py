"""OPTIMIZE through its doors on real Spark: what it returns, what it leaves behind, whom it meets, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch import DeltaTable, errors
from anabranch._api.optimize_builder import run_optimize
from anabranch._cli import app, main
from anabranch.commands.maintenance.reorg import Purge
from anabranch.testing import at_phase
from tests.support.readers import deltalake_rows
from tests.support.worlds import World, assert_others_agree

pytestmark = pytest.mark.spark

SIDE = 40
FILES = 16


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    found = tmp_path / "table"
    yield str(found)
    if (found / "_delta_log").is_dir():
        report = anabranch.check(found, deep=True)
        assert report.is_clean, str(report)
        assert_others_agree(str(found))


def make(session: SparkSession, path: str, partition_by: tuple[str, ...] = (), **properties: str) -> DeltaTable:
    """A square of x and y, each file of which has rows of everywhere; p is 0 or 1."""
    rows = [{"id": i, "x": i % SIDE, "y": i // SIDE, "p": i % 2} for i in range(SIDE * SIDE)]
    named = {key.replace("_", ".", 1): value for key, value in properties.items()}
    for part in range(4):
        chosen = rows[part::4] if not partition_by else rows[part * len(rows) // 4 :][: len(rows) // 4]
        anabranch.append(path, chosen, partition_by=partition_by, properties=named if part == 0 else None)
    return DeltaTable.forPath(session, path)


def spread(session: SparkSession, path: str, **properties: str) -> DeltaTable:
    """The square in 16 files, each with rows of everywhere."""
    named = {key.replace("_", ".", 1): value for key, value in properties.items()}
    rows = [{"id": i, "x": i % SIDE, "y": i // SIDE} for i in range(SIDE * SIDE)]
    for part in range(FILES):
        chosen = [row for row in rows if (row["x"] + row["y"]) % FILES == part]
        anabranch.append(path, chosen, properties=named if part == 0 else None)
    return DeltaTable.forPath(session, path)


def rows_of(table: DeltaTable) -> list[tuple[Any, ...]]:
    """The rows as another reader finds them."""
    found = deltalake_rows(place_of(table).removeprefix("file://"))
    return sorted((row["id"], row["x"], row["y"]) for row in found)


def the_one(found: Any) -> Row:
    [row] = found.collect()
    return row


def live(path: str) -> int:
    return int(anabranch.files(path).num_rows)


def silent(path: str) -> None:
    """The newest commit says that no data changed by it."""
    commit = World(path).log.read(World(path).version)
    assert commit is not None
    assert len(commit.adds) > 0
    assert len(commit.removes) > 0
    assert not any(commit.adds["dataChange"].to_pylist())
    assert not any(commit.removes["dataChange"].to_pylist())
    assert not commit.has_change_feed


def test_compaction_writes_fewer_files_with_the_same_rows_and_says_so(session: SparkSession, path: str) -> None:
    table = spread(session, path)
    table.delete("id % 10 = 3")
    before, files = rows_of(table), live(path)
    row = the_one(table.optimize().executeCompaction())
    assert row["path"] == World(path).log.table
    found = row["metrics"]
    assert (found["numFilesRemoved"], found["numFilesAdded"], live(path)) == (files, 1, 1)
    assert found["filesRemoved"]["totalFiles"] == files
    assert found["filesAdded"]["totalSize"] == anabranch.files(path)["size"][0].as_py()
    assert found["filesRemoved"]["min"] <= found["filesRemoved"]["avg"] <= found["filesRemoved"]["max"]
    assert found["deletionVectorStats"]["numDeletionVectorRowsRemoved"] == SIDE * SIDE // 10
    assert found["deletionVectorStats"]["numDeletionVectorsRemoved"] == files
    assert (found["totalConsideredFiles"], found["numBatches"], found["partitionsOptimized"]) == (files, 1, 1)
    assert found["preserveInsertionOrder"]
    assert found["zOrderStats"] is None
    assert rows_of(table) == before
    silent(path)
    entry = anabranch.history(path)[0]
    assert entry["operation"] == "OPTIMIZE"
    assert json.loads(entry["operationParameters"]["zOrderBy"]) == []
    assert entry["operationMetrics"]["numRemovedFiles"] == str(files)


@pytest.mark.exhaustive(
    "tests/transaction/test_relocation.py::test_the_same_rows_in_fewer_files_and_nothing_more_to_do",
    "tests/api/delta_table/test_optimize.py::test_the_command_line_optimizes_and_purges",
)
@pytest.mark.parametrize("columns", [(), ("x", "y")], ids=["compaction", "zorder"])
def test_a_second_run_does_nothing(session: SparkSession, path: str, columns: tuple[str, ...]) -> None:
    table = spread(session, path)

    def run() -> Row:
        builder = table.optimize()
        found = builder.executeZOrderBy(*columns) if columns else builder.executeCompaction()
        return the_one(found)["metrics"]

    assert run()["numFilesRemoved"] == 16
    version = World(path).version
    assert (again := run())["numFilesRemoved"] == again["numFilesAdded"] == again["numBatches"] == 0
    assert World(path).version == version


@pytest.mark.exhaustive(
    "tests/api/delta_table/test_optimize.py::test_the_command_line_takes_partitions_and_says_what_is_wrong",
)
def test_only_the_chosen_partitions_are_done(session: SparkSession, path: str) -> None:
    table = make(session, path, ("p",))
    assert live(path) == 8
    found = the_one(table.optimize().where("p = 1").executeCompaction())["metrics"]
    assert (found["numFilesRemoved"], found["numFilesAdded"], found["partitionsOptimized"]) == (4, 1, 1)
    assert live(path) == 5
    assert json.loads(anabranch.history(path)[0]["operationParameters"]["predicate"]) == ["p = 1"]
    assert rows_of(table) == [(i, i % SIDE, i // SIDE) for i in range(SIDE * SIDE)]


def test_queries_skip_more_files_by_a_factor_after_zorder(session: SparkSession, path: str) -> None:
    table = spread(session, path, **{"delta_targetFileSize": "2048"})

    def opened(column: str) -> int:
        return sum(int(anabranch.files(path, f"{column} = {value}").num_rows) for value in range(0, SIDE, 5))

    before, rows = {column: opened(column) for column in "xy"}, rows_of(table)
    assert min(before.values()) > 7 * 16, "rows lie anywhere: nearly no file can be skipped"
    found = the_one(table.optimize().executeZOrderBy("x", "y"))["metrics"]
    assert not found["preserveInsertionOrder"]
    assert found["zOrderStats"]["mergedFiles"]["num"] == 16
    files = live(path)
    for column in "xy":
        assert opened(column) * 2 <= 8 * files, f"of {files} files a query of {column} opens more than half"
    assert rows_of(table) == rows
    silent(path)
    assert json.loads(anabranch.history(path)[0]["operationParameters"]["zOrderBy"]) == ["x", "y"]


# -- whom it meets -----------------------------------------------------------------------------------------------------


def upsert(table: DeltaTable) -> None:
    session = SparkSession.active()
    source = session.createDataFrame([(7, -7, -7), (9999, 1, 1)], "id long, x long, y long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


Square = dict[int, tuple[int, int]]
CHANGES: dict[str, tuple[Callable[[DeltaTable], Any], Callable[[Square], Square]]] = {
    "delete": (lambda t: t.delete("id % 100 = 7"), lambda s: {i: v for i, v in s.items() if i % 100 != 7}),
    "update": (
        lambda t: t.update("id % 100 = 7", {"x": "-1"}),
        lambda s: {i: (-1, v[1]) if i % 100 == 7 else v for i, v in s.items()},
    ),
    "merge": (upsert, lambda s: {**s, 7: (-7, -7), 9999: (1, 1)}),
}
MOVES: dict[str, Callable[[DeltaTable], Any]] = {
    "compaction": lambda t: t.optimize().executeCompaction().collect(),
    "zorder": lambda t: t.optimize().executeZOrderBy(["x", "y"]).collect(),
    "purge": lambda t: run_optimize(SparkSession.active(), Purge(place_of(t))),
}


def place_of(table: DeltaTable) -> str:
    return str(table.detail().collect()[0]["location"])


@pytest.mark.exhaustive(
    "tests/transaction/test_relocation.py::test_a_delete_follows_its_rows",
    "tests/transaction/test_relocation.py::test_an_optimize_takes_along_what_a_delete_marked",
    "tests/transaction/test_grid_on_spark.py::test_moves_and_changes_on_spark",
)
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_and_a_move_never_refuse_each_other(session: SparkSession, path: str, change: str, move: str) -> None:
    table = spread(session, path)
    table.delete("id % 100 = 50")
    (act, effect), expected = CHANGES[change], {i: (i % SIDE, i // SIDE) for i in range(SIDE * SIDE) if i % 100 != 50}
    with at_phase("staged", lambda: MOVES[move](table)):
        act(table)
    expected = effect(expected)
    assert rows_of(table) == sorted((i, *v) for i, v in expected.items())
    operations = [entry["operation"] for entry in anabranch.history(path)]
    assert operations[1] in ("OPTIMIZE", "REORG")

    table.update("id = 11", {"x": "77"})  # so that there is something to move again
    expected[11] = (77, expected[11][1])
    with at_phase("staged", lambda: act(table)):
        MOVES[move](table)
    expected = effect(expected)
    assert rows_of(table) == sorted((i, *v) for i, v in expected.items())
    operations = [entry["operation"] for entry in anabranch.history(path)]
    assert operations[0] in ("OPTIMIZE", "REORG")


# -- what it refuses ---------------------------------------------------------------------------------------------------


def zorder(*columns: str) -> Callable[[DeltaTable], Any]:
    return lambda table: table.optimize().executeZOrderBy(*columns)


def where(condition: Any) -> Callable[[DeltaTable], Any]:
    return lambda table: table.optimize().where(condition).executeCompaction()


BAD: list[tuple[Callable[[DeltaTable], Any], type[errors.AnabranchError], str]] = [
    (zorder("z"), errors.InvalidOption, "z"),
    (zorder("p"), errors.InvalidOption, "p"),
    (zorder(), errors.InvalidOption, "columns"),
    (where("x = 1"), errors.InvalidCondition, "Only the partition columns"),
    (where("p = 1 AND x = 1"), errors.InvalidCondition, "Only the partition columns"),
    (where("nonsense ="), errors.InvalidCondition, "nonsense"),
    (where(7), errors.InvalidOption, "SQL text"),
]


def test_bad_inputs_are_refused_before_anything_is_written(session: SparkSession, path: str) -> None:
    table = make(session, path, ("p",))
    before = sorted(each.name for each in Path(path).rglob("*") if "_delta_log" not in str(each))
    for act, kind, said in BAD:
        with pytest.raises(kind, match=said):
            act(table)
    assert World(path).version == 3
    assert sorted(each.name for each in Path(path).rglob("*") if "_delta_log" not in str(each)) == before


def test_a_column_without_statistics_is_no_column_to_lay_rows_out_by(session: SparkSession, path: str) -> None:
    table = spread(session, path, **{"delta_dataSkippingStatsColumns": "id"})
    with pytest.raises(errors.InvalidOption, match="x"):
        table.optimize().executeZOrderBy("x")
    assert World(path).version == FILES - 1


def test_a_clustered_table_goes_by_its_own_columns(session: SparkSession, path: str) -> None:
    anabranch.append(path, [{"id": i, "x": i % 3} for i in range(6)], cluster_by=["x"], spark=session)
    anabranch.append(path, [{"id": i, "x": i % 3} for i in range(6, 12)], spark=session)
    table = DeltaTable.forPath(session, path)
    for act in (zorder("id"), where("x = 1")):
        with pytest.raises((errors.InvalidOption, errors.InvalidCondition), match="cluster"):
            act(table)
    assert the_one(table.optimize().executeCompaction())["metrics"]["numFilesRemoved"] == 2
    assert json.loads(anabranch.history(path)[0]["operationParameters"]["clusterBy"]) == ["x"]
    assert set(anabranch.files(path)["path"].to_pylist())
    assert the_one(table.optimize().executeCompaction())["metrics"]["numFilesRemoved"] == 0


# -- the command line --------------------------------------------------------------------------------------------------


def invoke(*words: str) -> Any:
    found = CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})
    return found


def test_the_command_line_optimizes_and_purges(session: SparkSession, path: str) -> None:
    spread(session, path)
    found = json.loads(invoke("optimize", path, "--zorder-by", "x, y", "--json").stdout)
    assert (found["version"], found["metrics"]["numRemovedFiles"]) == (FILES, FILES)
    assert "there was nothing to do" in invoke("optimize", path, "--zorder-by", "x,y").stdout
    assert "there was nothing to do" in invoke("reorg", path).stdout
    DeltaTable.forPath(session, path).delete("id = 3")
    shown = invoke("reorg", path)
    assert shown.exit_code == 0
    assert "numDeletionVectorsRemoved" in shown.stdout
    entry = anabranch.history(path)[0]
    assert (entry["operation"], entry["operationMetrics"]["numDeletionVectorRowsRemoved"]) == ("REORG", "1")


def test_the_command_line_takes_partitions_and_says_what_is_wrong(
    session: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(session, path, ("p",))
    assert json.loads(invoke("optimize", path, "--where", "p = 0", "--json").stdout)["metrics"]["numRemovedFiles"] == 4
    assert json.loads(invoke("reorg", path, "--where", "p = 0", "--json").stdout)["version"] is None
    for words, said in ((["--full"], "no clustering columns"), (["--zorder-by", "z"], "z")):
        monkeypatch.setattr("sys.argv", ["anabranch", "optimize", path, *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
