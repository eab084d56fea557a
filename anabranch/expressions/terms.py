"""Terms: what is computed from one column, and what comparing it says of the column itself.

``CAST(at AS DATE) >= '2020-01-02'`` says that ``at`` is not before midnight. Each function known here never falls where
its argument rises, so a bound on its value is a bound on its argument; NULL it is exactly where its column is. Where a
zone's clocks leave a doubt, the bound is one that is certain and, with `Unknown`, one that is possible.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor, isfinite
from typing import Any

from anabranch.expressions import instants
from anabranch.protocol.predicates import And, Compare, IsNull, Name, Not, Or, Predicate, Unknown, date_of
from anabranch.protocol.schema.types import INTEGERS, Field, upcastable
from anabranch.protocol.stats.literals import limit

_CLOCK = re.compile(r"\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
_MOST_VALUES = 64
_MOMENTS = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Column:
    """A column, or a member of one."""

    name: Name
    type: str


@dataclass(frozen=True)
class Applied:
    """A function of a term: ``date``, ``timestamp``, ``timestamp_ntz`` (casts), ``number`` (a cast that widens),
    ``year``, and, with a unit, ``trunc`` and ``date_trunc``.
    """

    function: str
    type: str
    inner: Column | Applied
    unit: str = ""


Term = Column | Applied


@dataclass(frozen=True)
class _Point:
    """A literal of a term's own type, as far as it is certain; ``vague``: whether it itself counts is not."""

    early: Any
    late: Any
    vague: bool = False


def column_of(term: Term) -> Name:
    """The column that a term is computed from."""
    return term.name if isinstance(term, Column) else column_of(term.inner)


# -- building ----------------------------------------------------------------------------------------------------------


def cast(inner: Term, to: str) -> Term | None:
    """``CAST(inner AS to)``, where it never falls while its argument rises and is never NULL by itself, else None."""
    if inner.type == to:
        return inner if to != "timestamp" else Applied("timestamp", to, inner)  # by a setting it means timestamp_ntz
    if inner.type in _MOMENTS and to in _MOMENTS:
        return Applied(to, to, inner)
    widens = upcastable(inner.type, to) or (inner.type in INTEGERS and to == "double")
    return Applied("number", to, inner) if isinstance(inner, Column) and widens else None


def year(inner: Term) -> Term | None:
    """``year(inner)``."""
    day = cast(inner, "date") if inner.type in _MOMENTS else None
    return None if day is None else Applied("year", "integer", day)


def truncated(inner: Term, unit: str, to: str) -> Term | None:
    """``trunc(inner, unit)`` for ``to`` date, ``date_trunc(unit, inner)`` for ``to`` timestamp."""
    known, whole = instants.unit_of(unit), inner
    if inner.type != to:
        whole = cast(inner, to) if inner.type in _MOMENTS else None  # type: ignore[assignment]
    if known is None or whole is None:
        return None
    return Applied("trunc" if to == "date" else "date_trunc", to, whole, known)


# -- comparing ---------------------------------------------------------------------------------------------------------


def compared(term: Term, op: str, value: Any, zone: dt.tzinfo | None) -> Predicate:
    """``term op value`` as a predicate of the term's column; `Unknown` where nothing is known."""
    if value is None:
        return Unknown()
    if isinstance(term, Applied) and term.function == "number":
        return _widened(term, op, value)
    try:
        found = _ordered(term, op, value, zone)
    except (OverflowError, ValueError, TypeError):
        return Unknown()
    # A unit that Spark does not know makes NULL of all; the parser may have made another of it.
    return And((found, Unknown())) if _has_unit(term) else found


def is_one_of(term: Term, values: Sequence[Any], zone: dt.tzinfo | None) -> Predicate:
    """``term IN (values)``; beside a text Spark may compare a time as text."""
    as_text = any(isinstance(value, str) for value in values) and term.type != "date"
    if as_text or len(values) > _MOST_VALUES:
        return Unknown()
    name = column_of(term)
    nothing = Compare(name, "=", None)
    return Or(tuple(nothing if value is None else compared(term, "=", value, zone) for value in values))


def is_null(term: Term) -> Predicate:
    """``term IS NULL``."""
    return Unknown() if _has_unit(term) else IsNull(column_of(term))


def _has_unit(term: Term) -> bool:
    return isinstance(term, Applied) and (bool(term.unit) or _has_unit(term.inner))


def _widened(term: Applied, op: str, value: Any) -> Predicate:
    """A number beside a number of a wider type: the same comparison, where it is exact in the wider type."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        return Unknown()
    if limit(Field("", term.type), "<", value) is None:
        return Unknown()
    return Compare(column_of(term), op, float(value) if term.type == "double" else value)  # type: ignore[arg-type]


def _ordered(term: Term, op: str, value: Any, zone: dt.tzinfo | None) -> Predicate:
    term, point = _meeting(term, value, zone)
    if op in (">=", "<"):
        found = _at_least(term, point, zone, strict=False)
        return found if op == ">=" else Not(found)
    over = _at_least(term, point, zone, strict=True)
    if op in (">", "<="):
        return over if op == ">" else Not(over)
    same = And((_at_least(term, point, zone, strict=False), Not(over)))
    if op == "<=>":
        return And((Not(IsNull(column_of(term))), same))
    return same if op == "=" else Not(same)


def _meeting(term: Term, value: Any, zone: dt.tzinfo | None) -> tuple[Term, _Point]:
    """The term and the literal as the one type in which Spark compares them."""
    match term.type, value:
        case "date", str():
            return term, _exactly(date_of(value))
        case "date", dt.datetime():
            kind = "timestamp_ntz" if value.tzinfo is None else "timestamp"
            return Applied(kind, kind, term), _at(value)
        case "timestamp_ntz", dt.datetime() if value.tzinfo is not None:
            return Applied("timestamp", "timestamp", term), _at(value)
        case "date", dt.date():
            return term, _exactly(value)
        case (("timestamp" | "timestamp_ntz"), (dt.date() | str())):
            return term, _moment(term.type, value, zone)
        case "integer", (int() | Decimal() | float()) if not isinstance(value, bool) and isfinite(value):
            return term, _exactly(value)
    raise TypeError


def _exactly(value: Any) -> _Point:
    return _Point(value, value)


def _at(moment: dt.datetime) -> _Point:
    """An instant, as far as it is certain; or a local time without a zone."""
    if moment.tzinfo is None or instants.is_fixed(moment.tzinfo):
        return _exactly(moment)
    return _Point(*instants.instants(moment.replace(tzinfo=None), moment.tzinfo))


def _moment(data_type: str, value: Any, zone: dt.tzinfo | None) -> _Point:
    if isinstance(value, dt.datetime):
        local = value
    elif isinstance(value, dt.date):
        local = instants.midnight(value)
    else:
        if not _CLOCK.fullmatch(value):
            raise ValueError(value)
        local = dt.datetime.fromisoformat(_padded(value))
    if local.tzinfo is not None:
        return _at(local)
    vague = isinstance(value, str)  # an old setting makes Spark compare both as texts, where 00:00:00 is more than none
    if data_type == "timestamp_ntz":
        return _Point(local, local, vague)
    return _Point(*instants.instants(local, zone), vague)


def _padded(text: str) -> str:
    whole, dot, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}" if dot else text


def _at_least(term: Term, point: _Point, zone: dt.tzinfo | None, *, strict: bool) -> Predicate:
    """``term >= point``, or ``term > point``: what is certain, or else what is possible."""
    if point.early == point.late and not point.vague:
        return _from(term, point.early, zone, strict=strict)
    certain, possible = _from(term, point.late, zone, strict=True), _from(term, point.early, zone, strict=False)
    return Or((certain, And((possible, Unknown()))))


def _from(term: Term, value: Any, zone: dt.tzinfo | None, *, strict: bool) -> Predicate:
    if isinstance(term, Column):
        return Compare(term.name, ">" if strict else ">=", value)
    inner = term.inner
    match term.function:
        case "date":
            return _from_local(inner, instants.midnight(value + dt.timedelta(days=strict)), zone, strict=False)
        case "year":
            first = floor(value) + 1 if strict else ceil(value)
            return _from(inner, dt.date(first, 1, 1), zone, strict=False)
        case "trunc":
            begin = instants.after if strict else instants.at_or_after
            return _from(inner, begin(term.unit, instants.midnight(value)).date(), zone, strict=False)
        case "timestamp":
            return _from_instant(inner, value, zone, strict=strict)
        case "timestamp_ntz":
            return _from_local(inner, value, zone, strict=strict)
        case "date_trunc":
            return _at_least(inner, _unit_from(term.unit, value, zone, strict=strict), zone, strict=False)
    raise TypeError(term.function)


def _from_local(inner: Term, local: dt.datetime, zone: dt.tzinfo | None, *, strict: bool) -> Predicate:
    """Where the local time of a date or timestamp is at least, or after, another."""
    if inner.type == "timestamp_ntz":
        return _from(inner, local, zone, strict=strict)
    if inner.type == "timestamp":
        return _at_least(inner, _Point(*instants.instants(local, zone)), zone, strict=strict)
    first = instants.after("day", local) if strict else instants.at_or_after("day", local)
    return _from(inner, first.date(), zone, strict=False)


def _from_instant(inner: Term, instant: dt.datetime, zone: dt.tzinfo | None, *, strict: bool) -> Predicate:
    """Where the instant of a date or timestamp is at least, or after, another."""
    early, late = instants.locals_of(instant, zone)
    if inner.type == "timestamp":
        slack = (late - early) / 2
        return _at_least(inner, _Point(instant - slack, instant + slack), zone, strict=strict)
    if early == late:
        return _from_local(inner, early, zone, strict=strict)
    if inner.type == "timestamp_ntz":
        return _at_least(inner, _Point(early, late), zone, strict=strict)
    return _at_least(inner, _Point(early.date(), late.date()), zone, strict=strict)


def _unit_from(unit: str, instant: dt.datetime, zone: dt.tzinfo | None, *, strict: bool) -> _Point:
    """The instant from which on the beginnings of units are at least, or after, another."""
    early, late = instants.locals_of(instant, zone)
    begin = instants.after if strict else instants.at_or_after
    if early == late:
        return _Point(*instants.instants(begin(unit, early), zone))
    slack = (late - early) / 2
    return _Point(instant - slack, instants.instants(instants.after(unit, late), zone)[1] + slack)
