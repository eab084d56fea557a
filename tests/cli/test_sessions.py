"""Ctrl-C while Spark starts: Java does not stay behind, and a second one does not wait."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anabranch._cli.sessions import get_or_start_session, interrupts_wait
from tests.support.patience import PATIENCE, until
from tests.test_storeys import ROOT

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no process groups")


@pytest.fixture(autouse=True)
def _as_python_has_it() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def in_block(*steps: Callable[[], object]) -> None:
    with interrupts_wait():
        for each in steps:
            each()


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    done = list[bool]()
    with pytest.raises(KeyboardInterrupt):
        in_block(press, lambda: done.append(True))
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait() -> None:
    done = list[bool]()
    with pytest.raises(KeyboardInterrupt):
        in_block(press, press, lambda: done.append(True))
    assert not done


def test_what_else_goes_wrong_in_the_block_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        in_block(press, lambda: 1 // 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_the_block_sets_stays() -> None:
    with interrupts_wait():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts_wait():
        press()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.slow
def test_a_command_that_is_interrupted_while_java_starts_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    begun = list[str]()

    def session(app: str, **settings: str) -> None:
        press()
        begun.append(app)

    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setattr(importlib.import_module("anabranch._api.session"), "session", session)
    with pytest.raises(KeyboardInterrupt):
        get_or_start_session("interrupted")
    assert begun == ["interrupted"]


@pytest.mark.exhaustive(
    "tests/cli/test_sessions.py::test_ctrl_c_waits_for_the_end_of_the_block",
    "tests/cli/test_sessions.py::test_a_command_that_is_interrupted_while_java_starts_waits_for_it",
)
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic("a client of Connect starts no Java")
def test_java_does_not_outlive_a_command_that_is_interrupted_while_it_starts(tmp_path: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-m", "anabranch._cli", "sql", "SELECT 1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(lambda: "org.apache.spark.deploy.SparkSubmit" in commands_of(begun.pid))
        begun.send_signal(signal.SIGINT)
        assert begun.wait(timeout=PATIENCE) != 0
        until(lambda: not commands_of(begun.pid))
    finally:
        if commands_of(begun.pid):
            os.killpg(begun.pid, signal.SIGKILL)
        begun.wait()


def commands_of(group: int) -> str:
    """What the processes of a group run, which are not over."""
    shown = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    split = (line.split(None, 2) for line in shown.splitlines())
    return "\n".join(each[2] for each in split if each[0] == str(group) and not each[1].startswith("Z"))
