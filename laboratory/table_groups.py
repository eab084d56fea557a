"""Transactions over several tables as values: rows, conditions, changes, ways to commit, and the moments of a history.

Knows nothing of the product, and not which steps there are (`group_steps`). There is one log of all tables, in the
order in which commits became final, so a *position* in it is a version of every table, and *a cut* is one for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

TABLES = ("A", "B")


class Row(NamedTuple):
    """A row; equal ones are told apart by the number of the transaction that wrote them, -1 for those of the start."""

    key: int
    value: int
    by: int


Rows = frozenset[Row]
START: Rows = frozenset({Row(1, 1, -1), Row(2, 1, -1)})


class Read(NamedTuple):
    """A condition of a transaction on a table: a key, a value, both, or neither, which selects all rows."""

    table: str
    key: int | None = None
    value: int | None = None

    def selects(self, row: Row) -> bool:
        return self.key in (None, row.key) and self.value in (None, row.value)

    def of(self, rows: Rows) -> Rows:
        return frozenset(filter(self.selects, rows))


class Change(NamedTuple):
    """What a transaction does to one table: the rows that it marks, and those that it adds."""

    table: str
    marks: Rows
    adds: Rows


class Commit(NamedTuple):
    """A change in the log: whose it is, and whether its transaction has read nothing."""

    who: int
    change: Change
    is_blind: bool


Log = tuple[Commit, ...]
Seen = tuple[Rows, ...]


@dataclass(frozen=True, eq=False)
class Transaction:
    """Conditions, and a function from the rows that they select to changes, at most one for each table.

    Attributes:
        effect: None for a transaction that only reads.
        is_stranger: whether it is of an engine that commits each table by itself and knows no records.
    """

    text: str
    reads: tuple[Read, ...]
    effect: Callable[[Seen, int], tuple[Change, ...]] | None = None
    is_stranger: bool = False

    def changes(self, seen: Seen, who: int) -> tuple[Change, ...]:
        """What it changes where its conditions select these rows."""
        found = self.effect(seen, who) if self.effect else ()
        return tuple(change for change in found if change.marks or change.adds)


Program = tuple[Transaction, ...]


@dataclass(frozen=True, eq=False)
class Way:
    """A way to commit transactions of several tables.

    Attributes:
        commit: ``each``: table after table. ``record``: by a record in an intent log; then each table is published.
            ``group``: the writer judges at a position of the catalog, which ratifies all commits if what it compares
            has not changed since.
        writer_takes_cut: whether a transaction that may write reads all tables at one position.
        observer_takes_cut: the same of one that only reads.
        observer_knows: whether it sees records that are not published.
        judges_reads: whether winners in tables that are read and not written are judged.
        compares: ``nothing``, the tables ``written``, those ``touched`` (read or written), or the whole ``catalog``.
        at_once: whether the catalog ratifies all commits of a group in one step.
        by: what is judged: the ``rows`` of winners, or whole ``tables``.
        marks: whether it is a conflict that a winner removed a row which ours marks.
        removed: the same of a row that ours read and does not mark.
        added: whether it is a conflict that a winner added a row which ours selects.
        carries: whether winners' changes of a table that ours writes are kept.
        newest: whether a cut is the newest one.
        passes: which blind appends are not judged: ``none``, or those at the end of the ``catalog``'s log, or of the
            log of each ``table``.
    """

    commit: Literal["each", "record", "group"]
    writer_takes_cut: bool = True
    observer_takes_cut: bool = True
    observer_knows: bool = True
    judges_reads: bool = True
    compares: Literal["nothing", "written", "touched", "catalog"] = "touched"
    at_once: bool = True
    by: Literal["rows", "tables"] = "rows"
    marks: bool = True
    removed: bool = True
    added: bool = True
    carries: bool = True
    newest: bool = True
    passes: Literal["none", "catalog", "table"] = "none"


class Process(NamedTuple):
    """How far a transaction has come.

    Attributes:
        phase: ``reads``, ``judges``, ``commits``, ``publishes``, ``ended``, ``refused`` or ``crashed``.
        read_at: the positions at which it has read its tables, in their order.
        seen: what its conditions selected, once it has read all tables.
        judged: the position up to which its winners were judged, or where its record begins.
        staged: what it is to commit.
        done: how many of these are committed, or published.
        after: which transactions had ended when it began; None before that.
        by_rows: whether it was judged to be in order, where a judge of whole tables had refused it.
    """

    who: int
    phase: str = "reads"
    read_at: tuple[int, ...] = ()
    seen: Seen | None = None
    judged: int = 0
    staged: Log = ()
    done: int = 0
    after: frozenset[int] | None = None
    by_rows: bool = False


class Shared(NamedTuple):
    """What all transactions share: the log, and the position up to which each table is published."""

    log: Log = ()
    published: tuple[int, ...] = (0,) * len(TABLES)


class State(NamedTuple):
    """A moment of a history; `crashed` if a transaction has."""

    shared: Shared
    processes: tuple[Process, ...]
    crashed: bool = False


ENDS = frozenset({"ended", "refused", "crashed"})
"""The phases in which a transaction takes no further step."""


@cache
def rows_of(log: Log, table: str) -> Rows:
    """The rows of a table after a log."""
    rows = START
    for _, change, _ in log:
        if change.table == table:
            rows = rows - change.marks | change.adds
    return rows


@cache
def tables_read(transaction: Transaction) -> tuple[str, ...]:
    """The tables of its conditions, in the order in which they are read."""
    return tuple(dict.fromkeys(read.table for read in transaction.reads))
