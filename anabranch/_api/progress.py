"""``anabranch.progress`` and the board that shows the progress of long commands.

Knows where it runs (a notebook, a terminal, neither), and when a command has run for long enough to be shown. One
thread, which exists only while a command runs, draws for all commands. Guarantees: a command waits only for the last
drawing of its own; if drawing fails, that is logged once and nothing is drawn any more; without a notebook or a
terminal, nothing is done at all.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from contextvars import copy_context
from threading import Lock, Thread
from types import TracebackType

from anabranch._api.bars import Bar, NotebookBar, Terminal
from anabranch.commands.watching import Work, watch_with
from anabranch.errors import InvalidArgument
from anabranch.errors.process_state import hold

__all__ = ["progress"]

_logger = logging.getLogger(__name__)
_SPARKS_OWN = "spark.ui.showConsoleProgress"


def progress(on: bool = True) -> Progressing:
    """Sets whether commands of this process that run for more than a second show their progress.

    They do by default, on standard error if it is a terminal, and below the cell in a notebook; nowhere else. If Spark
    shows its own bar in the terminal (``spark.ui.showConsoleProgress``), nothing is shown. Neither do commands with a
    ``progress`` argument show anything.

    Returns:
        a context manager that restores the previous setting at its end.

    Raises:
        InvalidArgument: ``on`` is neither True nor False.

    Example:
        >>> anabranch.progress(False)
        >>> with anabranch.progress(True):
        ...     anabranch.check("/data/flights", deep=True)
    """
    if not isinstance(on, bool):
        raise InvalidArgument(option="on", value=on, reason="it takes True or False.")
    before, BOARD.is_on = BOARD.is_on, on
    return Progressing(before)


class Progressing:
    """The setting that `progress` made; as a context manager, it lasts until the end of the block."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __repr__(self) -> str:
        return f"<progress is {'on' if BOARD.is_on else 'off'}>"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        BOARD.is_on = self._before


class Board:
    """The running commands, and the thread that shows them.

    Args:
        after_s: seconds that a command runs before it is shown.
        every_s: seconds between two drawings.
        terminal: creates the bar that draws all commands in a terminal.

    Attributes:
        is_on: whether progress is shown.
    """

    def __init__(self, after_s: float = 1.0, every_s: float = 0.2, terminal: Callable[[], Bar] = Terminal) -> None:
        self.is_on, self._is_broken = True, False
        self._after_s, self._every_s, self._make_terminal = after_s, every_s, terminal
        self.empty()

    def empty(self) -> None:
        """Forgets all commands, as in a forked process."""
        self._lock, self._thread = Lock(), Thread()
        self._shown: dict[Work, _Shown] = {}
        self._terminal = self._make_terminal()

    def begin(self, work: Work) -> Callable[[], None] | None:
        """Registers a command, unless nothing can be shown here; see `Watcher`."""
        if not self.is_on or self._is_broken:
            return None
        in_notebook = is_notebook()
        if not in_notebook and not is_terminal():
            return None
        self._run_safely(lambda: self._add(work, in_notebook=in_notebook))
        return lambda: self._end(work)

    def _add(self, work: Work, *, in_notebook: bool) -> None:
        bar = NotebookBar() if in_notebook else self._terminal
        with self._lock:
            self._shown[work] = _Shown(work, bar, self._after_s, beside_spark=not in_notebook)
            if not self._thread.is_alive():
                self._thread = Thread(target=self._draw_all, name="anabranch-progress", daemon=True)
                self._thread.start()

    def _end(self, work: Work) -> None:
        with self._lock:
            shown = self._shown.pop(work, None)
        if shown is not None:
            self._run_safely(shown.close)

    def _draw_all(self) -> None:
        while True:
            time.sleep(self._every_s)
            with self._lock:
                if not self._shown:
                    self._thread = Thread()
                    return
                commands = list(self._shown.values())
            for command in commands:
                if self.is_on and not self._is_broken:
                    self._run_safely(command.draw)

    def _run_safely(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # the command continues, whatever happens
            if not self._is_broken:
                _logger.warning("the progress of commands is not shown any more: %s", error)
            self._is_broken = True


class _Shown:
    """One command with its bar, which is drawn by one thread and closed by another."""

    def __init__(self, work: Work, bar: Bar, after_s: float, *, beside_spark: bool) -> None:
        self._work, self._bar, self._after_s, self._context = work, bar, after_s, copy_context()
        self._lock, self._is_open = Lock(), True
        self._is_quiet: bool | None = None if beside_spark else False

    def draw(self) -> None:
        """Draws the bar, if the command has run for long enough."""
        if time.monotonic() - self._work.began < self._after_s:
            return
        if self._is_quiet is None:
            self._is_quiet = spark_draws()
        with self._lock:
            if self._is_open and not self._is_quiet:
                self._context.run(self._bar.draw, self._work)

    def close(self) -> None:
        """Stops drawing, and removes the bar."""
        with self._lock:
            self._is_open = False
            self._bar.close(self._work)


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def is_terminal() -> bool:
    """Whether standard error is a terminal on which lines can be redrawn."""
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # standard error is missing or closed
        return False


def spark_draws() -> bool:
    """Whether Spark shows a bar of its own in this terminal; a server of Spark Connect has another terminal."""
    pyspark = sys.modules.get("pyspark.sql")
    if pyspark is None:
        return False
    try:
        session = pyspark.SparkSession.active()
        is_classic = not type(session).__module__.startswith("pyspark.sql.connect")
        return is_classic and session.conf.get(_SPARKS_OWN, "false").lower() == "true"
    except Exception:  # no session, or it does not answer
        return False


BOARD = hold("what commands show", "one setting, and what runs right now")(Board())
watch_with(BOARD)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BOARD.empty)
