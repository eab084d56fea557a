"""Fifty small appends, one after the other, in one process: what one commit costs when nobody is in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from benchmarks.appenders import CONTENDERS, Append, batch
from benchmarks.harness import Cost, Line, Result, Tell, by_turns, compared, cost, spread

APPENDS = 50
ROUNDS = 5


def run(folder: Path, rows: int, tell: Tell, *, appends: int = APPENDS) -> Result:
    """Measure; ``rows`` does not matter here."""
    for append in CONTENDERS.values():
        _appended(folder, append, 2)  # warm
    found = by_turns({name: _each(folder, append, appends) for name, append in CONTENDERS.items()}, ROUNDS, tell)
    return Result(
        name="small_appends",
        title="Small appends, one process",
        setting=f"{appends} appends of 10 Arrow rows each to a fresh table, local folder, {ROUNDS} rounds by turns",
        lines=[Line(f"{name}, per append", spread(costs)) for name, costs in found.items()],
        ratios=compared("ours over delta-rs", found["anabranch"], found["deltalake"], at_most=2.0),
        notes=["Ours fsyncs each data file, each commit and their folders; delta-rs calls no fsync."],
    )


def _each(folder: Path, append: Append, appends: int) -> Callable[[], Cost]:
    def once() -> Cost:
        whole = cost(lambda: _appended(folder, append, appends))
        return Cost(whole.wall_s / appends, whole.cpu_s / appends)

    return once


def _appended(folder: Path, append: Append, appends: int) -> None:
    path = str(folder / uuid4().hex)
    for number in range(appends):
        append(path, batch(0, number))
