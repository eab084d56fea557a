"""What the commands print is whole, and is only shown: by any terminal, any encoding, any reader of a pipe."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app
from anabranch._cli.output import print_csv, print_json
from anabranch._protocol.schema.types import Field, Struct
from tests.support.patience import PATIENCE
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit
from tests.test_storeys import ROOT

MEAN = "\x1b[31mred\x1b]0;title\x07\u202e\x9b5m"
HIDDEN = "s3a://KEY:SECRET@lake/t"


EACH = """
import json, sys
from anabranch._cli import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["anabranch", *words]
    try:
        main()
    except SystemExit as ended:
        for stream in (sys.stdout, sys.stderr):
            print("ended:", ended.code, file=stream, flush=True)
"""


def run_each(*commands: tuple[str, ...], **environment: str) -> list[Printed]:
    """What each of several commands prints in one process."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    words = [sys.executable, "-c", EACH, json.dumps(commands)]
    done = subprocess.run(words, env=env, capture_output=True, timeout=PATIENCE, check=False)
    streams = (re.split(rb"ended: (\d+)\n", stream) for stream in (done.stdout, done.stderr))
    outputs, errors = (list(zip(parts[0::2], parts[1::2], strict=False)) for parts in streams)
    assert len(outputs) == len(commands), done.stderr
    return [Printed(int(code), out, error) for (out, code), (error, _) in zip(outputs, errors, strict=True)]


class Printed(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: bytes
    error: bytes


@pytest.fixture(scope="module")
def mean(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table whose log was written by somebody who wishes harm."""
    folder = tmp_path_factory.mktemp("mean")
    named = metadata()
    named["metaData"].update(name=MEAN, description=MEAN, configuration={"note": HIDDEN})
    said = info(operation=MEAN, userName=MEAN, operationParameters={"source": HIDDEN}, userMetadata=MEAN)
    put_commit(folder / "mean", 0, said, PROTOCOL, named, add(f"{MEAN}.parquet"))
    return str(folder / "mean")


@pytest.fixture(scope="module")
def printed(mean: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Printed]:
    """What commands print in a process whose shell says a width that no line has, and a small encoding."""
    far = str(tmp_path_factory.mktemp("far"))
    put_commit(Path(far), 0, info(operation="日本"), PROTOCOL, metadata())
    commands = {
        "history": ("history", mean),
        "help": ("--help",),
        "no table": ("history", f"{mean}/none"),
        "history of far": ("history", far),
        "history of far in JSON": ("history", far, "--json"),
        "vacuum": ("vacuum", mean, "--retain-hours", "0"),
    }
    return dict(zip(commands, run_each(*commands.values(), COLUMNS="0", PYTHONIOENCODING="latin-1"), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("words", [("history", "--wide"), ("detail",), ("files", "--wide"), ("check",), ("fsck",)])
def test_nothing_that_a_log_says_is_obeyed_by_the_terminal(words: tuple[str, ...], mean: str) -> None:
    done = CliRunner().invoke(app, [words[0], mean, *words[1:]])
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(done.output)


def test_json_obeys_no_terminal_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([MEAN])
    said = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(said)
    assert json.loads(said) == [MEAN]


def test_a_line_of_csv_is_one_line_to_its_readers(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [["a\rb", "c\nd", 'e"f', "g,h", "\u00e9", ""], [""], ["", ""]]
    print_csv(lines)
    said = capsys.readouterr().out
    assert said == '"a\rb","c\nd","e""f","g,h",\u00e9,\n""\n,\n'
    assert list(csv.reader(io.StringIO(said, newline=""))) == lines


@pytest.mark.parametrize("is_terminal", [True, False])
def test_csv_is_exact_but_on_a_terminal(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_csv([["\x1b[31m"]])
    assert capsys.readouterr().out == ("\\x1b[31m\n" if is_terminal else "\x1b[31m\n")


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


@pytest.mark.slow
def test_a_width_that_no_line_has_is_not_taken(printed: dict[str, Printed]) -> None:
    assert [printed[each].code for each in ("history", "help", "no table")] == [0, 0, 2]
    assert b"readVersion" in printed["history"].out
    assert b"Usage" in printed["help"].out
    assert b"DELTA_TABLE_NOT_FOUND" in printed["no table"].error


@pytest.mark.exhaustive("tests/cli/test_output.py::test_a_width_that_no_line_has_is_not_taken")
@pytest.mark.slow
@pytest.mark.parametrize("columns", ["0", "00", "999999999999"])
def test_instead_of_it_the_usual_width_is_taken(columns: str, mean: str) -> None:
    commands = ("history", mean), ("--help",), ("history", f"{mean}/none")
    assert run_each(*commands, COLUMNS=columns) == run_each(*commands, COLUMNS="80")


@pytest.mark.slow
def test_what_an_encoding_lacks_is_spelled_out(printed: dict[str, Printed]) -> None:
    assert b"\\u65e5\\u672c" in printed["history of far"].out
    assert json.loads(printed["history of far in JSON"].out)[0]["operation"] == "日本"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [(), ("--json",)])
@pytest.mark.slow
def test_output_that_cannot_be_written_is_one_sentence(words: tuple[str, ...], mean: str) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "anabranch._cli", "history", mean, *words]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=env, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert b"No space left" in done.stderr


@pytest.mark.slow
def test_standard_output_of_a_vacuum_holds_no_progress(printed: dict[str, Printed]) -> None:
    code, out, error = printed["vacuum"]
    assert (code, out) == (2, b"")
    assert b"--no-check" in error


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
