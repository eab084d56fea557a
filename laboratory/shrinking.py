"""Shrinking: from a failing plan to the smallest one that fails the same way.

Knows plans only; what failing means is passed in. First the schedule is written down as a `Script`, then writers,
faults, switches, rows and parts of conditions are taken away one at a time, as long as the plan still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from laboratory.blocks import Block, Look, Made
from laboratory.manners import PLAIN
from laboratory.plans import Failure, Plan, Script
from laboratory.statements import (
    All,
    Any,
    Append,
    Copy,
    Delete,
    Foreign,
    Merge,
    Overwrite,
    Replace,
    Statement,
    Update,
    Where,
)

Fails = Callable[[Plan], bool]


def shrunk(plan: Plan, turns: tuple[tuple[int, int], ...], fails: Fails, *, most_tries: int = 400) -> Plan:
    """The smallest plan found that still fails.

    Args:
        turns: the switches of the failing run (`History.turns`).
        fails: runs a plan and says whether it shows the same failure.
        most_tries: how many plans are run at most.
    """
    scripted = replace(plan, schedule=Script(turns))
    if not fails(scripted):
        return plan  # the schedule alone does not repeat it: better the whole plan than nothing
    tries, best, smaller = 0, scripted, True
    while smaller and tries < most_tries:
        smaller = False
        for candidate in _smaller(best):
            tries += 1
            if fails(candidate):
                best, smaller = candidate, True
                break
            if tries >= most_tries:
                break
    return best


def _smaller(plan: Plan) -> Iterator[Plan]:
    yield from _without_a_writer(plan)
    for i in range(len(plan.failures)):
        yield replace(plan, failures=_cut(plan.failures, i))
    assert isinstance(plan.schedule, Script)
    for i in reversed(range(len(plan.schedule.turns))):
        yield replace(plan, schedule=Script(_cut(plan.schedule.turns, i)))
    for i, statement in enumerate(plan.statements):
        for simpler in _simpler(statement):
            yield replace(plan, statements=(*plan.statements[:i], simpler, *plan.statements[i + 1 :]))
    for i in range(len(plan.setup.before)):
        yield replace(plan, setup=replace(plan.setup, before=_cut(plan.setup.before, i)))
    if plan.setup.feed:
        yield replace(plan, setup=replace(plan.setup, feed=False))
    yield from _fewer_rows(plan)


def _without_a_writer(plan: Plan) -> Iterator[Plan]:
    assert isinstance(plan.schedule, Script)
    for gone in range(len(plan.statements) if len(plan.statements) > 1 else 0):
        moved = [(step, who - (who > gone)) for step, who in plan.schedule.turns if who != gone]
        failures = [Failure(f.who - (f.who > gone), f.call, f.how) for f in plan.failures if f.who != gone]
        yield Plan(plan.setup, _cut(plan.statements, gone), Script(tuple(moved)), tuple(failures), plan.seed)


def _simpler(statement: Statement) -> Iterator[Statement]:
    if isinstance(statement, Block):
        yield from _simpler_block(statement)
    if isinstance(statement, Foreign):
        if statement.manner != PLAIN:
            yield replace(statement, manner=PLAIN)
        yield from (replace(statement, inner=inner) for inner in _simpler(statement.inner))
    if isinstance(statement, Append | Overwrite | Replace) and len(statement.rows) > 1:
        yield from (replace(statement, rows=_cut(statement.rows, i)) for i in range(len(statement.rows)))
    if isinstance(statement, Append) and statement.bulk:
        yield replace(statement, bulk=False)
    if isinstance(statement, Merge) and len(statement.source) > 1:
        yield from (replace(statement, source=_cut(statement.source, i)) for i in range(len(statement.source)))
    if isinstance(statement, Merge) and len(statement.clauses) > 1:
        yield from (replace(statement, clauses=_cut(statement.clauses, i)) for i in range(len(statement.clauses)))
    if isinstance(statement, Update | Copy) and len(statement.sets) > 1:
        yield from (replace(statement, sets=_cut(statement.sets, i)) for i in range(len(statement.sets)))
    if isinstance(statement, Update | Copy | Delete):
        yield from (replace(statement, where=where) for where in _parts(statement.where))


def _simpler_block(block: Block) -> Iterator[Statement]:
    if len(block.statements) == 1 and not isinstance(block.statements[0], Made | Look):
        yield block.statements[0]
    plain = replace(block, isolation=None, resolution=None, goes_on=False)
    if plain != block:
        yield plain
    for i, each in enumerate(block.statements):
        if len(block.statements) > 1:
            yield replace(block, statements=_cut(block.statements, i))
        simpler: list[Statement | Made] = [] if isinstance(each, Made) else list(_simpler(each))
        yield from (replace(block, statements=_with(block.statements, i, other)) for other in simpler)


def _with(items: tuple, at: int, item: object) -> tuple:
    return (*items[:at], item, *items[at + 1 :])


def _parts(where: Where) -> Iterator[Where]:
    if isinstance(where, All | Any):
        yield from where.parts


def _fewer_rows(plan: Plan) -> Iterator[Plan]:
    files = plan.setup.files
    for i, rows in enumerate(files):
        fewer = [_cut(rows, j) for j in range(len(rows))] if len(rows) > 1 else []
        shorter = [(*files[:i], kept, *files[i + 1 :]) for kept in fewer]
        if len(files) > 1:
            shorter.append(_cut(files, i))
        yield from (replace(plan, setup=replace(plan.setup, files=kept)) for kept in shorter)


def _cut(items: tuple, at: int) -> tuple:
    return (*items[:at], *items[at + 1 :])
