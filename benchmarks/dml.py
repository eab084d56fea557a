"""DELETE and UPDATE of scattered rows of a large table: with deletion vectors rows are marked, without them files are
rewritten.

Both Sparks run the same SQL. Each run works on a copy of its own; the sessions are warm. Afterwards all tables must
hold the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable as Theirs

from benchmarks import judge, large, peers
from benchmarks.harness import Result, Tell
from benchmarks.race import ROUNDS, Race, figures, race_on_copies


@dataclass(frozen=True)
class Task:
    """One statement, in which ``{}`` is the table, and the same as deltalake spells it."""

    what: str
    text: str
    rust: Callable[[str], Any]


def tasks(rows: int) -> list[Task]:
    """What is measured."""
    few = large.few(rows)
    return [
        Task("DELETE 1%", f"DELETE FROM {{}} WHERE {large.PERCENT}", lambda path: Theirs(path).delete(large.PERCENT)),
        Task(
            "UPDATE 1,000 rows",
            f"UPDATE {{}} SET amount = amount + 1 WHERE {few}",
            lambda path: Theirs(path).update(predicate=few, updates={"amount": "amount + 1"}),
        ),
    ]


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows, and on one of a tenth."""
    races = [each for suffix, count in large.sizes(rows).items() for each in _races(folder, count, tell, suffix)]
    return Result(
        name="dml",
        title="Changing scattered rows of a large table",
        setting=f"{large.described(folder / str(rows), rows)}; {peers.SETTING}, warm, a fresh copy for each run,"
        f" {ROUNDS} rounds by turns",
        **vars(figures("dml", races)),
        notes=[peers.BESIDE, peers.MEMORY_NOTE],
    )


def _races(folder: Path, rows: int, tell: Tell, suffix: str) -> list[Race]:
    tables = peers.tables(folder / str(rows), rows, tell)
    return [_raced(task, suffix, tables, tell) for task in tasks(rows)]


def _raced(task: Task, suffix: str, tables: peers.Tables, tell: Tell) -> Race:
    sides = peers.changing(task.text, task.rust, tables, judge.large)
    found = race_on_copies(task.what + suffix, sides, tell)
    peers.clear(sides)
    return found
