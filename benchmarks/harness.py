"""What all benchmarks share: measuring by turns, figures as values, and how they are kept and shown.

Knows nothing of tables. A ratio of two figures from one run means something on a noisy machine; a figure alone does
not, so contenders always take turns, and a target is a bound on a ratio.
"""

from __future__ import annotations

import contextlib
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


@dataclass(frozen=True)
class Cost:
    """What a piece of work cost: time on the clock, and processor time of this process and all below it (the JVM)."""

    wall_s: float
    cpu_s: float


def cost(work: Callable[[], Any]) -> Cost:
    """What a call costs."""
    cpu, began = cpu_seconds(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - began, cpu_seconds() - cpu)


def by_turns(
    contenders: Mapping[str, Callable[[], Cost]], rounds: int, tell: Tell, *, warm_ups: int = 0
) -> dict[str, list[Cost]]:
    """What each contender costs in each round, one after the other within a round, every other round in reverse.

    Rounds that warm up come first and are not counted.
    """
    found: dict[str, list[Cost]] = {name: [] for name in contenders}
    for turn in range(-warm_ups, rounds):
        for name in list(contenders)[:: -1 if turn % 2 else 1]:
            tell(f"{name}, round {turn + 1} of {rounds}" if turn >= 0 else f"{name}, warming up")
            measured = contenders[name]()
            if turn >= 0:
                found[name].append(measured)
    return found


def spread(costs: Sequence[Cost]) -> dict[str, float]:
    """The figures of one contender: the clock's median, least and greatest, and the median of processor time."""
    walls = [each.wall_s for each in costs]
    cpu = statistics.median(each.cpu_s for each in costs)
    return {"median_s": statistics.median(walls), "least_s": min(walls), "greatest_s": max(walls), "cpu_s": cpu}


def compared(what: str, ours: Sequence[Cost], theirs: Sequence[Cost], at_most: float | None = None) -> list[Ratio]:
    """Ours over theirs by the clock, which has the target, and by processor time, which a busy machine blurs less."""
    mine, other = spread(ours), spread(theirs)
    return [
        Ratio(f"{what}: time, median", mine["median_s"] / other["median_s"], at_most=at_most),
        Ratio(f"{what}: processor time", mine["cpu_s"] / max(other["cpu_s"], 1e-9)),
    ]


def cpu_seconds() -> float:
    """Processor time used so far by this process and all below it, where ``/proc`` tells; else by this one."""
    parents, used = _processes()
    if not used:
        return time.process_time()
    return sum(seconds for process, seconds in used.items() if _is_below(process, os.getpid(), parents))


def _processes() -> tuple[dict[int, int], dict[int, float]]:
    """The parent of each process, and its processor time together with that of children that have ended."""
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            _, _, rest = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            fields = rest.split()
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return parents, used


def _is_below(process: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    while process and process != ancestor:
        process = parents.get(process, 0)
    return process == ancestor


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
