"""The fixed list of targets: which ratio of which benchmark is held against which bound.

The only place of these numbers. A ratio that the results lack is a target that was not measured, which the page says.
They count at the full size, on a quiet machine.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A bound on one ratio (or figure), by the benchmark's name and the ratio's."""

    benchmark: str
    what: str
    at_most: float | None = None
    at_least: float | None = None


TENTH = ", a tenth of the rows"
"""Behind the name of a task that is measured on a smaller table as well."""
PLAIN, SPARK, RUST = ("ours over plain Parquet", "ours over delta-spark", "ours over deltalake")
SETTINGS = ("local folder", "local folder, DeltaTable", "requests of 20 ms")
"""Where transactions are measured."""

TARGETS = (
    Target("write", f"bulk write, {PLAIN}", 1.05),
    Target("scan", f"all columns, {PLAIN}", 1.03),
    Target("scan", f"one column, {PLAIN}", 1.05),
    Target("scan", f"all columns, 1% marked, {PLAIN}", 1.15),
    Target("dml", "DELETE 1%, ours over the best peer", 0.4),
    Target("dml", f"UPDATE 1,000 rows, {RUST}", 0.6),
    Target("dml", f"UPDATE 1,000 rows, {SPARK}", 0.25),
    Target("merge", f"MERGE 1%, {RUST}", 0.7),
    Target("merge", f"MERGE 1%, {SPARK}", 0.2),
    Target("dml", f"DELETE 1%{TENTH}, {RUST}", 1.0),
    Target("dml", f"UPDATE 1,000 rows{TENTH}, {RUST}", 1.0),
    Target("merge", f"MERGE 1%{TENTH}, {RUST}", 1.0),
    Target("small_appends", f"10 rows of a DataFrame, {SPARK}", 0.35),
    Target("small_appends", f"10 rows of Arrow, {RUST}", 1.0),
    *(Target("transactions", f"1 in a transaction over alone, {setting}", 1.05) for setting in SETTINGS),
    *(Target("transactions", f"10 in a transaction over alone, {setting}", 0.4) for setting in SETTINGS),
    Target("appenders", f"commits/s, {RUST}", at_least=3.0),
    Target("many_files", f"point look-up, {SPARK}", 0.5),
    Target("many_files", f"full aggregate, {SPARK}", 1.0),
    Target("optimize", f"OPTIMIZE, {SPARK}", 0.3),
    Target("optimize", f"OPTIMIZE, {RUST}", 1.5),
    Target("optimize", f"ZORDER, {SPARK}", 0.3),
    Target("optimize", f"ZORDER, {RUST}", 1.0),
    Target("one_file", f"4 writers x 10 UPDATEs, {SPARK}", 0.1),
    Target("one_file", "4 writers x 10 UPDATEs, our aborts", 0.0),
    Target("one_file", "4 writers x 10 UPDATEs, ours over one after the other", 1.0),
    Target("opening", f"open from a checkpoint, cold, {RUST}", 0.5),
    Target("opening", "open from a checkpoint, cold, memory at its peak, ours, GB", 1.0),
    Target("opening", f"open from one JSON commit, cold, {RUST}", 0.5),
    Target("opening", "open from one JSON commit, cold, memory at its peak, ours, GB", 1.0),
    Target("merge_shapes", f"the slowest of the shapes, {SPARK}", 0.5),
    Target("merge_shapes", f"the median of the shapes, {RUST}", 1.0),
    Target("shapes", f"the slowest of the shapes with a target, {SPARK}", 0.3),
    Target("shapes", f"the slowest of the shapes with a target, {RUST}", 0.6),
    Target("shapes", f"the slowest of all shapes, {SPARK}", 0.6),
    Target("shapes", f"the slowest of all shapes, {RUST}", 1.2),
    Target("shapes", f"the median of all shapes, {RUST}", 0.5),
    Target("alone", f"DELETE 1%, {RUST}", 0.3),
    Target("alone", f"MERGE 1%, {RUST}", 0.8),
    Target("alone", "MERGE 1%: memory at its peak, ours, GB", 1.0),
    Target("fixed_cost", "read and count over the count", 1.1),
    Target("fixed_cost", "append over the count", 0.6),
    Target("fixed_cost", "DELETE over the count", 1.5),
    Target("fixed_cost", "UPDATE over the count", 2.0),
    Target("fixed_cost", "MERGE of two rows over the count", 4.0),
    Target("tpch", f"all queries, {PLAIN}", 1.05),
    Target("tpch", f"all queries, 1% marked, {SPARK}", 0.9),
)

_BY_NAME = {(each.benchmark, each.what): each for each in TARGETS}


def bound(benchmark: str, what: str) -> Target | None:
    """The target of a ratio, if it has one."""
    return _BY_NAME.get((benchmark, what))


def limits(benchmark: str, what: str) -> dict[str, float | None]:
    """The target's bounds as the keyword arguments that a ratio takes; none where there is no target."""
    found = bound(benchmark, what)
    return {"at_most": found.at_most, "at_least": found.at_least} if found else {}
