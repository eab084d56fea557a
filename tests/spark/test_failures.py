"""What Spark says of a failure is told in its own sentence, with no word of what carries it to Python."""

from __future__ import annotations

import threading
import time

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch.errors import ExecutionFailed
from anabranch.spark.failures import reported

pytestmark = pytest.mark.spark


def test_a_job_that_is_cancelled_says_so(spark: SparkSession) -> None:
    sleeps = F.udf(lambda number: time.sleep(20) or number, "long")
    cancels = threading.Timer(3, spark.sparkContext.cancelAllJobs)
    cancels.start()
    with pytest.raises(ExecutionFailed) as failed, reported("the rows", "/t"):
        spark.range(1).select(sleeps("id")).collect()
    cancels.join()
    assert "cancelled" in failed.value.reason
    assert "calling o" not in failed.value.reason
    assert "org.apache" not in failed.value.reason
