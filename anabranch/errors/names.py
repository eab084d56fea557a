"""Names in Spark's catalog that cannot be used as they were; nothing was written."""

from __future__ import annotations

from anabranch.errors.inputs import InputError, TableAlreadyExists


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
