"""Commands that take long show how far they are, in terminals and notebooks, and nowhere else."""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import anabranch
from anabranch._api import progress as room
from anabranch._api.bars import NotebookBar, Terminal, headline, line
from anabranch._api.progress import Board
from anabranch.commands.watching import Work, report_step, watch_block, watch_with
from anabranch.errors import InvalidArgument
from tests.support.patience import until
from tests.support.tiers import few_of

ROOT = Path(__file__).resolve().parent.parent.parent
SLOW = """
import os, time
import anabranch
from anabranch.testing import at_phase
from tests.support.patience import until

for number in (1, 2):
    anabranch.append("flights", [{{"id": number}}])
with at_phase("{phase}", lambda: {meanwhile}):
    anabranch.restore("flights", version=0)
print("all done")
"""
AT_ONCE = """
import os
from concurrent.futures import ThreadPoolExecutor
import anabranch
from anabranch.testing import at_phase
from tests.support.patience import until

def run(name):
    for number in (1, 2):
        anabranch.append(name, [{"id": number}])
    with at_phase("staged", lambda: until(lambda: os.path.exists(f"seen {int(name[-1]) // 4}"))):
        anabranch.restore(name, version=0)
    anabranch.vacuum(name, dry_run=True)
    return anabranch.check(name).is_clean

with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(run, ["table4", "table5", "table6", "table7"])))
"""
UNTIL_SEEN = "until(lambda: os.path.exists('seen 0'))"
IN_VAIN = "time.sleep(1.8)"
"""Time in which a bar would be drawn, if there were one; where the machine is busy it is less likely to be drawn, so no
test fails of that."""
HOSTILE = "<script>[red]{task}\x1b[2J"


def script(phase: str = "staged", meanwhile: str = IN_VAIN) -> str:
    return SLOW.format(phase=phase, meanwhile=meanwhile)


def in_terminal(code: str, folder: Path, *awaited: Sequence[str], **environment: str) -> tuple[str, str]:
    """What a script prints, and what its standard error, a terminal, was sent. Once that was all words of the n-th list
    of ``awaited``, there is a file ``seen n`` in the script's folder, for which the script may wait.
    """
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    ours, theirs = pty.openpty()
    begun = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment},
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux says so that the other side is closed
            break
        if not part:
            break
        sent += part
        for number, words in enumerate(awaited):
            if all(word.encode() in sent for word in words):
                (folder / f"seen {number}").touch()
    os.close(ours)
    printed = begun.communicate()[0].decode()
    assert begun.returncode == 0, sent.decode()
    return printed, sent.decode()


def work(step: str = "", done: int = 0, of: int = 0, table: str = "/data/flights", seconds: float = 0) -> Work:
    made = Work("OPTIMIZE", table)
    made.tell(step, done, of)
    made.began -= seconds
    return made


# -- where -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_terminal_shows_what_takes_long_alone_and_at_once_and_is_clear_at_the_end(tmp_path: Path) -> None:
    """One command with its step, then those of four threads, of which none fails."""
    alone, at_once = ["RESTORE flights", "committing"], [f"RESTORE table{number}" for number in range(4, 8)]
    printed, sent = in_terminal(script("put", UNTIL_SEEN) + AT_ONCE, tmp_path, alone, at_once)
    assert printed.splitlines() == ["all done", str([True] * 4)]
    lines = [each.rstrip() for each in re.split(r"[\r\n]+", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", sent)) if each.strip()]
    a_bar = r"(APPEND|RESTORE|VACUUM|CHECK) (table\d|flights) [━╸╺ ]+.* \d+ s"
    assert not [each for each in lines if not re.fullmatch(a_bar, each)]
    assert sent.endswith(("\x1b[?25h\r", "\x1b[?25h", "\x1b[2K"))  # the cursor is back, and the line is empty
    assert sent.count("\x1b[?25l") == sent.count("\x1b[?25h") >= 2  # where it takes a second, an APPEND is shown, too


@pytest.mark.parametrize(("term", "draws"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_only_prints_is_none(term: str, draws: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("TERM", term)
    assert room.is_terminal() is draws


@pytest.mark.exhaustive("tests/api/test_progress.py::test_a_terminal_that_only_prints_is_none")
@pytest.mark.slow
def test_a_terminal_that_only_prints_stays_as_it_is(tmp_path: Path) -> None:
    assert in_terminal(script(), tmp_path, TERM="dumb") == ("all done\n", "")


@pytest.mark.exhaustive(
    "tests/api/test_progress.py::test_the_switch_holds_for_the_process_or_for_a_block",
    "tests/api/test_progress.py::test_what_is_switched_off_is_never_drawn",
)
@pytest.mark.slow
def test_a_terminal_stays_as_it_is_where_progress_is_switched_off(tmp_path: Path) -> None:
    assert in_terminal("import anabranch\nanabranch.progress(False)\n" + script(), tmp_path) == ("all done\n", "")


@pytest.mark.exhaustive("tests/api/test_progress.py::test_a_process_without_a_terminal_starts_no_thread")
@pytest.mark.slow
def test_nothing_is_shown_where_standard_error_is_no_terminal(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FORCE_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script() + "import sys; assert 'rich.live' not in sys.modules"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("all done\n", "")


@pytest.mark.slow
def test_a_notebook_shows_a_bar_and_then_how_long_it_took(tmp_path: Path) -> None:
    from tests.support.notebooks import run

    begin = """
import time
import anabranch
from anabranch._api.bars import NotebookBar
from anabranch.commands.watching import report_step, watch_block
from tests.support.patience import until

drawn, draw = [], NotebookBar.draw
NotebookBar.draw = lambda bar, work: (draw(bar, work), drawn.append(work))
"""
    checks = 'with watch_block("CHECK", "flights"):\n    report_step("files checked", 3, 8)\n    '
    cells = [f"{checks}until(lambda: drawn)", f"anabranch.progress(False)\n{checks}{IN_VAIN}"]
    _, drawn, *others = run(begin, *few_of(cells, 1), folder=tmp_path)
    (only,) = drawn
    assert re.fullmatch(r"CHECK flights: done in [\d mins]+", only["data"]["text/html"])
    assert not any(others)


# -- the switch --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A board that nobody has switched off, in the place of the process's own."""
    own = room.BOARD
    use(Board(), monkeypatch)
    yield
    watch_with(own)


def use(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this board show what runs until the test ends."""
    monkeypatch.setattr(room, "BOARD", board)
    watch_with(board)


def test_the_switch_holds_for_the_process_or_for_a_block() -> None:
    assert room.BOARD.is_on
    with anabranch.progress(False):
        assert not room.BOARD.is_on
        with anabranch.progress():
            assert room.BOARD.is_on
        assert not room.BOARD.is_on
    assert room.BOARD.is_on
    anabranch.progress(False)
    assert not room.BOARD.is_on
    assert repr(anabranch.progress(True)) == "<progress is on>"
    with pytest.raises(InvalidArgument):
        anabranch.progress("yes")  # type: ignore[arg-type]


def test_a_process_without_a_terminal_starts_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")
    before = threading.active_count()
    with watch_block("CHECK", tmp_path) as found:
        assert found is None
        assert threading.active_count() == before


# -- the board ---------------------------------------------------------------------------------------------------------


class Drawn:
    """A bar that remembers, and may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails, self.lines, self.closed = fails, list[str](), 0

    def draw(self, work: Work) -> None:
        if self.fails:
            raise RuntimeError("no screen")
        self.lines.append(line(work))

    def close(self, work: Work) -> None:
        self.closed += 1


def shown_on(bar: Drawn, monkeypatch: pytest.MonkeyPatch, *, after: float = 0.0) -> None:
    """Let this process show commands on such a bar."""
    monkeypatch.setattr(room, "is_terminal", lambda: True)
    monkeypatch.setattr(room, "spark_draws", lambda: False)
    use(Board(after, 0.01, lambda: bar), monkeypatch)


def test_a_command_is_drawn_until_it_ends_and_no_thread_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Drawn()
    shown_on(bar, monkeypatch)
    with watch_block("CHECK", "/data/flights"):
        report_step("files checked", 3, 8)
        until(lambda: [each for each in bar.lines if each.startswith("CHECK flights  files checked  3 of 8  ")])
    assert bar.closed == 1
    drawn = len(bar.lines)
    until(lambda: "anabranch-progress" not in {each.name for each in threading.enumerate()})
    assert len(bar.lines) == drawn


def test_a_short_command_is_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Drawn()
    shown_on(bar, monkeypatch, after=3600)
    with watch_block("CHECK", "/data/flights"):
        time.sleep(0.1)  # ten looks, or fewer where the machine is busy: an hour is not over in any case
    assert not bar.lines


def test_what_is_switched_off_is_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Drawn()
    shown_on(bar, monkeypatch)
    with anabranch.progress(False), watch_block("CHECK", "/data/flights"):
        time.sleep(0.1)  # ten looks, or fewer where the machine is busy: none may draw
    assert not bar.lines


def test_what_fails_in_drawing_is_logged_once_and_costs_no_command(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    bar = Drawn(fails=True)
    shown_on(bar, monkeypatch)
    with caplog.at_level(logging.WARNING), watch_block("CHECK", "/data/flights"):
        until(lambda: caplog.records)
        assert anabranch.append(str(tmp_path / "t"), [{"id": 1}]) == 0
    assert [record.message for record in caplog.records] == [
        "the progress of commands is not shown any more: no screen"
    ]
    with watch_block("CHECK", "/data/flights") as found:
        assert found is None


def test_where_no_thread_can_be_started_commands_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown_on(Drawn(), monkeypatch)

    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(room, "Thread", Refused)
    assert anabranch.append(str(tmp_path / "t"), [{"id": 1}]) == 0


def test_a_terminal_in_which_spark_draws_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Drawn()
    shown_on(bar, monkeypatch)
    asked = list[bool]()
    monkeypatch.setattr(room, "spark_draws", lambda: not asked.append(True))
    with watch_block("CHECK", "/data/flights"):
        until(lambda: asked)
        time.sleep(0.1)  # ten looks more, or fewer where the machine is busy: none may draw or ask again
    assert not bar.lines
    assert asked == [True]


@pytest.mark.parametrize(
    ("value", "draws"), [("true", True), ("TRUE", True), ("false", False), (RuntimeError("stopped"), False)]
)
def test_sparks_own_bar_is_known_by_the_session(value: Any, draws: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def get(name: str, default: str) -> str:
        if isinstance(value, Exception):
            raise value
        return {"spark.ui.showConsoleProgress": str(value)}.get(name, default)

    session = SimpleNamespace(conf=SimpleNamespace(get=get))
    pyspark = SimpleNamespace(SparkSession=SimpleNamespace(active=lambda: session))
    monkeypatch.setitem(sys.modules, "pyspark.sql", pyspark)  # type: ignore[arg-type]
    assert room.spark_draws() is draws


def test_the_terminal_of_a_server_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remote:
        __module__ = "pyspark.sql.connect.session"
        conf = SimpleNamespace(get=lambda name, default: "true")

    pyspark = SimpleNamespace(SparkSession=SimpleNamespace(active=Remote))
    monkeypatch.setitem(sys.modules, "pyspark.sql", pyspark)  # type: ignore[arg-type]
    assert not room.spark_draws()


@pytest.mark.spark
def test_a_session_of_ours_shows_no_bar_of_sparks(spark: Any) -> None:
    assert not room.spark_draws()


@pytest.mark.exhaustive("tests/api/test_progress.py::test_sparks_own_bar_is_known_by_the_session")
@pytest.mark.spark
@pytest.mark.slow
def test_a_stock_session_shows_its_own_bar(tmp_path: Path) -> None:
    lines = (
        "from anabranch._api.progress import spark_draws",
        "from pyspark.sql import SparkSession",
        "SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()",
        "print(spark_draws())",
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == ["True"], done.stderr


# -- bars --------------------------------------------------------------------------------------------------------------


def test_a_bar_says_command_table_step_count_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    assert line(work("written", 3, 1200, seconds=75)) == "OPTIMIZE flights  written  3 of 1,200  1 min 15 s"
    assert line(work(seconds=5)) == "OPTIMIZE flights  5 s"
    assert headline(work(table="s3://lake/" + "x" * 99 + "/")) == f"OPTIMIZE {'x' * 39}…"


def test_several_commands_share_a_terminal_and_leave_it_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    terminal, one, two = Terminal(), work("written", 3, 8), work("listing", table="/data/hotels")
    for each in (one, two):
        terminal.draw(each)
    both = screen.getvalue()
    assert "OPTIMIZE flights" in both
    assert "3 of 8" in both
    assert "OPTIMIZE hotels" in both
    terminal.close(one)
    assert "\x1b[?25h" not in screen.getvalue()
    terminal.close(two)
    terminal.close(two)
    assert "\x1b[?25h" in screen.getvalue()
    terminal.close(work())  # never drawn


def test_a_terminal_shows_a_strangers_name_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    stranger, terminal = work("[bold]", 9, 3, table=f"/data/{HOSTILE}"), Terminal()
    terminal.draw(stranger)
    terminal.close(stranger)
    assert "\x1b[2J" not in screen.getvalue()
    assert "<script>[red]{task}\\x1b[2J" in screen.getvalue()


class Displayed:
    """IPython's display, which remembers."""

    def __init__(self) -> None:
        self.bundles = list[dict[str, str]]()

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Displayed:
        assert raw
        assert display_id
        self.bundles.append(bundle)
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.bundles.append(bundle)


def test_a_notebooks_bar_is_html_without_anything_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed, bar = Displayed(), NotebookBar()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=displayed))  # type: ignore[arg-type]
    shown = work("<b>written", 9, 3, table=f"/data/{HOSTILE}")
    bar.draw(shown)
    bar.draw(shown)
    shown.failed = True
    bar.close(shown)
    first, last = displayed.bundles
    assert '<progress value="3" max="3">' in first["text/html"]
    assert set(re.findall(r"<(\w+)", first["text/html"])) == {"progress"}
    assert re.search(r"stopped after [\d mins]+", last["text/html"])
    assert not re.findall(r"<(\w+)", last["text/html"])
    assert first["text/plain"].startswith("OPTIMIZE ")
    NotebookBar().close(shown)
    assert len(displayed.bundles) == 2
