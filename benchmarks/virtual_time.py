"""A clock of its own for many writers in one process: an hour of waiting takes seconds.

Real threads, of which one runs at a time: whoever wakes first. Nobody waits but by `VirtualTime.sleep`, so the clock
jumps from one waking to the next. What a thread computes counts too, by its processor time. Guarantee: each thread sees
all effects of those that woke before it, and none of those that wake later.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Task = Callable[[], None]


@dataclass(order=True)
class _Waking:
    at: float
    number: int
    task: _Task = field(compare=False)


class _Task:
    def __init__(self) -> None:
        self.turn = threading.Semaphore(0)
        self.resumed = 0.0


class VirtualTime:
    """The clock, in seconds since its start; ``now`` is the same for all.

    Example:
        >>> clock = VirtualTime()
        >>> clock.run([(0.0, lambda: clock.sleep(3600.0))])
        >>> clock.now
        3600.0
    """

    def __init__(self, *, counts_processor: bool = True) -> None:
        self.now = 0.0
        self._counts_processor, self._wakings, self._numbers = counts_processor, list[_Waking](), 0
        self._here, self._owed = threading.local(), dict[int, float]()
        self._over, self._failed = threading.Event(), list[BaseException]()

    def run(self, tasks: Iterable[tuple[float, Task]]) -> None:
        """Run tasks, each from its moment on, to their ends. Raises what the first of them raised."""
        threads = [self._thread(at, task) for at, task in tasks]
        self._wake_next()
        self._over.wait()
        for thread in threads:
            thread.join()
        if self._failed:
            raise self._failed[0]

    def sleep(self, seconds: float) -> None:
        """Wait. In a thread that a task started, the task itself waits, with its next call, for the longest of them."""
        task: _Task | None = getattr(self._here, "task", None)
        if task is None:
            me = threading.get_ident()
            self._owed[me] = self._owed.get(me, 0.0) + seconds
            return
        computed = time.thread_time() - task.resumed if self._counts_processor else 0.0
        owed = max(self._owed.values(), default=0.0)
        self._owed.clear()
        self._wait(self.now + seconds + computed + owed, task)
        self._wake_next()
        task.turn.acquire()
        task.resumed = time.thread_time()

    @property
    def is_a_task(self) -> bool:
        """Whether the calling thread is a task, and none that a task has started."""
        return getattr(self._here, "task", None) is not None

    def _wait(self, until: float, task: _Task) -> None:
        self._numbers += 1
        heapq.heappush(self._wakings, _Waking(until, self._numbers, task))

    def _wake_next(self) -> None:
        if not self._wakings:
            self._over.set()
            return
        first = heapq.heappop(self._wakings)
        self.now = first.at
        first.task.turn.release()

    def _thread(self, at: float, work: Task) -> threading.Thread:
        task = _Task()
        self._wait(at, task)
        thread = threading.Thread(target=self._live, args=(task, work), daemon=True)
        thread.start()
        return thread

    def _live(self, task: _Task, work: Task) -> None:
        task.turn.acquire()
        self._here.task, task.resumed = task, time.thread_time()
        try:
            if not self._failed:
                work()
        except BaseException as error:  # it fails the whole run, which says so when all have ended
            self._failed.append(error)
        self._wake_next()
