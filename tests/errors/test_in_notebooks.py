"""What a notebook shows of conflicts and results, in a real kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.notebooks import pages, run, traceback_of

pytestmark = pytest.mark.slow

BEGIN = """
import sys
import anabranch
from anabranch.testing import at_phase

for number in (1, 2):
    anabranch.append("table", [{"id": number}])
"""
LOSE = """
def lose():
    with at_phase("staged", lambda: anabranch.restore("table", version=0)):
        anabranch.restore("table", version=0)

lose()
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The outputs of one session."""
    folder: Path = tmp_path_factory.mktemp("notebook")
    said = {
        "begin": BEGIN,
        "lose": LOSE,
        "error": "sys.last_value",
        "again": "%tb",
        "whole": "%xmode Verbose\n%tb",
        "history": 'anabranch.history("table")',
        "explain": 'anabranch.explain("table", "id > 1")',
        "check": 'anabranch.check("table")',
    }
    return dict(zip(said, run(*said.values(), folder=folder, allow_errors=True), strict=True))


def test_a_conflict_is_a_card_below_the_lines_of_the_user(cells: dict[str, list[Any]]) -> None:
    shown = traceback_of(cells["lose"])
    assert re.search(r"-> \d+ lose\(\)", shown)
    assert 'anabranch.restore("table", version=0)' in shown
    assert "transaction/commit.py" not in shown
    assert "  Winner      version 2, RESTORE by " in shown
    assert "  Rule        DELTA_CONCURRENT_DELETE_READ." in shown
    assert "  What to do  Run the command again" in shown


def test_the_whole_traceback_is_there_for_who_asks(cells: dict[str, list[Any]]) -> None:
    assert "transaction/commit.py" not in traceback_of(cells["again"])
    assert "transaction/commit.py" in traceback_of(cells["whole"])


def test_an_error_that_is_displayed_is_a_table(cells: dict[str, list[Any]]) -> None:
    (page,) = pages(cells["error"])
    assert page.startswith("<table>")
    assert "DELTA_CONCURRENT_DELETE_READ" in page


@pytest.mark.parametrize(("cell", "said"), [("history", "RESTORE"), ("explain", "rules out"), ("check", "clean")])
def test_results_are_tables(cells: dict[str, list[Any]], cell: str, said: str) -> None:
    (page,) = pages(cells[cell])
    assert page.startswith("<table>")
    assert said in page
