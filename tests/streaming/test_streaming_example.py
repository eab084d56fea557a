"""The example in `examples/`: a stream in three layers gives what its deliveries say."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support import medallion


def rows(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    return [row.asDict() for row in anabranch.read(str(path), spark=spark).collect()]


@pytest.mark.exhaustive(
    "tests/streaming/test_streams.py::test_a_table_flows_into_another_exactly_once_in_a_second_session_as_well",
    "tests/streaming/test_streams.py::test_a_merge_runs_in_a_function_of_batches",
)
@pytest.mark.spark
@pytest.mark.classic("the server needs this package for streams; tests/system/test_connect.py has one that has it")
def test_each_reading_arrives_once_also_when_the_job_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    job = runpy.run_path(str(medallion.STREAM))["main"]
    try:
        job([str(tmp_path), "--deliveries", "1"])
        job([str(tmp_path), "--deliveries", "1"])
    finally:
        anabranch.uninstall(spark)
    lines = [json.loads(line) for file in (tmp_path / "landing").iterdir() for line in file.read_text().splitlines()]
    once = {each["reading"]: each for each in lines}
    assert len(lines) > len(once) == 200
    assert len(rows(spark, tmp_path / "bronze")) == len(lines)
    assert sorted(row["reading"] for row in rows(spark, tmp_path / "silver")) == sorted(once)
    totals: Counter[tuple[int, str]] = Counter()
    for each in once.values():
        totals[each["sensor"], each["at"][:13]] += each["value"]
    gold = {(row["sensor"], f"{row['hour']:%Y-%m-%d %H}"): row["total"] for row in rows(spark, tmp_path / "gold")}
    assert gold == dict(totals)
