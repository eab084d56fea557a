"""Casts: convert values of one type to another, as CAST and Spark's implicit casts do.

Guarantee: each value is Spark's; a value that does not fit, whether Spark raises an error or gives NULL or another
number, is left to Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.common_types import MOMENTS, MOST_DIGITS, format_type
from anabranch._protocol.expressions.epochs import SECOND, count_begun, count_preimage, moments_of
from anabranch._protocol.expressions.instants import first_start, instants_of, locals_of, midnight
from anabranch._protocol.expressions.monotonic import (
    Inverse,
    LowerBound,
    Preimage,
    UnaryCall,
    between,
    exactly,
    roughly,
)
from anabranch._protocol.expressions.rounding import units
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    Function,
    Site,
)
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, arrow_type, decimal_of, upcastable
from anabranch._protocol.unsupported import Unsupported

_DOUBLE_DIGITS, _DOUBLE_TENS = 15, 22
"""A decimal of at most so many digits survives its nearest ``double``; powers of ten up to this one are doubles."""
_INTEGER_TEXT = r"^-?(0|[1-9][0-9]{0,17})$"
_DATE_TEXT = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
_CLOCK_TEXT = _DATE_TEXT[:-1] + r"([ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?)?$"
_OFFSET_TEXT = r"(Z|[+-](0[0-9]|1[0-7]):?[0-5][0-9])$"
_NUMBER_TEXT = r"^-?[0-9]{1,100}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,2})?$"
_EXACT_DOUBLE = 1 << 53
_YEAR_1, _YEAR_9999 = dt.date(1, 1, 1), dt.date(9999, 12, 31)
_GREGORIAN = dt.date(1582, 10, 16)
"""A day after today's calendar began, in any time zone."""


def cast_fit(argument: Argument, to: DataType) -> Fit:
    """The fit of a cast. Raises ArgumentsNotSupported: only Spark computes it."""
    if argument.type == to or argument.type == VOID:
        return Fit(to, (to,))
    if not (isinstance(argument.type, str) and isinstance(to, str)) or _kernel(argument.type, to) is None:
        raise ArgumentsNotSupported(f"no cast of {format_type(argument.type)} to {format_type(to)} is computed here")
    return Fit(to, (argument.type,), (argument.type,))


def _cast(arguments: Sequence[Datum], gives: DataType, options: tuple[Any, ...], site: Site) -> Datum:
    (values,) = arguments
    if not options:
        return values
    kernel = _kernel(options[0], str(gives))
    assert kernel is not None
    return kernel(values, str(gives), site)


_Kernel = Callable[[Datum, str, Site], Datum]


def _kernel(kind: str, to: str) -> _Kernel | None:
    """The kernel that casts one type to another; None if only Spark does."""
    a, b = _family(kind), _family(to)
    return _KERNELS.get((a, b))


def _family(kind: str) -> str:
    if kind in INTEGERS:
        return "integers"
    return "decimal" if decimal_of(kind) is not None else kind


# -- numbers -----------------------------------------------------------------------------------------------------------


def _arrow_cast(values: Datum, to: str, site: Site) -> Datum:
    """Arrow's own cast, which raises if a value does not fit."""
    return values.cast(arrow_type(to))


def _integer_to_double(values: Datum, to: str, site: Site) -> Datum:
    return pc.cast(values, arrow_type(to), safe=False)


def _integer_to_decimal(values: Datum, to: str, site: Site) -> Datum:
    _, scale = decimal_of(to) or (0, 0)
    wide = values.cast(pa.decimal128(38, scale)) if scale <= 18 else None
    if wide is None:
        raise Unsupported("a whole number becomes a decimal with many digits behind the point")
    return wide.cast(arrow_type(to))


def _check_digits(values: Datum, most: int) -> None:
    """Raises Unsupported: a decimal has more digits before the point than ``most``; beyond 128 bits Arrow would give
    another number.
    """
    kind = values.type
    if kind.precision - kind.scale <= most:
        return
    is_in = pc.less(pc.abs(values), pa.scalar(Decimal(10) ** most, kind))
    if not pc.all(is_in, min_count=0).as_py():
        raise Unsupported("a decimal does not fit its type")


def _decimal_to_decimal(values: Datum, to: str, site: Site) -> Datum:
    precision, scale = decimal_of(to) or (0, 0)
    if values.type.scale <= scale:
        _check_digits(values, precision - scale)
        return values.cast(arrow_type(to))
    if values.type.precision == MOST_DIGITS:
        raise Unsupported("a decimal of 38 digits is rounded")
    wide = values.cast(pa.decimal128(MOST_DIGITS, values.type.scale))  # Arrow needs room for the next digit
    return pc.round(wide, scale, "half_towards_infinity").cast(arrow_type(to))


def _decimal_to_double(values: Datum, to: str, site: Site) -> Datum:
    """The nearest doubles, as of Java's ``BigDecimal.doubleValue``: the quotient of two exact doubles is rounded once;
    where the digits or the power of ten are no exact double, the decimal is read as a text.
    """
    scale = values.type.scale
    if scale > _DOUBLE_TENS or not _are_exact_doubles(values):
        return values.cast(pa.string()).cast(pa.float64())
    return pc.divide(unscaled_values(values).cast(pa.float64()), pa.scalar(10.0**scale))


def _are_exact_doubles(values: Any) -> bool:
    """Whether the digits of decimals, as whole numbers, are less than 2 to the power of 53."""
    low, high = _words(values)
    is_exact = (high == low >> 63) & (low > -_EXACT_DOUBLE) & (low < _EXACT_DOUBLE)
    return bool((is_exact | _mask(values)).all())


def unscaled_values(values: Any) -> Any:
    """The digits of decimals as whole numbers of at most 18 digits."""
    low, _ = _words(values)
    return pa.array(low, pa.int64(), mask=_mask(values))


def _words(values: Any) -> tuple[Any, Any]:
    """The lower and the higher 64 bits of decimals, of any value where they are NULL."""
    words = np.frombuffer(values.buffers()[1], np.int64)[values.offset * 2 : (values.offset + len(values)) * 2]
    return words[::2], words[1::2]


def _mask(values: Any) -> Any:
    return values.is_null().to_numpy(zero_copy_only=False)


def _decimal_to_integer(values: Datum, to: str, site: Site) -> Datum:
    return pc.trunc(values).cast(pa.int64()).cast(arrow_type(to))


def _double_to_integer(values: Datum, to: str, site: Site) -> Datum:
    return longs(pc.trunc(values)).cast(arrow_type(to))


def longs(whole: Datum) -> Datum:
    """Doubles without a fraction as 64-bit integers. Raises Unsupported: one is NaN, or too large."""
    is_in = pc.and_(pc.greater_equal(whole, -(2.0**63)), pc.less(whole, 2.0**63))
    if not pc.all(is_in, min_count=0).as_py():
        raise Unsupported("a number that is NaN, or too large, is cast to a whole number")
    return whole.cast(pa.int64())


def _double_to_decimal(values: Datum, to: str, site: Site) -> Datum:
    _, scale = decimal_of(to) or (0, 0)
    if scale > _DOUBLE_DIGITS or not pc.all(pc.is_finite(values), min_count=0).as_py():
        raise Unsupported(
            "a number that is NaN or infinite is cast to a decimal, or any number to a decimal of many digits"
        )
    valid_values = pc.fill_null(values, 0.0)
    signed = np.copysign(units(valid_values, scale), valid_values.to_numpy(zero_copy_only=False)).astype(np.int64)
    whole = pa.array(signed, pa.int64(), mask=values.is_null().to_numpy(zero_copy_only=False))
    wide = pc.multiply(whole.cast(pa.decimal128(19, 0)), pa.scalar(Decimal(1).scaleb(-scale), pa.decimal128(18, scale)))
    return wide.cast(arrow_type(to))


def _number_to_boolean(values: Datum, to: str, site: Site) -> Datum:
    return pc.not_equal(values, pa.scalar(0, values.type))


# -- texts -------------------------------------------------------------------------------------------------------------


def _all_match(values: Datum, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern), min_count=0).as_py())


def _text_to_integer(values: Datum, to: str, site: Site) -> Datum:
    if not _all_match(values, _INTEGER_TEXT):
        raise Unsupported("a text is not a plain whole number")
    return values.cast(pa.int64()).cast(arrow_type(to))


def _text_to_date(values: Datum, to: str, site: Site) -> Datum:
    if not _all_match(values, _DATE_TEXT):
        raise Unsupported("a text is not a plain date")
    dates = values.cast(pa.date32())  # raises for a day that does not exist
    check_years(dates)
    return dates


def _text_to_moment(values: Datum, to: str, site: Site) -> Datum:
    if to == "timestamp" and _all_match(values, _CLOCK_TEXT[:-1] + _OFFSET_TEXT):
        moments = values.cast(pa.timestamp("us", "UTC"))
        check_years(moments)
        return moments
    if not _all_match(values, _CLOCK_TEXT):
        raise Unsupported("a text is not a plain timestamp")
    moments = values.cast(pa.timestamp("us"))
    check_years(moments)
    return moments if to == "timestamp_ntz" else instants(moments, site)


def _text_to_double(values: Datum, to: str, site: Site) -> Datum:
    if not _all_match(values, _NUMBER_TEXT):
        raise Unsupported("a text is not a plain number")
    return values.cast(pa.float64())


def _text_to_decimal(values: Datum, to: str, site: Site) -> Datum:
    precision, scale = decimal_of(to) or (0, 0)
    fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
    if scale == precision or not _all_match(values, rf"^-?[0-9]{{1,{precision - scale}}}{fraction}$"):
        raise Unsupported("a text is not a plain number that fits its type")
    return values.cast(arrow_type(to))


def _moment_to_text(values: Datum, to: str, site: Site) -> Datum:
    """The local time, with as many digits behind the point as it needs."""
    _check_calendar(values)
    text = pc.strftime(local(values, site), "%Y-%m-%d %H:%M:%S")
    return pc.utf8_rtrim(pc.utf8_rtrim(text, "0"), ".")


def _boolean_to_text(values: Datum, to: str, site: Site) -> Datum:
    return pc.if_else(values, pa.scalar("true"), pa.scalar("false"))


def _decimal_to_text(values: Datum, to: str, site: Site) -> Datum:
    if values.type.scale > 6:
        raise Unsupported("a decimal of more than six digits behind the point becomes a text")
    return values.cast(pa.string())


def _date_to_text(values: Datum, to: str, site: Site) -> Datum:
    _check_calendar(values)
    return pc.strftime(values, "%Y-%m-%d")


def _check_calendar(values: Datum) -> None:
    """Raises Unsupported unless all dates, or moments, are of today's calendar, so that a setting of Spark's for older
    parsers (``spark.sql.legacy.timeParserPolicy``) spells them alike.
    """
    _check_between(values, _GREGORIAN, _YEAR_9999, "a date of an older calendar becomes a text")


def check_years(values: Datum) -> None:
    """Raises Unsupported unless all dates, or moments, are of the years 1 to 9999."""
    _check_between(values, _YEAR_1, _YEAR_9999, "a date lies outside the years 1 to 9999")


def _check_between(values: Datum, first: dt.date, last: dt.date, reason: str) -> None:
    low, high = pa.scalar(first), pa.scalar(last)
    if pa.types.is_timestamp(values.type):
        low, high = (bound.cast(pa.timestamp("us")).cast(values.type) for bound in (low, high))
    is_in = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    if not pc.all(is_in, min_count=0).as_py():
        raise Unsupported(reason)


# -- dates and moments -------------------------------------------------------------------------------------------------


def local(values: Datum, site: Site) -> Datum:
    """Timestamps as local times of the session's zone. Raises Unsupported: the zone's offset changes."""
    if values.type.tz is None:
        return values
    return _shift(values.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")), _offset(site))


def date_or_local(values: Datum, site: Site) -> Datum:
    """Dates unchanged, timestamps as local times. Raises Unsupported: a year is out of range, or the offset changes."""
    check_years(values)
    return values if pa.types.is_date(values.type) else local(values, site)


def instants(values: Datum, site: Site) -> Datum:
    """Local times as timestamps."""
    return _shift(values, -_offset(site)).cast(pa.timestamp("us", "UTC"))


def _offset(site: Site) -> int:
    if site.zone is None:
        raise Unsupported("the offset of the session's time zone changes")
    offset = site.zone.utcoffset(None)
    assert offset is not None
    return offset // dt.timedelta(microseconds=1)


def _shift(values: Datum, micros: int) -> Datum:
    if micros == 0:
        return values
    shifted = pc.add_checked(values.cast(pa.int64()), pa.scalar(micros, pa.int64())).cast(pa.timestamp("us"))
    check_years(shifted)
    return shifted


def _date_to_moment(values: Datum, to: str, site: Site) -> Datum:
    check_years(values)
    midnight = values.cast(pa.timestamp("us"))
    return midnight if to == "timestamp_ntz" else instants(midnight, site)


def _moment_to_date(values: Datum, to: str, site: Site) -> Datum:
    check_years(values)
    days = pc.floor_temporal(local(values, site), unit="day")
    return days.cast(pa.date32())


def _moment_to_moment(values: Datum, to: str, site: Site) -> Datum:
    check_years(values)
    return local(values, site) if to == "timestamp_ntz" else instants(values, site)


def _moment_to_integer(values: Datum, to: str, site: Site) -> Datum:
    return count_begun(values, SECOND).cast(arrow_type(to))


def _integer_to_moment(values: Datum, to: str, site: Site) -> Datum:
    moments = moments_of(values, SECOND)
    check_years(moments)
    return moments


_KERNELS: Mapping[tuple[str, str], _Kernel] = {
    ("integers", "integers"): _arrow_cast,
    ("integers", "double"): _integer_to_double,
    ("integers", "decimal"): _integer_to_decimal,
    ("integers", "string"): _arrow_cast,
    ("integers", "boolean"): _number_to_boolean,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("decimal", "double"): _decimal_to_double,
    ("decimal", "integers"): _decimal_to_integer,
    ("decimal", "string"): _decimal_to_text,
    ("double", "integers"): _double_to_integer,
    ("double", "decimal"): _double_to_decimal,
    ("float", "integers"): _double_to_integer,
    ("float", "double"): _arrow_cast,
    ("boolean", "integers"): _arrow_cast,
    ("boolean", "string"): _boolean_to_text,
    ("string", "integers"): _text_to_integer,
    ("string", "date"): _text_to_date,
    ("string", "double"): _text_to_double,
    ("string", "decimal"): _text_to_decimal,
    ("string", "timestamp"): _text_to_moment,
    ("string", "timestamp_ntz"): _text_to_moment,
    ("date", "string"): _date_to_text,
    ("timestamp", "string"): _moment_to_text,
    ("timestamp_ntz", "string"): _moment_to_text,
    ("date", "timestamp"): _date_to_moment,
    ("date", "timestamp_ntz"): _date_to_moment,
    ("timestamp", "date"): _moment_to_date,
    ("timestamp_ntz", "date"): _moment_to_date,
    ("timestamp", "timestamp_ntz"): _moment_to_moment,
    ("timestamp_ntz", "timestamp"): _moment_to_moment,
    ("timestamp", "integers"): _moment_to_integer,
    ("integers", "timestamp"): _integer_to_moment,
}


# -- how a bound on a cast bounds its operand --------------------------------------------------------------------------


def _keeps_order(kind: DataType, gives: DataType) -> bool:
    """Whether a cast is monotonic, and NULL only where its operand is NULL."""
    if kind in MOMENTS and (gives in MOMENTS or (kind, gives) == ("timestamp", "long")):
        return True
    return upcastable(kind, gives) or (kind in INTEGERS and gives == "double")


def _cast_preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
    match call.gives:
        case "date":
            return local_preimage(call, LowerBound(midnight(bound.value + dt.timedelta(days=bound.is_open))))
        case "timestamp_ntz":
            return local_preimage(call, bound)
        case "timestamp":
            return _instant_preimage(call, bound)
    if call.kind == "timestamp":
        return count_preimage(bound, SECOND)
    if call.kind not in INTEGERS or (call.gives == "double" and abs(bound.value) >= _EXACT_DOUBLE):
        raise ValueError(bound)
    return exactly(bound)


def local_preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
    """The dates or timestamps whose local time is within a bound."""
    if call.kind == "timestamp_ntz":
        return exactly(bound)
    if call.kind == "timestamp":
        return between(*instants_of(bound.value, call.zone), is_open=bound.is_open)
    return exactly(LowerBound(first_start("day", bound).date()))


def _instant_preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
    """The dates or timestamps whose instant is within a bound."""
    early, late = locals_of(bound.value, call.zone)
    if call.kind == "timestamp":  # by a setting, TIMESTAMP means a local time
        slack = (late - early) / 2
        return between(bound.value - slack, bound.value + slack, is_open=bound.is_open)
    if early == late:
        return local_preimage(call, LowerBound(early, bound.is_open))
    return roughly(early, late) if call.kind == "timestamp_ntz" else roughly(early.date(), late.date())


CAST_INVERSE = Inverse(_cast_preimage, fits=_keeps_order)
CAST = Function(
    "cast",
    lambda arguments: cast_fit(arguments[0], str(arguments[0].type)),
    _cast,
    inverse=CAST_INVERSE,
)
"""An entry without a name in SQL: `resolving` uses it for explicit and implicit casts."""
