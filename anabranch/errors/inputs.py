"""Requests of a caller that are refused; nothing was written. Each error is an ``AnalysisException`` of PySpark too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from anabranch.errors.root import AnabranchError, InputBase, ParseBase, of_pyspark
from anabranch.errors.secrets import is_secret
from anabranch.errors.visible import visible


class InputError(AnabranchError, InputBase):
    """The command cannot be run as requested; nothing was written."""

    condition = "INVALID_INPUT"
    sql_state = "42000"
    template = "{reason}"


class InvalidCondition(InputError):
    """A condition or expression does not parse, does not fit the columns, or is not a condition."""

    condition = "INVALID_CONDITION"
    template = "The expression {expression} cannot be used on the table at {table}: {reason}"


class UnreadableExpression(InvalidCondition, ParseBase):
    """A condition or expression is not valid SQL; the error is a ``ParseException`` of PySpark too."""

    condition = "UNREADABLE_EXPRESSION"
    template = "The expression {expression} cannot be read, for the table at {table}: {reason}"


class Nondeterministic(InvalidCondition):
    """A condition or value must be deterministic and is not."""

    condition = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
    sql_state = "42K0E"
    template = (
        "The expression {expression} cannot be used on the table at {table}, since its value is another one each time: "
        "{reason} Compute it first, and compare with what was kept."
    )


class RuleRefused(InvalidCondition):
    """A rule in a table's metadata uses something that rules may not use, so it is not evaluated."""

    condition = "RULE_REFUSED"
    sql_state = "42K0E"
    template = (
        "The {rule} of the table at {table} is not evaluated: {found} in {expression} is refused, since {reason}. "
        "Nothing was written. A rule takes the table's own columns, literals and the functions that "
        "docs/concepts/constraints.md lists; state it so, or drop it."
    )


class ConstraintNotBoolean(InvalidCondition):
    """The expression of a new CHECK constraint is not boolean."""

    condition = "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"
    sql_state = "42621"
    template = (
        "CHECK constraint '{constraint}' ({expression}) should be a boolean expression, but is {found}. The table is "
        "at {table}."
    )


class InvalidConstraintName(InputError):
    """The name of a new constraint is reserved."""

    condition = "DELTA_INVALID_CONSTRAINT_NAME"
    sql_state = "42939"
    template = (
        "Cannot use {constraint} as the name of a CHECK constraint. This name is reserved. The table is at {table}."
    )


class DefaultDoesNotFit(InvalidCondition):
    """The default of a column is not a value of the column's type."""

    condition = "INVALID_DEFAULT_VALUE"
    sql_state = "42623"
    template = "The column {column} of the table at {table} is {expected} and cannot hold its default {expression}."


class UnknownColumn(InputError):
    """The table has no column of this name."""

    condition = "UNKNOWN_COLUMN"
    sql_state = "42703"
    template = "{said}: the table at {table} has no column {column}; it has {columns}."
    _of_no_table = "{said}: there is no column {column}; there are {columns}."

    def __init__(self, **facts: Any) -> None:
        if not facts.get("table"):
            self.template = self._of_no_table
        super().__init__(**{**facts, "columns": facts.get("columns") or "none"})

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts, with the clause of a MERGE that names the column, if any."""
        column, clause = facts.get("column"), facts.get("clause")
        listed = f"given columns {facts.get('columns')}"
        subject = (
            f"Cannot resolve {column} in {clause} clause {listed}"
            if clause
            else f"The column {column} cannot be resolved"
        )
        return {"said": subject, **facts}


class TableWithoutColumns(InputError):
    """A table that was created without columns, and has none yet, is read."""

    condition = "DELTA_READ_TABLE_WITHOUT_COLUMNS"
    sql_state = "428GU"
    template = (
        "The table at {table} has no columns yet, so nothing can be read from it. Add columns by ALTER TABLE, or write "
        "rows with the option mergeSchema."
    )


class LoneSurrogate(InputError):
    """A text holds a lone surrogate, half of a character, which neither files nor tables can hold."""

    condition = "LONE_SURROGATE"
    sql_state = "22021"
    template = "{what} cannot be written: {sign}, at {at}, is a lone surrogate, half of a character. Correct the text."


def check_text(what: str, text: str) -> None:
    """Raises `LoneSurrogate` unless a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LoneSurrogate(what=what, sign=visible(text[error.start]), at=error.start) from None


_KNOWN = ("delta.", "anabranch.", "sparkSession")


class ValueRefused(InputError):
    """A named value is refused; the error hides the value where its name is that of a secret."""

    condition = "VALUE_REFUSED"
    template = "{name} cannot be {value}: {reason}"

    def __init__(self, **facts: Any) -> None:
        name = str(facts.get("option") or facts.get("property") or "")
        if facts.get("value") is not None and is_secret(name) and not name.startswith(_KNOWN):
            facts = _without(str(facts["value"]), {**facts, "value": "***"})
        super().__init__(**facts)


_SHORT = 3


def _without(value: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without a value in their texts; a short value is replaced only where it is a whole word."""
    pattern = re.compile(re.escape(value) if len(value) > _SHORT else rf"(?<!\w){re.escape(value)}(?!\w)")
    return {
        name: pattern.sub("***", fact) if isinstance(fact, str) and name not in ("option", "property") else fact
        for name, fact in facts.items()
    }


class InvalidProperty(ValueRefused, of_pyspark("IllegalArgumentException")):  # type: ignore[misc]
    """A table property is unknown, or has a value that it does not take."""

    condition = "DELTA_INVALID_PROPERTY"
    sql_state = "42616"
    template = "The table property {property} cannot be {value}: {reason}"


class InvalidOption(ValueRefused, of_pyspark("IllegalArgumentException")):  # type: ignore[misc]
    """An option or argument of a command is unknown, or has a value that it does not take."""

    condition = "INVALID_OPTION"
    sql_state = "42616"
    template = "The option {option} cannot be {value}: {reason}"

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts; a value of None means that the option is missing."""
        return {**facts, "value": "left out"} if facts.get("value", self) is None else facts


class IdentityNotBigint(InvalidOption, of_pyspark("UnsupportedOperationException")):  # type: ignore[misc]
    """An identity column is declared with another type than BIGINT."""

    condition = "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"
    sql_state = "428H2"
    template = "The column {column} is {value}: an identity column is a BIGINT."


class InvalidArgument(InvalidOption, TypeError, ValueError):
    """An argument of a method has a type that it does not take; also a ``TypeError`` and a ``ValueError``."""

    condition = "INVALID_ARGUMENT"
    template = "The argument {option} cannot be {value}: {reason}"

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts as they are: here None is the value."""
        return facts


def check_session(argument: str, spark: Any) -> None:
    """Raises `InvalidArgument` unless an argument is a session, classic or of Connect."""
    if isinstance(spark, type) or not (hasattr(spark, "conf") and hasattr(spark, "createDataFrame")):
        reason = "it takes a SparkSession; anabranch.session() gives one."
        raise InvalidArgument(option=argument, value=_describe_type(spark), reason=reason)


def check_location(location: Any) -> None:
    """Raises `InvalidArgument` unless the place of a table is text, or a path of Python."""
    if not isinstance(location, str | PathLike) or not isinstance(fspath(location), str):
        reason = "it takes the path or URL of a table, as text or as a pathlib.Path."
        raise InvalidArgument(option="path", value=_describe_type(location), reason=reason)


def _describe_type(value: Any) -> str:
    """The type of a value; the value itself may hold a secret."""
    return "None" if value is None else f"of the type {type(value).__name__}"


class UnreadableType(InvalidOption, ParseBase):
    """A text is no type, or no list of columns and types; the error is a ``ParseException`` of PySpark too."""

    condition = "UNREADABLE_TYPE"


class InvalidTimestamp(InputError):
    """A timestamp for time travel is not one that Spark understands."""

    condition = "DELTA_TIMESTAMP_INVALID"
    sql_state = "42816"
    template = (
        "The provided timestamp ({value}) cannot be converted to a valid timestamp: {reason} "
        "Write it as 2024-01-31, 2024-01-31 12:30:00.000 or 2024-01-31T12:30:00Z."
    )


class AmbiguousTimeTravel(InputError):
    """A version of a table is given in more than one way."""

    condition = "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"
    sql_state = "42613"
    template = (
        "The version of the table at {table} is given by {first} and by {second}. Please either provide "
        "'timestampAsOf' or 'versionAsOf' for time travel."
    )


class ColumnInUse(InputError):
    """A column to rename or drop is used by something else in the table."""

    condition = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    sql_state = "42K09"
    template = "{said} The table is at {table}."


class AppendOnlyTable(InputError, of_pyspark("UnsupportedOperationException")):  # type: ignore[misc]
    """The table has ``delta.appendOnly`` set and the command would remove or change rows."""

    condition = "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    sql_state = "42809"
    template = (
        "This table is configured to only allow appends (delta.appendOnly = true): {operation} would change or remove "
        "rows of the table at {table}."
    )


class TableAlreadyExists(InputError):
    """A table exists where one is to be created."""

    condition = "DELTA_TABLE_ALREADY_EXISTS"
    sql_state = "42P07"
    template = "A Delta table already exists at {table}. Append to it, overwrite or replace it, or choose another path."


class LocationNotEmpty(InputError):
    """A table is to be created where files of something else lie."""

    condition = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    sql_state = "42601"
    template = (
        "Cannot create a table at {table}: the location is not empty and also not a Delta table, {found} lies there "
        "for one. Choose another location, or make a table of Parquet files by CONVERT TO DELTA."
    )


class UnknownSourceVersion(InputError):
    """Rows to write come from the table that they are written to, and their version is not known."""

    condition = "UNKNOWN_SOURCE_VERSION"
    sql_state = "0A000"
    template = (
        "The rows to write to the table at {table} come from its own files, and their version is not "
        "known: changes since then could be lost. Read them by anabranch (read, toDF, format), or name the version: "
        "reads_target of merge(), option readsTarget of a write."
    )


class AmbiguousMerge(InputError, of_pyspark("UnsupportedOperationException")):  # type: ignore[misc]
    """Several source rows would change one row of the table in a MERGE."""

    condition = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    sql_state = "21506"
    template = (
        "Cannot perform Merge as multiple source rows matched and attempted to modify the same target row in the Delta "
        "table in possibly conflicting ways: {count} of the rows of the table at {table} would be changed by several "
        "source rows each. Make the source unique in what ON compares, for instance by dropDuplicates()."
    )


class FeatureNotDropped(InputError):
    """A feature cannot be dropped from the table's protocol, or not yet; the condition says which rule forbids it."""

    condition = "DELTA_FEATURE_NOT_DROPPED"
    sql_state = "22KD0"
    template = "Cannot drop {feature} from this table because {reason} The table is at {table}."


class RetentionTooShort(InputError, of_pyspark("IllegalArgumentException")):  # type: ignore[misc]
    """VACUUM would retain files for less time than the table requires: versions in use could lose their files."""

    condition = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    sql_state = "22003"
    template = (
        "The specified VACUUM retention period is too low: with {hours} hours, the table at {table} would not retain "
        "what it has to, {retained} (delta.deletedFileRetentionDuration): readers of older versions would lose their "
        "files, as would writers of other engines. Nothing was removed. If nobody uses those versions, disable the "
        "check: check_retention=False in Python, --no-check on the command line, or SET "
        "spark.databricks.delta.retentionDurationCheck.enabled = false in SQL."
    )


class LiteVacuumImpossible(InputError):
    """VACUUM LITE reads the log, and the part of it that it needs was cleaned up."""

    condition = "DELTA_CANNOT_VACUUM_LITE"
    sql_state = "55000"
    template = (
        "VACUUM LITE of the table at {table} needs the commits from version {needed} on, but the oldest is version "
        "{earliest}. Nothing was removed. Run VACUUM without LITE once."
    )


class ManifestRefused(InputError):
    """A manifest cannot represent this table; the condition says why."""

    condition = "DELTA_UNSUPPORTED_GENERATE"
    sql_state = "0A000"
    template = "No manifest of the table at {table} can be generated: {reason} Nothing was written."


class NotBuilt(InputError):
    """A documented statement of Delta Lake that this version does not run yet."""

    condition = "NOT_BUILT_YET"
    sql_state = "0A000"
    template = "{what} is not built yet in this version of Anabranch. {instead}"


class NeedsSpark(InputError):
    """An operation on a table without a session needs Spark; nothing was read or written. ``reason`` explains why."""

    condition = "NEEDS_SPARK"
    sql_state = "0A000"
    template = "{what} needs Spark ({reason}), for the table at {table}: use DeltaTable.forPath(spark, path)."


class StatementNeedsSpark(NeedsSpark):
    """A statement of the command line needs Spark, and was run without it; ``reason`` explains why."""

    condition = "STATEMENT_NEEDS_SPARK"
    template = "{what} needs Spark ({reason}). {instead}"


class NotInTransaction(InputError):
    """A statement that cannot stand in a transaction of several statements, or outside of one; it did nothing.

    Facts: ``what``, ``table``, ``reason``.
    """

    condition = "NOT_SUPPORTED_IN_TRANSACTION"
    sql_state = "0A000"
    template = "{what} is refused: {reason}"


class UnsupportedCommand(InputError):
    """A statement of Spark's that Delta tables do not support, by any engine."""

    condition = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
    sql_state = "0A000"
    template = "{statement} is not supported for v2 tables, such as Delta tables. {instead}"


class SqlSyntaxError(InputError, ParseBase):
    """A statement has a syntax error."""

    condition = "PARSE_SYNTAX_ERROR"
    sql_state = "42601"
    template = "Syntax error at or near {near}: {reason}"


class UnknownTable(InputError):
    """A statement that only a Delta table supports names a table that is not one."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"
    sql_state = "42P01"
    template = (
        "{name} is not a Delta table: the table or view cannot be found. Check its name and schema, or name the path: "
        "delta.`/path/to/table`."
    )


class TransactionStatement(InputError):
    """A statement begins a transaction of several statements in another spelling than Databricks', or is a script."""

    condition = "UNSUPPORTED_TRANSACTION_STATEMENT"
    sql_state = "0A000"
    template = (
        "{statement} is refused: a transaction of several statements on one table is BEGIN TRANSACTION … COMMIT or "
        "ROLLBACK, or a block BEGIN ATOMIC …; …; END. MERGE combines inserts, updates and deletes in one statement."
    )


class SqlAnalysisError(InputError):
    """Spark cannot analyse a statement; the condition and the sentence are Spark's own."""

    condition = "SQL_ANALYSIS_FAILED"
    template = "{reason}"

    def getSqlState(self) -> str:
        """Spark's SQLSTATE for it."""
        return str(self.facts.get("state") or self.sql_state)
