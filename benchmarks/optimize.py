"""OPTIMIZE of 14 files with deletion vectors, and ZORDER BY two columns: ours beside delta-rs, and beside delta-spark
where its environment is there (`make interop`).

Both Sparks have two cores, the same memory, and a JVM that compiles as it does by default. Each run works on a copy of
its own; afterwards all must hold the same rows. What ZORDER is for is counted as well: how many files, and which share
of the rows, a look-up cannot skip before and after.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable as Theirs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch.commands.ddl.alter import SetProperties
from benchmarks import large
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, compared, cost, spread
from tests.support.delta_spark import DeltaSpark
from tools import interop

FILES = 14
ROUNDS = 3
WARM_UPS = 1
MASTER = "local[2]"
MEMORY = "3g"
COLUMNS = ("few", "day")
PACKED_BYTES = 256 << 20
ORDERED_FILES = 16
"""The size of files is chosen so that ZORDER makes about so many."""


@dataclass(frozen=True)
class Side:
    """One library: the table that it gets, and how it does one task on a copy; ``left`` is the last copy of all."""

    name: str
    table: Path
    work: Callable[[str], Any]
    left: list[Path] = field(default_factory=list)

    def run(self) -> Cost:
        """One run on a fresh copy, which is kept until the next."""
        while self.left:
            shutil.rmtree(self.left.pop())
        path = large.copy(self.table, self.table.parent / uuid4().hex)
        self.left.append(path)
        return cost(lambda: self.work(str(path)))


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on tables of this many rows."""
    settings = {"spark.driver.memory": MEMORY, "spark.sql.session.timeZone": "UTC"}
    spark = anabranch.session("benchmarks", MASTER, **settings)
    marked, plain = tables(spark, folder, rows, tell)
    with ExitStack() as stack:
        theirs = stack.enter_context(delta_spark()) if interop.is_ready() else None
        lines: list[Line] = []
        ratios: list[Ratio] = []
        for what, target, columns in _tasks(plain):
            SetProperties(marked, {"delta.targetFileSize": str(target)}).run()
            sides = _sides(spark, theirs, (marked, plain), target, columns)
            found = by_turns({each.name: each.run for each in sides}, ROUNDS, telling(tell, what), warm_ups=WARM_UPS)
            _prove_alike(spark, sides)
            lines += [Line(f"{what}, {name}", spread(costs)) for name, costs in found.items()]
            ratios += _ratios(what, found)
            if columns:
                skipped = list(skipping(sides, rows))
                lines, ratios = lines + [line for line, _ in skipped], ratios + [ratio for _, ratio in skipped]
    return Result(
        name="optimize",
        title="OPTIMIZE of files with deletion vectors, and ZORDER",
        setting=f"{rows:,} rows, 6 columns, {FILES} files, {large.megabytes(plain)} MB, 1% of the rows marked; {MASTER}"
        f" with {MEMORY} for each Spark, a fresh copy for each run, medians of {ROUNDS}",
        lines=lines,
        ratios=ratios,
        notes=[
            "delta-rs has a table of the same live rows without deletion vectors, in as many files.",
            f"All aim at files of the same size: {PACKED_BYTES >> 20} MB, and for ZORDER a {ORDERED_FILES}th of the"
            " table; each goes by its own measure of that.",
            "What a look-up reads is told by the statistics that each engine left in the log.",
            f"Load of the machine at the end: {os.getloadavg()[0]:.1f} over one minute, on {os.cpu_count()} cores.",
        ],
    )


# -- tables ------------------------------------------------------------------------------------------------------------


def tables(spark: SparkSession, folder: Path, rows: int, tell: Tell) -> tuple[Path, Path]:
    """Two tables of the same live rows: one of which 1% are marked as deleted, one that never had those."""
    marked, plain = (make(folder, rows, vectors=vectors, tell=tell) for vectors in (True, False))
    tell("marking 1%")
    DeltaTable.forPath(spark, str(marked)).delete(large.PERCENT)
    return marked, plain


def make(folder: Path, rows: int, *, vectors: bool, tell: Tell) -> Path:
    """A table in 14 files, the same bytes each time; without vectors it lacks the rows that the other one will mark."""
    path = folder / ("marked" if vectors else "plain")
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    for file in range(FILES):
        tell(f"writing file {file + 1} of {FILES} of a table of {rows:,} rows")
        ids = np.arange(file * rows // FILES, (file + 1) * rows // FILES)
        given = large.rows_of(ids, np.random.default_rng(file), rows)
        given = given if vectors else given.filter(pc.not_equal(given["percent"], 17))
        anabranch.append(None, path, given, properties=properties if file == 0 else None)
    return path


# -- tasks -------------------------------------------------------------------------------------------------------------


def _tasks(plain: Path) -> Sequence[tuple[str, int, tuple[str, ...]]]:
    """What is measured: its name, the size that files shall have, and the columns of ZORDER."""
    ordered = max(1, sum(map(os.path.getsize, large.data_files(plain))) // ORDERED_FILES)
    return [("OPTIMIZE", PACKED_BYTES, ()), ("ZORDER", ordered, COLUMNS)]


def _sides(
    spark: SparkSession,
    theirs: DeltaSpark | None,
    both: tuple[Path, Path],
    target: int,
    columns: tuple[str, ...],
) -> list[Side]:
    marked, plain = both
    found = [
        Side("anabranch", marked, lambda path: _ours(spark, path, columns)),
        Side("deltalake", plain, lambda path: _rust(path, target, columns)),
    ]
    if theirs is not None:
        for setting in ("maxFileSize", "minFileSize"):
            theirs.sql(f"SET spark.databricks.delta.optimize.{setting} = {target}")
        found.append(Side("delta-spark", marked, lambda path: _theirs(theirs, path, columns)))
    return found


def _ours(spark: SparkSession, path: str, columns: tuple[str, ...]) -> None:
    optimize = DeltaTable.forPath(spark, path).optimize()
    done = optimize.executeZOrderBy(*columns) if columns else optimize.executeCompaction()
    done.collect()


def _rust(path: str, target: int, columns: tuple[str, ...]) -> None:
    optimize = Theirs(path).optimize
    _ = optimize.z_order(columns, target_size=target) if columns else optimize.compact(target_size=target)


def _theirs(theirs: DeltaSpark, path: str, columns: tuple[str, ...]) -> None:
    theirs.sql(f"OPTIMIZE delta.`{path}`" + (f" ZORDER BY ({', '.join(columns)})" if columns else ""))


def delta_spark() -> DeltaSpark:
    """Real delta-spark with the cores and the memory that ours has."""
    settings = {
        "spark.master": MASTER,
        "spark.driver.memory": MEMORY,
        "spark.driver.extraJavaOptions": "",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }
    return DeltaSpark(settings)


# -- what came out -----------------------------------------------------------------------------------------------------


def _prove_alike(spark: SparkSession, sides: Sequence[Side]) -> None:
    """A fast OPTIMIZE that does nothing, or loses a row, is worth nothing."""
    digests = {each.name: digest(spark, each.left[0]) for each in sides}
    assert len(set(digests.values())) == 1, f"the tables differ: {digests}"
    idle = [each.name for each in sides if len(anabranch.history(each.left[0])) == len(anabranch.history(each.table))]
    assert not idle, f"{idle} committed nothing"


def digest(spark: SparkSession, table: Path) -> tuple[int, ...]:
    """What a table holds: rows, and sums that tell which ones they are."""
    rows = DeltaTable.forPath(spark, str(table)).toDF()
    cents = F.round(F.col("amount") * 100).cast("bigint")
    mixed = F.sum((F.col("id") % 1_000_003) * cents)
    [found] = rows.select(F.count("*"), F.sum("id"), F.sum("percent"), F.sum("few"), F.sum(cents), mixed).collect()
    return tuple(map(int, found))


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


def skipping(sides: Sequence[Side], rows: int) -> Iterator[tuple[Line, Ratio]]:
    """For each look-up and library, the files before and after, and by what factor fewer rows are read."""
    for what, where in lookups(rows).items():
        for side in sides:
            before, after = touched(side.table, where), touched(side.left[0], where)
            figures = {"before_files": before[0], "after_files": after[0], "after_of_files": after[1]}
            line = Line(f"{what}, {side.name}", {**figures, "after_rows_percent": 100 * after[2]})
            yield line, Ratio(f"{what}, rows before over after, {side.name}", before[2] / max(after[2], 1e-9))


def _ratios(what: str, found: Mapping[str, list[Cost]]) -> list[Ratio]:
    others = [name for name in found if name != "anabranch"]
    return [r for name in others for r in compared(f"{what}, ours over {name}", found["anabranch"], found[name])]


def telling(tell: Tell, what: str) -> Tell:
    """Tells with each line what is measured."""
    return lambda text: tell(f"{what}: {text}")
