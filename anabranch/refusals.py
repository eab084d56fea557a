"""Errors of time travel and of conversion, to be imported from `anabranch.errors`.

Knows only words, as that room does.
"""

from __future__ import annotations

from anabranch.families import InputError, TableError

# -- time travel -------------------------------------------------------------------------------------------------------


class TimestampBeforeEarliestCommit(TableError):
    """A moment lies before the oldest version that can still be read."""

    condition = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    sql_state = "42816"
    template = (
        "The table at {table} cannot be read as of {timestamp}: that is before its oldest readable version, "
        "{earliest_version}, of {earliest}. Take a timestamp up to {latest}, that of version {latest_version}."
    )


class TimestampAfterLatestCommit(TableError):
    """A moment lies behind the newest version, so that what is committed next could still belong to it."""

    condition = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    sql_state = "42816"
    template = (
        "The table at {table} cannot be read as of {timestamp}: that is after its newest version, {latest_version}, "
        "of {latest}. Take that timestamp or an older one, from {earliest} (version {earliest_version}) on."
    )


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


# -- conversion --------------------------------------------------------------------------------------------------------


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
