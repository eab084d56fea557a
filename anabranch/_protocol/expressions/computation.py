"""Computations: an expression with everything that its value depends on.

Pure. Guarantee: a computation without a reason gives, for any rows, what Spark would compute, whatever the session's
settings, or raises `Unsupported`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import pyarrow as pa

from anabranch._protocol.expressions.arrow import compute, compute_mask
from anabranch._protocol.expressions.lexer import ParseError, without_comments
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.resolving import Scope, resolve
from anabranch._protocol.expressions.syntax import Syntax
from anabranch._protocol.expressions.tree import Column, Constant, Expression, SparkOnly, first_foreign, names_of
from anabranch._protocol.schema.assignments import find_path
from anabranch._protocol.schema.leaves import leaf_at
from anabranch._protocol.schema.lengths import char_length
from anabranch._protocol.schema.types import VOID, Struct
from anabranch._protocol.stats.literals import domain

_ONE_ROW = pa.RecordBatch.from_arrays([pa.nulls(1)], ["x"])


@dataclass(frozen=True)
class Computation:
    """An expression over a table's columns.

    Attributes:
        tree: the expression.
        zone: the session's time zone, if its offset never changes.
    """

    tree: Expression
    zone: dt.tzinfo | None = None

    @property
    def reason(self) -> str | None:
        """Why only Spark computes the expression; None if Arrow can."""
        foreign = first_foreign(self.tree)
        return None if foreign is None else foreign.reason

    @property
    def columns(self) -> frozenset[str]:
        """The top-level columns that it reads."""
        return frozenset(name if isinstance(name, str) else name[0] for name in names_of(self.tree))

    @property
    def is_condition(self) -> bool:
        """Whether it is a condition that Arrow can compute."""
        return self.reason is None and self.tree.type in ("boolean", VOID)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """The value for each row. Raises Unsupported: only Spark can compute it."""
        return compute(self.tree, rows, self.zone)

    def value(self) -> pa.Array:
        """The single value, in an array, of an expression without columns. Raises Unsupported, as `values`."""
        return self.values(_ONE_ROW)

    def truths(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Whether the value is TRUE for each row; never NULL. Raises Unsupported: only Spark can compute it."""
        return compute_mask(self.tree, rows, self.zone)


def computation_over(
    text: str,
    schema: Struct,
    zone: dt.tzinfo | None = None,
    *,
    altered: frozenset[str] = frozenset(),
    timestamp: str | None = None,
) -> Computation:
    """The computation of an SQL text over a table's columns, if each function in it is Spark's own; with a reason if
    only Spark can compute it. The other arguments are those of a `Scope`.

    Example:
        >>> computation_over("id > 0", Struct((Field("id", "long"),))).reason is None
        True
    """
    try:
        scope = Scope(lambda parts: column_of(parts, schema), zone, altered, timestamp)
        return computation_of_syntax(syntax_over(text, schema), scope)
    except ParseError as error:
        return Computation(SparkOnly(f"{error.found}: {error.reason}"))


def syntax_over(text: str, schema: Struct) -> Syntax:
    """Parse an SQL text over a table's columns; comments are ignored. Raises ParseError."""
    return parse_expression(without_comments(text), frozenset(name.lower() for name in schema.names))


def computation_of_syntax(syntax: Syntax, scope: Scope) -> Computation:
    """The computation of a parsed expression."""
    try:
        return Computation(resolve(syntax, scope), scope.zone)
    except RecursionError:  # long chains in nested brackets
        return Computation(SparkOnly("it is nested too deep"))


def column_of(parts: tuple[str, ...], schema: Struct) -> Expression | None:
    """The column of a table, or member of one, that a dotted name means; a `SparkOnly` if only Spark handles its texts,
    which are padded or collated. None if there is none, and for a struct.
    """
    path = find_path(list(parts), schema)
    name = None if path is None else path[0] if len(path) == 1 else path
    leaf = None if name is None else leaf_at(schema, name)
    if leaf is None or name is None:
        return None
    column, length = Column(name, leaf.type), char_length(leaf.path)
    if length is not None:
        padded = (column, Constant(length, "integer"))
        return SparkOnly("texts that are padded are compared by Spark", "", padded, None, "char")
    if leaf.type != "string" or domain(leaf.field) is not None:
        return column
    return SparkOnly("texts of another order are compared by Spark", "", (column,), None, "collate")
