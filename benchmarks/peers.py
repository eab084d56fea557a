"""The engines that are measured, each with the same cores and memory, and started once for all benchmarks of a run.

Ours and plain Parquet share one Spark; real delta-spark has its own, of the PySpark that it wants (`tools/interop`);
deltalake runs in this process. A contender's memory is that of the processes that do its work: for ours and for plain
Parquet this process with its JVM and workers, for delta-spark those of its own session, for deltalake this process.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import anabranch
from benchmarks import large, processes
from benchmarks.harness import Tell
from benchmarks.processes import Processes
from benchmarks.race import OURS, OnCopies
from tests.support.delta_spark import DeltaSpark
from tools import interop

PLAIN, DELTA_SPARK, DELTALAKE = "plain Parquet", "delta-spark", "deltalake"
CORES = 2
MASTER = f"local[{CORES}]"
MEMORY = "3g"
SETTING = f"{MASTER} with {MEMORY} for each Spark"
_COMMON = {"spark.driver.memory": MEMORY, "spark.sql.shuffle.partitions": str(CORES)}
BESIDE = (
    "delta-spark works on a table of the same bytes as ours, with deletion vectors on; deltalake on one with the same"
    " rows in as many files without deletion vectors, since it writes none."
)
MEMORY_NOTE = (
    "peak_mb: of this process with its Spark for ours and plain Parquet, of this process alone for deltalake, of its"
    " own Spark for delta-spark; a JVM keeps what it once took."
)


@cache
def session() -> SparkSession:
    """Our Spark, installed; plain Parquet is read and written by it as well."""
    settings = _COMMON | {"spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
    return anabranch.install(anabranch.session("benchmarks", MASTER, **settings))


@cache
def delta_spark() -> DeltaSpark | None:
    """Real delta-spark with the cores and the memory of ours, or None where it is not installed."""
    if not interop.is_ready():
        return None
    found = DeltaSpark({"spark.master": MASTER, "spark.driver.extraJavaOptions": "", **_COMMON})
    atexit.register(found.__exit__, None, None, None)
    return found


@dataclass(frozen=True)
class Tables:
    """Two tables of the same rows: one with deletion vectors, and one without them, for deltalake."""

    marking: Path
    rewriting: Path


def of(name: str) -> Processes:
    """The processes in which an engine works."""
    return {DELTA_SPARK: _of_delta_spark, DELTALAKE: processes.this_one}.get(name, _of_ours)


def _of_delta_spark() -> set[int]:
    theirs = delta_spark()
    return processes.below(theirs.process) if theirs else set()


def _of_ours() -> set[int]:
    return processes.below() - (_of_delta_spark() if delta_spark.cache_info().currsize else set())


def tables(folder: Path, rows: int, tell: Tell) -> Tables:
    """The large table, in both forms."""
    return Tables(*(large.make(folder, rows, vectors=vectors, tell=tell) for vectors in (True, False)))


def sparks() -> dict[str, Callable[[str], Any]]:
    """What runs one statement on ours, and on delta-spark where it is there."""
    theirs = delta_spark()
    return {OURS: session().sql, **({DELTA_SPARK: theirs.sql} if theirs else {})}


def changing(
    text: str, rust: Callable[[str], Any], tables: Tables, judge: Callable[[Path], object]
) -> dict[str, OnCopies]:
    """A statement, in which ``{}`` is the table, on both Sparks, and the same as deltalake spells it."""

    def on(sql: Callable[[str], Any]) -> Callable[[str], Any]:
        return lambda path: sql(text.format(f"delta.`{path}`"))

    sides = {name: OnCopies(tables.marking, on(sql), judge, of(name)) for name, sql in sparks().items()}
    return sides | {DELTALAKE: OnCopies(tables.rewriting, rust, judge, of(DELTALAKE))}


def clear(sides: Mapping[str, OnCopies]) -> None:
    """Remove the copies that a race left."""
    for side in sides.values():
        side.clear()
