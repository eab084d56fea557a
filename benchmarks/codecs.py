"""Files that are compressed with zstd beside those of the same rows with snappy: how large they are, scans, writes.

PROTOCOL.md recommends zstd where a table names no codec; the default of `anabranch._protocol.compression` follows, as
long as scans meet the bounds here on a quiet machine, by the clock and by processor time.
Spark's writer writes both tables. Spark reads them into its ``noop`` sink, and pyarrow reads the files into memory.
What a write costs has no bound: a file is written once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

import anabranch
from anabranch._protocol.compression import CODEC_PROPERTY
from benchmarks import large, peers
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, compared, cost, spread
from benchmarks.race import WARM_UPS

ROUNDS = 7
ZSTD, SNAPPY = "zstd", "snappy"
MOST_TIME, MOST_BYTES = 1.05, 0.85
"""What zstd may cost, and how small it must be, to be the default."""


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on a table of this many rows."""
    source = large.make(folder, rows, vectors=False, tell=tell)
    tables = {codec: _written(source, folder / codec, codec, tell) for codec in (ZSTD, SNAPPY)}
    costs = {what: _costs(scan, tables, tell) for what, scan in _SCANS.items()}
    writes = {what: _costs_of_writes(partial(write, source), folder, tell) for what, write in _WRITES.items()}
    sizes = {codec: sum(file.stat().st_size for file in _files(table)) for codec, table in tables.items()}
    lines = [
        Line(f"{what}, {codec}", spread(found))
        for what, both in [*costs.items(), *writes.items()]
        for codec, found in both.items()
    ]
    ratios = [
        ratio
        for what, both in costs.items()
        for ratio in compared(f"{what}, zstd over snappy", both[ZSTD], both[SNAPPY], MOST_TIME)
    ]
    for what, both in writes.items():
        ratios += compared(f"{what}, zstd over snappy", both[ZSTD], both[SNAPPY])
    answers = {codec: _sum_of_ids(table) for codec, table in tables.items()}
    return Result(
        name="codecs",
        title="zstd beside snappy",
        setting=f"{rows:,} rows, 6 columns; {peers.SETTING}, warm, {ROUNDS} rounds by turns",
        lines=[*lines, *(Line(f"files of {codec}", {"bytes": size}) for codec, size in sizes.items())],
        ratios=[*ratios, Ratio("bytes, zstd over snappy", sizes[ZSTD] / sizes[SNAPPY], MOST_BYTES)],
        differences=[] if answers[ZSTD] == answers[SNAPPY] else [f"the sums differ: {answers}"],
    )


def _written(source: Path, to: Path, codec: str, tell: Tell) -> Path:
    tell(f"writing the table with {codec}")
    rows = peers.session().read.format("delta").load(str(source))
    rows.write.format("delta").option(CODEC_PROPERTY, codec).save(str(to))
    return to


def _files(table: Path) -> list[Path]:
    return sorted(file for file in table.rglob("*.parquet") if "_delta_log" not in file.parts)


def _scan_by_spark(table: Path) -> None:
    peers.session().read.format("delta").load(str(table)).write.format("noop").mode("overwrite").save()


def _scan_by_arrow(table: Path) -> None:
    for file in _files(table):
        pq.read_table(file)


_SCANS: dict[str, Callable[[Path], Any]] = {"scan by Spark": _scan_by_spark, "scan by pyarrow": _scan_by_arrow}


def _write_by_spark(source: Path, to: Path, codec: str) -> None:
    rows = peers.session().read.parquet(*map(str, _files(source)))
    rows.write.format("delta").option(CODEC_PROPERTY, codec).save(str(to))


def _append_by_arrow(source: Path, to: Path, codec: str) -> None:
    anabranch.append(to, pq.read_table(_files(source)[0]), properties={CODEC_PROPERTY: codec})


_WRITES: dict[str, Callable[[Path, Path, str], None]] = {
    "bulk write by Spark": _write_by_spark,
    "append of one file's rows by Arrow": _append_by_arrow,
}


def _costs_of_writes(write: Callable[[Path, str], None], folder: Path, tell: Tell) -> dict[str, list[Cost]]:
    def once(codec: str) -> Cost:
        to = folder / "written"
        shutil.rmtree(to, ignore_errors=True)
        return cost(partial(write, to, codec))

    return by_turns({codec: partial(once, codec) for codec in (ZSTD, SNAPPY)}, ROUNDS, tell, warm_ups=WARM_UPS)


def _costs(scan: Callable[[Path], Any], tables: dict[str, Path], tell: Tell) -> dict[str, list[Cost]]:
    runs = {codec: partial(cost, partial(scan, table)) for codec, table in tables.items()}
    return by_turns(runs, ROUNDS, tell, warm_ups=WARM_UPS)


def _sum_of_ids(table: Path) -> int:
    return sum(pc.sum(pq.read_table(file, columns=["id"])["id"]).as_py() for file in _files(table))
