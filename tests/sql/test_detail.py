"""DESCRIBE DETAIL of what is no Delta table says what Spark's catalog says of it, as delta-spark does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import anabranch
from anabranch import errors

pytestmark = pytest.mark.spark


@pytest.fixture
def detail(spark: SparkSession, schema: str) -> Any:
    def described(said: str) -> Row:
        (row,) = anabranch.sql(spark, f"DESCRIBE DETAIL {said}").collect()
        return row

    return described


def known(row: Row) -> dict[str, Any]:
    return {key: value for key, value in row.asDict().items() if value is not None}


def test_a_parquet_table_is_described_by_its_name(spark: SparkSession, schema: str, detail: Any) -> None:
    spark.sql("CREATE TABLE p (id INT, q INT) USING parquet PARTITIONED BY (q) COMMENT 'words' TBLPROPERTIES (a = 'b')")
    row = detail("p")
    assert (row.format, row.name, row.description) == ("parquet", f"spark_catalog.{schema}.p", "words")
    assert (row.partitionColumns, row.properties) == (["q"], {"a": "b"})
    assert row.location.endswith("/p")
    assert row.createdAt is not None
    said = {"format", "name", "description", "location", "createdAt", "partitionColumns", "properties"}
    assert set(known(row)) == said
    assert row == detail(f"{schema}.p") == detail(f"`spark_catalog`.{schema}.p")


def test_tables_of_other_formats_are_described_too(spark: SparkSession, detail: Any, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE c (id INT) USING csv LOCATION '{tmp_path}/c'")
    assert (detail("c").format, detail("c").partitionColumns) == ("csv", [])


def test_a_path_without_a_log_is_described_by_its_place_alone(spark: SparkSession, detail: Any, tmp_path: Path) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/p")
    assert known(detail(f"'{tmp_path}/p'")) == {"location": f"{tmp_path}/p", "properties": {}}
    said = {"format": "parquet", "location": f"{tmp_path}/p", "properties": {}}
    assert known(detail(f"parquet.`{tmp_path}/p`")) == said
    with pytest.raises(errors.NotATable):
        detail(f"'{tmp_path}/nothing'")
    with pytest.raises(errors.NotATable):
        detail(f"delta.`{tmp_path}/p`")
    with pytest.raises(errors.UnknownTable):
        detail(f"parquet.`{tmp_path}/nothing`")


def test_what_is_no_table_is_refused_by_its_name(spark: SparkSession, detail: Any) -> None:
    spark.sql("CREATE VIEW v AS SELECT 1 AS a")
    with pytest.raises(errors.ViewIsNoTable, match="`v`"):
        detail("v")
    with pytest.raises(errors.UnknownTable, match="`nothing`"):
        detail("nothing")


def test_a_column_of_a_table_called_detail_is_described(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE detail (id INT COMMENT 'key') USING parquet")
    found = anabranch.sql(spark, "DESCRIBE detail id").collect()
    assert ("comment", "key") in [tuple(row) for row in found]
