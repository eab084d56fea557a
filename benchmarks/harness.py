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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.processes import Peak, Processes, below, cpu_seconds
from tools.interop import PACKAGES, is_ready

RESULTS = Path(__file__).parent / "results"
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
    """One figure over another of the same run, and the target for it, if there is one.

    Where both were measured round by round, ``value`` is the median of the rounds' ratios, and ``least`` and
    ``greatest`` are the extremes of them.
    """

    what: str
    value: float
    at_most: float | None = None
    at_least: float | None = None
    least: float | None = None
    greatest: float | None = None
    is_valid: bool = True
    """Whether all contenders did the same; a ratio of unlike things meets no target."""

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_most is None and self.at_least is None:
            return None
        return (
            self.is_valid
            and (self.at_most is None or self.value <= self.at_most)
            and (self.at_least is None or self.value >= self.at_least)
        )

    @property
    def target(self) -> str:
        """The target in words."""
        bounds = [(self.at_most, "at most"), (self.at_least, "at least")]
        return " and ".join(f"{words} {bound:g}" for bound, words in bounds if bound is not None)

    def __str__(self) -> str:
        verdict = {True: ": met", False: ": MISSED", None: ""}[self.is_met]
        return f"{self.what}: {self.seen}" + (f" (target {self.target}{verdict})" if self.target else "")

    @property
    def seen(self) -> str:
        """The value in words, with its spread if it has one."""
        if self.least is None or self.greatest is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.least:.2f} to {self.greatest:.2f})"


@dataclass(frozen=True)
class Result:
    """What one benchmark found in one run; ``differences`` says where contenders did not end with the same rows."""

    name: str
    title: str
    setting: str
    lines: Sequence[Line]
    ratios: Sequence[Ratio]
    notes: Sequence[str] = ()
    differences: Sequence[str] = ()


# -- measuring ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What a piece of work cost: time on the clock, and processor time and the most memory of the processes that did
    it (the JVM and Spark's workers among them).
    """

    wall_s: float
    cpu_s: float
    peak_mb: float = 0.0


def cost(work: Callable[[], Any], of: Processes = below) -> Cost:
    """What a call costs, of which these processes do the work."""
    with Peak(of) as peak:
        cpu, began = cpu_seconds(of), time.perf_counter()
        work()
        wall_s, cpu_s = time.perf_counter() - began, cpu_seconds(of) - cpu
    return Cost(wall_s, cpu_s, peak.mb)


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
    """One contender's figures: the clock's median, least and greatest, median processor time, and most memory."""
    walls = [each.wall_s for each in costs]
    cpu = statistics.median(each.cpu_s for each in costs)
    figures = {"median_s": statistics.median(walls), "least_s": min(walls), "greatest_s": max(walls), "cpu_s": cpu}
    peak = max(each.peak_mb for each in costs)
    return {**figures, "peak_mb": peak} if peak else figures


def ratio(what: str, ours: Sequence[float], theirs: Sequence[float], **fields: Any) -> Ratio:
    """Ours over theirs, round by round: the median of these ratios, and how far they spread; with fields of yours."""
    pairs = [mine / max(other, 1e-9) for mine, other in zip(ours, theirs, strict=True)]
    return Ratio(what, statistics.median(pairs), **fields, least=min(pairs), greatest=max(pairs))


def compared(what: str, ours: Sequence[Cost], theirs: Sequence[Cost], at_most: float | None = None) -> list[Ratio]:
    """Ours over theirs by the clock, which has the target, and by processor time, which a busy machine blurs less.

    The kernel counts processor time by hundredths of a second, so there is no ratio over work that took less.
    """
    walls, processor = ([[getattr(each, f) for each in costs] for costs in (ours, theirs)] for f in ("wall_s", "cpu_s"))
    found = [ratio(what, *walls, at_most=at_most)]
    return [*found, ratio(f"{what}: processor time", *processor)] if min(processor[1]) > 0 else found


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


# -- keeping and showing -----------------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """What must be alike for two runs to be compared at all."""
    known = {"cores": str(os.cpu_count()), "Python": platform.python_version(), "system": platform.system()}
    known |= {name: found for name in _LIBRARIES if (found := _version(name))}
    return known | ({"delta-spark": _pinned("delta-spark"), "its pyspark": _pinned("pyspark")} if is_ready() else {})


def _pinned(package: str) -> str:
    """The version in the environment with delta-spark."""
    return next(each.partition("==")[2] for each in PACKAGES if each.startswith(f"{package}=="))


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
