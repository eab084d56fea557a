"""The laboratory on tables without Spark: the same plans, faults, scheduler and oracle, with the backend that such
tables have, and sessions too, as far as it can. `python -m laboratory.in_arrow --histories 10000`

Knows how the backend wants expressions: as texts that are understood for the columns. Reading and writing stay in the
writer's own thread, so that the scheduler and the faults meet each call of the store. Rows are laid along curves by the
laboratory's usual engine, since the backend does that on disks alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Annotated, Any
from uuid import UUID

import pyarrow as pa
import typer

from anabranch._api.table_texts import TableTexts
from anabranch._arrow.backend import ArrowBackend
from anabranch._arrow.site import site_without_spark
from anabranch._log.positions import SourceVersions
from anabranch._protocol.layout.curves import Curve
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.merges import MergePlan
from anabranch._storage.contract import Store
from anabranch.testing.arrow_engine import ArrowEngine, source_versions_of
from laboratory.campaign import STRETCH, prepare
from laboratory.places import InMemory
from laboratory.plan_generator import plan_for
from laboratory.runs import run
from laboratory.sql_texts import of_side, text_of
from laboratory.statements import COLUMNS, Assignment, Merge, Take, When
from laboratory.verbs import ARROW, SCHEMA
from laboratory.verdicts import violations


@dataclass(frozen=True)
class ArrowOfTable(ArrowBackend):
    """The backend, whose sources may say that they were read from the table (`InMemory.source`)."""

    new_id: Callable[[], UUID]

    def cluster(self, files: FileSet, curve: Curve, outputs: int, folder: str, moves: str | None) -> None:
        """By the engine without a JVM."""
        ArrowEngine(self.new_id).cluster(files, curve, outputs, folder, moves)

    def source_versions(self, source: pa.Table, root: str, table_id: str) -> SourceVersions | None:  # type: ignore[override]
        """As the rows say."""
        return source_versions_of(source)


class InArrow(InMemory):
    """Tables in dictionaries, rows by the backend of tables without Spark (`laboratory.places.Place`)."""

    def engine(self, new_id: Callable[[], UUID], store: Store) -> ArrowOfTable:
        """The backend; its files name themselves."""
        return ArrowOfTable(replace(site_without_spark(store), threads=0), new_id)

    def value(self, assignment: Assignment) -> Any:
        """The assignment's right side, understood as SQL."""
        texts = TableTexts("lab", SCHEMA)
        return texts.assignments({assignment.column: text_of(assignment)})[assignment.column]

    def matching(self, merge: Merge) -> MergePlan:
        """The MERGE understood as SQL, the table as ``t`` and the source as ``s``."""
        on = " AND ".join([*(f"t.{name} = s.{name}" for name in merge.by), f"({of_side(merge.also, 't')})"])
        asked = SimpleNamespace(
            source=ARROW.empty_table(),
            source_alias="s",
            target_alias="t",
            on=on,
            clauses=tuple(map(_clause, merge.clauses)),
        )
        return TableTexts("lab", SCHEMA).merge(asked)[1]


def _clause(when: When) -> SimpleNamespace:
    action, side, sets = "update", "t", {each.column: _assigned(each) for each in when.sets or ()}
    if when.kind == "not matched":
        action, side, sets = "insert", "s", {name: f"s.{name}" for name in COLUMNS}
    elif when.sets is None:
        action = "delete"
    return SimpleNamespace(when=when.kind, action=action, condition=of_side(when.where, side), values=sets)


def _assigned(assignment: Assignment | Take) -> str:
    if isinstance(assignment, Take):
        return f"s.{assignment.column}"
    return of_side(text_of(assignment), "t")


def wrong_in_arrow(seeds: Sequence[int]) -> list[tuple[int, str]]:
    """Run these seeds: each violation with its seed."""
    place, found = InArrow(), []
    for seed in seeds:
        found += [(seed, str(each)) for each in violations(run(plan_for(seed), place))]
    return found


def main(
    histories: Annotated[int, typer.Option(help="How many histories to run.")] = 10_000,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = os.cpu_count() or 2,
) -> None:
    """Run the laboratory on tables without Spark; the exit code is 1 where anything is wrong."""
    last = first + histories
    stretches = [range(start, min(start + STRETCH, last)) for start in range(first, last, STRETCH)]
    wrong: list[tuple[int, str]] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=prepare) as pool:
        for done in as_completed([pool.submit(wrong_in_arrow, stretch) for stretch in stretches]):
            wrong += done.result()
    for seed, what in sorted(wrong)[:20]:
        print(seed, what)
    print(f"{histories} histories without Spark, {len(wrong)} violations")
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
