"""The part of the tool that is loaded into pytest: ``-p tools.mutants.in_pytest``. The environment says what it does.

- `COVERAGE` names a folder: which test runs which line of the package is written there, a file for each process.
- `TESTS` names a file of JSON, a list of tests: only these are run, in this order.
- `SAID` names a file, which gets the name of each test that fails, as a line of JSON.
- `MEMORY` is how many bytes the process and its children may have, each.

Knows pytest and coverage.py; each process measures itself, so that pytest-xdist needs nothing more.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from coverage import Coverage

COVERAGE, TESTS, SAID, MEMORY = "MUTANTS_COVERAGE", "MUTANTS_TESTS", "MUTANTS_SAID", "MUTANTS_MEMORY"


def _measuring() -> Coverage | None:
    """Begin to measure, before anything of the package is imported; nothing unless it is asked for."""
    if COVERAGE not in os.environ:
        return None
    from coverage import Coverage

    # A test may run pytest itself, which inherits the environment.
    process = f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}"
    file = Path(os.environ[COVERAGE]) / f"lines.{process}"
    measuring = Coverage(data_file=str(file), config_file=False, source=["anabranch"], branch=False)
    measuring.set_option("run:relative_files", True)
    measuring.start()
    return measuring


def _bound_memory() -> None:
    if MEMORY in os.environ:
        with contextlib.suppress(ValueError, OSError):  # some systems know no such bound
            resource.setrlimit(resource.RLIMIT_AS, (int(os.environ[MEMORY]),) * 2)


_bound_memory()
_coverage = _measuring()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let what runs from here on count for the test."""
    if _coverage is not None:
        _coverage.switch_context(item.nodeid)
    result = yield
    if _coverage is not None:
        _coverage.switch_context("")
    return result


def pytest_unconfigure() -> None:
    """Write what was measured."""
    if _coverage is not None:
        _coverage.stop()
        _coverage.save()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Leave the tests that are asked for, in their order, after all others have had their say."""
    yield
    if TESTS not in os.environ:
        return
    names = json.loads(Path(os.environ[TESTS]).read_text(encoding="utf-8"))
    places = {name: place for place, name in enumerate(names)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in places])
    items[:] = sorted((i for i in items if i.nodeid in places), key=lambda item: places[item.nodeid])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Say which test fails."""
    if report.failed and SAID in os.environ:
        with Path(os.environ[SAID]).open("a", encoding="utf-8") as said:
            said.write(json.dumps(report.nodeid) + "\n")
