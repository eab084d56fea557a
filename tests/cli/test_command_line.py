"""The command line as a whole: its version, its completion, and what it says where PySpark is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch import errors
from anabranch._cli import app
from anabranch._cli.statements import BEGINNINGS, complete_statement
from tests.support.patience import PATIENCE
from tests.support.worlds import World
from tests.test_storeys import IMPORT_WITHOUT_SPARK, ROOT


def test_it_says_its_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"anabranch {anabranch.__version__}\n")


def completed(shell: str, words: str) -> str:
    """What a shell offers behind these words."""
    said = {
        "_ANABRANCH_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    return CliRunner().invoke(app, [], env=said, prog_name="anabranch").output


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "offered"), [("anabranch his", "history"), ("anabranch sql desc", "describe history")]
)
def test_shells_complete_commands_and_statements(shell: str, words: str, offered: str) -> None:
    assert offered in completed(shell, words)


def test_statements_are_completed_in_the_case_of_what_is_typed() -> None:
    assert (complete_statement("vac"), complete_statement("VAC")) == (["vacuum"], ["VACUUM"])
    assert complete_statement("") == list(BEGINNINGS)
    assert complete_statement("nothing") == []


def test_what_is_offered_are_statements() -> None:
    from anabranch._sql.registry import ENTRIES

    known = set().union(*(each.first for each in ENTRIES)) | {"SELECT", "WITH"}
    assert {each.split()[0] for each in BEGINNINGS} <= known


def without_pyspark(code: str) -> subprocess.CompletedProcess[str]:
    block = IMPORT_WITHOUT_SPARK.replace("for module in sys.argv[1:]:\n    importlib.import_module(module)\n", code)
    return subprocess.run(
        [sys.executable, "-c", block], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


DOORS = ("anabranch.session()", "anabranch.DeltaTable", "import anabranch.tables")


@pytest.fixture(scope="module")
def told_without_pyspark(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the doors say in a process that has no PySpark, a line each, and what the doctor says there."""
    tried = "".join(
        f"try:\n    {door}\nexcept ModuleNotFoundError as error:\n"
        "    print(type(error) is anabranch.errors.MissingPySpark, error)\n"
        for door in DOORS
    )
    world = World(str(tmp_path_factory.mktemp("doctor") / "t")).create([{"id": 1}])
    doctor = f"from anabranch._cli import main\nsys.argv = ['anabranch', 'doctor', {world.path!r}, '--json']\nmain()\n"
    done = without_pyspark(f"import anabranch\n{tried}{doctor}")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_doctor_works_without_pyspark_and_says_so(told_without_pyspark: list[str]) -> None:
    checks = {each["name"]: each for each in json.loads("".join(told_without_pyspark[len(DOORS) :]))["checks"]}
    assert checks["PySpark"]["found"] == "not installed"
    assert "anabranch[spark]" in checks["PySpark"]["advice"]
    assert checks["put-if-absent"]["state"] == "ok"


@pytest.mark.slow
def test_missing_pyspark_names_the_extra(told_without_pyspark: list[str]) -> None:
    told = told_without_pyspark[: len(DOORS)]
    for line in told:
        assert line.startswith("True [MISSING_PYSPARK] anabranch.")
        assert "pip install 'anabranch[spark]'" in line


def test_another_missing_module_is_no_missing_pyspark() -> None:
    with pytest.raises(ModuleNotFoundError) as raised, errors.needs_pyspark("this"):
        raise ModuleNotFoundError("No module named 'other'", name="other")
    assert not isinstance(raised.value, errors.AnabranchError)


def test_a_mistyped_path_starts_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anabranch._api import session

    def started(*_: Any) -> Any:
        raise AssertionError("a session was started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(errors.UnknownPathOrName, match=r"poeple.*spark\.sql\.catalogImplementation"):
        session.look_up_entry("poeple", started)
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.catalogImplementation  hive\n")
    with pytest.raises(AssertionError, match="a session was started"):
        session.look_up_entry("poeple", started)
