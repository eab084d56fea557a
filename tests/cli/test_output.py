"""What the commands print is whole, and is only shown: by any terminal, any encoding, any reader of a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch.cli import app
from anabranch.protocol.schema.types import Field, Struct
from tests.support.patience import PATIENCE
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit
from tests.support.tiers import few_of
from tests.test_storeys import ROOT

MEAN = "\x1b[31mred\x1b]0;title\x07\u202e\x9b5m"
HIDDEN = "s3a://KEY:SECRET@lake/t"


EACH = """
import json, sys
from anabranch.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["anabranch", *words]
    try:
        main()
    except SystemExit as ended:
        print("ended:", ended.code, flush=True)
"""


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command line, in a process of its own."""
    return ran("-m", "anabranch.cli", *words, **environment)


def run_each(*commands: tuple[str, ...], **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Several commands in one process, each followed by a line with its exit code."""
    return ran("-c", EACH, json.dumps(commands), **environment)


def ran(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, timeout=PATIENCE, check=False)


@pytest.fixture
def mean(tmp_path: Path) -> str:
    """A table whose log was written by somebody who wishes harm."""
    named = metadata()
    named["metaData"].update(name=MEAN, description=MEAN, configuration={"note": HIDDEN})
    said = info(operation=MEAN, userName=MEAN, operationParameters={"source": HIDDEN}, userMetadata=MEAN)
    put_commit(tmp_path / "mean", 0, said, PROTOCOL, named, add(f"{MEAN}.parquet"))
    return str(tmp_path / "mean")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("history", "--wide"), ("detail",), ("files", "--wide"), ("check",), ("fsck",)])
def test_nothing_that_a_log_says_is_obeyed_by_the_terminal(words: tuple[str, ...], mean: str) -> None:
    done = CliRunner().invoke(app, [words[0], mean, *words[1:]])
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(done.output)


@pytest.mark.parametrize("command", ["history", "detail"])
def test_a_secret_in_a_location_that_a_log_holds_is_not_shown(command: str, mean: str) -> None:
    wide = ["--wide"] if command == "history" else []
    done = CliRunner().invoke(app, [command, mean, *wide])
    assert "s3a://lake/t" in done.output
    assert "SECRET" not in done.output


def test_detail_shows_the_columns(tmp_path: Path) -> None:
    fields = (Field("id", "long", nullable=False), Field("s", Struct((Field("x y", "string"),))))
    put_commit(tmp_path, 0, PROTOCOL, metadata(Struct(fields)))
    assert "id bigint NOT NULL, s struct<" in " ".join(
        CliRunner().invoke(app, ["detail", str(tmp_path)]).stdout.split()
    )
    found = json.loads(CliRunner().invoke(app, ["detail", str(tmp_path), "--json"]).stdout)["columns"]
    assert found[0] == {"name": "id", "type": "bigint", "nullable": False}


def told_of_width(columns: str, mean: str) -> tuple[bytes, bytes]:
    """What several commands print in one process where the shell says this width."""
    done = run_each(("history", mean), ("--help",), ("history", f"{mean}/none"), COLUMNS=columns)
    assert done.stdout.count(b"ended:") == 3, done.stderr
    return done.stdout, done.stderr


@pytest.mark.slow
def test_a_width_that_no_line_has_is_not_taken(mean: str) -> None:
    usual, error = told_of_width("80", mean)
    assert b"red" in usual
    assert b"Usage" in usual
    assert b"DELTA_TABLE_NOT_FOUND" in error
    for columns in few_of(["0", "00", "999999999999"], 1):
        assert told_of_width(columns, mean) == (usual, error)


@pytest.mark.slow
def test_what_an_encoding_lacks_is_spelled_out(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, info(operation="日本"), PROTOCOL, metadata())
    words = ("history", str(tmp_path))
    done = run_each(words, (*words, "--json"), PYTHONIOENCODING="latin-1")
    table, as_json, _ = done.stdout.split(b"ended: 0\n")
    assert b"\\u65e5\\u672c" in table
    assert json.loads(as_json)[0]["operation"] == "日本"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [(), ("--json",)])
@pytest.mark.slow
def test_output_that_cannot_be_written_is_one_sentence(words: tuple[str, ...], mean: str) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "anabranch.cli", "history", mean, *words]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=env, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert b"No space left" in done.stderr


@pytest.mark.slow
def test_standard_output_of_a_vacuum_holds_no_progress(mean: str) -> None:
    done = run("vacuum", mean, "--retain-hours", "0")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--no-check" in done.stderr


VALUES = "date'2026-01-31' d, 1.50BD p, X'00ff' b, array(date'2026-01-31') a, double('NaN') n, map(1, 'x') m"
AS_JSON = {"d": "2026-01-31", "p": "1.50", "b": "AP8=", "a": ["2026-01-31"], "n": "NaN", "m": {"1": "x"}}


@pytest.mark.spark
def test_sql_prints_values_of_any_type(spark: SparkSession) -> None:
    done = CliRunner().invoke(app, ["sql", f"SELECT {VALUES}", "--json"])
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout) == [AS_JSON]
    done = CliRunner().invoke(app, ["sql", f"SELECT {VALUES}", "--csv"])
    assert done.stdout.splitlines()[1] == '2026-01-31,1.50,AP8=,"[""2026-01-31""]",NaN,"{""1"": ""x""}"'


@pytest.mark.spark
def test_columns_of_one_name_are_refused_where_json_would_lose_one(spark: SparkSession) -> None:
    done = CliRunner().invoke(app, ["sql", "SELECT 1 AS x, 2 AS x", "--json"])
    assert isinstance(done.exception, anabranch.errors.InvalidOption)
    assert done.stdout == ""
    assert CliRunner().invoke(app, ["sql", "SELECT 1 AS x, 2 AS x", "--csv"]).stdout == "x,x\n1,2\n"
