"""What a transaction of several statements costs: one UPDATE inside over the same UPDATE alone, ten over ten commits.

In a local folder without Spark and with a session, and without Spark on a store whose requests take a fixed time each,
as a bucket's do.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anabranch
from anabranch import DeltaTable
from anabranch._storage.open import mounted
from anabranch.testing.stores import Call, DictStore, ObservedStore
from benchmarks.fixed_cost import ROWS, table_rows
from benchmarks.harness import Cost, Line, Result, Tell, by_turns, compared, cost, spread

ROUNDS, WARM_UPS = 15, 3
STATEMENTS = 10
REQUEST_S = 0.02
AT_MOST = {1: 1.05, STATEMENTS: 0.4}
"""The targets, as multiples of the same statements outside of a transaction, by their number."""

Update = Callable[[str, int], Any]
"""Changes the row of a number in the table at a path."""


def run(folder: Path, rows: int, tell: Tell, *, rounds: int = ROUNDS) -> Result:
    """Measure; ``rows`` does not matter here."""
    settings: dict[str, Callable[[], dict[str, list[Cost]]]] = {
        "local folder": lambda: _locally(folder, _without_spark, None, tell, rounds),
        "local folder, DeltaTable": lambda: _with_spark(folder, tell, rounds),
        f"requests of {REQUEST_S * 1000:.0f} ms": lambda: _far_away(tell, rounds),
    }
    found = {setting: measure() for setting, measure in settings.items()}
    return Result(
        name="transactions",
        title="Transactions of several statements",
        setting=f"UPDATEs of one row each in a table of {ROWS} rows in one file, {rounds} rounds by turns",
        lines=[Line(f"{name}, {setting}", spread(c)) for setting, each in found.items() for name, c in each.items()],
        ratios=[ratio for setting, each in found.items() for ratio in _ratios(setting, each)],
        notes=["Each contender changes a fresh table, made before the clock starts."],
    )


def _ratios(setting: str, found: Mapping[str, list[Cost]]) -> Iterator[Any]:
    for count, at_most in AT_MOST.items():
        inside, alone = found[_name(count, inside=True)], found[_name(count, inside=False)]
        yield from compared(f"{count} in a transaction over alone, {setting}", inside, alone, at_most)


def _name(count: int, *, inside: bool) -> str:
    return f"{count} UPDATE{'s' if count > 1 else ''} {'in a transaction' if inside else 'alone'}"


def _statements(path: str, update: Update, spark: Any, count: int, *, inside: bool) -> None:
    if not inside:
        for number in range(count):
            update(path, number)
        return
    with anabranch.transaction(path, spark=spark):
        for number in range(count):
            update(path, number)


def _without_spark(path: str, number: int) -> None:
    anabranch.table(path).update(f"id = {number}", {"amount": "amount + 1"})


def _with_spark(folder: Path, tell: Tell, rounds: int) -> dict[str, list[Cost]]:
    spark = anabranch.session("benchmarks", **{"spark.sql.session.timeZone": "UTC"})

    def update(path: str, number: int) -> None:
        DeltaTable.forPath(spark, path).update(f"id = {number}", {"amount": "amount + 1"})

    try:
        return _locally(folder, update, spark, tell, rounds)
    finally:
        spark.stop()


def _locally(folder: Path, update: Update, spark: Any, tell: Tell, rounds: int) -> dict[str, list[Cost]]:
    @contextmanager
    def fresh() -> Iterator[str]:
        path = folder / uuid4().hex
        anabranch.append(path, table_rows(range(ROWS)))
        try:
            yield str(path)
        finally:
            shutil.rmtree(path)

    return _measured(fresh, update, spark, tell, rounds)


def _far_away(tell: Tell, rounds: int) -> dict[str, list[Cost]]:
    @contextmanager
    def fresh() -> Iterator[str]:
        store = ObservedStore(DictStore(f"memory://benchmarks/{uuid4().hex}"))
        with mounted(store) as location:
            anabranch.append(location, table_rows(range(ROWS)))
            store.before = _wait
            yield location

    return _measured(fresh, _without_spark, None, tell, rounds)


def _wait(call: Call) -> None:
    time.sleep(REQUEST_S)


def _measured(fresh: Callable[[], Any], update: Update, spark: Any, tell: Tell, rounds: int) -> dict[str, list[Cost]]:
    def once(count: int, *, inside: bool) -> Cost:
        with fresh() as path:
            return cost(lambda: _statements(path, update, spark, count, inside=inside))

    contenders = {
        _name(count, inside=inside): partial(once, count, inside=inside)
        for count in AT_MOST
        for inside in (False, True)
    }
    return by_turns(contenders, rounds, tell, warm_ups=WARM_UPS)
