"""Lets a session stand before the table, as ``append(spark, path, rows)``: code that was written so goes on.

Knows how a call is spelled, and nothing of what it does. Guarantee: a call whose first argument is a table is handed
on as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def takes_session_first(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Lets a function that names its table first be called with the session, or None, before the table."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if len(args) > 1 and not _names_table(args[0]) and _names_table(args[1]):
            return function(*args[1:], spark=args[0], **named)
        return function(*args, **named)

    return call


def _names_table(value: Any) -> bool:
    return isinstance(value, str | PathLike)
