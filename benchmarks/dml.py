"""DELETE and UPDATE of scattered rows of a large table: Anabranch on Spark marks them, delta-rs rewrites their files.

Each run works on a copy of its own; the session is warm. Afterwards both tables must hold the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable as Theirs
from deltalake import QueryBuilder

import anabranch
from anabranch import DeltaTable
from benchmarks import large
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, compared, cost, spread

ROUNDS = 3
WARM_UPS = 3
"""Spark compiles what it runs often: a statement's first run costs about twice as much as its fourth."""


@dataclass(frozen=True)
class Task:
    """One statement, as each library spells it, and the bound on our time over theirs."""

    what: str
    ours: Callable[[DeltaTable], Any]
    theirs: Callable[[Theirs], Any]
    at_most: float


@dataclass(frozen=True)
class Side:
    """One library about to run one statement on copies of its table."""

    name: str
    table: Path
    statement: Callable[[str], Any]

    def run(self) -> Cost:
        """One run on a fresh copy."""
        path = self._copy()
        measured = cost(lambda: self.statement(str(path)))
        shutil.rmtree(path)
        return measured

    def digest(self) -> tuple[int, ...]:
        """What a copy holds afterwards: rows, and sums that tell which ones they are, as delta-rs reads them."""
        path = self._copy()
        self.statement(str(path))
        cents = "CAST(round(amount * 100) AS BIGINT)"
        query = f"SELECT count(*), sum(id), sum(percent), sum({cents}), sum(id % 1000003 * {cents}) FROM t"
        (batch,) = QueryBuilder().register("t", Theirs(path)).execute(query).read_all().to_batches()
        shutil.rmtree(path)
        return tuple(int(column[0].as_py()) for column in batch.columns)

    def _copy(self) -> Path:
        return large.copy(self.table, self.table.parent / uuid4().hex)


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
    marked, plain = (large.make(folder, rows, vectors=vectors, tell=tell) for vectors in (True, False))
    found: dict[str, dict[str, list[Cost]]] = {}
    for task in tasks(rows):
        sides = [
            Side("anabranch", marked, lambda path, work=task.ours: work(DeltaTable.forPath(spark, path))),  # type: ignore[misc]
            Side("deltalake", plain, lambda path, work=task.theirs: work(Theirs(path))),  # type: ignore[misc]
        ]
        found[task.what] = measured(task.what, sides, tell)
    size = f"{rows:,} rows, 6 columns, {large.FILES} files, {large.megabytes(plain)} MB"
    return Result(
        name="dml",
        title="Changing scattered rows of a large table",
        setting=f"{size}; warm session, a fresh copy for each run, medians of {ROUNDS}",
        lines=[
            Line(f"{what}, {name}", spread(costs)) for what, sides in found.items() for name, costs in sides.items()
        ],
        ratios=[ratio for task in tasks(rows) for ratio in _ratios(task, found[task.what])],
        notes=["delta-rs has a table without deletion vectors, since it writes none; the data files are the same."],
    )


def _ratios(task: Task, costs: Mapping[str, list[Cost]]) -> list[Ratio]:
    return compared(f"{task.what}, ours over delta-rs", costs["anabranch"], costs["deltalake"], task.at_most)


def measured(what: str, sides: Sequence[Side], tell: Tell) -> dict[str, list[Cost]]:
    """The costs by library, once both are known to do the same: a fast statement that does less is worth nothing."""
    tell(f"{what}: comparing what comes out")
    digests = {side.digest() for side in sides}
    assert len(digests) == 1, f"the tables differ after {what}: {digests}"
    contenders = {side.name: side.run for side in sides}
    return by_turns(contenders, ROUNDS, lambda text: tell(f"{what}: {text}"), warm_ups=WARM_UPS - 1)
