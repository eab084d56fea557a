"""Four threads update different rows of one file at once, beside as many updates one after the other.

Where conflicts are found by files, all but one of the threads abort each time. Here none may, and it must not take
longer either. Afterwards the table itself proves that each row was changed once.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable as Theirs
from deltalake import QueryBuilder
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch.errors import DeltaConcurrentModificationException
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, compared, cost, spread

THREADS = 4
UPDATES = 10
ROUNDS = 3
SHARE = 20
"""The large tables of the other benchmarks have so many times the rows of this one."""


class Writers:
    """So many threads, each with its own rows of one file."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int, threads: int) -> None:
        self._spark, self._folder, self._rows, self._threads = spark, folder, rows, threads
        self.aborted: list[int] = []

    def run(self) -> Cost:
        """All updates on a fresh table, shared out among the threads; none is repeated."""
        path, before = str(self._folder / uuid4().hex), len(self.aborted)
        anabranch.append(None, path, pa.table({"id": range(self._rows), "x": pa.repeat(0, self._rows)}))
        keys = range(0, self._rows, self._rows // (THREADS * UPDATES))[: THREADS * UPDATES]
        shares = [keys[i :: self._threads] for i in range(self._threads)]
        with ThreadPoolExecutor(self._threads) as pool:
            measured = cost(lambda: list(pool.map(lambda share: [self._update(path, key) for key in share], shares)))
        prove(path, set(keys) - set(self.aborted[before:]))
        return measured

    def _update(self, path: str, key: int) -> None:
        try:
            DeltaTable.forPath(self._spark, path).update(f"id = {key}", {"x": "x + 1"})
        except DeltaConcurrentModificationException:
            self.aborted.append(key)


def prove(path: str, changed: Collection[int]) -> None:
    """As delta-rs reads it: these rows were changed, once each, and no other."""
    query = "SELECT id, x FROM t WHERE x <> 0 ORDER BY id"
    found = pa.table(QueryBuilder().register("t", Theirs(path)).execute(query).read_all())
    seen = list(zip(found["id"].to_pylist(), found["x"].to_pylist(), strict=True))
    assert seen == [(key, 1) for key in sorted(changed)], f"changed: {seen}"


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on one file of a twentieth of this many rows."""
    spark = anabranch.session("benchmarks", **{"spark.sql.session.timeZone": "UTC"})
    count = rows // SHARE
    at_once, in_turn = (Writers(spark, folder, count, threads) for threads in (THREADS, 1))
    names = f"{THREADS} threads x {UPDATES} UPDATEs", f"{THREADS * UPDATES} UPDATEs in turn"
    found = by_turns({names[0]: at_once.run, names[1]: in_turn.run}, ROUNDS, tell, warm_ups=1)
    aborts = len(at_once.aborted) + len(in_turn.aborted)
    return Result(
        name="one_file",
        title="Threads update different rows of one file",
        setting=f"one file of {count:,} rows; warm session, a fresh table for each run, medians of {ROUNDS}",
        lines=[Line(name, spread(costs)) for name, costs in found.items()],
        ratios=[
            *compared("at once over one after the other", found[names[0]], found[names[1]], 1.0),
            Ratio("aborts", aborts, at_most=0),
        ],
    )
