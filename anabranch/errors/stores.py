"""Failures of a store: names that are missing or taken, and requests that fail."""

from __future__ import annotations

from anabranch.errors.root import AnabranchError


class StoreError(AnabranchError):
    """The store refused or failed; nothing was changed by the refused call."""

    condition = "STORE_FAILED"
    template = "The store failed on {name} under {root}: {reason}"


class NotFound(StoreError):
    """The store has no such name."""

    condition = "STORE_NAME_NOT_FOUND"
    template = "There is no {name} under {root}."


class AlreadyExists(StoreError):
    """Put-if-absent lost: the name already has bytes."""

    condition = "STORE_NAME_TAKEN"
    template = "{name} already exists under {root}."


class PutOutcomeUnknown(StoreError):
    """The store did not answer: the bytes may or may not have been written."""

    condition = "STORE_PUT_OUTCOME_UNKNOWN"
    retryable = True
    template = "It is unknown whether {name} was written under {root}: {reason}"


class StorePermissionDenied(StoreError):
    """The folder or bucket may not be read or written with these credentials."""

    condition = "STORE_PERMISSION_DENIED"
    sql_state = "42501"
    template = "No permission for {name} under {root}: {reason}"


class NoCredentials(StorePermissionDenied):
    """There are no credentials for the bucket: not in the environment or the options, and no role of the machine."""

    condition = "STORE_WITHOUT_CREDENTIALS"
    template = "There are no credentials for {root}: {instead}"


class NoSuchBucket(StoreError):
    """The service has no such bucket or container."""

    condition = "STORE_WITHOUT_BUCKET"
    sql_state = "42000"
    template = "There is no bucket or container for {root}: create it, or correct its name or the service's endpoint."


class WrongRegion(StoreError):
    """The bucket is in another region than the requested one."""

    condition = "STORE_IN_ANOTHER_REGION"
    sql_state = "42000"
    template = (
        "The bucket of {root} is in another region: set AWS_REGION, or the storage option region, to that region."
    )


class MissingConnector(StoreError):
    """Spark has no connector for the store: its JAR is missing."""

    condition = "STORE_WITHOUT_CONNECTOR"
    sql_state = "42000"
    template = (
        "Spark has no connector for {root}: start it with the package {package} (--packages, or spark.jars.packages). "
        "Nothing was written."
    )


class StoreFull(StoreError):
    """The disk or quota is full."""

    condition = "STORE_FULL"
    sql_state = "53100"
    template = "No space is left for {name} under {root}: {reason} Free some space and run the command again."


class UnknownStore(StoreError):
    """Anabranch knows no store for the location."""

    condition = "STORE_UNKNOWN"
    sql_state = "42000"
    template = "{location} names no store that Anabranch knows: {reason}"
