"""Fewer cases of a parametrized test, for runs that must be short: evenly spread, and the same ones each time.

A list of cases that need nothing but their parameters stays whole: each of them says something of its own, as of one
type or one operator, and costs a millisecond. A test that loops over examples by itself takes fewer of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")
LIST = 100
"""Families of more items are products of several lists, or cases for each file; they are thinned."""

_is_short = False


def shorten() -> None:
    """From now on tests take few of their own examples; said once, before the first test is imported."""
    global _is_short
    _is_short = True


def examples(whole: int, few: int) -> int:
    """How many examples, rounds or values a test takes by itself: all of them, or in a short run a few."""
    return few if _is_short else whole


def few_of(cases: Sequence[Item], most: int) -> Iterable[Item]:
    """The cases that a test goes through by itself: all of them, or in a short run at most so many, evenly spread."""
    return _spread(cases, most) if _is_short else cases


def thinned(
    families: Mapping[Hashable, Sequence[Item]], most: int, is_cheap: Callable[[Item], bool] = lambda item: False
) -> list[Item]:
    """Of each family at most so many items: its first, its last, and others at even distances between them; but all of
    a list that is cheap.
    """
    kept: list[Item] = []
    for items in families.values():
        kept += items if len(items) <= LIST and is_cheap(items[0]) else _spread(items, most)
    return kept


def _spread(items: Sequence[Item], most: int) -> Iterable[Item]:
    if len(items) <= most:
        return items
    if most == 1:
        return items[:1]
    last = len(items) - 1
    return [items[round(i * last / (most - 1))] for i in range(most)]
