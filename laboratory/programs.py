"""Programs: sequential sessions that hold what they have read over their own commits and over those of others.

Each program reads the table, commits some statements of its own, and writes the rows that it had read; two or three run
at once. Judged as every history, and by what a sequential program may expect (docs/concepts/the-cut.md): no conflict
with itself, and an order in which it finds the rows that it held, changed by nobody else.
"""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Annotated

import typer

from laboratory.campaign import prepare
from laboratory.held_rows import Bring, Hold
from laboratory.plan_generator import Maker
from laboratory.plans import Plan
from laboratory.runs import run
from laboratory.statements import Statement
from laboratory.stories import story
from laboratory.verdicts import violations

HISTORIES = 20_000
STRETCH = 200
"""Histories that a worker runs at a time."""


@dataclass
class Found:
    """What came of some histories: how each kind of statement ended, and what was wrong."""

    histories: int = 0
    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add another's."""
        self.histories += other.histories
        self.told += other.told
        self.wrong += other.wrong

    def __str__(self) -> str:
        ends = {end: count for (kind, end), count in sorted(self.told.items()) if kind == "Bring"}
        return f"{self.histories:,} histories; held rows were {ends}; {len(self.wrong)} violations"


def plan_of(number: int) -> Plan:
    """The plan of an integer."""
    maker = Maker(random.Random(f"programs {number}"))
    setup = maker.setup()
    maker.partitioned = setup.partitioned
    parts = [_program(maker) for _ in range(maker.dice.choice((1, 2, 2, 2, 3)))]
    owners = tuple(program for program, part in enumerate(parts) for _ in part)
    statements = tuple(statement for part in parts for statement in part)
    return Plan(setup, statements, maker.schedule(number), seed=number, programs=owners)


def _program(maker: Maker) -> list[Statement]:
    """Read, perhaps commit, write what was read; or a few commits without a frame."""
    own = (maker.append, maker.append, maker.update, maker.delete, maker.merge, maker.optimize, maker.overwrite)
    if maker.dice.random() < 0.3:
        return [maker.dice.choice(own)() for _ in range(maker.dice.choice((1, 1, 2)))]
    steps: list[Statement] = [Hold()]
    for _ in range(maker.dice.choice((1, 1, 2))):
        steps += [maker.dice.choice(own)() for _ in range(maker.dice.choice((0, 1, 1, 2)))]
        steps.append(Bring(maker.sets(), maker.where(), maker.dice.choice(("append", "append", "merge", "overwrite"))))
    return steps


def found_in(numbers: Sequence[int]) -> Found:
    """Run the plans of these numbers, in this process."""
    found = Found()
    for number in numbers:
        history = run(plan_of(number))
        found.histories += 1
        found.told.update((type(history.plan.statements[act.who]).__name__, act.told) for act in history.acts)
        found.wrong += [(number, str(each)) for each in violations(history)]
    gc.collect()
    return found


def caught(numbers: Sequence[int]) -> int | None:
    """After how many histories something is wrong; None where nothing is."""
    return next((n for n, each in enumerate(numbers, 1) if violations(run(plan_of(each)))), None)


def main(
    histories: Annotated[int, typer.Option(help="How many histories to run.")] = HISTORIES,
    first: Annotated[int, typer.Option(help="The number of the first.")] = 0,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = os.cpu_count() or 2,
    tell: Annotated[int | None, typer.Option(help="Tell the history of this number.")] = None,
) -> None:
    """Run programs against each other; the exit code is 1 where anything is wrong."""
    if tell is not None:
        prepare()
        history = run(plan_of(tell))
        print(story(history), *violations(history), sep="\n")
        return
    found, last = Found(), first + histories
    stretches = [range(start, min(start + STRETCH, last)) for start in range(first, last, STRETCH)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=prepare) as pool:
        for done in as_completed([pool.submit(found_in, stretch) for stretch in stretches]):
            found.add(done.result())
    for number, what in sorted(found.wrong)[:20]:
        print(f"number {number}: {what}")
    print(found)
    raise typer.Exit(1 if found.wrong else 0)


if __name__ == "__main__":
    typer.run(main)
