"""One task, done by several engines by turns, and the proof that all of them did the same.

Knows no engine. A fast contender that does less is worth nothing: where the answers differ, the race says so, and its
ratios meet no target.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks import large, targets
from benchmarks.harness import Cost, Line, Ratio, Tell, by_turns, compared, cost, spread
from benchmarks.processes import Processes, below

OURS = "anabranch"
BEST = "the best peer"
ROUNDS = 3
WARM_UPS = 2
"""Spark compiles what it runs often: a statement's first run costs about twice as much as its fourth."""


@dataclass(frozen=True)
class Contender:
    """One engine at one task.

    Attributes:
        name: The engine's.
        run: Does the task once, on what was made ready before the clock starts.
        answer: What came of the last run, in a form that is equal for all who did the same.
    """

    name: str
    run: Callable[[], Cost]
    answer: Callable[[], object]


@dataclass(frozen=True)
class OnCopies:
    """Work that changes a table: each run gets a fresh copy of it, and the last one is kept for the judge."""

    table: Path
    work: Callable[[str], Any]
    judge: Callable[[Path], object]
    processes: Processes = below
    left: list[Path] = field(default_factory=list)

    def run(self) -> Cost:
        """One run on a fresh copy."""
        path = self.fresh()
        return cost(lambda: self.work(path), self.processes)

    def fresh(self) -> str:
        """A fresh copy, in the place of the last one."""
        self.clear()
        path = large.copy(self.table, self.table.parent / uuid4().hex)
        self.left.append(path)
        return str(path)

    def answer(self) -> object:
        """What the judge says of the last copy."""
        return self.judge(self.left[0])

    def clear(self) -> None:
        """Remove the last copy."""
        while self.left:
            shutil.rmtree(self.left.pop())


@dataclass(frozen=True)
class InAnotherProcess(OnCopies):
    """Work that another process does, and of which that says what it cost."""

    def run(self) -> Cost:
        """One run on a fresh copy."""
        found: Cost = self.work(self.fresh())
        return found


@dataclass(frozen=True)
class Race:
    """What a task cost each contender, round by round, and what came of it."""

    what: str
    costs: Mapping[str, Sequence[Cost]]
    answers: Mapping[str, object]

    @property
    def differences(self) -> list[str]:
        """A sentence for each contender that did not end as ours did; none where all did the same."""
        ours = self.answers.get(OURS)
        return [
            f"{self.what}: {name} ended with {answer}, {OURS} with {ours}"
            for name, answer in self.answers.items()
            if answer != ours
        ]

    @property
    def lines(self) -> list[Line]:
        """The figures of each contender."""
        return [Line(f"{self.what}, {name}", spread(costs)) for name, costs in self.costs.items()]

    def ratios(self, benchmark: str) -> list[Ratio]:
        """Ours over each peer, and over the best of them where a target asks for it, with the targets."""
        peers = {name: costs for name, costs in self.costs.items() if name != OURS}
        if peers and targets.bound(benchmark, over(self.what, BEST)):
            peers[BEST] = min(peers.values(), key=lambda costs: statistics.median(each.wall_s for each in costs))
        found = [ratio for name, costs in peers.items() for ratio in self._over(benchmark, name, costs)]
        return [replace(each, is_valid=False) for each in found] if self.differences else found

    def _over(self, benchmark: str, name: str, theirs: Sequence[Cost]) -> list[Ratio]:
        what = over(self.what, name)
        return compared(what, self.costs[OURS], theirs, targets.limits(benchmark, what).get("at_most"))


def over(what: str, peer: str) -> str:
    """The name of the ratio of our cost at a task over a peer's."""
    return f"{what}, ours over {peer}"


def race(
    what: str, contenders: Iterable[Contender], tell: Tell, *, rounds: int | None = None, warm_ups: int | None = None
) -> Race:
    """Let them run by turns, `ROUNDS` times after `WARM_UPS` unless said otherwise, then ask what came of it."""
    by_name = {each.name: each for each in contenders}
    runs = {name: each.run for name, each in by_name.items()}
    costs = by_turns(runs, rounds or ROUNDS, telling(tell, what), warm_ups=warm_ups or WARM_UPS)
    tell(f"{what}: comparing what came of it")
    return Race(what, costs, {name: each.answer() for name, each in by_name.items()})


def race_on_copies(what: str, sides: Mapping[str, OnCopies], tell: Tell, *, warm_ups: int | None = None) -> Race:
    """A race of work that changes a table; the last copies stay until they are cleared."""
    contenders = [Contender(name, side.run, side.answer) for name, side in sides.items()]
    return race(what, contenders, tell, warm_ups=warm_ups)


def telling(tell: Tell, what: str) -> Tell:
    """Tells with each line what is measured."""
    return lambda text: tell(f"{what}: {text}")


@dataclass(frozen=True)
class Figures:
    """What races say, as the fields of a result."""

    lines: Sequence[Line]
    ratios: Sequence[Ratio]
    differences: Sequence[str]


def figures(benchmark: str, races: Sequence[Race]) -> Figures:
    """What these races say."""
    return Figures(
        [line for each in races for line in each.lines],
        [ratio for each in races for ratio in each.ratios(benchmark)],
        [text for each in races for text in each.differences],
    )


def of_all(
    benchmark: str, what: str, races: Sequence[Race], peer: str, choose: Callable[[Sequence[float]], float]
) -> list[Ratio]:
    """One ratio that stands for those of several races over a peer, with its target; none where the peer did not run.

    It is valid only where all contenders of all races did the same.
    """
    found = [ratio for each in races for ratio in each.ratios(benchmark) if ratio.what == over(each.what, peer)]
    values, name, is_valid = [each.value for each in found], over(what, peer), not any(r.differences for r in races)
    bounds = targets.limits(benchmark, name)
    ends = {"least": min(values, default=0.0), "greatest": max(values, default=0.0)}
    return [Ratio(name, choose(values), **bounds, **ends, is_valid=is_valid)] if values else []


def bounded(ratio: Ratio, at_most: Mapping[str, float]) -> Ratio:
    """The ratio with the bound for the peer over which it is taken, if there is one."""
    found = [most for peer, most in at_most.items() if ratio.what.endswith(over("", peer))]
    return replace(ratio, at_most=found[0]) if found else ratio
