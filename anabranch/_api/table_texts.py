"""Reads the SQL texts of users without Spark for one version of a table: conditions, values, a MERGE.

Knows no session: a function's name means Spark's own, and a time without a zone is in UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch._expressions import (
    Context,
    MergeColumns,
    analyze_merge,
    assignment,
    condition,
    describe_unusable,
    parameters_of,
    resolve_assignments,
)
from anabranch._expressions.computations import names_in
from anabranch._expressions.tokens import CLOCKS
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.computation import Computation, syntax_over
from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.merges import SEEN, Clause, MergePlan, When
from anabranch._protocol.schema.assignments import map_values
from anabranch._protocol.schema.evolution import all_nullable
from anabranch._protocol.schema.types import Struct, from_arrow
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch.errors import InvalidArgument, InvalidCondition, NeedsSpark


def check_text(option: str, value: Any) -> str:
    """Raises InvalidArgument unless a value is SQL text."""
    if not isinstance(value, str):
        raise InvalidArgument(option=option, value=type(value).__name__, reason="it takes SQL text.")
    return value


@dataclass(frozen=True)
class TableTexts:
    """Reads texts for a table with these columns, at a fixed time."""

    table: str
    schema: Struct
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    @property
    def context(self) -> Context:
        """What the meaning of the texts depends on."""
        always = lambda *_: True  # noqa: E731
        return Context(self.table, self.schema, self.now, "UTC", always, timestamp="timestamp", has_usual_quotes=always)

    def condition(self, text: str) -> Condition:
        """A condition. Raises InvalidCondition: it has a syntax error or names an unknown column."""
        parsed = condition(check_text("where", text), self.context)
        if parsed.columns is None:
            raise describe_unusable(text, self.context)
        return parsed

    def assignments(self, values: Mapping[str, str] | None) -> dict[str, Any]:
        """The values to set, by column.

        Raises:
            UnknownColumn: a key is no column. InvalidCondition: a value names an unknown column.
            NeedsSpark: only Spark can compute a value.
        """
        check_texts("set", values)
        sides = MergeColumns(self.schema, ())
        return map_values(resolve_assignments(values, "set", sides, self.context), self._value)

    def _value(self, text: str) -> ComputedExpression:
        value = assignment(check_text("set", text), self.context)
        if (reason := value.computation.reason) is None:
            return value
        if condition(f"({text}) IS NULL", self.context).columns is None:
            raise describe_unusable(text, self.context)
        raise NeedsSpark(what=f"the value {text}", table=self.table, reason=reason)

    def computation(self, text: str) -> Computation:
        """The computation of a value at the fixed time. Raises InvalidCondition, NeedsSpark: as `assignments`."""
        return self._value(text).computation

    def merge(self, merge: Any) -> tuple[Condition, MergePlan, dict[str, str]]:
        """Analyses a `anabranch._api.table_merge.TableMerge`: its condition on the table's rows, the matching, and the
        operation parameters for the history.

        Raises:
            UnknownColumn, SchemaMismatch, InvalidCondition: it does not fit the table or the source.
        """
        source_schema = all_nullable(from_arrow(merge.source.schema))
        source_names = tuple(merge.source.column_names)
        sides = MergeColumns(self.schema, source_names, merge.target_alias, merge.source_alias, described=source_schema)
        clauses = [self._clause(clause, sides) for clause in merge.clauses]
        self._check_names(merge.on, "on", "matched", sides)
        for clause in merge.clauses:
            for text in [clause.condition, *(clause.values or {}).values()]:
                if text is not None:
                    self._check_names(text, "condition", clause.when, sides)
        where, matching = analyze_merge(check_text("on", merge.on), clauses, sides, self.context)
        return where, matching, parameters_of(where, matching)

    def _check_names(self, text: Any, option: str, when: When, sides: MergeColumns) -> None:
        """Raises InvalidCondition: a text names a column that is in none, or both, of the sides it can use."""
        try:
            syntax = syntax_over(check_text(option, text), self.schema)
        except ParseError:
            raise describe_unusable(text, self.context) from None
        for parts in names_in(syntax):
            is_clock = len(parts) == 1 and parts[0].lower() in CLOCKS
            if not is_clock and not sides.is_one(parts, SEEN[when]):
                tables = " and ".join({"target": "the table", "source": "the source"}[side] for side in SEEN[when])
                columns = [*self.schema.names] if "target" in SEEN[when] else []
                columns += sides.source_columns if "source" in SEEN[when] else []
                reason = (
                    f"{'.'.join(parts)} matches none, or several, of the columns of {tables}: {', '.join(columns)}."
                )
                raise InvalidCondition(expression=text, table=self.table, reason=reason)

    def _clause(self, clause: Any, sides: MergeColumns) -> Clause:
        if clause.action == "delete":
            return Clause(clause.when, clause.action, clause.condition)
        option = "set" if clause.action == "update" else "values"
        values = resolve_assignments(clause.values, option, sides, self.context, keeps=clause.action == "update")
        return Clause(clause.when, clause.action, clause.condition, values)


def check_texts(option: str, values: Any) -> None:
    """Raises InvalidArgument unless values are SQL texts by column."""
    if not isinstance(values, Mapping) or not all(isinstance(column, str) for column in values):
        raise InvalidArgument(option=option, value=type(values).__name__, reason="it takes a dict: column -> SQL text.")
    for value in values.values():
        check_text(option, value)
