"""The loop of one writer of the contest of conflicts: operations until the time is over, and what became of each.

Knows a table's log by the names of its files, and no engine: what an operation does, how it is tried again and which
errors are conflicts is handed in. The standard library only, since delta-spark's own Python runs it too.

A call is a dict: ``number`` of the operation, ``began`` and ``ended`` (seconds of the machine's clock), ``done``,
``failed`` (the class of an error that is no conflict), ``before`` (the newest version before the last attempt began),
and in ``refusals`` of each refused attempt the newest version before it began and the newest one when it was refused.
The refused transaction read the first of them or a later one, so all of its winners are between the two.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Bounds on the pauses between attempts, in seconds: those of `anabranch.retrying`, for all contenders."""

Work = Callable[[], Any]
IsConflict = Callable[[Exception], bool]
Retried = Callable[[Work, float], Any]
"""Runs work, and again where a conflict refuses it, for so many seconds at most; the last refusal is raised."""


def until_done(work: Work, seconds: float, is_conflict: IsConflict) -> Any:
    """The loop that users of an engine without one write: try, and after a conflict wait a while and try again."""
    began = time.monotonic()
    for tries in itertools.count():
        try:
            return work()
        except Exception as error:
            pause = random.random() * min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tries, 16))
            if not is_conflict(error) or time.monotonic() + pause - began > seconds:
                raise
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def write(
    path: str,
    operations: Iterable[tuple[int, Work]],
    seconds: float,
    retried: Retried,
    is_conflict: IsConflict,
) -> list[dict[str, Any]]:
    """Do these one after the other, until so many seconds are over or all are done; the calls."""
    ends, calls, watch = time.monotonic() + seconds, [], Watch(path)
    for number, work in operations:
        if (left := ends - time.monotonic()) <= 0:
            break
        calls.append(_call(number, _Tried(watch, work, is_conflict), retried, left))
    return calls


class Watch:
    """The newest version of a table, counted on from the one that was newest before."""

    def __init__(self, path: str) -> None:
        self._log, self._known = os.path.join(path, "_delta_log"), 0

    def newest(self) -> int:
        """The newest version now."""
        while os.path.exists(os.path.join(self._log, f"{self._known + 1:020d}.json")):
            self._known += 1
        return self._known


class _Tried:
    """Work that keeps the versions between which it was refused."""

    def __init__(self, watch: Watch, work: Work, is_conflict: IsConflict) -> None:
        self._watch, self._work, self.is_conflict, self.before = watch, work, is_conflict, 0
        self.refusals: list[tuple[int, int]] = []

    def __call__(self) -> Any:
        self.before = self._watch.newest()
        try:
            return self._work()
        except Exception as error:
            if self.is_conflict(error):
                self.refusals.append((self.before, self._watch.newest()))
            raise


def _call(number: int, tried: _Tried, retried: Retried, left: float) -> dict[str, Any]:
    began, done, failed = time.monotonic(), True, ""
    try:
        retried(tried, left)
    except Exception as error:  # whatever it is, this operation was not acknowledged
        done, failed = False, "" if tried.is_conflict(error) else type(error).__name__
    facts = {"number": number, "began": began, "ended": time.monotonic()}
    return {**facts, "done": done, "failed": failed, "before": tried.before, "refusals": tried.refusals}
