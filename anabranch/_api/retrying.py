"""``anabranch.retrying``: runs a function again while it fails with an error after which it may be run again.

Knows only what an error says of itself (`AnabranchError.retryable`). Guarantees: a function that may have committed is
never run again: `CommitOutcomeUnknown` always reaches the caller; a function whose work goes on after its call is
refused, since its errors would come too late.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, overload

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

    The decorator needs its parentheses: ``@anabranch.retrying`` alone cannot be told from a call, so it runs the
    function at once, and its name then stands for the result.

    Args:
        work: takes no arguments, and has done its work when it returns: no ``async def``, no generator. Without it, a
            decorator for functions of any arguments is returned.
        attempts: how often it is run at most, 1 or more.
        seconds: no attempt begins later than this many seconds after the first.
        runtime: clock, chance and sleep, for tests.

    Returns:
        What the function returns.

    Raises:
        AnabranchError: the error of the last attempt; or at once one that is not ``retryable``.
        CommitOutcomeUnknown: at once, since the commit may stand.
        InvalidArgument: an argument is not as described; also after a run that returned an awaitable, which is closed.

    Example:
        >>> anabranch.retrying(lambda: table.update("id = 7", {"seats": "seats - 1"}), attempts=5)
        >>> @anabranch.retrying(seconds=600)
        ... def load(day): ...
        >>> @anabranch.retrying()  # never without the parentheses
        ... def clean(): ...
    """
    _check(attempts, seconds)
    policy = RetryPolicy(attempts, seconds, first_pause=_FIRST_PAUSE, longest_pause=_LONGEST_PAUSE)

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        _check_work(function)

        @wraps(function)
        def run(*args: P.args, **named: P.kwargs) -> T:
            return _run(lambda: function(*args, **named), policy, runtime or Runtime())

        return run

    if work is None:
        return decorate
    _check_work(work)
    return _run(work, policy, runtime or Runtime())


def _check(attempts: object, seconds: object) -> None:
    if type(attempts) is not int or attempts < 1:
        raise InvalidArgument(option="attempts", value=attempts, reason="it takes a whole number from 1 on.")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise InvalidArgument(option="seconds", value=seconds, reason="it takes a number of seconds, 0 or more.")


def _check_work(work: object) -> None:
    if not callable(work):
        raise InvalidArgument(option="work", value=work, reason="it takes a function.")
    function: Any = work
    while isinstance(function, partial):
        function = function.func
    runs_late = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_such(called) for is_such in runs_late for called in (function, type(function).__call__)):
        reason = "it would run after its call, when nothing retries it: retry a plain function inside it."
        raise InvalidArgument(option="work", value=work, reason=reason)


def _check_done(result: object, work: object) -> None:
    """Refuse an awaitable, whose work would go on after the call."""
    if not inspect.isawaitable(result):
        return
    getattr(result, "close", lambda: None)()
    reason = "it returned an awaitable, which would run when nothing retries it: retry a plain function inside it."
    raise InvalidArgument(option="work", value=work, reason=reason)


def _run(work: Callable[[], T], policy: RetryPolicy, runtime: Runtime) -> T:
    began = runtime.seconds()
    for attempt in range(1, policy.attempts + 1):
        try:
            result = work()
        except CommitOutcomeUnknown:
            raise
        except AnabranchError as error:
            pause = policy.pause(attempt - 1, runtime)
            is_late = runtime.seconds() + pause - began > policy.seconds
            if not error.retryable or attempt == policy.attempts or is_late:
                raise
            runtime.sleep(pause)
        else:
            _check_done(result, work)
            return result
    raise AssertionError("the last attempt returns or raises")
