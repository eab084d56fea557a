"""Entries for dates and moments, of the years 1 to 9999.

Moments are read in the session's time zone, if its clocks never change; else they are left to Spark, since which
instant a local time is depends on the edition of the zone's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.protocol.expressions.casts import check_years, instants, local
from anabranch.protocol.expressions.table import Datum, Fit, Given, LeftToSpark, Site, Unfit, add, check_type
from anabranch.protocol.schema.types import INTEGERS, VOID

_MOMENTS = ("date", "timestamp", "timestamp_ntz")


def _moment_fit(gives: str) -> Callable[[Sequence[Given]], Fit]:
    def fit(given: Sequence[Given]) -> Fit:
        if len(given) != 1 or given[0].type not in _MOMENTS:
            raise Unfit("it is computed here for one date or timestamp")
        return Fit(gives, (str(given[0].type),))

    return fit


def _days(values: Datum, site: Site) -> Datum:
    """Dates as they are, moments as local times."""
    check_years(values)
    return values if pa.types.is_date(values.type) else local(values, site)


def _part(names: str, compute: Callable[[Datum], Datum]) -> None:
    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        return compute(_days(arguments[0], site)).cast(pa.int32())

    add(names, _moment_fit("integer"), kernel)


_part("year", pc.year)
_part("quarter", pc.quarter)
_part("month", pc.month)
_part("day, dayofmonth", pc.day)
_part("dayofyear", pc.day_of_year)
_part("dayofweek", lambda values: pc.day_of_week(values, count_from_zero=False, week_start=7))
_part("weekday", lambda values: pc.day_of_week(values, count_from_zero=True, week_start=1))
_part("weekofyear", pc.iso_week)


def _clock_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 1 or given[0].type not in ("timestamp", "timestamp_ntz"):
        raise Unfit("it is computed here for one timestamp")
    return Fit("integer", (str(given[0].type),))


def _clock_part(name: str, compute: Callable[[Datum], Datum]) -> None:
    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        return compute(_days(arguments[0], site)).cast(pa.int32())

    add(name, _clock_fit, kernel)


_clock_part("hour", pc.hour)
_clock_part("minute", pc.minute)
_clock_part("second", pc.second)


# -- days --------------------------------------------------------------------------------------------------------------


def _shift_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2 or given[0].type != "date" or given[1].type not in (*INTEGERS[:3], VOID):
        raise Unfit("it is computed here for a date and a whole number")
    return Fit("date", ("date", "integer"))


def _shifting(compute: Callable[[Datum, Datum], Datum]) -> Callable[..., Datum]:
    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        days, count = arguments
        found = compute(_numbered(days), count.cast(pa.int32())).cast(pa.int32()).cast(pa.date32())
        check_years(found)
        return found

    return kernel


def _numbered(days: Datum) -> Datum:
    """Dates as numbers of days."""
    return days.cast(pa.int32())


add("date_add, dateadd", _shift_fit, _shifting(pc.add_checked))
add("date_sub", _shift_fit, _shifting(pc.subtract_checked))


def _difference_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2:
        raise Unfit("it takes two arguments")
    for each in given:
        check_type(each, "date")
    return Fit("integer", ("date", "date"))


def _difference(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    return pc.subtract_checked(*map(_numbered, arguments))


add("datediff, date_diff", _difference_fit, _difference)


def _months_later(days: Datum, months: Datum) -> Datum:
    """The same day of another month, or its last one where it is shorter."""
    at = pc.add_checked(pc.multiply(pc.year(days), 12), pc.add(pc.month(days), pa.scalar(-1, pa.int64())))
    number = pc.add_checked(at, months.cast(pa.int64()))
    first, after = _first_of(number), _first_of(pc.add(number, 1))
    length = pc.subtract(_numbered(after), _numbered(first))
    day = pc.min_element_wise(pc.day(days).cast(pa.int32()), length, skip_nulls=False)
    return pc.add(_numbered(first), pc.subtract(day, pa.scalar(1, pa.int32()))).cast(pa.date32())


def _first_of(number: Datum) -> Datum:
    """The first day of the month of a number that counts from the year 0."""
    is_out = pc.or_(pc.less(number, 12), pc.greater(number, 12 * 10_000))
    if pc.any(is_out, min_count=0).as_py():
        raise LeftToSpark("a date lies outside the years 1 to 9999")
    mask = number.is_null().to_numpy(zero_copy_only=False)
    months = pc.fill_null(number, 12 * 1970).to_numpy(zero_copy_only=False) - 12 * 1970
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int32)
    return pa.array(days, pa.int32(), mask=mask).cast(pa.date32())


def _add_months(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    days, months = arguments
    if isinstance(days, pa.Scalar):
        days = pa.repeat(days, len(months))
    check_years(days)
    found = _months_later(days, months)
    check_years(found)
    return found


add("add_months", _shift_fit, _add_months)


def _last_day_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 1 or given[0].type != "date":
        raise Unfit("it is computed here for one date")
    return Fit("date", ("date",))


def _last_day(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    (days,) = arguments
    check_years(days)
    number = pc.add(pc.multiply(pc.year(days), 12), pc.month(days))
    return pc.subtract(_numbered(_first_of(number)), pa.scalar(1, pa.int32())).cast(pa.date32())


add("last_day", _last_day_fit, _last_day)


# -- units -------------------------------------------------------------------------------------------------------------

_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    **dict.fromkeys(("DAY", "DD"), "day"),
    **{name: name.lower() for name in ("QUARTER", "WEEK", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}


def _unit(given: Given, units: Sequence[str]) -> str:
    found = None if given.constant is None else _UNITS.get(str(given.constant[0]).upper())
    if found not in units:
        raise Unfit("only with a constant unit is it computed here")
    return str(found)


def _trunc_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2 or given[0].type != "date":
        raise Unfit("it is computed here for a date and a unit")
    return Fit("date", ("date",), (_unit(given[1], ("year", "quarter", "month", "week")),))


def _date_trunc_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 2 or given[1].type != "timestamp":
        raise Unfit("it is computed here for a unit and a timestamp")
    return Fit("timestamp", ("timestamp",), (_unit(given[0], tuple(_UNITS.values())),))


def _floored(values: Datum, unit: str) -> Datum:
    return pc.floor_temporal(values.cast(pa.timestamp("us")), unit=unit, week_starts_monday=True)


def _trunc(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    days = arguments[0]
    check_years(days)
    found = _floored(days, options[0]).cast(pa.date32())
    check_years(found)
    return found


def _date_trunc(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    moments = arguments[0]
    check_years(moments)
    found = instants(_floored(local(moments, site), options[0]), site)
    check_years(found)
    return found


add("trunc", _trunc_fit, _trunc)
add("date_trunc", _date_trunc_fit, _date_trunc)
