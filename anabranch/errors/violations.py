"""Rows that a table does not accept; nothing was committed."""

from __future__ import annotations

from typing import Any

from anabranch.errors.inputs import InputError
from anabranch.errors.rows import NOT_SHOWN, may_show_rows


class RowViolation(InputError):
    """A row to write breaks a rule of the table; nothing was committed.

    ``values`` are those of one such row, as texts by column, None for NULL; ``row`` is the same as one text.
    """

    condition = "ROW_VIOLATES_RULE"
    sql_state = "23000"
    template = "A row to write to the table at {table} breaks one of its rules: {row}. Nothing was committed."

    def __init__(self, **facts: Any) -> None:
        hidden = not may_show_rows(facts.get("table"))
        values = {} if hidden else facts.get("values") or {}
        facts = {**facts, "values": values, "row": NOT_SHOWN} if hidden else facts
        shown = ", ".join(f"{name} = {'NULL' if value is None else value}" for name, value in values.items())
        super().__init__(**{"values": values, "row": shown or "unknown", **facts})


class NotNullViolated(RowViolation):
    """NULL was written into a NOT NULL column."""

    condition = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    sql_state = "23502"
    template = (
        "NOT NULL constraint violated for column: {column} of the table at {table}, where a row has NULL ({row}). "
        "Nothing was committed."
    )


class CheckConstraintViolated(RowViolation):
    """A CHECK constraint of the table is not TRUE for a row; NULL is not TRUE."""

    condition = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    sql_state = "23001"
    template = (
        "CHECK constraint {constraint} ({expression}) violated by row with values: {row}. Nothing was committed to the "
        "table at {table}."
    )


class LengthExceeded(RowViolation):
    """A text is longer than its column's ``char(n)`` or ``varchar(n)``; trailing blanks do not count."""

    condition = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    sql_state = "22001"
    template = (
        "A text for column {column}, which is {limit}, exceeds char/varchar type length limitation ({row}). Nothing "
        "was committed to the table at {table}."
    )


class ReplaceWhereMismatch(InputError):
    """Rows to write do not satisfy the condition of the rows that they replace."""

    condition = "DELTA_REPLACE_WHERE_MISMATCH"
    sql_state = "44000"
    template = (
        "Written data does not conform to partial table overwrite condition or constraint '{predicate}': {count} of "
        "the {rows} rows for the table at {table} do not satisfy it. Nothing was committed. Filter them, or widen the "
        "condition of replaceWhere."
    )


class IdentityColumnGiven(InputError):
    """A value is given for an identity column that only the table fills."""

    condition = "DELTA_IDENTITY_COLUMNS_EXPLICIT_VALUE_NOT_SUPPORTED"
    sql_state = "42808"
    template = "{what} {column} is not supported: only the table at {table} gives its values. Leave the column out."


class ConstraintNotMet(InputError):
    """Existing rows of the table violate a new constraint."""

    condition = "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    sql_state = "23512"
    template = (
        "{count} of {rows} rows in {table} violate the new CHECK constraint {constraint} ({predicate}). Nothing was "
        "added."
    )
