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
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, compared, cost, spread

ROUNDS = 7
WARM_UPS = 2
COLUMN = "amount"


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows."""
    spark = anabranch.session("benchmarks", **{"spark.sql.session.timeZone": "UTC"})
    table = large.make(folder, rows, vectors=True, tell=tell)
    tell("deleting 1%")
    marked = large.copy(table, folder / "marked")
    DeltaTable.forPath(spark, str(marked)).delete(large.PERCENT)
    lines: list[Line] = []
    ratios: list[Ratio] = []
    for columns, limits in (([], (1.05, 1.5)), ([COLUMN], (1.10, None))):
        what = COLUMN if columns else "all columns"
        contenders = {
            f"{what}: {name}": _scanned(frame, columns) for name, frame in _frames(spark, table, marked).items()
        }
        found = by_turns(contenders, ROUNDS, tell, warm_ups=WARM_UPS)
        lines += [Line(name, spread(costs)) for name, costs in found.items()]
        plain, *others = found
        for name, limit in zip(others, limits, strict=True):
            ratios += compared(f"{name} over plain Parquet", found[name], found[plain], limit)
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


def _scanned(frame: Callable[[], DataFrame], columns: list[str]) -> Callable[[], Cost]:
    def scan() -> None:
        rows = frame()
        (rows.select(*columns) if columns else rows).write.format("noop").mode("overwrite").save()

    return lambda: cost(scan)
