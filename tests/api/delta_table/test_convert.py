"""CONVERT TO DELTA on real Spark: what was read as Parquet is read as a table, by Spark, delta-rs and DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import anabranch
from anabranch import DeltaTable, errors
from tests.support.worlds import World, assert_others_agree
from tests.test_golden import bag

pytestmark = pytest.mark.spark

EVERY_TYPE = """
    SELECT id, CAST(id AS BYTE) AS b, CAST(id AS SHORT) AS s, CAST(id AS INT) AS i, CAST(id / 2 AS FLOAT) AS f,
        id / 3 AS d, CAST(id AS DECIMAL(9, 2)) AS dec, CAST(id AS DECIMAL(25, 3)) AS big, id % 2 = 0 AS bool,
        CAST(id AS STRING) AS text, CAST(CAST(id AS STRING) AS BINARY) AS bin,
        DATE '2024-01-31' + CAST(id AS INT) AS day,
        TIMESTAMP '2024-01-31 12:30:00.123456' AS ts, TIMESTAMP_NTZ '2024-01-31 12:30:00.123456' AS ntz,
        ARRAY(id, NULL) AS arr, MAP(CAST(id AS STRING), NAMED_STRUCT('x', id)) AS m,
        NAMED_STRUCT('a', id, 'b', ARRAY(NAMED_STRUCT('c', CAST(id AS SHORT)))) AS st
    FROM RANGE(20)
"""
WRITTEN_AS = "spark.sql.parquet.outputTimestampType"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a table")


@pytest.mark.parametrize("timestamps", ["TIMESTAMP_MICROS", "INT96"])
def test_every_type_is_read_as_spark_read_it(spark: SparkSession, path: str, timestamps: str) -> None:
    before = spark.conf.get(WRITTEN_AS)
    spark.conf.set(WRITTEN_AS, timestamps)
    spark.sql(EVERY_TYPE).repartition(3).write.parquet(path)
    spark.conf.set(WRITTEN_AS, before)
    read = spark.read.parquet(path)
    expected, schema = bag(read), read.schema
    table = DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    assert table.toDF().schema == schema
    assert bag(table.toDF()) == expected
    assert anabranch.check(path, deep=True).is_clean
    if timestamps != "INT96":
        assert_others_agree(path)


@pytest.mark.parametrize("given", ["p STRING, `day` DATE", T.StructType().add("p", "string").add("day", "date")])
def test_a_partitioned_folder_is_read_as_spark_read_it(spark: SparkSession, path: str, given: Any) -> None:
    rows = [(1, "a/b", "2024-01-31"), (2, "x y", None), (3, None, "2024-02-01"), (4, "é%", "2024-02-01")]
    frame = spark.createDataFrame(rows, "id long, p string, day string").selectExpr(
        "id", "p", "CAST(day AS DATE) AS day"
    )
    frame.write.partitionBy("p", "day").parquet(path)
    expected = bag(spark.read.schema("id long, p string, day date").parquet(path))
    table = DeltaTable.convertToDelta(spark, f"parquet.`{path}`", given)
    assert bag(table.toDF()) == expected
    assert table.detail().first()["partitionColumns"] == ["p", "day"]
    table.delete("p = 'x y'")
    table.update("id = 1", {"id": "10"})
    assert sorted(row["id"] for row in table.toDF().collect()) == [3, 4, 10]
    assert_others_agree(path)


def test_a_table_of_delta_stays_as_it_is(spark: SparkSession, path: str) -> None:
    World(path).create([{"id": 1}])
    for form in ("parquet", "delta"):
        assert DeltaTable.convertToDelta(spark, f"{form}.`{path}`").toDF().count() == 1
    assert len(anabranch.history(path)) == 1


def test_what_cannot_be_converted_is_refused(spark: SparkSession, path: str, tmp_path: Path) -> None:
    with pytest.raises(errors.EmptyDirectory):
        DeltaTable.convertToDelta(spark, f"parquet.`{path}`")
    with pytest.raises(errors.NotATable):
        DeltaTable.convertToDelta(spark, f"delta.`{path}`")
    for wrong in ("no columns", "INT", 5, T.LongType()):
        with pytest.raises(errors.InvalidOption):
            DeltaTable.convertToDelta(spark, f"parquet.`{path}`", wrong)
    with pytest.raises(errors.InvalidOption):
        DeltaTable.convertToDelta(spark, f"iceberg.`{path}`")
    with pytest.raises(errors.UnknownTable):
        DeltaTable.convertToDelta(spark, "flights")
    assert not list(tmp_path.iterdir())
