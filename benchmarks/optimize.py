"""OPTIMIZE of 14 files with deletion vectors, and ZORDER BY two columns, beside delta-spark and deltalake.

Each run works on a copy of its own; afterwards all must hold the same rows. What ZORDER is for is counted as well: how
many files, and which share of the rows, a look-up cannot skip before and after.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable as Theirs

import anabranch
from anabranch import DeltaTable
from anabranch.commands.ddl.alter import SetProperties
from benchmarks import judge, large, peers
from benchmarks.harness import Line, Ratio, Result, Tell
from benchmarks.race import ROUNDS, OnCopies, figures, race_on_copies

FILES = 14
COLUMNS = ("few", "day")
PACKED_BYTES = 256 << 20
SHARE = 5
"""A fifth of the rows of the other tables, of which deltalake orders all in two minutes a time."""
ORDERED_FILES = 16
"""The size of files is chosen so that ZORDER makes about so many."""


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on tables of a fifth of this many rows."""
    rows //= SHARE
    tables = both(folder, rows, tell)
    races, skipped = [], list[tuple[Line, Ratio]]()
    for what, target, columns in _tasks(tables.rewriting):
        SetProperties(tables.marking, {"delta.targetFileSize": str(target)}).run()
        sides = _sides(tables, target, columns)
        races.append(race_on_copies(what, sides, tell))
        _prove_busy(sides)
        skipped += skipping(sides, rows) if columns else []
        peers.clear(sides)
    found = figures("optimize", races)
    return Result(
        name="optimize",
        title="OPTIMIZE of files with deletion vectors, and ZORDER",
        setting=f"{rows:,} rows, 6 columns, {FILES} files, {large.megabytes(tables.rewriting)} MB, 1% of the rows"
        f" marked; {peers.SETTING}, a fresh copy for each run, {ROUNDS} rounds by turns",
        lines=[*found.lines, *(line for line, _ in skipped)],
        ratios=[*found.ratios, *(ratio for _, ratio in skipped)],
        differences=found.differences,
        notes=[
            "deltalake has a table of the same live rows without deletion vectors, in as many files.",
            f"All aim at files of the same size: {PACKED_BYTES >> 20} MB, and for ZORDER a {ORDERED_FILES}th of the"
            " table; each goes by its own measure of that.",
            "What a look-up reads is told by the statistics that each engine left in the log.",
            peers.MEMORY_NOTE,
        ],
    )


# -- tables ------------------------------------------------------------------------------------------------------------


def both(folder: Path, rows: int, tell: Tell) -> peers.Tables:
    """Two tables of the same live rows: one of which 1% are marked as deleted, one that never had those."""
    marked, plain = (make(folder, rows, vectors=vectors, tell=tell) for vectors in (True, False))
    tell("marking 1%")
    DeltaTable.forPath(peers.session(), str(marked)).delete(large.PERCENT)
    return peers.Tables(marked, plain)


def make(folder: Path, rows: int, *, vectors: bool, tell: Tell) -> Path:
    """A table in 14 files, the same bytes each time; without vectors it lacks the rows that the other one will mark."""
    path = folder / ("marked" if vectors else "plain")
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    for file in range(FILES):
        tell(f"writing file {file + 1} of {FILES} of a table of {rows:,} rows")
        ids = np.arange(file * rows // FILES, (file + 1) * rows // FILES)
        given = large.rows_of(ids, np.random.default_rng(file), rows)
        given = given if vectors else given.filter(pc.not_equal(given["percent"], 17))
        anabranch.append(path, given, properties=properties if file == 0 else None)
    return path


# -- tasks -------------------------------------------------------------------------------------------------------------


def _tasks(plain: Path) -> Sequence[tuple[str, int, tuple[str, ...]]]:
    """What is measured: its name, the size that files shall have, and the columns of ZORDER."""
    ordered = max(1, sum(map(os.path.getsize, large.data_files(plain))) // ORDERED_FILES)
    return [("OPTIMIZE", PACKED_BYTES, ()), ("ZORDER", ordered, COLUMNS)]


def _sides(tables: peers.Tables, target: int, columns: tuple[str, ...]) -> dict[str, OnCopies]:
    if theirs := peers.delta_spark():
        for setting in ("maxFileSize", "minFileSize"):
            theirs.sql(f"SET spark.databricks.delta.optimize.{setting} = {target}")
    text = "OPTIMIZE {}" + (f" ZORDER BY ({', '.join(columns)})" if columns else "")
    return peers.changing(text, lambda path: _rust(path, target, columns), tables, judge.large)


def _rust(path: str, target: int, columns: tuple[str, ...]) -> Any:
    optimize = Theirs(path).optimize
    return optimize.z_order(columns, target_size=target) if columns else optimize.compact(target_size=target)


# -- what came out -----------------------------------------------------------------------------------------------------


def _prove_busy(sides: Mapping[str, OnCopies]) -> None:
    """A fast OPTIMIZE that does nothing is worth nothing."""
    idle = [
        name
        for name, side in sides.items()
        if len(anabranch.history(side.left[0])) == len(anabranch.history(side.table))
    ]
    assert not idle, f"{idle} committed nothing"


def lookups(rows: int) -> Mapping[str, str]:
    """A point and a range of a twentieth, for each of the two columns."""
    values = max(2, rows // 1000)
    return {
        "few, a point": f"few = {values // 3}",
        "few, a range": f"few BETWEEN {values // 3} AND {values // 3 + values // 20}",
        "day, a point": "day = DATE'2023-01-01'",
        "day, a range": "day BETWEEN DATE'2023-01-01' AND DATE'2023-02-20'",
    }


def touched(table: Path, where: str) -> tuple[int, int, float]:
    """How many files a look-up reads, of how many, and the share of all rows that lies in them."""
    everything, found = anabranch.files(table), anabranch.files(table, where)
    return len(found), len(everything), _rows(found) / max(1, _rows(everything))


def _rows(files: pa.Table) -> int:
    return int(pc.sum(files["rows"]).as_py() or 0)


def skipping(sides: Mapping[str, OnCopies], rows: int) -> Iterator[tuple[Line, Ratio]]:
    """For each look-up and library, the files before and after, and by what factor fewer rows are read."""
    for what, where in lookups(rows).items():
        for name, side in sides.items():
            before, after = touched(side.table, where), touched(side.left[0], where)
            figures = {"before_files": before[0], "after_files": after[0], "after_of_files": after[1]}
            line = Line(f"{what}, {name}", {**figures, "after_rows_percent": 100 * after[2]})
            yield line, Ratio(f"{what}, rows before over after, {name}", before[2] / max(after[2], 1e-9))
