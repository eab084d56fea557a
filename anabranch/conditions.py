"""Conditions and values as users write them, understood for the table and the session that they will meet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column

from anabranch.errors import InvalidOption
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.predicates import Condition
from anabranch.protocol.schema import Struct
from anabranch.spark.engine import SparkEngine
from anabranch.sql import Context, assignment, check_assigned, column_condition, condition


def understood(given: Any, snapshot: Snapshot, engine: SparkEngine) -> Condition:
    """A condition as the user wrote it, for the version on which the command is to run.

    Raises:
        InvalidOption: it is neither text nor a Column.
        InvalidCondition, NotBuilt: it cannot be used.
    """
    context = context_of(snapshot, engine)
    if isinstance(given, str):
        return condition(given, context)
    if isinstance(given, Column):
        return column_condition(given, context)
    raise InvalidOption(option="condition", value=given, reason="it takes SQL text or a Column.")


def understood_values(values: Mapping[str, str | Column], snapshot: Snapshot, engine: SparkEngine) -> dict[str, Any]:
    """Values to be assigned, each of which may depend on its own row only; the clock is fixed for all of them.

    Raises:
        InvalidCondition, NotBuilt: one cannot be used.
    """
    context, found = context_of(snapshot, engine), {}
    for name, value in values.items():
        if isinstance(value, Column):
            check_assigned(value)
        found[name] = assignment(value, context) if isinstance(value, str) else value
    return found


def context_of(snapshot: Snapshot, engine: SparkEngine) -> Context:
    """What texts depend on from now on: a version's columns, this moment, the session's settings."""
    return context_for(snapshot.table, snapshot.schema, engine)


def context_for(table: str, schema: Struct, engine: SparkEngine) -> Context:
    """The same for columns that are known, as of a table that is yet to be made."""
    now, zone = dt.datetime.now(dt.timezone.utc), engine.settings()["spark.sql.session.timeZone"]
    return Context(table, schema, now, zone, engine.are_builtin)
