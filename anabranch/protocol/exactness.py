"""Exactness: whether a predicate means for every row just what its condition means to Spark. Pure.

Guarantee: comparisons that are called exact lose nothing of either side, whatever the session's settings.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import isinf

from anabranch.protocol.predicates import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Value,
    date_of,
)
from anabranch.protocol.schema.types import INTEGERS, Struct, decimal_of

_MAX_DIGITS = 38
FLOAT_INTEGERS = 1 << 24
"""Up to here every whole number is a ``float``."""


def is_exact(predicate: Predicate, schema: Struct) -> bool:
    """Whether every part of a predicate is known, and compares top-level columns with literals that Spark would not
    have to change for that.

    Example:
        >>> is_exact(Compare("id", "=", 5), Struct((Field("id", "long"),)))
        True
    """
    match predicate:
        case Always():
            return True
        case Not(inner):
            return is_exact(inner, schema)
        case And(parts) | Or(parts):
            return all(is_exact(part, schema) for part in parts)
        case IsNull(str()):
            return True
        case StartsWith(str(column), _):
            return schema.field(column).type == "string"
        case Compare(str(column), _, value):
            return _meets(str(schema.field(column).type), value)
        case In(str(column), values):
            return len({type(value) for value in values}) == 1 and _meet(str(schema.field(column).type), values)
    return False


def _meet(column: str, values: Sequence[Value]) -> bool:
    """The same of several literals, which meet the column, and each other, in one type."""
    whole = [Decimal(each) for each in values if isinstance(each, int | Decimal)]
    fit = not whole or column in ("float", "double", "boolean") or all(_digits(column, *whole))
    return fit and all(_meets(column, value) for value in values)


def _meets(column: str, value: Value) -> bool:
    """Whether Spark compares a column of this type with this literal without losing anything of either."""
    match value:
        case bool():
            return column == "boolean"
        case int() if column == "float":
            return abs(value) <= FLOAT_INTEGERS  # Spark may compare them as floats
        case int() | Decimal() if column in ("float", "double"):
            return _is_decimal(Decimal(value))
        case int() | Decimal():
            return all(_digits(column, Decimal(value)))
        case float():
            return column == "double" and not isinf(value)  # Spark does not take a text of such a number
        case str():
            return column == "string" or (column == "date" and _is_date(value))
        case dt.datetime():
            return column == "timestamp" and value.tzinfo is not None
        case dt.date():
            return column == "date"
    return False


def _digits(column: str, *values: Decimal) -> Iterator[bool]:
    """Whether the column is an exact number, and a type that holds all of these has room."""
    precision, scale = (20, 0) if column in INTEGERS else decimal_of(column) or (_MAX_DIGITS + 1, 0)
    before, after = [precision - scale], [scale]
    for value in values:
        before.append(value.adjusted() + 1)
        after.append(-int(value.as_tuple().exponent))
    yield precision <= _MAX_DIGITS
    yield max(before) + max(after) <= _MAX_DIGITS


def _is_decimal(value: Decimal) -> bool:
    """Whether Spark takes a literal of these digits at all."""
    scale = max(-int(value.as_tuple().exponent), 0)
    return max(value.adjusted() + 1, 0) + scale <= _MAX_DIGITS


def _is_date(text: str) -> bool:
    try:
        return bool(date_of(text))
    except TypeError:
        return False
