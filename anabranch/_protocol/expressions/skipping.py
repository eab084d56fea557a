"""Skipping: what file skipping can use of a condition, by its tree.

Pure. Guarantee: a predicate holds whatever the session's settings; every part that is not known for certain is
`Unknown`. A call means Spark's own function, so whoever uses what is said has to know that the session has no other one
under its name (`called_functions`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch._protocol.expressions.arrow import compute as values_of
from anabranch._protocol.expressions.casts import CAST
from anabranch._protocol.expressions.instants import ANY_ZONE, is_fixed, local_time, midnight
from anabranch._protocol.expressions.intervals import MOVE
from anabranch._protocol.expressions.inverting import (
    Bare,
    Term,
    invert_comparison,
    is_null,
    is_one_of,
    try_monotonic_term,
)
from anabranch._protocol.expressions.meeting import are_exact
from anabranch._protocol.expressions.table import TABLE, Function, Given, Unfit, Varying
from anabranch._protocol.expressions.tree import (
    Apply,
    Column,
    Constant,
    Expression,
    Foreign,
    arguments_of,
    functions_of,
    nodes,
)
from anabranch._protocol.predicates import (
    Always,
    And,
    Compare,
    IsNull,
    Name,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from anabranch._protocol.schema.types import INTEGERS, VOID, DataType, decimal_of
from anabranch._protocol.unsupported import Unsupported

_ONE_ROW = pa.RecordBatch.from_arrays([pa.nulls(1)], ["x"])
_MOST_NESTED = 8
_FLIPPED: Mapping[Operator, Operator] = {
    **{"=": "=", "<=>": "<=>", "!=": "!="},
    **{"<": ">", "<=": ">=", ">": "<", ">=": "<="},
}

Named = Callable[[Column], "Name | None"]
"""What the table calls a column of a tree; None for what is no column of it."""


def of_table(column: Column) -> Name:
    """All columns are the table's."""
    return column.name


def called_functions(tree: Expression) -> frozenset[str]:
    """The functions that have to be Spark's own for what is said of a condition to be true."""
    known = (each for each in nodes(tree) if isinstance(each, Apply) or (isinstance(each, Foreign) and each.function))
    return frozenset(each.called for each in known if each.called)


def predicate_of(tree: Expression, zone: dt.tzinfo | None, named: Named = of_table, *, calls: bool = True) -> Predicate:
    """What file skipping can use of a condition.

    Args:
        zone: the session's time zone, whose clocks may change; None for one that is not known here.
        named: whose columns the tree's are.
        calls: whether what is called (`called_functions`) is Spark's own; else nothing is said of it.

    Example:
        >>> predicate_of(computation_over("id + 0 > 5 AND lower(name) = 'a'", schema).tree, dt.UTC)
        And(ps=(Compare(column='id', op='>', value=5), Unknown()))
    """
    try:
        return _Reader(zone, named, calls).of(tree)
    except RecursionError:
        return Unknown()


@dataclass(frozen=True)
class _Reader:
    zone: dt.tzinfo | None
    named: Named
    calls: bool

    def of(self, node: Expression) -> Predicate:
        """What a condition says."""
        if isinstance(node, Column):
            name = self.named(node)
            return Compare(name, "=", True) if node.type == "boolean" and name is not None else Unknown()
        constant = self._constant(node)
        if constant is not None:
            return Always(constant[0]) if isinstance(constant[0], bool) else Unknown()
        function, parts = _function_of(node), arguments_of(node)
        if not self._is_known(node) or function is None:
            return Unknown()
        match function:
            case "and":
                return And(tuple(map(self.of, parts)))
            case "or":
                return Or(tuple(map(self.of, parts)))
            case "not":
                return Not(self.of(parts[0]))
            case "is null" | "is unknown":
                return self._is_null(parts[0])
            case "isnotnull":
                return Not(self._is_null(parts[0]))
            case "is true" | "is false":
                return self._is_truth(parts[0], function == "is true")
            case "in":
                return self._in(parts[0], parts[1:])
            case "between":
                value, low, high = parts
                return And((self._comparison(">=", value, low), self._comparison("<=", value, high)))
            case "like" | "startswith":
                return self._begins(node, function)
            case "=" | "<=>" | "!=" | "<" | "<=" | ">" | ">=" if len(parts) == 2:
                return self._comparison(function, *parts)
        return Unknown()

    def _is_known(self, node: Expression) -> bool:
        """Whether what a node calls, if anything, is Spark's own."""
        return self.calls or not (isinstance(node, Apply | Foreign) and node.called)

    def _is_null(self, node: Expression) -> Predicate:
        if isinstance(node, Foreign) and node.function in ("char", "collate"):
            (node, *_) = node.parts
        if isinstance(node, Column):  # of any type
            name = self.named(node)
            return Unknown() if name is None else IsNull(name)
        term = self.term(node)
        return Unknown() if term is None else is_null(term)

    def _is_truth(self, node: Expression, truth: bool) -> Predicate:
        term = self.term(node)
        is_plain = isinstance(term, Bare) and term.type == "boolean"
        return invert_comparison(term, "<=>", truth, self.zone) if term is not None and is_plain else Unknown()

    def _comparison(self, op: Operator, left: Expression, right: Expression) -> Predicate:
        for one, other, sign in ((left, right, op), (right, left, _FLIPPED[op])):
            constant = self._constant(other)
            if constant is None:
                continue
            if isinstance(one, Foreign) and one.function == "char":
                return self._char_equality(one, sign, constant[0])
            term = self.term(one)
            is_known = term is not None and are_exact([one.type, other.type], constant)
            return invert_comparison(term, sign, constant[0], self.zone) if term is not None and is_known else Unknown()
        return Unknown()

    def _char_equality(self, char: Foreign, op: Operator, text: Any) -> Predicate:
        """What equality with a text says of a column of char, which is padded when it is compared: what files hold lies
        between the text without the blanks at its end, and with as many as the column takes. No more is certain.
        """
        column, length = char.parts
        assert isinstance(column, Column)
        assert isinstance(length, Constant)
        name = self.named(column)
        if name is None or not isinstance(text, str) or op not in ("=", "<=>"):
            return Unknown()
        shortest = text.rstrip(" ")
        if len(shortest) > length.value:
            return Unknown()
        return And((Compare(name, ">=", shortest), Compare(name, "<=", shortest.ljust(length.value)), Unknown()))

    def _in(self, searched: Expression, listed: Sequence[Expression]) -> Predicate:
        constants = [self._constant(each) for each in listed]
        values = [each[0] for each in constants if each is not None]
        kinds = [each.type for each, value in zip(listed, values, strict=False) if value is not None]
        if len(values) < len(constants) or not are_exact([searched.type, *kinds], values):
            return Unknown()
        if len({_kind_of(each) for each in kinds}) > 1:  # Spark brings all of them to one type
            return Unknown()
        if isinstance(searched, Foreign) and searched.function == "char":
            return Or(tuple(self._char_equality(searched, "=", each) for each in values))
        term = self.term(searched)
        return Unknown() if term is None else is_one_of(term, values, self.zone)

    def _begins(self, node: Expression, function: str) -> Predicate:
        """LIKE, and ``startswith``, with a constant pattern."""
        term = self.term(node.arguments[0]) if isinstance(node, Apply) else None
        if not isinstance(node, Apply) or not isinstance(term, Bare):
            return Unknown()
        (pattern,) = node.options
        if function == "startswith":
            return StartsWith(term.name, pattern)
        prefix, rest = re.fullmatch(r"([^%_]*)(.*)", pattern, re.DOTALL).groups()  # type: ignore[union-attr]
        if not rest:
            return Compare(term.name, "=", prefix)
        starts: Predicate = StartsWith(term.name, prefix) if prefix else Unknown()
        return starts if rest.strip("%") == "" else And((starts, Unknown()))

    # -- values --------------------------------------------------------------------------------------------------------

    def _constant(self, node: Expression) -> tuple[Any] | None:
        """The value of what names no column, in a tuple of one (it may be NULL); None where it is not known."""
        match node:
            case Constant():
                return (node.value,)
            case Foreign(function="double", parts=(Constant() as number,)):
                return (number.value,)
            case Foreign(function="timestamp", parts=(Constant(value=dt.datetime() as local),)) if self._is_known(node):
                return self._instant(local)
            case Apply() if self.calls or not functions_of(node):
                return _compute_constant(node, self.zone if is_fixed(self.zone) else None) or self._local(node)
        return None

    def _local(self, node: Apply) -> tuple[Any] | None:
        """Of a moment of a zone whose clocks change, or that is not known, the local time in it."""
        if node.type != "timestamp" or len(node.arguments) != 1:
            return None
        try:
            return self._local_of(node.function, node.arguments[0], node.options)
        except (ArithmeticError, ValueError):  # it lies outside the years 1 to 9999
            return None

    def _local_of(self, function: Function, given: Expression, options: tuple[Any, ...]) -> tuple[Any] | None:
        zone = self.zone or ANY_ZONE
        match given, options:
            case Constant(value=str() as text), _ if function == CAST:
                return (local_time(text).replace(tzinfo=zone),)
            case Constant(value=dt.date() as day, type="date"), _ if function == CAST:
                return (midnight(day).replace(tzinfo=zone),)
            case Constant(value=dt.datetime() as moment, type="timestamp"), ("days", micros) if function == MOVE:
                return (moment.astimezone(zone) + dt.timedelta(microseconds=micros),) if self.zone else None
        return None

    def _instant(self, local: dt.datetime) -> tuple[Any] | None:
        """Of a zone whose clocks change the local time in it: which instant that is depends on the edition of the
        zones' rules, which Python and Java each have.
        """
        if local.tzinfo is not None or self.zone is None:
            return None
        found = local.replace(tzinfo=self.zone)
        return (found.astimezone(dt.UTC) if is_fixed(self.zone) else found,)

    def term(self, node: Expression, depth: int = 0) -> Term | None:
        """A column, or what is computed from one in a way that keeps the order of its values; None for all else, and
        for what is nested deep: what is vague at each level doubles what is said.
        """
        if depth > _MOST_NESTED:
            return None
        if isinstance(node, Column):
            name = self.named(node)
            return Bare(name, node.type) if name is not None and isinstance(node.type, str) else None
        if not isinstance(node, Apply | Foreign) or not self._is_known(node):
            return None
        parts = arguments_of(node)
        if isinstance(node, Apply) and node.function == CAST and parts[0].type == VOID:  # NULL is NULL of any type
            return self.term(parts[0], depth + 1)
        constants = [self._constant(each) for each in parts]
        values = tuple(None if each is None else each[0] for each in constants)
        if values.count(None) != 1 or None not in constants:
            return None
        place = constants.index(None)
        inner = self.term(parts[place], depth + 1)
        if inner is None:
            return None
        if isinstance(node, Apply):
            return try_monotonic_term(
                node.function, Varying(inner.type, node.type, values, node.options, self.zone), inner
            )
        return self._foreign_term(node, inner, place, values)

    def _foreign_term(self, node: Foreign, inner: Term, place: int, values: tuple[Any, ...]) -> Term | None:
        """What an entry makes of a term, where that is Spark's: in some sessions it fails, or the type is another."""
        if node.function in ("cast", "timestamp"):
            return self._cast(inner, "timestamp" if node.function == "timestamp" else node.type)
        entry = TABLE.get(node.function)
        if entry is None:
            return None
        for kind in (inner.type, "date", "timestamp"):
            moved = inner if kind == inner.type else self._cast(inner, kind)
            given = [Given(kind) if i == place else _as_given(each, values[i]) for i, each in enumerate(node.parts)]
            try:
                fit = entry.fit(given)
            except Unfit:
                continue
            if moved is not None and len(fit.takes) == len(given):
                moved = self._cast(moved, fit.takes[place])
            if moved is None:
                continue
            return try_monotonic_term(entry, Varying(moved.type, fit.gives, values, fit.options, self.zone), moved)
        return None

    def _cast(self, inner: Term, to: DataType | None) -> Term | None:
        return None if to is None else try_monotonic_term(CAST, Varying(inner.type, to, zone=self.zone), inner)


def _kind_of(kind: DataType | None) -> DataType | None:
    """A type, or one for all exact numbers."""
    return "decimal" if kind in INTEGERS or (kind is not None and decimal_of(kind)) else kind


def _function_of(node: Expression) -> str | None:
    match node:
        case Apply():
            return node.function.name
        case Foreign():
            return node.function
    return None


def _as_given(node: Expression, value: Any) -> Given:
    return Given(None) if isinstance(node, Column) else Given(node.type, (value,))


def _compute_constant(node: Apply, zone: dt.tzinfo | None) -> tuple[Any] | None:
    """The value of what names no column; None where only Spark knows it."""
    if any(isinstance(each, Column | Foreign) for each in nodes(node)):
        return None
    try:
        (found,) = values_of(node, _ONE_ROW, zone).to_pylist()
    except (Unsupported, ArithmeticError, ValueError):  # or Python has no room for it
        return None
    return (found,)
