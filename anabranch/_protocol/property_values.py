"""The texts that table properties take, as values. Pure; each parser raises ValueError with what it takes."""

from __future__ import annotations

import re
from collections.abc import Callable

from anabranch._protocol.sizes import size_of

_DAY_MS = 86_400_000
_UNITS_MS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": _DAY_MS, "week": 7 * _DAY_MS}


def boolean(text: str) -> bool:
    """True or false. Raises ValueError: neither."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("it takes true or false")
    return text.strip().lower() == "true"


def positive(text: str) -> int:
    """A whole number from 1. Raises ValueError unless it is one."""
    value = int(text)
    if value < 1:
        raise ValueError("it takes a whole number from 1")
    return value


def natural(text: str) -> int:
    """A whole number from 0. Raises ValueError unless it is one."""
    value = int(text)
    if value < 0:
        raise ValueError("it takes a whole number from 0")
    return value


def count_or_all(text: str) -> int:
    """A whole number from 0, or -1. Raises ValueError unless it is one."""
    value = int(text)
    if value < -1:
        raise ValueError("it takes a whole number from 0, or -1 for all columns")
    return value


def choice(*values: str) -> Callable[[str], str]:
    """A parser of one of these values, in any case. It raises ValueError for others."""

    def parse(text: str) -> str:
        for value in values:
            if value.lower() == text.strip().lower():
                return value
        raise ValueError("it takes " + " or ".join(values))

    return parse


def interval_ms(text: str) -> int:
    """Parse an interval such as ``interval 30 days`` or ``interval 1 week 2 hours`` to milliseconds. Raises ValueError:
    not such an interval.
    """
    words = text.lower().split()
    words = words[1:] if words[:1] == ["interval"] else words
    numbers, units = words[::2], [word.removesuffix("s") for word in words[1::2]]
    numeric = all(re.fullmatch("[0-9]+", number) for number in numbers)
    if not words or len(numbers) != len(units) or not numeric or not set(units) <= _UNITS_MS.keys():
        raise ValueError("it takes an interval such as 'interval 30 days'")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in zip(numbers, units, strict=True))


def interval_or_none(text: str) -> int | None:
    """An interval in milliseconds; None for an empty text. Raises ValueError: not such an interval."""
    return interval_ms(text) if text else None


def size_or_none(text: str) -> int | None:
    """A size in bytes; None for an empty text. Raises ValueError: not a size."""
    return size_of(text) if text else None
