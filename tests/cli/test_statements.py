"""Paths in the statements of the command line are those that its other commands take."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app
from anabranch._cli.statements import with_whole_paths


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table ``t`` in it."""
    monkeypatch.chdir(tmp_path)
    anabranch.append(str(tmp_path / "t"), [{"id": 7}])
    return tmp_path


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("SELECT * FROM delta.`./t`", "SELECT * FROM delta.`@/t`"),
        ("select t.id from Delta . `t` t", "select t.id from Delta . `@/t` t"),
        ("SELECT `delta`.`./t`.id FROM `delta`.`./t`", "SELECT `delta`.`@/t`.id FROM `delta`.`@/t`"),
        ("DELETE FROM anabranch.`a/../t` -- delta.`./t`", "DELETE FROM anabranch.`@/t` -- delta.`./t`"),
        ("CREATE TABLE delta.`new/a``b` (id INT)", "CREATE TABLE delta.`@/new/a``b` (id INT)"),
        ("SELECT * FROM delta.`./t@v0`", "SELECT * FROM delta.`@/t@v0`"),
        ("SELECT * FROM spark_catalog.delta.`./é t`", "SELECT * FROM spark_catalog.delta.`@/é t`"),
    ],
)
def test_a_relative_path_begins_in_the_current_folder(folder: Path, written: str, run: str) -> None:
    assert with_whole_paths(written) == run.replace("@/", f"{folder}/")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM delta.`/data/t`",
        "SELECT * FROM delta.`s3://bucket/t`",
        "SELECT * FROM delta.`file:/data/t`",
        "SELECT * FROM delta.`none`",
        "SELECT * FROM delta.t",
        "DELETE FROM delta.``",
        "SELECT * FROM parquet.`./t`",
        "SELECT 'delta.`./t`'",
        "SELECT 1",
        "",
    ],
)
def test_every_other_text_is_run_as_it_is(folder: Path, text: str) -> None:
    assert with_whole_paths(text) == text


@pytest.mark.spark
@pytest.mark.usefixtures("folder")
def test_statements_take_the_paths_of_the_other_commands(spark: SparkSession) -> None:
    text = "INSERT INTO delta.`./t` VALUES (8); SELECT sum(id) AS s FROM delta.`t`"
    done = CliRunner().invoke(app, ["sql", text, "--csv"])
    assert (done.exit_code, done.stdout.splitlines()[-2:]) == (0, ["s", "15"]), done.exception
