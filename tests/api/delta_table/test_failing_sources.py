"""A function of Python that fails while a command reads its rows is told by its own sentence, on Spark Connect too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch.errors import ExecutionFailed

pytestmark = pytest.mark.spark


def test_the_source_of_a_merge_says_why_it_fails(spark: SparkSession, tmp_path: Path) -> None:
    def fails(value: int) -> int:
        raise ValueError(f"no {value} here")

    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": 1, "x": 1}])
    source = spark.range(1).select("id", F.udf(fails, "long")("id").alias("x"))
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id").whenNotMatchedInsertAll()
    with pytest.raises(ExecutionFailed) as failed:
        merge.execute()
    assert failed.value.reason == "ValueError: no 0 here."
    assert anabranch.history(path)[0]["version"] == 0
