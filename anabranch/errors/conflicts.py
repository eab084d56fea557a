"""Conflicts: another transaction committed first. Documented names; Delta's classes too where delta-spark is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.errors.cards import NOWHERE, Card
from anabranch.errors.root import AnabranchError, Facts, twin

_CONFLICT = (
    " Reason: {explanation}. Winner: {winner}. Ours: {operation} where {predicate}, based on version {base_version},"
    " by {user} at {time}.{place} {suggestion}"
)


class DeltaConcurrentModificationException(AnabranchError, Card, twin("DeltaConcurrentModificationException")):  # type: ignore[misc]
    """Another transaction committed first and ours cannot commit after it; nothing of ours is visible.

    Facts: ``table``, ``sub_condition`` (why row-level concurrency did not help), ``winner`` (a sentence) with
    ``winner_version``, ``winner_operation``, ``winner_user``, ``winner_timestamp`` (in milliseconds) and
    ``winner_txn_id``; ``operation``, ``predicate``, ``base_version``, ``user`` and ``timestamp`` of ours; ``file``,
    ``rows`` (a few positions in it), ``row_count`` (how many there are) and ``samples`` (the values of the few) where
    rows are the reason; ``suggestion``, and ``narrower``, what to add to the condition, where that is known. It is not
    ``retryable`` where the rows to be written were read from the table before the command: the same DataFrame would
    have the same rows.
    Source: Databricks documentation, "Isolation levels and write conflicts", section "Write conflicts".
    """

    condition = "DELTA_CONCURRENT_MODIFICATION"
    sql_state = "2D521"
    retryable = True
    template = "A concurrent transaction committed first. {explanation}"
    sentence = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.prefix = f"{cls.__name__}: Transaction conflict detected. "

    def __init__(self, **facts: Any) -> None:
        facts.setdefault("sub_condition", "")
        facts.setdefault("suggestion", "Run the command again.")
        facts.setdefault("retryable", True)
        super().__init__(**facts)
        self.retryable = facts["retryable"]

    def message_facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts, with the sentences on file and rows as far as these are known."""
        places = {heading: facts.get(name) for heading, name in (("File", "file"), ("Rows", "shown"))}
        parts = [f" {heading}: {words}." for heading, words in places.items() if words and words != NOWHERE]
        return {**facts, "place": "".join(parts)}

    def getCondition(self) -> str:
        """The condition with its sub-condition, such as ``DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES``."""
        sub = self.facts["sub_condition"]
        return f"{self.condition}.{sub}" if sub else self.condition

    getErrorClass = getCondition

    def what_happened(self) -> str:
        """The first sentences of the message, without the reason, the winner and the advice."""
        facts = {**self.facts, "explanation": "", "suggestion": ""}
        return self.template.removesuffix(_CONFLICT).format_map(Facts(facts)).strip()


class ConcurrentAppendException(DeltaConcurrentModificationException, twin("ConcurrentAppendException")):  # type: ignore[misc]
    """Rows were added that this operation should have read."""

    condition = "DELTA_CONCURRENT_APPEND"
    template = "Rows were added to the table at {table} that this operation should have read." + _CONFLICT


class ConcurrentDeleteReadException(DeltaConcurrentModificationException, twin("ConcurrentDeleteReadException")):  # type: ignore[misc]
    """A file or row that this operation read was deleted or changed."""

    condition = "DELTA_CONCURRENT_DELETE_READ"
    template = "What this operation read in the table at {table} was deleted or changed." + _CONFLICT


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException, twin("ConcurrentDeleteDeleteException")):  # type: ignore[misc]
    """A file or row that this operation deletes was deleted already."""

    condition = "DELTA_CONCURRENT_DELETE_DELETE"
    template = "What this operation deletes from the table at {table} was deleted already." + _CONFLICT


class MetadataChangedException(DeltaConcurrentModificationException, twin("MetadataChangedException")):  # type: ignore[misc]
    """The table's metadata (schema, properties, partitioning) was changed."""

    condition = "DELTA_METADATA_CHANGED"
    template = "The metadata of the table at {table} was changed." + _CONFLICT


class ProtocolChangedException(DeltaConcurrentModificationException, twin("ProtocolChangedException")):  # type: ignore[misc]
    """The table's protocol was changed, or the table was created by another transaction."""

    condition = "DELTA_PROTOCOL_CHANGED"
    template = "The protocol of the table at {table} was changed, or the table was created." + _CONFLICT


class ConcurrentTransactionException(DeltaConcurrentModificationException, twin("ConcurrentTransactionException")):  # type: ignore[misc]
    """The same application transaction (a stream's checkpoint) was committed twice at once."""

    condition = "DELTA_CONCURRENT_TRANSACTION"
    template = "The same application transaction was committed to the table at {table}." + _CONFLICT


class ConcurrentWriteException(DeltaConcurrentModificationException, twin("ConcurrentWriteException")):  # type: ignore[misc]
    """Any other concurrent write that ours cannot commit after, or the retry policy is exhausted."""

    condition = "DELTA_CONCURRENT_WRITE"
    template = "Concurrent writes to the table at {table} left no place for this one." + _CONFLICT


class StagedFilesVacuumed(ConcurrentWriteException):
    """Files that this transaction had staged and not yet committed were removed.

    The transaction paused for long, or a VACUUM retained almost nothing, or the table's folder was restored from a
    backup. Facts: ``table``, ``file``.
    """

    condition = "STAGED_FILES_VACUUMED"
    template = (
        "The file {file}, which this transaction had staged and not yet committed, was removed from the table at "
        "{table} by a VACUUM, or when its folder was put back from a backup. Nothing was committed. {suggestion}"
    )
