"""Meeting: the one type to which Spark brings the arguments of a comparison, of arithmetic and of a CASE.

Pure. Guarantee: a type that is given here is Spark's with ANSI rules and without them; where the two differ, or text
meets anything else, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from anabranch._protocol.expressions.table import Given, Unfit
from anabranch._protocol.predicates import date_of
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, decimal_of

MOST_DIGITS = 38
LEAST_SCALE = 6
"""So many digits behind the point has a quotient of decimals at least, and keeps what has too many digits."""
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_BEYOND_LONG = 1 << 63
WIDTHS = {"byte": 7, "short": 15, "integer": 31, "long": 63}
"""So many bits has a whole number of each type, beside its sign."""
MOMENTS = ("date", "timestamp_ntz", "timestamp")
"""Two of them meet as the later one."""
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
_CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,5}[1-9])?")
_LOCAL = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
FLOAT_INTEGERS = 1 << 24
"""Up to here every whole number is a ``float``, so it does not matter in which type both meet."""


def is_number(kind: DataType | None) -> bool:
    """Whether a type is numeric."""
    return kind in INTEGERS or kind in ("float", "double") or (isinstance(kind, str) and decimal_of(kind) is not None)


def decimal(precision: int, scale: int) -> str:
    """The type of a decimal. Raises Unfit: it has more digits than Spark's, which then drops some."""
    if precision > MOST_DIGITS:
        raise Unfit(f"the result may have more than {MOST_DIGITS} digits")
    return f"decimal({precision},{scale})"


def bounded_decimal(precision: int, scale: int) -> str:
    """The type of a decimal of which Spark drops digits behind the point where there are too many, down to six."""
    if precision <= MOST_DIGITS:
        return decimal(precision, scale)
    return decimal(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, LEAST_SCALE)))


def digits_of(given: Given) -> tuple[int, int]:
    """Precision and scale of a decimal, or of an integer as a decimal: a literal takes as many as it has."""
    if given.type in INTEGERS:
        if given.constant is not None and given.constant[0] is not None:
            return max(len(str(abs(given.constant[0]))), 1), 0
        return _DIGITS[str(given.type)], 0
    found = decimal_of(given.type) if given.type is not None else None
    if found is None:
        raise Unfit(f"{given.type} is no exact number")
    return found


def comparison_type(given: Sequence[Given]) -> DataType:
    """The type in which all of these are compared. Raises Unfit: there is none, or settings choose it."""
    return _meeting(given, _pair_for_comparison)


def common(given: Sequence[Given]) -> DataType:
    """The type that a value has which is one of these, or is computed from them. Raises Unfit, as `comparison_type`."""
    return _meeting(given, _pair)


def _meeting(given: Sequence[Given], pair: Callable[[Given, Given], DataType]) -> DataType:
    if any(each.type is None for each in given):
        raise Unfit("a part of it is of unknown type")
    known = [each for each in given if each.type != VOID]
    if not known:
        return VOID
    found = known[0]
    for each in known[1:]:
        kind = pair(found, each)
        found = found if kind == found.type else Given(kind)
    assert found.type is not None
    return found.type


def are_exact(kinds: Sequence[DataType | None], constants: Sequence[Any]) -> bool:
    """Whether Spark compares numbers of these types, some of which are these constants, as they are: it rounds what
    takes more than 38 digits together, brings whole numbers to ``float``, and has a rule of its own for whole numbers
    against decimals that no ``long`` reaches.
    """
    exact = [each for each in kinds if each in INTEGERS or (isinstance(each, str) and decimal_of(each))]
    digits = [digits_of(Given(each)) for each in exact]
    whole, known = any(each in INTEGERS for each in kinds), [each for each in constants if _is_numeric(each)]
    if digits and max(p - s for p, s in digits) + max(s for _, s in digits) > MOST_DIGITS:
        return False
    if whole and "float" in kinds and not all(abs(each) < FLOAT_INTEGERS for each in known):
        return False
    return not (whole and any(_is_beyond_long(each) for each in known))


def _is_beyond_long(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not -_BEYOND_LONG < value < _BEYOND_LONG


def _is_numeric(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _pair_for_comparison(one: Given, other: Given) -> DataType:
    """A ``float`` and a small whole number are compared as one of two types, which makes no difference."""
    constants = [each.constant[0] for each in (one, other) if each.constant is not None]
    whole = one.type in INTEGERS or other.type in INTEGERS
    if whole and any(map(_is_beyond_long, constants)):
        raise Unfit("Spark has a rule of its own for a whole number against such a decimal")
    for text, read in ((one, other), (other, one)):
        if text.type == "string" and text.constant is not None and _is_read(text.constant[0], read.type):
            return str(read.type)
    for exact, floating in ((one, other), (other, one)):
        value = None if exact.constant is None else exact.constant[0]
        if floating.type == "float" and exact.type in INTEGERS and value is not None and abs(value) <= FLOAT_INTEGERS:
            return "double"
    return _pair(one, other)


def _pair(one: Given, other: Given) -> DataType:
    a, b = one.type, other.type
    assert a is not None
    assert b is not None
    if a == b and not is_number(a):
        return a
    if a in MOMENTS and b in MOMENTS:
        return max(str(a), str(b), key=MOMENTS.index)
    if not (is_number(a) and is_number(b)):
        raise Unfit(f"{format_type(a)} meets {format_type(b)}")
    return a if a == b else _numbers(one, other)


def _numbers(one: Given, other: Given) -> DataType:
    kinds = {str(one.type), str(other.type)}
    if kinds <= {*INTEGERS}:
        return max(kinds, key=INTEGERS.index)
    if "float" in kinds and "double" not in kinds and kinds & {*INTEGERS}:
        raise Unfit("float meets a whole number")
    if kinds & {"float", "double"}:
        return "double"
    (p, s), (q, t) = digits_of(Given(one.type)), digits_of(Given(other.type))
    scale = max(s, t)
    return decimal(max(p - s, q - t) + scale, scale)


def is_date(text: str | tuple[Any] | None) -> bool:
    """Whether a text, or the constant one of an argument, is a day in full, which every session reads alike."""
    value = text[0] if isinstance(text, tuple) else text
    try:
        return isinstance(value, str) and date_of(value) is not None
    except TypeError:
        return False


def is_spelled(text: Any, kind: DataType | None) -> bool:
    """Whether a text is a value of a type just as Spark spells it. Then it makes no difference whether both are equal
    as such values, or as texts.
    """
    if not isinstance(text, str):
        return False
    if kind in INTEGERS:
        return _INTEGER.fullmatch(text) is not None and abs(int(text)) >> WIDTHS[str(kind)] == 0
    return is_date(text) if kind == "date" else kind in MOMENTS and _CLOCK.fullmatch(text) is not None


def _is_read(text: Any, kind: DataType | None) -> bool:
    """Whether each session reads a text as the same value of a type."""
    if kind in MOMENTS[1:] and isinstance(text, str) and (parts := _LOCAL.fullmatch(text)):
        return is_date(parts[1]) and (parts[2] is None or kind == "timestamp")
    return is_spelled(text, kind)


def format_type(kind: DataType | None) -> str:
    """A type, for people."""
    return str(kind) if isinstance(kind, str | None) else type(kind).__name__.lower()
