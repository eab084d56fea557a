"""The command line on tables with names: every command takes one where it takes a path, and a path needs no Spark."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch import errors
from anabranch._cli import app


def said(*words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def refused(*words: str) -> BaseException | None:
    return CliRunner().invoke(app, list(words)).exception


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    found = f"c_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {found}")
    yield found
    anabranch.uninstall(spark)
    spark.sql(f"DROP DATABASE {found} CASCADE")


@pytest.mark.spark
def test_every_command_takes_a_name(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    name = f"{schema}.t"
    anabranch.sql(
        spark, f"CREATE TABLE {name} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = false)"
    )
    for n in range(2):
        anabranch.append(name, [{"id": n}], spark=spark)
    anabranch.sql(spark, f"ALTER TABLE {name} ADD COLUMN x INT")
    assert [each["version"] for each in said("history", name)] == [3, 2, 1, 0]
    assert said("detail", name)["name"] == f"spark_catalog.{name}"
    assert said("check", f"spark_catalog.`{schema}`.t")["clean"]
    assert len(said("files", name, "--where", "id = 1")) == 1
    assert said("optimize", name)["version"] == 4
    assert said("reorg", name)["version"] is None
    assert said("vacuum", name, "--dry-run")["files"] == []
    assert said("fsck", name)["missing"] == []
    assert said("generate", name)["version"] == 4
    assert said("clone", name, str(tmp_path / "copy"))["version"] == 0
    assert said("sql", f"SELECT count(*) AS n FROM {name}") == [{"n": 2}]
    assert said("restore", name, "--version", "2")["version"] == 5
    unknown = refused("history", f"{schema}.none")
    assert isinstance(unknown, errors.UnknownPathOrName)
    assert "spark.sql.catalogImplementation" in unknown.message
    assert (unknown.getCondition(), unknown.getSqlState()) == ("UNKNOWN_PATH_OR_NAME", "42P01")


@pytest.mark.slow
def test_a_path_counts_first_and_is_no_reason_to_start_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "anabranch._api.session", None)  # as where PySpark is not installed
    anabranch.append("t", [{"id": 1}])
    (tmp_path / "empty").mkdir()
    for table in ("t", "./t", str(tmp_path / "t"), f"file://{tmp_path}/t"):
        assert [each["version"] for each in said("history", table)] == [0]
    for table in ("empty", "./none", str(tmp_path / "none")):
        assert isinstance(refused("detail", table), errors.NotATable)
    unknown = refused("check", "db.none")
    assert isinstance(unknown, errors.UnknownPathOrName)
    assert "not installed" in unknown.message
