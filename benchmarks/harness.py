"""What all benchmarks share: measuring by turns, figures as values, and how they are kept and shown.

Knows nothing of tables. A ratio of two figures from one run means something on a noisy machine; a figure alone does
not, so contenders always take turns, and a target is a bound on a ratio.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent / "RESULTS.md"
_LIBRARIES = ("pyarrow", "pyspark", "deltalake", "duckdb")

Tell = Callable[[str], None]
"""Takes one line about what happens now."""


@dataclass(frozen=True)
class Line:
    """Figures of one contender at one task, by name with the unit last (``p99_ms``)."""

    what: str
    figures: Mapping[str, float | int]


@dataclass(frozen=True)
class Ratio:
    """One figure over another of the same run, and the target for it, if there is one."""

    what: str
    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_most is None and self.at_least is None:
            return None
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )

    @property
    def target(self) -> str:
        """The target in words."""
        bounds = [(self.at_most, "at most"), (self.at_least, "at least")]
        return " and ".join(f"{words} {bound:g}" for bound, words in bounds if bound is not None)

    def __str__(self) -> str:
        verdict = {True: ": met", False: ": MISSED", None: ""}[self.is_met]
        return f"{self.what}: {self.value:.2f}" + (f" (target {self.target}{verdict})" if self.target else "")


@dataclass(frozen=True)
class Result:
    """What one benchmark found in one run."""

    name: str
    title: str
    setting: str
    lines: Sequence[Line]
    ratios: Sequence[Ratio]
    notes: Sequence[str] = ()


# -- measuring ---------------------------------------------------------------------------------------------------------


def seconds(work: Callable[[], Any]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def by_turns(contenders: Mapping[str, Callable[[], float]], rounds: int, tell: Tell) -> dict[str, list[float]]:
    """What each contender measures in each round, one after the other within a round; the order turns around."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        names = list(contenders) if turn % 2 == 0 else list(reversed(contenders))
        for name in names:
            tell(f"{name}, round {turn + 1} of {rounds}")
            found[name].append(contenders[name]())
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest, in seconds."""
    return {"median_s": statistics.median(values), "least_s": min(values), "greatest_s": max(values)}


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


# -- keeping and showing -----------------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """What must be alike for two runs to be compared at all."""
    known = {"cores": str(os.cpu_count()), "Python": platform.python_version(), "system": platform.system()}
    return known | {name: found for name in _LIBRARIES if (found := _version(name))}


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def save(result: Result, folder: Path = RESULTS) -> None:
    """Keep a result as ``<name>.json``, with the machine it was found on."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine(), **asdict(result)}, indent=2, ensure_ascii=False)
    (folder / f"{result.name}.json").write_text(text + "\n", encoding="utf-8")


def load_all(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """All results that are kept, by name."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def page(results: Iterable[Mapping[str, Any]]) -> str:
    """The results as one Markdown page."""
    head = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Contenders take turns within one run; the machine may be busy with other things, so"
        " only the ratios mean anything.",
    ]
    return "\n".join([*head, *(text for result in results for text in _section(result))]) + "\n"


def _section(result: Mapping[str, Any]) -> list[str]:
    ratios = [Ratio(**ratio) for ratio in result["ratios"]]
    notes = [f"- {note}" for note in result["notes"]]
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    verdicts = {True: "met", False: "**missed**", None: ""}
    return [
        *("", f"## {result['title']}", "", f"{result['setting']} ({machine})", ""),
        *_table(["", *_columns(result["lines"])], [_cells(line, result["lines"]) for line in result["lines"]]),
        "",
        *_table(
            ["ratio", "seen", "target", ""], [[r.what, f"{r.value:.2f}", r.target, verdicts[r.is_met]] for r in ratios]
        ),
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
