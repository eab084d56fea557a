"""DELETE and UPDATE of scattered rows of a large table: Anabranch on Spark marks them, delta-rs rewrites their files.

Each run works on a copy of its own; the session is warm. Afterwards both tables must hold the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable as Theirs
from deltalake import QueryBuilder

import anabranch
from anabranch import DeltaTable
from benchmarks import large
from benchmarks.harness import Line, Ratio, Result, Tell, by_turns, seconds, spread

ROUNDS = 3


@dataclass(frozen=True)
class Task:
    """One statement, as each library spells it, and the bound on ours over theirs."""

    what: str
    ours: Callable[[DeltaTable], Any]
    theirs: Callable[[Theirs], Any]
    at_most: float


def tasks(rows: int) -> list[Task]:
    """What is measured."""
    few = large.few(rows)
    return [
        Task("DELETE 1%", lambda t: t.delete(large.PERCENT), lambda t: t.delete(large.PERCENT), 0.5),
        Task(
            "UPDATE 1000 rows",
            lambda t: t.update(few, {"amount": "amount + 1"}),
            lambda t: t.update(predicate=few, updates={"amount": "amount + 1"}),
            0.6,
        ),
    ]


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on tables of this many rows."""
    spark = anabranch.session("benchmarks", **{"spark.sql.session.timeZone": "UTC"})
    tables = {
        name: large.make(folder, rows, vectors=name == "anabranch", tell=tell) for name in ("anabranch", "deltalake")
    }
    openers: dict[str, Callable[[str], Any]] = {
        "anabranch": lambda path: DeltaTable.forPath(spark, path),
        "deltalake": Theirs,
    }
    lines, ratios = [], []
    for task in tasks(rows):
        works = {"anabranch": task.ours, "deltalake": task.theirs}
        contenders = {name: _on_copies(tables[name], openers[name], works[name]) for name in works}
        tell(f"{task.what}: warming up")
        for work in contenders.values():
            work()
        found = by_turns(contenders, ROUNDS, lambda text, what=task.what: tell(f"{what}: {text}"))
        new = [Line(f"{task.what}, {name}", spread(times)) for name, times in found.items()]
        lines += new
        ours, theirs = (line.figures["median_s"] for line in new)
        ratios.append(Ratio(f"{task.what}: time, ours over delta-rs", ours / theirs, at_most=task.at_most))
        _assert_alike(tables, openers, works)
    return Result(
        name="dml",
        title="Changing scattered rows of a large table",
        setting=f"{rows:,} rows, 6 columns, {large.FILES} files, {large.megabytes(tables['deltalake'])} MB; warm"
        f" session, fresh copy for each run, medians of {ROUNDS}",
        lines=lines,
        ratios=ratios,
        notes=["delta-rs has a table without deletion vectors, since it writes none; the data files are the same."],
    )


def _on_copies(table: Path, opened: Callable[[str], Any], work: Callable[[Any], Any]) -> Callable[[], float]:
    def once() -> float:
        path = large.copy(table, table.parent / uuid4().hex)
        try:
            return seconds(lambda: work(opened(str(path))))
        finally:
            shutil.rmtree(path)

    return once


def _assert_alike(
    tables: Mapping[str, Path], openers: Mapping[str, Callable[[str], Any]], works: Mapping[str, Callable[[Any], Any]]
) -> None:
    """Run once more and compare: a fast statement that does something else is worth nothing."""
    found = set()
    for name, work in works.items():
        path = large.copy(tables[name], tables[name].parent / uuid4().hex)
        work(openers[name](str(path)))
        found.add(_digest(str(path)))
        shutil.rmtree(path)
    assert len(found) == 1, f"the tables differ: {found}"


def _digest(path: str) -> tuple[int, ...]:
    """Rows, and sums that tell which ones they are, as delta-rs reads them."""
    cents = "CAST(round(amount * 100) AS BIGINT)"
    query = f"SELECT count(*), sum(id), sum(percent), sum({cents}), sum(id % 1000003 * {cents}) FROM t"
    (batch,) = QueryBuilder().register("t", Theirs(path)).execute(query).read_all().to_batches()
    return tuple(int(column[0].as_py()) for column in batch.columns)
