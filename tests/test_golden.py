"""Golden tables, which we did not write, read back equal to what is expected of them.

Those of DAT are read version by version, those of the Delta kernel at their newest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import anabranch
from tests.support.golden import DAT, KERNEL, MISSING

pytestmark = pytest.mark.spark

FLAWS = {"iceberg_compat_v1": ["columnMapping is used but not listed"]}
"""What the check rightly finds wrong: the last protocol of that table names no reader features."""

ZONES = {"data-reader-partition-values": "America/Los_Angeles"}


def versions() -> list[tuple[str, str]]:
    if not DAT.is_dir():
        return [("", MISSING)]
    return [(t.name, v.name) for t in sorted(DAT.iterdir()) for v in sorted((t / "expected").iterdir())]


LARGE = ("parquet-decimal-dictionaries", "parquet-decimal-dictionaries-v2")
"""Tables of a million rows, of plain columns."""


def in_order(frame: DataFrame) -> pa.Table:
    names = sorted(frame.columns)
    return frame.select(names).toArrow().sort_by([(name, "ascending") for name in names])


def expected_rows(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder / "table_content"))


def bag(frame: DataFrame) -> list[str]:
    """The rows without their order, as text that tells NULL, types and nested values apart."""
    names = sorted(frame.columns)
    return sorted(repr([_plain(row[name]) for name in names]) for row in frame.collect())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((key, _plain(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize(("name", "version"), versions())
def test_a_golden_table_reads_as_expected(spark: SparkSession, name: str, version: str) -> None:
    if not name:
        pytest.skip(version)
    number = None if version == "latest" else int(version[1:])
    found = anabranch.read(DAT / name / "delta", version=number, spark=spark)
    expected = expected_rows(spark, DAT / name / "expected" / version)
    assert sorted(found.columns) == sorted(expected.columns)
    assert bag(found) == bag(expected)


def test_every_golden_table_passes_the_check() -> None:
    if not DAT.is_dir():
        pytest.skip(MISSING)
    for table in sorted(DAT.iterdir()):
        report = anabranch.check(table / "delta", deep=True)
        assert [each.problem for each in report.findings] == FLAWS.get(table.name, []), str(report)


def kernel_tables() -> list[str]:
    return sorted(each.name for each in KERNEL.iterdir()) if KERNEL.is_dir() else [""]


@pytest.fixture
def zone_of_its_writer(spark: SparkSession, name: str) -> Iterator[None]:
    """Partition values of timestamps may name no time zone; then they are in the session's, whoever reads them."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONES.get(name, before))
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.usefixtures("zone_of_its_writer")
@pytest.mark.parametrize("name", kernel_tables())
def test_a_table_of_the_kernels_reads_as_expected(spark: SparkSession, name: str) -> None:
    if not name:
        pytest.skip(MISSING)
    found = anabranch.read(KERNEL / name / "delta", spark=spark)
    expected = spark.read.parquet(str(KERNEL / name / "expected"))
    assert sorted(found.columns) == sorted(expected.columns)
    if name in LARGE:
        assert in_order(found).equals(in_order(expected))
    else:
        assert bag(found) == bag(expected)


@pytest.mark.parametrize("name", kernel_tables())
def test_a_table_of_the_kernels_passes_the_check(name: str) -> None:
    if not name:
        pytest.skip(MISSING)
    report = anabranch.check(KERNEL / name / "delta", deep=True)
    assert report.is_clean, str(report)
