"""An upsert into a large table: half of the source's rows are there, scattered over all files, half are new.

All read the source from one Parquet file; both Sparks run the same SQL; each run works on a copy of its own; the
sessions are warm. Afterwards all tables must hold the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from deltalake import DeltaTable as Theirs

from benchmarks import judge, large, peers
from benchmarks.harness import Result, Tell
from benchmarks.race import ROUNDS, Race, figures, race_on_copies

SHARE = 100
"""The table has so many times the rows of the source."""
ON = "t.id = s.id"
TASK = "MERGE 1%"


def source(folder: Path, rows: int) -> Path:
    """The source for a table of this many rows, as a Parquet file; the same bytes each time."""
    path, count, dice = folder / "source.parquet", rows // SHARE, np.random.default_rng(7)
    known = dice.choice(rows, count // 2, replace=False)
    ids = np.concatenate([known, np.arange(rows, rows + count - len(known))])
    dice.shuffle(ids)
    pq.write_table(large.rows_of(ids, dice, rows), path)
    return path


def upsert(source: Path) -> str:
    """The statement; ``{}`` stands for the table."""
    both = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    return f"MERGE INTO {{}} t USING parquet.`{source}` s ON {ON} {both}"


def by_deltalake(path: str, given: Path) -> Any:
    """The same as deltalake spells it."""
    on = Theirs(path).merge(pq.read_table(given), predicate=ON, source_alias="s", target_alias="t")
    return on.when_matched_update_all().when_not_matched_insert_all().execute()


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows, and on one of a tenth."""
    races = [_raced(folder / str(count), count, tell, suffix) for suffix, count in large.sizes(rows).items()]
    return Result(
        name="merge",
        title="Merging rows into a large table, half of them new",
        setting=f"{large.described(folder / str(rows), rows)}, merged with {rows // SHARE:,} rows; {peers.SETTING},"
        f" warm, a fresh copy for each run, {ROUNDS} rounds by turns",
        **vars(figures("merge", races)),
        notes=[peers.BESIDE, peers.MEMORY_NOTE],
    )


def _raced(folder: Path, rows: int, tell: Tell, suffix: str) -> Race:
    tables = peers.tables(folder, rows, tell)
    given = source(folder, rows)
    sides = peers.changing(upsert(given), lambda path: by_deltalake(path, given), tables, judge.large)
    found = race_on_copies(TASK + suffix, sides, tell)
    peers.clear(sides)
    return found
