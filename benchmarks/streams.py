"""A stream from one Delta table to another: 200 small batches, and many rows in one query, beside delta-spark where its
environment is there (`make interop`).

Both engines run the same program (`benchmarks.stream_job`) on the same source, each in a process of its own with the
same cores and memory. The latency is that of a whole batch as Spark reports it: planning, reading, writing, committing
and noting it in the checkpoint.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import anabranch
from benchmarks import large
from benchmarks.harness import Line, Ratio, Result, Tell
from tools import interop

BATCHES = 200
BATCH_ROWS = 1000
ROUNDS = 2
MASTER = "local[2]"
MEMORY = "3g"
JOB = Path(__file__).with_name("stream_job.py")
LATENCY, THROUGHPUT = 0.5, 1.0
"""The targets: at most so much of delta-spark's latency, at least so much of its throughput."""


def run(folder: Path, rows: int, tell: Tell, batches: int = BATCHES) -> Result:
    """Measure with a table of this many rows, and another one of so many files."""
    small, big = _small(folder, batches, tell), large.make(folder, rows, vectors=True, tell=tell)
    engines = ("anabranch", "delta") if interop.is_ready() else ("anabranch",)
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for what, source, files, rounds in (("batches", small, 1, 1), ("rows", big, 1000, ROUNDS)):
        found[what] = {engine: [] for engine in engines}
        for turn in range(rounds):
            for engine in engines[:: -1 if turn % 2 else 1]:
                tell(f"{what}, {engine}, round {turn + 1} of {rounds}")
                found[what][engine].append(_flowed(engine, source, folder / f"{what}-{engine}-{turn}", files))
    _prove(found["batches"], batches * BATCH_ROWS)
    _prove(found["rows"], rows)
    return Result(
        name="streams",
        title="A stream from one Delta table to another",
        setting=f"{batches} batches of one file of {BATCH_ROWS:,} rows; and {rows:,} rows, 6 columns,"
        f" {large.FILES} files, in one query with Trigger.AvailableNow, medians of {ROUNDS};"
        f" {MASTER} with {MEMORY} for each Spark",
        lines=_lines(found),
        ratios=_ratios(found) if len(engines) > 1 else [],
        notes=[
            "Both engines run one program, which differs in the line that makes the session.",
            "A query on a few rows goes before each, so that no JVM is measured cold.",
            f"Load of the machine at the end: {os.getloadavg()[0]:.1f} over one minute, on {os.cpu_count()} cores.",
        ],
    )


def _small(folder: Path, batches: int, tell: Tell) -> Path:
    """A table of as many commits as there are to be batches."""
    path, dice = folder / "small", np.random.default_rng(1)
    tell(f"writing {batches} commits")
    for number in range(batches):
        ids = np.arange(number * BATCH_ROWS, (number + 1) * BATCH_ROWS)
        anabranch.append(path, large.rows_of(ids, dice, batches * BATCH_ROWS))
    return path


def _flowed(engine: str, source: Path, folder: Path, files: int) -> Mapping[str, Any]:
    """What one run of the program tells."""
    python = sys.executable if engine == "anabranch" else str(interop.python())
    settings = {"spark.master": MASTER, "spark.driver.memory": MEMORY, "spark.sql.session.timeZone": "UTC"}
    settings |= {"spark.ui.enabled": "false", "spark.sql.streaming.numRecentProgressUpdates": "10000"}
    settings |= {"spark.sql.shuffle.partitions": str(os.cpu_count() or 1)}
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK_"))}
    environment["PYSPARK_PYTHON"] = python
    if engine == "delta":
        environment.pop("PYTHONPATH", None)
        settings |= {
            "spark.jars": ",".join(sorted(map(str, interop.jars().glob("*.jar")))),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",  # its best for small tables
        }
    folder.mkdir()
    command = [python, str(JOB), engine, str(source), str(folder), str(files), json.dumps(settings)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode:
        raise RuntimeError(f"{engine} failed: {done.stderr[-2000:]}")
    told: Mapping[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    shutil.rmtree(folder)
    return told


def _prove(found: Mapping[str, Sequence[Mapping[str, Any]]], rows: int) -> None:
    """Raises unless every run let every row through once."""
    for engine, runs in found.items():
        wrong = [told["rows"] for told in runs if told["rows"] != rows]
        if wrong:
            raise AssertionError(f"{engine} let {wrong[0]} rows through, of {rows}")


def _lines(found: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> list[Line]:
    small = [
        Line(f"{len(runs[0]['batches_ms'])} batches, {engine}", _latency(runs))
        for engine, runs in found["batches"].items()
    ]
    big = [
        Line(
            f"many rows, {engine}", {"median_s": _seconds(runs), "rows_per_s": round(runs[0]["rows"] / _seconds(runs))}
        )
        for engine, runs in found["rows"].items()
    ]
    return small + big


def _latency(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    batches = [each for told in runs for each in told["batches_ms"]]
    longest = statistics.quantiles(batches, n=20)[-1] if len(batches) > 1 else batches[0]
    return {"all_s": _seconds(runs), "median_ms": statistics.median(batches), "p95_ms": longest}


def _seconds(runs: Sequence[Mapping[str, Any]]) -> float:
    return statistics.median(told["seconds"] for told in runs)


def _ratios(found: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> list[Ratio]:
    small, big = found["batches"], found["rows"]
    latency = _latency(small["anabranch"])["median_ms"] / _latency(small["delta"])["median_ms"]
    throughput = _seconds(big["delta"]) / _seconds(big["anabranch"])
    return [
        Ratio("latency of a batch, ours over delta-spark's, median", latency, at_most=LATENCY),
        Ratio(
            "the whole query of small batches, ours over delta-spark's",
            _seconds(small["anabranch"]) / _seconds(small["delta"]),
        ),
        Ratio("throughput of many rows, ours over delta-spark's", throughput, at_least=THROUGHPUT),
    ]
