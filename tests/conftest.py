"""What all tests share: one Spark for the whole run."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Hashable, Iterator
from pathlib import Path

import pytest

from anabranch.errors.process_state import forget
from tests.support.connect_session import ON_CONNECT, connect_session
from tests.support.planted import Watch
from tests.support.spark_options import QUICK_JAVA
from tests.support.thinning import shorten, thinned

pytest_plugins = ["tests.support.costs", "tests.support.drawing"]

os.environ.pop(
    "COLUMNS", None
)  # pytest's workers inherit one, which would fix the width of what the command line prints


os.fsync = os.fstat  # type: ignore[assignment]
"""No power fails during a test, so nothing waits for the disk, which is a good part of the time. A bad descriptor is an
error still; what is made durable, and when, is asked in tests/storage/test_local_faults.py."""


QUICK = "not spark and not slow"
"""What `make quick` takes."""

JVM = {
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.driver.memory": "3g",
    "spark.ui.showConsoleProgress": "false",
}

watch = Watch()
watch.begin()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--most``, by which `make test` and `make quick` are short."""
    said = "of each parametrized test that needs more than its parameters take at most N cases, evenly spread"
    parser.addoption("--most", type=int, metavar="N", help=said)


def pytest_configure(config: pytest.Config) -> None:
    """Let tests that loop by themselves know of ``--most`` before they are imported."""
    if config.getoption("--most") is not None:
        shorten()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone that have nothing to run, since to collect them all takes each process some seconds."""
    if collection_path.suffix != ".py" or config.getoption("-m") not in ("spark", "not spark", QUICK):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if config.getoption("-m") == "spark":
        return None if "mark.spark" in text else True
    return True if re.search(r"^pytestmark = .*\bmark\.spark\b", text, re.MULTILINE) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases beyond ``--most``; which ones are run is the same for each run. Files with slow tests go first,
    so that no process waits at the end for another one.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    most = config.getoption("--most")
    if most is None:
        return
    families: dict[Hashable, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = thinned(families, most, _needs_nothing)
    chosen = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = [item for item in items if id(item) in chosen]


def _needs_nothing(item: pytest.Item) -> bool:
    """Whether a test needs nothing but its parameters, so that it touches no disk and waits for nobody."""
    own = getattr(getattr(item, "callspec", None), "params", {})
    needed = {*getattr(item, "fixturenames", ())} - {*own, "request"}
    is_long = any(map(item.get_closest_marker, ("spark", "slow"))) or hasattr(getattr(item, "obj", None), "hypothesis")
    return not needed and not is_long


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out on Spark Connect what is about a classic session alone."""
    if ON_CONNECT and (classic := item.get_closest_marker("classic")) is not None:
        pytest.skip(f"not on Spark Connect: {classic.args[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let each test fail that shows a planted secret in an error or a log record."""
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
    """Let each test fail that leaves a planted secret in a commit; what it has patched is whole again by then."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    result = yield
    forget("tables whose rows are not shown")  # else the messages of later tests would say less
    if isinstance(folder, Path):
        watch.look_at_files(folder)
    if said := watch.told():
        pytest.fail(said, pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the watch for planted secrets took."""
    if watch.seconds > 1:
        terminalreporter.write_line(f"looking for planted secrets took {watch.seconds:.1f} s")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[object]:
    """A local session as users get it, with two cores and everything that it leaves behind in a temporary folder. In a
    short run Spark compiles no whole stage, which is lost on a query that runs once. With ``ANABRANCH_CONNECT`` it is
    a session of Spark Connect, on a server whose Python has nothing of ours.
    """
    from anabranch.spark.session import build  # here, so that tests without Spark need no pyspark

    folder = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    if pytestconfig.getoption("--most") is not None:
        conf["spark.sql.codegen.wholeStage"] = "false"
    if ON_CONNECT:
        with connect_session(folder, conf) as session:
            yield session
        return
    session = build("tests", "local[2]", {**conf, **JVM})
    yield session
    session.stop()
