"""Conditions, as commands carry them. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anabranch._protocol.expressions.computation import Computation
from anabranch._protocol.expressions.tree import Constant
from anabranch._protocol.predicates import Always, Predicate


@dataclass(frozen=True)
class Condition:
    """A condition as a command carries it.

    Attributes:
        text: for people.
        expression: for the engine, opaque to everybody else (SQL text, or a Column).
        predicate: what is known of it, `Unknown` where nothing is.
        row_local: its value for a row depends on that row alone, and is deterministic.
        columns: the top-level columns that it reads; None: any.
        asks: it holds a subquery, so its value depends on rows of other tables, or of the same one.
        alias: the name by which the expression may refer to the table; None where it has none.
        computation: how it is computed without Spark, or why it is not; None where nobody has looked.
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
