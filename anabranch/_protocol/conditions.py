"""Conditions, as commands carry them. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.possible import possible_rows
from anabranch._protocol.expressions.tree import Constant
from anabranch._protocol.predicates import Always, Predicate
from anabranch._protocol.schema.types import Struct


@dataclass(frozen=True)
class Condition:
    """A condition as a command carries it.

    Attributes:
        text: for people.
        expression: for the engine, opaque to all other code (SQL text, or a Column).
        predicate: its known part, `Unknown` if there is none.
        row_local: whether its value for a row depends on that row alone, and is deterministic.
        columns: the top-level columns that it reads; None: any.
        asks: whether it contains a subquery, so that its value depends on rows of other tables, or of the same one.
        alias: the name by which the expression may refer to the table; None if it has none.
        computation: its computation without Spark, or the reason why there is none; None if that is undecided.
    """

    text: str
    predicate: Predicate
    row_local: bool
    expression: Any
    columns: frozenset[str] | None = None
    asks: bool = False
    alias: str | None = None
    computation: Computation | None = None


def always(truth: bool) -> Condition:
    """The condition that is TRUE for every row, or for none."""
    text, computation = str(truth).lower(), Computation(Constant(truth, "boolean"))
    return Condition(text, Always(truth), True, text, frozenset(), computation=computation)


def may_hold(predicate: Predicate, schema: Struct, text: str) -> Condition:
    """The condition that is TRUE for every row that a condition with this text and this predicate may select. Where
    Arrow does not read the columns, these are all rows.
    """
    return Condition(text, predicate, True, "true", computation=Computation(possible_rows(predicate, schema)))
