"""Table properties on real Spark: what its files look like is what the table says."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.layout.paths import decode

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("codec", "written"), [("zstd", "ZSTD"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED")])
def test_whatever_spark_writes_is_compressed_as_the_table_says(
    spark: SparkSession, tmp_path: Path, codec: str, written: str
) -> None:
    path = str(tmp_path / "t")
    anabranch.install(spark)
    rows = spark.range(10).selectExpr("id", "id * 2 AS x")
    rows.write.format("delta").option("delta.parquet.compression.codec", codec).save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 3", {"x": "0"})
    merge = table.alias("t").merge(rows.selectExpr("id + 5 AS id", "1L AS x").alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    files = anabranch.files(path)["path"].to_pylist()
    assert len(files) >= 3
    for name in files:
        assert pq.read_metadata(f"{path}/{decode(name)}").row_group(0).column(0).compression == written
    assert table.toDF().count() == 15
