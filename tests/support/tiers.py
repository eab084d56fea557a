"""Three speeds, one option: which tests and which of their cases a run takes.

    pytest -m "not spark" --tier=quick     the inner loop: no JVM, nothing slow
    pytest --tier=test                     each promise: every test function, of its cases a choice
    pytest                                 everything

Knows marks and parameters only. Guarantee: the choice is the same for each run on each machine. Marks alone leave a
test function out of a tier: ``slow`` and those of other programs leave it out of `quick`, and ``exhaustive``, which
names what shows the same behaviour in `make test`, out of both short tiers. Of the cases of a parametrized test these
take:

- all, where the test or its file is marked ``whole``, since each case says something of its own;
- more, where a test needs nothing but its parameters: a case costs a millisecond;
- else a few.

What is taken is evenly spread: the first, the last and others at even distances.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

Item = TypeVar("Item")
CASES = {"quick": 1, "test": 2}
"""So many cases does a short tier take of a test; of a slow one, and of one with a JVM, it takes one."""
CHEAP_CASES = {"quick": 10, "test": 150}
"""So many of one that needs nothing but its parameters."""

BEYOND_QUICK = ("spark", "slow", "interop", "clouds", "browser")
"""Marks of tests that need a JVM or another program, or that take long."""

_is_short = False


def shorten() -> None:
    """From now on tests take few of their own examples; said once, before the first test is imported."""
    global _is_short
    _is_short = True


def is_short() -> bool:
    """Whether this run is of a short tier."""
    return _is_short


def examples(whole: int, few: int) -> int:
    """How many examples, rounds or values a test takes by itself: all of them, or in a short tier a few."""
    return few if _is_short else whole


def few_of(cases: Sequence[Item], most: int) -> Iterable[Item]:
    """The cases that a test goes through by itself: all of them, or in a short tier at most so many, evenly spread."""
    return _spread(cases, most) if _is_short else cases


def thinned(
    families: Mapping[Hashable, Sequence[Item]],
    most: Callable[[Item], int],
    is_whole: Callable[[Item], bool] = lambda item: False,
) -> list[Item]:
    """Of each family at most so many items, evenly spread; all of a family that is whole."""
    kept: list[Item] = []
    for items in families.values():
        kept += items if is_whole(items[0]) else _spread(items, most(items[0]))
    return kept


def _spread(items: Sequence[Item], most: int) -> Iterable[Item]:
    if len(items) <= most:
        return items
    if most == 1:
        return items[:1]
    last = len(items) - 1
    return [items[round(i * last / (most - 1))] for i in range(most)]


# -- what pytest asks ----------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--tier``, by which `make quick` and `make test` are short."""
    parser.addoption("--tier", choices=[*CASES, "all"], default="all", help="how many tests and cases are run")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests that loop by themselves know of the tier before they are imported."""
    if config.getoption("--tier") != "all":
        shorten()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone that hold no test of the asked half: to import them all takes each process some seconds.

    A file without the words ``mark.spark`` has no test for the half with a JVM; one whose `pytestmark` has them has
    none for the other half.
    """
    half = config.getoption("-m")
    if collection_path.suffix != ".py" or half not in ("spark", "not spark"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if half == "spark":
        return None if "mark.spark" in text else True
    return True if re.search(r"^pytestmark = .*\bmark\.spark\b", text, re.MULTILINE) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the tier does not take. Files with slow tests go first, so that no process waits at the end for
    another one.
    """
    tier = config.getoption("--tier")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    if tier == "all":
        return
    families: dict[Hashable, list[pytest.Item]] = {}
    for item in items:
        if not _is_beyond(item, tier):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = thinned(families, lambda item: _most(item, tier), _is_whole)
    chosen = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = [item for item in items if id(item) in chosen]


def _is_beyond(item: pytest.Item, tier: str) -> bool:
    if tier == "quick" and any(map(item.get_closest_marker, BEYOND_QUICK)):
        return True
    return item.get_closest_marker("exhaustive") is not None


def _most(item: pytest.Item, tier: str) -> int:
    if any(map(item.get_closest_marker, ("spark", "slow"))):
        return 1
    return CHEAP_CASES[tier] if _needs_nothing(item) else CASES[tier]


def _is_whole(item: pytest.Item) -> bool:
    return item.get_closest_marker("whole") is not None


def _needs_nothing(item: pytest.Item) -> bool:
    """Whether a test needs nothing but its parameters, so that it touches no disk and waits for nobody."""
    own = getattr(getattr(item, "callspec", None), "params", {})
    needed = {*getattr(item, "fixturenames", ())} - {*own, "request"}
    is_long = item.get_closest_marker("slow") or hasattr(getattr(item, "obj", None), "hypothesis")
    return not needed and not is_long
