"""Entries for dates and timestamps, of the years 1 to 9999.

Timestamps are read in the session's time zone if its offset never changes; else they are left to Spark, because the
instant of a local time depends on the edition of the time zone database.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.casts import (
    check_years,
    date_or_local,
    instants,
    local,
    local_preimage,
    longs,
)
from anabranch._protocol.expressions.epochs import (
    EPOCH,
    MICROSECOND,
    MILLISECOND,
    SECOND,
    count_begun,
    count_preimage,
    count_whole,
    moments_of,
)
from anabranch._protocol.expressions.instants import after, first_start, instants_of, locals_of, midnight
from anabranch._protocol.expressions.monotonic import Inverse, LowerBound, Preimage, UnaryCall, between, exactly
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    Site,
    add,
    as_arrays,
    function,
    of_values,
)
from anabranch._protocol.schema.types import INTEGERS, VOID
from anabranch._protocol.unsupported import Unsupported

_CLOCKS = ("timestamp", "timestamp_ntz")
_MOMENTS = ("date", *_CLOCKS)


def _part_fit(kinds: Sequence[str], gives: str = "integer") -> Callable[[Sequence[Argument]], Fit]:
    def fit(arguments: Sequence[Argument]) -> Fit:
        if len(arguments) != 1 or arguments[0].type not in kinds:
            raise ArgumentsNotSupported(f"it is computed here for one {' or '.join(kinds)}")
        return Fit(gives, (str(arguments[0].type),))

    return fit


def _part(
    names: str, compute: Callable[[Datum], Datum], kinds: Sequence[str] = _MOMENTS, inverse: Inverse | None = None
) -> None:
    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        return compute(date_or_local(arguments[0], site)).cast(pa.int32())

    add(names, _part_fit(kinds), kernel, inverse=inverse)


def _year_preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
    return local_preimage(call, LowerBound(dt.datetime(bound.value + bound.is_open, 1, 1)))


_part("year", pc.year, inverse=Inverse(_year_preimage))
_part("quarter", pc.quarter)
_part("month", pc.month)
_part("day, dayofmonth", pc.day)
_part("dayofyear", pc.day_of_year)
_part("dayofweek", lambda values: pc.day_of_week(values, count_from_zero=False, week_start=7))
_part("weekday", lambda values: pc.day_of_week(values, count_from_zero=True, week_start=1))
_part("weekofyear", pc.iso_week)
_part("hour", pc.hour, _CLOCKS)
_part("minute", pc.minute, _CLOCKS)
_part("second", pc.second, _CLOCKS)


# -- days --------------------------------------------------------------------------------------------------------------


def _shift_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2 or arguments[0].type != "date" or arguments[1].type not in (*INTEGERS[:3], VOID):
        raise ArgumentsNotSupported("the arguments must be a date and a whole number")
    return Fit("date", ("date", "integer"))


def _shifting(compute: Callable[[Datum, Datum], Datum]) -> Callable[..., Datum]:
    def shift(days: Datum, count: Datum) -> Datum:
        shifted = compute(_to_day_numbers(days), count.cast(pa.int32())).cast(pa.int32()).cast(pa.date32())
        check_years(shifted)
        return shifted

    return of_values(shift)


def _to_day_numbers(days: Datum) -> Datum:
    """Dates as numbers of days."""
    return days.cast(pa.int32())


def _shift_inverse(sign: int) -> Inverse:
    def preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
        return exactly(LowerBound(bound.value - sign * dt.timedelta(days=call.constants[1]), bound.is_open))

    return Inverse(preimage, fits=lambda kind, gives: kind == "date", domain=lambda call: (dt.date.min, dt.date.max))


add("date_add, dateadd", _shift_fit, _shifting(pc.add_checked), inverse=_shift_inverse(1))
add("date_sub", _shift_fit, _shifting(pc.subtract_checked), inverse=_shift_inverse(-1))


@function("datediff, date_diff", "date date", gives="integer")
def _difference(end: Datum, start: Datum) -> Datum:
    return pc.subtract_checked(_to_day_numbers(end), _to_day_numbers(start))


def months_later(days: Datum, months: Datum) -> Datum:
    """The same day of another month, or its last day if that month is shorter."""
    month_number = pc.add_checked(pc.multiply(pc.year(days), 12), pc.add(pc.month(days), pa.scalar(-1, pa.int64())))
    number = pc.add_checked(month_number, months.cast(pa.int64()))
    first, after = _first_of(number), _first_of(pc.add(number, 1))
    length = pc.subtract(_to_day_numbers(after), _to_day_numbers(first))
    day = pc.min_element_wise(pc.day(days).cast(pa.int32()), length, skip_nulls=False)
    return pc.add(_to_day_numbers(first), pc.subtract(day, pa.scalar(1, pa.int32()))).cast(pa.date32())


def _first_of(number: Datum) -> Datum:
    """The first day of a month, numbered from the year 0."""
    is_out = pc.or_(pc.less(number, 12), pc.greater(number, 12 * 10_000))
    if pc.any(is_out, min_count=0).as_py():
        raise Unsupported("a date lies outside the years 1 to 9999")
    mask = number.is_null().to_numpy(zero_copy_only=False)
    months = pc.fill_null(number, 12 * 1970).to_numpy(zero_copy_only=False) - 12 * 1970
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int32)
    return pa.array(days, pa.int32(), mask=mask).cast(pa.date32())


def _add_months(days: Datum, months: Datum) -> Datum:
    days, months = as_arrays(days, months)
    check_years(days)
    results = months_later(days, months)
    check_years(results)
    return results


add("add_months", _shift_fit, of_values(_add_months))


@function("last_day", "date", gives="date")
def _last_day(days: Datum) -> Datum:
    check_years(days)
    number = pc.add(pc.multiply(pc.year(days), 12), pc.month(days))
    return pc.subtract(_to_day_numbers(_first_of(number)), pa.scalar(1, pa.int32())).cast(pa.date32())


# -- counts since the epoch --------------------------------------------------------------------------------------------


def _add_count(name: str, unit: int) -> None:
    """Add the entry that counts units from the epoch to a timestamp."""
    inverse = Inverse(lambda call, bound: count_preimage(bound, unit), fits=lambda kind, gives: kind == "timestamp")
    add(name, _part_fit(("timestamp",), "long"), of_values(lambda moments: count_begun(moments, unit)), inverse=inverse)


_add_count("unix_seconds", SECOND)
_add_count("unix_millis", MILLISECOND)
_add_count("unix_micros", MICROSECOND)
add(
    "unix_timestamp, to_unix_timestamp",
    _part_fit(("timestamp",), "long"),
    of_values(lambda moments: count_whole(moments, SECOND)),
)


def _add_moments(name: str, unit: int, kinds: Sequence[str] = INTEGERS) -> None:
    """Add the entry whose value is the timestamp so many units after the epoch."""

    def compute(counts: Datum) -> Datum:
        if pa.types.is_floating(counts.type):
            moments = moments_of(longs(pc.trunc(pc.multiply(counts, float(unit)))), MICROSECOND)
        else:
            moments = moments_of(counts, unit)
        check_years(moments)
        return moments

    add(name, _part_fit(kinds, "timestamp"), of_values(compute))


_add_moments("timestamp_seconds", SECOND, (*INTEGERS, "double"))
_add_moments("timestamp_millis", MILLISECOND)
_add_moments("timestamp_micros", MICROSECOND)


def _day_preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
    return exactly(LowerBound(EPOCH.date() + dt.timedelta(days=bound.value), bound.is_open))


def _day_of(number: Datum) -> Datum:
    days = number.cast(pa.int32()).cast(pa.date32())
    check_years(days)
    return days


add("unix_date", _part_fit(("date",)), of_values(_to_day_numbers), inverse=Inverse(_day_preimage))
add("date_from_unix_date", _part_fit(INTEGERS[:3], "date"), of_values(_day_of))


# -- units -------------------------------------------------------------------------------------------------------------

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    **dict.fromkeys(("DAY", "DD"), "day"),
    **{name: name.lower() for name in ("QUARTER", "WEEK", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}
"""The names of units in ``date_trunc`` and ``trunc``."""


def _unit(argument: Argument, units: Sequence[str]) -> str:
    unit = None if argument.constant is None else _UNITS.get(str(argument.constant[0]).upper())
    if unit not in units:
        raise ArgumentsNotSupported("the unit must be constant")
    return str(unit)


def _trunc_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2 or arguments[0].type != "date":
        raise ArgumentsNotSupported("the arguments must be a date and a unit")
    return Fit("date", ("date",), (_unit(arguments[1], ("year", "quarter", "month", "week")),))


def _date_trunc_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 2 or arguments[1].type != "timestamp":
        raise ArgumentsNotSupported("the arguments must be a unit and a timestamp")
    return Fit("timestamp", ("string", "timestamp"), (_unit(arguments[0], tuple(_UNITS.values())),))


def _floor_to_unit(values: Datum, unit: str) -> Datum:
    return pc.floor_temporal(values.cast(pa.timestamp("us")), unit=unit, week_starts_monday=True)


def _trunc(days: Datum, unit: str) -> Datum:
    check_years(days)
    results = _floor_to_unit(days, unit).cast(pa.date32())
    check_years(results)
    return results


def _date_trunc(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    _, moments = arguments
    check_years(moments)
    results = instants(_floor_to_unit(local(moments, site), options[0]), site)
    check_years(results)
    return results


def _trunc_preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
    first = first_start(call.options[0], LowerBound(midnight(bound.value), bound.is_open))
    return exactly(LowerBound(first.date()))


def _date_trunc_preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
    """The instants whose unit begins within a bound."""
    unit, (early, late) = call.options[0], locals_of(bound.value, call.zone)
    if early == late:
        return between(*instants_of(first_start(unit, LowerBound(early, bound.is_open)), call.zone))
    slack = (late - early) / 2
    return between(bound.value - slack, instants_of(after(unit, late), call.zone)[1] + slack)


add("trunc", _trunc_fit, of_values(_trunc), inverse=Inverse(_trunc_preimage))
add("date_trunc", _date_trunc_fit, _date_trunc, inverse=Inverse(_date_trunc_preimage))
