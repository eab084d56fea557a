"""Settings of a session and options of a command that are not done here, and warnings about those that nobody knows."""

from __future__ import annotations

from anabranch.errors.inputs import InputError
from anabranch.errors.root import of_pyspark


class UnsupportedSetting(InputError, of_pyspark("IllegalArgumentException")):  # type: ignore[misc]
    """A setting of the session asks for what is not done here, or its value is not one that it takes."""

    condition = "UNSUPPORTED_SETTING"
    sql_state = "0A000"
    template = "The session's setting {setting} cannot be {value} for {verb}: {reason}. Unset it, or change it."


class NonPartitionColumn(InputError):
    """A condition that may speak of partition columns only names another one."""

    condition = "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    sql_state = "42P10"
    template = (
        "The condition {predicate} on the table at {table} names {column}, which does not partition it; "
        "only {columns} may be named, since {setting} is false."
    )


class UnknownSetting(UserWarning):
    """A setting ``spark.databricks.delta.*`` is set that nobody documents, and that does nothing here."""


class UnknownOption(UserWarning):
    """A reader or writer was given an option that nobody documents, and that does nothing here."""
