"""The workloads of the contest of conflicts: operations as data, the same for all engines, drawn from a seed.

Knows rows and operations, and what an operation selects and changes, by which refusals are judged; knows no engine.
An operation's number says who does it and what it is, so that anyone can draw it again.

All workloads have one schema: ``id``, ``kind``, ``g`` (a group), ``n`` (a counter or a balance) and ``op``, the number
of the operation that changed the row last. By ``op`` the table itself tells which version is whose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

SEED = 57
ROWS = 10_000
GROUPS = 10
SPAN = 1_000_000
"""More operations than any writer does."""
ACCOUNTS = 100
OVERLAPPING, MERGED = 200, 5
"""Of so many keys that are there, and as many that are not yet, a MERGE brings so many."""
SMALL_FILES = 20
"""The table that is optimized begins with so many."""


class Row(NamedTuple):
    """A row, without the number of its operation."""

    id: int
    kind: str
    g: int
    n: int


@dataclass(frozen=True)
class Operation:
    """What a writer does in one commit.

    Attributes:
        number: its own among all of a run; 0 is nobody's.
        verb: ``update`` adds one to the rows of ``where``; ``insert`` appends ``rows``; ``merge`` adds their ``n`` to
            the rows with their ids, and inserts those that are missing; ``transfer`` does the same with two rows that
            are there and one that is new; ``optimize`` moves rows into fewer files.
        where: SQL text.
        ids: of the rows that the table begins with, those which ``where`` selects.
        group: the group whose rows ``where`` selects, if it is one.
        rows: what is brought.
        selects: names of what the conditions select: rows that are there or not, or groups.
        changes: names of what is different afterwards.
    """

    number: int
    verb: str
    where: str = ""
    ids: tuple[int, ...] = ()
    group: int | None = None
    rows: tuple[Row, ...] = ()
    selects: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()


Draw = Callable[[int, Random, int, int], Operation]
"""An operation of this number, by chance, of this writer among so many."""


@dataclass(frozen=True)
class Workload:
    """What writers do.

    Attributes:
        name: one word or two, as in the results.
        title: what the page calls it.
        draw: what a writer does next.
        files: how many files the table begins with.
    """

    name: str
    title: str
    draw: Draw
    files: int = 1


def initial() -> list[Row]:
    """The rows with which each table begins."""
    return [Row(number, "account", number % GROUPS, 0) for number in range(ROWS)]


def operation(workload: Workload, writers: int, number: int) -> Operation:
    """The operation of this number."""
    dice = Random(f"{SEED} {workload.name} {writers} {number}")
    return workload.draw(number, dice, writer_of(number), writers)


def writer_of(number: int) -> int:
    """Whose operation has this number."""
    return (number - 1) // SPAN


def operations(workload: Workload, writers: int, writer: int) -> Iterator[Operation]:
    """What one writer does, one after the other."""
    return (operation(workload, writers, writer * SPAN + count + 1) for count in range(SPAN))


# -- operations --------------------------------------------------------------------------------------------------------


def add_one(number: int, key: int) -> Operation:
    """Add one to a row."""
    named = frozenset({f"id {key}"})
    return Operation(number, "update", f"id = {key}", (key,), selects=named, changes=named)


def add_to_group(number: int, group: int) -> Operation:
    """Add one to all rows of a group."""
    named = frozenset({f"g {group}"})
    ids = tuple(range(group, ROWS, GROUPS))
    return Operation(number, "update", f"g = {group}", ids, group, selects=named, changes=named)


def insert(number: int, group: int) -> Operation:
    """A new row of a group; it selects nothing."""
    rows = (Row(ROWS + number, "account", group, 1),)
    return Operation(number, "insert", rows=rows, changes=frozenset({f"g {group}", f"id {ROWS + number}"}))


def upsert(number: int, verb: str, rows: tuple[Row, ...]) -> Operation:
    """Rows that are added to those with their ids, or inserted."""
    named = frozenset(f"id {row.id}" for row in rows)
    return Operation(number, verb, rows=rows, selects=named, changes=named)


def optimize(number: int) -> Operation:
    """It changes no row, so that nothing of another writer's stands in its way, nor it in another's."""
    return Operation(number, "optimize")


# -- workloads ---------------------------------------------------------------------------------------------------------


def _own_row(number: int, dice: Random, writer: int, writers: int) -> Operation:
    return add_one(number, dice.randrange(writer, ROWS, writers))


def _hot_row(number: int, dice: Random, writer: int, writers: int) -> Operation:
    """Half of them go to one row, and half to three others."""
    return add_one(number, dice.choice((0, 0, 0, 1, 2, 3)))


def _transfer(number: int, dice: Random, writer: int, writers: int) -> Operation:
    giver, taker = dice.sample(range(ACCOUNTS), 2)
    amount = dice.randint(1, 9)
    sides = Row(giver, "account", giver % GROUPS, -amount), Row(taker, "account", taker % GROUPS, amount)
    return upsert(number, "transfer", (*sides, Row(ROWS + number, "journal", giver % GROUPS, amount)))


def _merge(number: int, dice: Random, writer: int, writers: int) -> Operation:
    keys = [key if key < OVERLAPPING else ROWS + key for key in dice.sample(range(2 * OVERLAPPING), MERGED)]
    return upsert(number, "merge", tuple(Row(key, "account", key % GROUPS, 1) for key in keys))


def _beside_optimize(number: int, dice: Random, writer: int, writers: int) -> Operation:
    """One of them optimizes without end; the others update rows of their own, and append rows."""
    if writer == writers - 1:
        return optimize(number)
    is_insert = dice.random() < 0.5
    return insert(number, dice.randrange(GROUPS)) if is_insert else _own_row(number, dice, writer, writers)


def _phantoms(number: int, dice: Random, writer: int, writers: int) -> Operation:
    group = dice.randrange(GROUPS)
    return insert(number, group) if dice.random() < 0.5 else add_to_group(number, group)


WORKLOADS = (
    Workload("own rows", "Own rows of one file", _own_row),
    Workload("hot rows", "Hot rows", _hot_row),
    Workload("transfers", "Bank transfers", _transfer),
    Workload("merges", "MERGE of overlapping keys", _merge),
    Workload("optimize", "Changes beside OPTIMIZE", _beside_optimize, SMALL_FILES),
    Workload("phantoms", "Conditions that new rows satisfy", _phantoms),
)
BY_NAME = {each.name: each for each in WORKLOADS}
