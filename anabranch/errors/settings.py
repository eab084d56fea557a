"""Session settings and command options that are not supported, and warnings about unknown ones."""

from __future__ import annotations

from anabranch.errors.inputs import InputError
from anabranch.errors.root import of_pyspark


class UnsupportedSetting(InputError, of_pyspark("IllegalArgumentException")):  # type: ignore[misc]
    """A session setting requests something that is not supported, or has an invalid value."""

    condition = "UNSUPPORTED_SETTING"
    sql_state = "0A000"
    template = "The session's setting {setting} cannot be {value} for {verb}: {reason}. Unset or change it."


class MissingDeltaJars(UnsupportedSetting):
    """A session names delta-spark's catalog, and its JARs are missing: Spark opens no table by any name."""

    condition = "MISSING_DELTA_JARS"
    sql_state = "46103"
    template = (
        "The session's setting {setting} is {value}, a class of delta-spark, whose JARs are not there, so Spark "
        "can open no table: start the session without {setting} and {other}, or add the JARs again."
    )


class NonPartitionColumn(InputError):
    """A condition that may only use partition columns uses another one."""

    condition = "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    sql_state = "42P10"
    template = (
        "The condition {predicate} on the table at {table} uses {column}, which is not a partition column; "
        "only {columns} may be used, since {setting} is false."
    )


class UnknownSetting(UserWarning):
    """A setting ``spark.databricks.delta.*`` is set that is not documented and has no effect here."""


class UnknownOption(UserWarning):
    """A reader or writer got an option that is not documented and has no effect here."""
