"""Terms: reads from a condition's tree which parts are constants, and which are monotonic terms of a column.

Pure. Knows no predicate. Guarantee: a constant has its value, and a term its type, whatever the session's settings.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from anabranch._protocol.expressions.arrow import compute as values_of
from anabranch._protocol.expressions.casts import CAST, CAST_INVERSE
from anabranch._protocol.expressions.instants import ANY_ZONE, is_fixed, local_time, midnight
from anabranch._protocol.expressions.intervals import MOVE
from anabranch._protocol.expressions.inverting import ColumnTerm, Term, try_monotonic_term
from anabranch._protocol.expressions.monotonic import Inverse, UnaryCall
from anabranch._protocol.expressions.table import TABLE, Argument, ArgumentsNotSupported, Fit, Function
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
from anabranch._protocol.predicates import Name
from anabranch._protocol.schema.types import VOID, DataType
from anabranch._protocol.unsupported import Unsupported

_ONE_ROW = pa.RecordBatch.from_arrays([pa.nulls(1)], ["x"])
_MOST_NESTED = 8

Named: TypeAlias = Callable[[Column], "Name | None"]
"""Returns the table's name of a column of a tree; None if the table has no such column."""

Literal: TypeAlias = tuple[Any]
"""The value of a constant, which may be NULL."""

Arguments: TypeAlias = Sequence[Literal | None]
"""The arguments of a call that has one term: all are constants but the term, which is None here."""


def of_table(column: Column) -> Name:
    """Names columns if all of them are the table's."""
    return column.name


@dataclass(frozen=True)
class TermReader:
    """Reads constants and terms.

    Attributes:
        zone: the session's time zone, even if its offset changes; None if it is unknown.
        named: returns the table's name of a column.
        calls: whether the called functions are Spark's own.
    """

    zone: dt.tzinfo | None
    named: Named
    calls: bool

    def is_known(self, node: Expression) -> bool:
        """Whether the function that a node calls, if any, is Spark's own."""
        return self.calls or not (isinstance(node, Apply | SparkOnly) and node.called)

    # -- constants -----------------------------------------------------------------------------------------------------

    def constant(self, node: Expression) -> Literal | None:
        """The value of an expression without columns; None if it is unknown."""
        match node:
            case Constant():
                return (node.value,)
            case SparkOnly(function="double", parts=(Constant() as number,)):
                return (number.value,)
            case SparkOnly(function="timestamp", parts=(Constant(value=dt.datetime() as local),)):
                return self._instant(local) if self.is_known(node) else None
            case Apply() if self.calls or not functions_of(node):
                return _compute_constant(node, self.zone if is_fixed(self.zone) else None) or self._local(node)
        return None

    def _instant(self, local: dt.datetime) -> Literal | None:
        """The local time in a zone whose offset changes: the instant depends on the edition of the time zone database,
        and Python and Java have one each.
        """
        if local.tzinfo is not None or self.zone is None:
            return None
        instant = local.replace(tzinfo=self.zone)
        return (instant.astimezone(dt.UTC) if is_fixed(self.zone) else instant,)

    def _local(self, node: Apply) -> Literal | None:
        """The local time of a timestamp in a zone that is unknown or whose offset changes."""
        if node.type != "timestamp" or len(node.arguments) != 1:
            return None
        try:
            return self._local_of(node.function, node.arguments[0], node.options)
        except (ArithmeticError, ValueError):  # it lies outside the years 1 to 9999
            return None

    def _local_of(self, function: Function, argument: Expression, options: tuple[Any, ...]) -> Literal | None:
        zone = self.zone or ANY_ZONE
        match argument, options:
            case Constant(value=str() as text), _ if function == CAST:
                return (local_time(text).replace(tzinfo=zone),)
            case Constant(value=dt.date() as day, type="date"), _ if function == CAST:
                return (midnight(day).replace(tzinfo=zone),)
            case Constant(value=dt.datetime() as moment, type="timestamp"), ("days", micros) if function == MOVE:
                return (moment.astimezone(zone) + dt.timedelta(microseconds=micros),) if self.zone else None
        return None

    # -- terms ---------------------------------------------------------------------------------------------------------

    def term(self, node: Expression, depth: int = 0) -> Term | None:
        """A column, or a monotonic function of one; None for any other expression, and for deep nesting, where the
        predicate would double at each level.
        """
        if depth > _MOST_NESTED:
            return None
        if isinstance(node, Column):
            name = self.named(node)
            return ColumnTerm(name, node.type) if name is not None and isinstance(node.type, str) else None
        if not isinstance(node, Apply | SparkOnly) or not self.is_known(node):
            return None
        parts = arguments_of(node)
        if isinstance(node, Apply) and node.function == CAST and parts[0].type == VOID:  # NULL is NULL of any type
            return self.term(parts[0], depth + 1)
        arguments = [self.constant(part) for part in parts]
        if arguments.count(None) != 1 or (None,) in arguments:
            return None
        inner = self.term(parts[arguments.index(None)], depth + 1)
        return None if inner is None else self._call_term(node, inner, arguments)

    def _call_term(self, node: Apply | SparkOnly, inner: Term, arguments: Arguments) -> Term | None:
        if isinstance(node, Apply):
            return self._apply(node.function.inverse, inner, node.type, arguments, node.options)
        if node.function in ("cast", "timestamp"):
            return self._cast(inner, "timestamp" if node.function == "timestamp" else node.type)
        entry = TABLE.get(node.function)
        return None if entry is None else self._spark_only_term(entry, node, inner, arguments)

    def _spark_only_term(self, entry: Function, node: SparkOnly, inner: Term, arguments: Arguments) -> Term | None:
        """Apply an entry to a term, or to its cast to a type that the entry takes, for a call that fails in some
        sessions or has another type there.
        """
        place = arguments.index(None)
        kinds = [part.type for part in node.parts]
        for operand in (inner, self._cast(inner, "date"), self._cast(inner, "timestamp")):
            if operand is None:
                continue
            kinds[place] = operand.type
            fit = _try_fit(entry, list(map(Argument, kinds, arguments)))
            if fit is not None and len(fit.takes) == len(kinds):
                operand = self._cast(operand, fit.takes[place])
            if fit is not None and operand is not None:
                return self._apply(entry.inverse, operand, fit.gives, arguments, fit.options)
        return None

    def _cast(self, inner: Term, to: DataType | None) -> Term | None:
        return None if to is None else self._apply(CAST_INVERSE, inner, to, (None,), ())

    def _apply(
        self, inverse: Inverse | None, inner: Term, gives: DataType, arguments: Arguments, options: tuple[Any, ...]
    ) -> Term | None:
        constants = tuple(None if argument is None else argument[0] for argument in arguments)
        return try_monotonic_term(inverse, UnaryCall(inner.type, gives, constants, options, self.zone), inner)


def _try_fit(entry: Function, arguments: list[Argument]) -> Fit | None:
    """How an entry fits its arguments; None if it does not take them."""
    try:
        return entry.fit(arguments)
    except ArgumentsNotSupported:
        return None


def _compute_constant(node: Apply, zone: dt.tzinfo | None) -> Literal | None:
    """The value of an expression without columns; None if only Spark computes it."""
    if any(isinstance(inner, Column | SparkOnly) for inner in nodes(node)):
        return None
    try:
        (value,) = values_of(node, _ONE_ROW, zone).to_pylist()
    except (Unsupported, ArithmeticError, ValueError):  # also a value that Python cannot represent
        return None
    return (value,)
