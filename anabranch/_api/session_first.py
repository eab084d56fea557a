"""Accepts a session before the table, as in ``append(spark, path, rows)``, for code that was written so.

Knows how arguments are passed, and nothing of the functions. Guarantee: a call whose first argument is a table is
passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def takes_session_first(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Lets a function whose first argument is a table be called with the session, or None, before the table."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if len(args) > 1 and not _names_table(args[0]) and _names_table(args[1]):
            return function(*args[1:], spark=args[0], **named)
        return function(*args, **named)

    return call


def _names_table(value: Any) -> bool:
    return isinstance(value, str | PathLike)
