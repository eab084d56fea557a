"""Entries for numbers: arithmetic, signs, rounding.

By setting, an overflow and a division by zero are errors, or give NULL or another number, so both are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.casts import longs
from anabranch._protocol.expressions.common_types import (
    LEAST_SCALE,
    MOST_DIGITS,
    bounded_decimal,
    common_type,
    decimal,
    digits_of,
    is_number,
)
from anabranch._protocol.expressions.monotonic import Inverse, LowerBound, Preimage, UnaryCall, UpperBound, exactly
from anabranch._protocol.expressions.rounding import WHOLE_DOUBLE, units
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    Kernel,
    Site,
    add,
    as_arrays,
)
from anabranch._protocol.schema.types import INTEGERS, VOID, arrow_type, decimal_of
from anabranch._protocol.unsupported import Unsupported

_MAX_NEGATED_DIGITS = 34
_MAX_PLACES = 15
_MAX_DIGITS_256 = 76
"""The maximum number of digits of a decimal of 256 bits."""


def _two_numbers(arguments: Sequence[Argument]) -> tuple[Argument, Argument]:
    if len(arguments) != 2:
        raise ArgumentsNotSupported("it takes two arguments")
    first, second = arguments
    for argument in arguments:
        if not (is_number(argument.type) or argument.type == VOID):
            raise ArgumentsNotSupported(f"arithmetic with {argument.type}")
    if first.type == second.type == VOID:
        raise ArgumentsNotSupported("arithmetic with NULL only, which Spark types as a double")
    return first, second


def _is_decimal(arguments: Sequence[Argument]) -> bool:
    kinds = [str(argument.type) for argument in arguments]
    return any(decimal_of(kind) for kind in kinds) and not {"float", "double"} & {*kinds}


def _exact_fit(of_digits: Callable[[int, int, int, int], tuple[int, int]]) -> Callable[[Sequence[Argument]], Fit]:
    """The fit of arithmetic that casts numbers to their common type, and leaves decimals in their own types."""

    def fit(arguments: Sequence[Argument]) -> Fit:
        first, second = _two_numbers(arguments)
        if not _is_decimal(arguments):
            kind = common_type(arguments)
            return Fit(kind, (kind, kind))
        (p, s), (q, t) = digits_of(first), digits_of(second)
        return Fit(bounded_decimal(*of_digits(p, s, q, t)), (decimal(p, s), decimal(q, t)))

    return fit


def _sum_digits(p: int, s: int, q: int, t: int) -> tuple[int, int]:
    return max(p - s, q - t) + max(s, t) + 1, max(s, t)


_sum_fit = _exact_fit(_sum_digits)
_product_fit = _exact_fit(lambda p, s, q, t: (p + q + 1, s + t))


def _exactly(compute: Callable[..., Datum]) -> Kernel:
    """A kernel of arithmetic; decimals are computed exactly, and then rounded to the type."""

    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        first, other = arguments
        if decimal_of(gives) is None or first.type.precision + other.type.precision < MOST_DIGITS:
            return compute(first, other).cast(arrow_type(gives))
        room = _MAX_DIGITS_256 - 1 - first.type.precision
        wide = first.cast(pa.decimal256(first.type.precision, first.type.scale))
        second = other.cast(pa.decimal256(min(other.type.precision, room), other.type.scale))
        return _round_to(compute(wide, second), gives)

    return kernel


def _round_to(values: Datum, gives: str) -> Datum:
    """Round decimals of 256 bits to a type. Raises Unsupported: one has too many digits before the point."""
    precision, scale = decimal_of(gives) or (0, 0)
    rounded = pc.round(values, scale, "half_towards_infinity") if values.type.scale > scale else values
    limit = pa.scalar(Decimal(10) ** (precision - scale), pa.decimal256(_MAX_DIGITS_256, rounded.type.scale))
    if not pc.all(pc.less(pc.abs(rounded), limit), min_count=0).as_py():
        raise Unsupported("a decimal does not fit its type")
    return rounded.cast(arrow_type(gives))


def _casting(compute: Callable[..., Datum]) -> Kernel:
    """A kernel that casts its value to the type ``gives``."""

    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        return compute(*arguments, *options).cast(arrow_type(gives))

    return kernel


def _quotient_fit(arguments: Sequence[Argument]) -> Fit:
    """Spark rounds a quotient of decimals to 38 digits behind the point, and then to the scale of the type. Rounding
    once gives the same, because no divisor can come near enough to a half.
    """
    first, second = _two_numbers(arguments)
    if not _is_decimal(arguments):
        return Fit("double", ("double", "double"))
    (p, s), (q, t) = digits_of(first), digits_of(second)
    scale = max(LEAST_SCALE, s + q + 1)
    if q + scale >= MOST_DIGITS:
        raise ArgumentsNotSupported("a division by a decimal of many digits")
    return Fit(decimal(p - s + t + scale, scale), (decimal(p, s), decimal(q, t)), (scale,))


def _whole_fit(arguments: Sequence[Argument]) -> Fit:
    _two_numbers(arguments)
    if any(argument.type not in (*INTEGERS, VOID) for argument in arguments):
        raise ArgumentsNotSupported("an integer division of other numbers")
    return Fit("long", ("long", "long"))


def _remainder_digits(p: int, s: int, q: int, t: int) -> tuple[int, int]:
    digits = min(p - s, q - t) + max(s, t)
    if digits > MOST_DIGITS:
        raise ArgumentsNotSupported("a remainder of decimals of many digits")
    return digits, max(s, t)


_remainder_fit = _exact_fit(_remainder_digits)


def _refuse_zero(divisor: Datum) -> None:
    if pc.any(pc.equal(divisor, pa.scalar(0, divisor.type)), min_count=0).as_py():
        raise Unsupported("a number is divided by zero")


def _quotient(dividend: Datum, divisor: Datum, scale: int | None = None) -> Datum:
    """A quotient; decimals are rounded to ``scale`` digits behind the point."""
    _refuse_zero(divisor)
    if scale is None:
        return pc.divide_checked(dividend, divisor)
    return pc.round(_wide_quotient(dividend, divisor, scale), scale, "half_towards_infinity")


def _wide_quotient(dividend: Datum, divisor: Datum, scale: int) -> Datum:
    """A quotient of decimals, truncated behind more than ``scale`` digits."""
    dividend_type, divisor_type = dividend.type, divisor.type
    longer = max(scale + divisor_type.scale, dividend_type.scale)
    wide = dividend.cast(pa.decimal256(dividend_type.precision - dividend_type.scale + longer, longer))
    quotient = pc.divide(wide, divisor.cast(pa.decimal256(divisor_type.precision, divisor_type.scale)))
    if quotient.type.scale <= scale:
        raise Unsupported("a quotient of decimals has too few digits")
    return quotient


def _decimal_remainder(dividend: Datum, divisor: Datum) -> Datum:
    dividend_type, divisor_type = dividend.type, divisor.type
    times = pc.trunc(_wide_quotient(dividend, divisor, 0)).cast(
        pa.decimal256(dividend_type.precision - dividend_type.scale + divisor_type.scale + 1, 0)
    )
    return pc.subtract(
        dividend.cast(pa.decimal256(dividend_type.precision, dividend_type.scale)), pc.multiply(times, divisor)
    )


def _remainder(dividend: Datum, divisor: Datum) -> Datum:
    """The remainder of a truncated division, with the sign of the dividend."""
    _refuse_zero(divisor)
    if pa.types.is_decimal(divisor.type):
        return _decimal_remainder(dividend, divisor)
    if pa.types.is_floating(divisor.type):
        return _by_numpy(np.fmod, (dividend, divisor), divisor.type)
    one = pa.scalar(1, divisor.type)
    divisor = pc.if_else(pc.equal(divisor, pa.scalar(-1, divisor.type)), one, divisor)  # both have no remainder
    return pc.subtract(dividend, pc.multiply(pc.divide(dividend, divisor), divisor))


def _least_remainder(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    """A remainder below zero gets the divisor added, and its remainder is taken again; with a divisor below zero it
    stays the same. Integers whose sum overflows are left to Spark.
    """
    dividend, divisor = arguments
    left = _remainder(dividend, divisor).cast(arrow_type(gives))
    zero = pa.scalar(0, left.type)
    is_less = pc.less(left, zero)
    moved = pc.add_checked(pc.if_else(is_less, left, zero), divisor)
    if pa.types.is_floating(left.type):
        return pc.if_else(is_less, _remainder(moved, divisor), left)
    is_moved = pc.and_(is_less, pc.greater(divisor, pa.scalar(0, divisor.type)))
    return pc.if_else(is_moved, moved, left.cast(moved.type)).cast(left.type)


def _by_numpy(compute: Callable[..., Any], arguments: Sequence[Datum], kind: pa.DataType) -> Datum:
    """Compute numbers with numpy; NULL where an argument is NULL."""
    arrays = as_arrays(*arguments)
    mask = np.logical_or.reduce([array.is_null().to_numpy(zero_copy_only=False) for array in arrays])
    plain = [pc.fill_null(array, pa.scalar(1, array.type)).to_numpy(zero_copy_only=False) for array in arrays]
    with np.errstate(all="ignore"):
        return pa.array(compute(*plain), kind, mask=mask)


# -- how a bound on an integer result bounds an argument ---------------------------------------------------------------

RANGES = {kind: (-(1 << bits), (1 << bits) - 1) for kind, bits in zip(INTEGERS, (7, 15, 31, 63), strict=True)}
"""The least and the greatest number of each type; beyond them Spark fails, or wraps, by a setting."""


def _inverse(line: Callable[[UnaryCall], tuple[int, int]]) -> Inverse:
    """The inverse of an integer that is a factor times an argument, plus an offset; ``line`` returns both."""

    def preimage(call: UnaryCall, bound: LowerBound) -> Preimage:
        factor, offset = line(call)
        argument = Fraction(bound.value - offset, factor)
        return exactly((LowerBound if factor > 0 else UpperBound)(argument, bound.is_open))

    def domain(call: UnaryCall) -> tuple[Fraction, Fraction]:
        factor, offset = line(call)
        low, high = sorted(Fraction(limit - offset, factor) for limit in RANGES[str(call.gives)])
        return low, high

    return Inverse(preimage, fits=lambda kind, gives: kind == gives and gives in INTEGERS, domain=domain)


def _difference(call: UnaryCall) -> tuple[int, int]:
    first, second = call.constants
    return (1, -second) if first is None else (-1, first)


_SUM = _inverse(lambda call: (1, next(constant for constant in call.constants if constant is not None)))
_PRODUCT = _inverse(lambda call: (next(constant for constant in call.constants if constant is not None), 0))
_NEGATION, _ITSELF = _inverse(lambda call: (-1, 0)), _inverse(lambda call: (1, 0))

add("+", _sum_fit, _exactly(pc.add_checked), inverse=_SUM)
add("-", _sum_fit, _exactly(pc.subtract_checked), inverse=_inverse(_difference))
add("*", _product_fit, _exactly(pc.multiply_checked), inverse=_PRODUCT)
add("/", _quotient_fit, _casting(_quotient))
add("div", _whole_fit, _casting(_quotient))
add("%, mod", _remainder_fit, _casting(_remainder))
add("pmod", _remainder_fit, _least_remainder)


def _one_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 1 or not is_number(arguments[0].type):
        raise ArgumentsNotSupported("the argument must be one number")
    assert arguments[0].type is not None
    return Fit(arguments[0].type, (arguments[0].type,))


def _negation_fit(arguments: Sequence[Argument]) -> Fit:
    """Spark rounds a decimal to 34 digits before it negates it."""
    fit = _one_fit(arguments)
    digits = decimal_of(str(fit.gives))
    if digits is not None and digits[0] > _MAX_NEGATED_DIGITS:
        raise ArgumentsNotSupported(f"a decimal of more than {_MAX_NEGATED_DIGITS} digits is negated")
    return fit


def _negate(values: Datum) -> Datum:
    return pc.negate(values) if pa.types.is_decimal(values.type) else pc.negate_checked(values)


def _absolute(values: Datum) -> Datum:
    return pc.abs(values) if pa.types.is_decimal(values.type) else pc.abs_checked(values)


add("-x, negative", _negation_fit, _casting(_negate), inverse=_NEGATION)
add("+x, positive", _one_fit, _casting(lambda values: values), inverse=_ITSELF)
add("abs", _negation_fit, _casting(_absolute))


def _sign_fit(arguments: Sequence[Argument]) -> Fit:
    _one_fit(arguments)
    return Fit("double", ("double",))


def _sign(values: Datum) -> Datum:
    """-1, 0 or 1; a zero keeps its sign, and NaN stays NaN."""
    return pc.if_else(pc.equal(values, 0.0), values, pc.sign(values))


add("sign, signum", _sign_fit, _casting(_sign))


def _whole_number_fit(arguments: Sequence[Argument]) -> Fit:
    """The fit of FLOOR and CEIL with one argument."""
    _one_fit(arguments)
    kind = str(arguments[0].type)
    if (digits := decimal_of(kind)) is not None:
        precision, scale = digits
        wide = decimal(precision + 1, scale) if scale else kind  # Arrow needs room for the next digit
        return Fit(decimal(precision - scale + 1, 0) if scale else kind, (wide,))
    wide = "long" if kind in INTEGERS else "double"
    return Fit("long", (wide,))


def _to_whole(compute: Callable[[Datum], Datum]) -> Callable[[Datum], Datum]:
    def compute_longs(values: Datum) -> Datum:
        if not pa.types.is_floating(values.type):
            return values if pa.types.is_integer(values.type) else compute(values)
        return longs(compute(values))

    return compute_longs


add("floor", _whole_number_fit, _casting(_to_whole(pc.floor)))
add("ceil, ceiling", _whole_number_fit, _casting(_to_whole(pc.ceil)))


def _round_fit(arguments: Sequence[Argument]) -> Fit:
    _one_fit(arguments[:1])
    places = (0,) if len(arguments) == 1 else arguments[1].constant if len(arguments) == 2 else None
    is_int = len(arguments) == 1 or arguments[1].type in INTEGERS[:3]
    if places is None or not is_int or type(places[0]) is not int or not 0 <= places[0] <= 38:
        raise ArgumentsNotSupported("the number of digits must be constant")
    kind = str(arguments[0].type)
    if kind in INTEGERS:
        return Fit(kind, (kind,), places)
    if kind == "double" and places[0] <= _MAX_PLACES:
        return Fit(kind, (kind,), places)
    if (digits := decimal_of(kind)) is None:
        raise ArgumentsNotSupported("rounding of such floating-point numbers")
    precision, scale = digits
    new_scale = min(scale, places[0])
    wide = decimal(precision + 1, scale)
    return Fit(decimal(precision - scale + 1 + new_scale, new_scale), (wide,), (new_scale,))


def _rounding(mode: str) -> Callable[..., Datum]:
    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        (values,) = arguments
        if pa.types.is_integer(values.type):
            return values
        if pa.types.is_floating(values.type):
            return _by_numpy(
                lambda numbers: _round_doubles(numbers, options[0], even=mode == "half_to_even"), (values,), values.type
            )
        return pc.round(values, options[0], mode).cast(arrow_type(gives))

    return kernel


def _round_doubles(numbers: Any, places: int, *, even: bool) -> Any:
    """Doubles rounded to ``places`` decimal places; a zero loses its sign, and NaN stays NaN."""
    is_whole = ~(np.abs(numbers) < WHOLE_DOUBLE)
    rounded = units(pa.array(np.where(is_whole, 0.0, numbers)), places, even=even) / 10.0**places
    return np.where(is_whole, numbers, np.where(rounded == 0, 0.0, np.copysign(rounded, numbers)))


add("round", _round_fit, _rounding("half_towards_infinity"))
add("bround", _round_fit, _rounding("half_to_even"))
