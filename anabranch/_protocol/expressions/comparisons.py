"""Entries for comparisons, and for the three truth values.

NaN equals NaN and is greater than every other number, which Arrow does not know; -0.0 equals 0.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.expressions.meeting import comparison_type, is_spelled
from anabranch._protocol.expressions.table import Datum, Fit, Given, Site, Unfit, add, of_values
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


def _comparison_fit(given: Sequence[Given]) -> Fit:
    kind = comparison_type(given)
    if not isinstance(kind, str) or len(given) != 2:
        raise Unfit("only values of plain types are compared here")
    return Fit("boolean", (kind, kind))


def compare(sign: str, left: Datum, right: Datum) -> Datum:
    """``left sign right`` for each row, NULL where one of them is."""
    if not pa.types.is_floating(left.type):
        return _ARROW[sign](left, right)
    one, other = pc.is_nan(left), pc.is_nan(right)
    as_numbers = _ARROW[sign](left, right)
    # Where one is no number, NaN stands for 1 and each number for 0.
    by_nan = _ARROW[sign](one.cast(pa.int8()), other.cast(pa.int8()))
    return pc.if_else(pc.or_(one, other), by_nan, as_numbers)


def _same(left: Datum, right: Datum) -> Datum:
    """``left <=> right``: never NULL."""
    equal = pc.fill_null(compare("=", left, right), False)
    return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))


for _sign in _ARROW:
    add(_sign, _comparison_fit, of_values(functools.partial(compare, _sign)))
add("<=>, equal_null", _comparison_fit, of_values(_same))


# -- one of several ----------------------------------------------------------------------------------------------------


def _in_fit(given: Sequence[Given]) -> Fit:
    """By some settings all are compared as texts, if one is a text."""
    kind = comparison_type(given)
    if not isinstance(kind, str):
        raise Unfit("only values of plain types are compared here")
    texts = [each.constant for each in given if each.type == "string"]
    are_of_kind = all(each.type in (kind, "string", VOID) for each in given)
    are_spelled = all(text is not None and is_spelled(text[0], kind) for text in texts)
    if kind != "string" and texts and not (are_of_kind and are_spelled):
        raise Unfit("settings choose whether texts are compared as such with other values")
    return Fit("boolean", (kind,) * len(given))


def _in(searched: Datum, *values: Datum) -> Datum:
    is_plain = all(isinstance(each, pa.Scalar) for each in values) and not pa.types.is_floating(searched.type)
    if is_plain and not isinstance(searched, pa.Scalar):
        known = [each.as_py() for each in values if each.is_valid]
        found = pc.is_in(searched, value_set=pa.array(known, searched.type))
        unknown = pc.is_null(searched) if len(known) == len(values) else pc.invert(found)
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)
    return functools.reduce(pc.or_kleene, (compare("=", searched, each) for each in values))


def _between_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 3:
        raise Unfit("it takes three arguments")
    value, low, high = given
    kinds = {comparison_type([value, low]), comparison_type([value, high])}
    if len(kinds) != 1 or not isinstance(kind := kinds.pop(), str):
        raise Unfit("the bounds are of several types")
    return Fit("boolean", (kind,) * 3)


def _between(value: Datum, low: Datum, high: Datum) -> Datum:
    return pc.and_kleene(compare(">=", value, low), compare("<=", value, high))


add("in", _in_fit, of_values(_in))
add("between", _between_fit, of_values(_between))


# -- truth values ------------------------------------------------------------------------------------------------------


def _truths(given: Sequence[Given]) -> Fit:
    for each in given:
        if each.type not in ("boolean", VOID, None):
            raise Unfit(f"{each.type} is no truth value")
    return Fit("boolean", ("boolean",) * len(given))


def _short_circuit(join: Callable[..., Datum], decides: bool) -> Callable[..., Datum]:
    """AND, or OR: what ``decides`` the outcome makes the parts behind it idle, so their errors are none."""

    def kernel(parts: Sequence[Callable[..., Datum]], gives: str, options: tuple[Any, ...], site: Site) -> Datum:
        found = parts[0](None)
        for part in parts[1:]:
            try:
                value = part(None)
            except Unsupported:
                value = _where_open(found, part, decides, site)
            found = join(found, value)
        return found

    return kernel


def _where_open(found: Datum, part: Callable[..., Datum], decides: bool, site: Site) -> Datum:
    """A part's values for the rows that are not decided yet; NULL for the others."""
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, site.count)
    is_open = pc.fill_null(pc.not_equal(found, pa.scalar(decides)), True)
    values = part(is_open)
    if isinstance(values, pa.Scalar):
        return pc.if_else(is_open, values, pa.scalar(None, pa.bool_()))
    return pc.replace_with_mask(pa.nulls(len(is_open), pa.bool_()), is_open, values)


add("and", _truths, _short_circuit(pc.and_kleene, decides=False), is_lazy=True)
add("or", _truths, _short_circuit(pc.or_kleene, decides=True), is_lazy=True)
add("not", _truths, of_values(pc.invert))


def _any_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 1 or given[0].type is None:
        raise Unfit("it takes one argument of a known type")
    return Fit("boolean", (given[0].type,))


add("is null, isnull", _any_fit, of_values(pc.is_null))
add("isnotnull", _any_fit, of_values(pc.is_valid))
add("is unknown", _truths, of_values(pc.is_null))
add("is true", _truths, of_values(lambda values: pc.fill_null(values, False)))
add("is false", _truths, of_values(lambda values: pc.fill_null(pc.invert(values), False)))


def _isnan_fit(given: Sequence[Given]) -> Fit:
    if len(given) != 1 or given[0].type not in ("float", "double"):
        raise Unfit("it is computed here for a floating number")
    return Fit("boolean", (str(given[0].type),))


add("isnan", _isnan_fit, of_values(lambda values: pc.fill_null(pc.is_nan(values), False)))
