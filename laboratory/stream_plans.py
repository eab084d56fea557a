"""What streams add to a plan: a table with a feed, and the batches of a query among the writers.

Pure: a plan and dice of its own in, a plan out; so all else of the plans of `laboratory.plan_generator` stays as it is.
"""

from __future__ import annotations

import random
from dataclasses import replace

from anabranch.transaction.phases import PHASES
from laboratory.plans import Failure, Moments, Plan
from laboratory.statements import Batch, Rows

FEEDS, QUERIES = 0.25, 0.12
"""How many tables have a feed, and how many plans a query."""
_MOST_WRITERS = 4
_FIRST_KEY = 100
_CRASHES = ("killed", "killed after", "reply lost", "cut off, reply lost", "hangs, reply lost")


def with_streams(plan: Plan, dice: random.Random) -> Plan:
    """The plan, perhaps with a feed, and perhaps with a query too."""
    if dice.random() < FEEDS:
        plan = replace(plan, setup=replace(plan.setup, feed=True))
    return _with_query(plan, dice) if dice.random() < QUERIES and len(plan.statements) <= _MOST_WRITERS else plan


def _with_query(plan: Plan, dice: random.Random) -> Plan:
    """The plan with a batch that is run twice, as after a crash, and perhaps with the next one."""
    complete, first = dice.random() < 0.15, len(plan.statements)
    batches = [Batch(_rows(dice, number), query="query", number=number, complete=complete) for number in (1, 2)]
    added = (batches[0], batches[0], *(batches[1:] if dice.random() < 0.3 else ()))
    crash = (Failure(first, dice.randrange(4, 20), dice.choice(_CRASHES)),) if dice.random() < 0.3 else ()
    schedule = plan.schedule
    if isinstance(schedule, Moments):
        schedule = Moments((*schedule.at, *(dice.choice(PHASES[:-1]) for _ in added)))
    return replace(plan, statements=(*plan.statements, *added), schedule=schedule, failures=(*plan.failures, *crash))


def _rows(dice: random.Random, number: int) -> Rows:
    keys = range(_FIRST_KEY * number, _FIRST_KEY * number + dice.choice((1, 2)))
    return tuple((key, dice.choice((0, 1, 1, 2)), dice.choice((0, 1, 2, None))) for key in keys)
