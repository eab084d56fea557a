"""Exact texts: SQL whose meaning for every row is certain without asking Spark.

Guarantee: a predicate from here has for each row the truth value that Spark would find, whatever the session's
settings; where there is any doubt (a kind of literal that Spark would cast, a clock, a function) there is none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from anabranch.expressions.context import Context
from anabranch.expressions.dialect import TokenizedText
from anabranch.expressions.trees import known_tree, literal_of, predicate_of
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
_FLOAT_INTEGERS = 1 << 24
"""Up to here every whole number is a ``float``."""


def exact_predicate(text: str, schema: Struct) -> Predicate | None:
    """What a condition is for each row; None where that is not certain.

    Example:
        >>> exact_predicate("id > 0", Struct((Field("id", "long"),)))
        Compare(column='id', op='>', value=0)
    """
    context = _context(schema)
    predicate = predicate_of(known_tree(TokenizedText(text), context), context)
    return predicate if _is_exact(predicate, schema) else None


def exact_literal(text: str) -> tuple[Any] | None:
    """The value of a literal in a tuple of one (it may be NULL), or None where the text is none for certain."""
    context = _context(Struct())
    tree = known_tree(TokenizedText(text), context)
    return None if tree is None else literal_of(tree, context)


def _context(schema: Struct) -> Context:
    """No zone is known, so that no literal that needs one is read."""
    return Context("", schema, dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "unknown", lambda names: False)


def _is_exact(predicate: Predicate, schema: Struct) -> bool:
    match predicate:
        case Always():
            return True
        case Not(inner):
            return _is_exact(inner, schema)
        case And(parts) | Or(parts):
            return all(_is_exact(part, schema) for part in parts)
        case IsNull(str()):
            return True
        case StartsWith(str(column), _):
            return schema.field(column).type == "string"
        case Compare(str(column), _, value):
            return _meets(str(schema.field(column).type), value)
        case In(str(column), values):
            kinds = {type(value) for value in values}
            return len(kinds) == 1 and all(_meets(str(schema.field(column).type), value) for value in values)
    return False


def _meets(column: str, value: Value) -> bool:
    """Whether Spark compares a column of this type with this literal without losing anything of either."""
    match value:
        case bool():
            return column == "boolean"
        case int() if column == "float":
            return abs(value) <= _FLOAT_INTEGERS  # Spark may compare them as floats
        case int() | Decimal() if column in ("float", "double"):
            return True
        case int() | Decimal():
            return all(_digits(column, Decimal(value)))
        case float():
            return column == "double"
        case str():
            return column == "string" or (column == "date" and _is_date(value))
        case dt.datetime():
            return column == "timestamp" and value.tzinfo is not None
        case dt.date():
            return column == "date"
    return False


def _digits(column: str, value: Decimal) -> Iterator[bool]:
    """Whether the column is an exact number, and a type that holds both has room."""
    precision, scale = (20, 0) if column in INTEGERS else decimal_of(column) or (_MAX_DIGITS + 1, 0)
    exponent = int(value.as_tuple().exponent)
    yield precision <= _MAX_DIGITS
    yield max(precision - scale, value.adjusted() + 1) + max(scale, -exponent, 0) <= _MAX_DIGITS


def _is_date(text: str) -> bool:
    try:
        return bool(date_of(text))
    except TypeError:
        return False
