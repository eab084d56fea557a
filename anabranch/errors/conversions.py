"""Folders that cannot be converted to tables, and tables that cannot be cloned."""

from __future__ import annotations

from anabranch.errors.inputs import InputError


class EmptyDirectory(InputError):
    """A folder to convert holds no data file."""

    condition = "DELTA_EMPTY_DIRECTORY"
    sql_state = "42K03"
    template = (
        "No file found in the directory: {table} has none to convert; files and folders whose names begin with _ or . "
        "do not count."
    )


class UnreadableFooter(InputError):
    """A file to convert is not a Parquet file, or is damaged."""

    condition = "DELTA_FAILED_READ_FILE_FOOTER"
    sql_state = "KD001"
    template = (
        "Could not read footer for file: {file} under {table}, {reason} Nothing was written. Remove the file, or give "
        "it a name that begins with _ or a dot."
    )


class SchemaMergeFailed(InputError):
    """The columns of a file to convert do not fit those of the files before it."""

    condition = "DELTA_FAILED_MERGE_SCHEMA_FILE"
    sql_state = "42KDA"
    template = (
        "Failed to merge schema of file {file} under {table} into that of the files before it: column {column} "
        "{reason}. Nothing was written."
    )


class UnexpectedPartition(InputError):
    """The folders of a file to convert do not match the given partition columns."""

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


class NameNotConverted(InputError):
    """A Parquet table is to be converted by its name, which cannot become the Delta table's in one step."""

    condition = "CONVERSION_BY_NAME"
    sql_state = "0A000"
    template = (
        "The table {name} is not converted by its name: Spark's catalog would have to drop it before the Delta table "
        "can have the name, and a crash in between would lose that. {instead} Nothing was changed."
    )


class CloneRefused(InputError):
    """A table cannot be cloned to this target, or not with these options."""

    condition = "CLONE_REFUSED"
    sql_state = "0A000"
    template = "The table at {source} cannot be cloned to {table}: {reason} Nothing was committed."


class UnsupportedCloneSource(InputError):
    """The source to clone is neither a Delta table nor Parquet files."""

    condition = "DELTA_CLONE_UNSUPPORTED_SOURCE"
    sql_state = "0AKDC"
    template = (
        "{name} cannot be cloned, since it is {kind}: a clone takes a Delta table, a Parquet table, or a folder of "
        "Parquet files as parquet.`/the/path`. Nothing was committed."
    )
