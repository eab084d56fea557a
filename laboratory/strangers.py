"""Strangers: commits of other engines, written from the protocol in any manner, against every order of ours.

One statement of ours and one or two strangers, perhaps with a blind append before them: each plan is played once for
each way in which they can fall among the phases of ours. Judged by the oracle, the strict reader, and CHECK.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from multiprocessing import get_context
from typing import Annotated

import typer

from anabranch.commands.maintenance.check import check
from anabranch.commands.opening import open_log
from laboratory.campaign import prepare
from laboratory.plan_generator import Maker
from laboratory.plans import START, Moments, Plan
from laboratory.runs import History, reopened, run
from laboratory.statements import Foreign, Statement
from laboratory.stories import as_test, story
from laboratory.verdicts import violations

RACES = ("read", "staged", "checked", "put")
WINNERS = 20_000
STRETCH = 200
"""Plans that a worker takes at a time."""


@dataclass
class Found:
    """What came of some plans: how many, with how many strangers, in how many histories, and what was wrong."""

    plans: int = 0
    winners: int = 0
    histories: int = 0
    landed: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Add another's."""
        self.plans += other.plans
        self.winners += other.winners
        self.histories += other.histories
        self.landed += other.landed
        self.wrong += other.wrong

    def __str__(self) -> str:
        done = f"{self.winners:,} strangers in {self.plans:,} plans and {self.histories:,} histories"
        return f"{done}; ours landed in {self.landed:,}; {len(self.wrong)} violations"


def plan_of(number: int) -> Plan:
    """The plan of an integer, without its order: ours first."""
    maker = Maker(random.Random(f"stranger {number}"))
    setup = maker.setup()
    maker.partitioned = setup.partitioned
    ours = (maker.update, maker.update, maker.delete, maker.merge, maker.replace, maker.overwrite, maker.optimize)
    first: Statement = maker.dice.choice((*ours, maker.append))()
    strangers = [maker.foreign() for _ in range(maker.dice.choice((1, 1, 1, 2)))]
    before = (maker.append(),) if maker.dice.random() < 0.2 else ()
    return Plan(setup, (first, *before, *strangers), seed=number)


def orders_of(plan: Plan) -> Iterator[Plan]:
    """The plan in every order: all others before ours, and each way in which they can fall among its phases."""
    others = len(plan.statements) - 1
    for at in ((START,) * others, *combinations_with_replacement(RACES, others)):
        yield replace(plan, schedule=Moments(at))


def faults(history: History, *, checks: bool = True) -> list[str]:
    """Everything that is wrong with a history, and with the table that it leaves, if that ``checks``."""
    found = [str(each) for each in violations(history)]
    if not checks:
        return found
    with reopened(history) as location:
        report = check(open_log(location).snapshot(), deep=True)
    return found + [f"check: {each}" for each in report.findings]


def found_in(numbers: Sequence[int]) -> Found:
    """Play the plans of these numbers in every order, in this process."""
    found = Found()
    for number in numbers:
        plan = plan_of(number)
        found.plans += 1
        found.winners += sum(isinstance(each, Foreign) for each in plan.statements)
        for place, ordered in enumerate(orders_of(plan)):
            history = run(ordered)
            landed = history.acts[0].told == "committed"
            checks = landed or place == 0  # where ours does not land, all orders leave the same table
            found.histories += 1
            found.landed += landed
            wrong = faults(history, checks=checks)
            found.wrong += [(number, f"{ordered.schedule}: {each}") for each in wrong]
    gc.collect()
    return found


def caught(numbers: Sequence[int]) -> int | None:
    """After how many histories something is wrong; None where nothing is."""
    histories = 0
    for number in numbers:
        for ordered in orders_of(plan_of(number)):
            histories += 1
            if faults(run(ordered)):
                return histories
    return None


def main(
    winners: Annotated[int, typer.Option(help="How many strangers at least.")] = WINNERS,
    first: Annotated[int, typer.Option(help="The first number.")] = 0,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = os.cpu_count() or 2,
    tell: Annotated[int | None, typer.Option(help="Tell what is wrong with the plan of this number.")] = None,
) -> None:
    """Run them; the exit code is 1 where anything is wrong."""
    if tell is not None:
        raise typer.Exit(_tell(tell))
    total = Found()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=prepare) as pool:
        while total.winners < winners:
            starts = range(first, first + STRETCH * jobs * 4, STRETCH)
            first = starts.stop
            for done in as_completed([pool.submit(found_in, range(each, each + STRETCH)) for each in starts]):
                total.add(done.result())
            print(total, flush=True)
    for number, what in sorted(total.wrong)[:20]:
        print(f"{number}: {what}")
    raise typer.Exit(1 if total.wrong else 0)


def _tell(number: int) -> int:
    prepare()
    for ordered in orders_of(plan_of(number)):
        history = run(ordered)
        if wrong := faults(history):
            print(story(history), *wrong, as_test(ordered), sep="\n")
            return 1
    return 0


if __name__ == "__main__":
    typer.run(main)
