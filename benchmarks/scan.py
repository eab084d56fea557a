"""Scanning a large table, all columns and one, without vectors and with 1% of the rows marked, beside plain Parquet.

Rows go to Spark's ``noop`` sink, which takes every row and keeps none. Plain Parquet reads the very same files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import anabranch
from anabranch import DeltaTable
from benchmarks import large
from benchmarks.harness import Line, Ratio, Result, Tell, by_turns, seconds, spread

ROUNDS = 7
COLUMN = "amount"


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows."""
    spark = anabranch.session("benchmarks", **{"spark.sql.session.timeZone": "UTC"})
    table = large.make(folder, rows, vectors=True, tell=tell)
    tell("deleting 1%")
    marked = large.copy(table, folder / "marked")
    DeltaTable.forPath(spark, str(marked)).delete(large.PERCENT)
    lines, ratios = [], []
    for columns, limits in (([], (1.05, 1.5)), ([COLUMN], (1.10, None))):
        what = COLUMN if columns else "all columns"
        contenders = {name: _scanned(each, columns) for name, each in _frames(spark, table, marked).items()}
        for work in contenders.values():
            work()
        found = by_turns(contenders, ROUNDS, lambda text, what=what: tell(f"{what}: {text}"))
        lines += [Line(f"{what}: {name}", spread(times)) for name, times in found.items()]
        ratios += _ratios(what, found, *limits)
    return Result(
        name="scan",
        title="Scanning a large table",
        setting=f"{rows:,} rows, 6 columns, {large.FILES} files, {large.megabytes(table)} MB; warm session, noop sink,"
        f" {ROUNDS} rounds by turns",
        lines=lines,
        ratios=ratios,
    )


def _frames(spark: SparkSession, table: Path, marked: Path) -> dict[str, Callable[[], DataFrame]]:
    return {
        "plain Parquet": lambda: spark.read.parquet(*large.data_files(table)),
        "anabranch": lambda: DeltaTable.forPath(spark, str(table)).toDF(),
        "anabranch, 1% marked": lambda: DeltaTable.forPath(spark, str(marked)).toDF(),
    }


def _scanned(frame: Callable[[], DataFrame], columns: list[str]) -> Callable[[], float]:
    def scan() -> None:
        rows = frame()
        (rows.select(*columns) if columns else rows).write.format("noop").mode("overwrite").save()

    return lambda: seconds(scan)


def _ratios(what: str, found: dict[str, list[float]], plain: float, marked: float | None) -> list[Ratio]:
    """The least times are compared: whatever else runs here only ever adds."""
    least = {name: min(times) for name, times in found.items()}
    base = least["plain Parquet"]
    return [
        Ratio(f"{what}: time over plain Parquet", least["anabranch"] / base, at_most=plain),
        Ratio(f"{what}, 1% marked: time over plain Parquet", least["anabranch, 1% marked"] / base, at_most=marked),
    ]
