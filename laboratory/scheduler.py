"""A deterministic scheduler: real threads, of which exactly one runs at a time, by somebody's choice.

Knows tasks and moments, nothing of tables. A task gives up the baton at each *moment* (a phase of its transaction, a
call of its store, a sleep), and a `Schedule` chooses who goes on. Guarantee: the same tasks under the same choices do
the same, so that one integer reproduces a history; a run that makes no progress ends in `NoProgress`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Protocol

from anabranch._transaction.phases import listen

MOST_STEPS = 20_000
LONGEST_SECONDS = 300.0


class NoProgress(BaseException):
    """A run that does not end: a livelock (too many steps) or a deadlock (nobody gives up the baton)."""


class Killed(BaseException):
    """The task dies here, as by kill -9: nothing of it runs any more."""


class Schedule(Protocol):
    """Who goes on."""

    def choose(self, step: int, ready: Sequence[int], current: int | None, moment: str) -> int:
        """One of ``ready``; ``current`` is who has come to ``moment``, or None where it has ended."""
        ...


class Scheduler:
    """Runs tasks by a schedule; ``note`` is told of each moment, (step, task, moment), when its task goes on.

    Attributes:
        step: how many moments have been, over all tasks: the clock of the history.
    """

    def __init__(self, schedule: Schedule, note: Callable[[int, int, str], None] = lambda *moment: None) -> None:
        self._schedule, self._note = schedule, note
        self._batons: list[threading.Lock] = []
        self._ready: list[int] = []
        self._over = threading.Event()
        self._broken: BaseException | None = None
        self.step = 0

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run all tasks to their ends.

        Raises:
            NoProgress: they do not come to their ends.
        """
        self._batons = [_taken() for _ in tasks]
        self._ready = list(range(len(tasks)))
        for number, task in enumerate(tasks):
            _worker(number).jobs.put(partial(self._live, number, task))
        self._batons[self._choose(None, "start")].release()
        if not self._over.wait(LONGEST_SECONDS):
            raise NoProgress(f"nobody has moved for {LONGEST_SECONDS} s")
        if self._broken is not None:
            raise self._broken

    def pause(self, moment: str) -> None:
        """Come to a moment; returns when it is the caller's turn again. Threads that are no task pass."""
        number = current_task()
        if number is None:
            return
        self.step += 1
        if self._broken is not None or self.step > MOST_STEPS:
            raise NoProgress(f"{self.step} steps, and no end")
        chosen = self._choose(number, moment)
        if chosen != number:
            self._batons[chosen].release()
            self._batons[number].acquire()
        self._note(self.step, number, moment)

    def _choose(self, current: int | None, moment: str) -> int:
        if len(self._ready) == 1:
            return self._ready[0]
        return self._schedule.choose(self.step, self._ready, current, moment)

    def _live(self, number: int, task: Callable[[], None]) -> None:
        self._batons[number].acquire()
        _here.task, _here.scheduler = number, self
        try:
            if self._broken is None:
                task()
        except BaseException as error:  # a task reports its own errors: what comes here is the simulation's
            self._broken = error
        _here.task = _here.scheduler = None
        self.step += 1
        self._ready.remove(number)
        if self._ready:
            self._batons[self._choose(None, "ended")].release()
        else:
            self._over.set()


class _Worker(threading.Thread):
    """A thread that is kept for many histories, since making one costs more than a transaction's step."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Do one job after the other."""
        listen(_at_phase)
        while True:
            self.jobs.get()()


_here = threading.local()
_workers: dict[tuple[int, int], _Worker] = {}


def _worker(number: int) -> _Worker:
    """The worker of this number for the calling thread: two threads may run a scheduler each."""
    key = (threading.get_ident(), number)
    if key not in _workers:
        _workers[key] = _Worker()
    return _workers[key]


def current_task() -> int | None:
    """The number of the task that this thread runs, if it runs one."""
    return getattr(_here, "task", None)


def _at_phase(phase: str) -> None:
    scheduler = getattr(_here, "scheduler", None)
    if scheduler is not None:
        scheduler.pause(phase)


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
