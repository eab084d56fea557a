"""The judge of histories over several tables: whether there is a serial order, and what to call it where there is none.

Knows the model's transactions and how a history ended; knows nothing of how a way commits. Brute force: every order of
the transactions that took effect and of those that only read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations

from laboratory.table_groups import (
    START,
    TABLES,
    Program,
    Rows,
    Seen,
    State,
    Transaction,
    Way,
    rows_of,
    tables_read,
)

HALF_CRASHED = "half a transaction after a crash"
HALF_REFUSED = "half a transaction after a conflict"
LOST = "lost update"
FRACTURED = "fractured read"
SKEW = "write skew"
LONGER = "longer cycle"
STALE = "stale read"
KINDS = (HALF_CRASHED, HALF_REFUSED, LOST, FRACTURED, SKEW, LONGER, STALE)

Bag = tuple[tuple[int, int], ...]


def anomaly_of(way: Way, program: Program, end: State) -> str | None:
    """The kind of what is wrong with a history that has ended; None where it has a serial order.

    The order must give what every transaction in it read, and the last rows of all tables; and a transaction that had
    ended before another began must stand before it. A history that fails only in the latter has a stale read.
    """
    ordered = _serial_orders(way, program, end)
    first = next(ordered, None)
    if first is None:
        return _kind_of(way, program, end)
    is_timely = any(_keeps_time(end, order) for order in (first, *ordered))
    return None if is_timely else STALE


def _kind_of(way: Way, program: Program, end: State) -> str:
    half = _halves(way, end)
    if half:
        return HALF_CRASHED if any(end.processes[who].phase == "crashed" for who in half) else HALF_REFUSED
    kinds = ((LOST, _has_lost), (FRACTURED, _has_fractured), (SKEW, _has_skew))
    return next((kind for kind, holds in kinds if holds(program, end)), LONGER)


# -- the serial order --------------------------------------------------------------------------------------------------


def _serial_orders(way: Way, program: Program, end: State) -> Iterator[tuple[int, ...]]:
    """Each order that gives what was read and what is left."""
    seen = tuple(process.seen and _bags(process.seen) for process in end.processes)
    last = tuple(_bag(rows_of(end.shared.log[: _shown_to(way, end, table)], table)) for table in TABLES)
    for members in _members(way, end):
        yield from (order for order in permutations(members) if _explains(program, order, seen, last))


def _shown_to(way: Way, end: State, table: str) -> int:
    """Up to which position those who read in this way see a table in the end."""
    is_all = way.commit != "record" or way.observer_knows
    return len(end.shared.log) if is_all else end.shared.published[TABLES.index(table)]


def _members(way: Way, end: State) -> Iterator[tuple[int, ...]]:
    """Whose order is sought: all that took effect, and all that ended without one. What took half effect may count."""
    half = _halves(way, end)
    whole = {process.who for process in end.processes if _effects(way, end, process.who)} - set(half)
    whole |= {process.who for process in end.processes if process.phase == "ended" and not process.staged}
    yield tuple(sorted(whole))
    if half:
        yield tuple(sorted(whole | set(half)))


def _halves(way: Way, end: State) -> list[int]:
    """Whose changes are there in one table and not in another."""
    effects = {process.who: _effects(way, end, process.who) for process in end.processes}
    return [who for who, count in effects.items() if 0 < count < len(end.processes[who].staged)]


def _effects(way: Way, end: State, who: int) -> int:
    """In how many tables the end shows what a transaction did; a commit that was lost is empty."""
    return sum(
        commit.who == who
        and bool(commit.change.marks or commit.change.adds)
        and at < _shown_to(way, end, commit.change.table)
        for at, commit in enumerate(end.shared.log)
    )


def _keeps_time(end: State, order: tuple[int, ...]) -> bool:
    return not any((end.processes[who].after or frozenset()) & set(order[at:]) for at, who in enumerate(order))


def _explains(program: Program, order: tuple[int, ...], seen: tuple[object, ...], last: tuple[Bag, ...]) -> bool:
    tables = (START,) * len(TABLES)
    for who in order:
        read, tables = _run(program[who], who, tables)
        if read != seen[who]:
            return False
    return tuple(map(_bag, tables)) == last


@cache
def _run(transaction: Transaction, who: int, tables: tuple[Rows, ...]) -> tuple[tuple[Bag, ...], tuple[Rows, ...]]:
    """What a transaction reads where it runs alone, and the tables after it."""
    seen = tuple(read.of(tables[TABLES.index(read.table)]) for read in transaction.reads)
    changes = {change.table: change for change in transaction.changes(seen, who)}
    after = tuple(
        rows - changes[table].marks | changes[table].adds if table in changes else rows
        for table, rows in zip(TABLES, tables, strict=True)
    )
    return _bags(seen), after


@cache
def _bag(rows: Rows) -> Bag:
    return tuple(sorted((row.key, row.value) for row in rows))


def _bags(seen: Seen) -> tuple[Bag, ...]:
    return tuple(map(_bag, seen))


# -- kinds -------------------------------------------------------------------------------------------------------------


def _has_lost(program: Program, end: State) -> bool:
    """Whether a row was removed twice, or by a transaction that did not mark it."""
    removed = Counter((commit.change.table, row) for commit in end.shared.log for row in commit.change.marks)
    staged = [commit.change for process in end.processes for commit in process.staged]
    marked = {(change.table, row) for change in staged for row in change.marks}
    return any(count > 1 for count in removed.values()) or not removed.keys() <= marked


def _has_fractured(program: Program, end: State) -> bool:
    """Whether somebody read what a transaction did in one table, and not what it did in another."""
    return any(
        len(_shown(program, end, process.who, writer)) == 2
        for process in end.processes
        if process.phase == "ended"
        for writer in range(len(program))
        if writer != process.who
    )


def _shown(program: Program, end: State, reader: int, writer: int) -> set[bool]:
    """Of each table that one wrote and another read: whether the change was there already."""
    at = _positions(program, end, reader)
    return {place < at[table] for place, table in _places(end, writer) if table in at}


def _positions(program: Program, end: State, who: int) -> dict[str, int]:
    return dict(zip(tables_read(program[who]), end.processes[who].read_at, strict=False))


def _places(end: State, who: int) -> list[tuple[int, str]]:
    return [(at, commit.change.table) for at, commit in enumerate(end.shared.log) if commit.who == who]


def _has_skew(program: Program, end: State) -> bool:
    """Whether each of two transactions that wrote has read what the other changed later."""
    writers = {commit.who for commit in end.shared.log}
    return any(
        _overlooks(program, end, one, other) and _overlooks(program, end, other, one)
        for one, other in combinations(sorted(writers), 2)
    )


def _overlooks(program: Program, end: State, reader: int, writer: int) -> bool:
    """Whether one changed rows that another selects, after that one had read the table."""
    at = _positions(program, end, reader)
    later = [end.shared.log[place].change for place, table in _places(end, writer) if place >= at.get(table, place + 1)]
    return any(
        read.table == change.table and bool(read.of(change.marks | change.adds))
        for change in later
        for read in program[reader].reads
    )
