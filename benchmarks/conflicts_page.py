"""The page of the contest of conflicts: a table for each workload and a plot, made of the figures that are kept.

Knows the marks between which a table stands, and the names of the result's lines; the words are written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import conflicts_plot
from benchmarks.conflict_work import WORKLOADS
from benchmarks.harness import RESULTS

DOCUMENT = RESULTS.parents[1] / "docs" / "conflicts-benchmark.md"
PLOT = "conflicts-benchmark.svg"
_MARKED = re.compile(r"(<!-- figures: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_HEADS = {
    "seconds": "seconds",
    "acknowledged": "acknowledged",
    "fewest": "fewest",
    "refused": "refused",
    "needless": "of them needless",
    "failed": "failed otherwise",
    "wrong": "wrong rows",
    "reordered": "placed before",
    "commits_per_s": "per second",
    "p50_ms": "median",
    "p99_ms": "99%",
}
_SELDOM = ("failed", "reordered")
"""Columns that are left out of a table where all is 0."""

Lines = Sequence[Mapping[str, Any]]


def write(document: Path = DOCUMENT, results: Path = RESULTS) -> None:
    """Fill the page's tables anew, and draw its plot, if there are figures."""
    document.write_text(filled(document.read_text(encoding="utf-8"), results), encoding="utf-8")
    if kept := load(results):
        (document.parent / PLOT).write_text(conflicts_plot.drawn(kept["lines"]), encoding="utf-8")


def load(results: Path = RESULTS) -> dict[str, Any]:
    """The result that is kept; nothing where there is none."""
    path = results / "conflicts.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def filled(text: str, results: Path = RESULTS) -> str:
    """The page with its tables made anew."""
    kept = load(results)
    return _MARKED.sub(lambda found: f"{found[1]}{_part(found[2], kept)}\n{found[3]}", text)


def _part(name: str, kept: Mapping[str, Any]) -> str:
    if not kept:
        return "*Not measured yet.*"
    if name == "setting":
        return _setting(kept)
    return "\n".join(_table([line for line in kept["lines"] if line["what"].startswith(f"{name}, ")]))


def _setting(kept: Mapping[str, Any]) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in kept["machine"].items())
    notes = "\n".join(f"- {note}" for note in kept["notes"])
    title = f"{len(WORKLOADS)} workloads: operations per second, and needless refusals, of each contender"
    return f"{kept['setting']} ({machine}).\n\n{notes}\n\n![{title}]({PLOT})"


def _table(lines: Lines) -> list[str]:
    names = [name for name in _HEADS if name not in _SELDOM or any(line["figures"][name] for line in lines)]
    rows = [["", *(_HEADS[name] for name in names)], ["---"] * (len(names) + 1)]
    rows += [
        [line["what"].partition(", ")[2], *(_shown(name, line["figures"][name]) for name in names)] for line in lines
    ]
    return [f"| {' | '.join(cells)} |" for cells in rows]


def _shown(name: str, value: float) -> str:
    number = str(value) if isinstance(value, int) else f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return f"{number} ms" if name.endswith("_ms") else number
