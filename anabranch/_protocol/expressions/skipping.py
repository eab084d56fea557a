"""Skipping: derives from a condition's tree the predicate that file skipping uses.

Reads AND, OR, NOT and the operators that compare; `terms` reads what they compare, `inverting` turns a comparison of a
term with a constant into a predicate of its column. Pure. Guarantee: the predicate holds whatever the session's
settings; every uncertain part is `Unknown`. A call means Spark's own function, so the caller must know that the session
has no other function of that name (`called_functions`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anabranch._protocol.expressions.common_types import are_exact
from anabranch._protocol.expressions.inverting import (
    ColumnTerm,
    invert_comparison,
    is_null,
    is_one_of,
)
from anabranch._protocol.expressions.terms import Named, TermReader, of_table
from anabranch._protocol.expressions.tree import (
    Apply,
    Column,
    Constant,
    Expression,
    SparkOnly,
    arguments_of,
    nodes,
)
from anabranch._protocol.predicates import (
    Always,
    And,
    Compare,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from anabranch._protocol.schema.types import INTEGERS, DataType, decimal_of

_FLIPPED: Mapping[Operator, Operator] = {
    **{"=": "=", "<=>": "<=>", "!=": "!="},
    **{"<": ">", "<=": ">=", ">": "<", ">=": "<="},
}


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
        return _Reader(TermReader(zone, named, calls)).of(tree)
    except RecursionError:
        return Unknown()


@dataclass(frozen=True)
class _Reader:
    terms: TermReader

    def of(self, node: Expression) -> Predicate:
        """The predicate of a condition."""
        if isinstance(node, Column):
            name = self.terms.named(node)
            return Compare(name, "=", True) if node.type == "boolean" and name is not None else Unknown()
        constant = self.terms.constant(node)
        if constant is not None:
            return Always(constant[0]) if isinstance(constant[0], bool) else Unknown()
        function, arguments = _function_of(node), arguments_of(node)
        if not self.terms.is_known(node) or function is None:
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

    def _is_null(self, node: Expression) -> Predicate:
        if isinstance(node, SparkOnly) and node.function in ("char", "collate"):
            (node, *_) = node.parts
        if isinstance(node, Column):  # of any type
            name = self.terms.named(node)
            return Unknown() if name is None else IsNull(name)
        term = self.terms.term(node)
        return Unknown() if term is None else is_null(term)

    def _is_truth(self, node: Expression, truth: bool) -> Predicate:
        term = self.terms.term(node)
        is_plain = isinstance(term, ColumnTerm) and term.type == "boolean"
        return invert_comparison(term, "<=>", truth, self.terms.zone) if term is not None and is_plain else Unknown()

    def _comparison(self, op: Operator, left: Expression, right: Expression) -> Predicate:
        for side, other, sign in ((left, right, op), (right, left, _FLIPPED[op])):
            constant = self.terms.constant(other)
            if constant is None:
                continue
            if isinstance(side, SparkOnly) and side.function == "char":
                return self._char_equality(side, sign, constant[0])
            term = self.terms.term(side)
            is_known = term is not None and are_exact([side.type, other.type], constant)
            return (
                invert_comparison(term, sign, constant[0], self.terms.zone)
                if term is not None and is_known
                else Unknown()
            )
        return Unknown()

    def _char_equality(self, char: SparkOnly, op: Operator, text: Any) -> Predicate:
        """Equality of a char column with a text. Comparison pads the column, so the value in files lies between the
        text without trailing blanks and the text padded to the column's length. No more is certain.
        """
        column, length = char.parts
        assert isinstance(column, Column)
        assert isinstance(length, Constant)
        name = self.terms.named(column)
        if name is None or not isinstance(text, str) or op not in ("=", "<=>"):
            return Unknown()
        shortest = text.rstrip(" ")
        if len(shortest) > length.value:
            return Unknown()
        return And((Compare(name, ">=", shortest), Compare(name, "<=", shortest.ljust(length.value)), Unknown()))

    def _in(self, searched: Expression, items: Sequence[Expression]) -> Predicate:
        constants = [self.terms.constant(item) for item in items]
        values = [constant[0] for constant in constants if constant is not None]
        kinds = [item.type for item, value in zip(items, values, strict=False) if value is not None]
        if len(values) < len(constants) or not are_exact([searched.type, *kinds], values):
            return Unknown()
        if len({_kind_of(kind) for kind in kinds}) > 1:  # Spark brings all of them to one type
            return Unknown()
        if isinstance(searched, SparkOnly) and searched.function == "char":
            return Or(tuple(self._char_equality(searched, "=", text) for text in values))
        term = self.terms.term(searched)
        return Unknown() if term is None else is_one_of(term, values, self.terms.zone)

    def _prefix_match(self, node: Expression, function: str) -> Predicate:
        """LIKE and ``startswith`` with a constant pattern."""
        term = self.terms.term(node.arguments[0]) if isinstance(node, Apply) else None
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
