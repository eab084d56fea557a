"""Small appends, one after the other: what one commit costs when nobody is in the way.

Ten rows of Arrow, fifty times, beside deltalake; and a DataFrame of ten rows, ten times, beside delta-spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks import judge, peers
from benchmarks.appenders import BATCH_ROWS, CONTENDERS, batch
from benchmarks.harness import Cost, Result, Tell, cost
from benchmarks.race import OURS, Contender, Race, figures, race

APPENDS = 50
FRAMES = 10
ROUNDS = 5

Append = Callable[[str, int], Any]
"""Appends the rows of this number to the table at a path."""


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure; ``rows`` does not matter here."""
    return Result(
        name="small_appends",
        title="Small appends, one process",
        setting=f"{BATCH_ROWS} rows each, to a fresh table in a local folder: {APPENDS} times from Arrow,"
        f" {FRAMES} times from a DataFrame; {peers.SETTING}, {ROUNDS} rounds by turns; figures are per append",
        **vars(figures("small_appends", [of_arrow(folder, tell), of_frames(folder, tell)])),
        notes=[
            "Ours fsyncs each data file, each commit and their folders; deltalake calls no fsync.",
            "delta-spark inserts VALUES by SQL, which is the cheapest DataFrame that it can be given.",
            peers.MEMORY_NOTE,
        ],
    )


def of_arrow(folder: Path, tell: Tell, appends: int = APPENDS) -> Race:
    """Without Spark."""
    works: dict[str, Append] = {
        name: lambda path, number, append=append: append(path, batch(0, number)) for name, append in CONTENDERS.items()
    }
    contenders = [_contender(folder, name, work, appends) for name, work in works.items()]
    return race(f"{BATCH_ROWS} rows of Arrow", contenders, tell, rounds=ROUNDS)


def of_frames(folder: Path, tell: Tell, appends: int = FRAMES) -> Race:
    """With both Sparks."""
    frames = [peers.session().createDataFrame(batch(0, number)) for number in range(appends)]
    works: dict[str, Append] = {
        OURS: lambda path, number: frames[number].write.format("delta").mode("append").save(path),
        peers.DELTALAKE: lambda path, number: CONTENDERS["deltalake"](path, batch(0, number)),
    }
    if theirs := peers.delta_spark():
        works[peers.DELTA_SPARK] = lambda path, number: theirs.sql(f"INSERT INTO delta.`{path}` {_values(number)}")
    contenders = [_contender(folder, name, work, appends) for name, work in works.items()]
    return race(f"{BATCH_ROWS} rows of a DataFrame", contenders, tell, rounds=ROUNDS)


def _values(number: int) -> str:
    rows = [f"({', '.join(repr(value) for value in row.values())})" for row in batch(0, number).to_pylist()]
    return f"VALUES {', '.join(rows)}"


def _contender(folder: Path, name: str, append: Append, appends: int) -> Contender:
    left: list[Path] = []

    def once() -> Cost:
        while left:
            shutil.rmtree(left.pop())
        left.append(folder / uuid4().hex)
        path = str(left[0])
        CONTENDERS["deltalake" if name == peers.DELTALAKE else OURS](path, batch(-1, 0))
        whole = cost(lambda: [append(path, number) for number in range(appends)], peers.of(name))
        return Cost(whole.wall_s / appends, whole.cpu_s / appends, whole.peak_mb)

    return Contender(name, once, lambda: judge.held("count(*)", "sum(id)", "sum(worker)", "sum(number)")(left[0]))
