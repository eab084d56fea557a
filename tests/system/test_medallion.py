"""The jobs in `examples/`: written for delta-spark, but for one line. The daily one gives what it should."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support import medallion


@pytest.fixture
def job(spark: SparkSession) -> Iterator[Callable[..., None]]:
    """The job; each call has a catalog of its own, as a new session has."""

    def run(*arguments: Any) -> None:
        runpy.run_path(str(medallion.JOB))["main"]([*map(str, arguments)])

    yield run
    forget(spark)
    anabranch.uninstall(spark)


def forget(spark: SparkSession) -> None:
    for layer in ("bronze", "silver", "gold"):
        spark.sql(f"DROP SCHEMA IF EXISTS {layer} CASCADE")


def deliveries(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for file in sorted((folder / "landing").iterdir()):
        yield file.stem, [json.loads(line) for line in file.read_text().splitlines()]


def rows(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    return [row.asDict() for row in anabranch.read(str(path), spark=spark).collect()]


@pytest.mark.exhaustive(
    "tests/api/dataframe/test_install.py::test_a_job_of_delta_runs_as_it_is",
    "tests/sql/test_merge.py::test_a_feed_of_changes_updates_deletes_and_inserts",
)
@pytest.mark.spark
@pytest.mark.slow
def test_the_job_gives_what_its_deliveries_say_also_when_it_goes_on_the_next_day(
    spark: SparkSession, job: Callable[..., None], tmp_path: Path
) -> None:
    job(tmp_path, "--days", 1)
    forget(spark)
    job(tmp_path, "--days", 2, "--done", 1)
    orders: dict[int, dict[str, Any]] = {}
    evenings: Counter[tuple[str, str]] = Counter()
    for day, changes in deliveries(tmp_path):
        orders |= {each["order_id"]: each for each in sorted(changes, key=lambda each: each["seq"])}
        evenings += Counter((day, each["status"]) for each in orders.values() if each["status"] != "cancelled")
    left = {order: each for order, each in orders.items() if each["status"] != "cancelled"}
    revenue: Counter[tuple[str, str]] = Counter()
    for each in left.values():
        revenue[each["ordered_on"], each["country"]] += Decimal(each["amount"])  # type: ignore[assignment]

    tables = {name: rows(spark, tmp_path / name) for name in medallion.TABLES}
    assert len(tables["bronze/changes"]) == sum(len(changes) for _, changes in deliveries(tmp_path))
    assert {row["order_id"]: row["status"] for row in tables["silver/orders"]} == {
        order: each["status"] for order, each in left.items()
    }
    assert {(str(row["ordered_on"]), row["country"]): row["revenue"] for row in tables["gold/revenue"]} == revenue
    assert {(str(row["day"]), row["status"]): row["orders"] for row in tables["gold/evenings"]} == evenings
    for name in medallion.TABLES:
        assert anabranch.check(str(tmp_path / name), deep=True).is_clean


@pytest.mark.parametrize("job", medallion.JOBS, ids=lambda job: job.name)
def test_a_job_for_delta_spark_differs_in_one_line(job: Path) -> None:
    ours, theirs = job.read_text(encoding="utf-8").splitlines(), medallion.for_delta_spark(job).splitlines()
    assert [(mine, other) for mine, other in zip(ours, theirs, strict=True) if mine != other] == [
        (medallion.OUR_LINE, medallion.THEIR_LINE)
    ]
