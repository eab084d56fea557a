"""What the protocol costs at scale: ``python -m benchmarks.scale``; the figures stand in ``docs/concepts/scale.md``.

Knows loads and tables of figures. Many writers meet on a simulated bucket (`benchmarks.scale_writers`); what a
checkpoint of a million files costs is measured on this machine, by its processor, since no bucket is waited for there.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from anabranch._log.file_names import checkpoint_name
from anabranch._log.log import Log, forget
from anabranch._storage import open_store
from benchmarks import page, synthetic
from benchmarks.harness import RESULTS, Line, Result, save
from benchmarks.scale_page import DOCUMENT, filled
from benchmarks.scale_writers import Load, seen

NAMES = ("scale_rates", "scale_bursts", "scale_intervals", "scale_checkpoints")
_SETTING = "simulated bucket: GET, HEAD 30 to 60 ms, LIST 40 to 90, PUT 50 to 100; 5,500 reads, 3,500 writes a second"


def rates(scale: float = 1.0) -> Result:
    """How busy a table may be."""
    lines = []
    for writers, per_hour, seconds in (
        (100, 1_000, 1200.0),
        (1000, 2_500, 600.0),
        (1000, 5_000, 600.0),
        (1000, 10_000, 600.0),
        (1000, 20_000, 120.0),
    ):
        load = Load(max(2, int(writers * scale)), per_hour, seconds * scale)
        lines.append(Line(f"{writers:,} writers, {per_hour:,} appends an hour", seen(load).figures()))
    return Result("scale_rates", "Appends of many writers to one table", _SETTING, lines, [])


def bursts(scale: float = 1.0) -> Result:
    """All at once."""
    lines = []
    for writers in (1, 10, 20, 100, 300, 1000):
        load = Load(max(1, int(writers * scale)), 0.0)
        lines.append(Line(f"{writers:,} appends at once", seen(load).figures()))
    return Result("scale_bursts", "Appends of as many writers at the same moment", _SETTING, lines, [])


def intervals(scale: float = 1.0) -> Result:
    """What the interval of checkpoints means to a writer that was away."""
    lines = []
    for interval in (10, 100, 1000):
        load = Load(int(1000 * scale), 5_000, 600.0 * scale)
        load = replace(load, properties={"delta.checkpointInterval": str(interval)})
        lines.append(Line(f"a checkpoint every {interval} commits", seen(load).figures()))
    title = "1,000 writers, 5,000 appends an hour, by the interval of checkpoints"
    return Result("scale_intervals", title, _SETTING, lines, [])


def checkpoints(scale: float = 1.0) -> Result:
    """What a checkpoint costs who writes it."""
    lines = []
    for files in (10_000, 100_000, 1_000_000):
        lines.append(Line(f"{files:,} files", _checkpoint(max(100, int(files * scale)))))
    setting = "on this machine's disk, no other engine: reading the checkpoint before, writing the next, and its size"
    return Result("scale_checkpoints", "A checkpoint of a table of many files", setting, lines, [])


def _checkpoint(files: int) -> dict[str, float | int]:
    with tempfile.TemporaryDirectory(prefix="anabranch-scale-") as folder:
        table = synthetic.with_checkpoint(Path(folder), files)
        synthetic.commit_of_one(table, 2)
        log, cpu, began = Log(open_store(str(table))), time.process_time(), time.perf_counter()
        assert len(log.snapshot().files) == files + 1
        read = time.perf_counter()
        log.write_checkpoint(log.snapshot(), now_ms=time.time_ns() // 1_000_000)
        written = time.perf_counter()
        forget(log.table)
        return {
            "read_s": read - began,
            "write_s": written - read,
            "cpu_s": time.process_time() - cpu,
            "megabytes": (table / checkpoint_name(2)).stat().st_size / 1e6,
        }


RUNS: dict[str, Callable[[float], Result]] = dict(zip(NAMES, (rates, bursts, intervals, checkpoints), strict=True))


def main(names: Sequence[str]) -> None:
    """Run all, or the named ones, and write their figures to where they are kept and shown."""
    logging.disable(logging.WARNING)  # a checksum file that the service was too busy for is no news here
    for name in names or NAMES:
        began = time.perf_counter()
        save(RUNS[name](1.0))
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    page.write()
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8"), RESULTS), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
