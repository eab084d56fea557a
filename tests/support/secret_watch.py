"""Each test fails that shows the planted secret in an error, a log record or a commit: a leak stands where no test of
its own would look for it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from anabranch.errors.process_state import forget
from tests.support.planted import Watch

watch = Watch()


def pytest_configure(config: pytest.Config) -> None:
    """Look from before the first test on."""
    watch.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Look at what the test raises, and at all that was logged and made meanwhile."""
    try:
        result = yield
    except BaseException as error:
        watch.look_at_error(error)
        raise
    if said := watch.told():
        pytest.fail(said, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Look at the commits that the test left behind; what it has patched is whole again by then."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    result = yield
    forget("tables whose rows are not shown")  # else the messages of later tests would say less
    if isinstance(folder, Path):
        watch.look_at_files(folder)
    if said := watch.told():
        pytest.fail(said, pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what looking took."""
    if watch.seconds > 1:
        terminalreporter.write_line(f"looking for planted secrets took {watch.seconds:.1f} s")
