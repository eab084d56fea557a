"""The bounds and pauses of a transaction's attempts, and the clock, random numbers and ids that it uses.

Time and chance are arguments here, so that a simulator can control them. Pure but for these arguments.
"""

from __future__ import annotations

import getpass
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

APPEND_ATTEMPTS = 10_000
"""Maximum number of puts of a blind append; each lost one means that another writer succeeded."""

APPEND_ATTEMPTS_AT_LEAST = 1_000
"""Number of puts of a blind append before its time limit applies."""

CHANGE_ATTEMPTS = 1_000
"""Maximum number of puts of a transaction with reads."""

SECONDS = 3_600.0
"""Time limit of a commit, in seconds."""

UNKNOWN_SECONDS = 120.0
"""Time limit of a put whose reply was lost, in seconds."""

FIRST_PAUSE_IN_PUTS = 0.4
"""Bound on the first pause, as a multiple of a lost put's duration."""

LONGEST_PAUSE_IN_PUTS = 6.0
"""Bound on the longest pause, as a multiple of a lost put's duration."""


def _user() -> str | None:
    """The operating system's name of the user, if it has one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return None


@dataclass(frozen=True)
class Runtime:
    """Clock, sleep, random numbers, ids and user of a transaction."""

    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)
    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    new_id: Callable[[], uuid.UUID] = uuid.uuid4
    user: Callable[[], str | None] = _user


@dataclass(frozen=True)
class RetryPolicy:
    """Bounds on a commit: ``attempts`` puts, ``seconds`` in all, ``unknown_seconds`` on one put without an answer."""

    attempts: int
    seconds: float = SECONDS
    unknown_seconds: float = UNKNOWN_SECONDS
    first_pause: float = 0.001
    longest_pause: float = 0.050

    def pause(self, attempt: int, runtime: Runtime, took: float = 0.0) -> float:
        """Seconds to wait after a lost put: full jitter under a doubling, capped bound.

        Both ends of the bound grow with the lost put's duration ``took``: where a store answers slowly, a pause that
        suits a disk would not spread the writers, and many of them would overload it. They do not grow with the
        duration of a whole attempt: a writer that works long on the winners' rows would only find more of them.
        """
        first = max(self.first_pause, took * FIRST_PAUSE_IN_PUTS)
        longest = max(self.longest_pause, took * LONGEST_PAUSE_IN_PUTS)
        return min(longest, first * 2.0 ** min(attempt, 16)) * runtime.random()


def default_retry(*, blind: bool) -> RetryPolicy:
    """The default bounds of a blind append, or of any other transaction."""
    return RetryPolicy(attempts=APPEND_ATTEMPTS if blind else CHANGE_ATTEMPTS)
