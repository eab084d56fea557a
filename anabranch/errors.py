"""Every way in which Anabranch says no.

::

    AnabranchError
    ├── StoreError                      names and bytes
    │   ├── NotFound
    │   ├── AlreadyExists
    │   ├── PutOutcomeUnknown
    │   ├── StorePermissionDenied
    │   ├── StoreFull
    │   └── UnknownStore
    ├── TableError                      what lies in the table's folder
    │   ├── NotATable
    │   ├── VersionNotFound
    │   │   └── VersionCleanedUp
    │   ├── TimestampBeforeEarliestCommit
    │   ├── TimestampAfterLatestCommit
    │   ├── CorruptLog
    │   ├── CorruptVector
    │   ├── InvalidPartitionValue
    │   ├── MissingDataFile
    │   └── UnsupportedFeature
    ├── InputError                      what the caller asked for (also a pyspark AnalysisException)
    │   ├── InvalidCondition
    │   ├── UnknownColumn
    │   ├── SchemaMismatch
    │   ├── InvalidSchema
    │   ├── UnsupportedType
    │   ├── InvalidProperty
    │   ├── InvalidOption
    │   ├── InvalidTimestamp
    │   ├── AmbiguousTimeTravel
    │   ├── ColumnInUse
    │   ├── RowViolation
    │   │   ├── NotNullViolated
    │   │   ├── CheckConstraintViolated
    │   │   └── LengthExceeded
    │   ├── EmptyDirectory
    │   ├── UnreadableFooter
    │   ├── SchemaMergeFailed
    │   ├── UnexpectedPartition
    │   ├── ConversionRefused
    │   ├── AppendOnlyTable
    │   ├── TableAlreadyExists
    │   ├── ReplaceWhereMismatch
    │   ├── UnknownSourceVersion
    │   ├── IdentityColumnGiven
    │   ├── ConstraintNotMet
    │   ├── AmbiguousMerge
    │   ├── FeatureNotDropped
    │   └── NotBuilt
    ├── ExecutionFailed                 Spark could not evaluate rows
    ├── MissingJava
    ├── CommitOutcomeUnknown            neither a success nor a failure: the store never answered
    └── DeltaConcurrentModificationException
        ├── ConcurrentAppendException
        ├── ConcurrentDeleteReadException
        ├── ConcurrentDeleteDeleteException
        ├── MetadataChangedException
        ├── ProtocolChangedException
        ├── ConcurrentTransactionException
        └── ConcurrentWriteException

This room knows only words. Text is constant (a class's ``template``); what differs from case to case are *facts*,
kept as attributes and in ``.facts``. ``retryable`` is true where running the same command again may succeed. Where
PySpark is installed the root is a ``PySparkException``, so that ``getCondition()`` and ``getSqlState()`` work; where
delta-spark's Python package is installed the seven conflicts are also its classes, so that an existing ``except``
finds them.
"""

from __future__ import annotations

from typing import Any

from anabranch.families import AlreadyExists as AlreadyExists
from anabranch.families import InputError as InputError
from anabranch.families import NotFound as NotFound
from anabranch.families import PutOutcomeUnknown as PutOutcomeUnknown
from anabranch.families import StoreError as StoreError
from anabranch.families import StoreFull as StoreFull
from anabranch.families import StorePermissionDenied as StorePermissionDenied
from anabranch.families import TableError as TableError
from anabranch.families import UnknownStore as UnknownStore
from anabranch.refusals import AmbiguousTimeTravel as AmbiguousTimeTravel
from anabranch.refusals import ConversionRefused as ConversionRefused
from anabranch.refusals import EmptyDirectory as EmptyDirectory
from anabranch.refusals import InvalidTimestamp as InvalidTimestamp
from anabranch.refusals import SchemaMergeFailed as SchemaMergeFailed
from anabranch.refusals import TimestampAfterLatestCommit as TimestampAfterLatestCommit
from anabranch.refusals import TimestampBeforeEarliestCommit as TimestampBeforeEarliestCommit
from anabranch.refusals import UnexpectedPartition as UnexpectedPartition
from anabranch.refusals import UnreadableFooter as UnreadableFooter
from anabranch.root import AnabranchError as AnabranchError
from anabranch.root import twin as _twin

# -- what lies in the table's folder -----------------------------------------------------------------------------------


class NotATable(TableError):
    """No Delta table lies at this path."""

    condition = "DELTA_TABLE_NOT_FOUND"
    sql_state = "42P01"
    template = "There is no Delta table at {table}: {reason} Check the path, or create the table first."


class VersionNotFound(TableError):
    """The table has no such version, or no longer has it."""

    condition = "DELTA_VERSION_NOT_FOUND"
    sql_state = "22003"
    template = "The table at {table} has no version {version}; the versions from {earliest} to {latest} can be read."


class VersionCleanedUp(VersionNotFound):
    """A version that was in use is no longer there: its log files grew older than the retention and were removed."""

    condition = "DELTA_VERSION_CLEANED_UP"
    retryable = True
    template = (
        "Version {version} of the table at {table} was cleaned up while it was in use; the versions from {earliest} to "
        "{latest} can be read. Nothing was written. Run the command again, or raise delta.logRetentionDuration."
    )


class CorruptLog(TableError):
    """A file of the transaction log is missing, cut off or not what the protocol says."""

    condition = "DELTA_LOG_CORRUPT"
    template = (
        "The log of the table at {table} is damaged at {file}: {reason} Nothing was written. "
        "Restore that file from a copy, or read an earlier version."
    )


class CorruptVector(TableError):
    """A deletion vector is missing, cut off, or does not hold what the log says."""

    condition = "DELTA_DELETION_VECTOR_CORRUPT"
    template = "The deletion vector of {file} in the table at {table} is damaged: {reason}"


class InvalidPartitionValue(TableError):
    """A partition value is not one of its column's type."""

    condition = "DELTA_INVALID_PARTITION_VALUE"
    template = "The partition value {value} of column {column} is not a {type} (file {file}). Nothing was written."


class MissingDataFile(TableError):
    """The log names a data file that is not there, or not of the size that it says."""

    condition = "DELTA_DATA_FILE_MISSING"
    template = "The table at {table} needs the data file {file}, which {reason}."


class UnsupportedFeature(TableError):
    """The table uses a feature of the Delta protocol that this version does not know."""

    condition = "DELTA_UNSUPPORTED_FEATURE"
    sql_state = "56038"
    template = (
        "The table at {table} needs the {kind} feature {feature}, which this version of Anabranch does not support: "
        "{reason} Nothing was written. Use an engine that supports it, or drop the feature from the table."
    )


# -- what the caller asked for -----------------------------------------------------------------------------------------


class InvalidCondition(InputError):
    """A condition or expression does not parse, does not fit the columns, or is not a condition."""

    condition = "INVALID_CONDITION"
    template = "The expression {expression} cannot be used on the table at {table}: {reason}"


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


class InvalidProperty(InputError):
    """A table property is unknown, or its value is not one that it takes."""

    condition = "DELTA_INVALID_PROPERTY"
    sql_state = "42616"
    template = "The table property {property} cannot be {value}: {reason}"


class InvalidOption(InputError):
    """An option or argument of a command is unknown, or its value is not one that it takes."""

    condition = "INVALID_OPTION"
    sql_state = "42616"
    template = "The option {option} cannot be {value}: {reason}"


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
        values = facts.get("values") or {}
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


class AppendOnlyTable(InputError):
    """The table has ``delta.appendOnly`` set and the command would remove or change rows."""

    condition = "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    sql_state = "42809"
    template = "The table at {table} is append-only (delta.appendOnly = true): {operation} would change or remove rows."


class TableAlreadyExists(InputError):
    """A table is to be created where there is one."""

    condition = "DELTA_TABLE_ALREADY_EXISTS"
    sql_state = "42P07"
    template = "There is a Delta table at {table} already. Use mode append or overwrite, or another path."


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


class AmbiguousMerge(InputError):
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


class NotBuilt(InputError):
    """A documented statement of Delta Lake that this version does not run yet."""

    condition = "NOT_BUILT_YET"
    sql_state = "0A000"
    template = "{what} is not built yet in this version of Anabranch. {instead}"


class ExecutionFailed(AnabranchError):
    """Spark could not evaluate an expression on the rows; nothing was committed."""

    condition = "EXECUTION_FAILED"
    sql_state = "22000"
    template = "Spark could not run {what}: {reason} Nothing was committed."


class MissingJava(AnabranchError):
    """Spark needs a Java that is not there."""

    condition = "MISSING_JAVA"
    template = "Spark needs Java 17 or newer: {reason} {instead}"


class CommitOutcomeUnknown(AnabranchError):
    """The store never said whether the commit was written: it stands in the log once, or not at all.

    Not retryable: look for ``txn_id`` in the table's history first, then decide. All files of the transaction are kept.
    """

    condition = "COMMIT_OUTCOME_UNKNOWN"
    sql_state = "08007"
    template = (
        "It is unknown whether version {version} of the table at {table} was committed by this transaction: {reason} "
        "Look for txnId {txn_id} in the history before you run the command again."
    )


# -- conflicts ---------------------------------------------------------------------------------------------------------


class DeltaConcurrentModificationException(AnabranchError, _twin("DeltaConcurrentModificationException")):  # type: ignore[misc]
    """Another transaction committed first and mine cannot stand behind it; nothing of mine is visible.

    Facts: ``table``, ``sub_condition`` (why the row level did not help), ``winner`` (a sentence) with
    ``winner_version``, ``winner_operation``, ``winner_user``, ``winner_timestamp`` (in milliseconds); ``operation``,
    ``predicate``, ``base_version``, ``user`` and ``timestamp`` of mine; ``file``, ``rows`` (a few positions in it) and
    ``samples`` (their values) where rows are the reason; ``suggestion``, and in ``narrower`` what to add to the
    condition, where that is known. Source: Databricks documentation, "Isolation levels and write conflicts", section
    "Write conflicts".
    """

    condition = "DELTA_CONCURRENT_MODIFICATION"
    sql_state = "2D521"
    retryable = True
    template = "A concurrent transaction got there first. {explanation}"
    sentence = ""

    def __init__(self, **facts: Any) -> None:
        facts.setdefault("sub_condition", "")
        facts.setdefault("suggestion", "Run the command again.")
        super().__init__(**facts)

    def getCondition(self) -> str:
        """The condition with its sub-condition, such as ``DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES``."""
        sub = self.facts["sub_condition"]
        return f"{self.condition}.{sub}" if sub else self.condition

    getErrorClass = getCondition


_CONFLICT = (
    " Reason: {explanation}. Winner: {winner}. Mine: {operation} where {predicate}, based on version {base_version},"
    " by {user} at {time}. File: {file}. Rows: {shown}. {suggestion}"
)


class ConcurrentAppendException(DeltaConcurrentModificationException, _twin("ConcurrentAppendException")):  # type: ignore[misc]
    """Rows were added that this operation should have read."""

    condition = "DELTA_CONCURRENT_APPEND"
    template = "Rows were added to the table at {table} that this operation should have read." + _CONFLICT


class ConcurrentDeleteReadException(DeltaConcurrentModificationException, _twin("ConcurrentDeleteReadException")):  # type: ignore[misc]
    """A file or row that this operation read was deleted or changed."""

    condition = "DELTA_CONCURRENT_DELETE_READ"
    template = "What this operation read in the table at {table} was deleted or changed." + _CONFLICT


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException, _twin("ConcurrentDeleteDeleteException")):  # type: ignore[misc]
    """A file or row that this operation deletes was deleted already."""

    condition = "DELTA_CONCURRENT_DELETE_DELETE"
    template = "What this operation deletes from the table at {table} was deleted already." + _CONFLICT


class MetadataChangedException(DeltaConcurrentModificationException, _twin("MetadataChangedException")):  # type: ignore[misc]
    """The table's metadata (schema, properties, partitioning) was changed."""

    condition = "DELTA_METADATA_CHANGED"
    template = "The metadata of the table at {table} was changed." + _CONFLICT


class ProtocolChangedException(DeltaConcurrentModificationException, _twin("ProtocolChangedException")):  # type: ignore[misc]
    """The table's protocol was changed, or the table was created by somebody else."""

    condition = "DELTA_PROTOCOL_CHANGED"
    template = "The protocol of the table at {table} was changed, or the table was created." + _CONFLICT


class ConcurrentTransactionException(DeltaConcurrentModificationException, _twin("ConcurrentTransactionException")):  # type: ignore[misc]
    """The same application transaction (a stream's checkpoint) was committed twice at once."""

    condition = "DELTA_CONCURRENT_TRANSACTION"
    template = "The same application transaction was committed to the table at {table}." + _CONFLICT


class ConcurrentWriteException(DeltaConcurrentModificationException, _twin("ConcurrentWriteException")):  # type: ignore[misc]
    """Any other concurrent write that mine cannot stand behind, or patience that ran out."""

    condition = "DELTA_CONCURRENT_WRITE"
    template = "Concurrent writes to the table at {table} left no place for this one." + _CONFLICT
