"""Statements as data, and as functions from rows to rows.

This is what the laboratory believes, written apart from the product. Knows SQL's meaning of a few verbs; knows nothing
of files, logs or versions. Pure. Every statement is here, and each is small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from laboratory.conditions import (
    COLUMNS,
    EVERYWHERE,
    All,
    Any,
    Assignment,
    Missing,
    Not,
    Plus,
    Put,
    Row,
    Rows,
    Test,
    Value,
    Where,
    assigned,
)
from laboratory.manners import Manner

# -- statements --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Append:
    """INSERT of rows that are at hand: it reads nothing. ``bulk`` takes the engine's writer."""

    rows: Rows
    bulk: bool = False

    def __str__(self) -> str:
        return f"INSERT {_listed(self.rows)}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """The rows after it, and how many it says to have changed (None: it does not say)."""
        return rows + self.rows, None


@dataclass(frozen=True)
class Batch(Append):
    """A batch of a stream: the rows are added once, or replace all if it is ``complete``, however often it is run."""

    query: str = ""
    number: int = 0
    complete: bool = False

    def __str__(self) -> str:
        mode = "complete" if self.complete else "append"
        return f"BATCH {self.number} of {self.query} ({mode}) {_listed(self.rows)}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        return (() if self.complete else rows) + self.rows, None


@dataclass(frozen=True)
class Overwrite:
    """INSERT OVERWRITE: every row is replaced."""

    rows: Rows

    def __str__(self) -> str:
        return f"INSERT OVERWRITE {_listed(self.rows)}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        return self.rows, None


@dataclass(frozen=True)
class Dynamic:
    """INSERT OVERWRITE of the partitions that the rows lie in; without partitions, of every row."""

    rows: Rows
    partitioned: bool

    def __str__(self) -> str:
        return f"INSERT OVERWRITE PARTITIONS {_listed(self.rows)}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        place = COLUMNS.index("p")
        written = {row[place] for row in self.rows}
        return tuple(row for row in rows if self.partitioned and row[place] not in written) + self.rows, None


@dataclass(frozen=True)
class Replace:
    """INSERT REPLACE WHERE: the rows that the condition selects are replaced by others that it selects."""

    where: Where
    rows: Rows

    def __str__(self) -> str:
        return f"INSERT REPLACE WHERE {self.where} {_listed(self.rows)}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        return tuple(row for row in rows if self.where.truth(row) is not True) + self.rows, None


@dataclass(frozen=True)
class Delete:
    """DELETE WHERE."""

    where: Where

    def __str__(self) -> str:
        return f"DELETE WHERE {self.where}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        kept = tuple(row for row in rows if self.where.truth(row) is not True)
        return kept, len(rows) - len(kept)


@dataclass(frozen=True)
class Update:
    """UPDATE SET … WHERE."""

    sets: tuple[Assignment, ...]
    where: Where

    def __str__(self) -> str:
        return f"UPDATE SET {', '.join(map(str, self.sets))} WHERE {self.where}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        hit = [self.where.truth(row) is True for row in rows]
        new = tuple(assigned(row, self.sets) if yes else row for row, yes in zip(rows, hit, strict=True))
        return new, sum(hit)


@dataclass(frozen=True)
class Take:
    """``column = source.column``."""

    column: str

    def __str__(self) -> str:
        return f"{self.column} = s.{self.column}"


@dataclass(frozen=True)
class When:
    """One clause of a MERGE.

    Attributes:
        kind: ``matched``, ``not matched`` or ``not matched by source``.
        where: of the table's row, or of the source's where there is no other.
        sets: of an update; None deletes, and inserts the source's row.
    """

    kind: str
    where: Where = EVERYWHERE
    sets: tuple[Assignment | Take, ...] | None = None

    def __str__(self) -> str:
        if self.kind == "not matched":
            return f"WHEN NOT MATCHED AND {self.where} THEN INSERT *"
        act = "DELETE" if self.sets is None else f"UPDATE SET {', '.join(map(str, self.sets))}"
        return f"WHEN {self.kind.upper()} AND {self.where} THEN {act}"


@dataclass(frozen=True)
class Merge:
    """MERGE of source rows that are at hand, ON equality of some columns and a condition on the table alone.

    No two source rows may be equal in these columns: then no row is matched twice.
    """

    source: Rows
    by: tuple[str, ...]
    clauses: tuple[When, ...]
    also: Where = EVERYWHERE

    def __str__(self) -> str:
        on = " AND ".join([*(f"t.{name} = s.{name}" for name in self.by), str(self.also)])
        return f"MERGE USING {_listed(self.source)} ON {on} {' '.join(map(str, self.clauses))}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        kept: list[Row] = []
        used: set[Row] = set()
        changed = 0
        for row in rows:
            source = next((s for s in self.source if self.matches(row, s) is True), None)
            used |= {source} if source else set()
            clause = self.acting("matched" if source else "not matched by source", row)
            changed += clause is not None
            if clause is None:
                kept.append(row)
            elif clause.sets is not None:
                kept.append(_merged(row, source, clause.sets))
        new = [s for s in self.source if s not in used and self.acting("not matched", s) is not None]
        return (*kept, *new), changed + len(new)

    def matches(self, row: Row, source: Row) -> bool | None:
        """ON, three-valued."""
        cells = [(row[COLUMNS.index(name)], source[COLUMNS.index(name)]) for name in self.by]
        truths = [None if None in pair else pair[0] == pair[1] for pair in cells] + [self.also.truth(row)]
        return False if False in truths else None if None in truths else True

    def acting(self, kind: str, row: Row) -> When | None:
        """The first clause of a kind whose condition is TRUE for a row."""
        return next((c for c in self.clauses if c.kind == kind and c.where.truth(row) is True), None)


def _merged(row: Row, source: Row | None, sets: tuple[Assignment | Take, ...]) -> Row:
    new = list(row)
    for each in sets:
        place = COLUMNS.index(each.column)
        if isinstance(each, Take):
            assert source is not None, "only what is matched has a source"
            new[place] = source[place]
        else:
            new[place] = each.of(row)
    return tuple(new)


@dataclass(frozen=True)
class Copy:
    """INSERT INTO t SELECT … FROM t WHERE: it reads the table, in one step, as another engine's commit."""

    sets: tuple[Assignment, ...]
    where: Where

    def __str__(self) -> str:
        return f"INSERT SELECT {', '.join(map(str, self.sets))} FROM t WHERE {self.where} (another engine)"

    def chosen(self, rows: Rows) -> Rows:
        """The rows that it reads, as it writes them."""
        return tuple(assigned(row, self.sets) for row in rows if self.where.truth(row) is True)

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        return rows + self.chosen(rows), None


@dataclass(frozen=True)
class Select(Copy):
    """INSERT INTO (or OVERWRITE) t SELECT … FROM t WHERE, by the product; its source was read ``back`` versions ago."""

    overwrites: bool = False
    back: int = 0

    def __str__(self) -> str:
        verb, table = "OVERWRITE" if self.overwrites else "INTO", f"t@newest-{self.back}" if self.back else "t"
        return f"INSERT {verb} t SELECT {', '.join(map(str, self.sets))} FROM {table} WHERE {self.where}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As `Append.apply`."""
        return (() if self.overwrites else rows) + self.chosen(rows), None


@dataclass(frozen=True)
class Restore:
    """RESTORE to ``back`` versions ago, by the product or in one step as another engine's commit; ``rows`` are set when
    it has run.
    """

    back: int
    ours: bool = False
    rows: Rows | None = None

    def __str__(self) -> str:
        return f"RESTORE {self.back} versions back{'' if self.ours else ' (another engine)'}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """The rows of the old version: a constant, once it has run."""
        assert self.rows is not None, "a restore is a function of rows once it has run"
        return self.rows, 0 if bag(rows) == bag(self.rows) else None


@dataclass(frozen=True)
class Vacuum:
    """VACUUM RETAIN 0 HOURS without the check; ``spares_none`` takes every writer for dead."""

    spares_none: bool = False

    def __str__(self) -> str:
        return f"VACUUM RETAIN 0 HOURS{' of everybody' if self.spares_none else ''}"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """No row is changed."""
        return rows, 0


@dataclass(frozen=True)
class Follow:
    """A stream that reads the table: so many batches beside the writers, then all that there is. It changes nothing.

    Attributes:
        batches: how many.
        files: how many files one of them has at most.
        shows: ``changes`` of a feed, ``writes`` also of commits that take rows away, or those of ``inserts`` alone.
        whole: whether it reads every commit from the first on, and not the rows that are there when it begins.
        again: whether each batch is planned again by another process.
        seen: what it was shown, when it has run.
    """

    batches: int
    files: int | None
    shows: str
    whole: bool = False
    again: bool = False
    seen: object = None

    def __str__(self) -> str:
        size = "" if self.files is None else f" of {self.files} files"
        since, twice = " from version 0" if self.whole else "", ", each twice" if self.again else ""
        return f"READ STREAM OF {self.shows}{since} ({self.batches} batches{size}{twice})"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """No row is changed."""
        return rows, 0


@dataclass(frozen=True)
class Configure:
    """ALTER TABLE SET TBLPROPERTIES of something that touches no row, as another engine's commit."""

    def __str__(self) -> str:
        return "SET TBLPROPERTIES (another engine)"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """No row is changed."""
        return rows, None


@dataclass(frozen=True)
class Upgrade:
    """A writer feature that nobody here knows, as another engine's commit; nothing of ours may land after it."""

    def __str__(self) -> str:
        return "ADD FEATURE unknownHere (another engine)"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """No row is changed."""
        return rows, None


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE, with ZORDER BY some columns, or REORG … APPLY (PURGE): the same rows in other files."""

    by: tuple[str, ...] = ()
    purges: bool = False

    def __str__(self) -> str:
        if self.purges:
            return "REORG APPLY (PURGE)"
        return f"OPTIMIZE ZORDER BY {', '.join(self.by)}" if self.by else "OPTIMIZE"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """No row is changed."""
        return rows, 0


@dataclass(frozen=True)
class Foreign:
    """What another statement does, by another engine, in one step and in a manner of its own."""

    inner: Statement
    manner: Manner

    def __str__(self) -> str:
        return f"{self.inner} (another engine: {self.manner})"

    def apply(self, rows: Rows) -> tuple[Rows, int | None]:
        """As the other statement's; it reports nothing."""
        return self.inner.apply(rows)[0], None


Told = int | tuple[object, ...] | None
"""What a statement says to have changed: a number of rows, or what each of several has said."""


class Statement(Protocol):
    """Any of these."""

    def apply(self, rows: Rows) -> tuple[Rows, Told]:
        """As `Append.apply`."""
        ...


def bag(rows: Iterable[Row]) -> Counter[Row]:
    """Rows without their order: two tables are equal if their bags are."""
    return Counter(rows)


def _listed(rows: Rows) -> str:
    return ", ".join("(" + ", ".join("NULL" if v is None else str(v) for v in row) + ")" for row in rows)


__all__ = [
    "COLUMNS",
    "EVERYWHERE",
    "All",
    "Any",
    "Append",
    "Assignment",
    "Batch",
    "Configure",
    "Copy",
    "Delete",
    "Dynamic",
    "Follow",
    "Foreign",
    "Merge",
    "Missing",
    "Not",
    "Optimize",
    "Overwrite",
    "Plus",
    "Put",
    "Replace",
    "Restore",
    "Row",
    "Rows",
    "Select",
    "Statement",
    "Take",
    "Test",
    "Told",
    "Update",
    "Upgrade",
    "Vacuum",
    "Value",
    "When",
    "Where",
    "assigned",
    "bag",
]
