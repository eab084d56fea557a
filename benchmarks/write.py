"""Writing a large table in bulk: plain Parquet is the limit, since a Delta table is that and a commit.

All write the same rows, which stand in Parquet files, into an empty folder. What a Delta table adds is its log, its
statistics, and files that are known to be on disk before the commit names them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.dataset as ds
from deltalake import write_deltalake

from benchmarks import judge, large, peers
from benchmarks.harness import Cost, Result, Tell, cost
from benchmarks.race import OURS, ROUNDS, Contender, figures, race

TASK = "bulk write"


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure with this many rows."""
    source = large.make(folder, rows, vectors=False, tell=tell)
    files = large.data_files(source)
    contenders = [_contender(folder, name, work) for name, work in _works(files).items()]
    return Result(
        name="write",
        title="Writing a large table in bulk",
        setting=f"{rows:,} rows, 6 columns, from {large.FILES} files of {large.megabytes(source)} MB;"
        f" {peers.SETTING}, an empty folder for each run, {ROUNDS} rounds by turns",
        **vars(figures("write", [race(TASK, contenders, tell)])),
        notes=[peers.MEMORY_NOTE],
    )


def _works(files: list[str]) -> dict[str, Callable[[str], Any]]:
    """How each engine writes the rows of these files into a folder."""
    spark, theirs, folder = peers.session(), peers.delta_spark(), Path(files[0]).parent
    rows = spark.read.parquet(*files)
    found: dict[str, Callable[[str], Any]] = {
        peers.PLAIN: lambda path: rows.write.parquet(path),
        OURS: lambda path: rows.write.format("delta").save(path),
        peers.DELTALAKE: lambda path: write_deltalake(path, ds.dataset(files).scanner().to_reader()),
    }
    if theirs:
        marks = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        source = f"parquet.`{folder}/*.parquet`"
        found[peers.DELTA_SPARK] = lambda path: theirs.sql(
            f"CREATE TABLE delta.`{path}` USING delta {marks} AS SELECT * FROM {source}"
        )
    return found


def _contender(folder: Path, name: str, work: Callable[[str], Any]) -> Contender:
    left: list[Path] = []
    held = judge.held_in_parquet if name == peers.PLAIN else judge.held

    def once() -> Cost:
        while left:
            shutil.rmtree(left.pop())
        left.append(folder / uuid4().hex)
        return cost(lambda: work(str(left[0])), peers.of(name))

    return Contender(name, once, lambda: held(*judge.LARGE)(left[0]))
