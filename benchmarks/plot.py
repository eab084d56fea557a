"""The plot: each ratio as a dot on a scale of factors, its spread as a line, its bound as a tick. One SVG, which is
light or dark as the reader's screen is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.harness import Ratio

_WIDTH, _LABELS, _ROW, _TOP, _MARGIN = 900, 430, 20, 34, 20
_MARKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.page { fill: #ffffff } .grid { stroke: #d8dee4 } .even { stroke: #57606a }
.met { fill: #1a7f37; stroke: #1a7f37 } .missed { fill: #cf222e; stroke: #cf222e }
.bound { stroke: #24292f; stroke-width: 2 } .spread { stroke-width: 2; opacity: 0.55 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #30363d } .even { stroke: #8b949e }
.met { fill: #3fb950; stroke: #3fb950 } .missed { fill: #f85149; stroke: #f85149 }
.bound { stroke: #e6edf3 }
}
"""


def drawn(ratios: Sequence[Ratio]) -> str:
    """The plot of these, each with a target; a ratio of 0 stands at the left edge."""
    shown = _marks(ratios)
    height = _TOP + _ROW * len(ratios) + _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            f"<title>Ratios with their spread, and their targets</title><style>{_STYLE}</style>",
            f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
            *_grid(shown, height),
            *(part for row, ratio in enumerate(ratios) for part in _row(ratio, _TOP + _ROW * (row + 0.5), shown)),
            "</svg>\n",
        ]
    )


def _marks(ratios: Sequence[Ratio]) -> list[float]:
    """The marks of the scale, from the last one below all values to the first one above them; 1 is among them."""
    bounds = [each for r in ratios for each in (r.at_most, r.at_least)]
    values = [value for r in ratios for value in (r.value, r.least, r.greatest)]
    seen = [1.0, *(value for value in (*values, *bounds) if value)]
    low = max((mark for mark in _MARKS if mark <= min(seen)), default=_MARKS[0])
    high = min((mark for mark in _MARKS if mark >= max(seen) and mark > low), default=_MARKS[-1])
    return [mark for mark in _MARKS if low <= mark <= high]


def _x(value: float, marks: Sequence[float]) -> float:
    """Where a factor stands; what lies beyond the scale stands at its edge."""
    low, high = math.log(marks[0]), math.log(marks[-1])
    share = (math.log(max(value, 1e-9)) - low) / (high - low)
    return round(_LABELS + min(1.0, max(0.0, share)) * (_WIDTH - _LABELS - _MARGIN), 1)


def _grid(marks: Sequence[float], height: int) -> Iterator[str]:
    for mark in marks:
        x = _x(mark, marks)
        yield f'<line class="{"even" if mark == 1 else "grid"}" x1="{x}" x2="{x}" y1="{_TOP - 8}" y2="{height - 12}"/>'
        yield f'<text x="{x}" y="{_TOP - 16}" text-anchor="middle">{mark:g}</text>'


def _row(ratio: Ratio, y: float, marks: Sequence[float]) -> Iterator[str]:
    kind = "met" if ratio.is_met else "missed"
    bound = ratio.at_most if ratio.at_most is not None else ratio.at_least
    yield f'<text x="{_LABELS - 10}" y="{y + 4}" text-anchor="end">{escape(ratio.what)}</text>'
    if ratio.least is not None and ratio.greatest is not None:
        ends = f'x1="{_x(ratio.least, marks)}" x2="{_x(ratio.greatest, marks)}"'
        yield f'<line class="{kind} spread" {ends} y1="{y}" y2="{y}"/>'
    if bound is not None:
        x = _x(bound, marks)
        yield f'<line class="bound" x1="{x}" x2="{x}" y1="{y - 6}" y2="{y + 6}"/>'
    yield f'<circle class="{kind}" cx="{_x(ratio.value, marks)}" cy="{y}" r="4"/>'
