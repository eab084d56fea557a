"""A table whose folder holds no usable data.

A missing table, version or timestamp is an ``AnalysisException`` of PySpark too, as in any engine of Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.errors.root import AnabranchError, InputBase


class TableError(AnabranchError):
    """The table's folder cannot be used."""

    condition = "DELTA_TABLE_INVALID"
    sql_state = "KD000"
    template = "The table at {table} cannot be used: {reason}"


class NotATable(TableError, InputBase):
    """There is no Delta table at this path."""

    condition = "DELTA_TABLE_NOT_FOUND"
    sql_state = "42P01"
    template = (
        "{table} is not a Delta table, so the table doesn't exist. {reason} Check the path, or create the table first."
    )


class VersionNotFound(TableError, InputBase):
    """The table has no such version, or no longer has it."""

    condition = "DELTA_VERSION_NOT_FOUND"
    sql_state = "22003"
    template = (
        "Cannot {what} to version {version}. Available versions: [{earliest}, {latest}]. The table is at {table}."
    )

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts, with a default for the requested operation."""
        return {"what": "time travel Delta table", **facts}


class VersionReplaced(VersionNotFound):
    """Rows come from a version of the table whose commit was replaced."""

    condition = "DELTA_VERSION_REPLACED"
    template = (
        "Rows were read from version {version} of the table at {table}, and another commit stands at that version now: "
        "the log was put back or made again since, or the rows come from a copy of the table. Nothing was written. "
        "Read the DataFrame anew, or read it with the option versionAsOf if its rows are meant as they are."
    )


class VersionCleanedUp(VersionNotFound):
    """A version in use was removed: its log files grew older than the retention."""

    condition = "DELTA_VERSION_CLEANED_UP"
    retryable = True
    template = (
        "Version {version} of the table at {table} was removed while it was in use; the versions from {earliest} to "
        "{latest} can be read. Nothing was written. Run the command again, or raise delta.logRetentionDuration."
    )


class TimestampBeforeEarliestCommit(TableError, InputBase):
    """A timestamp is before the oldest version that can still be read."""

    condition = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    sql_state = "42816"
    template = (
        "{said} before the earliest version available to this table, version {earliest_version} of {earliest}. Use a "
        "timestamp from there on, up to {latest}, that of version {latest_version}. The table is at {table}."
    )

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts, with the requested timestamp in words."""
        return {"said": _moment(facts), **facts}


class TimestampAfterLatestCommit(TableError, InputBase):
    """A timestamp is after the newest version, so the next commit could still belong to it."""

    condition = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    sql_state = "42816"
    template = (
        "{said} after the latest version available to this table, version {latest_version} of {latest}. No timestamp "
        "that is after the table's latest version can be read: use that one or an older one, from {earliest} (version "
        "{earliest_version}) on. The table is at {table}."
    )

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts, with the requested timestamp in words."""
        return {"said": _moment(facts), **facts}


def _moment(facts: Mapping[str, Any]) -> str:
    """The beginning of a sentence about a timestamp; a command may name its operation."""
    what, timestamp = facts.get("what"), facts.get("timestamp", "unknown")
    return f"Cannot {what} to timestamp ({timestamp}) as it is" if what else f"The provided timestamp ({timestamp}) is"


class CorruptLog(TableError):
    """A file of the transaction log is missing, truncated or against the protocol."""

    condition = "DELTA_LOG_CORRUPT"
    template = (
        "The log of the table at {table} is damaged at {file}: {reason} Nothing was written. "
        "Restore that file from a copy, or read an earlier version."
    )


class LiveFilesNotConfirmed(TableError):
    """The list of live files is not confirmed by a second source, or is contradicted, so nothing may be deleted."""

    condition = "DELTA_LIVE_FILES_NOT_CONFIRMED"
    template = (
        "Nothing was removed from the table at {table}, since it is not certain which of its files are live. "
        "{file}: {reason} Run a check (anabranch check), repair what it finds, and try again."
    )


class CorruptVector(TableError):
    """A deletion vector is missing, truncated, or does not match the log."""

    condition = "DELTA_DELETION_VECTOR_CORRUPT"
    template = "The deletion vector of {file} in the table at {table} is damaged: {reason}"


class UnsupportedVector(TableError):
    """A deletion vector is stored in a way that this version of Anabranch does not know; nothing was read."""

    condition = "DELTA_UNSUPPORTED_DELETION_VECTOR"
    sql_state = "56038"
    template = (
        "The deletion vector of {file} in the table at {table} has the storage type {storage_type}, which this version "
        "of Anabranch does not support: it knows u, p and i. No row of the file was read, and nothing was written or "
        "removed. Let an engine that supports it rewrite the file (REORG TABLE … APPLY (PURGE)), or read with it."
    )


class FileOutsideTable(TableError):
    """The log names a file on another store, which is not allowed; nothing was opened."""

    condition = "DELTA_FILE_OUTSIDE_TABLE"
    sql_state = "42501"
    template = (
        "The log of the table at {table} names the file {file}, which lies on another store, {store}. It was not "
        "opened. If you trust that store, allow it: ANABRANCH_ALLOWED_STORES={store} in the environment, or the "
        "storage option anabranch.allowedStores."
    )


class InvalidPartitionValue(TableError):
    """A partition value is not a value of its column's type."""

    condition = "DELTA_INVALID_PARTITION_VALUE"
    template = "The partition value {value} of column {column} is not a {type} (file {file}). Nothing was written."

    def without_rows(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Hide the value, too."""
        return {**super().without_rows(facts), "value": "*"}


class MissingDataFile(TableError):
    """A data file that the log names is missing or has another size."""

    condition = "DELTA_DATA_FILE_MISSING"
    template = "The table at {table} needs the data file {file}, which {reason}."


class RestoreFilesMissing(MissingDataFile):
    """Files of the version that a RESTORE would bring back are missing.

    ``files`` names the first hundred of them, ``count`` is their number.
    """

    condition = "DELTA_RESTORE_FILES_MISSING"
    template = (
        "The table at {table} cannot go back to version {version}: {count} of its files are missing, among "
        "them {file}. Nothing was written. Choose a newer version, or restore without their rows (ignore_missing, or "
        "spark.sql.files.ignoreMissingFiles = true)."
    )


class UnsupportedFeature(TableError):
    """The table uses a feature of the Delta protocol that this version of Anabranch does not support."""

    condition = "DELTA_UNSUPPORTED_FEATURE"
    sql_state = "56038"
    template = (
        "The table at {table} needs the {kind} feature {feature}, which this version of Anabranch does not support: "
        "{reason} Nothing was written. Use an engine that supports it, or drop the feature from the table."
    )
