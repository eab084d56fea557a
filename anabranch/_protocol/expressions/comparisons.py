"""Entries for comparisons, and for three-valued logic.

NaN equals NaN and is greater than every other number, unlike in Arrow; -0.0 equals 0.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.common_types import comparison_type, is_canonical_text
from anabranch._protocol.expressions.table import (
    Argument,
    ArgumentsNotSupported,
    Datum,
    Fit,
    Site,
    add,
    as_array,
    of_values,
)
from anabranch._protocol.schema.types import VOID
from anabranch._protocol.unsupported import Unsupported

_ARROW: Mapping[str, Callable[..., Datum]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _comparison_fit(arguments: Sequence[Argument]) -> Fit:
    kind = comparison_type(arguments)
    if not isinstance(kind, str) or len(arguments) != 2:
        raise ArgumentsNotSupported("only values of primitive types can be compared")
    return Fit("boolean", (kind, kind))


def compare(sign: str, left: Datum, right: Datum) -> Datum:
    """``left sign right`` for each row, NULL if either is NULL."""
    if not pa.types.is_floating(left.type):
        return _ARROW[sign](left, right)
    left_is_nan, right_is_nan = pc.is_nan(left), pc.is_nan(right)
    as_numbers = _ARROW[sign](left, right)
    # If either side is NaN, compare NaN as 1 and each number as 0.
    by_nan = _ARROW[sign](left_is_nan.cast(pa.int8()), right_is_nan.cast(pa.int8()))
    return pc.if_else(pc.or_(left_is_nan, right_is_nan), by_nan, as_numbers)


def _null_safe_equal(left: Datum, right: Datum) -> Datum:
    """``left <=> right``: never NULL."""
    equal = pc.fill_null(compare("=", left, right), False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))


for _sign in _ARROW:
    add(_sign, _comparison_fit, of_values(functools.partial(compare, _sign)))
add("<=>, equal_null", _comparison_fit, of_values(_null_safe_equal))


# -- one of several ----------------------------------------------------------------------------------------------------


def _in_fit(arguments: Sequence[Argument]) -> Fit:
    """By some settings, Spark compares all values as texts if one of them is a text."""
    kind = comparison_type(arguments)
    if not isinstance(kind, str):
        raise ArgumentsNotSupported("only values of primitive types can be compared")
    texts = [argument.constant for argument in arguments if argument.type == "string"]
    are_of_kind = all(argument.type in (kind, "string", VOID) for argument in arguments)
    are_spelled = all(text is not None and is_canonical_text(text[0], kind) for text in texts)
    if kind != "string" and texts and not (are_of_kind and are_spelled):
        raise ArgumentsNotSupported("settings decide how texts are compared with other values")
    return Fit("boolean", (kind,) * len(arguments))


def _in(searched: Datum, *values: Datum) -> Datum:
    is_plain = all(isinstance(value, pa.Scalar) for value in values) and not pa.types.is_floating(searched.type)
    if is_plain and not isinstance(searched, pa.Scalar):
        valid_values = [value.as_py() for value in values if value.is_valid]
        is_member = pc.is_in(searched, value_set=pa.array(valid_values, searched.type))
        unknown = pc.is_null(searched) if len(valid_values) == len(values) else pc.invert(is_member)
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), is_member)
    return functools.reduce(pc.or_kleene, (compare("=", searched, value) for value in values))


def _between_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 3:
        raise ArgumentsNotSupported("it takes three arguments")
    value, low, high = arguments
    kinds = {comparison_type([value, low]), comparison_type([value, high])}
    if len(kinds) != 1 or not isinstance(kind := kinds.pop(), str):
        raise ArgumentsNotSupported("the bounds have different types")
    return Fit("boolean", (kind,) * 3)


def _between(value: Datum, low: Datum, high: Datum) -> Datum:
    return pc.and_kleene(compare(">=", value, low), compare("<=", value, high))


add("in", _in_fit, of_values(_in))
add("between", _between_fit, of_values(_between))


# -- truth values ------------------------------------------------------------------------------------------------------


def _truth_fit(arguments: Sequence[Argument]) -> Fit:
    for argument in arguments:
        if argument.type not in ("boolean", VOID, None):
            raise ArgumentsNotSupported(f"{argument.type} is not a boolean")
    return Fit("boolean", ("boolean",) * len(arguments))


def _short_circuit(join: Callable[..., Datum], decides: bool) -> Callable[..., Datum]:
    """AND, or OR: where the first parts yield ``decides``, an error of a later part does not count."""

    def kernel(parts: Sequence[Callable[..., Datum]], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        result = parts[0](None)
        for part in parts[1:]:
            try:
                value = part(None)
            except Unsupported:
                value = _where_open(result, part, decides, site)
            result = join(result, value)
        return result

    return kernel


def _where_open(result: Datum, part: Callable[..., Datum], decides: bool, site: Site) -> Datum:
    """A part's values for the rows that are undecided yet; NULL for the others."""
    is_open = pc.fill_null(pc.not_equal(as_array(result, site.count), pa.scalar(decides)), True)
    values = part(is_open)
    if isinstance(values, pa.Scalar):
        return pc.if_else(is_open, values, pa.scalar(None, pa.bool_()))
    return pc.replace_with_mask(pa.nulls(len(is_open), pa.bool_()), is_open, values)


add("and", _truth_fit, _short_circuit(pc.and_kleene, decides=False), is_lazy=True)
add("or", _truth_fit, _short_circuit(pc.or_kleene, decides=True), is_lazy=True)
add("not", _truth_fit, of_values(pc.invert))


def _any_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 1 or arguments[0].type is None:
        raise ArgumentsNotSupported("it takes one argument of a known type")
    return Fit("boolean", (arguments[0].type,))


add("is null, isnull", _any_fit, of_values(pc.is_null))
add("isnotnull", _any_fit, of_values(pc.is_valid))
add("is unknown", _truth_fit, of_values(pc.is_null))
add("is true", _truth_fit, of_values(lambda values: pc.fill_null(values, False)))
add("is false", _truth_fit, of_values(lambda values: pc.fill_null(pc.invert(values), False)))


def _isnan_fit(arguments: Sequence[Argument]) -> Fit:
    if len(arguments) != 1 or arguments[0].type not in ("float", "double"):
        raise ArgumentsNotSupported("the argument must be a float or a double")
    return Fit("boolean", (str(arguments[0].type),))


add("isnan", _isnan_fit, of_values(lambda values: pc.fill_null(pc.is_nan(values), False)))
