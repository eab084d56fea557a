"""The laboratory on real Spark: the same plans, scheduler and oracle, on local disk, with Spark's engine.

A history takes seconds here, so there are hundreds and not hundreds of thousands: what they prove is that the engine
behind the commands does what the quick one does. `python -m laboratory.on_spark --histories 300`
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import UUID

import pyarrow as pa
import typer
from pyspark.sql import DataFrame, SparkSession
from rich.progress import track

from anabranch._log.log import forget
from anabranch._protocol.merges import Clause, MergePlan, SourceColumn
from anabranch._protocol.merges import When as Kind
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.session import build
from anabranch._storage import Store, open_store
from anabranch.commands.opening import open_log
from anabranch.commands.queries.read import Read
from laboratory.places import Base, InMemory, make
from laboratory.plan_generator import plan_for
from laboratory.plans import Plan, Setup
from laboratory.runs import run
from laboratory.sql_texts import of_side, text_of
from laboratory.statements import COLUMNS, Assignment, Copy, Merge, Optimize, Take, Vacuum, When
from laboratory.stories import story
from laboratory.verdicts import violations


class OnSpark:
    """Tables in a local folder, rows by Spark (`laboratory.places.Place`)."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self._numbers = spark, folder, count()
        self._made: dict[Setup, Path] = {}

    def base(self, setup: Setup, now_ms: Callable[[], int]) -> Base:
        """A copy of the table's folder; the table is made without Spark, which is quicker."""
        if setup not in self._made:
            self._made[setup] = self._folder / f"base-{next(self._numbers)}"
            location = str(self._made[setup])
            make(setup, location, open_store(location), InMemory())
        copy = self._folder / f"run-{next(self._numbers)}"
        shutil.copytree(self._made[setup], copy)
        version = open_log(str(copy)).snapshot().version
        forget(open_store(str(copy)).url)
        return Base(open_store(str(copy)), version)

    def engine(self, new_id: Callable[[], UUID], store: Store) -> SparkEngine:
        """Spark's engine; its files name themselves."""
        return SparkEngine(self._spark)

    def value(self, assignment: Assignment) -> Any:
        """The assignment's right side as SQL."""
        return text_of(assignment)

    def matching(self, merge: Merge) -> MergePlan:
        """The MERGE as SQL, the table as ``t`` and the source as ``s``."""
        on = " AND ".join([*(f"t.{name} = s.{name}" for name in merge.by), f"({of_side(merge.also, 't')})"])
        return MergePlan(on, tuple(map(_clause, merge.clauses)), "t", "s")

    def source(self, select: Copy, location: str, version: int, rows: pa.Table) -> DataFrame:
        """A real query of that version."""
        table = SparkEngine(self._spark).to_df(Read(location, version).run())
        sets = {each.column: text_of(each) for each in select.sets}
        return table.filter(str(select.where)).selectExpr(*(f"{sets.get(name, name)} AS {name}" for name in COLUMNS))


def _clause(when: When) -> Clause:
    kind = cast(Kind, when.kind)
    if when.kind == "not matched":
        values: dict[str, Any] = {name: SourceColumn(name) for name in COLUMNS}
        return Clause(kind, "insert", of_side(when.where, "s"), values)
    if when.sets is None:
        return Clause(kind, "delete", of_side(when.where, "t"))
    return Clause(kind, "update", of_side(when.where, "t"), {each.column: _assigned(each) for each in when.sets})


def _assigned(assignment: Assignment | Take) -> Any:
    if isinstance(assignment, Take):
        return SourceColumn(assignment.column)
    return of_side(text_of(assignment), "t")


def wrong_on_spark(spark: SparkSession, folder: Path, seeds: range) -> list[tuple[int, str]]:
    """Run these seeds on Spark: each violation with its seed."""
    place, found = OnSpark(spark, folder), []
    for seed in track(seeds, description="on Spark"):
        found += [(seed, str(each)) for each in violations(run(plan_without_faults(seed), place))]
    return found


def plan_without_faults(seed: int) -> Plan:
    """The plan of a seed, with no call failing: Spark calls the disk by itself. Nor does it vacuum: that
    goes by the disk's own clock, from which the plan's is years away.
    """
    plan = plan_for(seed)
    statements = tuple(Optimize() if isinstance(each, Vacuum) else each for each in plan.statements)
    return replace(plan, statements=statements, failures=())


def main(
    histories: Annotated[int, typer.Option(help="How many histories to run.")] = 300,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
) -> None:
    """Run the laboratory on Spark; the exit code is 1 where anything is wrong."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "3g", "spark.ui.enabled": "false"}
    spark = build("laboratory", "local[2]", {**conf, "spark.ui.showConsoleProgress": "false"})
    with tempfile.TemporaryDirectory() as folder:
        wrong = wrong_on_spark(spark, Path(folder), range(first, first + histories))
        for seed, what in wrong[:5]:
            print(seed, what)
            print(story(run(plan_without_faults(seed), OnSpark(spark, Path(folder)))))
    spark.stop()
    print(f"{histories} histories on Spark, {len(wrong)} violations")
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
