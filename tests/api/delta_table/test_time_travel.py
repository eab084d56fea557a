"""Time travel on real Spark: by version, by timestamp, behind the @ of a path."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._protocol.timestamps import milliseconds
from tests.support.golden import KERNEL, kernel_table
from tests.support.worlds import World
from tests.test_golden import bag

pytestmark = pytest.mark.spark

UTC = dt.UTC
TIMES = [dt.datetime(2024, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)]


@pytest.fixture
def sql(spark: SparkSession) -> Any:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    yield anabranch.install(spark)
    spark.conf.set("spark.sql.session.timeZone", before)


def written_at(table: str | Path, *moments: dt.datetime) -> str:
    for version, moment in enumerate(moments):
        nanoseconds = round(moment.timestamp() * 1000) * 1_000_000
        os.utime(Path(table) / commit_name(version), ns=(nanoseconds, nanoseconds))
    return str(table)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Versions 0, 1, 2 with one, two, three rows, at noon (UTC) of the first three days of 2024."""
    world = World(str(tmp_path / "table")).create([{"id": 0}])
    world.append({"id": 1})
    world.append({"id": 2})
    return written_at(world.path, *TIMES)


def counted(spark: SparkSession, path: str, **options: Any) -> int:
    return spark.read.format("delta").options(**options).load(path).count()


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ("2024-01-02", 1),
        ("2024-01-03", 2),
        ("2024-01-02 12:59:59", 1),
        ("2024-01-02 13:00:00", 2),
        ("2024-01-02T12:00:00Z", 2),
        (dt.date(2024, 1, 3), 2),
        (dt.datetime(2024, 1, 2, 13), 2),
        (TIMES[1], 2),
        (TIMES[2], 3),
    ],
)
def test_a_timestamp_means_the_version_that_was_newest_then(
    sql: SparkSession, path: str, given: Any, rows: int
) -> None:
    assert counted(sql, path, timestampAsOf=given) == rows
    assert anabranch.read(path, timestamp=given, spark=sql).count() == rows


def test_the_at_of_a_path_names_a_version_or_a_moment_in_the_sessions_zone(sql: SparkSession, path: str) -> None:
    assert [counted(sql, f"{path}@{at}") for at in ("v0", "V1", "20240102130000000")] == [1, 2, 2]
    assert counted(sql, f"{path}@20240102125959999") == 1
    assert anabranch.read(f"{path}@v1", spark=sql).count() == 2
    assert sql.read.load(f"{path}@v1", format="delta").count() == 2


def test_a_table_at_exactly_that_path_comes_first(sql: SparkSession, path: str, tmp_path: Path) -> None:
    shutil.copytree(path, f"{path}@v0")
    assert counted(sql, f"{path}@v0") == 3


@pytest.mark.parametrize("given", ["2024-01-01 12:59:59", "2023-01-01"])
def test_before_the_first_version_is_refused(sql: SparkSession, path: str, given: str) -> None:
    with pytest.raises(errors.TimestampBeforeEarliestCommit) as refused:
        counted(sql, path, timestampAsOf=given)
    assert refused.value.getCondition() == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    assert "2024-01-01 12:00:00.000 UTC" in str(refused.value)


def test_after_the_newest_version_is_refused(sql: SparkSession, path: str) -> None:
    with pytest.raises(errors.TimestampAfterLatestCommit) as refused:
        anabranch.read(path, timestamp="2024-01-03 13:00:00.001", spark=sql)
    assert refused.value.getCondition() == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    assert refused.value.latest_version == 2


@pytest.mark.parametrize("suffix", ["", "@v1"])
def test_a_version_is_named_once(sql: SparkSession, path: str, suffix: str) -> None:
    named = {} if suffix else {"versionAsOf": 1}
    with pytest.raises(errors.AmbiguousTimeTravel):
        counted(sql, f"{path}{suffix}", timestampAsOf="2024-01-02", **named)
    with pytest.raises(errors.AmbiguousTimeTravel):
        anabranch.read(path, version=1, timestamp="2024-01-02", spark=sql)
    with pytest.raises(errors.AmbiguousTimeTravel):
        counted(sql, f"{path}@v1", versionAsOf=1)


def test_what_is_no_timestamp_is_refused(sql: SparkSession, path: str) -> None:
    for given in ("yesterday", "1704200000"):
        with pytest.raises(errors.InvalidTimestamp):
            counted(sql, path, timestampAsOf=given)
    with pytest.raises(errors.InvalidTimestamp):
        anabranch.read(path, timestamp=1704200000, spark=sql)
    with pytest.raises(errors.InvalidTimestamp):
        counted(sql, f"{path}@20241399000000000")
    with pytest.raises(errors.NotATable):
        counted(sql, f"{path}-not@v1")


def test_a_moment_is_read_as_spark_reads_it(sql: SparkSession) -> None:
    texts = ["2024", "2024-3", "2024-01-31", " 2024-1-3 ", "2024-01-31 12", "2024-01-31 12:3", "2024-01-31T12:30:5.1"]
    texts += ["2024-01-31 12:30:05.123456", "2024-01-31 12:30:05+0130", "2024-01-31 12:30:05 UTC", "0001-01-01"]
    texts += ["2024-01-31 12:30:05 Europe/London", "2024-03-31 02:30:00", "2024-10-27 02:30:00", "1850-01-01"]
    rows = sql.createDataFrame([(text,) for text in texts], "text string")
    read = rows.selectExpr("text", "unix_millis(CAST(text AS TIMESTAMP)) AS moment").collect()
    assert {row.text: milliseconds(row.text, "Europe/Paris") for row in read} == {row.text: row.moment for row in read}


# -- golden tables -----------------------------------------------------------------------------------------------------

STARTS = ("time-travel-start", "time-travel-start-start20", "time-travel-start-start20-start40")


def golden(folder: Path, name: str) -> tuple[str, list[int]]:
    """A copy of a golden table whose commit files were written when their commits say, and those times."""
    shutil.copytree(kernel_table(name), folder / name)
    stated = [row["timestamp"] for row in reversed(said(folder / name))]
    moments = [dt.datetime.fromtimestamp(each / 1000, UTC) for each in stated]
    return written_at(folder / name, *moments), stated


def said(table: Path) -> list[dict[str, Any]]:
    log = World(str(table)).log
    commits = [log.read(version) for version in range(log.snapshot().version, -1, -1)]
    return [dict(commit.head.info) for commit in commits if commit is not None]


@pytest.mark.parametrize("name", STARTS)
def test_a_golden_table_reads_as_expected_at_each_version_and_moment(
    sql: SparkSession, tmp_path: Path, name: str
) -> None:
    path, moments = golden(tmp_path, name)
    for version, moment in enumerate(moments):
        expected = bag(expected_rows_of(sql, STARTS[version]))
        just = dt.datetime.fromtimestamp(moment / 1000, UTC)
        assert bag(anabranch.read(path, version=version, spark=sql)) == expected
        assert bag(anabranch.read(path, timestamp=just, spark=sql)) == expected
        assert bag(sql.read.format("delta").option("timestampAsOf", just).load(path)) == expected


@pytest.mark.parametrize("kind", ["partition", "schema"])
def test_a_golden_table_whose_layout_changed_reads_as_expected_before_and_after(
    sql: SparkSession, tmp_path: Path, kind: str
) -> None:
    before, after = f"time-travel-{kind}-changes-a", f"time-travel-{kind}-changes-b"
    path, moments = golden(tmp_path, after)
    for version, name in enumerate((before, after)):
        expected = expected_rows_of(sql, name)
        just = dt.datetime.fromtimestamp(moments[version] / 1000, UTC)
        found = anabranch.read(path, timestamp=just, spark=sql)
        assert sorted(found.columns) == sorted(expected.columns)
        assert bag(found) == bag(expected) == bag(anabranch.read(path, version=version, spark=sql))


def expected_rows_of(spark: SparkSession, name: str) -> Any:
    return spark.read.parquet(str(KERNEL / name / "expected"))
