"""Fewer cases of a parametrized test, for runs that must be short: evenly spread, and the same ones each time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def thinned(families: Mapping[Hashable, Sequence[Item]], most: int) -> list[Item]:
    """Of each family at most so many items: its first, its last, and others at even distances between them."""
    return [item for items in families.values() for item in _spread(items, most)]


def _spread(items: Sequence[Item], most: int) -> Iterable[Item]:
    if len(items) <= most:
        return items
    if most == 1:
        return items[:1]
    last = len(items) - 1
    return [items[round(i * last / (most - 1))] for i in range(most)]
