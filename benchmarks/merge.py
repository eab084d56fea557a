"""An upsert into a large table: half of the source's rows are there, scattered over all files, half are new.

Both libraries read the source from one Parquet file; each run works on a copy of its own; the session is warm.
Afterwards both tables must hold the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from deltalake import DeltaTable as Theirs
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from benchmarks import large
from benchmarks.dml import ROUNDS, Side, measured
from benchmarks.harness import Line, Result, Tell, compared, spread

SHARE = 100
"""The table has so many times the rows of the source."""
AT_MOST = 0.7
ON = "t.id = s.id"


def source(folder: Path, rows: int) -> Path:
    """The source for a table of this many rows, as a Parquet file; the same bytes each time."""
    path, count, dice = folder / "source.parquet", rows // SHARE, np.random.default_rng(7)
    known = dice.choice(rows, count // 2, replace=False)
    ids = np.concatenate([known, np.arange(rows, rows + count - len(known))])
    dice.shuffle(ids)
    pq.write_table(large.rows_of(ids, dice, rows), path)
    return path


def by_us(spark: SparkSession, path: str, given: Path) -> Any:
    """The upsert, as Anabranch spells it."""
    updates = spark.read.parquet(str(given)).alias("s")
    on = DeltaTable.forPath(spark, path).alias("t").merge(updates, ON)
    return on.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def by_them(path: str, given: Path) -> Any:
    """The upsert, as delta-rs spells it."""
    on = Theirs(path).merge(pq.read_table(given), predicate=ON, source_alias="s", target_alias="t")
    return on.when_matched_update_all().when_not_matched_insert_all().execute()


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows."""
    spark = anabranch.session("benchmarks", **{"spark.sql.session.timeZone": "UTC"})
    marked, plain = (large.make(folder, rows, vectors=vectors, tell=tell) for vectors in (True, False))
    given = source(folder, rows)
    sides = [
        Side("anabranch", marked, lambda path: by_us(spark, path, given)),
        Side("deltalake", plain, lambda path: by_them(path, given)),
    ]
    what = f"MERGE {rows // SHARE:,} rows"
    found = measured(what, sides, tell)
    size = f"{rows:,} rows, 6 columns, {large.FILES} files, {large.megabytes(plain)} MB"
    return Result(
        name="merge",
        title="Merging rows into a large table, half of them new",
        setting=f"{size}; warm session, a fresh copy for each run, medians of {ROUNDS}",
        lines=[Line(f"{what}, {name}", spread(costs)) for name, costs in found.items()],
        ratios=compared(f"{what}, ours over delta-rs", found["anabranch"], found["deltalake"], AT_MOST),
        notes=["delta-rs has a table without deletion vectors, since it writes none; the data files are the same."],
    )
