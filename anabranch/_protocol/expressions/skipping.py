"""Skipping: derives from a condition's tree the predicate that file skipping uses.

Pure. Guarantee: the predicate holds whatever the session's settings; every uncertain part is `Unknown`. A call means
Spark's own function, so the caller must know that the session has no other function of that name (`called_functions`).
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
from anabranch._protocol.expressions.common_types import are_exact
from anabranch._protocol.expressions.instants import ANY_ZONE, is_fixed, local_time, midnight
from anabranch._protocol.expressions.intervals import MOVE
from anabranch._protocol.expressions.inverting import (
    ColumnTerm,
    Term,
    invert_comparison,
    is_null,
    is_one_of,
    try_monotonic_term,
)
from anabranch._protocol.expressions.table import TABLE, Argument, ArgumentsNotSupported, Function, UnaryCall
from anabranch._protocol.expressions.tree import (
    Apply,
    Column,
    Constant,
    Expression,
    SparkOnly,
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
"""Returns the table's name of a column of a tree; None if the table has no such column."""


def of_table(column: Column) -> Name:
    """Names columns if all of them are the table's."""
    return column.name


def called_functions(tree: Expression) -> frozenset[str]:
    """The functions that must be Spark's own for the predicate of a condition to hold."""
    callers = (
        node for node in nodes(tree) if isinstance(node, Apply) or (isinstance(node, SparkOnly) and node.function)
    )
    return frozenset(node.called for node in callers if node.called)


def predicate_of(tree: Expression, zone: dt.tzinfo | None, named: Named = of_table, *, calls: bool = True) -> Predicate:
    """The predicate that file skipping can use of a condition.

    Args:
        zone: the session's time zone, even if its offset changes; None if it is unknown.
        named: returns the table's name of a column.
        calls: whether the called functions (`called_functions`) are Spark's own; if not, calls are `Unknown`.

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
        """The predicate of a condition."""
        if isinstance(node, Column):
            name = self.named(node)
            return Compare(name, "=", True) if node.type == "boolean" and name is not None else Unknown()
        constant = self._constant(node)
        if constant is not None:
            return Always(constant[0]) if isinstance(constant[0], bool) else Unknown()
        function, arguments = _function_of(node), arguments_of(node)
        if not self._is_known(node) or function is None:
            return Unknown()
        match function:
            case "and":
                return And(tuple(map(self.of, arguments)))
            case "or":
                return Or(tuple(map(self.of, arguments)))
            case "not":
                return Not(self.of(arguments[0]))
            case "is null" | "is unknown":
                return self._is_null(arguments[0])
            case "isnotnull":
                return Not(self._is_null(arguments[0]))
            case "is true" | "is false":
                return self._is_truth(arguments[0], function == "is true")
            case "in":
                return self._in(arguments[0], arguments[1:])
            case "between":
                value, low, high = arguments
                return And((self._comparison(">=", value, low), self._comparison("<=", value, high)))
            case "like" | "startswith":
                return self._prefix_match(node, function)
            case "=" | "<=>" | "!=" | "<" | "<=" | ">" | ">=" if len(arguments) == 2:
                return self._comparison(function, *arguments)
        return Unknown()

    def _is_known(self, node: Expression) -> bool:
        """Whether the function that a node calls, if any, is Spark's own."""
        return self.calls or not (isinstance(node, Apply | SparkOnly) and node.called)

    def _is_null(self, node: Expression) -> Predicate:
        if isinstance(node, SparkOnly) and node.function in ("char", "collate"):
            (node, *_) = node.parts
        if isinstance(node, Column):  # of any type
            name = self.named(node)
            return Unknown() if name is None else IsNull(name)
        term = self.term(node)
        return Unknown() if term is None else is_null(term)

    def _is_truth(self, node: Expression, truth: bool) -> Predicate:
        term = self.term(node)
        is_plain = isinstance(term, ColumnTerm) and term.type == "boolean"
        return invert_comparison(term, "<=>", truth, self.zone) if term is not None and is_plain else Unknown()

    def _comparison(self, op: Operator, left: Expression, right: Expression) -> Predicate:
        for side, other, sign in ((left, right, op), (right, left, _FLIPPED[op])):
            constant = self._constant(other)
            if constant is None:
                continue
            if isinstance(side, SparkOnly) and side.function == "char":
                return self._char_equality(side, sign, constant[0])
            term = self.term(side)
            is_known = term is not None and are_exact([side.type, other.type], constant)
            return invert_comparison(term, sign, constant[0], self.zone) if term is not None and is_known else Unknown()
        return Unknown()

    def _char_equality(self, char: SparkOnly, op: Operator, text: Any) -> Predicate:
        """Equality of a char column with a text. Comparison pads the column, so the value in files lies between the
        text without trailing blanks and the text padded to the column's length. No more is certain.
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

    def _in(self, searched: Expression, items: Sequence[Expression]) -> Predicate:
        constants = [self._constant(item) for item in items]
        values = [constant[0] for constant in constants if constant is not None]
        kinds = [item.type for item, value in zip(items, values, strict=False) if value is not None]
        if len(values) < len(constants) or not are_exact([searched.type, *kinds], values):
            return Unknown()
        if len({_kind_of(kind) for kind in kinds}) > 1:  # Spark brings all of them to one type
            return Unknown()
        if isinstance(searched, SparkOnly) and searched.function == "char":
            return Or(tuple(self._char_equality(searched, "=", text) for text in values))
        term = self.term(searched)
        return Unknown() if term is None else is_one_of(term, values, self.zone)

    def _prefix_match(self, node: Expression, function: str) -> Predicate:
        """LIKE and ``startswith`` with a constant pattern."""
        term = self.term(node.arguments[0]) if isinstance(node, Apply) else None
        if not isinstance(node, Apply) or not isinstance(term, ColumnTerm):
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
        """The value of an expression without columns, in a tuple of one (it may be NULL); None if it is unknown."""
        match node:
            case Constant():
                return (node.value,)
            case SparkOnly(function="double", parts=(Constant() as number,)):
                return (number.value,)
            case SparkOnly(function="timestamp", parts=(Constant(value=dt.datetime() as local),)) if self._is_known(
                node
            ):
                return self._instant(local)
            case Apply() if self.calls or not functions_of(node):
                return _compute_constant(node, self.zone if is_fixed(self.zone) else None) or self._local(node)
        return None

    def _local(self, node: Apply) -> tuple[Any] | None:
        """The local time of a timestamp in a zone that is unknown or whose offset changes."""
        if node.type != "timestamp" or len(node.arguments) != 1:
            return None
        try:
            return self._local_of(node.function, node.arguments[0], node.options)
        except (ArithmeticError, ValueError):  # it lies outside the years 1 to 9999
            return None

    def _local_of(self, function: Function, argument: Expression, options: tuple[Any, ...]) -> tuple[Any] | None:
        zone = self.zone or ANY_ZONE
        match argument, options:
            case Constant(value=str() as text), _ if function == CAST:
                return (local_time(text).replace(tzinfo=zone),)
            case Constant(value=dt.date() as day, type="date"), _ if function == CAST:
                return (midnight(day).replace(tzinfo=zone),)
            case Constant(value=dt.datetime() as moment, type="timestamp"), ("days", micros) if function == MOVE:
                return (moment.astimezone(zone) + dt.timedelta(microseconds=micros),) if self.zone else None
        return None

    def _instant(self, local: dt.datetime) -> tuple[Any] | None:
        """The local time in a zone whose offset changes: the instant depends on the edition of the time zone database,
        and Python and Java have one each.
        """
        if local.tzinfo is not None or self.zone is None:
            return None
        instant = local.replace(tzinfo=self.zone)
        return (instant.astimezone(dt.UTC) if is_fixed(self.zone) else instant,)

    def term(self, node: Expression, depth: int = 0) -> Term | None:
        """A column, or a monotonic function of one; None for any other expression, and for deep nesting, where the
        predicate would double at each level.
        """
        if depth > _MOST_NESTED:
            return None
        if isinstance(node, Column):
            name = self.named(node)
            return ColumnTerm(name, node.type) if name is not None and isinstance(node.type, str) else None
        if not isinstance(node, Apply | SparkOnly) or not self._is_known(node):
            return None
        parts = arguments_of(node)
        if isinstance(node, Apply) and node.function == CAST and parts[0].type == VOID:  # NULL is NULL of any type
            return self.term(parts[0], depth + 1)
        constants = [self._constant(part) for part in parts]
        values = tuple(None if constant is None else constant[0] for constant in constants)
        if values.count(None) != 1 or None not in constants:
            return None
        place = constants.index(None)
        inner = self.term(parts[place], depth + 1)
        if inner is None:
            return None
        if isinstance(node, Apply):
            return try_monotonic_term(
                node.function, UnaryCall(inner.type, node.type, values, node.options, self.zone), inner
            )
        return self._foreign_term(node, inner, place, values)

    def _foreign_term(self, node: SparkOnly, inner: Term, place: int, values: tuple[Any, ...]) -> Term | None:
        """Apply an entry to a term of a `SparkOnly` node, which in some sessions fails or has another type."""
        if node.function in ("cast", "timestamp"):
            return self._cast(inner, "timestamp" if node.function == "timestamp" else node.type)
        entry = TABLE.get(node.function)
        if entry is None:
            return None
        for kind in (inner.type, "date", "timestamp"):
            argument_term = inner if kind == inner.type else self._cast(inner, kind)
            arguments = [
                Argument(kind) if i == place else _to_argument(part, values[i]) for i, part in enumerate(node.parts)
            ]
            try:
                fit = entry.fit(arguments)
            except ArgumentsNotSupported:
                continue
            if argument_term is not None and len(fit.takes) == len(arguments):
                argument_term = self._cast(argument_term, fit.takes[place])
            if argument_term is None:
                continue
            return try_monotonic_term(
                entry, UnaryCall(argument_term.type, fit.gives, values, fit.options, self.zone), argument_term
            )
        return None

    def _cast(self, inner: Term, to: DataType | None) -> Term | None:
        return None if to is None else try_monotonic_term(CAST, UnaryCall(inner.type, to, zone=self.zone), inner)


def _kind_of(kind: DataType | None) -> DataType | None:
    """The type, or one common type for all exact numbers."""
    return "decimal" if kind in INTEGERS or (kind is not None and decimal_of(kind)) else kind


def _function_of(node: Expression) -> str | None:
    match node:
        case Apply():
            return node.function.name
        case SparkOnly():
            return node.function
    return None


def _to_argument(node: Expression, value: Any) -> Argument:
    return Argument(None) if isinstance(node, Column) else Argument(node.type, (value,))


def _compute_constant(node: Apply, zone: dt.tzinfo | None) -> tuple[Any] | None:
    """The value of an expression without columns; None if only Spark computes it."""
    if any(isinstance(inner, Column | SparkOnly) for inner in nodes(node)):
        return None
    try:
        (value,) = values_of(node, _ONE_ROW, zone).to_pylist()
    except (Unsupported, ArithmeticError, ValueError):  # also a value that Python cannot represent
        return None
    return (value,)
