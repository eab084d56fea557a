"""``anabranch.conflictResolution = redo`` through SQL: a statement runs again from its text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._spark.engine import SparkEngine
from anabranch._transaction.own_commits import another_program
from anabranch.commands.dml.write import Write
from anabranch.testing import at_phase

pytestmark = pytest.mark.spark


@pytest.fixture
def path(tmp_path: Path) -> str:
    rows = [{"id": number, "n": 0} for number in range(4)]
    anabranch.append(tmp_path / "t", rows, properties={"anabranch.conflictResolution": "redo"})
    return str(tmp_path / "t")


def rows(spark: SparkSession, path: str) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in anabranch.read(spark, path).select("id", "n").collect())


def add_ten(path: str) -> None:
    anabranch.table(path).update("id = 1", {"n": "n + 10"})


def test_each_statement_that_changes_rows_runs_again(spark: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"
    for statement in (
        f"UPDATE {table} SET n = n + 1 WHERE id = 1",
        f"MERGE INTO {table} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = n + 1",
        f"INSERT INTO {table} SELECT id + 100, n FROM {table} WHERE id = 1",
        f"UPDATE {table} SET n = n + 1 WHERE id = 1 AND n >= (SELECT min(n) FROM {table})",
        f"DELETE FROM {table} WHERE id = 1",
    ):
        with at_phase("staged", lambda: add_ten(path)):
            anabranch.sql(spark, statement)
    assert rows(spark, path) == [(0, 0), (2, 0), (3, 0), (101, 32)]


KINDS = """id AS id, id % 2 AS half, 0 AS n, double('NaN') AS nan, float(-0.0) AS zero, decimal(id / 3) AS amount,
    timestamp_micros(id * 1000003) AS at, timestamp_ntz '2020-01-01 00:00:00.5' AS local, date '2020-01-01' AS day,
    cast(null AS STRING) AS nothing, 'text' AS text, binary('b') AS bytes, array(id, null) AS list,
    map('k', struct(id, double('NaN'))) AS pairs, named_struct('a', named_struct('b', id)) AS inside"""


@pytest.mark.parametrize("where", ["id < 8", "id < 8 AND hash(id) IS NOT NULL"])
@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (half)"])
@pytest.mark.parametrize("feed", ["true", "false"])
def test_an_update_of_rows_of_all_kinds_lets_go_of_those_that_another_has_changed(
    spark: SparkSession, tmp_path: Path, where: str, partitions: str, feed: str
) -> None:
    table = f"delta.`{tmp_path}/kinds`"
    properties = f"'anabranch.conflictResolution' = 'redo', 'delta.enableChangeDataFeed' = '{feed}'"
    layout = f"USING delta {partitions} TBLPROPERTIES ({properties})"
    anabranch.sql(spark, f"CREATE TABLE {table} {layout} AS SELECT {KINDS} FROM range(10)")

    def others_change_two() -> None:
        anabranch.table(f"{tmp_path}/kinds").update("id IN (1, 6)", {"n": "n + 10"})

    with at_phase("staged", others_change_two):
        anabranch.sql(spark, f"UPDATE {table} SET n = n + 1, half = 1 - half, inside.a.b = id + 1 WHERE {where}")
    wanted = [(i, (i + 1) % 2, 11 if i in (1, 6) else 1, i + 1) if i < 8 else (i, i % 2, 0, i) for i in range(10)]
    found = anabranch.sql(spark, f"SELECT id, half, n, inside.a.b FROM {table}").collect()
    assert sorted(map(tuple, found)) == wanted
    metrics = anabranch.history(f"{tmp_path}/kinds", 1)[0]["operationMetrics"]
    assert metrics["numUpdatedRows"] == "8"
    assert "numRedoneRuns" not in metrics
    assert metrics["numRedoneRows"] == "2"
    if feed == "true":
        changes = anabranch.sql(spark, f"SELECT * FROM table_changes('delta.`{tmp_path}/kinds`', 2, 2)").collect()
        images = sorted((row.id, row._change_type, row.n) for row in changes)
        old = {i: 10 if i in (1, 6) else 0 for i in range(8)}
        kinds = (("update_postimage", 1), ("update_preimage", 0))
        assert images == [(i, kind, old[i] + more) for i in range(8) for kind, more in kinds]


@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (half)"])
@pytest.mark.parametrize("clause", ["UPDATE SET n = t.n + s.n, half = 1 - t.half", "DELETE"])
@pytest.mark.parametrize("theirs", ["UPDATE SET n = n + 10", "DELETE"])
def test_a_merge_of_rows_of_all_kinds_lets_go_of_those_that_another_has_changed(
    spark: SparkSession, tmp_path: Path, partitions: str, clause: str, theirs: str
) -> None:
    properties = "'anabranch.conflictResolution' = 'redo'"
    names = ("mine", "copy")
    for name in names:
        layout = f"USING delta {partitions} TBLPROPERTIES ({properties})"
        made = f"CREATE TABLE delta.`{tmp_path}/{name}` {layout} AS SELECT {KINDS} FROM range(10)"
        anabranch.sql(spark, made)

    def change_two(name: str) -> None:
        table = anabranch.table(f"{tmp_path}/{name}")
        if theirs == "DELETE":
            table.delete("id IN (1, 6)")
        else:
            table.update("id IN (1, 6)", {"n": "n + 10"})

    def merge(name: str) -> None:
        source = "(SELECT id, 5 AS n FROM range(2, 12) UNION ALL SELECT 1L, 7)"
        on = f"MERGE INTO delta.`{tmp_path}/{name}` t USING {source} s ON t.id = s.id"
        insert = "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
        anabranch.sql(spark, f"{on} WHEN MATCHED THEN {clause} {insert}")

    with at_phase("staged", lambda: change_two("mine")):
        merge("mine")
    change_two("copy")
    merge("copy")
    mine, copy = (anabranch.read(spark, f"{tmp_path}/{name}").drop("pairs").collect() for name in names)
    assert sorted(map(str, mine)) == sorted(map(str, copy))
    assert "numRedoneRuns" not in anabranch.history(f"{tmp_path}/mine", 1)[0]["operationMetrics"]


def test_a_frame_of_the_table_keeps_its_rows_and_so_its_statement_is_refused(spark: SparkSession, path: str) -> None:
    frame = anabranch.read(spark, path)
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: add_ten(path)):
        Write(path, frame.selectExpr("id + 100 AS id", "n"), "append").run(SparkEngine(spark))
    assert rows(spark, path) == [(0, 0), (1, 10), (2, 0), (3, 0)]


def test_the_builders_run_again_too(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    with at_phase("staged", lambda: add_ten(path)):
        table.update("id = 1", {"n": "n + 1"})
    source = spark.createDataFrame([(1,)], "id bigint")
    with at_phase("staged", lambda: add_ten(path)):
        table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"n": "n + 1"}).execute()
    assert rows(spark, path)[1] == (1, 22)


def append_nine(path: str) -> None:
    anabranch.append(path, [{"id": 9, "n": 9}])


@pytest.mark.parametrize("other", [add_ten, append_nine], ids=["an update", "an append"])
def test_a_replaced_table_is_computed_again_from_its_newest_rows(
    spark: SparkSession, path: str, other: Callable[[str], None]
) -> None:
    table, keeps = f"delta.`{path}`", "TBLPROPERTIES ('anabranch.conflictResolution' = 'redo')"
    with at_phase("staged", lambda: other(path)):
        anabranch.sql(spark, f"CREATE OR REPLACE TABLE {table} {keeps} AS SELECT id, n + 1 AS n FROM {table}")
    expected = [(0, 1), (1, 11), (2, 1), (3, 1)] if other is add_ten else [*((i, 1) for i in range(4)), (9, 10)]
    assert rows(spark, path) == expected
    with at_phase("staged", lambda: other(path)):
        anabranch.sql(spark, f"REPLACE TABLE {table} (id BIGINT, n BIGINT) {keeps}")
    assert rows(spark, path) == []
    assert anabranch.history(path, 1)[0]["operationMetrics"]["numRedoneRuns"] == "1"


@pytest.mark.whole
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE {} AS SELECT * FROM read_before",
        "INSERT OVERWRITE {} SELECT * FROM read_before",
        "MERGE INTO {} t USING read_before s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
    ],
    ids=["replace", "overwrite", "merge"],
)
def test_a_view_of_rows_that_were_read_before_is_as_old_in_another_run_so_the_statement_is_refused(
    spark: SparkSession, path: str, statement: str
) -> None:

    def others_add_ten() -> None:
        with another_program():
            add_ten(path)

    anabranch.read(spark, path).createOrReplaceTempView("read_before")
    try:
        with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", others_add_ten):
            anabranch.sql(spark, statement.format(f"delta.`{path}`"))
    finally:
        spark.catalog.dropTempView("read_before")
    assert rows(spark, path) == [(0, 0), (1, 10), (2, 0), (3, 0)]


def test_a_restore_and_a_change_of_the_columns_run_again(spark: SparkSession, path: str) -> None:
    add_ten(path)
    with at_phase("staged", lambda: add_ten(path)):
        anabranch.sql(spark, f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0")
    with at_phase("staged", lambda: append_nine(path)):
        anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMN more STRING")
    with at_phase("staged", lambda: add_ten(path)):
        DeltaTable.forPath(spark, path).restoreToVersion(0)
    assert rows(spark, path) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_an_insert_of_several_tables_runs_each_of_them_again_unless_it_reads_that_table(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    source = f"{tmp_path}/source"
    anabranch.append(source, [{"id": 1, "n": 1}])
    both = f"INSERT OVERWRITE TABLE delta.`{path}` SELECT * INSERT INTO delta.`{source}` SELECT id + 1, n"
    with at_phase("staged", lambda: add_ten(path)):
        anabranch.sql(spark, f"FROM delta.`{source}` {both}")
    assert rows(spark, path) == [(1, 1)]
    assert rows(spark, source) == [(1, 1), (2, 1)]
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: add_ten(path)):
        anabranch.sql(spark, f"FROM delta.`{path}` {both}")
