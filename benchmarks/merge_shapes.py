"""MERGE in the sixteen shapes of Delta's own merge benchmark, on a generated table of returned orders.

That benchmark (``MergeTestCases`` in delta-io/delta) says of each shape which share of the target's files the source
is drawn from, which share of the rows of these files it matches, and how many new rows it brings, as a share of the
same rows. Its target is TPC-DS's ``web_returns``; this one has the columns of that which a MERGE looks at. The source
is a Delta table, as there.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable as Theirs
from deltalake import write_deltalake

import anabranch
from benchmarks import judge, peers
from benchmarks.harness import Ratio, Result, Tell
from benchmarks.race import ROUNDS, Race, bounded, figures, of_all, race_on_copies

SHARE = 10
"""The large tables of the other benchmarks have so many times the rows of this one."""
FILES = 20
ON = "t.wr_order_number = s.wr_order_number AND t.wr_item_sk = s.wr_item_sk"
ITEMS = 18_000
AT_MOST = {peers.DELTA_SPARK: 0.5}
"""Each shape takes at most so much of this peer's time."""
NAME = "merge_shapes"

INSERT = ("WHEN NOT MATCHED THEN INSERT *",)
INSERT_TWICE = ("WHEN NOT MATCHED AND s.wr_item_sk % 2 = 0 THEN INSERT *", *INSERT)
DELETE = ("WHEN MATCHED THEN DELETE",)
UPSERT = ("WHEN MATCHED THEN UPDATE SET *", *INSERT)


@dataclass(frozen=True)
class Shape:
    """One of the sixteen: its clauses, and the shares of files, of matched rows and of new rows."""

    kind: str
    clauses: tuple[str, ...]
    files: float
    matched: float
    fresh: float

    @property
    def what(self) -> str:
        """Its name."""
        return f"{self.kind}, {self.files:.0%} of files, {self.matched:.0%} matched, {self.fresh:.1%} new"


SHAPES = (
    *(Shape("insert only", INSERT, 0.05, 0.0, fresh) for fresh in (0.05, 0.5, 1.0)),
    *(Shape("insert by two clauses", INSERT_TWICE, 0.05, 0.0, fresh) for fresh in (0.05, 0.5, 1.0)),
    Shape("delete only", DELETE, 0.05, 0.05, 0.0),
    *(Shape("upsert", UPSERT, 0.05, matched, fresh) for matched, fresh in ((0.1, 0.01), (0.0, 0.1), (0.01, 0.1))),
    Shape("upsert", UPSERT, 0.05, 0.1, 0.0),
    *(Shape("upsert", UPSERT, files, 0.01, 0.001) for files in (0.5, 1.0)),
    *(Shape("upsert", UPSERT, 0.05, matched, 0.001) for matched in (0.5, 0.99, 1.0)),
)

PROOF = judge.held(
    *("count(*)", "sum(wr_order_number)", "sum(wr_item_sk)", "sum(wr_return_quantity)"),
    "sum((wr_order_number * 31 + wr_item_sk) % 1000003 * wr_return_quantity)",
)


def run(folder: Path, rows: int, tell: Tell, *, shapes: Sequence[Shape] = SHAPES) -> Result:
    """Measure on a tenth of this many rows."""
    count = rows // SHARE
    tables = made(folder, count, tell)
    races = [_raced(folder, shape, count, tables, tell) for shape in shapes]
    found = figures(NAME, races)
    return Result(
        name=NAME,
        title="MERGE in the sixteen shapes of Delta's own benchmark",
        setting=f"{count:,} rows, 6 columns, {FILES} files, merged with a table of one file;"
        f" {peers.SETTING}, warm, a fresh copy for each run,"
        f" {ROUNDS} rounds by turns",
        lines=found.lines,
        ratios=[*_overall(races), *(bounded(each, AT_MOST) for each in found.ratios)],
        differences=found.differences,
        notes=[peers.BESIDE, "Shares of rows are of the rows in the chosen files.", peers.MEMORY_NOTE],
    )


def _overall(races: Sequence[Race]) -> list[Ratio]:
    """Of the shapes' medians: the slowest beside delta-spark, and the median beside deltalake."""
    return [
        *of_all(NAME, "the slowest of the shapes", races, peers.DELTA_SPARK, max),
        *of_all(NAME, "the median of the shapes", races, peers.DELTALAKE, statistics.median),
    ]


def _raced(folder: Path, shape: Shape, rows: int, tables: peers.Tables, tell: Tell) -> Race:
    given = source(folder, shape, rows)
    text = f"MERGE INTO {{}} t USING delta.`{given}` s ON {ON} {' '.join(shape.clauses)}"
    sides = peers.changing(text, partial(_by_deltalake, shape, given), tables, PROOF)
    found = race_on_copies(shape.what, sides, tell)
    peers.clear(sides)
    return found


def _by_deltalake(shape: Shape, given: Path, path: str) -> Any:
    on = Theirs(path).merge(Theirs(given).to_pyarrow_table(), predicate=ON, source_alias="s", target_alias="t")
    if shape.clauses == DELETE:
        return on.when_matched_delete().execute()
    if shape.clauses == UPSERT:
        return on.when_matched_update_all().when_not_matched_insert_all().execute()
    if shape.clauses == INSERT_TWICE:
        on = on.when_not_matched_insert_all(predicate="s.wr_item_sk % 2 = 0")
    return on.when_not_matched_insert_all().execute()


# -- data --------------------------------------------------------------------------------------------------------------


def made(folder: Path, rows: int, tell: Tell) -> peers.Tables:
    """The target in both forms; the same rows each time.

    The MERGE makes version 21: at 20 some of the engines would write a checkpoint, and others not.
    """
    tables = peers.Tables(folder / "marking", folder / "rewriting")
    for table, vectors in ((tables.marking, "true"), (tables.rewriting, "false")):
        anabranch.append(table, returns(np.arange(0), 0), properties={"delta.enableDeletionVectors": vectors})
        for file in range(FILES):
            tell(f"writing file {file + 1} of {FILES}")
            anabranch.append(table, returns(_numbers(file, rows), file))
    return tables


def returns(numbers: np.ndarray, seed: int) -> pa.Table:
    """Returned items: the order's number and the item are the key; the rest is drawn."""
    dice, count = np.random.default_rng(seed), len(numbers)
    cents = dice.integers(100, 100_000, count) / 100
    return pa.table(
        {
            "wr_order_number": numbers // 2,
            "wr_item_sk": numbers % 2 + 1 + numbers * 7919 % (ITEMS // 2) * 2,
            "wr_return_quantity": dice.integers(1, 100, count),
            "wr_return_amt": cents,
            "wr_refunded_cash": np.round(cents * 0.8, 2),
            "wr_returned_date_sk": dice.integers(2_450_000, 2_453_000, count),
        }
    )


def source(folder: Path, shape: Shape, rows: int) -> Path:
    """The rows that are merged, as a table of one file; new ones have orders beyond the target's."""
    files = range(max(1, round(shape.files * FILES)))
    there, dice = np.concatenate([_numbers(file, rows) for file in files]), np.random.default_rng(99)
    known = dice.choice(there, round(shape.matched * len(there)), replace=False)
    fresh = np.arange(rows * 2, rows * 2 + round(shape.fresh * len(there)))
    numbers, path = np.concatenate([known, fresh]), folder / f"source-{uuid4().hex}"
    dice.shuffle(numbers)
    write_deltalake(path, returns(numbers, 12345))
    return path


def _numbers(file: int, rows: int) -> np.ndarray:
    return np.arange(file * rows // FILES, (file + 1) * rows // FILES)
