"""Counts, and least and greatest values, come from the log where it says them, and are what Spark says."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import anabranch

pytestmark = pytest.mark.spark

FIRST = dt.date(2024, 1, 1)
LISTS = (
    "max(id)",
    "min(id) AS low, MAX(id) high, count(*)",
    "count(1), max(`a b`), min( day )",
    "MAX(ID)",
    "max(day) AS `a day`",
    "max(nothing), min(part), max(s), min(f)",
    "max(id) + 1",
    "max(t.id)",
    "max(DISTINCT id)",
    "max(id) FILTER (WHERE id < 3)",
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    rows = [
        {
            "id": n,
            "a b": n % 3,
            "day": dt.date(2024, 1, n + 1),
            "s": f"s{n}",
            "f": n / 2,
            "part": n % 2,
            "nothing": None,
        }
        for n in range(6)
    ]
    anabranch.append(str(tmp_path), rows, partition_by="part", properties={"delta.columnMapping.mode": "name"})
    return str(tmp_path)


@pytest.mark.whole
@pytest.mark.parametrize("deleted", [False, True])
def test_aggregates_from_the_log_are_sparks(spark: Any, path: str, deleted: bool) -> None:
    if deleted:
        anabranch.table(path).delete("id IN (0, 5)")
    anabranch.read(path, spark=spark).createOrReplaceTempView("rows_of_the_table")
    for each in LISTS:
        found, wanted = (
            anabranch.sql(spark, f"SELECT {each} FROM {source} AS t")
            for source in (f"delta.`{path}`", "rows_of_the_table")
        )
        assert found.collect() == wanted.collect(), each
        assert [(one.name, one.dataType) for one in found.schema] == [(one.name, one.dataType) for one in wanted.schema]


def test_the_greatest_value_reads_no_file(spark: Any, path: str) -> None:
    for file in Path(path).glob("**/*.parquet"):
        file.unlink()
    assert anabranch.sql(spark, f"SELECT max(id), min(part), count(*) FROM delta.`{path}`").first() == (5, 0, 6)
