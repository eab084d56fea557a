"""Schemas and types that are refused, and rows that do not fit a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.errors.inputs import InputError


class SchemaMismatch(InputError):
    """Rows do not fit the table's columns."""

    condition = "DELTA_SCHEMA_MISMATCH"
    sql_state = "42KDG"
    template = (
        "A schema mismatch detected when writing to the Delta table at {table}. Column {column} does not fit the "
        "table: {reason} The table has {expected}, the rows have {found}."
    )

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts, the reason as a sentence."""
        reason = str(facts.get("reason", ""))
        return {**facts, "reason": reason if reason.endswith((".", "!", "?")) else f"{reason}."}


class GeneratedTypeMismatch(SchemaMismatch):
    """The expression of a generated column has another type than the column."""

    condition = "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"
    template = "The column {column} of the table at {table} is {expected}, but its expression is {found}: cast it."


class InvalidSchema(InputError):
    """A schema is not valid."""

    condition = "INVALID_SCHEMA"
    template = "The schema cannot be used: {reason}"


class InvalidCharactersInColumnNames(InputError):
    """A column name holds a character that only a table with column mapping allows."""

    condition = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    sql_state = "42K05"
    template = (
        "Found invalid character(s) among ' ,;{{}}()\\n\\t=' in the column names {columns}; blank and line feed count."
        " Choose other names, or set the table property delta.columnMapping.mode = name."
    )


class UnsupportedType(InputError):
    """A column has a type that a Delta table cannot hold, or whatever else the fact ``holder`` names."""

    condition = "UNSUPPORTED_TYPE"
    sql_state = "0A000"
    template = "Column {column} has the type {type}, which {holder} cannot hold. Cast it first."

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"holder": "a Delta table", **facts}


class UnwritableVoid(UnsupportedType):
    """A table cannot hold rows, because of where its columns have the type void."""

    condition = "UNWRITABLE_VOID"
    sql_state = "428GU"
    template = (
        "No row can be written to a table whose column {column} has the type {type}: {reason} Give it another type"
        " first, with ALTER COLUMN or a cast."
    )
