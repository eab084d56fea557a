"""Statements that touch no Delta table, in an installed session and as Spark alone takes them: what the door costs.

The door looks at the text before Spark does, so the cost of a statement is what that look takes; the whole of both,
by turns, shows that nothing else is added.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

import anabranch
from anabranch._spark.sessions.session import plain_sql
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.prefilter import may_touch_delta
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, cost, spread

STATEMENTS = 20
ROUNDS = 15
AT_MOST_MS = 1.0
_COLUMNS = ", ".join(f"coalesce(c{i % 20}, {i}) AS x{i}" for i in range(400))
_WHERE = " AND ".join(f"c{i % 20} <> {i}" for i in range(200))

TEXTS = {
    "short": "SELECT a.c0, count(*) AS n FROM plain a JOIN other b ON a.c0 = b.c0 WHERE a.c1 > {} GROUP BY a.c0",
    "long": f"SELECT {_COLUMNS} FROM plain JOIN (SELECT c0 AS k FROM other) o ON c0 = k WHERE {_WHERE} AND c1 <> {{}}",
}
"""A statement that is different each time has a number in it that never comes again."""


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure; ``rows`` does not matter here."""
    spark = anabranch.session("benchmarks")
    for name in ("plain", "other"):
        spark.range(1).selectExpr(*(f"id AS c{i}" for i in range(20))).createOrReplaceTempView(name)
    numbers = itertools.count()
    lines, ratios = [], []
    for what, text in TEXTS.items():
        size = f"{what} ({len(text) / 1000:.1f} kB)"
        for again, texts in {
            "same": itertools.repeat(text.format(0)),
            "new": (text.format(i) for i in numbers),
        }.items():
            found = by_turns(_contenders(spark, texts), ROUNDS, tell, warm_ups=3)
            lines += [Line(f"{size}, {again} each time: {name}", spread(costs)) for name, costs in found.items()]
            look_ms = statistics.median(each.wall_s for each in found["the look alone"]) * 1e3
            ratios.append(Ratio(f"{size}, {again} each time: ms that the look takes", look_ms, at_most=AT_MOST_MS))
            ratios.append(Ratio(f"{size}, {again} each time: installed over Spark alone", _ratio(found)))
    return Result(
        name="untouched",
        title="Statements without a Delta table",
        setting=f"{STATEMENTS} queries on two views, planned and not run, {ROUNDS} rounds by turns; per query",
        lines=lines,
        ratios=ratios,
        notes=["The look is all that an installed session does with such a statement before it is Spark's."],
    )


def _contenders(spark: SparkSession, texts: Iterator[str]) -> dict[str, Callable[[], Cost]]:
    return {
        "Spark alone": lambda: _each(lambda text: plain_sql(spark, text), texts),
        "installed": lambda: _each(spark.sql, texts),
        "the look alone": lambda: _each(lambda text: _looked(spark, text), texts),
    }


def _each(work: Callable[[str], object], texts: Iterator[str]) -> Cost:
    chosen = list(itertools.islice(texts, STATEMENTS))
    whole = cost(lambda: [work(text) for text in chosen])
    return Cost(whole.wall_s / STATEMENTS, whole.cpu_s / STATEMENTS)


def _looked(spark: SparkSession, text: str) -> None:
    """What `anabranch._sql.sql` asks of a text before it hands it on."""
    assert not may_touch_delta(text, Names(spark))


def _ratio(found: dict[str, list[Cost]]) -> float:
    ours, plain = (statistics.median(each.wall_s for each in found[name]) for name in ("installed", "Spark alone"))
    return ours / plain
