"""Blocks: transactions of several statements, as data and as functions from rows to rows.

Pure, and written apart from the product. Besides the statements of `laboratory.statements`, a block may hold a `Look`,
which is a query whose answer the program sees, and statements that the program makes of the last answer. A block tells
what each of its statements has told: the answers have to be those of the block's place in the serial order, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from laboratory.conditions import COLUMNS, Assignment, Put, Row, Rows, Where, assigned
from laboratory.statements import Append, Copy, Dynamic, Merge, Overwrite, Replace, Select, Statement, Told, Update, bag

_WIDTH = len(COLUMNS)


@dataclass(frozen=True)
class Look:
    """A query: the program reads the rows that a condition selects.

    Attributes:
        known: what the product knows of it: the condition, a part of it, or only the files that may hold such rows.
    """

    where: Where
    known: Literal["whole", "part", "files"] = "whole"

    def __str__(self) -> str:
        return f"rows = SELECT * FROM t WHERE {self.where}{'' if self.known == 'whole' else f' (by {self.known})'}"

    def seen(self, rows: Rows) -> Rows:
        """What the program sees, in a fixed order."""
        return tuple(sorted((row for row in rows if self.where.truth(row) is True), key=str))

    def apply(self, rows: Rows) -> tuple[Rows, Told]:
        """No row is changed; it tells what it sees."""
        return rows, self.seen(rows)


@dataclass(frozen=True)
class Recall:
    """INSERT of the rows that the program has seen last, with some columns changed."""

    sets: tuple[Assignment, ...]

    def __str__(self) -> str:
        return f"INSERT rows WITH {', '.join(map(str, self.sets))}"

    def of(self, seen: Rows) -> Statement | None:
        """The statement that it is, or None where there is nothing to insert."""
        return Append(tuple(assigned(row, self.sets) for row in seen)) if seen else None


@dataclass(frozen=True)
class Tell:
    """UPDATE SET x = the number of rows that the program has seen last."""

    where: Where

    def __str__(self) -> str:
        return f"UPDATE SET x = count(rows) WHERE {self.where}"

    def of(self, seen: Rows) -> Statement | None:
        """The statement that it is."""
        return Update((Put("x", len(seen)),), self.where)


@dataclass(frozen=True)
class Unless:
    """A statement that the program runs only if it has seen no row last."""

    statement: Statement

    def __str__(self) -> str:
        return f"IF NOT EXISTS rows THEN {self.statement}"

    def of(self, seen: Rows) -> Statement | None:
        """The statement, or None."""
        return None if seen else self.statement


Made = Recall | Tell | Unless
"""What a program makes of rows that it has seen."""


@dataclass(frozen=True)
class Block:
    """BEGIN, some statements, COMMIT: all of them or none.

    Attributes:
        isolation, resolution: what the transaction asks for; None: as the table says.
        goes_on: whether the program goes on where the store refuses a statement; else it gives all up.
        gives_up: whether it ends with ROLLBACK.
    """

    statements: tuple[Statement | Made, ...]
    isolation: str | None = None
    resolution: str | None = None
    goes_on: bool = False
    gives_up: bool = False

    def __str__(self) -> str:
        asked = ", ".join(filter(None, (self.isolation, self.resolution)))
        end = "ROLLBACK" if self.gives_up else "COMMIT"
        return "; ".join([f"BEGIN{f' ({asked})' if asked else ''}", *map(str, self.statements), end])

    @property
    def sees_no_rows(self) -> bool:
        """Whether the program sees no row of the table, so that all of it may run again."""
        return not any(isinstance(each, Look | Copy) for each in self.statements)

    @property
    def kinds(self) -> list[type]:
        """The kinds of its statements, those that it may run included."""
        return [type(each.statement if isinstance(each, Unless) else each) for each in self.statements]

    def apply(self, rows: Rows) -> tuple[Rows, tuple[Told, ...]]:
        """The rows after all of them, and what each has told."""
        seen: Rows = ()
        told: list[Told] = []
        for each in self.statements:
            statement = made_of(each, seen)
            rows, answer = (rows, None) if statement is None else statement.apply(rows)
            seen = each.seen(rows) if isinstance(each, Look) else seen
            told.append(answer)
        return rows, tuple(told)

    def is_idle(self, rows: Rows) -> bool:
        """Whether it has nothing to commit where it meets these rows."""
        seen: Rows = ()
        for each in self.statements:
            statement = made_of(each, seen)
            seen = each.seen(rows) if isinstance(each, Look) else seen
            if statement is not None and not isinstance(each, Look) and statement.apply(rows)[1] != 0:
                return False
        return True


def made_of(statement: Statement | Made, seen: Rows) -> Statement | None:
    """The statement that a program runs that has seen these rows last, or None where it runs nothing."""
    return statement.of(seen) if isinstance(statement, Made) else statement


# -- what one commit of it changes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Net:
    """The net difference that a block makes: the rows that it takes from the table, and those that it brings."""

    taken: Counter[Row]
    brought: Counter[Row]


def net_of(block: Block, rows: Rows) -> Net:
    """What a block changes of these rows; a row that comes and goes inside is not in it.

    Behind its columns each row of the table carries itself and whether it was touched; a new one carries nothing.
    """
    carried: Rows = tuple((*row, number, 0) for number, row in enumerate(rows))
    seen: Rows = ()
    for each in block.statements:
        statement = made_of(each, seen)
        if isinstance(each, Look):
            seen = each.seen(tuple(row[:_WIDTH] for row in carried))
        elif statement is not None:
            carried = _carried(statement, carried)
    unchanged = {row[_WIDTH] for row in carried if len(row) > _WIDTH and not row[_WIDTH + 1]}
    brought = bag(row[:_WIDTH] for row in carried if len(row) == _WIDTH or row[_WIDTH + 1])
    return Net(bag(row for number, row in enumerate(rows) if number not in unchanged), brought)


def _carried(statement: Statement, rows: Rows) -> Rows:
    """The rows after a statement, which touches those that it selects."""
    if isinstance(statement, Copy):
        kept = () if isinstance(statement, Select) and statement.overwrites else rows
        return (*kept, *statement.chosen(tuple(row[:_WIDTH] for row in rows)))
    touched = tuple(_touched(row) if len(row) > _WIDTH and _selects(statement, row) else row for row in rows)
    return statement.apply(touched)[0]


def _touched(row: Row) -> Row:
    return (*row[:-1], 1)


def _selects(statement: Statement, row: Row) -> bool:
    """Whether an UPDATE or a MERGE gives a row a new image, or takes it."""
    if isinstance(statement, Update):
        return statement.where.truth(row) is True
    if isinstance(statement, Merge):
        is_matched = any(statement.matches(row, source) is True for source in statement.source)
        return statement.acting("matched" if is_matched else "not matched by source", row) is not None
    return False


# -- what may run again ------------------------------------------------------------------------------------------------


def counts_of(block: Block, rows: Rows) -> tuple[Told, ...]:
    """The numbers that its statements report where it meets these rows, clause by clause; it sees no rows."""
    found: list[Told] = []
    for each in block.statements:
        assert not isinstance(each, Made | Look), "the program sees no rows"
        found.append(_counts(each, rows))
        rows = each.apply(rows)[0]
    return tuple(found)


def _counts(statement: Statement, rows: Rows) -> Told:
    if isinstance(statement, Merge):
        return _counts_of_merge(statement, rows)
    if isinstance(statement, Replace | Dynamic | Overwrite):
        return len(rows) + len(statement.rows) - len(statement.apply(rows)[0])
    return statement.apply(rows)[1]


def _counts_of_merge(merge: Merge, rows: Rows) -> Told:
    counts, used = Counter[tuple[str, bool]](), set[Row]()
    for row in rows:
        source = next((each for each in merge.source if merge.matches(row, each) is True), None)
        kind = "not matched by source" if source is None else "matched"
        used |= set() if source is None else {source}
        if (clause := merge.acting(kind, row)) is not None:
            counts[kind, clause.sets is None] += 1
    inserted = sum(merge.acting("not matched", row) is not None for row in merge.source if row not in used)
    return (inserted, *sorted(counts.items()))


__all__ = ["Block", "Look", "Made", "Net", "Recall", "Tell", "Unless", "counts_of", "made_of", "net_of"]
