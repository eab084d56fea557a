"""Storing: the value that a column stores for a computed value.

Pure. Guarantee: the stored value is Spark's by its rules of store assignment, or the computation has a reason why only
Spark can store it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from anabranch._protocol.expressions.common_types import is_number
from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.resolving import coerce
from anabranch._protocol.expressions.table import ArgumentsNotSupported
from anabranch._protocol.expressions.tree import Expression, SparkOnly
from anabranch._protocol.schema.intervals import YEAR_MONTH
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.plain import are_plain
from anabranch._protocol.schema.types import VOID, Field


@dataclass(frozen=True)
class ComputedExpression:
    """An expression of the engine, SQL text or a Column, and its computation without the engine."""

    expression: Any
    computation: Computation

    def __str__(self) -> str:
        return str(self.expression)


def is_known(value: Any) -> bool:
    """Whether an expression is computed without the engine, so that its value is known."""
    return isinstance(value, ComputedExpression) and value.computation.reason is None


def cast_to_column(given: Computation, field: Field) -> Computation:
    """The value as a column stores it; with a reason if only Spark can store it.

    Example:
        >>> cast_to_column(Computation(Constant(5, "integer")), Field("id", "long")).tree.type
        'long'
    """
    try:
        return replace(given, tree=_cast_tree(given.tree, field))
    except ArgumentsNotSupported as error:
        return Computation(SparkOnly(f"the column {field.name}: {error}"))


def _cast_tree(tree: Expression, field: Field) -> Expression:
    kind = tree.type
    if kind in (field.type, VOID, "string") or (is_number(kind) and is_number(field.type)):
        return coerce(tree, field.type)
    raise ArgumentsNotSupported(f"{kind} is stored as {field.type}")


def is_plain_column(field: Field) -> bool:
    """Whether files store the values of a column unchanged: its type is not nested, and has no length."""
    return (are_plain([field]) or field.type == YEAR_MONTH) and LENGTH not in field.metadata
