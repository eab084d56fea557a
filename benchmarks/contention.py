"""Commits of several writers to one table: appends, updates of different rows, and updates of one hot row.

One, four and sixteen threads do as many statements together. Who is refused tries again at once, so that all engines
end with the same rows; what conflicts cost is in the commits per second and in the slowest calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from benchmarks import peers
from benchmarks.crowd import Lists, Statement, crowds, on_copies
from benchmarks.harness import Line, Ratio, Result, Tell, spread
from benchmarks.one_file import PROOF, one_more, table_of
from benchmarks.race import Race, race_on_copies

WRITERS = (1, 4, 16)
STATEMENTS = 16
ROWS = 10_000
"""Rows of the table: a small one, so that commits and conflicts are what takes time."""


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure; ``rows`` does not matter here."""
    tables = table_of(folder, ROWS)
    lines: list[Line] = []
    ratios: list[Ratio] = []
    differences: list[str] = []
    for what, statement in TASKS.items():
        for writers in WRITERS:
            found, told = _raced(f"{what}, {writers} writers", dealt(statement, writers), tables, tell)
            lines, ratios = lines + told, ratios + found.ratios("contention")
            differences += found.differences
    return Result(
        name="contention",
        title="Commits of several writers to one table",
        setting=f"{STATEMENTS} statements in all, a thread for each writer; one file of {ROWS:,} rows;"
        f" {peers.SETTING}, a fresh table for each run",
        lines=lines,
        ratios=ratios,
        differences=differences,
        notes=["Who is refused tries again at once, until all are done.", peers.BESIDE, peers.MEMORY_NOTE],
    )


def _raced(what: str, lists: Lists, tables: peers.Tables, tell: Tell) -> tuple[Race, list[Line]]:
    by_name = crowds(lists)
    sides = on_copies(by_name, tables, PROOF)
    found = race_on_copies(what, sides, tell)
    peers.clear(sides)
    return found, [Line(f"{what}, {n}", spread(c) | by_name[n].figures(len(c))) for n, c in found.costs.items()]


def dealt(statement: Callable[[int], Statement], writers: int) -> Lists:
    """The statements, dealt out to so many writers."""
    return [[statement(number) for number in range(STATEMENTS)[writer::writers]] for writer in range(writers)]


def _insert(number: int) -> Statement:
    key = ROWS + number
    return Statement(f"INSERT INTO {{}} VALUES ({key}, 1)", partial(_insert_by_deltalake, key))


def _insert_by_deltalake(key: int, path: str) -> Any:
    return write_deltalake(path, pa.table({"id": [key], "x": [1]}), mode="append")


TASKS: dict[str, Callable[[int], Statement]] = {
    "append": _insert,
    "UPDATE of different rows": lambda number: one_more(number * (ROWS // STATEMENTS)),
    "UPDATE of one hot row": lambda number: one_more(0),
}
