"""The plot of the contest of conflicts, for the most writers: operations per second on a scale of factors, and beside
it the share of attempts that were refused needlessly. One SVG, which is light or dark as the reader's screen is.

Knows the lines of the result by their names: workload, writers, contender.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from benchmarks.conflict_work import WORKLOADS

_NAMES = ("anabranch, file", "anabranch, row", "anabranch, redo", "deltalake", "delta-spark")
_LABELS, _PANEL, _GAP, _TOP, _STEP, _MARGIN = 230, 330, 50, 64, 11, 24
_BLOCK = _STEP * len(_NAMES) + 14
_WIDTH = _LABELS + 2 * _PANEL + _GAP + 20
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .small { font-size: 11px }
.page { fill: #ffffff } .grid { stroke: #d8dee4 }
.c0 { fill: #9a6700 } .c1 { fill: #1a7f37 } .c2 { fill: #0969da } .c3 { fill: #cf222e } .c4 { fill: #8250df }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #30363d }
.c0 { fill: #d29922 } .c1 { fill: #3fb950 } .c2 { fill: #58a6ff } .c3 { fill: #f85149 } .c4 { fill: #bc8cff }
}
"""
_WHAT = re.compile(r"(?P<workload>[^,]+), (?P<writers>\d+) writers, (?P<name>.+)")

Figures = Mapping[str, float]
Lines = Sequence[Mapping[str, Any]]


def drawn(lines: Lines) -> str:
    """The plot of these lines."""
    most, found = _of_most_writers(lines)
    height = _TOP + _BLOCK * len(WORKLOADS) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>Operations per second and needless refusals</title><style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text x="{_LABELS - 14}" y="18" text-anchor="end">{most} writers</text>',
        *_legend(),
        *_grids(_decades(found), height),
        *(part for row, each in enumerate(WORKLOADS) for part in _block(each.name, row, each.title, found)),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _of_most_writers(lines: Lines) -> tuple[int, dict[tuple[str, str], Figures]]:
    """How many that are, and their figures by workload and contender."""
    named = [(found, line["figures"]) for line in lines if (found := _WHAT.fullmatch(line["what"]))]
    most = max((int(found["writers"]) for found, _ in named), default=0)
    return most, {
        (found["workload"], found["name"]): figures for found, figures in named if int(found["writers"]) == most
    }


def needless_share(figures: Figures) -> float:
    """The share of attempts that were refused needlessly."""
    return figures["needless"] / max(1, figures["acknowledged"] + figures["refused"])


def _decades(found: Mapping[tuple[str, str], Figures]) -> tuple[int, int]:
    """The powers of ten between which all rates are."""
    rates = [figures["commits_per_s"] for figures in found.values() if figures["commits_per_s"] > 0] or [1.0]
    low = math.floor(math.log10(min(rates)))
    return low, max(low + 1, math.ceil(math.log10(max(rates))))


def _legend() -> Iterator[str]:
    for place, name in enumerate(_NAMES):
        x = _LABELS + 135 * place
        yield f'<circle class="c{place}" cx="{x}" cy="14" r="4"/><text x="{x + 9}" y="18">{escape(name)}</text>'


def _grids(decades: tuple[int, int], height: int) -> Iterator[str]:
    low, high = decades
    marks = [((power - low) / (high - low), f"{10.0**power:g}") for power in range(low, high + 1)]
    shares = [(share / 100, f"{share}%") for share in (0, 25, 50, 75, 100)]
    titles = ("operations per second", "attempts that were refused needlessly")
    for panel, (title, each) in enumerate(zip(titles, (marks, shares), strict=True)):
        left = _LABELS + panel * (_PANEL + _GAP)
        yield f'<text x="{left}" y="38">{title}</text>'
        for share, text in each:
            x = round(left + share * _PANEL, 1)
            yield f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP - 6}" y2="{height - 14}"/>'
            yield f'<text class="small" x="{x}" y="{_TOP - 10}" text-anchor="middle">{text}</text>'


def _block(workload: str, row: int, title: str, found: Mapping[tuple[str, str], Figures]) -> Iterator[str]:
    low, high = _decades(found)
    top = _TOP + row * _BLOCK
    yield f'<text x="{_LABELS - 14}" y="{top + _BLOCK / 2}" text-anchor="end">{escape(title)}</text>'
    for place, name in enumerate(_NAMES):
        if (figures := found.get((workload, name))) is None:
            continue
        y = top + 8 + place * _STEP
        if (rate := figures["commits_per_s"]) > 0:
            yield _dot(place, (math.log10(rate) - low) / (high - low), 0, y)
        yield _dot(place, needless_share(figures), 1, y)


def _dot(place: int, share: float, panel: int, y: float) -> str:
    x = round(_LABELS + panel * (_PANEL + _GAP) + share * _PANEL, 1)
    return f'<circle class="c{place}" cx="{x}" cy="{y}" r="4"/>'
