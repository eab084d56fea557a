"""Parquet tables of Spark's, by their names and paths, where a statement would make a Delta table of them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors

pytestmark = pytest.mark.spark


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    name, before = f"s_{uuid.uuid4().hex[:10]}", spark.catalog.currentDatabase()
    spark.sql(f"CREATE DATABASE {name}")
    anabranch.sql(spark, f"USE {name}")
    yield name
    anabranch.sql(spark, f"USE {before}")
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def run(spark: SparkSession, schema: str) -> Any:
    def rows(text: str) -> list[Any]:
        return sorted(tuple(row) for row in anabranch.sql(spark, text).collect())

    return rows


# -- converting --------------------------------------------------------------------------------------------------------


def test_the_way_that_is_named_makes_a_delta_table_of_an_external_one(
    spark: SparkSession, run: Any, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE p (id BIGINT, q INT) USING parquet PARTITIONED BY (q) LOCATION '{tmp_path}/p'")
    spark.sql("INSERT INTO p VALUES (1, 2), (2, 3)")
    with pytest.raises(errors.NameNotConverted) as refused:
        run("CONVERT TO DELTA p")
    assert run("SELECT * FROM p") == [(1, 2), (2, 3)]
    instead = str(refused.value.facts["instead"])
    for pattern in (r"CONVERT TO DELTA .*?\)", r"DROP TABLE [^,]*", r"CREATE TABLE .*'"):
        (step,) = re.findall(pattern, instead)
        run(step)
    assert run("SELECT * FROM p") == [(1, 2), (2, 3)]
    assert run("DELETE FROM p WHERE id = 1") == [(1,)]


def test_of_a_managed_table_a_copy_is_advised_since_a_drop_removes_its_files(spark: SparkSession, run: Any) -> None:
    spark.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    with pytest.raises(errors.NameNotConverted, match="DROP TABLE would remove the files"):
        run("CONVERT TO DELTA p")
    with pytest.raises(errors.NameNotConverted):
        DeltaTable.convertToDelta(spark, "p")
    assert run("SELECT * FROM p") == [(1,)]


def test_a_name_of_a_delta_table_is_converted_already(spark: SparkSession, run: Any, schema: str) -> None:
    run("CREATE TABLE t (id INT) USING delta")
    assert run("CONVERT TO DELTA t") == []
    assert DeltaTable.convertToDelta(spark, f"{schema}.t").toDF().columns == ["id"]
    assert len(run("DESCRIBE HISTORY t")) == 1


def test_a_name_of_anything_else_is_refused_as_what_it_is(spark: SparkSession, run: Any) -> None:
    spark.sql("CREATE TABLE c (id INT) USING csv")
    spark.sql("CREATE VIEW v AS SELECT 1 AS id")
    with pytest.raises(errors.InvalidOption, match="csv"):
        run("CONVERT TO DELTA c")
    for name in ("v", "nothing"):
        with pytest.raises(errors.UnknownTable, match=name):
            run(f"CONVERT TO DELTA {name}")
