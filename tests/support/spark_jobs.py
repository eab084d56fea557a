"""How many jobs of Spark a piece of work starts, and a way to leave work to Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from anabranch._protocol.unsupported import Unsupported


def jobs(spark: SparkSession, work: Callable[[], Any]) -> int:
    """How many jobs a piece of work starts, on a classic session."""
    group = str(uuid4())
    spark.sparkContext.setJobGroup(group, "")
    try:
        work()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def left_to_spark(*_: Any) -> None:
    """In the place of a check of what Arrow does."""
    raise Unsupported("a test leaves it to Spark")
