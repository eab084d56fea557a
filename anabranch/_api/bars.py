"""Bars: the display of one running command, in a terminal or in a notebook.

Imports rich and IPython only when there is something to show, and does not know when that is. Raises what goes wrong.
Guarantees: the terminal is unchanged once the last bar is gone; neither standard stream is replaced; text from a table
is escaped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import RLock
from typing import Any, Protocol

from anabranch.commands.watching import Work
from anabranch.errors.html import plain, text

_WIDTH, _LONGEST_NAME = 30, 40


class Bar(Protocol):
    """Shows one command."""

    def draw(self, work: Work) -> None:
        """Shows the command's progress."""
        ...

    def close(self, work: Work) -> None:
        """Ends the display of the command."""
        ...


class Terminal:
    """The bars of all threads in one terminal, on standard error; they vanish with their commands."""

    def __init__(self) -> None:
        self._lock, self._works = RLock(), list[Work]()
        self._live: Any = None

    def draw(self, work: Work) -> None:
        """Shows the command's progress."""
        with self._lock:
            if work not in self._works:
                self._works.append(work)
            if self._live is None:
                self._live = _live(self._rows)
                self._live.start()
            self._live.refresh()

    def close(self, work: Work) -> None:
        """Removes the command's bar; with the last one, the whole display."""
        with self._lock:
            if work in self._works:
                self._works.remove(work)
            if not self._works and self._live is not None:
                live, self._live = self._live, None
                live.stop()

    def _rows(self) -> Any:
        """A row per command."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        rows = Table.grid(padding=(0, 1))
        for work in self._works:
            _, done, of = work.step
            bar = ProgressBar(total=of or None, completed=min(done, of), width=_WIDTH, pulse=not of)
            rows.add_row(Text(headline(work)), bar, Text(rest(work)))
        return rows


def _live(rows: Callable[[], Any]) -> Any:
    """A display that redraws these rows in place, and clears them at the end."""
    from rich.console import Console
    from rich.live import Live

    return Live(
        console=Console(stderr=True),
        get_renderable=rows,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


class NotebookBar:
    """A bar among the outputs of a cell; at the end, a line with the command's duration replaces it."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = ""

    def draw(self, work: Work) -> None:
        """Shows the command's progress."""
        _, done, of = work.step
        share = f' value="{min(done, of)}" max="{of}"' if of else ""
        self._show(f"{text(headline(work))} <progress{share}></progress> {text(rest(work))}", line(work))

    def close(self, work: Work) -> None:
        """Replaces the bar with a line."""
        if self._handle is not None:
            summary = f"{headline(work)}: {'stopped after' if work.failed else 'done in'} {_format_elapsed(work)}"
            self._show(text(summary), summary)

    def _show(self, page: str, plain_line: str) -> None:
        if page == self._last:
            return
        self._last, bundle = page, {"text/html": page, "text/plain": plain_line}
        if self._handle is None:
            display = sys.modules["IPython"].display.display
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def headline(work: Work) -> str:
    """The names of the command and the table."""
    name = plain(work.table).rstrip("/").rpartition("/")[2].replace("\n", " ")
    return f"{work.name} {name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + '…'}"


def rest(work: Work) -> str:
    """The current step, its counts, and the elapsed time."""
    step, done, of = work.step
    counts = f"{done:,} of {of:,}" if of else ""
    return "  ".join(filter(None, (step, counts, _format_elapsed(work))))


def line(work: Work) -> str:
    """The whole display in one line."""
    return f"{headline(work)}  {rest(work)}"


def _format_elapsed(work: Work) -> str:
    minutes, seconds = divmod(int(time.monotonic() - work.began), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
