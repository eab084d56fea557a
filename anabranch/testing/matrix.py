"""The documented matrices of conflicts, filled in by running them here and now.

Knows two statements at a time: ours is staged, the winner commits, ours tries to. Each pair is played where both meet
in one row, in one file, in one partition, or nowhere. Knows what the documentation says of each cell, written down
apart from the product, and what rows two statements may leave, from `anabranch.testing.statements`. Guarantee: a cell
is called as documented only if each of its runs was refused or let through as it says, and left the rows of a serial
order, read by a reader of its own. Where the documentation lets OPTIMIZE conflict, it must not here, which is called
beyond the matrix.

Source: Databricks documentation, "Isolation levels and write conflicts", "Write conflicts".
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.errors import DeltaConcurrentModificationException
from anabranch.log.log import forget
from anabranch.storage import open_store
from anabranch.testing.arrow_engine import ArrowEngine
from anabranch.testing.log_reader import Reader
from anabranch.testing.phases import at_phase
from anabranch.testing.places import RETRY, InMemory, make
from anabranch.testing.plans import Setup
from anabranch.testing.statements import (
    All,
    Append,
    Delete,
    Merge,
    Optimize,
    Plus,
    Rows,
    Statement,
    Take,
    Test,
    Update,
    When,
    Where,
    bag,
)
from anabranch.testing.verbs import Session, play
from anabranch.transaction.retry import Runtime

LEVELS = ("WriteSerializable", "Serializable")
DIALS = ("row", "file")
CHANGES = ("UPDATE", "DELETE", "MERGE")
MOVES = ("OPTIMIZE", "OPTIMIZE ZORDER BY")
GROUPS: Mapping[str, tuple[str, ...]] = {"INSERT": ("INSERT",), ", ".join(CHANGES): CHANGES, "OPTIMIZE": MOVES}
"""The rows of a matrix (ours) and its columns (the winner), with the verbs of each."""

_INSERT, _CHANGE, _OPTIMIZE = GROUPS
_FILES = (((0, 0, 0), (1, 0, 10)), ((2, 0, 20), (3, 0, 30)), ((4, 1, 40), (5, 1, 50)))
"""Three files in two partitions by p; ours is about the row with k = 0."""

SAME_ROW, SAME_FILE, SAME_PARTITION, ELSEWHERE = "same row", "same file", "other file", "other partition"
SELECTED, COULD_BE, NOT_SELECTED, INSERTED_ELSEWHERE = (
    "a row that ours selects",
    "a file that may hold one",
    "another row",
    "another partition",
)
WHOLE_TABLE = "every file"
_KEYS = {SAME_ROW: (0, 0), SAME_FILE: (1, 0), SAME_PARTITION: (3, 0), ELSEWHERE: (5, 1)}
_INSERTS: Mapping[str, Rows] = {
    SELECTED: ((0, 0, 99),),
    COULD_BE: ((-9, 0, 99), (9, 0, 99)),
    NOT_SELECTED: ((200, 0, 99),),
    INSERTED_ELSEWHERE: ((201, 1, 99),),
}


@dataclass(frozen=True)
class Run:
    """One run of a cell: two statements, where they meet, what the documentation expects of ours, and what it met.

    ``condition`` is that of the error by which ours was refused, None where it was committed; ``right_rows`` tells
    whether the rows that are left are those of some serial order of what was committed.
    """

    ours: str
    winner: str
    where: str
    refusal_expected: bool
    condition: str | None
    right_rows: bool

    @property
    def as_documented(self) -> bool:
        """Whether it went as the documentation says, with right rows."""
        return self.right_rows and self.refusal_expected == (self.condition is not None)


@dataclass(frozen=True)
class Cell:
    """One cell: our transaction's row, the winner's column, the documented words, and what happened."""

    ours: str
    winner: str
    documented: str
    runs: tuple[Run, ...]

    @property
    def as_documented(self) -> bool:
        """Whether all runs were."""
        return all(run.as_documented for run in self.runs)

    @property
    def is_beyond(self) -> bool:
        """Whether the documentation says that these can conflict, and here they cannot."""
        return self.documented != _CANNOT and not any(run.refusal_expected or run.condition for run in self.runs)

    @property
    def refused(self) -> int:
        """How many runs of ours were refused."""
        return sum(run.condition is not None for run in self.runs)


@dataclass(frozen=True)
class Matrix:
    """A matrix for one dial (`anabranch.conflictResolution`) at one isolation level."""

    dial: str
    level: str
    cells: tuple[Cell, ...]

    @property
    def as_documented(self) -> bool:
        """Whether no cell differs."""
        return all(cell.as_documented for cell in self.cells)


def matrices(dials: Sequence[str] = DIALS, levels: Sequence[str] = LEVELS) -> Iterator[Matrix]:
    """The documented matrices, each as soon as it was run; in a temporary folder of this machine.

    Args:
        dials: values of ``anabranch.conflictResolution``; both give both matrices that are documented.
        levels: isolation levels.
    """
    with TemporaryDirectory(prefix="anabranch-matrix-", ignore_cleanup_errors=True) as folder:
        for dial in dials:
            for level in levels:
                table = _Table(Path(folder) / f"{dial}-{level}", dial, level)
                cells = [_cell(table, ours, winner) for ours in GROUPS for winner in GROUPS]
                yield Matrix(dial, level, tuple(cells))


def as_json(found: Matrix) -> dict[str, Any]:
    """A matrix for machines."""
    return {
        "conflictResolution": found.dial,
        "isolationLevel": found.level,
        "asDocumented": found.as_documented,
        "cells": [_cell_as_json(cell) for cell in found.cells],
    }


def _cell_as_json(cell: Cell) -> dict[str, Any]:
    return {
        "ours": cell.ours,
        "winner": cell.winner,
        "documented": cell.documented,
        "asDocumented": cell.as_documented,
        "beyond": cell.is_beyond,
        "refused": cell.refused,
        "runs": [_run_as_json(run) for run in cell.runs],
    }


def _run_as_json(run: Run) -> dict[str, Any]:
    return {
        "ours": run.ours,
        "winner": run.winner,
        "where": run.where,
        "refusalExpected": run.refusal_expected,
        "condition": run.condition,
        "rightRows": run.right_rows,
        "asDocumented": run.as_documented,
    }


# -- what is documented ------------------------------------------------------------------------------------------------


_CANNOT = "cannot conflict"


def documented(dial: str, level: str, ours: str, winner: str) -> str:
    """The words of a cell; a change that meets an INSERT depends on the level, the rest does not."""
    if _OPTIMIZE in (ours, winner):
        return _with_optimize(dial, {ours, winner})
    if ours == _INSERT or (winner == _INSERT and level == "WriteSerializable"):
        return _CANNOT
    return "can conflict on the same row" if dial == "row" else "can conflict in the same files"


def _with_optimize(dial: str, both: set[str]) -> str:
    if _INSERT in both:
        return _CANNOT
    if dial == "row":
        return "can conflict with ZORDER BY only"
    return "can conflict without deletion vectors or with ZORDER BY"


def refusal_expected(dial: str, level: str, ours: str, winner: str, where: str) -> bool:
    """What the words mean for two statements that meet there.

    By files, a MERGE looks at every file of the partition that its condition names, since statistics know nothing of
    its source's keys; UPDATE and DELETE look at those whose statistics allow k = 0. Where OPTIMIZE may be refused, or
    refuse another, is not said: here it never is, nor does it.
    """
    if ours == "INSERT" or ours in MOVES or winner in MOVES or (winner == "INSERT" and level == "WriteSerializable"):
        return False
    met = {SAME_ROW, SELECTED}
    if dial == "file":
        met |= {SAME_FILE, COULD_BE}
        met |= {SAME_PARTITION, NOT_SELECTED} if ours == "MERGE" else set()
    return where in met


# -- what happens ------------------------------------------------------------------------------------------------------


class _Table:
    """A table as it is before each run; every run gets a copy."""

    def __init__(self, folder: Path, dial: str, level: str) -> None:
        self.dial, self.level, self._folder, self._runs = dial, level, folder, 0
        original = folder / "original"
        setup = Setup(level, dial, partitioned=True, files=_FILES)
        make(setup, str(original), open_store(str(original)), InMemory())

    def copy(self) -> Path:
        """A fresh copy."""
        self._runs += 1
        copy = self._folder / str(self._runs)
        shutil.copytree(self._folder / "original", copy)
        return copy


def _cell(table: _Table, ours: str, winner: str) -> Cell:
    pairs = [(m, w) for m in GROUPS[ours] for w in GROUPS[winner]]
    runs = [_run(table, m, w, where) for m, w in pairs for where in _places(w)]
    return Cell(ours, winner, documented(table.dial, table.level, ours, winner), tuple(runs))


def _places(winner: str) -> Iterable[str]:
    if winner in MOVES:
        return (WHOLE_TABLE,)
    return _INSERTS if winner == "INSERT" else _KEYS


def _run(table: _Table, ours: str, winner: str, where: str) -> Run:
    copy, first, second = table.copy(), _mine(ours), _winner(winner, where)
    session = _session(copy)
    condition = None
    try:
        with at_phase("staged", lambda: play(second, session)):
            play(first, session)
    except DeltaConcurrentModificationException as refused:
        condition = refused.getCondition()
    rows = _is_serial(copy, first, second, is_refused=condition is not None)
    expected = refusal_expected(table.dial, table.level, ours, winner, where)
    forget(session.store.url)
    shutil.rmtree(copy)
    return Run(ours, winner, where, expected, condition, rows)


def _session(folder: Path) -> Session:
    location = str(folder)
    return Session(location, open_store(location), ArrowEngine(), InMemory(), RETRY, Runtime(), "matrix")


def _is_serial(folder: Path, ours: Statement, winner: Statement, *, is_refused: bool) -> bool:
    base: Rows = tuple(row for rows in _FILES for row in rows)
    orders = [[winner]] if is_refused else [[ours, winner], [winner, ours]]
    reader = Reader(open_store(str(folder)))
    left = bag(reader.versions()[-1].rows)
    return not reader.faults and left in [bag(_after(base, order)) for order in orders]


def _after(rows: Rows, statements: list[Statement]) -> Rows:
    for each in statements:
        rows, _ = each.apply(rows)
    return rows


def _mine(verb: str) -> Statement:
    if verb in MOVES:
        return _move(verb)
    return Append(((100, 0, 0),)) if verb == "INSERT" else _change(verb, 0, 0, 7)


def _winner(verb: str, where: str) -> Statement:
    if verb in MOVES:
        return _move(verb)
    return Append(_INSERTS[where]) if verb == "INSERT" else _change(verb, *_KEYS[where], 9)


def _move(verb: str) -> Statement:
    return Optimize() if verb == "OPTIMIZE" else Optimize(("k", "x"))


def _change(verb: str, key: int, partition: int, value: int) -> Statement:
    """A change of one row, with an explicit condition on its partition, as the documentation advises."""
    in_partition = Test("p", "=", partition)
    where: Where = All((Test("k", "=", key), in_partition))
    if verb == "UPDATE":
        return Update((Plus("x", value),), where)
    if verb == "DELETE":
        return Delete(where)
    clauses = (When("matched", sets=(Take("x"),)), When("not matched"))
    return Merge(((key, partition, value),), ("k",), clauses, in_partition)
