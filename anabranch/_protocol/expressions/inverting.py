"""Inverting: what comparing a computed value with a literal says of the column that it is computed from.

``CAST(at AS DATE) >= '2020-01-02'`` says that ``at`` is not before midnight, ``id + 1 > 5`` that ``id`` is over 4.
Knows types and the inverses of the table's entries. Guarantee: what is said holds for every row, whatever the session's
settings. Where a zone's clocks leave a doubt, the bound is one that is certain and, with `Unknown`, one that is
possible; where integers may wrap, nothing is said.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor
from typing import Any, TypeAlias

from anabranch._protocol.expressions.casts import CAST
from anabranch._protocol.expressions.instants import instants_of, is_fixed, local_time, midnight
from anabranch._protocol.expressions.meeting import is_number
from anabranch._protocol.expressions.numbers import RANGES
from anabranch._protocol.expressions.table import Bound, Function, Varying, exactly
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
"""What is raised where nothing can be said."""


Zone: TypeAlias = dt.tzinfo | None


@dataclass(frozen=True)
class Bare:
    """A column of the table, or a member of one, by the name that it has there."""

    name: Name
    type: DataType


@dataclass(frozen=True)
class Computed:
    """A call of an entry that has an inverse; ``inner`` is the argument that varies."""

    entry: Function
    call: Varying
    inner: Bare | Computed

    @property
    def type(self) -> DataType:
        """Of the value."""
        return self.call.gives


Term: TypeAlias = Bare | Computed


def try_monotonic_term(entry: Function, call: Varying, inner: Term) -> Term | None:
    """A call, where its values keep the order of its argument's, or turn it round; else None."""
    if entry is CAST and call.gives == inner.type and call.gives != "timestamp":  # by a setting, that is a local time
        return inner
    fits = entry.inverse is not None and entry.inverse.fits(inner.type, call.gives)
    return Computed(entry, call, inner) if fits else None


def column_of(term: Term) -> Name:
    """The column that a term is computed from."""
    return term.name if isinstance(term, Bare) else column_of(term.inner)


def is_null(term: Term) -> Predicate:
    """``term IS NULL``."""
    return IsNull(column_of(term))


# -- comparing ---------------------------------------------------------------------------------------------------------


def invert_comparison(term: Term, op: Operator, value: Any, zone: Zone) -> Predicate:
    """``term op value`` as a predicate of the term's column; `Unknown` where nothing is known."""
    name = _plain_name(term)
    if term.type == VOID:  # NULL in each row
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
    """``term IN (values)``; beside a text Spark may compare another type as text."""
    name, known = _plain_name(term), [each for each in values if each is not None]
    if name is not None and all(_is_like(term.type, each) for each in known):
        are_exact = all(_is_exact(term, each) for each in known)
        return In(name, tuple(_as_in(term, each) for each in values)) if are_exact else Unknown()
    if len(values) > _MOST_VALUES or any(isinstance(each, str) for each in known):
        return Unknown()
    nothing = Compare(column_of(term), "=", None)
    return Or(tuple(nothing if value is None else invert_comparison(term, "=", value, zone) for value in values))


def _plain_name(term: Term) -> Name | None:
    """The column of a term that has the column's own values, perhaps in a wider type of number."""
    if isinstance(term, Bare):
        return term.name
    is_widened = term.entry is CAST and isinstance(term.inner, Bare) and is_number(term.type)
    return column_of(term) if is_widened else None


def _is_like(kind: DataType, value: Any) -> bool:
    """Whether a literal is compared with values of a type as one of them."""
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
    """Whether a number that is widened is compared with a literal as it was before."""
    return isinstance(term, Bare) or value is None or limit(Field("", term.type), "<", value) is not None


def _as_in(term: Term, value: Any) -> Any:
    return float(value) if isinstance(term, Computed) and term.type == "double" and value is not None else value


def _invert_by_order(term: Term, op: Operator, value: Any, zone: Zone) -> Predicate:
    term, point = _meeting(term, value, zone)
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


def _meeting(term: Term, value: Any, zone: Zone) -> tuple[Term, Bound]:
    """The term and the literal as the one type in which Spark compares them."""
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
    return Computed(CAST, Varying(term.type, to, zone=zone), term)


def _at(moment: dt.datetime) -> Bound:
    """An instant, as far as it is certain; or a local time without a zone."""
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
    is_vague = isinstance(value, str)  # by an old setting both are texts, where 00:00:00 is more than none
    if kind == "timestamp_ntz":
        return Bound(local, local, is_vague=is_vague)
    return Bound(*instants_of(local, zone), is_vague=is_vague)


# -- bounds ------------------------------------------------------------------------------------------------------------


def _at_least(term: Term, bound: Bound) -> Predicate:
    """``term >= bound``, or ``term > bound``: what is certain, or else what is possible."""
    if bound.early == bound.late and not bound.is_vague:
        return _from(term, bound.early, bound.is_strict)
    certain, possible = _from(term, bound.late, True), _from(term, bound.early, False)
    return Or((certain, And((possible, Unknown()))))


def _from(term: Term, value: Any, is_strict: bool) -> Predicate:
    if isinstance(term, Bare):
        return Compare(term.name, ">" if is_strict else ">=", value)
    if term.type in INTEGERS:
        value = floor(value) if is_strict else ceil(value)
    assert term.entry.inverse is not None
    bound = term.entry.inverse.bound(term.call, value, is_strict)
    if bound.falls:
        return Not(_at_least(term.inner, replace(bound, is_strict=not bound.is_strict)))
    return _at_least(term.inner, bound)


def _guard_overflow(term: Term, found: Predicate) -> Predicate:
    """The same, where no value wraps; where one may, nothing is known."""
    inside = And(tuple(_inside(term)))
    return Or((And((found, inside)), And((Not(inside), Unknown())))) if inside.ps else found


def _inside(term: Term) -> Iterator[Predicate]:
    """What has to hold for no value to wrap, at any step."""
    while isinstance(term, Computed):
        inverse, inner = term.entry.inverse, term.inner
        if inverse is not None and inverse.safe is not None:
            (low, high), (least, most) = inverse.safe(term.call), _range(inner)
            if least is None or least < low:
                yield _at_least(inner, exactly(low))
            if most is None or most > high:
                yield Not(_at_least(inner, exactly(high, is_strict=True)))
        term = inner


def _range(term: Term) -> tuple[int | None, int | None]:
    """The least and the greatest whole number that a term can be."""
    if isinstance(term, Computed) and term.entry is CAST and term.inner.type in INTEGERS:
        return _range(term.inner)
    return RANGES.get(str(term.type), (None, None))
