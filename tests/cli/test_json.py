"""What each command prints with ``--json`` has the fields and types that the page of the command line states."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch._cli import app
from anabranch.testing import matrix
from anabranch.testing.matrix import Cell, Matrix, Run
from tests.test_docs import DOCS, rows_of_table

PAGE = DOCS / "cli.md"
KINDS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "list of numbers": lambda value: isinstance(value, list) and all(map(KINDS["number"], value)),
    "list of lists": lambda value: isinstance(value, list) and all(isinstance(each, list) for each in value),
    "list of text": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "list of objects": lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value),
    "map of text": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
    "map of numbers": lambda value: isinstance(value, dict) and all(map(KINDS["number"], value.values())),
}


def stated(command: str) -> dict[str, str]:
    """The types by the paths of the fields."""
    return {cells[0]: cells[1] for cells in rows_of_table(PAGE, f"field of {command}")}


def faults(value: dict[str, Any], types: dict[str, str], prefix: str = "") -> list[str]:
    """Where an object is not as it is stated."""
    inside = {path.removeprefix(prefix): kind for path, kind in types.items() if path.startswith(prefix)}
    own = {name: kind for name, kind in inside.items() if "." not in name}
    found = [f"{prefix}{name}" for name in own.keys() ^ value.keys()]
    for name in own.keys() & value.keys():
        if not any(KINDS[kind](value[name]) for kind in own[name].split(" or ")):
            found.append(f"{prefix}{name} is {value[name]!r}")
        if own[name] == "list of objects":
            found += [fault for each in value[name] for fault in faults(each, types, f"{prefix}{name}[].")]
        elif own[name].startswith("object") and isinstance(value[name], dict):
            found += faults(value[name], types, f"{prefix}{name}.")
    return found


def printed(*words: str, exit_code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == exit_code, (done.output, done.exception)
    return json.loads(done.stdout)


def check_as_stated(command: str, value: Any) -> None:
    """Raises AssertionError unless every object that a command prints is as the page says."""
    assert stated(command)
    is_list = next(row[1] for row in rows_of_table(PAGE, "command") if command in row[0].split("]")[0]).startswith(
        "a list"
    )
    assert isinstance(value, list) == is_list
    objects = value if is_list else [value]
    assert objects
    assert not [fault for each in objects for fault in faults(each, stated(command))]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    anabranch.append(path, {"id": [1, 2], "day": ["a", "b"]}, partition_by="day")
    anabranch.append(path, {"id": [3], "day": ["a"]})
    return path


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    path = str(tmp_path / "damaged")
    anabranch.append(path, {"id": [1]})
    os.unlink(f"{path}/{anabranch.files(path)['path'][0].as_py()}")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["history", "timeline", "detail", "check", "files", "fsck", "generate", "vacuum", "restore"]
)
def test_a_command_on_a_table_prints_what_is_stated(command: str, table: str) -> None:
    words = ["--version", "0"] if command == "restore" else []
    check_as_stated(command, printed(command, table, *words))


@pytest.mark.slow
def test_explain_and_clone_print_what_is_stated(table: str, tmp_path: Path) -> None:
    explained = printed("files", table, "--where", "id = 1 AND length(day) = 1", "--explain")
    check_as_stated("files --explain", explained)
    check_as_stated("clone", printed("clone", table, str(tmp_path / "copy")))


@pytest.mark.parametrize("command", ["check", "fsck"])
def test_a_command_on_a_damaged_table_prints_what_is_stated(command: str, damaged: str) -> None:
    check_as_stated(command, printed(command, damaged, exit_code=1))


def test_a_vacuum_of_a_file_prints_what_is_stated(table: str) -> None:
    anabranch.restore(table, 0)
    found = printed("vacuum", table, "--retain-hours", "0", "--no-check")
    assert found["files"]
    check_as_stated("vacuum", found)


@pytest.mark.slow
def test_the_doctor_prints_what_is_stated(table: str) -> None:
    check_as_stated("doctor", printed("doctor", table))


def test_a_matrix_prints_what_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = ("ConcurrentAppendException", False), (None, True)
    runs = (Run("UPDATE", "INSERT", "same file", True, condition, right) for condition, right in ways)
    found = Matrix("file", "Serializable", (Cell("UPDATE", "INSERT", "can conflict", tuple(runs)),))
    monkeypatch.setattr(matrix, "matrices", lambda dials, levels: [found])
    assert CliRunner().invoke(app, ["matrix"]).exit_code == (not found.as_documented)
    check_as_stated("matrix", printed("matrix", exit_code=not found.as_documented))


@pytest.mark.exhaustive(
    "tests/cli/test_json.py::test_a_matrix_prints_what_is_stated",
    "tests/testing/test_matrix.py::test_every_cell_is_as_documented",
)
@pytest.mark.slow
def test_the_matrix_prints_what_is_stated() -> None:
    check_as_stated("matrix", printed("matrix", "--resolution", "file", "--level", "Serializable"))


@pytest.mark.spark
@pytest.mark.parametrize("command", ["optimize", "reorg"])
def test_a_command_that_needs_spark_prints_what_is_stated(command: str, table: str, spark: SparkSession) -> None:
    check_as_stated(command, printed(command, table))


@pytest.mark.spark
def test_sql_prints_a_list_for_each_statement_with_rows(table: str, spark: SparkSession) -> None:
    text = f"SELECT id FROM delta.`{table}` WHERE id = 3; SELECT 1 AS x"
    done = CliRunner().invoke(app, ["sql", text, "--json"])
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[{"id": 3}], [{"x": 1}]]


def test_every_command_takes_json_and_is_on_the_page() -> None:
    commands = {each.callback.__name__: each.callback for each in app.registered_commands if each.callback}
    assert not [name for name, command in commands.items() if "as_json" not in command.__annotations__]
    rows = {row[0].split("]")[0].removeprefix("[") for row in rows_of_table(PAGE, "command")}
    assert rows - {"files --explain"} == set(commands)
    assert not [name for name in rows - {"sql"} if not stated(name)]


STATED = {"a": "text or null", "b": "list of objects", "b[].c": "number", "d": "object or null", "d.e": "boolean"}


@pytest.mark.parametrize("name", ["a", "b", "d"])
def test_a_field_that_is_not_there_is_noticed(name: str) -> None:
    value = {"a": None, "b": [], "d": None}
    assert faults({each: value[each] for each in value if each != name}, STATED) == [name]


@pytest.mark.parametrize("part", [{"a": 1}, {"b": [{}]}, {"c": 1}, {"d": {}}, {"d": {"e": 1}}, {"d": 1}])
def test_a_value_that_differs_from_what_is_stated_is_noticed(part: dict[str, Any]) -> None:
    value = {"a": None, "b": [{"c": 1}], "d": {"e": True}}
    assert not faults(value, STATED)
    assert faults(value | part, STATED)
