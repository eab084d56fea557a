"""Entries for numbers: arithmetic, signs, rounding.

An overflow and a division by zero are errors with ANSI rules and NULL or another number without them, so both are left
to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.casts import longs
from anabranch._protocol.expressions.meeting import (
    LEAST_SCALE,
    MOST_DIGITS,
    bounded_decimal,
    common,
    decimal,
    digits_of,
    is_number,
)
from anabranch._protocol.expressions.rounding import WHOLE_DOUBLE, units
from anabranch._protocol.expressions.table import (
    Bound,
    Datum,
    Fit,
    Given,
    Inverse,
    Kernel,
    Site,
    Unfit,
    Varying,
    add,
    exactly,
)
from anabranch._protocol.schema.types import INTEGERS, VOID, arrow_type, decimal_of
from anabranch._protocol.unsupported import Unsupported

_NEGATED_DIGITS = 34
_MOST_PLACES = 15
_WIDEST = 76
"""So many digits has a decimal of 256 bits."""


def _two(given: Sequence[Given]) -> tuple[Given, Given]:
    if len(given) != 2:
        raise Unfit("it takes two arguments")
    one, other = given
    for each in given:
        if not (is_number(each.type) or each.type == VOID):
            raise Unfit(f"arithmetic with {each.type}")
    if one.type == other.type == VOID:
        raise Unfit("arithmetic with nothing but NULL, of which Spark makes a double")
    return one, other


def _is_decimal(given: Sequence[Given]) -> bool:
    kinds = [str(each.type) for each in given]
    return any(decimal_of(kind) for kind in kinds) and not {"float", "double"} & {*kinds}


def _exact_fit(of_digits: Callable[[int, int, int, int], tuple[int, int]]) -> Callable[[Sequence[Given]], Fit]:
    """Of arithmetic that numbers do in their common type, and decimals each in its own."""

    def fit(given: Sequence[Given]) -> Fit:
        one, other = _two(given)
        if not _is_decimal(given):
            kind = common(given)
            return Fit(kind, (kind, kind))
        (p, s), (q, t) = digits_of(one), digits_of(other)
        return Fit(bounded_decimal(*of_digits(p, s, q, t)), (decimal(p, s), decimal(q, t)))

    return fit


def _sum_digits(p: int, s: int, q: int, t: int) -> tuple[int, int]:
    return max(p - s, q - t) + max(s, t) + 1, max(s, t)


_sum_fit = _exact_fit(_sum_digits)
_product_fit = _exact_fit(lambda p, s, q, t: (p + q + 1, s + t))


def _exactly(compute: Callable[..., Datum]) -> Kernel:
    """A kernel of arithmetic; of decimals all digits are computed, and those that the type does not have rounded."""

    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        one, other = arguments
        if decimal_of(gives) is None or one.type.precision + other.type.precision < MOST_DIGITS:
            return compute(one, other).cast(arrow_type(gives))
        room = _WIDEST - 1 - one.type.precision
        wide = one.cast(pa.decimal256(one.type.precision, one.type.scale))
        second = other.cast(pa.decimal256(min(other.type.precision, room), other.type.scale))
        return _round_to(compute(wide, second), gives)

    return kernel


def _round_to(values: Datum, gives: str) -> Datum:
    """Decimals of 256 bits as such of a type. Raises Unsupported: one has too many digits before the point."""
    precision, scale = decimal_of(gives) or (0, 0)
    found = pc.round(values, scale, "half_towards_infinity") if values.type.scale > scale else values
    limit = pa.scalar(Decimal(10) ** (precision - scale), pa.decimal256(_WIDEST, found.type.scale))
    if not pc.all(pc.less(pc.abs(found), limit), min_count=0).as_py():
        raise Unsupported("a decimal has no room in its type")
    return found.cast(arrow_type(gives))


def _of(compute: Callable[..., Datum]) -> Kernel:
    """A kernel whose value is cast to the type that is given."""

    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        return compute(*arguments, *options).cast(arrow_type(gives))

    return kernel


def _quotient_fit(given: Sequence[Given]) -> Fit:
    """Of decimals Spark rounds to 38 digits behind the point, and then to those of the type: that is the same as to
    round once, where no divisor can come so near to a half.
    """
    one, other = _two(given)
    if not _is_decimal(given):
        return Fit("double", ("double", "double"))
    (p, s), (q, t) = digits_of(one), digits_of(other)
    scale = max(LEAST_SCALE, s + q + 1)
    if q + scale >= MOST_DIGITS:
        raise Unfit("a division by a decimal of many digits")
    return Fit(decimal(p - s + t + scale, scale), (decimal(p, s), decimal(q, t)), (scale,))


def _whole_fit(given: Sequence[Given]) -> Fit:
    _two(given)
    if any(each.type not in (*INTEGERS, VOID) for each in given):
        raise Unfit("a division that gives whole numbers, of others")
    return Fit("long", ("long", "long"))


def _remainder_digits(p: int, s: int, q: int, t: int) -> tuple[int, int]:
    digits = min(p - s, q - t) + max(s, t)
    if digits > MOST_DIGITS:
        raise Unfit("a remainder of decimals of many digits")
    return digits, max(s, t)


_remainder_fit = _exact_fit(_remainder_digits)


def _refuse_zero(divisor: Datum) -> None:
    if pc.any(pc.equal(divisor, pa.scalar(0, divisor.type)), min_count=0).as_py():
        raise Unsupported("something is divided by zero")


def _quotient(dividend: Datum, divisor: Datum, scale: int | None = None) -> Datum:
    """A quotient; of decimals one that is rounded to so many digits behind the point."""
    _refuse_zero(divisor)
    if scale is None:
        return pc.divide_checked(dividend, divisor)
    return pc.round(_wide_quotient(dividend, divisor, scale), scale, "half_towards_infinity")


def _wide_quotient(dividend: Datum, divisor: Datum, scale: int) -> Datum:
    """A quotient of decimals that is cut off behind more than so many digits."""
    one, other = dividend.type, divisor.type
    longer = max(scale + other.scale, one.scale)
    wide = dividend.cast(pa.decimal256(one.precision - one.scale + longer, longer))
    found = pc.divide(wide, divisor.cast(pa.decimal256(other.precision, other.scale)))
    if found.type.scale <= scale:
        raise Unsupported("a quotient of decimals has too few digits")
    return found


def _decimal_remainder(dividend: Datum, divisor: Datum) -> Datum:
    one, other = dividend.type, divisor.type
    times = pc.trunc(_wide_quotient(dividend, divisor, 0)).cast(
        pa.decimal256(one.precision - one.scale + other.scale + 1, 0)
    )
    return pc.subtract(dividend.cast(pa.decimal256(one.precision, one.scale)), pc.multiply(times, divisor))


def _remainder(dividend: Datum, divisor: Datum) -> Datum:
    """What is left of a truncated division: it has the sign of the dividend."""
    _refuse_zero(divisor)
    if pa.types.is_decimal(divisor.type):
        return _decimal_remainder(dividend, divisor)
    if pa.types.is_floating(divisor.type):
        return _by_numpy(np.fmod, (dividend, divisor), divisor.type)
    one = pa.scalar(1, divisor.type)
    divisor = pc.if_else(pc.equal(divisor, pa.scalar(-1, divisor.type)), one, divisor)  # both leave nothing
    return pc.subtract(dividend, pc.multiply(pc.divide(dividend, divisor), divisor))


def _least_remainder(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
    """A remainder to which the divisor is added where it is less than zero, and whose remainder is taken then: by a
    divisor that is less than zero, too, it stays what it was. Whole numbers for which the sum is too great are Spark's.
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
    """What numpy computes of numbers, NULL where one of them is."""
    count = max((len(each) for each in arguments if not isinstance(each, pa.Scalar)), default=1)
    arrays = [pa.repeat(each, count) if isinstance(each, pa.Scalar) else each for each in arguments]
    mask = np.logical_or.reduce([each.is_null().to_numpy(zero_copy_only=False) for each in arrays])
    plain = [pc.fill_null(each, pa.scalar(1, each.type)).to_numpy(zero_copy_only=False) for each in arrays]
    with np.errstate(all="ignore"):
        return pa.array(compute(*plain), kind, mask=mask)


# -- what a bound of a whole number says of an argument ----------------------------------------------------------------

RANGES = {kind: (-(1 << bits), (1 << bits) - 1) for kind, bits in zip(INTEGERS, (7, 15, 31, 63), strict=True)}
"""The least and the greatest number of each type; beyond them Spark fails, or wraps, by a setting."""


def _inverse(line: Callable[[Varying], tuple[int, int]]) -> Inverse:
    """Of a whole number that is an argument times a factor, plus an offset; ``line`` gives both."""

    def bound(call: Varying, value: int, is_strict: bool) -> Bound:
        factor, offset = line(call)
        at, falls = Fraction(value - offset, factor), factor < 0
        return exactly(floor(at) if is_strict != falls else ceil(at), is_strict=is_strict, falls=falls)

    def safe(call: Varying) -> tuple[int, int]:
        factor, offset = line(call)
        low, high = sorted(Fraction(each - offset, factor) for each in RANGES[str(call.gives)])
        return ceil(low), floor(high)

    return Inverse(bound, fits=lambda kind, gives: kind == gives and gives in INTEGERS, safe=safe)


def _difference(call: Varying) -> tuple[int, int]:
    first, second = call.constants
    return (1, -second) if first is None else (-1, first)


_SUM = _inverse(lambda call: (1, next(each for each in call.constants if each is not None)))
_PRODUCT = _inverse(lambda call: (next(each for each in call.constants if each is not None), 0))
_NEGATION, _ITSELF = _inverse(lambda call: (-1, 0)), _inverse(lambda call: (1, 0))

add("+", _sum_fit, _exactly(pc.add_checked), inverse=_SUM)
add("-", _sum_fit, _exactly(pc.subtract_checked), inverse=_inverse(_difference))
add("*", _product_fit, _exactly(pc.multiply_checked), inverse=_PRODUCT)
add("/", _quotient_fit, _of(_quotient))
add("div", _whole_fit, _of(_quotient))
add("%, mod", _remainder_fit, _of(_remainder))
add("pmod", _remainder_fit, _least_remainder)


def _one_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 1 or not is_number(given[0].type):
        raise Unfit("it is computed here for one number")
    assert given[0].type is not None
    return Fit(given[0].type, (given[0].type,))


def _negation_fit(given: Sequence[Given]) -> Fit:
    """Spark rounds what it negates to 34 digits."""
    fit = _one_fit(given)
    digits = decimal_of(str(fit.gives))
    if digits is not None and digits[0] > _NEGATED_DIGITS:
        raise Unfit(f"a decimal of more than {_NEGATED_DIGITS} digits is negated")
    return fit


def _negate(values: Datum) -> Datum:
    return pc.negate(values) if pa.types.is_decimal(values.type) else pc.negate_checked(values)


def _absolute(values: Datum) -> Datum:
    return pc.abs(values) if pa.types.is_decimal(values.type) else pc.abs_checked(values)


add("-x, negative", _negation_fit, _of(_negate), inverse=_NEGATION)
add("+x, positive", _one_fit, _of(lambda values: values), inverse=_ITSELF)
add("abs", _negation_fit, _of(_absolute))


def _sign_fit(given: Sequence[Given]) -> Fit:
    _one_fit(given)
    return Fit("double", ("double",))


def _sign(values: Datum) -> Datum:
    """-1, 0 or 1; a zero keeps its sign, and what is no number stays so."""
    return pc.if_else(pc.equal(values, 0.0), values, pc.sign(values))


add("sign, signum", _sign_fit, _of(_sign))


def _whole_number_fit(given: Sequence[Given]) -> Fit:
    """Of FLOOR and CEIL with one argument."""
    _one_fit(given)
    kind = str(given[0].type)
    if (digits := decimal_of(kind)) is not None:
        precision, scale = digits
        wide = decimal(precision + 1, scale) if scale else kind  # in its own digits Arrow has no room for the next one
        return Fit(decimal(precision - scale + 1, 0) if scale else kind, (wide,))
    wide = "long" if kind in INTEGERS else "double"
    return Fit("long", (wide,))


def _to_whole(compute: Callable[[Datum], Datum]) -> Callable[[Datum], Datum]:
    def compute_longs(values: Datum) -> Datum:
        if not pa.types.is_floating(values.type):
            return values if pa.types.is_integer(values.type) else compute(values)
        return longs(compute(values))

    return compute_longs


add("floor", _whole_number_fit, _of(_to_whole(pc.floor)))
add("ceil, ceiling", _whole_number_fit, _of(_to_whole(pc.ceil)))


def _round_fit(given: Sequence[Given]) -> Fit:
    _one_fit(given[:1])
    places = (0,) if len(given) == 1 else given[1].constant if len(given) == 2 else None
    is_int = len(given) == 1 or given[1].type in INTEGERS[:3]
    if places is None or not is_int or type(places[0]) is not int or not 0 <= places[0] <= 38:
        raise Unfit("only with a constant number of digits is it computed here")
    kind = str(given[0].type)
    if kind in INTEGERS:
        return Fit(kind, (kind,), places)
    if kind == "double" and places[0] <= _MOST_PLACES:
        return Fit(kind, (kind,), places)
    if (digits := decimal_of(kind)) is None:
        raise Unfit("rounding of such floating numbers")
    precision, scale = digits
    kept = min(scale, places[0])
    wide = decimal(precision + 1, scale)
    return Fit(decimal(precision - scale + 1 + kept, kept), (wide,), (kept,))


def _rounding(mode: str) -> Callable[..., Datum]:
    def kernel(arguments: Sequence[Datum], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        (values,) = arguments
        if pa.types.is_integer(values.type):
            return values
        if pa.types.is_floating(values.type):
            return _by_numpy(
                lambda each: _round_doubles(each, options[0], even=mode == "half_to_even"), (values,), values.type
            )
        return pc.round(values, options[0], mode).cast(arrow_type(gives))

    return kernel


def _round_doubles(numbers: Any, places: int, *, even: bool) -> Any:
    """Doubles with so many decimal places; a zero loses its sign, and what is no number stays as it is."""
    is_whole = ~(np.abs(numbers) < WHOLE_DOUBLE)
    found = units(pa.array(np.where(is_whole, 0.0, numbers)), places, even=even) / 10.0**places
    return np.where(is_whole, numbers, np.where(found == 0, 0.0, np.copysign(found, numbers)))


add("round", _round_fit, _rounding("half_towards_infinity"))
add("bround", _round_fit, _rounding("half_to_even"))
