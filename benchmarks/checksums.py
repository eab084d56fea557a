"""What the version checksum file costs a small append: the same appends to a table that has them and one that has none.

A version has a checksum file where the version before has one, so a table without its first never gets any. Checkpoints
are put off, since each begins them anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from uuid import uuid4

import anabranch
from anabranch._log.log import forget
from anabranch.commands.opening import open_log
from benchmarks.appenders import batch
from benchmarks.harness import Cost, Line, Result, Tell, by_turns, compared, cost, spread

APPENDS = 40
ROUNDS = 9


def run(folder: Path, rows: int, tell: Tell, *, appends: int = APPENDS) -> Result:
    """Measure; ``rows`` does not matter here."""
    contenders = {"with .crc": _each(folder, appends, kept=True), "without .crc": _each(folder, appends, kept=False)}
    found = by_turns(contenders, ROUNDS, tell, warm_ups=1)
    return Result(
        name="checksums",
        title="Small appends with and without version checksum files",
        setting=f"{appends} appends of 10 Arrow rows each to a fresh table, local folder, {ROUNDS} rounds by turns",
        lines=[Line(f"{name}, per append", spread(costs)) for name, costs in found.items()],
        ratios=compared("with over without", *found.values()),
        notes=[f"Load of the machine at the end: {os.getloadavg()[0]:.1f} over one minute, on {os.cpu_count()} cores."],
    )


def _each(folder: Path, appends: int, *, kept: bool) -> Callable[[], Cost]:
    def once() -> Cost:
        table = _begun(folder / uuid4().hex, kept=kept)
        numbers = count(1)
        whole = cost(lambda: [anabranch.append(table, batch(0, next(numbers))) for _ in range(appends)])
        assert len(list((table / "_delta_log").glob("*.crc"))) == (appends + 1 if kept else 0)
        return Cost(whole.wall_s / appends, whole.cpu_s / appends)

    return once


def _begun(table: Path, *, kept: bool) -> Path:
    anabranch.append(table, batch(0, 0), properties={"delta.checkpointInterval": "1000000"})
    if not kept:
        for path in (table / "_delta_log").glob("*.crc"):
            path.unlink()
    forget(open_log(table).table)
    _ = open_log(table).snapshot()
    return table
