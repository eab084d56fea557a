"""What the suite costs: seconds of each phase of each test and of each fixture, one line of JSON each.

Used as::

    pytest --costs=build/costs …                     writes build/costs/<process>.jsonl
    python -m tests.support.costs build/costs        prints what each file and each fixture took
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

FOLDER = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", type=Path, metavar="FOLDER", help="write seconds per test and per fixture there")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--costs")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        config.stash[FOLDER] = folder.resolve()  # tests go to other folders


def _write(config: pytest.Config, **facts: Any) -> None:
    if FOLDER in config.stash:
        name = os.environ.get("PYTEST_XDIST_WORKER", "main")
        with (config.stash[FOLDER] / f"{name}.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(facts) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Take the time of a fixture; what it needs is ready by then, so the time is its own."""
    begun = time.perf_counter()
    try:
        return (yield)
    finally:
        seconds = time.perf_counter() - begun
        _write(request.config, fixture=fixturedef.argname, scope=fixturedef.scope, seconds=seconds)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Take the time of a phase of a test."""
    report = yield
    _write(item.config, test=item.nodeid, phase=call.when, seconds=call.duration, outcome=report.outcome)
    return report


def _lines(folder: Path) -> Iterable[dict[str, Any]]:
    for file in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def main(folder: Path) -> None:
    """Print seconds and tests of each file, and seconds and uses of each fixture, the dearest first."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for line in _lines(folder):
        name = line["test"].partition("::")[0] if "test" in line else f"fixture {line['fixture']} ({line['scope']})"
        seconds[name] += line["seconds"]
        tests[name] += line.get("phase", "call") == "call"
    for name, taken in seconds.most_common():
        print(f"{taken:8.1f} s {tests[name]:6} {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
