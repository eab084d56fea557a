"""Inverting: turns a comparison of a monotonic term with a literal into a predicate of the term's column.

A term is a column, or a monotonic call of a term. ``id + 1 > 5``, for example, becomes ``id > 4`` in these steps:

1. Cast both sides to the type in which Spark compares them (`_cast_both`), so that the literal is a lower bound.
2. Express the operator by lower bounds, at the literal and over it (`_by_order`).
3. Take preimages from the outermost call to the column (`_is_within`); `monotonic` draws them.
4. Where integers may wrap, allow every value (`_guard_overflow`).

A comparison of a column with a literal of its own type needs none of them.

Guarantee: a predicate holds for every row, whatever the session's settings. Where a time zone leaves a preimage
uncertain, the predicate is `Unknown` between its possible and its certain part.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor
from typing import Any, TypeAlias

from anabranch._protocol.expressions.casts import CAST_INVERSE
from anabranch._protocol.expressions.common_types import is_number
from anabranch._protocol.expressions.instants import instants_of, is_fixed, local_time, midnight
from anabranch._protocol.expressions.monotonic import (
    Bound,
    Inverse,
    LowerBound,
    Preimage,
    UnaryCall,
    UpperBound,
    between,
    exactly,
    roughly,
)
from anabranch._protocol.expressions.numbers import RANGES
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
    """A call that is monotonic in its varying argument, ``inner``."""

    inverse: Inverse
    call: UnaryCall
    inner: ColumnTerm | CallTerm

    @property
    def type(self) -> DataType:
        """The type of the value."""
        return self.call.gives

    @property
    def is_cast(self) -> bool:
        """Whether it is a cast."""
        return self.inverse is CAST_INVERSE


Term: TypeAlias = ColumnTerm | CallTerm


def try_monotonic_term(inverse: Inverse | None, call: UnaryCall, inner: Term) -> Term | None:
    """A call, if it is monotonic in its argument; else None."""
    if inverse is CAST_INVERSE and call.gives == inner.type != "timestamp":  # by a setting, that is a local time
        return inner
    return CallTerm(inverse, call, inner) if inverse is not None and inverse.fits(inner.type, call.gives) else None


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
    is_widened = term.is_cast and is_number(term.type) and is_number(term.inner.type)
    return column_of(term) if is_widened and isinstance(term.inner, ColumnTerm) else None


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
    term, reaching = _cast_both(term, value, zone)
    return _guard_overflow(term, _by_order(term, op, reaching))


def _by_order(term: Term, op: Operator, reaching: Preimage) -> Predicate:
    """``term op literal``, from the values that are at least the literal."""
    at_least = _is_in(term, reaching)
    if op in (">=", "<"):
        return at_least if op == ">=" else Not(at_least)
    over = _is_in(term, reaching.open())
    if op in (">", "<="):
        return over if op == ">" else Not(over)
    same = And((at_least, Not(over)))
    if op == "<=>":
        return And((Not(is_null(term)), same))
    return same if op == "=" else Not(same)


def _cast_both(term: Term, value: Any, zone: Zone) -> tuple[Term, Preimage]:
    """Cast the term to the type in which Spark compares it with the literal; returns its values from the literal on."""
    match term.type, value:
        case "date", str():
            return term, exactly(LowerBound(date_of(value)))
        case "date", dt.datetime():
            return _cast_term(term, "timestamp_ntz" if value.tzinfo is None else "timestamp", zone), _from(value)
        case "timestamp_ntz", dt.datetime() if value.tzinfo is not None:
            return _cast_term(term, "timestamp", zone), _from(value)
        case "date", dt.date():
            return term, exactly(LowerBound(value))
        case (("timestamp" | "timestamp_ntz"), (dt.date() | str())):
            return term, _from_literal(term.type, value, zone)
    if not (is_number(term.type) and _is_like(term.type, value)):
        raise TypeError(value)
    return term, exactly(LowerBound(value))


def _cast_term(term: Term, to: str, zone: Zone) -> Term:
    return CallTerm(CAST_INVERSE, UnaryCall(term.type, to, zone=zone), term)


def _from(moment: dt.datetime) -> Preimage:
    """The timestamps from a literal on, which is an instant, a local time, or a local time of a zone."""
    if moment.tzinfo is None or is_fixed(moment.tzinfo):
        return exactly(LowerBound(moment))
    return between(*instants_of(moment.replace(tzinfo=None), moment.tzinfo))


def _from_literal(kind: DataType, value: Any, zone: Zone) -> Preimage:
    """The timestamps of a type from a literal of another type on."""
    if isinstance(value, str):  # by an old setting Spark compares texts, where 00:00:00 is more than no time
        local = local_time(value)
        return roughly(local, local) if kind == "timestamp_ntz" else roughly(*instants_of(local, zone))
    local = value if isinstance(value, dt.datetime) else midnight(value)
    if local.tzinfo is not None or kind == "timestamp_ntz":
        return _from(local)
    return between(*instants_of(local, zone))


# -- bounds ------------------------------------------------------------------------------------------------------------


def _is_in(term: Term, values: Preimage) -> Predicate:
    """Whether a term is in a set of values; uncertain where that set is."""
    certain = _is_within(term, values.certain)
    return certain if values.is_exact else Or((certain, And((_is_within(term, values.possible), Unknown()))))


def _is_within(term: Term, bound: Bound) -> Predicate:
    """Whether a term is within a bound, as a predicate of its column."""
    if isinstance(bound, UpperBound):
        return Not(_is_within(term, bound.complement))
    if term.type in INTEGERS:
        bound = replace(bound, value=floor(bound.value) if bound.is_open else ceil(bound.value))
    if isinstance(term, ColumnTerm):
        return Compare(term.name, ">" if bound.is_open else ">=", bound.value)
    return _is_in(term.inner, term.inverse.preimage(term.call, bound))


def _guard_overflow(term: Term, predicate: Predicate) -> Predicate:
    """The same predicate where no value wraps, `Unknown` where one may."""
    inside = And(tuple(_in_domains(term)))
    return Or((And((predicate, inside)), And((Not(inside), Unknown())))) if inside.ps else predicate


def _in_domains(term: Term) -> Iterator[Predicate]:
    """Yield the conditions under which no value wraps, at any step."""
    while isinstance(term, CallTerm):
        inverse, call, term = term.inverse, term.call, term.inner
        if inverse.domain is not None:
            (first, last), (least, most) = inverse.domain(call), _range(term)
            if least is None or least < first:
                yield _is_within(term, LowerBound(first))
            if most is None or most > last:
                yield _is_within(term, UpperBound(last))


def _range(term: Term) -> tuple[int | None, int | None]:
    """The least and the greatest integer that a term can be."""
    if isinstance(term, CallTerm) and term.is_cast and term.inner.type in INTEGERS:
        return _range(term.inner)
    return RANGES.get(str(term.type), (None, None))
