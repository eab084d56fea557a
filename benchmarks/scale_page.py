"""The page of scale: its tables are made of the figures that are kept, between marks that name them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS

DOCUMENT = RESULTS.parents[1] / "docs" / "concepts" / "scale.md"
_MARKED = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_HEADS = {
    "commits_per_s": "commits/s",
    "p50_s": "median",
    "p95_s": "95%",
    "longest_s": "longest",
    "tries_per_commit": "tries",
    "requests_per_commit": "requests",
    "lists_per_commit": "of them lists",
    "slow_down_per_commit": "503 answers",
    "refused": "refused",
    "wrong": "lost or twice",
    "read_s": "read",
    "write_s": "write",
    "cpu_s": "processor",
    "megabytes": "MB",
}
_SECONDS = {name for name in _HEADS if name.endswith("_s") and name != "commits_per_s"}


def filled(text: str, results: Path = RESULTS) -> str:
    """The page with its tables made anew."""
    return _MARKED.sub(lambda found: f"{found[1]}{_table(_load(results, found[2]))}\n{found[3]}", text)


def _load(results: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _table(result: Mapping[str, Any]) -> str:
    names = [name for name in _HEADS if any(name in line["figures"] for line in result["lines"])]
    rows = [["", *(_HEADS[name] for name in names)], ["---"] * (len(names) + 1)]
    for line in result["lines"]:
        rows.append([line["what"], *(_shown(name, line["figures"].get(name)) for name in names)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return ""
    number = f"{value:.0f}" if isinstance(value, int) or value >= 100 else f"{value:.3g}"
    return f"{number} s" if name in _SECONDS else number
