"""Conditions and values as users write them, understood for the table and the session that they will meet."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column

from anabranch._expressions import (
    Context,
    Sides,
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
from anabranch._protocol.storing import Computed
from anabranch._spark.engine import SparkEngine
from anabranch._spark.reading.row_addresses import Named
from anabranch._spark.sessions.sql_text import substitute_variables
from anabranch.commands.opening import Location
from anabranch.errors import InvalidArgument, InvalidCondition, UnknownColumn
from anabranch.errors.inputs import check_text


def resolve_condition(
    given: Any,
    snapshot: Snapshot,
    engine: SparkEngine,
    *,
    queries: bool = False,
    alias: str | None = None,
    filled: bool = False,
) -> Condition:
    """A condition as the user wrote it, for the version on which the command is to run.

    Args:
        queries: whether it may hold subqueries.
        alias: the name by which it may speak of the table's columns.
        filled: whether ``${…}`` is filled in already, as in the text of a statement.

    Raises:
        InvalidArgument: it is neither text nor a Column.
        InvalidCondition, NotBuilt: it cannot be used; as where it holds a subquery, and may not.
    """
    if not isinstance(given, str | TokenizedText | Column):
        raise InvalidArgument(option="condition", value=given, reason="it takes SQL text or a Column.")
    given = given if filled else as_spark_reads(given, engine)
    context = context_of(snapshot, engine)
    if alias is not None:
        _refuse_two_meanings(given, alias, context)
    if not isinstance(given, Column):
        return condition(given, context, queries=queries, names=() if alias is None else (alias,))
    return replace(column_condition(given, context, alias, queries=queries), alias=alias)


def as_spark_reads(given: Any, engine: SparkEngine) -> Any:
    """A text as Spark reads it, ``${…}`` filled in from the session's settings; anything else as it is."""
    return substitute_variables(given, engine.spark) if isinstance(given, str) else given


def _refuse_two_meanings(given: str | TokenizedText | Column, alias: str, context: Context) -> None:
    """Refuse what speaks by an alias that is the name of a column as well: ``t.x`` may be a member of that one.

    Raises:
        InvalidCondition: it does.
    """
    text = given.text if isinstance(given, TokenizedText) else expression_text(given)
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
    """Values to be assigned to columns and members of structs, each of which may depend on its own row only; the clock
    is fixed for all of them. ``filled`` as for `resolve_condition`.

    Raises:
        UnknownColumn: a key names none of these. InvalidOption: one is set twice.
        InvalidCondition, NotBuilt: a value cannot be used.
    """
    context = context_of(snapshot, engine)

    def understood_value(value: str | TokenizedText | Column) -> Any:
        value = value if filled else as_spark_reads(value, engine)
        if alias is not None:
            _refuse_two_meanings(value, alias, context)
        if isinstance(value, Column):
            computation, given = column_value(value, context, alias), value if alias is None else Named(value, alias)
            return Computed(given, computation)
        return assignment(value, context, () if alias is None else (alias,))

    return map_values(resolve_assignments(values, "set", Sides(context.schema, (), alias), context), understood_value)


def context_of(snapshot: Snapshot, engine: SparkEngine) -> Context:
    """What texts depend on from now on: a version's columns, this moment, the session's settings."""
    return context_for(snapshot.table, snapshot.schema, engine)


def context_for(table: str, schema: Struct, engine: SparkEngine) -> Context:
    """The same for columns that are known, as of a table that is yet to be made."""
    now, settings = dt.datetime.now(dt.UTC), engine.settings()
    timestamp = TIMESTAMP_TYPES.get(settings.get(TIMESTAMPS, "").upper())
    named = schema.exactly() if _says_exact(settings) else schema
    zone, altered = settings["spark.sql.session.timeZone"], altered_settings(settings)
    return Context(table, named, now, zone, engine.are_builtin, altered, timestamp)


def is_exact(engine: SparkEngine) -> bool:
    """Whether to the session a name in another case is another name."""
    return _says_exact(engine.settings())


def _says_exact(settings: Mapping[str, str]) -> bool:
    return settings.get("spark.sql.caseSensitive", "false").lower() == "true"


def with_session_case(schema: Struct, engine: SparkEngine) -> Struct:
    """A table's columns as the session names them: to the letter, where it is case-sensitive."""
    return schema.exactly() if is_exact(engine) else schema


def check_named(schema: Struct, paths: Iterable[Sequence[str]], table: str, engine: SparkEngine) -> None:
    """Raise an error unless a case-sensitive session names columns, or members of structs, to the letter; one that is
    there in no case is left to the command.

    Raises:
        UnknownColumn: one is there in another case only.
    """
    exact = with_session_case(schema, engine)
    for path in paths if exact.exact else ():
        if not is_there(exact, path) and is_there(schema, path):
            raise UnknownColumn(table=table, column=".".join(path), columns=", ".join(schema.names))


def is_there(schema: Struct, path: Sequence[str]) -> bool:
    """Whether there is a column, or member of a struct, at a path."""
    try:
        return field_at(schema, path) is not None
    except UnknownColumn:
        return False


def check_rules(schema: Struct, properties: Mapping[str, str], table: Location, engine: SparkEngine) -> None:
    """Raise an error unless the rules of a table to be made can be checked in every row.

    Raises:
        RuleRefused: an expression is made of more than a rule may be. InvalidCondition: it does not fit the columns.
        ConstraintNotBoolean, GeneratedTypeMismatch, DefaultDoesNotFit: it is of another type.
    """
    check_text("What a table says of itself", schema_json(schema))
    rules = rules_of(Metadata("", schema_json(schema), configuration=properties))
    engine.check_rules(schema, rules, str(table))
