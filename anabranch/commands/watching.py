"""Watching: what commands that may take long say of themselves while they run.

Knows the names of steps and how they are counted, and nothing of who shows them: that one says so by `watch_with`.
Guarantees: to say something costs a look-up and an assignment, whether it is shown or not; nothing that goes wrong in
showing it reaches a command; of commands inside a command only the outer one is shown, with the steps of all.
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
    """One command that runs.

    Attributes:
        name: of the command, in the words of SQL.
        table: where the table is, without secrets.
        began: in seconds of `time.monotonic`.
        step: what it is at, how much of that is done, and how much there is; 0 where that is not counted.
        failed: whether it ended with an error.
    """

    def __init__(self, name: str, table: str) -> None:
        self.name, self.table, self.began = name, table, time.monotonic()
        self.step: tuple[str, int, int] = ("", 0, 0)
        self.failed = False

    def tell(self, step: str, done: int = 0, of: int = 0) -> None:
        """Say what it is at; of several threads that say so the last one counts."""
        self.step = (step, done, of)

    def tell_phase(self, phase: str) -> None:
        """The same, by the phases of a transaction."""
        if phase in _AT_PHASES:
            self.tell(_AT_PHASES[phase])


class Watcher(Protocol):
    """Who shows what runs."""

    def begin(self, work: Work) -> Callable[[], None] | None:
        """Watch it until what this returns is called; None: it is not watched. Nothing may be raised."""
        ...


_watchers: list[Watcher] = hold("who watches commands", "one for a process")([])
_current: ContextVar[Work | None] = ContextVar("anabranch_work", default=None)


def watch_with(watcher: Watcher) -> None:
    """Let this one show what runs, in the place of who did so before."""
    _watchers[:] = [watcher]


@contextmanager
def working(name: str, table: Location) -> Iterator[Work | None]:
    """A command runs within the block. Gives what it may tell of itself to, None where nobody watches."""
    if (outer := _current.get()) is not None or not _watchers:
        yield outer
        return
    work = Work(name, without_secrets(str(table)))
    ended = _watchers[0].begin(work)
    if ended is None:
        yield None
        return
    with _current_is(work):
        try:
            yield work
        except BaseException:
            work.failed = True
            raise
        finally:
            ended()


@contextmanager
def _current_is(work: Work) -> Iterator[None]:
    """Within the block this thread tells what it is at to ``work``."""
    token, listener = _current.set(work), work.tell_phase
    listen(listener)
    try:
        yield
    finally:
        unlisten(listener)
        _current.reset(token)


def watched(name: str, table: str = "table") -> Callable[[Run], Run]:
    """Let a command's ``run`` be watched, unless its caller does so: ``name`` is the command's in SQL, ``table`` the
    attribute that says where the table is.
    """

    def decorate(run: Run) -> Run:
        @wraps(run)
        def watching(command: Any, engine: Engine | None = None, context: RunContext = NEWEST) -> Any:
            if context.progress is not ignore_progress:
                return run(command, engine, context)
            with working(name, getattr(command, table)) as work:
                return run(command, engine, context if work is None else replace(context, progress=work.tell))

        return cast(Run, watching)

    return decorate


def tell(step: str, done: int = 0, of: int = 0) -> None:
    """Say what the command of this thread is at, if it is watched."""
    if (work := _current.get()) is not None:
        work.tell(step, done, of)


def track_progress(step: str, each: Iterable[T], of: int) -> Iterator[T]:
    """The same items, of which it is told how many there were and will be."""
    work = _current.get()
    if work is None:
        yield from each
        return
    for done, item in enumerate(each, 1):
        work.tell(step, done, of)
        yield item
