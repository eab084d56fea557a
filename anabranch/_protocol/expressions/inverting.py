"""Inverting: turns a comparison of a computed value with a literal into a predicate of the underlying column.

``CAST(at AS DATE) >= '2020-01-02'`` implies that ``at`` is not before midnight, ``id + 1 > 5`` that ``id`` is over 4.
Knows types and the inverses of the table's entries. Guarantee: a predicate holds for every row, whatever the session's
settings. If a time zone leaves the bound uncertain, the result combines a certain bound and, with `Unknown`, a possible
one; if integers may wrap, it is `Unknown`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor
from typing import Any, TypeAlias

from anabranch._protocol.expressions.casts import CAST
from anabranch._protocol.expressions.common_types import is_number
from anabranch._protocol.expressions.instants import instants_of, is_fixed, local_time, midnight
from anabranch._protocol.expressions.numbers import RANGES
from anabranch._protocol.expressions.table import Bound, Function, UnaryCall, exactly
from anabranch._protocol.predicates import (
    And,
    Compare,
    In,
    IsNull,
    Name,
    Not,
    Operator,
    Or,
    Predicate,
    Unknown,
    date_of,
)
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, Field
from anabranch._protocol.stats.literals import limit

_MOST_VALUES = 64
_ERRORS = (ArithmeticError, ValueError, TypeError)
"""Errors of an inverse that mean an unknown bound."""


Zone: TypeAlias = dt.tzinfo | None


@dataclass(frozen=True)
class ColumnTerm:
    """A column of the table, or a member of one, by its name in the table."""

    name: Name
    type: DataType


@dataclass(frozen=True)
class CallTerm:
    """A call of an entry that has an inverse; ``inner`` is the varying argument."""

    entry: Function
    call: UnaryCall
    inner: ColumnTerm | CallTerm

    @property
    def type(self) -> DataType:
        """The type of the value."""
        return self.call.gives


Term: TypeAlias = ColumnTerm | CallTerm


def try_monotonic_term(entry: Function, call: UnaryCall, inner: Term) -> Term | None:
    """A call, if it is monotonic in its argument; else None."""
    if (
        entry is CAST and call.gives == inner.type and call.gives != "timestamp"
    ):  # by a setting, TIMESTAMP is a local time
        return inner
    fits = entry.inverse is not None and entry.inverse.fits(inner.type, call.gives)
    return CallTerm(entry, call, inner) if fits else None


def column_of(term: Term) -> Name:
    """The underlying column of a term."""
    return term.name if isinstance(term, ColumnTerm) else column_of(term.inner)


def is_null(term: Term) -> Predicate:
    """``term IS NULL``."""
    return IsNull(column_of(term))


# -- comparing ---------------------------------------------------------------------------------------------------------


def invert_comparison(term: Term, op: Operator, value: Any, zone: Zone) -> Predicate:
    """``term op value`` as a predicate of the term's column; `Unknown` if no bound is known."""
    name = _plain_name(term)
    if term.type == VOID:  # NULL in every row
        return Compare(column_of(term), op, value)
    if name is not None and (value is None or _is_like(term.type, value)):
        return Compare(name, op, _as_in(term, value)) if _is_exact(term, value) else Unknown()
    if value is None:
        return Unknown()
    try:
        return _invert_by_order(term, op, value, zone)
    except _ERRORS:
        return Unknown()


def is_one_of(term: Term, values: Sequence[Any], zone: Zone) -> Predicate:
    """``term IN (values)``; Spark may compare other types with a text as texts."""
    name, literals = _plain_name(term), [literal for literal in values if literal is not None]
    if name is not None and all(_is_like(term.type, literal) for literal in literals):
        are_exact = all(_is_exact(term, literal) for literal in literals)
        return In(name, tuple(_as_in(term, literal) for literal in values)) if are_exact else Unknown()
    if len(values) > _MOST_VALUES or any(isinstance(literal, str) for literal in literals):
        return Unknown()
    nothing = Compare(column_of(term), "=", None)
    return Or(tuple(nothing if value is None else invert_comparison(term, "=", value, zone) for value in values))


def _plain_name(term: Term) -> Name | None:
    """The column of a term that has the column's own values, or the same numbers in a wider type."""
    if isinstance(term, ColumnTerm):
        return term.name
    is_widened = term.entry is CAST and isinstance(term.inner, ColumnTerm) and is_number(term.type)
    return column_of(term) if is_widened else None


def _is_like(kind: DataType, value: Any) -> bool:
    """Whether Spark compares a literal with values of a type in that type."""
    if is_number(kind):
        return isinstance(value, int | Decimal | float) and not isinstance(value, bool)
    match kind, value:
        case ("string", str()) | ("boolean", bool()):
            return True
        case "date", dt.date():
            return not isinstance(value, dt.datetime)
        case "timestamp", dt.datetime():
            return is_fixed(value.tzinfo)
    return kind == "timestamp_ntz" and isinstance(value, dt.datetime) and value.tzinfo is None


def _is_exact(term: Term, value: Any) -> bool:
    """Whether widening a number leaves its comparison with a literal unchanged."""
    return isinstance(term, ColumnTerm) or value is None or limit(Field("", term.type), "<", value) is not None


def _as_in(term: Term, value: Any) -> Any:
    return float(value) if isinstance(term, CallTerm) and term.type == "double" and value is not None else value


def _invert_by_order(term: Term, op: Operator, value: Any, zone: Zone) -> Predicate:
    term, point = _cast_both(term, value, zone)
    return _guard_overflow(term, _by_order(term, op, point))


def _by_order(term: Term, op: Operator, point: Bound) -> Predicate:
    reached = _at_least(term, point)
    if op in (">=", "<"):
        return reached if op == ">=" else Not(reached)
    over = _at_least(term, replace(point, is_strict=True))
    if op in (">", "<="):
        return over if op == ">" else Not(over)
    same = And((reached, Not(over)))
    if op == "<=>":
        return And((Not(is_null(term)), same))
    return same if op == "=" else Not(same)


def _cast_both(term: Term, value: Any, zone: Zone) -> tuple[Term, Bound]:
    """Cast the term and the literal to the type in which Spark compares them."""
    match term.type, value:
        case "date", str():
            return term, exactly(date_of(value))
        case "date", dt.datetime():
            return _cast_term(term, "timestamp_ntz" if value.tzinfo is None else "timestamp", zone), _at(value)
        case "timestamp_ntz", dt.datetime() if value.tzinfo is not None:
            return _cast_term(term, "timestamp", zone), _at(value)
        case "date", dt.date():
            return term, exactly(value)
        case (("timestamp" | "timestamp_ntz"), (dt.date() | str())):
            return term, _moment(term.type, value, zone)
    if not (is_number(term.type) and _is_like(term.type, value)):
        raise TypeError(value)
    return term, exactly(value)


def _cast_term(term: Term, to: str, zone: Zone) -> Term:
    return CallTerm(CAST, UnaryCall(term.type, to, zone=zone), term)


def _at(moment: dt.datetime) -> Bound:
    """An instant with its uncertainty, or a local time without a zone."""
    if moment.tzinfo is None or is_fixed(moment.tzinfo):
        return exactly(moment)
    return Bound(*instants_of(moment.replace(tzinfo=None), moment.tzinfo))


def _moment(kind: DataType, value: Any, zone: Zone) -> Bound:
    if isinstance(value, dt.datetime):
        local = value
    elif isinstance(value, dt.date):
        local = midnight(value)
    else:
        local = local_time(value)
    if local.tzinfo is not None:
        return _at(local)
    is_vague = isinstance(value, str)  # by an old setting Spark compares texts, where 00:00:00 is more than no time
    if kind == "timestamp_ntz":
        return Bound(local, local, is_vague=is_vague)
    return Bound(*instants_of(local, zone), is_vague=is_vague)


# -- bounds ------------------------------------------------------------------------------------------------------------


def _at_least(term: Term, bound: Bound) -> Predicate:
    """``term >= bound``, or ``term > bound``: the certain bound, or else the possible one."""
    if bound.early == bound.late and not bound.is_vague:
        return _from(term, bound.early, bound.is_strict)
    certain, possible = _from(term, bound.late, True), _from(term, bound.early, False)
    return Or((certain, And((possible, Unknown()))))


def _from(term: Term, value: Any, is_strict: bool) -> Predicate:
    if isinstance(term, ColumnTerm):
        return Compare(term.name, ">" if is_strict else ">=", value)
    if term.type in INTEGERS:
        value = floor(value) if is_strict else ceil(value)
    assert term.entry.inverse is not None
    bound = term.entry.inverse.bound(term.call, value, is_strict)
    if bound.falls:
        return Not(_at_least(term.inner, replace(bound, is_strict=not bound.is_strict)))
    return _at_least(term.inner, bound)


def _guard_overflow(term: Term, predicate: Predicate) -> Predicate:
    """The same predicate where no value wraps, `Unknown` where one may."""
    inside = And(tuple(_inside(term)))
    return Or((And((predicate, inside)), And((Not(inside), Unknown())))) if inside.ps else predicate


def _inside(term: Term) -> Iterator[Predicate]:
    """Yield the conditions under which no value wraps, at any step."""
    while isinstance(term, CallTerm):
        inverse, inner = term.entry.inverse, term.inner
        if inverse is not None and inverse.safe is not None:
            (low, high), (least, most) = inverse.safe(term.call), _range(inner)
            if least is None or least < low:
                yield _at_least(inner, exactly(low))
            if most is None or most > high:
                yield Not(_at_least(inner, exactly(high, is_strict=True)))
        term = inner


def _range(term: Term) -> tuple[int | None, int | None]:
    """The least and the greatest integer that a term can be."""
    if isinstance(term, CallTerm) and term.entry is CAST and term.inner.type in INTEGERS:
        return _range(term.inner)
    return RANGES.get(str(term.type), (None, None))
