"""Names in Spark's catalog that a command cannot use; nothing was written."""

from __future__ import annotations

from anabranch.errors.inputs import InputError, TableAlreadyExists, UnknownTable


class NameTaken(TableAlreadyExists):
    """The name for a table is taken by something else in the catalog."""

    condition = "TABLE_OR_VIEW_ALREADY_EXISTS"
    sql_state = "42P07"
    template = "The table or view {name} already exists. Choose another name, drop or replace it, or use IF NOT EXISTS."


class UnknownSchema(InputError):
    """The catalog has no schema of this name."""

    condition = "SCHEMA_NOT_FOUND"
    sql_state = "42704"
    template = "The schema {schema} of {name} cannot be found. Create it, or check the spelling and the catalog."


class RecursiveView(InputError):
    """A view reads itself, directly or through other views."""

    condition = "RECURSIVE_VIEW"
    sql_state = "42K0H"
    template = "The view {name} reads itself, perhaps through other views. Let its query read something else."


class TemporaryInView(InputError):
    """A persistent view reads a temporary one."""

    condition = "INVALID_TEMP_OBJ_REFERENCE"
    sql_state = "42K0F"
    template = "A persistent view cannot read the temporary view {name}. Make both temporary, or both persistent."


class ViewIsNoTable(InputError):
    """A command would write or change the rows of a view."""

    condition = "EXPECT_TABLE_NOT_VIEW"
    sql_state = "42809"
    template = "{name} is a view without rows of its own. Name the table that it reads."


class TableIsNoView(InputError):
    """A statement about views names a table; the condition is Spark's for that statement."""

    condition = "EXPECT_VIEW_NOT_TABLE"
    sql_state = "42809"
    template = "{statement} needs a view, but {name} is a table. Use {instead}. Nothing was changed."


class RenameUnfinished(InputError):
    """A table has two names, since a rename into another schema is unfinished."""

    condition = "RENAME_UNFINISHED"
    sql_state = "55000"
    retryable = True
    template = (
        "The table {name} also has the name {other}, since its rename is unfinished. If no other session is "
        "finishing it, run ALTER TABLE {name} RENAME TO {other}. Nothing was changed."
    )


class NoPlaceForNames(InputError):
    """A catalog cannot hold a table's name, since it is not Spark's own and keeps no views."""

    condition = "MISSING_CATALOG_ABILITY"
    sql_state = "0A000"
    template = (
        "The catalog {catalog} keeps no views, so it cannot keep the name {name}. Use spark_catalog, or the path."
    )


class UnreadableEntry(InputError):
    """The catalog's text about a table does not reveal its location: something in it looks like its location."""

    condition = "UNREADABLE_CATALOG_ENTRY"
    sql_state = "55000"
    template = (
        "The catalog does not tell where the table {name} lies: a comment, a property or a path with a line break "
        "looks like its location. Open the table by its path, and change that text."
    )


class NotADeltaTable(UnknownTable):
    """A statement that only a Delta table supports names a table of another format, or a view."""

    condition = "DELTA_TABLE_ONLY_OPERATION"
    sql_state = "0AKDD"
    template = "{name} is not a Delta table but {kind}, and this is only supported for Delta tables."


class UnknownPathOrName(UnknownTable):
    """The argument of the command line is neither an existing folder nor the name of a table."""

    condition = "UNKNOWN_PATH_OR_NAME"
    template = "There is no folder and no table {name}: {reason}"
