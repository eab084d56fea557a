"""How work grows with what it is done on: the same work on little and on much, in one process, by the processor's time.

Other processes take no part in it, so a busy machine counts as a quiet one does; what a thread does for itself is all
that counts. The least of several rounds is taken, in turns, since caches and clock rates may favour either.
"""

from __future__ import annotations

import time
from collections.abc import Callable

ROUNDS = 7


def times_more(little: Callable[[], object], much: Callable[[], object]) -> float:
    """How many times the work of the first is done by the second."""
    least = [float("inf")] * 2
    for _ in range(ROUNDS):
        for number, work in enumerate((little, much)):
            begun = time.thread_time()
            work()
            least[number] = min(least[number], time.thread_time() - begun)
    return least[1] / max(least[0], 1e-6)
