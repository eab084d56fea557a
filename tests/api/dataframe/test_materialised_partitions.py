"""Partition columns inside the files that Spark writes: with every verb, and read from the log."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.layout.paths import decode

pytestmark = pytest.mark.spark
MANY = 5000


def columns_of_files(path: str) -> set[tuple[str, ...]]:
    return {tuple(pq.read_schema(f"{path}/{decode(name)}").names) for name in anabranch.files(path)["path"].to_pylist()}


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_every_verb_of_spark_writes_the_partition_columns_into_files(
    spark: SparkSession, tmp_path: Path, vectors: str
) -> None:
    path = str(tmp_path / "t")
    rows = anabranch.install(spark).range(MANY).selectExpr("id % 3 AS p", "id", "id * 10 AS x")
    properties = {
        "delta.feature.materializePartitionColumns": "supported",
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": vectors,
    }
    rows.write.format("delta").partitionBy("p").options(**properties).save(path)
    rows.where("id < 100").selectExpr("p", f"id + {MANY} AS id", "x").write.format("delta").mode("append").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("length(cast(id AS string)) = 1", {"x": "-1", "p": "7"})
    table.delete("id % 1000 = 999")
    source = rows.where("id < 20").selectExpr("p", "id * 1000 AS id", "x").alias("s")
    table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.optimize().executeCompaction()
    table.optimize().executeZOrderBy("id")
    assert columns_of_files(path) == {("id", "x", "p")}
    feed = [pq.read_schema(file).names for file in Path(path, "_change_data").rglob("*.parquet")]
    assert feed
    assert all("p" in names for names in feed)
    found = table.toDF()
    assert sorted(row["id"] for row in found.where("p = 7").collect()) == list(range(1, 10))
    assert found.where("id = 15000").first()["p"] == 0
    rows.limit(3).write.format("delta").mode("overwrite").save(path)
    assert columns_of_files(path) == {("id", "x", "p")}
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)


def test_without_the_feature_the_property_decides(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = anabranch.install(spark).range(6).selectExpr("id % 2 AS p", "id")
    rows.write.format("delta").partitionBy("p").save(path)
    assert columns_of_files(path) == {("id",)}
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.writePartitionColumnsToParquet' = 'true')")
    rows.write.format("delta").mode("append").save(path)
    assert columns_of_files(path) == {("id",), ("id", "p")}
    assert spark.read.format("delta").load(path).where("p = 1").count() == 6
    assert "materializePartitionColumns" not in DeltaTable.forPath(spark, path).detail().first()["tableFeatures"]
