"""Campaigns: many plans, by many processes, added up.

Knows seeds and sums. A worker runs a stretch of seeds and gives back what a person wants to know of it: how many of
each verb ended how, which refusals were needed, and every violation with its seed.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context

import pyarrow as pa

from laboratory.plan_generator import plan_for
from laboratory.runs import run
from laboratory.verdicts import refusals, violations

STRETCH = 500
"""Seeds that a worker takes at a time."""


@dataclass
class Tally:
    """What came of some histories.

    Attributes:
        told: (verb, outcome) -> transactions.
        refused: (my verb, the winner's, level) -> refusals.
        needless: those of them that had a serial order.
        wrong: (seed, what).
    """

    histories: int = 0
    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    needless: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add another tally."""
        self.histories += other.histories
        self.told += other.told
        self.refused += other.refused
        self.needless += other.needless
        self.wrong += other.wrong

    @property
    def transactions(self) -> int:
        """All transactions."""
        return sum(self.told.values())


def tally(seeds: Sequence[int]) -> Tally:
    """Run these seeds in this process."""
    found = Tally()
    for seed in seeds:
        _count(found, seed)
    return found


def campaign(first: int, histories: int, jobs: int, progress: Callable[[Tally], None] = lambda so_far: None) -> Tally:
    """Run seeds ``first`` to ``first + histories - 1`` by ``jobs`` processes."""
    total = Tally()
    stretches = list(_stretches(first, histories))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=prepare) as pool:
        for done in as_completed([pool.submit(_quietly, stretch) for stretch in stretches]):
            total.add(done.result())
            progress(total)
    total.wrong.sort()
    return total


def prepare() -> None:
    """Make this process a worker: one core, no waiting pools, no log of the faults that it makes itself."""
    logging.getLogger("anabranch").setLevel(logging.CRITICAL)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    gc.disable()  # a fifth of the time, and hardly a cycle; each stretch ends with a collection


def _quietly(seeds: range) -> Tally:
    found = tally(seeds)
    gc.collect()
    return found


def _stretches(first: int, histories: int) -> Iterator[range]:
    for start in range(first, first + histories, STRETCH):
        yield range(start, min(start + STRETCH, first + histories))


def _count(into: Tally, seed: int) -> None:
    history = run(plan_for(seed))
    into.histories += 1
    into.told.update((type(act.statement).__name__, act.told) for act in history.acts)
    into.wrong += [(seed, str(each)) for each in violations(history)]
    for each in refusals(history):
        pair = (each.ours, each.winner, history.plan.setup.isolation)
        into.refused[pair] += 1
        into.needless[pair] += not each.was_needed


def caught(seeds: Sequence[int], seconds: float = 600.0) -> int | None:
    """How many histories it takes to find a violation, or None where these do not."""
    began = time.monotonic()
    for number, seed in enumerate(seeds, start=1):
        if violations(run(plan_for(seed))):
            return number
        if time.monotonic() - began > seconds:
            return None
    return None
