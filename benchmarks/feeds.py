"""What a change data feed costs: the same statements on a table that records its changes and on one that does not, by
ours and by delta-spark.

All run the same SQL, each time on a copy of its own; the sessions are warm. Afterwards all tables must hold the same,
and all feeds must say the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch._log.log import forget
from anabranch._protocol.change_feed import CHANGE_TYPE, ENABLED
from anabranch.commands.ddl.alter import SetProperties
from benchmarks import judge, large, merge, peers
from benchmarks.harness import Cost, Line, Ratio, Result, Tell, by_turns, compared, spread
from benchmarks.race import OURS, OnCopies, telling

ROUNDS = 3
WARM_UPS = 2
AT_MOST = 1.3
"""So much more may an UPDATE or a MERGE cost with the feed."""
WITH, WITHOUT = "with feed", "without"
REWRITING = " without vectors"
BEFORE = (
    "While changed rows were read a second time for the feed, with over without was 2.01 by time and 1.92 by processor"
    " time for UPDATE 1%, 1.69 and 1.66 for UPDATE 1000 rows, and 1.81 and 1.60 for the MERGE."
)


def statements(rows: int, source: Path) -> dict[str, str]:
    """What is measured; the table stands for ``{}``."""
    return {
        "UPDATE 1%": f"UPDATE {{}} SET amount = amount + 1 WHERE {large.PERCENT}",
        "UPDATE 1000 rows": f"UPDATE {{}} SET amount = amount + 1 WHERE {large.few(rows)}",
        f"MERGE {rows // merge.SHARE:,} rows": merge.upsert(source),
        "DELETE 1%": f"DELETE FROM {{}} WHERE {large.PERCENT}",
    }


def run(folder: Path, rows: int, tell: Tell) -> Result:
    """Measure on tables of this many rows."""
    tables = {kind: _tables(folder, rows, tell, vectors=not kind) for kind in ("", REWRITING)}
    texts, found = statements(rows, merge.source(folder, rows)), dict[str, dict[str, list[Cost]]]()
    for kind, pair in tables.items():
        for what, text in texts.items():
            sides = _sides(pair, text)
            runs = {name: each.run for name, each in sides.items()}
            found[what + kind] = by_turns(runs, ROUNDS, telling(tell, what + kind), warm_ups=WARM_UPS)
            _prove_alike(peers.session(), sides)
            peers.clear(sides)
    return Result(
        name="feeds",
        title="What a change data feed costs",
        setting=f"{rows:,} rows, 6 columns, {large.FILES} files, {large.megabytes(tables[''][0])} MB;"
        f" {peers.SETTING}, a fresh copy for each run, medians of {ROUNDS}",
        lines=[Line(f"{what}, {name}", spread(each)) for what, by in found.items() for name, each in by.items()],
        ratios=[ratio for what, by in found.items() for ratio in ratios_of(what, by)],
        notes=[
            BEFORE,
            f"Load of the machine at the end: {os.getloadavg()[0]:.1f} over one minute, on {os.cpu_count()} cores.",
        ],
    )


def _tables(folder: Path, rows: int, tell: Tell, *, vectors: bool) -> tuple[Path, Path]:
    """Two tables of the same rows: one without a feed, one that records its changes from now on."""
    plain = large.make(folder, rows, vectors=vectors, tell=tell)
    recorded = large.copy(plain, folder / f"{plain.name}-recorded")
    SetProperties(recorded, {ENABLED: "true"}).run()
    return plain, recorded


def _sides(pair: tuple[Path, Path], text: str) -> dict[str, OnCopies]:
    def side(name: str, table: Path) -> OnCopies:
        return OnCopies(table, lambda path: engines[name](text.format(f"delta.`{path}`")), judge.large, peers.of(name))

    engines, feeds = peers.sparks(), dict(zip((WITHOUT, WITH), pair, strict=True))
    return {f"{name}, {feed}": side(name, table) for name in engines for feed, table in feeds.items()}


def ratios_of(what: str, found: Mapping[str, list[Cost]]) -> list[Ratio]:
    """Each engine with its feed over itself without; and with the feed ours over theirs."""
    engines = list(dict.fromkeys(name.partition(", ")[0] for name in found))
    ratios = []
    for name in engines:
        bound = AT_MOST if name == OURS and not what.startswith("DELETE") else None
        pair = [found[f"{name}, {feed}"] for feed in (WITH, WITHOUT)]
        ratios += compared(f"{what}, {name}, {WITH} over {WITHOUT}", *pair, bound)
    for name in engines[1:]:
        pair = [found[f"{each}, {WITH}"] for each in (OURS, name)]
        ratios += compared(f"{what}, {WITH}, ours over {name}", *pair)
    return ratios


# -- what came out -----------------------------------------------------------------------------------------------------


def _prove_alike(spark: SparkSession, sides: Mapping[str, OnCopies]) -> None:
    """A feed that lacks changes, or a fast statement that does less, is worth nothing."""
    forget()
    held = {name: each.answer() for name, each in sides.items()}
    assert len(set(held.values())) == 1, f"the tables differ: {held}"
    said = {name: changes(spark, each.left[0]) for name, each in sides.items() if name.endswith(WITH)}
    assert all(said.values()), f"a feed is empty: {said}"
    assert len(set(said.values())) == 1, f"the feeds differ: {said}"


def changes(spark: SparkSession, table: Path) -> tuple[tuple[Any, ...], ...]:
    """What the newest version's feed says: for each kind of change, how many rows, and sums that tell which."""
    newest = int(anabranch.history(table)[0]["version"])
    cents = F.round(F.col("amount") * 100).cast("bigint")
    sums = [F.count("*"), F.sum("id"), F.sum(cents), F.sum((F.col("id") % 1_000_003) * cents)]
    rows = anabranch.changes(str(table), start=newest, spark=spark).groupBy(CHANGE_TYPE).agg(*sums)
    return tuple(sorted(map(tuple, rows.collect())))
