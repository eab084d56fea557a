"""Two of the jobs in `examples/`: a dimension that keeps its history, and people who are forgotten."""

from __future__ import annotations

import datetime as dt
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support import medallion
from tests.support.readers import deltalake_rows

pytestmark = pytest.mark.spark
FIRST = dt.date(2024, 1, 1)


@pytest.fixture
def job(spark: SparkSession) -> Iterator[Any]:
    """The names of a job, by its file."""
    yield lambda file: runpy.run_path(str(file))
    anabranch.uninstall(spark)


@pytest.mark.exhaustive("tests/sql/test_merge.py::test_slowly_changing_dimensions_keep_what_was")
def test_each_customer_has_one_row_for_each_city_that_was_delivered(
    spark: SparkSession, job: Any, tmp_path: Path
) -> None:
    names = job(medallion.CUSTOMERS)
    names["main"]([str(tmp_path), "--days", "2"])
    names["main"]([str(tmp_path), "--days", "4", "--done", "2"])
    wanted = dict[int, list[tuple[str, dt.date]]]()
    for number in range(4):
        for customer, city in names["delivered"](number):
            stays = wanted.setdefault(customer, [])
            if not stays or stays[-1][0] != city:
                stays.append((city, FIRST + dt.timedelta(number)))
    found = anabranch.read(str(tmp_path / "customers"), spark=spark).collect()
    for customer, stays in wanted.items():
        ends = [*(since for _, since in stays[1:]), None]
        rows = sorted((row for row in found if row["customer"] == customer), key=lambda row: row["valid_from"])
        assert [(row["city"], row["valid_from"]) for row in rows] == stays
        assert [row["valid_to"] for row in rows] == ends
        assert [row["is_current"] for row in rows] == [end is None for end in ends]
    assert len(found) == sum(map(len, wanted.values())) > len(wanted)


def test_no_file_knows_those_who_asked_to_be_forgotten(job: Any, tmp_path: Path) -> None:
    names = job(medallion.ERASURE)
    names["main"]([str(tmp_path), "--every", "100"])
    for table in names["TABLES"]:
        there = set()
        for file in (tmp_path / table).rglob("*.parquet"):
            if "_delta_log" not in file.parts:
                there |= set(pq.read_table(file, columns=["person"])["person"].to_pylist())
        assert there == set(range(names["PEOPLE"])) - {0, 100, 200}
        assert {row["person"] for row in deltalake_rows(str(tmp_path / table))} == there
        assert anabranch.check(str(tmp_path / table), deep=True).is_clean
