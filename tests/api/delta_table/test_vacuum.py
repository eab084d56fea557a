"""VACUUM through the doors of Spark: what it gives, whom it lets finish, and what a reader is told who was too slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch.errors import InvalidOption, MissingDataFile, RetentionTooShort, StagedFilesVacuumed
from anabranch.testing import at_phase
from tests.support.patience import a_tick
from tests.support.readers import deltalake_rows
from tests.support.worlds import World

pytestmark = pytest.mark.spark

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture
def unchecked(spark: SparkSession) -> Iterator[SparkSession]:
    anabranch.install(spark)
    spark.conf.set(CHECK, "false")
    yield spark
    spark.conf.unset(CHECK)


@pytest.fixture
def table(unchecked: SparkSession, tmp_path: Path) -> DeltaTable:
    path = str(tmp_path / "t")
    made = World(path).create([{"id": i, "x": i * 10, "p": i % 2} for i in range(8)], partition_by=("p",))
    made.delete("id = 7")
    made.update("id = 6", x=61)
    return DeltaTable.forPath(unchecked, path)


def path_of(table: DeltaTable) -> str:
    return str(table.detail().first()["location"]).removeprefix("file://")


def vacuum(table: DeltaTable) -> None:
    a_tick(10)
    assert table.vacuum(0).columns == []


def values(table: DeltaTable) -> dict[int, int]:
    return {row["id"]: row["x"] for row in deltalake_rows(path_of(table))}


EXPECTED = {0: 0, 1: 10, 2: 20, 3: 30, 4: 40, 5: 50, 6: 61}


def test_it_gives_an_empty_frame_and_removes_what_nothing_needs(table: DeltaTable, spark: SparkSession) -> None:
    path, rows = Path(path_of(table)), spark.range(8, 9).selectExpr("id", "id * 10 AS x", "0L AS p")
    rows.write.format("delta").mode("append").save(str(path))
    (path / "stray.parquet").write_bytes(b"x")
    vacuum(table)
    assert not (path / "stray.parquet").exists()
    assert not list(path.glob("job-*/_committed_*"))
    assert {row["id"]: row["x"] for row in table.toDF().collect()} == values(table) == {**EXPECTED, 8: 80}
    assert table.check(deep=True).is_clean


def test_the_check_is_the_sessions(table: DeltaTable, spark: SparkSession) -> None:
    for setting in (None, "true"):
        spark.conf.unset(CHECK) if setting is None else spark.conf.set(CHECK, setting)
        with pytest.raises(RetentionTooShort):
            table.vacuum(1)
    table.vacuum()
    table.vacuum(retentionHours=168)
    for wrong in ("a day", True, -1):
        with pytest.raises(InvalidOption):
            table.vacuum(wrong)  # type: ignore[arg-type]


@pytest.mark.exhaustive(
    "tests/commands/maintenance/test_vacuum_fence.py::test_a_writer_whose_heart_beats_always_lands",
    "tests/api/delta_table/test_vacuum.py::test_writers_on_spark_that_are_taken_for_dead_lose_nothing",
)
@pytest.mark.parametrize("phase", ["read", "staged", "checked", "put", "committed"])
def test_writers_on_spark_that_run_meanwhile_land(table: DeltaTable, spark: SparkSession, phase: str) -> None:
    with at_phase(phase, lambda: vacuum(table)):
        table.update("id = 1", {"x": "11"})
    with at_phase(phase, lambda: vacuum(table)):
        source = spark.createDataFrame([(2, 22, 0), (9, 90, 1)], "id long, x long, p long").alias("s")
        merge = table.alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    vacuum(table)
    assert values(table) == {**EXPECTED, 1: 11, 2: 22, 9: 90}
    assert table.check(deep=True).is_clean


@pytest.mark.parametrize("phase", ["staged", "put"])
def test_writers_on_spark_that_are_taken_for_dead_lose_nothing(table: DeltaTable, phase: str) -> None:
    from anabranch.commands.maintenance.vacuum import Vacuum

    def presumed_dead() -> None:
        a_tick(10)
        Vacuum(path_of(table), 0, check_retention=False, dead_after_seconds=0).run()

    expected = dict(EXPECTED)
    try:
        with at_phase(phase, presumed_dead):
            table.update("id = 1", {"x": "11"})
        expected[1] = 11
    except StagedFilesVacuumed:
        pass
    assert values(table) == expected
    assert table.check(deep=True).is_clean


def test_a_reader_who_was_too_slow_is_told_which_version_is_gone(table: DeltaTable, spark: SparkSession) -> None:
    version = anabranch.history(path_of(table), 1)[0]["version"]
    frame = table.toDF()
    derived = frame.filter("x > 0").groupBy("p").count()
    World(path_of(table)).overwrite({"id": 0, "x": 0, "p": 0})
    assert len(frame.collect()) == len(EXPECTED), "within the retention a reader is safe"
    vacuum(table)
    for action in (frame.collect, derived.collect, derived.count, frame.toPandas, frame.show):
        with pytest.raises(MissingDataFile, match="VACUUM") as error:
            action()
        assert error.value.version == version
        assert error.value.table == f"file://{path_of(table)}"
    with pytest.raises(MissingDataFile) as error:
        anabranch.read(path_of(table), version=version, spark=spark).collect()
    assert error.value.version == version
    assert values(table) == {0: 0}
