"""Four threads update different rows of one file at once, beside peers, and beside as many updates in turn.

Where conflicts are found by files, all but one of the threads abort each time, and try again. Here none may, and it
must not take longer than in turn either. Afterwards the table itself proves that each row was changed once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable as Theirs

import anabranch
from benchmarks import judge, peers
from benchmarks.crowd import Crowd, Lists, Statement, crowds, on_copies
from benchmarks.harness import Line, Ratio, Result, Tell, spread
from benchmarks.race import OURS, ROUNDS, OnCopies, race_on_copies
from benchmarks.targets import limits

WRITERS = 4
UPDATES = 10
SHARE = 20
"""The large tables of the other benchmarks have so many times the rows of this one."""
TASK = f"{WRITERS} writers x {UPDATES} UPDATEs"
IN_TURN = "one after the other"
NAME = "one_file"


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on one file of a twentieth of this many rows."""
    count = rows // SHARE
    tables = table_of(folder, count)
    by_name = crowds(updates(count, WRITERS))
    alone = Crowd(OURS, updates(count, 1))
    sides = on_copies(by_name, tables, PROOF)
    sides[IN_TURN] = OnCopies(tables.marking, alone.work, PROOF, peers.of(OURS))
    found = race_on_copies(TASK, sides, tell)
    told = {**by_name, IN_TURN: alone}
    aborts = sum(call.refused for calls in by_name[OURS].calls for call in calls)
    return Result(
        name=NAME,
        title="Threads update different rows of one file",
        setting=f"one file of {count:,} rows; {peers.SETTING}, warm, a fresh table for each run, {ROUNDS} rounds by"
        " turns",
        lines=[Line(f"{TASK}, {name}", spread(c) | told[name].figures(len(c))) for name, c in found.costs.items()],
        ratios=[
            *found.ratios(NAME),
            Ratio(what := f"{TASK}, our aborts", aborts, **limits(NAME, what)),
        ],
        differences=found.differences,
        notes=["Who is refused tries again at once, until all are done.", peers.BESIDE, peers.MEMORY_NOTE],
    )


PROOF = judge.held("count(*)", "sum(x)", "sum(x * x)", "sum(x * id)")
"""Of the table: all rows, how many updates, whether any row was changed twice, and which rows were changed."""


def table_of(folder: Path, rows: int) -> peers.Tables:
    """A table of one file, in both forms; the updated column is 0 everywhere."""
    given = pa.table({"id": range(rows), "x": pa.repeat(0, rows)})
    tables = peers.Tables(folder / "marking", folder / "rewriting")
    anabranch.append(tables.marking, given)
    anabranch.append(tables.rewriting, given, properties={"delta.enableDeletionVectors": "false"})
    return tables


def updates(rows: int, writers: int) -> Lists:
    """As many updates of rows far from each other, dealt out to so many writers."""
    keys = range(0, rows, max(1, rows // (WRITERS * UPDATES)))[: WRITERS * UPDATES]
    return [[one_more(key) for key in keys[writer::writers]] for writer in range(writers)]


def one_more(key: int) -> Statement:
    """Add one to a row."""
    return Statement(f"UPDATE {{}} SET x = x + 1 WHERE id = {key}", partial(_by_deltalake, key))


def _by_deltalake(key: int, path: str) -> Any:
    return Theirs(path).update(predicate=f"id = {key}", updates={"x": "x + 1"})
