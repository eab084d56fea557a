"""How work grows with what it is done on: the same work on little and on much, in one process, by the processor's time.

Other processes take no part in it, so a busy machine counts as a quiet one does; what a thread does for itself is all
that counts. The least of several rounds is taken, in turns, since caches and clock rates may favour either.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress

from anabranch.errors import AnabranchError

ROUNDS = 7
MOST_TIMES = 40
"""So many times the work may be on ten times the text: far from ten, and from a hundred."""
SHORTEST = 0.0005
"""Seconds below which work is taken to last so long."""


def times_more(little: Callable[[], object], much: Callable[[], object]) -> float:
    """How many times the work of the first is done by the second."""
    least = [float("inf")] * 2
    for _ in range(ROUNDS):
        for number, work in enumerate((little, much)):
            begun = time.thread_time()
            work()
            least[number] = min(least[number], time.thread_time() - begun)
    return least[1] / max(least[0], 1e-6)


def grows_with_its_text(work: Callable[[str], object], text_of: Callable[[int], str], little: int = 1_000) -> bool:
    """Whether work on ten times the text is as ten times the work, and not as a hundred times.

    Errors of the product are results like others. Millionths of a second tell nothing, so work that takes little on the
    long text is not compared; what seems to grow faster is looked at again, with more rounds and no collection of
    garbage.

    Args:
        text_of: the text of about so many characters.
    """
    short, long = text_of(little), text_of(10 * little)
    return any(_once(work, short, long, rounds) < MOST_TIMES for rounds in (1, 3, ROUNDS))


def _once(work: Callable[[str], object], short: str, long: str, rounds: int) -> float:
    collects = gc.isenabled()
    gc.disable()
    try:
        little, much = (min(_seconds(work, text) for _ in range(rounds)) for text in (short, long))
    finally:
        if collects:
            gc.enable()
    return much / max(little, SHORTEST)


def _seconds(work: Callable[[str], object], text: str) -> float:
    begun = time.thread_time()
    with suppress(AnabranchError):
        work(text)
    return time.thread_time() - begun
