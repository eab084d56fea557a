"""The families of errors: those of a store, those of what lies in a table's folder, those of what a caller asked for.

Knows no table and no command. Their members stand in `anabranch.errors`, and are imported from there, these too.
"""

from __future__ import annotations

from anabranch.root import AnabranchError, InputBase


class StoreError(AnabranchError):
    """The store refused or failed; nothing was changed by the refused call."""

    condition = "STORE_FAILED"
    template = "The store failed on {name} under {root}: {reason}"


class NotFound(StoreError):
    """There is no such name in the store."""

    condition = "STORE_NAME_NOT_FOUND"
    template = "There is no {name} under {root}."


class AlreadyExists(StoreError):
    """Put-if-absent lost: somebody else's bytes stand under the name."""

    condition = "STORE_NAME_TAKEN"
    template = "{name} already exists under {root}."


class PutOutcomeUnknown(StoreError):
    """The store did not answer: the bytes may or may not stand under the name."""

    condition = "STORE_PUT_OUTCOME_UNKNOWN"
    retryable = True
    template = "It is unknown whether {name} was written under {root}: {reason}"


class StorePermissionDenied(StoreError):
    """The folder or bucket may not be read or written with these credentials."""

    condition = "STORE_PERMISSION_DENIED"
    sql_state = "42501"
    template = "No permission for {name} under {root}: {reason} Check the folder's owner or the credentials."


class StoreFull(StoreError):
    """The disk or quota is full."""

    condition = "STORE_FULL"
    sql_state = "53100"
    template = "No space is left for {name} under {root}: {reason} Free some space and run the command again."


class UnknownStore(StoreError):
    """The location names no store that Anabranch knows."""

    condition = "STORE_UNKNOWN"
    sql_state = "42000"
    template = "{location} names no store that Anabranch knows: {reason}"


class TableError(AnabranchError):
    """What lies in the table's folder cannot be used."""

    condition = "DELTA_TABLE_INVALID"
    sql_state = "KD000"
    template = "The table at {table} cannot be used: {reason}"


class InputError(AnabranchError, InputBase):
    """The command cannot be run as it was asked for; nothing was written."""

    condition = "INVALID_INPUT"
    sql_state = "42000"
    template = "{reason}"
