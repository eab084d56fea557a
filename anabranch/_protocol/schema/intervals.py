"""Interval types: their names, and their values as texts.

Knows the proposal "Interval Types" of the protocol (RFC #7077, ``protocol_rfcs/interval-types.md``) and the ANSI
literals of Spark's SQL. Pure. Guarantee: ``read_interval(interval_text(v, t), t) == v``; a text that is no literal of
the type is refused, never guessed.

A value of `YEAR_MONTH` is a number of months, as files store it; one of `DAY_SECOND` a ``timedelta``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

YEAR_MONTH = "interval year to month"
"""A number of months, 32 bits in files."""

DAY_SECOND = "interval day to second"
"""A number of microseconds, 64 bits in files."""

INTERVALS = (YEAR_MONTH, DAY_SECOND)
"""The names that writers use."""

_FAMILIES = {YEAR_MONTH: ("year", "month"), DAY_SECOND: ("day", "hour", "minute", "second")}
_BITS = {YEAR_MONTH: 32, DAY_SECOND: 64}
_SIZES = {"year": 12, "month": 1, "day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000}
_BELOW = {"month": 12, "hour": 24, "minute": 60, "second": 60}
_MICROSECOND = timedelta(microseconds=1)
_SECOND = r"(\d+)(?:\.(\d{1,6}))?"


def _spellings() -> dict[str, str]:
    """The canonical name of each name that a schema may have."""
    return {
        f"interval {first}" if first == last else f"interval {first} to {last}": name
        for name, fields in _FAMILIES.items()
        for i, first in enumerate(fields)
        for last in fields[i:]
    }


_CANONICAL = _spellings()


def canonical_type(name: str) -> str:
    """The name that writers use for a type; names of other types are returned as they are.

    Source: RFC #7077, "Type Definitions": readers accept narrowed spellings, which change only how values are shown.

    Example:
        >>> canonical_type("interval day to minute"), canonical_type("long")
        ('interval day to second', 'long')
    """
    return _CANONICAL.get(name, name)


def read_interval(text: str, data_type: str) -> int | timedelta:
    """The value of an ANSI literal, in any spelling of the type.

    Raises:
        ValueError: it is no literal of this type, or its value does not fit the type.

    Example:
        >>> read_interval("INTERVAL '-1-6' YEAR TO MONTH", YEAR_MONTH)
        -18
    """
    for name, pattern, fields in _LITERALS:
        match = pattern.fullmatch(text.strip()) if name == data_type else None
        if match is not None:
            amount = _amount(fields, match.groups()[2:]) * (-1 if (match[1] == "-") != (match[2] == "-") else 1)
            return _fit_bits(text, amount, data_type)
    raise ValueError(f"{text!r} is not an {data_type}")


def _amount(fields: Sequence[str], parts: Sequence[str | None]) -> int:
    """The months, or the microseconds, of the fields of a literal."""
    amount = 0
    for position, (field, part) in enumerate(zip(fields, parts, strict=False)):
        number = int(part or 0)
        if position and number >= _BELOW[field]:
            raise ValueError(f"{number} is no {field} of an interval")
        amount += number * _SIZES.get(field, 1_000_000)
    return amount + (int((parts[-1] or "").ljust(6, "0")) if fields[-1] == "second" else 0)


def _fit_bits(text: str, amount: int, data_type: str) -> int | timedelta:
    most = 1 << (_BITS[data_type] - 1)
    if not -most <= amount < most:
        raise ValueError(f"{text} does not fit {_BITS[data_type]} bits")
    return amount if data_type == YEAR_MONTH else amount * _MICROSECOND


def interval_text(value: int | timedelta, data_type: str) -> str:
    """The ANSI literal of a value, as Spark spells it.

    Example:
        >>> interval_text(-18, YEAR_MONTH)
        "INTERVAL '-1-6' YEAR TO MONTH"
    """
    amount = value if isinstance(value, int) else value // _MICROSECOND
    sign, amount = "-" if amount < 0 else "", abs(amount)
    if data_type == YEAR_MONTH:
        return f"INTERVAL '{sign}{amount // 12}-{amount % 12}' YEAR TO MONTH"
    seconds, fraction = divmod(amount, 1_000_000)
    days, clock = divmod(seconds, 86_400)
    digits = f".{fraction:06}".rstrip("0") if fraction else ""
    spelled = f"{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}{digits}"
    return f"INTERVAL '{sign}{days} {spelled}' DAY TO SECOND"


def _literal_pattern(fields: Sequence[str]) -> re.Pattern[str]:
    parts = [_SECOND if field == "second" else r"(\d+)" for field in fields]
    value = parts[0]
    for before, part in zip(fields, parts[1:], strict=False):
        value += {"year": "-", "day": " "}.get(before, ":") + part
    last = "" if len(fields) == 1 else rf"\s+TO\s+{fields[-1]}"
    return re.compile(rf"INTERVAL\s+([+-]?)\s*'\s*([+-]?){value}\s*'\s+{fields[0]}{last}", re.IGNORECASE)


_LITERALS = [
    (name, _literal_pattern(fields[i:j]), fields[i:j])
    for name, fields in _FAMILIES.items()
    for i in range(len(fields))
    for j in range(i + 1, len(fields) + 1)
]
