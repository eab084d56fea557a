"""Tables that delta-spark makes with newer features: we change them as the features say, and it goes on with them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._log.log import Log
from anabranch._protocol.features.row_tracking import hidden_names
from anabranch._protocol.iceberg import lacks_numbers
from anabranch._protocol.layout.paths import decode
from anabranch._storage.open import open_store
from tests.support.delta_spark import DeltaSpark
from tests.support.delta_spark_tables import MADE
from tests.support.readers import same_rows
from tests.support.worlds import table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]


@pytest.mark.parametrize("feature", ["materializePartitionColumns", "icebergCompatV3"])
def test_we_change_what_delta_spark_made_and_it_changes_that_again(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, feature: str
) -> None:
    path, install = table_path(tmp_path), anabranch.install
    MADE[feature].by(delta_spark, path)
    table = DeltaTable.forPath(install(spark), path)
    table.update("id = 6", {"x": "-6"})
    table.delete("id = 7")
    anabranch.append(path, [{"id": 100, "day": "0", "x": 1.0}])
    spark.createDataFrame([(101, "9", 2.0)], "id long, day string, x double").write.format("delta").mode("append").save(
        path
    )
    table.optimize().executeCompaction()
    assert_files_fit(path, feature)
    delta_spark.sql(f"UPDATE delta.`{path}` SET x = -100 WHERE id >= 100", f"DELETE FROM delta.`{path}` WHERE id = 0")
    found = [row.asDict() for row in anabranch.read(path, spark=spark).collect()]
    assert same_rows(delta_spark.rows(path), found)
    assert {row["id"]: row["x"] for row in found if row["id"] in (6, 100, 101)} == {6: -6.0, 100: -100.0, 101: -100.0}
    assert {row["id"] for row in found}.isdisjoint({0, 4, 7})
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)


def assert_files_fit(path: str, feature: str) -> None:
    """All live files hold the partition columns, and the field ids that the feature asks for."""
    snapshot = Log(open_store(path)).snapshot()
    metadata = snapshot.metadata
    for name in snapshot.files["path"].to_pylist():
        schema = pq.read_schema(f"{path}/{decode(name)}")
        assert {snapshot.schema.field(column).physical_name for column in metadata.partition_columns} <= {*schema.names}
        if feature == "icebergCompatV3":
            assert not lacks_numbers(schema, metadata.configuration, hidden_names(metadata))


@pytest.mark.parametrize("codec", ["gzip", "lz4_raw", "zstd"])
def test_delta_spark_reads_files_change_data_and_checkpoints_of_each_codec(
    delta_spark: DeltaSpark, tmp_path: Path, codec: str
) -> None:
    path = table_path(tmp_path)
    properties = {
        "delta.parquet.compression.codec": codec,
        "delta.checkpointInterval": "1",
        "delta.enableChangeDataFeed": "true",
    }
    anabranch.append(path, [{"id": i, "x": 0} for i in range(5)], properties=properties)
    anabranch.table(path).update("id = 3", {"x": "7"})
    assert [*Path(path, "_delta_log").glob("*.checkpoint.parquet")]
    Path(path, "_delta_log", f"{0:020d}.json").unlink()
    assert sorted((row["id"], row["x"]) for row in delta_spark.rows(path)) == [(0, 0), (1, 0), (2, 0), (3, 7), (4, 0)]
