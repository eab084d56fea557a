"""Predicates: what a condition implies for rows, as far as it is certain without running it.

Knows SQL's three truth values and Spark's order of values. Knows nothing of SQL text, files or statistics. Pure.
Guarantee: `holds` is the meaning of a predicate; `normal_form` keeps that meaning for every row, `truth_form` keeps the
rows for which it is TRUE.

A column is in the schema's spelling: a top-level one by its name, a member of a struct by its path. An uncertain part
is `Unknown`, never a guess: a predicate is at most as exact as its condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from math import isnan
from typing import Any, Literal, TypeAlias

Value: TypeAlias = int | Decimal | float | str | bool | date | datetime | None
"""A literal: an aware datetime is a ``timestamp``, a naive one a ``timestamp_ntz``, a float a ``double``, None NULL."""

Operator = Literal["=", "<=>", "<", "<=", ">", ">=", "!="]

Name: TypeAlias = str | tuple[str, ...]
"""A top-level column by its name, which may contain dots, or a member of structs by its path."""


@dataclass(frozen=True)
class Always:
    """TRUE or FALSE for every row."""

    value: bool


@dataclass(frozen=True)
class Unknown:
    """An unknown truth value: TRUE, FALSE or NULL, row by row."""


@dataclass(frozen=True)
class Compare:
    """``column op value``; NULL when either side is NULL, except for ``<=>``."""

    column: Name
    op: Operator
    value: Value


@dataclass(frozen=True)
class In:
    """``column IN (values)``; without values, FALSE for every row, even for NULL."""

    column: Name
    values: tuple[Value, ...]


@dataclass(frozen=True)
class IsNull:
    """``column IS NULL``."""

    column: Name


@dataclass(frozen=True)
class StartsWith:
    """``column LIKE 'prefix%'`` for a prefix without wildcards."""

    column: Name
    prefix: str


@dataclass(frozen=True)
class Not:
    """Negation; NULL stays NULL."""

    p: Predicate


@dataclass(frozen=True)
class And:
    """Conjunction; TRUE without parts."""

    ps: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """Disjunction; FALSE without parts."""

    ps: tuple[Predicate, ...]


Predicate: TypeAlias = Always | Unknown | Compare | In | IsNull | StartsWith | Not | And | Or


def names_of(predicate: Predicate) -> frozenset[Name]:
    """The columns and members of columns in the known part of a predicate."""
    if isinstance(predicate, Not):
        return names_of(predicate.p)
    if isinstance(predicate, And | Or):
        return frozenset().union(*map(names_of, predicate.ps))
    return frozenset() if isinstance(predicate, Always | Unknown) else frozenset({predicate.column})


def is_whole(predicate: Predicate) -> bool:
    """Whether every part of a predicate is known."""
    if isinstance(predicate, Not):
        return is_whole(predicate.p)
    if isinstance(predicate, And | Or):
        return all(map(is_whole, predicate.ps))
    return not isinstance(predicate, Unknown)


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The top-level columns in the known part of a predicate."""
    return frozenset(name if isinstance(name, str) else name[0] for name in names_of(predicate))


def value_at(row: Mapping[str, Any], name: Name) -> Any:
    """The value of a column, or of a member of one, in a row; None inside a struct that is NULL."""
    if isinstance(name, str):
        return row[name]
    value: Any = row
    for step in name:
        value = None if value is None else value[step]
    return value


# -- forms -------------------------------------------------------------------------------------------------------------

_MANY = 20
_FLIPPED: Mapping[str, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def normal_form(predicate: Predicate) -> Predicate:
    """The same truth value for every row, with NOT only around `In`, `IsNull` and `StartsWith`.

    Example:
        >>> normal_form(Not(And((Compare("x", ">", 5), Unknown()))))
        Or(ps=(Compare(column='x', op='<=', value=5), Unknown()))
    """
    if isinstance(predicate, And | Or):
        return type(predicate)(tuple(map(normal_form, predicate.ps)))
    return negate(predicate.p) if isinstance(predicate, Not) else predicate


def negate(predicate: Predicate) -> Predicate:
    """The normal form of ``NOT predicate``."""
    match predicate:
        case Not(inner):
            return normal_form(inner)
        case And(parts):
            return Or(tuple(map(negate, parts)))
        case Or(parts):
            return And(tuple(map(negate, parts)))
        case Always(value):
            return Always(not value)
        case Unknown():
            return predicate
        case Compare(column, "<=>", value):
            return Not(IsNull(column)) if value is None else Or((IsNull(column), Compare(column, "!=", value)))
        case Compare(column, op, value):
            return Compare(column, _FLIPPED[op], value)
    return Not(predicate)


def truth_form(predicate: Predicate) -> Predicate:
    """A normal form that is TRUE for the same rows, in which every leaf is NULL exactly where its column is.

    No literal in it is NULL, and there is no ``<=>``; where ``predicate`` is NULL, the result may also be FALSE.
    `IsNull` is never NULL, as always.

    Example:
        >>> truth_form(Not(In("x", (1, None))))
        Always(value=False)
    """
    return _true_rows(normal_form(predicate))


def _true_rows(predicate: Predicate) -> Predicate:
    match predicate:
        case And(parts):
            return And(_collapse_comparisons([_true_rows(part) for part in parts], "!="))
        case Or(parts):
            return Or(_collapse_comparisons([_true_rows(part) for part in parts], "="))
        case Compare(column, "<=>", None):
            return IsNull(column)
        case Compare(_, _, None):
            return Always(False)
        case Compare(column, "<=>", value):
            return Compare(column, "=", value)
        case In(column, values):
            non_null = tuple(value for value in values if value is not None)
            return In(column, non_null) if non_null else Always(False)
        case Not(In(_, values)) if None in values or not values:
            return Always(not values)  # NOT IN () is TRUE even for NULL
    return predicate


def _collapse_comparisons(parts: Sequence[Predicate], op: Operator) -> tuple[Predicate, ...]:
    """The parts of a long OR, with ``=`` comparisons of one column as one `In`, so that thousands cost no more than
    one; of a long AND, with ``!=`` comparisons as the negation of one.
    """
    if len(parts) < _MANY:
        return tuple(parts)
    alike: dict[tuple[Name, type], list[Value]] = {}
    remaining: list[Predicate] = []
    for part in parts:
        if isinstance(part, Compare) and part.op == op:
            alike.setdefault((part.column, type(part.value)), []).append(part.value)
        else:
            remaining.append(part)
    lists = [In(column, tuple(values)) for (column, _), values in alike.items()]
    return (*remaining, *(member_list if op == "=" else Not(member_list) for member_list in lists))


# -- meaning -----------------------------------------------------------------------------------------------------------

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def holds(predicate: Predicate, row: Mapping[str, Any]) -> bool | None:
    """The truth value of a predicate for one row, as Spark evaluates it; None is NULL.

    NaN equals NaN and is greater than every other number; -0.0 equals 0.0; strings compare by their UTF-8 bytes; a
    number meets a float as a double; a date meets a string that is a date. Raises `ValueError` for `Unknown`, which
    has no meaning of its own, and `TypeError` for values of kinds that are never compared.

    Example:
        >>> holds(Not(In("x", (1, None))), {"x": 2}) is None
        True
    """
    match predicate:
        case Always(value):
            return value
        case Not(inner):
            return _not(holds(inner, row))
        case And(parts):
            return _not(_any(_not(holds(part, row)) for part in parts))
        case Or(parts):
            return _any(holds(part, row) for part in parts)
        case IsNull(column):
            return value_at(row, column) is None
        case StartsWith(column, prefix):
            text = value_at(row, column)
            return None if text is None else text.startswith(prefix)
        case In(column, values):
            return _any(compare_values(value_at(row, column), "=", value) for value in values)
        case Compare(column, op, value):
            return compare_values(value_at(row, column), op, value)
    raise ValueError("Unknown has no truth value")


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _any(truths: Iterable[bool | None]) -> bool | None:
    values = list(truths)
    return True if True in values else None if None in values else False


def compare_values(left: Value, op: Operator, right: Value) -> bool | None:
    """``left op right`` as Spark compares values; None is NULL. Errors as `holds`."""
    if left is None or right is None:
        return (left is right) if op == "<=>" else None
    sign = _order(left, right)
    match op:
        case "=" | "<=>":
            return sign == 0
        case "!=":
            return sign != 0
        case "<":
            return sign < 0
        case "<=":
            return sign <= 0
        case ">":
            return sign > 0
        case ">=":
            return sign >= 0


def _order(left: Value, right: Value) -> int:
    """Negative, 0 or positive as left is before, equal to or after right."""
    if _is_number(left) and _is_number(right):
        if isinstance(left, float) or isinstance(right, float):
            return _sign(_double_key(left), _double_key(right))
        return _sign(left, right)
    if isinstance(left, str) and isinstance(right, str):
        return _sign(left.encode(), right.encode())
    left, right = _as_date(left, right), _as_date(right, left)
    if type(left) is not type(right):
        raise TypeError(f"{type(left).__name__} and {type(right).__name__} are never compared")
    return _sign(left, right)


def _sign(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _double_key(value: Any) -> tuple[bool, float]:
    double = float(value)
    return (True, 0.0) if isnan(double) else (False, double)


def _as_date(value: Value, other: Value) -> Value:
    """Convert a string to a date if it is compared with a date; any other value is unchanged."""
    return date_of(value) if isinstance(value, str) and type(other) is date else value


def date_of(text: str) -> date:
    """The date in a strict ``YYYY-MM-DD``; raises `TypeError` for any other text."""
    try:
        return date.fromisoformat(text if _DATE.fullmatch(text) else "")
    except ValueError:
        raise TypeError(f"{text!r} is not a date") from None
