"""Plans with blocks, by chance: one to three transactions of several statements among single ones.

Pure: dice in, plans out. Half of the plans are random; the others follow shapes that break naive ways to join
statements, with random details (`laboratory.plan_generator` does so with single statements).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from anabranch._transaction.phases import PHASES
from laboratory.blocks import Block, Look, Made, Recall, Tell, Unless
from laboratory.conditions import Where
from laboratory.plan_generator import Maker
from laboratory.plans import Dice, Failure, Moments, Plan, Script
from laboratory.runs import WAYS
from laboratory.statements import (
    Append,
    Configure,
    Copy,
    Delete,
    Foreign,
    Merge,
    Plus,
    Put,
    Restore,
    Select,
    Statement,
    Take,
    Test,
    Update,
    Vacuum,
    When,
)

FEEDS, ROW_IDS, FAULTY = 0.4, 0.15, 0.12
"""How many tables have a feed or row ids, and how many plans have faults."""
_MOST_STATEMENTS = 5
_UPSERT = (When("matched", sets=(Take("x"),)), When("not matched"))
Parts = tuple[Statement | Made, ...]


def block_plan_for(number: int) -> Plan:
    """The plan of an integer."""
    maker = Maker(random.Random(f"blocks {number}"))
    setup, dice = maker.setup(), maker.dice
    maker.partitioned = setup.partitioned
    setup = replace(setup, feed=dice.random() < FEEDS, row_ids=dice.random() < ROW_IDS)
    if dice.random() < 0.5:
        statements = list(dice.choice(SHAPES)(maker))
    else:
        statements = [_block(maker) for _ in range(dice.choice((1, 1, 2, 2, 3)))]
        statements += [_single(maker) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    if dice.random() < 0.6:
        dice.shuffle(statements)
    if setup.row_ids or any(isinstance(each, Vacuum) for each in statements):
        statements = [_ours(each, maker, row_ids=setup.row_ids) for each in statements]
    if maker.layout is not None:
        setup = replace(setup, files=maker.layout[0], before=maker.layout[1])
    return Plan(
        setup, tuple(statements), _schedule(maker, number, len(statements)), _failures(maker, statements), number
    )


def _schedule(maker: Maker, number: int, writers: int) -> Moments | Dice | Script:
    if maker.dice.random() < 0.25:
        phases = sorted(maker.dice.choice(range(len(PHASES) - 1)) for _ in range(writers - 1))
        return Moments(tuple(PHASES[each] for each in phases))
    return maker.schedule(number)


def _failures(maker: Maker, statements: Sequence[Statement]) -> tuple[Failure, ...]:
    if maker.dice.random() >= FAULTY:
        return ()
    blocks = [who for who, each in enumerate(statements) if isinstance(each, Block)]
    who = maker.dice.choice(blocks) if maker.dice.random() < 0.8 else maker.dice.randrange(len(statements))
    return (Failure(who, maker.dice.randrange(1, 80), maker.dice.choice(tuple(WAYS))),)


def _ours(statement: Statement, maker: Maker, *, row_ids: bool) -> Statement:
    """A statement beside a VACUUM RETAIN 0, or on a table with row ids, which no other engine here assigns."""
    if isinstance(statement, Restore):
        return replace(statement, ours=True)
    is_foreign = isinstance(statement, Foreign) or (isinstance(statement, Copy) and not isinstance(statement, Select))
    return maker.update() if row_ids and is_foreign else statement


# -- blocks ------------------------------------------------------------------------------------------------------------


def _block(maker: Maker) -> Block:
    """A block of one to five statements."""
    parts = Parts()
    for _ in range(maker.dice.choice((1, 2, 2, 2, 3, 3, 4, 5))):
        parts += maker.dice.choice(_PARTS)(maker)
    return _asking(maker, parts[:_MOST_STATEMENTS])


def _asking(maker: Maker, parts: Parts) -> Block:
    """A block of these statements, which perhaps asks for other dials."""
    isolation = "Serializable" if maker.dice.random() < 0.1 else None
    resolution = maker.dice.choice(("file", "row", "redo", "redo")) if maker.dice.random() < 0.15 else None
    return Block(parts, isolation, resolution, maker.dice.random() < 0.5, maker.dice.random() < 0.04)


def _asked(maker: Maker) -> Parts:
    """A query, and perhaps what the program makes of its answer."""
    made: Made | Statement | None = maker.dice.choice(
        (
            None,
            Recall(maker.sets()),
            Tell(maker.where()),
            Unless(maker.append()),
            Unless(maker.delete()),
        )
    )
    look = _look(maker, maker.where())
    return (look,) if made is None else (look, made)


def _look(maker: Maker, where: Where) -> Look:
    return Look(where, maker.dice.choice(("whole", "whole", "part", "files")))


def _select(maker: Maker) -> Parts:
    return (Select(maker.sets(), maker.where(), overwrites=maker.dice.random() < 0.2),)


_PARTS: tuple[Callable[[Maker], Parts], ...] = (
    *[lambda maker: (maker.append(),)] * 4,
    *[lambda maker: (maker.update(),)] * 5,
    *[lambda maker: (maker.delete(),)] * 3,
    *[lambda maker: (maker.merge(),)] * 3,
    lambda maker: (maker.replace(),),
    lambda maker: (maker.dynamic() if maker.dice.random() < 0.5 else maker.overwrite(),),
    _asked,
    _select,
)


def _single(maker: Maker) -> Statement:
    """A statement that stands alone: any, but mostly one that changes rows."""
    roll = maker.dice.random()
    if roll < 0.12:
        return maker.optimize()
    if roll < 0.18:
        return maker.dice.choice((maker.vacuum(), maker.restore(), maker.restore(), Configure()))
    makers = (maker.append, maker.append, maker.update, maker.update, maker.delete, maker.merge, maker.foreign)
    return maker.dice.choice(makers)()


# -- shapes ------------------------------------------------------------------------------------------------------------


def _absent_twice(maker: Maker) -> Sequence[Statement]:
    """Each inserts where it has seen nothing, what the other has looked for."""
    a, b = maker.dice.sample((2, 3, 4), 2)
    blocks = [
        _asking(maker, (_look(maker, Test("p", "=", look)), Unless(maker.append(p=brings)), *_perhaps(maker)))
        for look, brings in ((a, b), (b, a))
    ]
    return (*blocks, *maker.perhaps(maker.append))


def _lost_update(maker: Maker) -> Sequence[Statement]:
    """A program counts rows, and writes the number, while others change or add such rows."""
    look = _look(maker, Test("p", "=", 1))
    block = _asking(maker, (*_perhaps(maker), look, Tell(Test("k", "=", maker.dice.randrange(1, 4)))))
    others = (maker.append, lambda: maker.append(p=1), lambda: Update((Put("p", 1),), maker.where()), maker.delete)
    return (block, *(maker.dice.choice(others)() for _ in range(maker.dice.choice((1, 2)))))


def _idle_skew(maker: Maker) -> Sequence[Statement]:
    """Each looks by an UPDATE or DELETE, which finds nothing, for what the other brings."""
    a, b = maker.dice.sample((2, 3, 4), 2)
    idle = [maker.dice.choice((Update((Plus("x"),), Test("p", "=", p)), Delete(Test("p", "=", p)))) for p in (a, b)]
    moves = [Update((Put("p", p),), Test("k", "=", k)) for k, p in ((1, b), (2, a))]
    return tuple(_asking(maker, (*_perhaps(maker), *pair)) for pair in zip(idle, moves, strict=True))


def _own_rows(maker: Maker) -> Sequence[Statement]:
    """Rows that a block brings itself are changed and deleted in it, while others append, move and change rows."""
    row = maker.row(p=1, x=0)
    own: tuple[Callable[[], Statement], ...] = (
        lambda: Update((Plus("x"),), Test("k", "=", row[0] or 0)),
        lambda: Update((Plus("x"),), Test("p", "=", 1)),
        lambda: Delete(Test("k", "=", row[0] or 0)),
        lambda: Merge(((row[0], 0, 5), maker.row()), ("k",), _UPSERT),
        lambda: Delete(Test("x", ">=", 1)),
    )
    parts = tuple(maker.dice.choice(own)() for _ in range(maker.dice.choice((1, 2, 3, 3))))
    block = _asking(maker, (*_perhaps(maker), Append((row, maker.row())), *parts)[:_MOST_STATEMENTS])
    others = (maker.append, lambda: maker.append(p=1), maker.update, maker.optimize, maker.delete)
    return (block, *(maker.dice.choice(others)() for _ in range(maker.dice.choice((1, 1, 2, 2)))))


def _same_rows(maker: Maker) -> Sequence[Statement]:
    """Two blocks, or a block and a statement, that want the same row by different statements."""
    where = Test("k", "=", maker.dice.randrange(1, 4))
    wants: tuple[Callable[[], Statement], ...] = (
        lambda: Update((Plus("x"),), where),
        lambda: Update((Put("x", maker.value()),), where),
        lambda: Delete(where),
        lambda: Merge((maker.row_of(where.value), maker.row()), ("k",), _UPSERT),
    )
    first = _asking(maker, (maker.append(), maker.dice.choice(wants)(), *_perhaps(maker)))
    second = maker.dice.choice(wants)()
    return (first, second if maker.dice.random() < 0.5 else _asking(maker, (*_perhaps(maker), second, maker.append())))


def _upserts(maker: Maker) -> Sequence[Statement]:
    """A MERGE in a block inserts keys that others bring meanwhile, or has matched rows that go meanwhile."""
    key = maker.dice.choice((1, 2, 3, 20))
    never = When("matched", Test("x", "=", 99), (Take("x"),))
    clauses = maker.dice.choice((_UPSERT, _UPSERT, (never, When("not matched"))))
    merge = Merge((maker.row_of(key), maker.row_of(30)), ("k",), clauses)
    block = _asking(maker, (*_perhaps(maker), merge, *_perhaps(maker)))
    others = (
        lambda: Append((maker.row_of(key),)),
        lambda: Append((maker.row_of(30),)),
        lambda: Delete(Test("k", "=", key)),
        lambda: Merge((maker.row_of(key), maker.row_of(30)), ("k",), _UPSERT),
        maker.update,
    )
    return (block, *(maker.dice.choice(others)() for _ in range(maker.dice.choice((1, 2, 2)))))


def _blind_then_reader(maker: Maker) -> Sequence[Statement]:
    """A block changes p=1; a blind append brings p=1; then somebody copies p=1."""
    change = Update((Put("x", maker.dice.randrange(3, 6)),), Test("p", "=", 1))
    parts = (change,) if maker.dice.random() < 0.3 else (change, *_perhaps(maker), maker.append())
    reader = maker.dice.choice((Copy, Select))((Put("p", 2),), Test("p", "=", 1))
    return (_asking(maker, parts), maker.append(p=1, x=0), reader)


def _moved(maker: Maker) -> Sequence[Statement]:
    """Rows are moved under the feet of a block."""
    maker.layout = (
        (((1, 1, 0), (2, 1, 2), (3, 1, None)), ((4, 1, 0), (5, 0, 1)), ((6, 0, 2), (7, 1, 1))),
        maker.dice.choice(((), (Delete(Test("k", "=", 2)),))),
    )
    others = (maker.update, maker.delete, maker.append, maker.optimize, lambda: _block(maker))
    return (
        _block(maker),
        maker.optimize(),
        *(maker.dice.choice(others)() for _ in range(maker.dice.choice((0, 1, 2)))),
    )


def _perhaps(maker: Maker) -> Parts:
    """One more statement, or none."""
    return maker.dice.choice(_PARTS[:15])(maker) if maker.dice.random() < 0.5 else ()


SHAPES: tuple[Callable[[Maker], Sequence[Statement]], ...] = (
    _absent_twice,
    _lost_update,
    _idle_skew,
    _own_rows,
    _own_rows,
    _same_rows,
    _upserts,
    _blind_then_reader,
    _moved,
)
