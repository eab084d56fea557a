"""Failures while a valid command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anabranch.errors.root import AnabranchError


class ExecutionFailed(AnabranchError):
    """Spark could not evaluate an expression on the rows; nothing was committed."""

    condition = "EXECUTION_FAILED"
    sql_state = "22000"
    template = "Spark could not run {what}: {reason} Nothing was committed."


class StagedFilesRemain(AnabranchError):
    """Files of a first attempt could not be removed, so no second one may write to its folder.

    Nothing was committed, and the files belong to no version. Facts: ``table``, ``file``, ``reason``.
    """

    condition = "STAGED_FILES_REMAIN"
    template = (
        "The file {file}, which a step of this command had written to the table at {table} before it was given up, "
        "could not be removed: {reason} Nothing was committed. See that files may be deleted there, and run the "
        "command again."
    )


class MissingJava(AnabranchError):
    """Spark needs a Java that is not installed."""

    condition = "MISSING_JAVA"
    template = "Spark needs Java 17 or newer: {reason} {instead}"


class MissingPySpark(AnabranchError, ModuleNotFoundError):
    """Something needs PySpark, which is not installed; also a ``ModuleNotFoundError``."""

    condition = "MISSING_PYSPARK"
    template = (
        "{what} needs PySpark, which is not installed: pip install 'anabranch[spark]' (in a clone '.[spark]'). On a "
        "cluster, use its own PySpark, version 4.0 or newer."
    )


@contextmanager
def needs_pyspark(what: str) -> Iterator[None]:
    """Import modules that need PySpark within the block. Raises MissingPySpark: it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if isinstance(error, AnabranchError) or (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise MissingPySpark(what=what) from None


class CommitOutcomeUnknown(AnabranchError):
    """The store did not confirm or deny a commit: it is in the log once, or not at all.

    Not retryable: look for ``txn_id`` in the table's history first, then decide. All files of the transaction are kept.
    """

    condition = "COMMIT_OUTCOME_UNKNOWN"
    sql_state = "08007"
    template = (
        "It is unknown whether version {version} of the table at {table} was committed by this transaction: {reason} "
        "Look for txnId {txn_id} in the history before you run the command again."
    )
