"""Names in Spark's catalog that cannot be used as they were; nothing was written."""

from __future__ import annotations

from anabranch.errors.inputs import InputError, TableAlreadyExists, UnknownTable


class NameTaken(TableAlreadyExists):
    """A table is to get a name that something in the catalog has."""

    condition = "TABLE_OR_VIEW_ALREADY_EXISTS"
    sql_state = "42P07"
    template = "There is a table or view {name} already. Choose another name, drop or replace it, or say IF NOT EXISTS."


class UnknownSchema(InputError):
    """A name is of a schema that the catalog does not have."""

    condition = "SCHEMA_NOT_FOUND"
    sql_state = "42704"
    template = "The schema {schema} of {name} cannot be found. Create it, or check the spelling and the catalog."


class RecursiveView(InputError):
    """A view reads itself, perhaps through others."""

    condition = "RECURSIVE_VIEW"
    sql_state = "42K0H"
    template = "The view {name} reads itself, perhaps through other views. Let its query read something else."


class TemporaryInView(InputError):
    """A lasting view is to read a temporary one."""

    condition = "INVALID_TEMP_OBJ_REFERENCE"
    sql_state = "42K0F"
    template = "A lasting view cannot read the temporary view {name}. Make the one temporary, or the other lasting."


class ViewIsNoTable(InputError):
    """Rows of a view are to be written or changed."""

    condition = "EXPECT_TABLE_NOT_VIEW"
    sql_state = "42809"
    template = "{name} is a view, and has no rows of its own. Name the table that it reads."


class TableIsNoView(InputError):
    """A statement about views names a table; its condition is Spark's for that statement."""

    condition = "EXPECT_VIEW_NOT_TABLE"
    sql_state = "42809"
    template = "{statement} takes a view, and {name} is a table. Say it of the table: {instead}. Nothing was changed."


class RenameUnfinished(InputError):
    """A table has two names, since a rename into another schema has not ended, or is under way."""

    condition = "RENAME_UNFINISHED"
    sql_state = "55000"
    retryable = True
    template = (
        "The table {name} has the name {other} as well, since its rename has not ended. If no other session is about "
        "to, finish it: ALTER TABLE {name} RENAME TO {other}. Nothing was changed."
    )


class NoPlaceForNames(InputError):
    """A table is to get a name in a catalog that keeps no views, as which names are kept."""

    condition = "MISSING_CATALOG_ABILITY"
    sql_state = "0A000"
    template = "The catalog {catalog} keeps no views, and so no name {name}. Take one in spark_catalog, or the path."


class UnknownPathOrName(UnknownTable):
    """What the command line is to look at is no folder that there is, and no name of a table either."""

    condition = "UNKNOWN_PATH_OR_NAME"
    template = "There is no folder {name}, and no table of this name is known: {reason}"
