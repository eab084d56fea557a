"""The common type to which Spark casts the arguments of a comparison, of arithmetic and of a CASE.

Pure. Guarantee: a type that is returned is Spark's with ANSI rules and without them; where the two differ, or text
meets any other type, `ArgumentsNotSupported` is raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from anabranch._protocol.expressions.table import Argument, ArgumentsNotSupported
from anabranch._protocol.predicates import date_of
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, decimal_of

MOST_DIGITS = 38
LEAST_SCALE = 6
"""The minimum scale of a quotient of decimals; a result with too many digits keeps at least this scale."""
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_BEYOND_LONG = 1 << 63
WIDTHS = {"byte": 7, "short": 15, "integer": 31, "long": 63}
"""The number of bits of an integer type, without the sign."""
MOMENTS = ("date", "timestamp_ntz", "timestamp")
"""Two of these types meet as the later one."""
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
_CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,5}[1-9])?")
_LOCAL = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
FLOAT_INTEGERS = 1 << 24
"""Up to this value every integer is exact as a ``float``, so both types compare alike."""


def is_number(kind: DataType | None) -> bool:
    """Whether a type is numeric."""
    return kind in INTEGERS or kind in ("float", "double") or (isinstance(kind, str) and decimal_of(kind) is not None)


def decimal(precision: int, scale: int) -> str:
    """The type of a decimal. Raises ArgumentsNotSupported: it has more digits than Spark's, which would drop some."""
    if precision > MOST_DIGITS:
        raise ArgumentsNotSupported(f"the result may have more than {MOST_DIGITS} digits")
    return f"decimal({precision},{scale})"


def bounded_decimal(precision: int, scale: int) -> str:
    """The type of a decimal; if it has too many digits, Spark drops digits behind the point, down to six."""
    if precision <= MOST_DIGITS:
        return decimal(precision, scale)
    return decimal(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, LEAST_SCALE)))


def digits_of(argument: Argument) -> tuple[int, int]:
    """Precision and scale of a decimal, or of an integer as a decimal; a literal takes as many digits as it has."""
    if argument.type in INTEGERS:
        if argument.constant is not None and argument.constant[0] is not None:
            return max(len(str(abs(argument.constant[0]))), 1), 0
        return _DIGITS[str(argument.type)], 0
    digits = decimal_of(argument.type) if argument.type is not None else None
    if digits is None:
        raise ArgumentsNotSupported(f"{argument.type} is no exact number")
    return digits


def comparison_type(arguments: Sequence[Argument]) -> DataType:
    """The type in which Spark compares arguments. Raises ArgumentsNotSupported: none, or one that settings choose."""
    return _common_type(arguments, _pair_for_comparison)


def common_type(arguments: Sequence[Argument]) -> DataType:
    """The type of a value that is one of these arguments, or computed from them; raises as `comparison_type`."""
    return _common_type(arguments, _pair)


def _common_type(arguments: Sequence[Argument], pair: Callable[[Argument, Argument], DataType]) -> DataType:
    if any(argument.type is None for argument in arguments):
        raise ArgumentsNotSupported("an argument has an unknown type")
    typed = [argument for argument in arguments if argument.type != VOID]
    if not typed:
        return VOID
    meeting = typed[0]
    for argument in typed[1:]:
        kind = pair(meeting, argument)
        meeting = meeting if kind == meeting.type else Argument(kind)
    assert meeting.type is not None
    return meeting.type


def are_exact(kinds: Sequence[DataType | None], constants: Sequence[Any]) -> bool:
    """Whether Spark compares numbers of these types, some of which are these constants, exactly: it rounds numbers that
    need more than 38 digits together, casts integers to ``float``, and has a special rule for an integer against a
    decimal beyond ``long``.
    """
    exact = [kind for kind in kinds if kind in INTEGERS or (isinstance(kind, str) and decimal_of(kind))]
    digits = [digits_of(Argument(kind)) for kind in exact]
    whole, numbers = (
        any(kind in INTEGERS for kind in kinds),
        [constant for constant in constants if _is_numeric(constant)],
    )
    if digits and max(p - s for p, s in digits) + max(s for _, s in digits) > MOST_DIGITS:
        return False
    if whole and "float" in kinds and not all(abs(number) < FLOAT_INTEGERS for number in numbers):
        return False
    return not (whole and any(_is_beyond_long(number) for number in numbers))


def _is_beyond_long(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not -_BEYOND_LONG < value < _BEYOND_LONG


def _is_numeric(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _pair_for_comparison(left: Argument, right: Argument) -> DataType:
    """Spark compares a ``float`` and a small integer as one of two types; the result is the same."""
    constants = [argument.constant[0] for argument in (left, right) if argument.constant is not None]
    whole = left.type in INTEGERS or right.type in INTEGERS
    if whole and any(map(_is_beyond_long, constants)):
        raise ArgumentsNotSupported("Spark has a special rule for a whole number against such a decimal")
    for text, read in ((left, right), (right, left)):
        if text.type == "string" and text.constant is not None and _is_read(text.constant[0], read.type):
            return str(read.type)
    for exact, floating in ((left, right), (right, left)):
        value = None if exact.constant is None else exact.constant[0]
        if floating.type == "float" and exact.type in INTEGERS and value is not None and abs(value) <= FLOAT_INTEGERS:
            return "double"
    return _pair(left, right)


def _pair(left: Argument, right: Argument) -> DataType:
    a, b = left.type, right.type
    assert a is not None
    assert b is not None
    if a == b and not is_number(a):
        return a
    if a in MOMENTS and b in MOMENTS:
        return max(str(a), str(b), key=MOMENTS.index)
    if not (is_number(a) and is_number(b)):
        raise ArgumentsNotSupported(f"{format_type(a)} meets {format_type(b)}")
    return a if a == b else _number_type(left, right)


def _number_type(left: Argument, right: Argument) -> DataType:
    kinds = {str(left.type), str(right.type)}
    if kinds <= {*INTEGERS}:
        return max(kinds, key=INTEGERS.index)
    if "float" in kinds and "double" not in kinds and kinds & {*INTEGERS}:
        raise ArgumentsNotSupported("a float and a whole number have no common type")
    if kinds & {"float", "double"}:
        return "double"
    (p, s), (q, t) = digits_of(Argument(left.type)), digits_of(Argument(right.type))
    scale = max(s, t)
    return decimal(max(p - s, q - t) + scale, scale)


def is_date(text: str | tuple[Any] | None) -> bool:
    """Whether a text, or an argument's constant text, is a full date, which every session reads alike."""
    value = text[0] if isinstance(text, tuple) else text
    try:
        return isinstance(value, str) and date_of(value) is not None
    except TypeError:
        return False


def is_canonical_text(text: Any, kind: DataType | None) -> bool:
    """Whether a text spells a value of a type exactly as Spark does, so that equal values are equal texts."""
    if not isinstance(text, str):
        return False
    if kind in INTEGERS:
        return _INTEGER.fullmatch(text) is not None and abs(int(text)) >> WIDTHS[str(kind)] == 0
    return is_date(text) if kind == "date" else kind in MOMENTS and _CLOCK.fullmatch(text) is not None


def _is_read(text: Any, kind: DataType | None) -> bool:
    """Whether every session reads a text as the same value of a type."""
    if kind in MOMENTS[1:] and isinstance(text, str) and (parts := _LOCAL.fullmatch(text)):
        return is_date(parts[1]) and (parts[2] is None or kind == "timestamp")
    return is_canonical_text(text, kind)


def format_type(kind: DataType | None) -> str:
    """A type as error messages spell it."""
    return str(kind) if isinstance(kind, str | None) else type(kind).__name__.lower()
