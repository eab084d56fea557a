"""Watching: long commands report their progress while they run.

Knows the names of steps and their counts, not who shows them: a watcher registers by `watch_with`. Guarantees: a report
costs a look-up and an assignment, whether it is shown or not; no error of a watcher reaches a command; of nested
commands only the outer one is shown, with the steps of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from anabranch._transaction.phases import listen, unlisten
from anabranch.commands.context import NEWEST, RunContext, ignore_progress
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location
from anabranch.errors.process_state import hold
from anabranch.errors.secrets import without_secrets

Run = TypeVar("Run", bound=Callable[..., Any])
T = TypeVar("T")
_AT_PHASES = {"staged": "committing", "committed": "finishing"}


class Work:
    """One running command.

    Attributes:
        name: the command's name in SQL.
        table: the table's location, without secrets.
        began: its start, in seconds of `time.monotonic`.
        step: the current step, how much of it is done, and how much there is in all; 0 if not counted.
        failed: whether it ended with an error.
    """

    def __init__(self, name: str, table: str) -> None:
        self.name, self.table, self.began = name, table, time.monotonic()
        self.step: tuple[str, int, int] = ("", 0, 0)
        self.failed = False

    def tell(self, step: str, done: int = 0, of: int = 0) -> None:
        """Report the current step; among several threads the last report counts."""
        self.step = (step, done, of)

    def tell_phase(self, phase: str) -> None:
        """Report the step of a transaction's phase."""
        if phase in _AT_PHASES:
            self.tell(_AT_PHASES[phase])


class Watcher(Protocol):
    """Shows running commands."""

    def begin(self, work: Work) -> Callable[[], None] | None:
        """Watch a command until the returned function is called; None: it is not watched. Must not raise."""
        ...


_watchers: list[Watcher] = hold("who watches commands", "one for a process")([])
_current: ContextVar[Work | None] = ContextVar("anabranch_work", default=None)


def watch_with(watcher: Watcher) -> None:
    """Let this watcher show running commands; it replaces the previous one."""
    _watchers[:] = [watcher]


@contextmanager
def watch_block(name: str, table: Location) -> Iterator[Work | None]:
    """Marks the block as a running command. Yields its `Work`, to which it may report; None if nobody watches."""
    if (outer := _current.get()) is not None or not _watchers:
        yield outer
        return
    work = Work(name, without_secrets(str(table)))
    end = _watchers[0].begin(work)
    if end is None:
        yield None
        return
    with _current_is(work):
        try:
            yield work
        except BaseException:
            work.failed = True
            raise
        finally:
            end()


@contextmanager
def _current_is(work: Work) -> Iterator[None]:
    """Within the block this thread reports its steps to ``work``."""
    token, listener = _current.set(work), work.tell_phase
    listen(listener)
    try:
        yield
    finally:
        unlisten(listener)
        _current.reset(token)


def watch(name: str, table: str = "table") -> Callable[[Run], Run]:
    """Decorates the ``run`` of a command so that it is watched, unless its caller passes its own progress.

    Args:
        name: the command's name in SQL.
        table: the attribute with the table's location.
    """

    def decorate(run: Run) -> Run:
        @wraps(run)
        def watching(command: Any, engine: Engine | None = None, context: RunContext = NEWEST) -> Any:
            if context.progress is not ignore_progress:
                return run(command, engine, context)
            with watch_block(name, getattr(command, table)) as work:
                return run(command, engine, context if work is None else replace(context, progress=work.tell))

        return cast(Run, watching)

    return decorate


def report_step(step: str, done: int = 0, of: int = 0) -> None:
    """Report the current step of this thread's command, if it is watched."""
    if (work := _current.get()) is not None:
        work.tell(step, done, of)


def track_progress(step: str, items: Iterable[T], of: int) -> Iterator[T]:
    """Yields the items, and reports after each how many of how many are done."""
    work = _current.get()
    if work is None:
        yield from items
        return
    for done, item in enumerate(items, 1):
        work.tell(step, done, of)
        yield item
