"""What a caller asked for and cannot have; nothing was written. Each is an ``AnalysisException`` of PySpark too."""

from __future__ import annotations

from typing import Any

from anabranch.errors.root import AnabranchError, InputBase, ParseBase, of_pyspark
from anabranch.errors.rows import NOT_SHOWN, may_show_rows
from anabranch.errors.secrets import is_secret


class InputError(AnabranchError, InputBase):
    """The command cannot be run as it was asked for; nothing was written."""

    condition = "INVALID_INPUT"
    sql_state = "42000"
    template = "{reason}"


class InvalidCondition(InputError):
    """A condition or expression does not parse, does not fit the columns, or is not a condition."""

    condition = "INVALID_CONDITION"
    template = "The expression {expression} cannot be used on the table at {table}: {reason}"


class UnreadableExpression(InvalidCondition, ParseBase):
    """A condition or expression is no SQL; it is a ``ParseException`` of PySpark, too."""

    condition = "UNREADABLE_EXPRESSION"
    template = "The expression {expression} cannot be read, for the table at {table}: {reason}"


class UnknownColumn(InputError):
    """A column is named that the table does not have."""

    condition = "UNKNOWN_COLUMN"
    sql_state = "42703"
    template = "The table at {table} has no column {column}; it has {columns}."


class SchemaMismatch(InputError):
    """Rows do not fit the table's columns."""

    condition = "DELTA_SCHEMA_MISMATCH"
    sql_state = "42KDG"
    template = "Column {column} does not fit the table at {table}: {reason} (it has {expected}, the rows have {found})."


class InvalidSchema(InputError):
    """A schema that is not one."""

    condition = "INVALID_SCHEMA"
    template = "The schema cannot be used: {reason}"


class UnsupportedType(InputError):
    """A column has a type that a Delta table cannot hold."""

    condition = "UNSUPPORTED_TYPE"
    sql_state = "0A000"
    template = "Column {column} has the type {type}, which a Delta table cannot hold. Cast it first."


_KNOWN = ("delta.", "anabranch.")


class ValueRefused(InputError):
    """A value that was given by a name is refused; one whose name is that of a secret is not shown."""

    condition = "VALUE_REFUSED"
    template = "{name} cannot be {value}: {reason}"

    def __init__(self, **facts: Any) -> None:
        name = str(facts.get("option") or facts.get("property") or "")
        hidden = {"value": "***"} if facts.get("value") and is_secret(name) and not name.startswith(_KNOWN) else {}
        super().__init__(**{**facts, **hidden})


class InvalidProperty(ValueRefused):
    """A table property is unknown, or its value is not one that it takes."""

    condition = "DELTA_INVALID_PROPERTY"
    sql_state = "42616"
    template = "The table property {property} cannot be {value}: {reason}"


class InvalidOption(ValueRefused, of_pyspark("IllegalArgumentException")):  # type: ignore[misc]
    """An option or argument of a command is unknown, or its value is not one that it takes."""

    condition = "INVALID_OPTION"
    sql_state = "42616"
    template = "The option {option} cannot be {value}: {reason}"


class InvalidArgument(InvalidOption, TypeError, ValueError):
    """An argument of a method is not of a type that it takes; it is a ``TypeError`` and a ``ValueError``, too."""

    condition = "INVALID_ARGUMENT"
    template = "The argument {option} cannot be {value}: {reason}"


class InvalidTimestamp(InputError):
    """A timestamp to read a table at is none that Spark would understand."""

    condition = "DELTA_TIMESTAMP_INVALID"
    sql_state = "42816"
    template = (
        "{value} is no timestamp to read a table at: {reason} "
        "Write it as 2024-01-31, 2024-01-31 12:30:00.000 or 2024-01-31T12:30:00Z."
    )


class AmbiguousTimeTravel(InputError):
    """A version of a table is named in more than one way."""

    condition = "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"
    sql_state = "42613"
    template = "The version of the table at {table} is named by {first} and by {second}; name it once."


class ColumnInUse(InputError):
    """A column that is to be renamed or dropped is one of which something else in the table speaks."""

    condition = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
    sql_state = "42K09"
    template = "The column {column} of the table at {table} cannot be changed while it is used by {users}."


class RowViolation(InputError):
    """A row to be written breaks a rule of the table; nothing was committed.

    ``values`` are those of a row that breaks it, as texts by column, None for NULL; ``row`` is the same as a text.
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
    """NULL was written into a column that is declared NOT NULL."""

    condition = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    sql_state = "23502"
    template = "Column {column} of the table at {table} is NOT NULL, but NULL in a row ({row}). Nothing was committed."


class CheckConstraintViolated(RowViolation):
    """A row is not one for which a CHECK constraint of the table is TRUE; NULL is not TRUE."""

    condition = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    sql_state = "23001"
    template = "CHECK constraint {constraint} ({expression}) of {table} is violated by {row}. Nothing was committed."


class LengthExceeded(RowViolation):
    """A text is longer than its column's ``char(n)`` or ``varchar(n)``, blanks at its end apart."""

    condition = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    sql_state = "22001"
    template = (
        "Column {column} of the table at {table} takes texts of the length of {limit}, but a row to write is longer "
        "({row}). Nothing was committed."
    )


class EmptyDirectory(InputError):
    """A folder to be converted holds no data file."""

    condition = "DELTA_EMPTY_DIRECTORY"
    sql_state = "42K03"
    template = "There is no data file under {table} to convert; files and folders that begin with _ or . do not count."


class UnreadableFooter(InputError):
    """A file to be converted is no Parquet file, or a damaged one."""

    condition = "DELTA_FAILED_READ_FILE_FOOTER"
    sql_state = "KD001"
    template = (
        "The footer of {file} under {table} cannot be read: {reason} Nothing was written. Remove the file, or give it "
        "a name that begins with _ or a dot."
    )


class SchemaMergeFailed(InputError):
    """The columns of a file to be converted do not fit those of the files before it."""

    condition = "DELTA_FAILED_MERGE_SCHEMA_FILE"
    sql_state = "42KDA"
    template = (
        "The columns of {file} under {table} do not fit those of the files before it: column {column} {reason}. "
        "Nothing was written."
    )


class UnexpectedPartition(InputError):
    """The folders of a file to be converted do not name the partition columns that were given."""

    condition = "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"
    sql_state = "KD009"
    template = (
        "The folders of {file} under {table} name the partition columns {found}, but {expected} were given. "
        "Nothing was written. Give the columns with their types, in the order of the folders."
    )


class ConversionRefused(InputError):
    """A folder cannot be converted as it is."""

    condition = "CONVERSION_REFUSED"
    sql_state = "0A000"
    template = "The folder {table} cannot be converted: {reason} Nothing was written."


class CloneRefused(InputError):
    """A table cannot be cloned to where it was to be, or not so."""

    condition = "CLONE_REFUSED"
    sql_state = "0A000"
    template = "The table at {source} cannot be cloned to {table}: {reason} Nothing was committed."


class AppendOnlyTable(InputError, of_pyspark("UnsupportedOperationException")):  # type: ignore[misc]
    """The table has ``delta.appendOnly`` set and the command would remove or change rows."""

    condition = "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    sql_state = "42809"
    template = "The table at {table} is append-only (delta.appendOnly = true): {operation} would change or remove rows."


class TableAlreadyExists(InputError):
    """A table is to be created where there is one."""

    condition = "DELTA_TABLE_ALREADY_EXISTS"
    sql_state = "42P07"
    template = "There is a Delta table at {table} already. Append to it, overwrite or replace it, or take another path."


class ReplaceWhereMismatch(InputError):
    """Rows to be written do not satisfy the condition of the rows that they replace."""

    condition = "DELTA_REPLACE_WHERE_MISMATCH"
    sql_state = "44000"
    template = (
        "{count} of the {rows} rows to write to the table at {table} do not satisfy the condition of replaceWhere, "
        "{predicate}. Nothing was committed. Filter them, or widen the condition."
    )


class UnknownSourceVersion(InputError):
    """Rows to be written come from the very table that they are written to, and nothing says from which version."""

    condition = "UNKNOWN_SOURCE_VERSION"
    sql_state = "0A000"
    template = (
        "The rows to write to the table at {table} come from its own files, and it is not known of which version they "
        "are: what changed since could be lost. Read them by anabranch (read, toDF, format), or name the version: "
        "reads_target of merge(), option readsTarget of a write."
    )


class IdentityColumnGiven(InputError):
    """A value for a column whose values only the table gives."""

    condition = "DELTA_IDENTITY_COLUMNS_EXPLICIT_VALUE_NOT_SUPPORTED"
    sql_state = "42808"
    template = "Only the table at {table} gives values of {column}, so it cannot be {what}; leave the column out."


class ConstraintNotMet(InputError):
    """Rows of the table do not satisfy a constraint that is to be added."""

    condition = "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    sql_state = "23512"
    template = "{count} of {rows} rows of {table} break the constraint {constraint}, {predicate}; nothing is added."


class AmbiguousMerge(InputError, of_pyspark("UnsupportedOperationException")):  # type: ignore[misc]
    """Several source rows would change one row of the table in a MERGE."""

    condition = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
    sql_state = "21506"
    template = (
        "MERGE into the table at {table} is ambiguous: {count} of its rows would be changed by several source rows "
        "each. Make the source unique in what ON compares, for instance by dropDuplicates()."
    )


class FeatureNotDropped(InputError):
    """A feature cannot be dropped from the table's protocol, or not yet; its condition says by which rule."""

    condition = "DELTA_FEATURE_NOT_DROPPED"
    sql_state = "22KD0"
    template = "{feature} was not dropped from the protocol of the table at {table}: {reason}"


class RetentionTooShort(InputError, of_pyspark("IllegalArgumentException")):  # type: ignore[misc]
    """VACUUM is to retain files for less time than the table says: versions that are in use may lose theirs."""

    condition = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    sql_state = "22003"
    template = (
        "VACUUM of the table at {table} is to retain {hours} hours, and the table {retained} "
        "(delta.deletedFileRetentionDuration): readers of older versions would lose their files, as would writers of "
        "other engines. Nothing was removed. If nobody uses those versions, switch the check off: "
        "check_retention=False, or spark.databricks.delta.retentionDurationCheck.enabled = false."
    )


class LiteVacuumImpossible(InputError):
    """VACUUM LITE goes by the log, and the part of it that it would need was cleaned up."""

    condition = "DELTA_CANNOT_VACUUM_LITE"
    sql_state = "55000"
    template = (
        "VACUUM LITE of the table at {table} needs the commits from version {needed} on, and they begin at {earliest}. "
        "Nothing was removed. Run VACUUM without LITE once."
    )


class ManifestRefused(InputError):
    """No manifest can say what the table holds; its condition says why."""

    condition = "DELTA_UNSUPPORTED_GENERATE"
    sql_state = "0A000"
    template = "No manifest of the table at {table} can be generated: {reason} Nothing was written."


class NotBuilt(InputError):
    """A documented statement of Delta Lake that this version does not run yet."""

    condition = "NOT_BUILT_YET"
    sql_state = "0A000"
    template = "{what} is not built yet in this version of Anabranch. {instead}"


class SqlSyntaxError(InputError, ParseBase):
    """A statement is not put together as SQL is."""

    condition = "PARSE_SYNTAX_ERROR"
    sql_state = "42601"
    template = "Syntax error at or near {near}: {reason}"


class UnknownTable(InputError):
    """A statement names a table that is none of Delta's, and asks for what only a Delta table has."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"
    sql_state = "42P01"
    template = "The table {name} cannot be found. Check its name and schema, or name the path: delta.`/path/to/table`."


class TransactionStatement(InputError):
    """A statement begins or ends a transaction of several statements, of which there are none."""

    condition = "UNSUPPORTED_TRANSACTION_STATEMENT"
    sql_state = "0A000"
    template = (
        "{statement} is refused: every statement is a transaction of its own, over one table, and several tables are "
        "never committed together. MERGE combines inserts, updates and deletes of one table in one commit."
    )


class SqlAnalysisError(InputError):
    """Spark cannot make sense of a statement; the condition and the sentence are Spark's own."""

    condition = "SQL_ANALYSIS_FAILED"
    template = "{reason}"

    def getSqlState(self) -> str:
        """Spark's SQLSTATE for it."""
        return str(self.facts.get("state") or self.sql_state)
