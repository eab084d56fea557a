"""Several writers of one table at once, each in a thread, each repeating a statement that was refused by a conflict.

The same for all engines: who loses tries again at once, until all statements are done, so that all end with the same
rows, and the price of a conflict is in the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from deltalake.exceptions import CommitFailedError, DeltaError

from anabranch.errors import DeltaConcurrentModificationException
from benchmarks import peers
from benchmarks.harness import percentile
from benchmarks.judge import Judge
from benchmarks.race import OURS, OnCopies


@dataclass(frozen=True)
class Statement:
    """What a writer does once: SQL in which ``{}`` is the table, and the same as deltalake spells it."""

    text: str
    rust: Callable[[str], Any]


@dataclass(frozen=True)
class Call:
    """One statement, from its first try to its success (seconds of a clock), and how often it was refused before."""

    began: float
    ended: float
    refused: int


Lists = Sequence[Sequence[Statement]]
"""The statements of each writer."""


@dataclass(frozen=True)
class Crowd:
    """One engine's writers, on a fresh copy of a table for each run; ``calls`` are those of each run."""

    name: str
    lists: Lists
    calls: list[list[Call]] = field(default_factory=list)

    def work(self, path: str) -> None:
        """All statements of all writers."""
        self.calls.append(_ENGINES[self.name](path, self.lists))

    def figures(self, runs: int) -> dict[str, float | int]:
        """What the last so many runs say."""
        counted = [call for calls in self.calls[-runs:] for call in calls]
        spans = [max(c.ended for c in calls) - min(c.began for c in calls) for calls in self.calls[-runs:]]
        seconds = [call.ended - call.began for call in counted]
        return {
            "commits_per_s": len(counted) / max(sum(spans), 1e-9),
            "p50_ms": 1000 * percentile(seconds, 0.5),
            "p99_ms": 1000 * percentile(seconds, 0.99),
            "refused": sum(call.refused for call in counted),
        }


def crowds(lists: Lists) -> dict[str, Crowd]:
    """The same writers, by engine."""
    return {name: Crowd(name, lists) for name in (*peers.sparks(), peers.DELTALAKE)}


def on_copies(found: Mapping[str, Crowd], tables: peers.Tables, judge: Judge) -> dict[str, OnCopies]:
    """These crowds as contenders."""
    by_name = {name: tables.rewriting if name == peers.DELTALAKE else tables.marking for name in found}
    return {name: OnCopies(by_name[name], crowd.work, judge, peers.of(name)) for name, crowd in found.items()}


def _by_us(path: str, lists: Lists) -> list[Call]:
    spark = peers.session()
    return _together(
        [[lambda each=each: spark.sql(each.text.format(f"delta.`{path}`")) for each in texts] for texts in lists],
        lambda error: isinstance(error, DeltaConcurrentModificationException),
    )


def _by_deltalake(path: str, lists: Lists) -> list[Call]:
    return _together(
        [[lambda each=each: each.rust(path) for each in texts] for texts in lists],
        lambda error: (
            isinstance(error, CommitFailedError) or (isinstance(error, DeltaError) and "onflict" in str(error))
        ),
    )


def _by_delta_spark(path: str, lists: Lists) -> list[Call]:
    theirs = peers.delta_spark()
    assert theirs is not None
    texts = [[each.text.format(f"delta.`{path}`") for each in statements] for statements in lists]
    return [Call(**call) for call in theirs.together(texts)]


_ENGINES = {OURS: _by_us, peers.DELTALAKE: _by_deltalake, peers.DELTA_SPARK: _by_delta_spark}


def _together(lists: Sequence[Sequence[Callable[[], Any]]], is_conflict: Callable[[Exception], bool]) -> list[Call]:
    barrier = threading.Barrier(len(lists))

    def each(works: Sequence[Callable[[], Any]]) -> list[Call]:
        barrier.wait()
        return [_until_done(work, is_conflict) for work in works]

    with ThreadPoolExecutor(len(lists)) as pool:
        return [call for calls in pool.map(each, lists) for call in calls]


def _until_done(work: Callable[[], Any], is_conflict: Callable[[Exception], bool]) -> Call:
    began, refused = time.monotonic(), 0
    while True:
        try:
            work()
            return Call(began, time.monotonic(), refused)
        except Exception as error:
            if not is_conflict(error):
                raise
            refused += 1
