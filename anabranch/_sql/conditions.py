"""Resolves conditions and values that users write, for a table's version and a session."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column

from anabranch._expressions import (
    Context,
    MergeColumns,
    assignment,
    column_condition,
    column_value,
    condition,
    resolve_assignments,
)
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.printed_columns import expression_text
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata
from anabranch._protocol.conditions import Condition
from anabranch._protocol.expressions.resolving import TIMESTAMP_TYPES, TIMESTAMPS, altered_settings
from anabranch._protocol.rules.table_rules import rules_of
from anabranch._protocol.schema.assignments import map_values
from anabranch._protocol.schema.editing import field_at
from anabranch._protocol.schema.types import Struct, schema_json
from anabranch._protocol.store_assignment import ComputedExpression
from anabranch._spark.engine import SparkEngine
from anabranch._spark.reading.row_addresses import AliasedColumn
from anabranch._spark.sessions.sql_text import substitute_variables
from anabranch.commands.opening import Location
from anabranch.errors import InvalidArgument, InvalidCondition, UnknownColumn
from anabranch.errors.inputs import check_text


def resolve_condition(
    user_condition: Any,
    snapshot: Snapshot,
    engine: SparkEngine,
    *,
    queries: bool = False,
    alias: str | None = None,
    filled: bool = False,
) -> Condition:
    """Resolve a user's condition for the version on which the command will run.

    Args:
        queries: whether it may contain subqueries.
        alias: the name that may qualify the table's columns.
        filled: whether ``${…}`` is already substituted, as in the text of a statement.

    Raises:
        InvalidArgument: it is neither a string nor a Column.
        InvalidCondition, NotBuilt: it cannot be used, for example because of a subquery.
    """
    if not isinstance(user_condition, str | TokenizedText | Column):
        raise InvalidArgument(option="condition", value=user_condition, reason="it takes SQL text or a Column.")
    user_condition = user_condition if filled else as_spark_reads(user_condition, engine)
    context = context_of(snapshot, engine)
    if alias is not None:
        _refuse_ambiguous_alias(user_condition, alias, context)
    if not isinstance(user_condition, Column):
        return condition(user_condition, context, queries=queries, names=() if alias is None else (alias,))
    return replace(column_condition(user_condition, context, alias, queries=queries), alias=alias)


def as_spark_reads(value: Any, engine: SparkEngine) -> Any:
    """Substitute ``${…}`` in a string from the session's settings, as Spark does; return other values unchanged."""
    return substitute_variables(value, engine.spark) if isinstance(value, str) else value


def _refuse_ambiguous_alias(user_condition: str | TokenizedText | Column, alias: str, context: Context) -> None:
    """Refuse an alias that is also the name of a column: ``t.x`` may then be a field of that column.

    Raises:
        InvalidCondition: the condition uses such an alias.
    """
    text = user_condition.text if isinstance(user_condition, TokenizedText) else expression_text(user_condition)
    if context.schema.find(alias) is not None and re.search(rf"\b{re.escape(alias)}`?\s*\.", text, re.IGNORECASE):
        reason = f"{alias} is the alias of the table, and the name of one of its columns: choose another alias."
        raise InvalidCondition(expression=text, table=context.table, reason=reason)


def resolve_values(
    values: Mapping[str, str | TokenizedText | Column],
    snapshot: Snapshot,
    engine: SparkEngine,
    alias: str | None = None,
    *,
    filled: bool = False,
) -> dict[str, Any]:
    """Resolve values to assign to columns and struct fields, by their keys.

    A value may depend on its own row only. All see the same current time. ``filled`` is as for `resolve_condition`.

    Raises:
        UnknownColumn: a key names no column. InvalidOption: a column is set twice.
        InvalidCondition, NotBuilt: a value cannot be used.
    """
    context = context_of(snapshot, engine)

    def resolve_value(value: str | TokenizedText | Column) -> Any:
        value = value if filled else as_spark_reads(value, engine)
        if alias is not None:
            _refuse_ambiguous_alias(value, alias, context)
        if isinstance(value, Column):
            computation, column = (
                column_value(value, context, alias),
                value if alias is None else AliasedColumn(value, alias),
            )
            return ComputedExpression(column, computation)
        return assignment(value, context, () if alias is None else (alias,))

    return map_values(
        resolve_assignments(values, "set", MergeColumns(context.schema, (), alias), context), resolve_value
    )


def context_of(snapshot: Snapshot, engine: SparkEngine) -> Context:
    """Return the context in which texts are resolved: a version's columns, the current time, the session's settings."""
    return context_for(snapshot.table, snapshot.schema, engine)


def context_for(table: str, schema: Struct, engine: SparkEngine) -> Context:
    """As `context_of`, for given columns, such as those of a table to create."""
    now, settings = dt.datetime.now(dt.UTC), engine.settings()
    timestamp = TIMESTAMP_TYPES.get(settings.get(TIMESTAMPS, "").upper())
    columns = schema.exactly() if _is_case_sensitive(settings) else schema
    zone, altered = settings["spark.sql.session.timeZone"], altered_settings(settings)
    return Context(table, columns, now, zone, engine.are_builtin, altered, timestamp, engine.has_usual_quotes)


def is_exact(engine: SparkEngine) -> bool:
    """Whether the session's names are case-sensitive."""
    return _is_case_sensitive(engine.settings())


def _is_case_sensitive(settings: Mapping[str, str]) -> bool:
    return settings.get("spark.sql.caseSensitive", "false").lower() == "true"


def with_session_case(schema: Struct, engine: SparkEngine) -> Struct:
    """Return a table's schema with the session's case sensitivity."""
    return schema.exactly() if is_exact(engine) else schema


def check_named(schema: Struct, paths: Iterable[Sequence[str]], table: str, engine: SparkEngine) -> None:
    """In a case-sensitive session, check the case of the names of columns and struct fields.

    The command reports names that do not exist in any case.

    Raises:
        UnknownColumn: a name exists in another case only.
    """
    exact = with_session_case(schema, engine)
    for path in paths if exact.exact else ():
        if not is_there(exact, path) and is_there(schema, path):
            raise UnknownColumn(table=table, column=".".join(path), columns=", ".join(schema.names))


def is_there(schema: Struct, path: Sequence[str]) -> bool:
    """Whether a column or a struct field exists at a path."""
    try:
        return field_at(schema, path) is not None
    except UnknownColumn:
        return False


def check_rules(schema: Struct, properties: Mapping[str, str], table: Location, engine: SparkEngine) -> None:
    """Check that the rules of a table to create can be evaluated in every row.

    Raises:
        RuleRefused: an expression contains more than a rule may. InvalidCondition: it does not fit the columns.
        ConstraintNotBoolean, GeneratedTypeMismatch, DefaultDoesNotFit: it has the wrong type.
    """
    check_text("What a table says of itself", schema_json(schema))
    rules = rules_of(Metadata("", schema_json(schema), configuration=properties))
    engine.check_rules(schema, rules, str(table))
