"""The sample: of each room as many mutants as its share of all places that can change, the same ones for a seed.

A place is drawn first, then one of its mutants: else half of the sample would be comparisons, which have five each.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence

from .mutant import Mutant


def drawn(
    rooms: Mapping[str, Sequence[Mutant]], count: int, seed: int, is_whole: Callable[[Mutant], bool] = lambda _: True
) -> list[Mutant]:
    """So many mutants, spread over the rooms; ``is_whole`` says whether one is a program, else another is drawn."""
    places = {room: _places(mutants) for room, mutants in rooms.items()}
    parts = shares({room: len(each) for room, each in places.items()}, count)
    sample = []
    for room in sorted(places):
        dice = random.Random(f"{seed} {room}")
        dice.shuffle(places[room])
        whole = filter(is_whole, map(dice.choice, places[room]))
        sample += list(itertools.islice(whole, parts[room]))
    return sample


def shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """``count`` divided by sizes; what rounding leaves goes to those that lost most by it."""
    total = sum(sizes.values()) or 1
    parts = {name: count * size // total for name, size in sizes.items()}
    lost = sorted(sizes, key=lambda name: (-(count * sizes[name] % total), name))
    for name in lost[: min(count, total) - sum(parts.values())]:
        parts[name] += 1
    return parts


def _places(mutants: Sequence[Mutant]) -> list[list[Mutant]]:
    return [list(each) for _, each in itertools.groupby(sorted(mutants), key=lambda m: (m.path, m.line, m.column))]
