"""Intervals: constant spans of time, and the entries that move timestamps by them and count them between two.

Knows how Spark types an interval by its units, and which units stand in calls such as ``DATEADD(DAY, 1, x)``.
Guarantee: the results are the same with Spark's present two interval types and with its former single one.
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
from anabranch._protocol.expressions.common_types import WIDTHS
from anabranch._protocol.expressions.datetimes import months_later
from anabranch._protocol.expressions.syntax import Interval
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    Function,
    Site,
    as_arrays,
)
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType
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


# -- calls with a unit -------------------------------------------------------------------------------------------------

_UNIT_SPANS: Mapping[str, Span] = {
    **{name: Span("months", count) for name, count in (*_MONTHS.items(), ("QUARTER", 3))},
    **{name: Span("days" if name in _DAYS else "time", micros) for name, micros in _MICROS.items()},
    "DAYOFYEAR": Span("days", DAY),
}
"""The units of ``DATEADD``; those of ``DATEDIFF`` are the same without DAYOFYEAR."""
_CAST_TO: Mapping[DataType | None, str] = {
    **dict.fromkeys(("date", "timestamp", "string", VOID), "timestamp"),
    "timestamp_ntz": "timestamp_ntz",
}
"""The type that a moved value is cast to, whatever TIMESTAMP means in the session."""


def _unit_span(unit: Argument, *excluded: str) -> Span:
    name = "" if unit.constant is None else str(unit.constant[0])
    if name not in _UNIT_SPANS or name in excluded:
        raise ArgumentsNotSupported(f"{name} is no unit of it")
    return _UNIT_SPANS[name]


def _cast_type(moment: Argument) -> str:
    if moment.type not in _CAST_TO:
        raise ArgumentsNotSupported("it is computed here for dates, timestamps and texts")
    return _CAST_TO[moment.type]


def _move_fit(arguments: Sequence[Argument]) -> Fit:
    """The fit for a moment, a count and a unit; a constant count becomes part of the span."""
    moment, count, unit = arguments
    gives, span = _cast_type(moment), _unit_span(unit)
    if count.type not in (*INTEGERS, VOID):
        raise ArgumentsNotSupported("the number of units must be a whole number")
    value = None if count.constant is None else count.constant[0]
    if value is None or abs(value) >> WIDTHS["integer"]:  # earlier versions of Spark take counts of 32 bits
        return Fit(gives, (gives, "integer"), (span.unit, span.amount))
    return Fit(gives, (gives,), (span.unit, span.amount * value))


def _move(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    (moments, *counts), (unit, amount) = arguments, options
    amounts = pa.scalar(amount, pa.int64())
    if counts:
        moments, amounts = as_arrays(moments, pc.multiply_checked(counts[0].cast(pa.int64()), amounts))
    check_years(moments)
    if unit == "months":
        moved = _by_months(local(moments, site), amounts)
        moved = moved if gives == "timestamp_ntz" else instants(moved, site)
    else:
        if gives == "timestamp" and site.zone is None and (unit != "time" or not _are_shorter_than_a_day(amounts)):
            raise Unsupported("the offset of the session's time zone changes")
        moved = pc.add_checked(moments.cast(pa.int64()), amounts).cast(moments.type)
    check_years(moved)
    return moved


def _are_shorter_than_a_day(micros: Datum) -> bool:
    is_short = pc.and_(pc.less(micros, DAY), pc.greater(micros, -DAY))
    return bool(pc.all(is_short, min_count=0).as_py())


def _by_months(times: Datum, months: Datum) -> Datum:
    """The same time of the same day of another month, or of its last day if that month is shorter."""
    days, clock = _days_and_clock(times)
    moved = months_later(days, months)
    return pc.add(moved.cast(times.type).cast(pa.int64()), clock).cast(times.type)


def _days_and_clock(times: Datum) -> tuple[Datum, Datum]:
    """The days of local times, and the microseconds since the beginning of each day."""
    days = pc.floor_temporal(times, unit="day")
    return days.cast(pa.date32()), pc.subtract(times.cast(pa.int64()), days.cast(pa.int64()))


MOVE = Function("interval", _move_fit, _move)
"""An entry without a name in SQL: moves a timestamp by a span, whose unit and amount are its options, or as often by it
as a second argument says.
"""


# -- differences -------------------------------------------------------------------------------------------------------


def _difference_fit(arguments: Sequence[Argument]) -> Fit:
    """The fit for a start, an end and a unit: Spark casts both to an instant, also two local times."""
    *moments, unit = arguments
    span = _unit_span(unit, "DAYOFYEAR")
    for moment in moments:
        _cast_type(moment)
    return Fit("long", ("timestamp", "timestamp"), (span.unit, span.amount))


def _difference(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    """The number of whole units between two local times, without what is left over."""
    start, end = as_arrays(*arguments)
    check_years(start)
    check_years(end)
    start, end = local(start, site), local(end, site)
    unit, amount = options
    if unit == "months":
        return pc.divide(_whole_months(start, end), pa.scalar(amount, pa.int64()))
    between = pc.subtract_checked(end.cast(pa.int64()), start.cast(pa.int64()))
    return pc.divide(between, pa.scalar(amount, pa.int64()))


def _whole_months(start: Datum, end: Datum) -> Datum:
    """The number of whole months between two local times, as ``java.time.LocalDateTime.until`` counts them: a last day
    that is not full is left out before months are counted by the days' numbers.
    """
    (first, first_clock), (last, last_clock) = _days_and_clock(start), _days_and_clock(end)
    is_early = pc.and_(pc.greater(last, first), pc.less(last_clock, first_clock))
    is_late = pc.and_(pc.less(last, first), pc.greater(last_clock, first_clock))
    step = pc.subtract(is_late.cast(pa.int32()), is_early.cast(pa.int32()))
    full = pc.add(last.cast(pa.int32()), step).cast(pa.date32())
    return pc.divide(pc.subtract(_pack_day(full), _pack_day(first)), pa.scalar(32, pa.int64()))


def _pack_day(days: Datum) -> Datum:
    """A number that orders days, in which each month takes 32."""
    months = pc.add(pc.multiply(pc.year(days), pa.scalar(12, pa.int64())), pc.month(days))
    return pc.add(pc.multiply(months, pa.scalar(32, pa.int64())), pc.day(days))


DIFFERENCE = Function("difference", _difference_fit, _difference)
"""An entry without a name in SQL: counts the whole units between two timestamps, whose span is its options."""
