"""Arguments as the builders take them, checked."""

from __future__ import annotations

from typing import Any

from anabranch.errors import InvalidArgument


def flat(columns: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of columns, given one by one or as one list.

    Raises:
        InvalidArgument: one is no name.
    """
    found = tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
    return tuple(text("cols", each) for each in found)


def text(argument: str, value: Any) -> str:
    """An argument that has to be text.

    Raises:
        InvalidArgument: it is something else.
    """
    if not isinstance(value, str):
        raise InvalidArgument(option=argument, value=value, reason="it takes text.")
    return value
