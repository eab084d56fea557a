"""How often and how long a transaction tries, how it waits, and by which clock, chance and ids it runs.

Time and chance are arguments here, so that a simulator can own them. Pure but for what is passed in.
"""

from __future__ import annotations

import getpass
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

APPEND_ATTEMPTS = 10_000
"""Puts that a blind append makes before it gives up; each lost one means that another writer got through."""

APPEND_ATTEMPTS_AT_LEAST = 1_000
"""Puts that a blind append makes before the time that it took may stop it."""

CHANGE_ATTEMPTS = 1_000
"""Puts that a transaction with reads makes before it gives up."""

SECONDS = 3_600.0
"""How long it goes on in all."""

UNKNOWN_SECONDS = 120.0
"""How long a put whose reply was lost is asked after."""

FIRST_PAUSE_IN_PUTS = 0.4
"""The bound on the first pause, in times that a lost put took."""

LONGEST_PAUSE_IN_PUTS = 6.0
"""The bound on the longest pause, in times that a lost put took."""


def _user() -> str | None:
    """The operating system's name of the user, if it has one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return None


@dataclass(frozen=True)
class Runtime:
    """Clock, sleep, dice and names of a transaction."""

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

        Both ends of the bound grow with what the lost put ``took``: where a store answers slowly, a pause that suits a
        disk would spread nobody, and many writers would send it more requests than it takes. Not with what a whole try
        takes: who has done much work on the winners' rows would only find more of them.
        """
        first = max(self.first_pause, took * FIRST_PAUSE_IN_PUTS)
        longest = max(self.longest_pause, took * LONGEST_PAUSE_IN_PUTS)
        return min(longest, first * 2.0 ** min(attempt, 16)) * runtime.random()


def default_retry(*, blind: bool) -> RetryPolicy:
    """The default bounds of a blind append, or of any other transaction."""
    return RetryPolicy(attempts=APPEND_ATTEMPTS if blind else CHANGE_ATTEMPTS)
