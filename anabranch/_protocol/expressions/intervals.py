"""Intervals: constant spans of time, and the entries that move dates and timestamps by them.

Knows how Spark types an interval by its units. Guarantee: the results are the same with Spark's present two interval
types and with its former single one.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.casts import check_years, instants, local
from anabranch._protocol.expressions.datetimes import months_later
from anabranch._protocol.expressions.syntax import Interval
from anabranch._protocol.expressions.table import Argument, ArgumentsNotSupported, Datum, Fit, Function, Site
from anabranch._protocol.unsupported import Unsupported

Unit: TypeAlias = Literal["months", "days", "both", "time"]
DAY = dt.timedelta(days=1) // dt.timedelta(microseconds=1)
_MONTHS: Mapping[str, int] = {"YEAR": 12, "MONTH": 1}
_MICROS: Mapping[str, int] = {
    **{"WEEK": 7 * DAY, "DAY": DAY, "HOUR": DAY // 24, "MINUTE": 60_000_000},
    **{"SECOND": 1_000_000, "MILLISECOND": 1000, "MICROSECOND": 1},
}
_DAYS = frozenset({"WEEK", "DAY"})
_BITS: Mapping[Unit, int] = {"months": 31, "days": 63, "both": 63, "time": 63}
_AMOUNT = re.compile(r"[0-9]{1,9}|'-?[0-9]{1,9}'")
_WORDS = re.compile(r"'\s*(-?[0-9]{1,9}\s+[A-Za-z]+(?:\s+-?[0-9]{1,9}\s+[A-Za-z]+)*)\s*'")


@dataclass(frozen=True)
class Span:
    """An amount of time.

    Attributes:
        unit: ``months``; ``days``, which includes weeks; ``time`` for shorter units; ``both`` for days and time
            together.
        amount: of months, or else of microseconds.
    """

    unit: Unit
    amount: int

    @property
    def days(self) -> int:
        """The number of whole days, if the unit is not months."""
        return self.amount // DAY


def span_of(node: Interval, *, is_negative: bool = False) -> Span | None:
    """The span of an interval; None if only Spark reads it.

    Example:
        >>> span_of(parse_expression("INTERVAL 2 WEEKS"))
        Span(unit='days', amount=1209600000000)
    """
    try:
        parts = list(_parts(node))
    except ValueError:
        return None
    units, sign = {unit for _, unit in parts}, -1 if is_negative else 1
    if units <= {*_MONTHS}:
        return _span("months", [sign * amount * _MONTHS[unit] for amount, unit in parts])
    if units <= {*_MICROS}:
        unit: Unit = "days" if units <= _DAYS else "both" if units & _DAYS else "time"
        return _span(unit, [sign * amount * _MICROS[unit_name] for amount, unit_name in parts])
    return None


def _span(unit: Unit, amounts: Sequence[int]) -> Span | None:
    """The sum of the amounts; None if it overflows in Spark."""
    return Span(unit, sum(amounts)) if sum(map(abs, amounts)) >> _BITS[unit] == 0 else None


def _parts(node: Interval) -> Iterator[tuple[int, str]]:
    """The amounts of an interval with their units, in upper case and singular. Raises ValueError: only Spark reads
    them.
    """
    pieces = list(node.pieces)
    if len(pieces) == 1 and isinstance(pieces[0], str) and (words := _WORDS.fullmatch(pieces[0])):
        pieces = [part for word in words[1].split() for part in (("-", word[1:]) if word.startswith("-") else (word,))]
    while pieces:
        sign = -1 if pieces[0] == "-" else 1
        amount, unit, *pieces = pieces[1:] if sign < 0 else pieces
        if not (isinstance(amount, str) and isinstance(unit, str) and _AMOUNT.fullmatch(amount)):
            raise ValueError(amount)
        yield sign * int(amount.strip("'")), unit.upper().removesuffix("S")


# -- timestamps --------------------------------------------------------------------------------------------------------


def _fit(arguments: Sequence[Argument]) -> Fit:
    (moment,) = arguments
    if moment.type not in ("timestamp", "timestamp_ntz"):
        raise ArgumentsNotSupported(f"an interval is added to {moment.type}")
    return Fit(moment.type, (moment.type,))


def _add_interval(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    (moments,), (unit, amount) = arguments, options
    check_years(moments)
    if unit == "months":
        moved = _by_months(local(moments, site), amount)
        moved = moved if gives == "timestamp_ntz" else instants(moved, site)
    else:
        if gives == "timestamp" and site.zone is None and (unit != "time" or abs(amount) >= DAY):
            raise Unsupported("the offset of the session's time zone changes")
        moved = pc.add_checked(moments.cast(pa.int64()), pa.scalar(amount, pa.int64())).cast(moments.type)
    check_years(moved)
    return moved


def _by_months(times: Datum, months: int) -> Datum:
    """The same time of the same day of another month, or of its last day if that month is shorter."""
    days = pc.floor_temporal(times, unit="day")
    clock = pc.subtract(times.cast(pa.int64()), days.cast(pa.int64()))
    moved = months_later(days.cast(pa.date32()), pa.scalar(months, pa.int32()))
    return pc.add(moved.cast(times.type).cast(pa.int64()), clock).cast(times.type)


MOVE = Function("interval", _fit, _add_interval)
"""An entry without a name in SQL: moves a timestamp by a span, whose unit and amount are its options."""
