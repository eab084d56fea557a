"""Which test runs which line of the package, and what it takes: measured once for `make test`.

Knows the files that `in_pytest` and ``--costs`` write. Only tests that pass count. Threads are measured, other
processes (Spark's executors) are not: their lines have no test of their own.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData

from .choosing import Test
from .left_out import statement_lines
from .tiers import KINDS


class CoverageMap:
    """What was measured into a folder; lines are those of the source that was measured."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @functools.cached_property
    def tests(self) -> list[Test]:
        """All tests that pass."""
        return [test for kind in KINDS for test in _tests(self._folder / kind, kind == "spark")]

    def at(self, path: str, line: int, source: str) -> set[str]:
        """The tests that run a line or, where it has none of its own, the statement around it."""
        lines = self._lines(path)
        around = statement_lines(source, line)
        return lines.get(line) or set().union(*(lines.get(each, set()) for each in around))

    def within(self, path: str) -> set[str]:
        """The tests that run any line of a module."""
        return set().union(*self._lines(path).values())

    def _lines(self, path: str) -> dict[int, set[str]]:
        return _lines(self._folder, path)


@functools.lru_cache(maxsize=16)
def _lines(folder: Path, path: str) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for file in sorted(folder.glob("*/lines.*")):
        data = CoverageData(str(file))
        data.read()
        for line, names in data.contexts_by_lineno(path).items():
            found.setdefault(line, set()).update(name for name in names if name)
    return found


def _tests(folder: Path, is_spark: bool) -> Iterator[Test]:
    """The tests that pass, with the seconds of all their phases."""
    seconds: Counter[str] = Counter()
    called, bad = set(), set()
    for phase in _phases(folder):
        name = phase["test"]
        seconds[name] += phase["seconds"]
        if phase["outcome"] != "passed":
            bad.add(name)
        elif phase["phase"] == "call":
            called.add(name)
    for name in sorted(called - bad):
        yield Test(name, seconds[name], is_spark)


def _phases(folder: Path) -> Iterator[dict]:
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            facts = json.loads(line)
            if "test" in facts:
                yield facts
