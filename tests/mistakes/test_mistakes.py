"""A mistake is one error of ours, whose sentence says what is wrong; the console shows nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import errors
from tests.mistakes.known import IN_A_SESSION, ON_THE_COMMAND_LINE, Mistake
from tests.support.patience import PATIENCE
from tests.support.tiers import is_short
from tests.test_docs import DOCS, as_bash_splits, matches, rows_of_table
from tests.test_storeys import ROOT

_WITHOUT_PYSPARK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", "delta"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from anabranch._cli import main

main()
"""

NOISY = ("a function of Python that fails in a write", "a misspelled statement", "a file that somebody removed")
"""What Python's processes, Spark's parser and its tasks would each say on the console by themselves."""
MADE = [each for each in IN_A_SESSION if each.title in NOISY or not is_short()]
by_title = pytest.mark.parametrize("mistake", MADE, ids=lambda each: each.title)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What became of the mistakes, which one process has made in one session."""
    folder = tmp_path_factory.mktemp("mistakes")
    results = folder / "results.json"
    titles = [each.title for each in MADE]
    command = [sys.executable, "-m", "tests.mistakes.made", str(folder), str(results), *titles]
    done = subprocess.run(command, cwd=ROOT, env=environment(), timeout=PATIENCE, check=False)
    assert results.exists(), (done.returncode, (folder / "console.txt").read_text()[-2000:])
    return json.loads(results.read_text(encoding="utf-8"))


def environment() -> dict[str, str]:
    """Of a process that takes the package from here, as its Python does in this process."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def first_line(message: str) -> str:
    return message.split("\n")[0]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic("it has a session of its own")
@pytest.mark.whole
@by_title
def test_a_mistake_in_a_session_is_one_error_and_nothing_else(mistake: Mistake, made: dict[str, Any]) -> None:
    said = made[mistake.title]
    assert (said["error"], said["console"]) == (mistake.error, "")
    assert matches(first_line(said["message"]), mistake.says), said["message"]


@pytest.mark.exhaustive(
    "tests/cli/test_command_line.py::test_a_mistyped_path_starts_no_session",
    "tests/sql/test_sql.py::test_an_error_on_the_command_line_is_a_message_and_an_exit_code",
)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic("it has a session of its own")
@pytest.mark.parametrize("mistake", ON_THE_COMMAND_LINE, ids=lambda each: each.title)
def test_a_mistake_on_the_command_line_is_one_sentence_and_nothing_else(mistake: Mistake, tmp_path: Path) -> None:
    people = str(tmp_path / "people")
    anabranch.append(people, [{"id": 1, "city": "Oslo", "n": 1}])
    words = as_bash_splits(mistake.code.replace("$people", people))[1:]
    start = ["-c", _WITHOUT_PYSPARK] if "PySpark" in mistake.title else ["-m", "anabranch._cli"]
    command = [sys.executable, *start, *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, timeout=PATIENCE, check=False)
    shown = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert matches(first_line(shown), f"anabranch: {mistake.says}"), shown
    assert not [line for line in shown.splitlines() if "WARN" in line or "ERROR" in line or line.startswith("\tat ")]


def test_there_are_30_and_each_is_an_error_of_ours() -> None:
    known = [*IN_A_SESSION, *ON_THE_COMMAND_LINE]
    assert len({each.title for each in known}) == len(known) == 30
    assert all(issubclass(getattr(errors, each.error), errors.AnabranchError) for each in known)


def test_the_page_shows_each_as_it_is() -> None:
    known = [
        [each.title, each.code, f"{each.error}: {each.says}", each.before or "the same"]
        for each in [*IN_A_SESSION, *ON_THE_COMMAND_LINE]
    ]
    stated = rows_of_table(DOCS / "mistakes.md", "mistake")
    assert [[cell.strip() for cell in row] for row in stated] == [
        [cell.replace("`", "") for cell in row] for row in known
    ]
