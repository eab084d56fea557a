"""The limits of waits and of tests fit together, and what draws examples draws the same ones each time."""

from __future__ import annotations

import ast
import re
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import patience
from tests.support.drawing import CAMPAIGN

ROOT = Path(__file__).resolve().parent.parent

WAITS = {"join", "wait", "result", "timeout"}
"""Methods whose first argument may be a time limit."""
MAY_HAVE_ONE = re.compile(rf"\btimeout\s*=\s*[\d.]|\.(?:{'|'.join(WAITS)})\(\s*[\d.]")
"""A text without this spells none out; most files need not be parsed."""


def limits(file: Path) -> Iterator[str]:
    """The lines that spell a time limit out, and do not say why it is no wait for an event."""
    text = file.read_text(encoding="utf-8")
    if not MAY_HAVE_ONE.search(text):
        return
    for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        given = [each.value for each in call.keywords if each.arg == "timeout"]
        given += call.args[:1] if name in WAITS else []
        numbers = [each.value for each in given if isinstance(each, ast.Constant)]
        line = text.splitlines()[call.lineno - 1]
        if any(isinstance(each, (int, float)) and each for each in numbers) and "  # " not in line:
            yield f"{file.relative_to(ROOT)}: {line.strip()}"


@pytest.mark.slow
def test_no_test_has_a_limit_of_its_own() -> None:
    assert not [line for file in sorted((ROOT / "tests").rglob("*.py")) for line in limits(file)]


def test_a_wait_ends_before_its_test_does() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert patience.PATIENCE < patience.WHOLE_TEST == told["tool"]["pytest"]["ini_options"]["timeout"]


def test_what_never_happens_fails_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.01)
    never = threading.Event()
    with pytest.raises(AssertionError, match="rain"):
        patience.until(lambda: False, "rain")
    with pytest.raises(AssertionError, match="event"):
        patience.happens(never)
    waits = threading.Thread(target=never.wait, name="waits")
    waits.start()
    with pytest.raises(AssertionError, match="waits has not ended"):
        patience.end(waits)
    never.set()
    waits.join()


def test_a_wait_ends_with_what_it_waits_for() -> None:
    seen = list[int]()
    patience.until(lambda: seen.append(1) or len(seen) > 3)  # type: ignore[func-returns-value]
    assert len(seen) == 4


@pytest.mark.skipif(CAMPAIGN, reason="new examples were asked for")
def test_every_test_draws_the_same_examples_each_time() -> None:
    found = settings()
    assert (found.derandomize, found.database, found.deadline) == (True, None, None)
