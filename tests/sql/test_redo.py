"""``anabranch.conflictResolution = redo`` through SQL: a statement runs again from its text."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._spark.engine import SparkEngine
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
