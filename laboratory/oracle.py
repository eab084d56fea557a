"""The oracle: whether what was seen has a serial order.

Knows statements, when each began and ended, and the rows of every version; knows nothing of how they came about.
Pure, and brute force where the commit order does not explain what was seen.

- *Serializable*: replaying the commits in their order gives every version's rows.
- *WriteSerializable*: there is one order of all transactions, in which A stands before B if A had ended before B began,
  whose restriction to the first n commits gives version n's rows, for every n.

In both, each transaction has to report as many changed rows as it changes at its place in the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from laboratory.statements import Rows, Statement, Told, bag


@dataclass(frozen=True)
class Landed:
    """A transaction that is in the log: who, what, when it ran (in steps of the schedule) and what it reported."""

    who: int
    statement: Statement
    version: int
    began: int
    ended: int | None
    reported: Told = None


Order = tuple[Landed, ...]


def serial_order(
    initial: Rows,
    landed: Sequence[Landed],
    seen: Mapping[int, Rows],
    *,
    level: str,
    fits: Callable[[Order], bool] = lambda order: True,
) -> Order | None:
    """The order that explains what was seen, or None where there is none.

    Args:
        initial: the rows before the first of them.
        landed: the transactions by version.
        seen: the rows of each of their versions.
        level: ``Serializable`` or ``WriteSerializable``.
        fits: what else must be true of the order of the first commits, whatever their number.
    """
    by_commit = tuple(sorted(landed, key=lambda each: each.version))
    prefixes = [by_commit[: n + 1] for n in range(len(by_commit))]
    explained = all(_gives(initial, each, seen[each[-1].version]) and fits(each) for each in prefixes)
    if explained and _reports(initial, by_commit):
        return by_commit
    if level == "Serializable":
        return None
    orders: list[Order] = [()]
    for each in by_commit:
        orders = [
            new
            for old in orders
            for new in _placed(old, each)
            if _gives(initial, new, seen[each.version]) and fits(new)
        ]
    return next((order for order in orders if _reports(initial, order)), None)


def first_unexplained(
    initial: Rows,
    landed: Sequence[Landed],
    seen: Mapping[int, Rows],
    *,
    level: str,
    fits: Callable[[Order], bool] = lambda order: True,
) -> int | None:
    """The first version whose rows no order explains, for the report; None where only the reported counts are wrong."""
    by_commit = sorted(landed, key=lambda each: each.version)
    for n, each in enumerate(by_commit):
        silent = [Landed(t.who, t.statement, t.version, t.began, t.ended) for t in by_commit[: n + 1]]
        if serial_order(initial, silent, seen, level=level, fits=fits) is None:
            return each.version
    return None


def replayed(initial: Rows, order: Sequence[Landed]) -> Rows:
    """The rows after running statements one after the other."""
    rows = initial
    for each in order:
        rows, _ = each.statement.apply(rows)
    return rows


def _placed(order: Order, new: Landed) -> Iterator[Order]:
    """The order with one more transaction, at every place that real time allows, last place first."""
    for place in range(len(order), -1, -1):
        yield (*order[:place], new, *order[place:])
        if place and (ended := order[place - 1].ended) is not None and ended < new.began:
            return


def _gives(initial: Rows, order: Sequence[Landed], wanted: Rows) -> bool:
    return bag(replayed(initial, order)) == bag(wanted)


def _reports(initial: Rows, order: Sequence[Landed]) -> bool:
    rows = initial
    for each in order:
        rows, changed = each.statement.apply(rows)
        if each.reported is not None and changed is not None and each.reported != changed:
            return False
    return True
