"""Dates, local times and instants, and how far one of them is certain if only another is known.

Pure arithmetic. Guarantee: the instant of a local time is never outside the returned span, whatever the zone's clock
changes; only at a fixed offset from UTC are both ends equal. Values outside the years 1 to 9999 raise `OverflowError`
or `ValueError`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

from anabranch._protocol.expressions.monotonic import LowerBound

_ANY_ZONE = dt.timedelta(hours=18)
"""The largest possible offset of a time zone from UTC (java.time.ZoneOffset)."""
_CLOCK_CHANGE = dt.timedelta(hours=2)
"""The largest step by which a clock is put back, and the largest difference between two editions of the time zone
database for one moment.
"""
_DATE_LINE = dt.timedelta(hours=26)
"""A country that moves across the date line skips a whole day."""
_UTC = dt.UTC
_FIXED = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT", "Universal"})

_CLOCK = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?)?")

Span = tuple[dt.datetime, dt.datetime]
"""The earliest and the latest possible moment."""


class _AnyZone(dt.tzinfo):
    """An unknown time zone."""

    def utcoffset(self, moment: dt.datetime | None) -> dt.timedelta:
        """An arbitrary offset."""
        return dt.timedelta(0)

    def dst(self, moment: dt.datetime | None) -> None:
        """Unknown."""

    def tzname(self, moment: dt.datetime | None) -> str:
        """The name for messages."""
        return "an unknown time zone"


ANY_ZONE = _AnyZone()


def local_time(text: str) -> dt.datetime:
    """The local time that every session reads in a text. Raises ValueError: sessions may read different ones, or
    none.
    """
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return dt.datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00:00'}.{(match[3] or '').ljust(6, '0')}")


def is_fixed(zone: dt.tzinfo | None) -> bool:
    """Whether the zone has one offset from UTC at all times."""
    return isinstance(zone, dt.timezone) or (isinstance(zone, ZoneInfo) and zone.key in _FIXED)


def instants_of(local: dt.datetime, zone: dt.tzinfo | None) -> Span:
    """The instants between which the clocks of a zone show a local time; before them they always show earlier times,
    after them later ones.
    """
    if zone is None or zone is ANY_ZONE:
        return (local - _ANY_ZONE).replace(tzinfo=_UTC), (local + _ANY_ZONE).replace(tzinfo=_UTC)
    if is_fixed(zone):
        exact = local.replace(tzinfo=zone).astimezone(_UTC)
        return exact, exact
    instants = [local.replace(tzinfo=zone, fold=fold).astimezone(_UTC) for fold in (0, 1)]
    return min(instants) - _CLOCK_CHANGE, max(instants) + _CLOCK_CHANGE


def locals_of(instant: dt.datetime, zone: dt.tzinfo | None) -> Span:
    """The local times of a zone between which an instant lies, whatever the rules of the zone."""
    if zone is None or not is_fixed(zone):
        naive = instant.astimezone(zone or _UTC).replace(tzinfo=None)
        slack = _DATE_LINE + (_ANY_ZONE if zone is None else dt.timedelta(0))
        return naive - slack, naive + slack
    exact = instant.astimezone(zone).replace(tzinfo=None)
    return exact, exact


# -- units -------------------------------------------------------------------------------------------------------------

_STEPS = {
    "week": dt.timedelta(days=7),
    "day": dt.timedelta(days=1),
    "hour": dt.timedelta(hours=1),
    "minute": dt.timedelta(minutes=1),
    "second": dt.timedelta(seconds=1),
    "millisecond": dt.timedelta(milliseconds=1),
    "microsecond": dt.timedelta(microseconds=1),
}
_FLOORS: Mapping[str, Callable[[dt.datetime], dt.datetime]] = {
    "year": lambda t: dt.datetime(t.year, 1, 1),
    "quarter": lambda t: dt.datetime(t.year, 3 * ((t.month - 1) // 3) + 1, 1),
    "month": lambda t: dt.datetime(t.year, t.month, 1),
    "week": lambda t: dt.datetime(t.year, t.month, t.day) - dt.timedelta(days=t.weekday()),
    "day": lambda t: dt.datetime(t.year, t.month, t.day),
    "hour": lambda t: t.replace(minute=0, second=0, microsecond=0),
    "minute": lambda t: t.replace(second=0, microsecond=0),
    "second": lambda t: t.replace(microsecond=0),
    "millisecond": lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000),
    "microsecond": lambda t: t,
}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def floor_to_unit(unit: str, moment: dt.datetime) -> dt.datetime:
    """The last beginning of a unit that is not after a local time."""
    return _FLOORS[unit](moment)


def after(unit: str, moment: dt.datetime) -> dt.datetime:
    """The first beginning of a unit that is after a local time.

    Example:
        >>> after("quarter", dt.datetime(2020, 11, 5))
        datetime.datetime(2021, 1, 1, 0, 0)
    """
    start = floor_to_unit(unit, moment)
    if unit in _STEPS:
        return start + _STEPS[unit]
    months = start.year * 12 + start.month - 1 + _MONTHS[unit]
    return dt.datetime(months // 12, months % 12 + 1, 1)


def first_start(unit: str, bound: LowerBound) -> dt.datetime:
    """The first beginning of a unit within a bound of local times."""
    is_start = floor_to_unit(unit, bound.value) == bound.value
    return bound.value if is_start and not bound.is_open else after(unit, bound.value)


def midnight(day: dt.date) -> dt.datetime:
    """The local time at which a day begins."""
    return dt.datetime(day.year, day.month, day.day)
