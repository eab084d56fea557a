"""What Spark knows of rows before it runs anything: a size only where no step can make more of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch._spark.frames.outlooks import outlook

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("outlooks") / "rows")
    spark.range(1000).withColumn("text", F.lit("a, Statistics(sizeInBytes=1.0 B)")).write.parquet(path)
    return path


def test_rows_of_files_are_as_large_as_the_files_that_are_read(spark: SparkSession, folder: str) -> None:
    size = sum(each.stat().st_size for each in Path(folder).glob("*.parquet"))
    found = outlook(spark.read.parquet(folder).where("id > 10").select("id"))
    assert found.bytes is not None
    assert 0.5 * size < found.bytes < 2 * size
    assert not found.is_constant


def test_what_spark_has_computed_is_constant(spark: SparkSession) -> None:
    assert outlook(spark.sql("VALUES (1), (2)")).is_constant
    assert not outlook(spark.range(2)).is_constant


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: rows.select(F.explode(F.sequence(F.lit(1), F.lit(1000)))),
        lambda rows: rows.mapInArrow(lambda batches: batches, "id long, text string"),
        lambda rows: rows.select(F.udf(lambda n: n, "long")("id")),
        lambda rows: rows.crossJoin(rows.select("id")),
        lambda rows: rows.unionAll(rows),
        lambda rows: rows.where(F.col("text") != "two\nlines"),
    ],
    ids=["explode", "map in arrow", "udf", "join", "union", "a text of two lines"],
)
def test_where_a_step_may_make_more_of_them_or_is_not_understood_nothing_is_said(
    spark: SparkSession, folder: str, made: Any
) -> None:
    assert outlook(made(spark.read.parquet(folder))).bytes is None
