"""``anabranch.retrying``: runs a function again while it fails with an error after which it may be run again.

Knows only what an error says of itself (`AnabranchError.retryable`). Guarantee: a function that may have committed is
never run again: `CommitOutcomeUnknown` always reaches the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, overload

from anabranch._transaction.retry import RetryPolicy, Runtime
from anabranch.errors import AnabranchError, CommitOutcomeUnknown, InvalidArgument

__all__ = ["retrying"]

P = ParamSpec("P")
T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
"""Bounds on the pauses, in seconds: a random share of the first, which doubles with every attempt up to the longest."""


@overload
def retrying(work: Callable[[], T], *, attempts: int = 10, seconds: float = 60.0, runtime: Runtime = ...) -> T: ...


@overload
def retrying(
    *, attempts: int = 10, seconds: float = 60.0, runtime: Runtime = ...
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...


def retrying(
    work: Callable[[], T] | None = None,
    *,
    attempts: int = 10,
    seconds: float = 60.0,
    runtime: Runtime | None = None,
) -> T | Callable[[Callable[P, T]], Callable[P, T]]:
    """Run a function, and run it again while it fails with a retryable error.

    Between attempts it waits for a random time, below a bound that doubles from 0.1 to 10 seconds. The function has to
    do everything again, reading included: pass one that reads what it writes. Each command that it has committed before
    it failed stands, so give it one command, or commands that may be done twice.

    Args:
        work: takes no arguments. Without it, a decorator for functions of any arguments is returned.
        attempts: how often it is run at most, 1 or more.
        seconds: no attempt begins later than this many seconds after the first.
        runtime: clock, chance and sleep, for tests.

    Returns:
        What the function returns.

    Raises:
        AnabranchError: the error of the last attempt; or at once one that is not ``retryable``.
        CommitOutcomeUnknown: at once, since the commit may stand.
        InvalidArgument: an argument is not as described.

    Example:
        >>> anabranch.retrying(lambda: table.update("id = 7", {"seats": "seats - 1"}), attempts=5)
        >>> @anabranch.retrying(seconds=600)
        ... def load(day): ...
    """
    _check(work, attempts, seconds)
    policy = RetryPolicy(attempts, seconds, first_pause=_FIRST_PAUSE, longest_pause=_LONGEST_PAUSE)

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def run(*args: P.args, **named: P.kwargs) -> T:
            return _run(lambda: function(*args, **named), policy, runtime or Runtime())

        return run

    return decorate if work is None else _run(work, policy, runtime or Runtime())


def _check(work: object, attempts: object, seconds: object) -> None:
    if work is not None and not callable(work):
        raise InvalidArgument(option="work", value=work, reason="it takes a function without arguments.")
    if type(attempts) is not int or attempts < 1:
        raise InvalidArgument(option="attempts", value=attempts, reason="it takes a whole number from 1 on.")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise InvalidArgument(option="seconds", value=seconds, reason="it takes a number of seconds, 0 or more.")


def _run(work: Callable[[], T], policy: RetryPolicy, runtime: Runtime) -> T:
    began = runtime.seconds()
    for attempt in range(1, policy.attempts + 1):
        try:
            return work()
        except CommitOutcomeUnknown:
            raise
        except AnabranchError as error:
            pause = policy.pause(attempt - 1, runtime)
            is_late = runtime.seconds() + pause - began > policy.seconds
            if not error.retryable or attempt == policy.attempts or is_late:
                raise
            runtime.sleep(pause)
    raise AssertionError("the last attempt returns or raises")
