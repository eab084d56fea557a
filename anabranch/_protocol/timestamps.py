"""Converts timestamps as users write them to milliseconds since 1970.

Knows the texts that Spark's CAST takes as timestamps, and delta-spark's ``path@yyyyMMddHHmmssSSS``; knows no table.
Pure: takes the zone as an argument. Guarantee: a text that Spark would refuse is refused, never guessed; microseconds
are truncated, as commits have none.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from anabranch.errors import InvalidTimestamp

AT_DIGITS = 17
"""The number of digits of ``yyyyMMddHHmmssSSS``."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_DAY = r"(?P<year>[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
_SECOND = r"(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{0,9}))?(?P<zone>\s*[A-Za-z+-].*)?"
_CLOCK = rf"(?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-9]{{1,2}})(?::{_SECOND})?)?"
_TEXT = re.compile(rf"{_DAY}(?:[ T]{_CLOCK})?)?)?")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?")


def milliseconds(given: Any, zone: str) -> int:
    """Convert a user's timestamp.

    Args:
        given: text such as ``2024-01-31``, ``2024-01-31 12:30:00.000`` or ``2024-01-31T12:30:00+01:00``; a date, which
            means its start; or a datetime.
        zone: the session's time zone, such as ``Europe/Paris`` or ``+01:00``, for values without one.

    Raises:
        InvalidTimestamp: the value is no timestamp.

    Example:
        >>> milliseconds("1970-01-01 01:00:00", "UTC")
        3600000
    """
    if isinstance(given, dt.datetime):
        return _since_epoch(given, given, zone)
    if isinstance(given, dt.date):
        return _since_epoch(dt.datetime.combine(given, dt.time()), given, zone)
    if not isinstance(given, str):
        raise InvalidTimestamp(value=given, reason="it takes text, a date or a datetime.")
    return _since_epoch(_read(given, _parse_text), given, zone)


def at_milliseconds(digits: str, zone: str) -> int:
    """Convert the timestamp after the ``@`` of a path: ``yyyyMMddHHmmssSSS`` in this zone. Raises InvalidTimestamp: no
    such day or time exists.
    """
    return _since_epoch(_read(digits, _parse_digits), digits, zone)


def _parse_digits(digits: str) -> dt.datetime:
    year, month, day, hour, minute, second = (int(digits[start : start + size]) for start, size in _PACKED)
    return dt.datetime(year, month, day, hour, minute, second, int(digits[14:]) * 1000)


_PACKED = ((0, 4), (4, 2), (6, 2), (8, 2), (10, 2), (12, 2))


def _read(text: str, form: Callable[[str], dt.datetime]) -> dt.datetime:
    try:
        return form(text)
    except (ValueError, OverflowError) as error:
        raise InvalidTimestamp(value=repr(text), reason=f"{error}.") from None


def _parse_text(text: str) -> dt.datetime:
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise ValueError("its format is not one of Spark's for timestamps")
    parts = match.groupdict()
    zone, fraction = parts.pop("zone"), ((parts.pop("fraction") or "") + "000000")[:6]
    year, month, day, hour, minute, second = (int(parts[name] or low) for name, low in _LOWEST)
    moment = dt.datetime(year, month, day, hour, minute, second, int(fraction))
    return moment if zone is None else moment.replace(tzinfo=zone_of(zone.strip()))


_LOWEST = (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))


def _since_epoch(moment: dt.datetime, original: Any, zone: str) -> int:
    try:
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone_of(zone))
        return (aware - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError) as error:
        raise InvalidTimestamp(value=original, reason=f"{error}.") from None


def zone_of(name: str) -> dt.tzinfo:
    """A time zone by its Java name. Raises ValueError: the name is unknown."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return dt.UTC
    match = _OFFSET.fullmatch(name)
    if match is not None:
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        if hours > 18 or minutes > 59 or seconds > 59:
            raise ValueError(f"there is no time zone {name}")
        ahead = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return dt.timezone(ahead if match[1] == "+" else -ahead)
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # an unknown name, a folder of zones, or no name at all
        raise ValueError(f"there is no time zone {name}") from None
