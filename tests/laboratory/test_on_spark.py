"""The same histories through real Spark, judged by the same oracle; `make lab` runs hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laboratory.on_spark import wrong_on_spark
from tests.support.tiers import examples


@pytest.mark.spark
@pytest.mark.slow
def test_no_history_is_wrong_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    assert wrong_on_spark(spark, tmp_path, range(examples(24, 1))) == []
