"""Transactions of several statements, run against each other, single statements, other engines and failures.

Judged as every history, and by what such a transaction promises besides (`laboratory.block_verdicts`). Refusals are
counted by dial: those that had a serial order after all were stricter than they had to be.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Annotated

import typer

from laboratory.block_mutants import BLOCK_MUTANTS
from laboratory.block_plans import block_plan_for
from laboratory.blocks import Block
from laboratory.campaign import prepare
from laboratory.in_arrow import InArrow
from laboratory.places import InMemory, Place
from laboratory.plans import Plan
from laboratory.runs import Act, History, run
from laboratory.shrinking import shrunk
from laboratory.stories import as_test, story
from laboratory.verdicts import refusals_by_writer, violations

HISTORIES = 20_000
STRETCH = 200
"""Histories that a worker runs at a time."""


@dataclass
class Found:
    """What came of some histories.

    Attributes:
        told: (dial, how it ended) -> blocks.
        needless: dial -> refused blocks that had a serial order.
        wrong: (number, what).
    """

    histories: int = 0
    transactions: int = 0
    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    needless: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add another's."""
        self.histories += other.histories
        self.transactions += other.transactions
        self.told += other.told
        self.needless += other.needless
        self.wrong += other.wrong

    def __str__(self) -> str:
        lines = [f"{self.histories:,} histories, {self.transactions:,} transactions, {len(self.wrong)} violations"]
        for dial in sorted({dial for dial, _ in self.told}):
            ends = {end: count for (of, end), count in sorted(self.told.items()) if of == dial}
            share = 100 * self.needless[dial] / sum(ends.values())
            lines.append(f"{dial}: {ends}; {self.needless[dial]} refused needlessly ({share:.1f} %)")
        return "\n".join(lines)


def dial_of(block: Block, plan: Plan) -> str:
    """By what a block is judged; ``queries``: its program has read rows, so that it is not run again."""
    resolution = block.resolution or plan.setup.resolution
    files = "" if plan.setup.vectors else ", no vectors"
    return f"{resolution}{files}{'' if block.sees_no_rows else ', queries'}"


def found_in(numbers: Sequence[int], place: Place | None = None) -> Found:
    """Run the plans of these numbers, in this process."""
    found, where = Found(), place or InMemory()
    for number in numbers:
        history = run(block_plan_for(number), where)
        _count(found, history)
        found.wrong += [(number, str(each)) for each in violations(history)]
    gc.collect()
    return found


def _count(found: Found, history: History) -> None:
    found.histories += 1
    found.transactions += len(history.acts)
    refused = refusals_by_writer(history)
    for act in history.acts:
        if isinstance(act.statement, Block):
            dial = dial_of(act.statement, history.plan)
            found.told[dial, act.told] += 1
            found.needless[dial] += _is_needless(act, history) and not refused[act.who].was_needed


def _is_needless(act: Act, history: History) -> bool:
    return act.told == "refused" and not history.plan.failures


def caught(numbers: Sequence[int]) -> int | None:
    """After how many histories something is wrong; None where nothing is."""
    place = InMemory()
    return next((n for n, each in enumerate(numbers, 1) if violations(run(block_plan_for(each), place))), None)


def _found_in(numbers: range, in_arrow: bool) -> Found:
    return found_in(numbers, InArrow() if in_arrow else None)


def main(
    histories: Annotated[int, typer.Option(help="How many histories to run.")] = HISTORIES,
    first: Annotated[int, typer.Option(help="The number of the first.")] = 0,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = os.cpu_count() or 2,
    in_arrow: Annotated[bool, typer.Option(help="On tables without Spark.")] = False,
    mutants: Annotated[bool, typer.Option(help="Catch the mutants too.")] = False,
    tell: Annotated[int | None, typer.Option(help="Tell this history, made small if it is wrong.")] = None,
) -> None:
    """Run transactions of several statements against each other; the exit code is 1 where anything is wrong."""
    if tell is not None:
        _tell(tell)
        return
    found, last = Found(), first + histories
    stretches = [range(start, min(start + STRETCH, last)) for start in range(first, last, STRETCH)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=prepare) as pool:
        for done in as_completed([pool.submit(_found_in, stretch, in_arrow) for stretch in stretches]):
            found.add(done.result())
    for number, what in sorted(found.wrong)[:20]:
        print(f"number {number}: {what}")
    print(found)
    survivors = [name for name, after in _caught_mutants().items() if after is None] if mutants else []
    raise typer.Exit(1 if found.wrong or survivors else 0)


def _caught_mutants() -> dict[str, int | None]:
    prepare()
    found = {}
    for mutant in BLOCK_MUTANTS:
        with mutant.alive():
            found[mutant.name] = after = caught(range(HISTORIES))
        print(f"{mutant.name}: {'not caught' if after is None else f'caught after {after:,} histories'}")
    return found


def _tell(number: int) -> None:
    prepare()
    history = run(block_plan_for(number))
    wrong = violations(history)
    if wrong:
        small = shrunk(history.plan, history.turns, lambda plan: _fails_alike(plan, wrong[0].kind))
        print(as_test(small))
        history = run(replace(small, seed=number))
    print(story(history))


def _fails_alike(plan: Plan, kind: str) -> bool:
    return any(each.kind == kind for each in violations(run(plan)))


if __name__ == "__main__":
    typer.run(main)
