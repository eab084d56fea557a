"""A job alone conflicts with nobody: by every door it may write what it had read, after commits of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch._streaming.data_source import has_limits
from tests.support.readers import deltalake_rows

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True, scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    yield anabranch.install(spark)
    anabranch.uninstall(spark)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    made = str(tmp_path / "customers")
    anabranch.append(made, [{"id": 1, "x": 10}, {"id": 2, "x": 20}], spark=spark)
    return made


def test_a_job_merges_and_then_appends_what_it_had_computed_before(spark: SparkSession, path: str) -> None:
    table, new = DeltaTable.forPath(spark, path), spark.createDataFrame([(2, 21), (3, 30)], "id long, x long")
    changed = new.join(table.toDF().select(F.col("id"), F.col("x").alias("was")), "id").select(
        (F.col("id") + 100).alias("id"), F.col("was").alias("x")
    )
    table.alias("t").merge(new.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    changed.write.format("delta").mode("append").save(path)
    assert sorted(deltalake_rows(path), key=lambda row: row["id"]) == [
        {"id": 1, "x": 10}, {"id": 2, "x": 21}, {"id": 3, "x": 30}, {"id": 102, "x": 20},
    ]  # fmt: skip


def _append(held: DataFrame, path: str) -> None:
    held.write.format("delta").mode("append").save(path)


def _insert_from_view(held: DataFrame, path: str) -> None:
    held.createOrReplaceTempView("held_rows")
    held.sparkSession.sql(f"INSERT INTO delta.`{path}` SELECT * FROM held_rows")


def _merge(held: DataFrame, path: str) -> None:
    target = DeltaTable.forPath(held.sparkSession, path).alias("t")
    target.merge(held.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()


def _merge_from_view(held: DataFrame, path: str) -> None:
    held.createOrReplaceTempView("held_rows")
    statement = f"MERGE INTO delta.`{path}` t USING held_rows s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    held.sparkSession.sql(statement)


DOORS: dict[str, Callable[[DataFrame, str], None]] = {
    "a DataFrame": _append,
    "INSERT": _insert_from_view,
    "DeltaTable.merge": _merge,
    "MERGE": _merge_from_view,
}


@pytest.mark.whole
@pytest.mark.parametrize("door", list(DOORS))
def test_rows_are_those_that_were_read_and_only_others_stand_in_the_way(
    spark: SparkSession, path: str, door: str
) -> None:
    held = spark.read.format("delta").load(path).withColumn("id", F.col("id") + 100)
    spark.sql(f"UPDATE delta.`{path}` SET x = 99 WHERE id = 2")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'sales')")
    DOORS[door](held, path)
    assert [row for row in deltalake_rows(path) if row["id"] > 100] == [{"id": 101, "x": 10}, {"id": 102, "x": 20}]
    with ThreadPoolExecutor(1) as another:
        another.submit(anabranch.append, spark, path, [{"id": 5, "x": 50}]).result()
    with pytest.raises(errors.ConcurrentAppendException, match="Read the DataFrame anew") as error:
        DOORS[door](held, path)
    assert not error.value.retryable


def test_rows_of_a_log_that_was_put_back_are_refused_and_those_of_a_copy_are_taken_as_they_are(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    copy = str(shutil.copytree(path, tmp_path / "copy"))
    with ThreadPoolExecutor(1) as another:
        another.submit(anabranch.append, spark, path, [{"id": 3, "x": 30}]).result()
    held = spark.read.format("delta").load(path).localCheckpoint()
    for suffix in ("json", "crc"):
        Path(path, "_delta_log", f"{1:020}.{suffix}").unlink(missing_ok=True)
    anabranch.append(path, [{"id": 4, "x": 40}], spark=spark)
    of_the_copy = spark.read.format("delta").load(copy)
    for rows in (held, of_the_copy):
        with pytest.raises(errors.VersionReplaced, match="Read the DataFrame anew"):
            rows.write.format("delta").mode("append").save(path)
    spark.read.format("delta").option("versionAsOf", 0).load(copy).write.format("delta").mode("append").save(path)
    assert [row["id"] for row in deltalake_rows(path)] == [1, 1, 2, 2, 4]


@pytest.mark.classic("on Connect the server runs the function, and has no package of ours")
@pytest.mark.skipif(not has_limits(), reason="before PySpark 4.2 a batch takes all that there is")
def test_a_batch_of_a_stream_does_not_take_the_batches_before_it_for_its_own(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    """A held frame of the target knows nothing of what earlier batches wrote, so that they would be written again."""
    source, known = str(tmp_path / "source"), spark.read.format("delta").load(path).select("id")
    anabranch.append(source, [{"id": 7, "x": 70}], spark=spark)
    anabranch.append(source, [{"id": 8, "x": 80}], spark=spark)
    told: list[Any] = []

    def new_alone(batch: DataFrame, number: int) -> None:
        try:
            batch.join(known, "id", "left_anti").write.format("delta").mode("append").save(path)
        except errors.DeltaConcurrentModificationException as error:
            told.append((number, error.retryable))

    stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source)
    query = (
        stream.writeStream.foreachBatch(new_alone)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert told == [(1, False)]
    assert [row["id"] for row in deltalake_rows(path)] == [1, 2, 7]
