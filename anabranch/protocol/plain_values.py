"""Plain values: assigned values that are the same for every engine, and so need none. Pure.

Guarantee: where `are_plain` says so, a value is for each row just what Spark would store, whatever the session's
settings; or the computation leaves its type, which whoever computes it must notice, since there Spark's settings tell
whether that is an error.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Literal

from anabranch.protocol.exactness import FLOAT_INTEGERS
from anabranch.protocol.predicates import Value
from anabranch.protocol.rules.table_rules import LENGTH
from anabranch.protocol.schema.types import INTEGERS, Field, Struct, decimal_of

Operator = Literal["+", "-", "*"]

_TYPES = frozenset({*INTEGERS, "float", "double", "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"})
_LONG = 1 << 63
_DOUBLE_INTEGERS = 1 << 53
"""Up to here every whole number is a ``double``."""
_DOUBLE_DIGITS, _DOUBLE_TENS = 15, 22
"""A decimal of so many digits divided by so many tens has one nearest ``double``, which each language finds."""


@dataclass(frozen=True)
class Constant:
    """A literal; None is NULL."""

    value: Value | None


@dataclass(frozen=True)
class OldValue:
    """What the row holds in a column."""

    column: str


@dataclass(frozen=True)
class Computed:
    """A column with a number added, taken away, or multiplied."""

    column: str
    operator: Operator
    value: int | Decimal | float


PlainValue = Constant | OldValue | Computed


@dataclass(frozen=True)
class Assigned:
    """A value to be assigned: its SQL text, and what is known of it."""

    text: str
    plain: PlainValue

    def __str__(self) -> str:
        return self.text


def are_plain(assignments: Mapping[str, Any], schema: Struct) -> bool:
    """Whether every one of these values is plain for its column.

    Example:
        >>> id, x = Field("id", "long"), Field("x", "double")
        >>> are_plain({"x": Assigned("x + 1", Computed("x", "+", 1))}, Struct((id, x)))
        True
    """
    return all(
        isinstance(value, Assigned) and _fits(value.plain, schema.field(name), schema)
        for name, value in assignments.items()
    )


def are_plain_rows(rows: Sequence[Sequence[Constant]], columns: Sequence[Field]) -> bool:
    """Whether the literals of a VALUES are plain for these columns.

    Spark makes one type of all literals in a column before it stores them, so literals of several kinds are not plain.
    (Decimals of one column always have a common type: what is before their points and behind has room together.)

    Example:
        >>> are_plain_rows([[Constant(1)], [Constant(None)]], [Field("id", "long")])
        True
    """
    if not all(_fits(value, field, Struct(())) for row in rows for value, field in zip(row, columns, strict=True)):
        return False
    found = [[each.value for each in column if each.value is not None] for column in zip(*rows, strict=True)]
    return all(len({type(each) for each in column}) < 2 for column in found)


def is_plain_column(field: Field) -> bool:
    """Whether files hold the values of a column as they are: it is of no nested type, and looks at no length."""
    is_flat = isinstance(field.type, str) and (field.type in _TYPES or decimal_of(field.type) is not None)
    return is_flat and LENGTH not in field.metadata


def _fits(value: PlainValue, field: Field, schema: Struct) -> bool:
    if not (is_plain_column(field) and isinstance(field.type, str)):
        return False
    match value:
        case Constant(None):
            return True
        case Constant(constant):
            return _is_of(field.type, constant)
        case OldValue(column):
            other = schema.field(column)
            return other.type == field.type and LENGTH not in other.metadata
        case Computed(column, _, number):
            return schema.field(column).type == field.type and _computes(field.type, number)
    return False


def _is_of(kind: str, value: Any) -> bool:
    """Whether a column of this type holds this very value."""
    match value:
        case bool():
            return kind == "boolean"
        case int() if kind in INTEGERS:
            return -_LONG <= value < _LONG  # a narrower column's own range is looked at where the value is made
        case int() if kind == "float":
            return abs(value) <= FLOAT_INTEGERS
        case int() | Decimal() | float() if kind == "double":
            return _is_double(value)
        case int() | Decimal():
            return _has_room(kind, Decimal(value))
        case str():
            return kind == "string"
        case dt.datetime():
            return kind == "timestamp" and value.tzinfo == dt.UTC
        case dt.date():
            return kind == "date"
    return False


def _computes(kind: str, value: int | Decimal | float) -> bool:
    """Whether a column of this type and this number have a result of the same type."""
    if kind == "double":
        return _is_double(value)
    return kind in INTEGERS and type(value) is int and -_LONG <= value < _LONG


def _is_double(value: int | Decimal | float) -> bool:
    """Whether every language makes the same ``double`` of a literal."""
    match value:
        case bool():
            return False
        case int():
            return abs(value) <= _DOUBLE_INTEGERS
        case Decimal():
            digits, exponent = value.as_tuple()[1:]
            return len(digits) <= _DOUBLE_DIGITS and isinstance(exponent, int) and -_DOUBLE_TENS <= exponent <= 0
    return isfinite(value)


def _has_room(kind: str, value: Decimal) -> bool:
    room = decimal_of(kind)
    if room is None:
        return False
    precision, scale = room
    return -int(value.as_tuple().exponent) <= scale and (not value or value.adjusted() + 1 <= precision - scale)
