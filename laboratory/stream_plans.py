"""What streams add to a plan: a table with a feed, one that reads it as a stream, and the batches of another query.

Pure: a plan and dice of its own in, a plan out; so all else of the plans of `laboratory.plan_generator` stays as it is.
"""

from __future__ import annotations

import random
from dataclasses import replace

from anabranch._transaction.phases import PHASES
from laboratory.plans import Failure, Moments, Plan
from laboratory.statements import Batch, Follow, Rows, Statement

FEEDS, READERS, WRITERS = 0.25, 0.12, 0.12
"""How many tables have a feed, and how many plans a stream that reads or writes."""
_MOST_WRITERS = 4
_FIRST_KEY = 100
_CRASHES = ("killed", "killed after", "reply lost", "cut off, reply lost", "hangs, reply lost")


def with_streams(plan: Plan, dice: random.Random) -> Plan:
    """The plan, perhaps with a feed, with one who reads the table as a stream, and with the batches of a query."""
    if dice.random() < FEEDS:
        plan = replace(plan, setup=replace(plan.setup, feed=True))
    if dice.random() < READERS:
        plan = _with(plan, dice, _reader(plan, dice))
    return _with_batches(plan, dice) if dice.random() < WRITERS and len(plan.statements) <= _MOST_WRITERS else plan


def _reader(plan: Plan, dice: random.Random) -> Follow:
    shows = dice.choice(("changes", "changes", "writes", "inserts") if plan.setup.feed else ("writes", "inserts"))
    whole, again = dice.random() < 0.5, dice.random() < 0.3
    return Follow(dice.choice((1, 3, 9)), dice.choice((1, 2, None)), shows, whole, again)


def _with(plan: Plan, dice: random.Random, *more: Statement) -> Plan:
    """The plan with more statements."""
    schedule = plan.schedule
    if isinstance(schedule, Moments):
        schedule = Moments((*schedule.at, *(dice.choice(PHASES[:-1]) for _ in more)))
    return replace(plan, statements=(*plan.statements, *more), schedule=schedule)


def _with_batches(plan: Plan, dice: random.Random) -> Plan:
    """The plan with a batch that is run twice, as after a crash, and perhaps with the next one."""
    complete, first = dice.random() < 0.15, len(plan.statements)
    batches = [Batch(_rows(dice, number), query="query", number=number, complete=complete) for number in (1, 2)]
    plan = _with(plan, dice, batches[0], batches[0], *(batches[1:] if dice.random() < 0.3 else ()))
    crash = (Failure(first, dice.randrange(4, 20), dice.choice(_CRASHES)),) if dice.random() < 0.3 else ()
    return replace(plan, failures=(*plan.failures, *crash))


def _rows(dice: random.Random, number: int) -> Rows:
    keys = range(_FIRST_KEY * number, _FIRST_KEY * number + dice.choice((1, 2)))
    return tuple((key, dice.choice((0, 1, 1, 2)), dice.choice((0, 1, 2, None))) for key in keys)
