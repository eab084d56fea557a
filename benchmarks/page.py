"""The page of benchmarks, its plot and the figures in README.md, made from the figures that are kept: no figure of a
result is typed by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plot, readme
from benchmarks.harness import RESULTS, Ratio, load_all
from benchmarks.targets import TARGETS, Target

DOCUMENT = RESULTS.parents[1] / "docs" / "benchmarks.md"
LIMITS = RESULTS.parent / "limits.md"
"""What is known of targets that are missed: the only part of the page that is written by hand."""
PLOT = "benchmarks.svg"

_HEAD = """# Benchmarks

`make bench` measures everything on this page and writes it; `make bench-quick` prints a choice at a tenth of the size
within minutes, and keeps nothing. The contenders of a task take turns within one run (A B C, then C B A), after some
rounds that warm up and do not count. A *ratio* is that of two contenders in one round; the page shows the median of the
rounds, and in brackets the least and the greatest. After each task all contenders must have ended with the same rows,
as an engine sees them that did not change them; where they did not, the page says so, and no target is met. Seconds
depend on the machine, and so does little else: read the ratios.

## Targets

Ours over the peer named; less is better, except for commits/s. The list stands in `benchmarks/targets.py`.
"""
_VERDICTS = {True: "met", False: "**missed**", None: ""}


def write(document: Path = DOCUMENT, results: Path = RESULTS, front: Path = readme.README) -> None:
    """Write the page, the figures in README.md and, once a target was measured, the plot beside the page."""
    kept = load_all(results)
    document.write_text(page(kept), encoding="utf-8")
    front.write_text(readme.filled(front.read_text(encoding="utf-8"), kept), encoding="utf-8")
    if shown := measured(kept):
        (document.parent / PLOT).write_text(plot.drawn(shown), encoding="utf-8")


def page(results: Sequence[Mapping[str, Any]]) -> str:
    """The results as one Markdown page."""
    sections = [line for result in results for line in _section(result)]
    limits = ["", LIMITS.read_text(encoding="utf-8").rstrip()]
    return "\n".join([_HEAD, *_targets(results), *limits, *sections]) + "\n"


def measured(results: Iterable[Mapping[str, Any]]) -> list[Ratio]:
    """The ratios that have a target, in the order of the targets; one that was not measured is left out."""
    found = _ratios(results)
    return [found[key] for target in TARGETS if (key := (target.benchmark, target.what)) in found]


def _ratios(results: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Ratio]:
    return {(each["name"], ratio["what"]): Ratio(**ratio) for each in results for ratio in each["ratios"]}


def _targets(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    found = _ratios(results)
    rows = [_target(target, found.get((target.benchmark, target.what))) for target in TARGETS]
    yield from _table(["benchmark", "ratio", "seen", "target", ""], rows)
    if shown := measured(results):
        yield from ("", f"![{len(shown)} ratios with their spread and their targets, on a scale of factors]({PLOT})")


def _target(target: Target, seen: Ratio | None) -> list[str]:
    """The bound is the one of today's list, whatever it was when the ratio was measured."""
    bound = Ratio(target.what, 0.0, target.at_most, target.at_least).target
    if seen is None:
        return [target.benchmark, target.what, "", bound, "not measured yet"]
    today = Ratio(target.what, seen.value, target.at_most, target.at_least, is_valid=seen.is_valid)
    return [target.benchmark, target.what, seen.seen, bound, _VERDICTS[today.is_met]]


def _section(result: Mapping[str, Any]) -> list[str]:
    ratios = [Ratio(**ratio) for ratio in result["ratios"]]
    notes = [f"- {note}" for note in result["notes"]]
    wrong = [f"- {difference}" for difference in result.get("differences", ())]
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    return [
        *("", f"## {result['title']}", "", f"{result['setting']} ({machine})", ""),
        *(["**The contenders did not end with the same rows:**", "", *wrong, ""] if wrong else []),
        *_table(["", *_columns(result["lines"])], [_cells(line, result["lines"]) for line in result["lines"]]),
        "",
        *_table(["ratio", "seen", "target", ""], [[r.what, r.seen, r.target, _VERDICTS[r.is_met]] for r in ratios]),
        *(["", *notes] if notes else []),
    ]


def _columns(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for line in lines for name in line["figures"]))


def _cells(line: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> list[str]:
    return [line["what"], *(_number(line["figures"].get(name)) for name in _columns(lines))]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
