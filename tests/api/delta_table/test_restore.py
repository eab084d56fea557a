"""The doors of RESTORE and GENERATE on Spark, and on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch import errors
from anabranch._cli import app


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}], partition_by=["p"])
    anabranch.append(path, [{"id": 3, "p": "b"}])
    return path


def set_time(path: str, version: int, seconds: int) -> None:
    os.utime(Path(path, f"_delta_log/{version:020d}.json"), (seconds, seconds))


@pytest.mark.spark
def test_a_table_goes_back_to_a_version_and_says_what_it_did_in_delta_sparks_columns(spark: Any, path: str) -> None:
    table = anabranch.DeltaTable.forPath(anabranch.install(spark), path)
    table.delete("id = 1")
    done = table.restoreToVersion(0)
    assert [(each.name, each.dataType.simpleString()) for each in done.schema] == [
        ("table_size_after_restore", "bigint"),
        ("num_of_files_after_restore", "bigint"),
        ("num_removed_files", "bigint"),
        ("num_restored_files", "bigint"),
        ("removed_files_size", "bigint"),
        ("restored_files_size", "bigint"),
    ]
    [row] = done.collect()
    assert (row["num_of_files_after_restore"], row["num_removed_files"], row["num_restored_files"]) == (2, 1, 1)
    assert done.count() == 1, "to look twice is not to restore twice"
    assert sorted(each["id"] for each in table.toDF().collect()) == [1, 2]
    assert anabranch.history(path)[0]["version"] == 3


@pytest.mark.spark
def test_a_moment_without_a_zone_is_one_of_the_session(spark: Any, path: str) -> None:
    set_time(path, 0, 1_700_000_000)  # 2023-11-14 22:13:20 UTC
    set_time(path, 1, 1_700_010_000)  # 2023-11-15 01:00:00 UTC
    table = anabranch.DeltaTable.forPath(anabranch.install(spark), path)
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        table.restoreToTimestamp("2023-11-15 09:00:00")  # midnight in UTC
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert sorted(each["id"] for each in table.toDF().collect()) == [1, 2]


@pytest.mark.spark
def test_the_setting_of_spark_that_ignores_missing_files_counts(spark: Any, path: str) -> None:
    table = anabranch.DeltaTable.forPath(anabranch.install(spark), path)
    [lost] = [each for each in anabranch.files(path, version=0)["path"].to_pylist() if "p=a" in each]
    table.delete()
    os.unlink(Path(path, lost))
    with pytest.raises(errors.RestoreFilesMissing):
        table.restoreToVersion(0)
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        table.restoreToVersion(0)
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert [each["id"] for each in table.toDF().collect()] == [2]


@pytest.mark.spark
def test_what_is_no_version_no_moment_and_no_mode_is_refused(spark: Any, path: str) -> None:
    table = anabranch.DeltaTable.forPath(anabranch.install(spark), path)
    for version in ("0", True, None, 0.0):
        with pytest.raises(errors.InvalidOption):
            table.restoreToVersion(version)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidOption):
        table.restoreToTimestamp(5)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidOption):
        table.generate("manifest")
    assert len(anabranch.history(path)) == 2


@pytest.mark.spark
def test_spark_reads_what_the_manifests_list(spark: Any, path: str) -> None:
    table = anabranch.DeltaTable.forPath(anabranch.install(spark), path)
    table.generate("symlink_format_manifest")
    manifests = sorted(Path(path, "_symlink_format_manifest").rglob("manifest"))
    listed = [line for each in manifests for line in each.read_text().splitlines()]
    rows = spark.read.parquet(*listed).collect()
    assert sorted(each["id"] for each in rows) == [1, 2, 3]


def test_the_command_line_restores(path: str) -> None:
    done = CliRunner().invoke(app, ["restore", path, "--version", "0", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["restoredTo"], found["version"], found["num_removed_files"], found["missing"]) == (0, 2, 1, [])
    assert anabranch.files(path).num_rows == 2
    assert "num_restored_files" in CliRunner().invoke(app, ["restore", path, "--version", "1"]).output


def test_the_command_line_refuses_two_versions(path: str) -> None:
    refused = CliRunner().invoke(app, ["restore", path, "--version", "0", "--timestamp", "2024-01-31"])
    assert isinstance(refused.exception, errors.AmbiguousTimeTravel)
