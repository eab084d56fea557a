"""Texts as users of tables without Spark write them, understood for a version: conditions, values, a MERGE.

Knows no session: a function's name means Spark's own, and a time without a zone is in UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch._expressions import (
    Context,
    Sides,
    analyze_merge,
    assignment,
    condition,
    parameters_of,
    resolve_assignments,
    unusable,
)
from anabranch._expressions.computations import names_in
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation, syntax_over
from anabranch._protocol.expressions.words import NotUnderstood
from anabranch._protocol.merges import SEEN, Clause, Matching, When
from anabranch._protocol.schema.assignments import map_values
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.schema.types import Struct, from_arrow
from anabranch._protocol.storing import Computed
from anabranch.errors import InvalidArgument, InvalidCondition, NeedsSpark


def check_text(option: str, value: Any) -> str:
    """Raises InvalidArgument unless a value is SQL text."""
    if not isinstance(value, str):
        raise InvalidArgument(option=option, value=type(value).__name__, reason="it takes SQL text.")
    return value


@dataclass(frozen=True)
class TableTexts:
    """What texts mean for a table of these columns, from now on."""

    table: str
    schema: Struct
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    @property
    def context(self) -> Context:
        """What the texts depend on."""
        return Context(self.table, self.schema, self.now, "UTC", lambda names: True, has_session=False)

    def condition(self, text: str) -> Condition:
        """A condition. Raises InvalidCondition: it has a syntax error, or names what is no column."""
        found = condition(check_text("where", text), self.context)
        if found.columns is None:
            raise unusable(text, self.context)
        return found

    def assignments(self, values: Mapping[str, str] | None) -> dict[str, Any]:
        """Values to be set, by column.

        Raises:
            UnknownColumn: a key is no column. InvalidCondition: a value names what is no column.
            NeedsSpark: Spark computes a value.
        """
        check_texts("set", values)
        sides = Sides(self.schema, ())
        return map_values(resolve_assignments(values, "set", sides, self.context), self._value)

    def _value(self, text: str) -> Computed:
        found = assignment(check_text("set", text), self.context)
        if (reason := found.computation.reason) is None:
            return found
        if condition(f"({text}) IS NULL", self.context).columns is None:
            raise unusable(text, self.context)
        raise NeedsSpark(what=f"the value {text}", table=self.table, reason=reason)

    def computation(self, text: str) -> Computation:
        """How a value is computed, the clock being fixed. Raises InvalidCondition, NeedsSpark: as `assignments`."""
        return self._value(text).computation

    def merge(self, asked: Any) -> tuple[Condition, Matching, dict[str, str]]:
        """What a `anabranch._api.table_merge.TableMerge` is to do: its condition on the table's rows, how rows are
        matched, and what the history shows.

        Raises:
            UnknownColumn, SchemaMismatch, InvalidCondition: it does not fit the table or the source.
        """
        described = all_nullable(from_arrow(asked.source.schema))
        names = tuple(asked.source.column_names)
        sides = Sides(self.schema, names, asked.target_alias, asked.source_alias, described=described)
        clauses = [self._clause(each, sides) for each in asked.clauses]
        self._check_names(asked.on, "on", "matched", sides)
        for each in asked.clauses:
            for text in [each.condition, *(each.values or {}).values()]:
                if text is not None:
                    self._check_names(text, "condition", each.when, sides)
        where, matching = analyze_merge(check_text("on", asked.on), clauses, sides, self.context)
        return where, matching, parameters_of(where, matching)

    def _check_names(self, text: Any, option: str, when: When, sides: Sides) -> None:
        """Raises InvalidCondition: a text names what is no column of the sides that it sees, or of both of them."""
        try:
            syntax = syntax_over(check_text(option, text), self.schema)
        except NotUnderstood:
            raise unusable(text, self.context) from None
        for parts in names_in(syntax):
            if not sides.is_one(parts, SEEN[when]):
                seen = " and ".join({"target": "the table", "source": "the source"}[each] for each in SEEN[when])
                there = [*self.schema.names] if "target" in SEEN[when] else []
                there += sides.source_columns if "source" in SEEN[when] else []
                reason = f"{'.'.join(parts)} is none, or several, of the columns of {seen}: {', '.join(there)}."
                raise InvalidCondition(expression=text, table=self.table, reason=reason)

    def _clause(self, asked: Any, sides: Sides) -> Clause:
        if asked.action == "delete":
            return Clause(asked.when, asked.action, asked.condition)
        option = "set" if asked.action == "update" else "values"
        values = resolve_assignments(asked.values, option, sides, self.context, keeps=asked.action == "update")
        return Clause(asked.when, asked.action, asked.condition, values)


def check_texts(option: str, values: Any) -> None:
    """Raises InvalidArgument unless values are SQL texts by column."""
    if not isinstance(values, Mapping) or not all(isinstance(each, str) for each in values):
        raise InvalidArgument(option=option, value=type(values).__name__, reason="it takes a dict: column -> SQL text.")
    for value in values.values():
        check_text(option, value)
