"""The figures in README.md: those beside delta-spark, made from the results that are kept, between two marks.

A row stands there only where the contenders were compared after the task and had ended with the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.harness import RESULTS, Ratio
from benchmarks.targets import SPARK, TARGETS

README = RESULTS.parents[1] / "README.md"

_BEGIN, _END = "<!-- figures beside delta-spark, written by make bench -->", "<!-- end -->"
_MARKED = re.compile(f"{_BEGIN}\n.*?{_END}", re.DOTALL)
_NONE = "The figures beside delta-spark are yet to be measured: `make bench` writes them here."

_WORDS = {
    "4 writers x 10 UPDATEs": "four jobs at once, each with ten UPDATEs of rows of its own",
    "UPDATE 1,000 rows": "UPDATE of 1,000 rows",
    "MERGE 1%": "MERGE of 1% of the rows",
    "10 rows of a DataFrame": "append of a DataFrame of ten rows",
    "OPTIMIZE": "OPTIMIZE",
    "ZORDER": "OPTIMIZE with ZORDER BY",
    "point look-up": "look-up of one row among 10,000 files",
    "full aggregate": "sums over all rows of 10,000 files",
    "all queries, 1% marked": "the 22 queries of TPC-H, 1% of the rows deleted",
}
"""What each task is to somebody who has read no page on benchmarks, in the order of the table."""

Result = Mapping[str, Any]


def filled(text: str, results: Sequence[Result]) -> str:
    """The text with the block between the marks made anew.

    Raises:
        ValueError: the text does not have the marks exactly once.
    """
    if len(_MARKED.findall(text)) != 1:
        raise ValueError("README.md has no single place for the figures")
    return _MARKED.sub(lambda _: "\n".join([_BEGIN, block(results), _END]), text)


def block(results: Sequence[Result]) -> str:
    """The table of figures, and what they were measured on."""
    shown = [(result, ratio) for result in results if is_compared(result) for ratio in _ratios(result)]
    ordered = sorted(shown, key=lambda each: _place(each[1]))
    if not ordered:
        return _NONE
    head = [
        "| what runs | on | Anabranch | delta-spark | part of delta-spark's time, least to most |",
        "|---|---|---|---|---|",
    ]
    rows = [f"| {' | '.join(_row(result, ratio))} |" for result, ratio in ordered]
    return "\n".join([*head, *rows, "", *_machines(result for result, _ in ordered)])


def is_compared(result: Result) -> bool:
    """Whether the rows of the contenders were compared and were the same."""
    return "differences" in result and not result["differences"]


def _ratios(result: Result) -> Iterator[Ratio]:
    wanted = {target.what for target in TARGETS if target.benchmark == result["name"]}
    found = (Ratio(**each) for each in result["ratios"])
    return (each for each in found if each.is_valid and each.what in wanted and _task(each) in _WORDS)


def _place(ratio: Ratio) -> int:
    return list(_WORDS).index(_task(ratio))


def _task(ratio: Ratio) -> str:
    """The task of a figure beside delta-spark; nothing of another one."""
    return ratio.what.removesuffix(f", {SPARK}") if ratio.what.endswith(f", {SPARK}") else ""


def _row(result: Result, ratio: Ratio) -> list[str]:
    task = _task(ratio)
    seconds = [_seconds(result, f"{task}, {engine}") for engine in ("anabranch", "delta-spark")]
    return [_WORDS[task], re.split("[;:]", result["setting"])[0], *seconds, ratio.seen]


def _seconds(result: Result, what: str) -> str:
    """The median of a contender, or nothing where the benchmark has no such line."""
    found = [line["figures"].get("median_s") for line in result["lines"] if line["what"] == what]
    return f"{found[0]:.3g} s" if found and found[0] is not None else ""


def _machines(results: Iterable[Result]) -> list[str]:
    """One sentence for each machine that the results were measured on."""
    told = dict.fromkeys(", ".join(f"{name} {value}" for name, value in each["machine"].items()) for each in results)
    return [f"Medians of rounds by turns, the rows compared after each task; {each}." for each in told]
