"""The example jobs on real delta-spark, unchanged but for one line: the same tables, read by either."""

from __future__ import annotations

import os
import runpy
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support import medallion
from tests.support.delta_spark import DeltaSpark
from tests.support.readers import same_rows
from tools import interop

pytestmark = [pytest.mark.interop, pytest.mark.spark]


def on_delta_spark(job: Path, tmp_path: Path, *arguments: str) -> Path:
    """What a job leaves behind on delta-spark, run as a script."""
    folder, script = tmp_path / "theirs", tmp_path / job.name
    script.write_text(medallion.for_delta_spark(job), encoding="utf-8")
    jars = sorted(map(str, interop.jars().glob("*.jar")))  # Delta's Python package is in one of them
    settings = [
        *("spark.driver.memory=1g", "spark.ui.enabled=false", "spark.ui.showConsoleProgress=false"),
        # Many small jobs, never a long one.
        *("spark.sql.shuffle.partitions=1", "spark.databricks.delta.snapshotPartitions=1"),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism=1",  # else a VACUUM lists by 10,000 tasks
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    ]
    submit = ["--master", "local[1]", "--jars", ",".join(jars), *(f"--conf {each}" for each in settings)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(medallion.EXAMPLES), *jars]),
        "PYSPARK_PYTHON": str(interop.python()),
        "PYSPARK_SUBMIT_ARGS": " ".join([*submit, "pyspark-shell"]),
    }
    command = [str(interop.python()), str(script), str(folder), *arguments]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture
def by_theirs(delta_spark: DeltaSpark, tmp_path: Path) -> Path:
    """What the daily job leaves behind on delta-spark."""
    return on_delta_spark(medallion.JOB, tmp_path, "--days", "2")


@pytest.fixture
def by_ours(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """What it leaves behind on ours."""
    folder = tmp_path / "ours"
    runpy.run_path(str(medallion.JOB))["main"]([str(folder), "--days", "2"])
    yield folder
    for layer in ("bronze", "silver", "gold"):
        spark.sql(f"DROP SCHEMA {layer} CASCADE")


def test_the_job_leaves_the_same_tables_behind(
    spark: SparkSession, delta_spark: DeltaSpark, by_theirs: Path, by_ours: Path
) -> None:
    for table in medallion.TABLES:
        theirs = delta_spark.rows(str(by_theirs / table))
        assert theirs
        assert same_rows(theirs, delta_spark.rows(str(by_ours / table)))
        assert same_rows(
            theirs, [row.asDict() for row in anabranch.read(str(by_theirs / table), spark=spark).collect()]
        )
        assert anabranch.check(str(by_theirs / table), deep=True).is_clean


def test_the_stream_leaves_the_same_tables_behind(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    try:
        runpy.run_path(str(medallion.STREAM))["main"]([str(ours), "--deliveries", "2"])
    finally:
        anabranch.uninstall(spark)
    theirs = on_delta_spark(medallion.STREAM, tmp_path, "--deliveries", "2")
    for table in medallion.STREAMED:
        found = delta_spark.rows(str(theirs / table))
        assert found
        assert same_rows(found, delta_spark.rows(str(ours / table)))
        assert anabranch.check(str(ours / table), deep=True).is_clean


@pytest.mark.parametrize(
    ("job", "tables"), [(medallion.CUSTOMERS, ["customers"]), (medallion.ERASURE, ["people", "events", "requests"])]
)
def test_the_other_jobs_leave_the_same_tables_behind(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, job: Path, tables: list[str]
) -> None:
    ours = tmp_path / "ours"
    try:
        runpy.run_path(str(job))["main"]([str(ours)])
    finally:
        anabranch.uninstall(spark)
    theirs = on_delta_spark(job, tmp_path)
    for table in tables:
        found = delta_spark.rows(str(theirs / table))
        assert found
        assert same_rows(found, delta_spark.rows(str(ours / table)))
        assert same_rows(found, [row.asDict() for row in anabranch.read(str(theirs / table), spark=spark).collect()])
        assert anabranch.check(str(ours / table), deep=True).is_clean
