"""Tables of the third version of Iceberg compatibility as Spark writes them: field ids in files, ids of rows kept."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._log.log import Log
from anabranch._protocol.features.row_tracking import hidden_names
from anabranch._protocol.iceberg import HIDDEN_IDS, lacks_numbers
from anabranch._protocol.layout.paths import decode
from anabranch._storage.open import open_store

pytestmark = pytest.mark.spark
MANY = 5000


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_every_verb_of_spark_gives_files_that_fit(spark: SparkSession, tmp_path: Path, vectors: str) -> None:
    path = str(tmp_path / "t")
    rows = anabranch.install(spark).range(MANY).selectExpr("id % 3 AS p", "id", "timestamp_seconds(id) AS at")
    properties = {"delta.enableIcebergCompatV3": "true", "delta.enableDeletionVectors": vectors}
    rows.write.format("delta").partitionBy("p").options(**properties).save(path)
    table = DeltaTable.forPath(spark, path)
    before = row_ids(path, spark)
    table.update("length(cast(id AS string)) = 1", {"p": "7"})
    table.delete("id % 1000 = 999")
    source = rows.where("id < 20").selectExpr("p", "id * 1000 AS id", "at").alias("s")
    table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.optimize().executeCompaction()
    snapshot = Log(open_store(path)).snapshot()
    hidden, found = hidden_names(snapshot.metadata), set()
    for name in snapshot.files["path"].to_pylist():
        schema = pq.read_schema(f"{path}/{decode(name)}")
        assert not lacks_numbers(schema, snapshot.metadata.configuration, hidden)
        assert schema.field(snapshot.schema.field("at").physical_name).type.unit == "us"
        found |= {int(each.metadata[b"PARQUET:field_id"]) for each in schema if each.name in hidden}
    assert found == set(HIDDEN_IDS)
    after = row_ids(path, spark)
    assert all(after[key] == before[key] for key in after.keys() & before.keys())
    assert sorted(row["id"] for row in table.toDF().where("p = 7").collect()) == list(range(1, 10))
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)


def row_ids(path: str, spark: SparkSession) -> dict[int, int]:
    return {row["id"]: row["_row_id"] for row in anabranch.read(path, spark=spark, row_ids=True).collect()}


def test_a_statement_upgrades_a_table_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = anabranch.install(spark).range(10).selectExpr("id % 2 AS p", "id")
    rows.write.format("delta").partitionBy("p").save(path)
    DeltaTable.forPath(spark, path).delete("id = 4")
    spark.sql(f"REORG TABLE delta.`{path}` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 3))")
    detail = DeltaTable.forPath(spark, path).detail().first()
    assert {"icebergCompatV3", "rowTracking", "columnMapping"} <= set(detail["tableFeatures"])
    assert sorted(row["id"] for row in spark.read.format("delta").load(path).collect()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)
