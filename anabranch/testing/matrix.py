"""Runs the documented matrices of conflicts and compares each cell with the documentation.

Runs two statements at a time: ours is staged, the winner commits, ours tries to commit. Each pair runs where both
touch one row, one file, one partition, or nothing in common. Knows the documented text of each cell, written down
independently of the product, and the effect of each statement on plain rows.

Guarantee: a cell counts as documented only if each of its runs was refused or committed as documented, and left the
rows of a serial order, read by `anabranch.testing.plain_reader`, which shares no code with the product. Where the
documentation allows OPTIMIZE to conflict, it must not here; such a cell is called beyond the matrix.

Source: Databricks documentation, "Isolation levels and write conflicts", "Write conflicts".
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from anabranch._expressions import Context, condition
from anabranch._log.log import forget
from anabranch._protocol.conditions import Condition
from anabranch._protocol.merges import Clause, MergePlan, SourceColumn
from anabranch._protocol.properties import REDO
from anabranch._protocol.schema.types import from_arrow
from anabranch._storage import open_store
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import Delete
from anabranch.commands.dml.merge import Merge
from anabranch.commands.dml.update import Update
from anabranch.commands.maintenance.optimize import Optimize
from anabranch.errors import DeltaConcurrentModificationException
from anabranch.testing.arrow_engine import ArrowEngine
from anabranch.testing.phases import at_phase
from anabranch.testing.plain_reader import ContradictoryLog, plain_rows

Row = tuple[int, int, int]
"""A row's ``k``, ``p`` and ``x``."""
Rows = tuple[Row, ...]

LEVELS = ("WriteSerializable", "Serializable")
DIALS = ("row", "file")
CHANGES = ("UPDATE", "DELETE", "MERGE")
MOVES = ("OPTIMIZE", "OPTIMIZE ZORDER BY")
GROUPS: Mapping[str, tuple[str, ...]] = {"INSERT": ("INSERT",), ", ".join(CHANGES): CHANGES, "OPTIMIZE": MOVES}
"""The rows of a matrix (ours) and its columns (the winner), with the verbs of each."""

_INSERT, _CHANGE, _OPTIMIZE = GROUPS
_FILES: tuple[Rows, ...] = (((0, 0, 0), (1, 0, 10)), ((2, 0, 20), (3, 0, 30)), ((4, 1, 40), (5, 1, 50)))
"""Three files in two partitions by p; ours is about the row with k = 0."""
_COLUMNS = ("k", "p", "x")
_ARROW = pa.schema([(name, pa.int64()) for name in _COLUMNS])
_CONTEXT = Context("matrix", from_arrow(_ARROW), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "UTC", lambda _: True)

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
    """One run of a cell: two statements, where they meet, the documented outcome for ours, and the actual one.

    ``condition`` is that of the error that refused ours, None if it committed; ``right_rows`` is whether the remaining
    rows are those of some serial order of what was committed.
    """

    ours: str
    winner: str
    where: str
    refusal_expected: bool
    condition: str | None
    right_rows: bool

    @property
    def as_documented(self) -> bool:
        """Whether the outcome is the documented one, with right rows."""
        return self.right_rows and self.refusal_expected == (self.condition is not None)


@dataclass(frozen=True)
class Cell:
    """One cell: our transaction's row, the winner's column, the documented text, and the runs."""

    ours: str
    winner: str
    documented: str
    runs: tuple[Run, ...]

    @property
    def as_documented(self) -> bool:
        """Whether all runs went as documented."""
        return all(run.as_documented for run in self.runs)

    @property
    def is_beyond(self) -> bool:
        """Whether these can conflict according to the documentation, but cannot here."""
        return self.documented != _CANNOT and not any(run.refusal_expected or run.condition for run in self.runs)

    @property
    def refusal_count(self) -> int:
        """The number of our runs that were refused."""
        return sum(run.condition is not None for run in self.runs)


@dataclass(frozen=True)
class Matrix:
    """A matrix for one dial (`anabranch.conflictResolution`) at one isolation level."""

    dial: str
    level: str
    cells: tuple[Cell, ...]

    @property
    def as_documented(self) -> bool:
        """Whether all cells are as documented."""
        return all(cell.as_documented for cell in self.cells)


def matrices(dials: Sequence[str] = DIALS, levels: Sequence[str] = LEVELS) -> Iterator[Matrix]:
    """Yields the documented matrices, each after its run, in a temporary folder of this machine.

    Args:
        dials: values of ``anabranch.conflictResolution``; by default ``row`` and ``file``, which gives both documented
            matrices.
        levels: isolation levels.
    """
    with TemporaryDirectory(prefix="anabranch-matrix-", ignore_cleanup_errors=True) as folder:
        for dial in dials:
            for level in levels:
                table = _Table(Path(folder) / f"{dial}-{level}", dial, level)
                cells = [_cell(table, ours, winner) for ours in GROUPS for winner in GROUPS]
                yield Matrix(dial, level, tuple(cells))


def as_json(matrix: Matrix) -> dict[str, Any]:
    """A matrix as JSON values."""
    return {
        "conflictResolution": matrix.dial,
        "isolationLevel": matrix.level,
        "asDocumented": matrix.as_documented,
        "cells": [_cell_as_json(cell) for cell in matrix.cells],
    }


def _cell_as_json(cell: Cell) -> dict[str, Any]:
    return {
        "ours": cell.ours,
        "winner": cell.winner,
        "documented": cell.documented,
        "asDocumented": cell.as_documented,
        "beyond": cell.is_beyond,
        "refused": cell.refusal_count,
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


# -- the documented cells ----------------------------------------------------------------------------------------------


_CANNOT = "cannot conflict"


def documented_words(dial: str, level: str, ours: str, winner: str) -> str:
    """The documented text of a cell; only that of a change against an INSERT depends on the level. What ``redo`` does
    is not documented: nothing conflicts.
    """
    if dial == REDO:
        return _CANNOT
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


def expects_refusal(dial: str, level: str, ours: str, winner: str, where: str) -> bool:
    """Whether the documented text means a refusal for two statements that meet there.

    With file-level resolution, a MERGE conflicts with every file of the partition in its condition, since statistics
    know nothing of its source's keys; UPDATE and DELETE with those whose statistics allow k = 0. The documentation
    leaves open where OPTIMIZE conflicts: here it never does. With ``redo``, beyond the documentation, nothing does.
    """
    if (
        dial == REDO
        or ours == "INSERT"
        or ours in MOVES
        or winner in MOVES
        or (winner == "INSERT" and level == "WriteSerializable")
    ):
        return False
    conflicts = {SAME_ROW, SELECTED}
    if dial == "file":
        conflicts |= {SAME_FILE, COULD_BE}
        conflicts |= {SAME_PARTITION, NOT_SELECTED} if ours == "MERGE" else set()
    return where in conflicts


# -- the runs ----------------------------------------------------------------------------------------------------------


class _Table:
    """The table before each run; every run gets a copy."""

    def __init__(self, folder: Path, dial: str, level: str) -> None:
        self.dial, self.level, self._folder, self._runs = dial, level, folder, 0
        properties = {
            "delta.isolationLevel": level,
            "anabranch.conflictResolution": dial,
            "delta.enableDeletionVectors": "true",
            "anabranch.rowsInErrors": "false",  # error messages are not tested here, and cost reads
        }
        for rows in _FILES:
            Append(str(folder / "original"), _arrow(rows), ("p",), properties).run()

    def copy(self) -> Path:
        """A fresh copy."""
        self._runs += 1
        copy = self._folder / str(self._runs)
        shutil.copytree(self._folder / "original", copy)
        return copy


def _cell(table: _Table, ours: str, winner: str) -> Cell:
    pairs = [(o, w) for o in GROUPS[ours] for w in GROUPS[winner]]
    runs = [_run(table, o, w, where) for o, w in pairs for where in _places(w)]
    return Cell(ours, winner, documented_words(table.dial, table.level, ours, winner), tuple(runs))


def _places(winner: str) -> Iterable[str]:
    if winner in MOVES:
        return (WHOLE_TABLE,)
    return _INSERTS if winner == "INSERT" else _KEYS


def _run(table: _Table, ours: str, winner: str, where: str) -> Run:
    copy, first, second = table.copy(), _our_statement(ours), _winners_statement(winner, where)
    condition = None
    try:
        with at_phase("staged", lambda: second.run(str(copy))):
            first.run(str(copy))
    except DeltaConcurrentModificationException as refused:
        condition = refused.getCondition()
    orders = [[second]] if condition is not None else [[first, second], [second, first]]
    right_rows = _is_any_of(copy, orders)
    forget(open_store(str(copy)).url)
    shutil.rmtree(copy)
    expected = expects_refusal(table.dial, table.level, ours, winner, where)
    return Run(ours, winner, where, expected, condition, right_rows)


def _is_any_of(folder: Path, orders: Sequence[Sequence[_Statement]]) -> bool:
    """Whether the table has the rows that one of these orders leaves, in a log without contradictions."""
    try:
        rows = Counter(tuple(row[name] for name in _COLUMNS) for row in plain_rows(folder))
    except ContradictoryLog:
        return False
    return any(rows == Counter(_after(order)) for order in orders)


def _after(order: Sequence[_Statement]) -> Rows:
    rows = tuple(row for file in _FILES for row in file)
    for statement in order:
        rows = statement.apply(rows)
    return rows


# -- the statements ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Statement:
    """A statement in two forms: run on a table at a path, and as a function of plain rows."""

    run: Callable[[str], object]
    apply: Callable[[Rows], Rows]


def _our_statement(verb: str) -> _Statement:
    if verb in MOVES:
        return _move(verb)
    return _insert(((100, 0, 0),)) if verb == "INSERT" else _CHANGES[verb](0, 0, 7)


def _winners_statement(verb: str, where: str) -> _Statement:
    if verb in MOVES:
        return _move(verb)
    return _insert(_INSERTS[where]) if verb == "INSERT" else _CHANGES[verb](*_KEYS[where], 9)


def _insert(new: Rows) -> _Statement:
    return _Statement(lambda path: Append(path, _arrow(new)).run(), lambda rows: rows + new)


def _move(verb: str) -> _Statement:
    by = () if verb == "OPTIMIZE" else (("k",), ("x",))
    return _Statement(lambda path: Optimize(path, zorder_by=by).run(ArrowEngine()), lambda rows: rows)


def _update(key: int, partition: int, step: int) -> _Statement:
    """An UPDATE of one row with an explicit condition on its partition, as the documentation advises; so do all
    changes.
    """

    def run(path: str) -> object:
        return Update(path, {"x": lambda row: row["x"] + step}, _only(key, partition)).run(ArrowEngine())

    return _Statement(
        run, lambda rows: tuple((k, p, x + step if (k, p) == (key, partition) else x) for k, p, x in rows)
    )


def _delete(key: int, partition: int, _: int) -> _Statement:
    return _Statement(
        lambda path: Delete(path, _only(key, partition)).run(ArrowEngine()),
        lambda rows: tuple(row for row in rows if row[:2] != (key, partition)),
    )


def _merge(key: int, partition: int, value: int) -> _Statement:
    """A MERGE of one source row by ``k``: it updates ``x``, or inserts the row."""
    source: Row = (key, partition, value)
    matching = MergePlan(
        lambda row, other: row["k"] == other["k"] and row["p"] == partition,
        (
            Clause("matched", "update", values={"x": SourceColumn("x")}),
            Clause("not matched", "insert", values={name: SourceColumn(name) for name in _COLUMNS}),
        ),
    )

    def apply(rows: Rows) -> Rows:
        merged = tuple(source if row[:2] == (key, partition) else row for row in rows)
        return merged if source in merged else (*merged, source)

    where = _condition(f"p = {partition}")
    return _Statement(lambda path: Merge(path, _arrow((source,)), matching, where).run(ArrowEngine()), apply)


_CHANGES: Mapping[str, Callable[[int, int, int], _Statement]] = {"UPDATE": _update, "DELETE": _delete, "MERGE": _merge}


def _arrow(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(_COLUMNS, row, strict=True)) for row in rows], schema=_ARROW)


def _only(key: int, partition: int) -> Condition:
    return _condition(f"k = {key} AND p = {partition}")


def _condition(text: str) -> Condition:
    return condition(text, _CONTEXT)
