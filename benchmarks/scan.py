"""Scanning a large table, all columns and one, without vectors and with 1% of the rows marked, beside plain Parquet.

Rows go to Spark's ``noop`` sink, which takes every row and keeps none. All read the very same files; where 1% is
marked, plain Parquet reads the marked rows as well, which is the limit for whoever must leave them out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable as Theirs
from deltalake import QueryBuilder

from anabranch import DeltaTable
from benchmarks import judge, large, peers
from benchmarks.harness import Result, Tell, cost
from benchmarks.race import OURS, Contender, Race, figures, race

ROUNDS = 7
COLUMN = "amount"


@dataclass(frozen=True)
class Reader:
    """How one engine computes all rows of a query on ``{}``, and how it answers one."""

    scan: Callable[[str], Any]
    ask: Callable[[str], pa.Table]


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows."""
    table = large.make(folder, rows, vectors=True, tell=tell)
    tell("deleting 1%")
    marked = large.copy(table, folder / "marked")
    DeltaTable.forPath(peers.session(), str(marked)).delete(large.PERCENT)
    races = [
        _race("all columns", "*", table, tell),
        _race("one column", COLUMN, table, tell),
        _race("all columns, 1% marked", "*", marked, tell),
        _race("one column, 1% marked", COLUMN, marked, tell),
    ]
    return Result(
        name="scan",
        title="Scanning a large table",
        setting=f"{rows:,} rows, 6 columns, {large.FILES} files, {large.megabytes(table)} MB; {peers.SETTING}, warm,"
        f" noop sink, {ROUNDS} rounds by turns",
        **vars(figures("scan", races)),
        notes=[
            "deltalake hands its rows to Python as Arrow, since it has no such sink. delta-spark counts the rows of the"
            " physical plan, since it fails to write to that sink from a table with marked rows.",
            peers.MEMORY_NOTE,
        ],
    )


def _race(what: str, columns: str, table: Path, tell: Tell) -> Race:
    contenders = [_contender(name, reader, columns, table) for name, reader in readers(table).items()]
    return race(what, contenders, tell, rounds=ROUNDS)


def _contender(name: str, reader: Reader, columns: str, table: Path) -> Contender:
    """Plain Parquet knows of no marks, so it is asked about the rows that the others have."""
    where = f"NOT ({large.PERCENT})" if name == peers.PLAIN and table.name == "marked" else ""
    query = judge.sums(judge.LARGE, "{}", where)
    return Contender(
        name,
        lambda: cost(lambda: reader.scan(f"SELECT {columns} FROM {{}}"), peers.of(name)),
        lambda: judge.whole_numbers(reader.ask(query)),
    )


def readers(table: Path) -> dict[str, Reader]:
    """The engines on this table; ``{}`` in a query stands for it."""
    spark, theirs = peers.session(), peers.delta_spark()
    delta, files = f"delta.`{table}`", f"parquet.`{table}/*.parquet`"

    def on_spark(source: str) -> Reader:
        return Reader(
            lambda text: spark.sql(text.format(source)).write.format("noop").mode("overwrite").save(),
            lambda text: spark.sql(text.format(source)).toArrow(),
        )

    found = {peers.PLAIN: on_spark(files), OURS: on_spark(delta), peers.DELTALAKE: _deltalake(table)}
    if theirs:
        found[peers.DELTA_SPARK] = Reader(
            lambda text: theirs.scan(text.format(delta)), lambda text: theirs.query(text.format(delta))
        )
    return found


def _deltalake(table: Path) -> Reader:
    def scan(text: str) -> None:
        for _ in QueryBuilder().register("t", Theirs(str(table))).execute(text.format("t")):
            pass

    def ask(text: str) -> pa.Table:
        return pa.table(QueryBuilder().register("t", Theirs(str(table))).execute(text.format("t")).read_all())

    return Reader(scan, ask)
