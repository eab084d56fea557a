"""The errors of refused transactions, with all that helps their users.

Knows ours and the winner. Only the command's handler knows a row's values, and how a condition could be narrower: it is
queried (`ConflictDetails`), once, when the error is made. Nothing here decides anything. Guarantee: whatever goes wrong
in the query, the conflict is reported all the same, with fewer details.

Source of the sub-conditions: Databricks documentation, "Error conditions", below each ``DELTA_CONCURRENT_…``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._log.version_timestamps import in_words
from anabranch._protocol.actions import FileRow
from anabranch._protocol.conditions import Condition
from anabranch._protocol.predicates import Always, columns_of
from anabranch._protocol.properties import SERIALIZABLE
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import Transaction, is_blind_append
from anabranch.errors import ConcurrentAppendException, DeltaConcurrentModificationException
from anabranch.errors.cards import NOWHERE

_logger = logging.getLogger(__name__)
SAMPLE = 5
"""Maximum number of rows that an error names."""

T = TypeVar("T")


class ConflictDetails(Protocol):
    """Details of a conflict from a command's handler, for people only. Exceptions are logged and ignored."""

    def sample(self, file: FileRow, rows: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """The values of these few rows of a file, deleted ones too; none where they may not be shown."""
        ...

    def narrower(self, ours: Transaction, file: FileRow | None) -> str | None:
        """A condition that the user could add so that this file would not be read; None where none is known."""
        ...


@dataclass(frozen=True)
class Conflict:
    """Ours cannot stand behind ``winner``; ``error`` is the exception in the documented words.

    ``file`` is the file that both touch, in the state to which the positions ``rows`` refer, a few of ``row_count``;
    ``more`` are further facts.
    """

    kind: type[DeltaConcurrentModificationException]
    sub_condition: str
    explanation: str
    winner: Commit | None = None
    file: FileRow | None = None
    rows: tuple[int, ...] = ()
    row_count: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)

    def error(
        self, ours: Transaction, details: ConflictDetails, runtime: Runtime
    ) -> DeltaConcurrentModificationException:
        """The exception for the user, with every fact as a field."""
        samples, narrower = self._samples(details), self._narrower(ours, details)
        now = runtime.now_ms()
        return self.kind(
            table=ours.table,
            sub_condition=self.sub_condition,
            explanation=self.explanation,
            operation=ours.info.operation,
            predicate=ours.predicate,
            base_version=-1 if ours.base is None else ours.base.version,
            user=runtime.user() or "an unknown user",
            timestamp=now,
            time=in_words(now),
            txn_id=ours.txn_id,
            file=self.file["path"] if self.file else NOWHERE,
            rows=list(self.rows) if self.rows else NOWHERE,
            row_count=self.row_count,
            samples=samples,
            shown=_format_rows(self.rows, self.row_count, samples),
            narrower=narrower,
            suggestion=_suggestion(self.sub_condition, ours, self.winner, narrower),
            retryable=not _is_held(ours),
            resolution=ours.resolution,
            reads_own_table=ours.reads is not None and ours.reads.own_table,
            **_winner_facts(self.winner),
            **self.more,
        )

    def _samples(self, details: ConflictDetails) -> list[Mapping[str, Any]]:
        file, rows = self.file, self.rows
        if file is None or not rows:
            return []
        nothing: list[Mapping[str, Any]] = []
        return _try_ask(lambda: list(details.sample(file, rows)), nothing, "the values of its rows")

    def _narrower(self, ours: Transaction, details: ConflictDetails) -> str | None:
        if self.sub_condition not in _NARROWED:
            return None
        return _try_ask(lambda: details.narrower(ours, self.file), None, "a narrower condition")


def _try_ask(ask: Callable[[], T], otherwise: T, what: str) -> T:
    try:
        return ask()
    except Exception as error:  # whatever it is, the user must learn of the conflict
        _logger.warning("a conflict is reported without %s: %s", what, error)
        return otherwise


# -- why ---------------------------------------------------------------------------------------------------------------


def why_files(ours: Transaction, winner: Commit, kind: type[DeltaConcurrentModificationException]) -> str:
    """The sub-condition that explains why the row level did not help."""
    if replaces_everything(winner):
        return "WHOLE_TABLE_REPLACE"
    if ours.reads is not None and not ours.reads.row_local and not _selects_all(ours.reads.condition):
        return "PREDICATES_NEED_REWRITE"
    if ours.reads is not None and _reads_everything(ours, ours.reads.condition):
        return "WHOLE_TABLE_READ" if kind is ConcurrentAppendException else "EMPTY_READ_PREDICATES"
    return "WITH_PARTITION_HINT" if (ours.base.partition_columns if ours.base is not None else ()) else "WITHOUT_HINT"


def why_rows(winner: Commit) -> str:
    """The sub-condition of a conflict over rows that a winner deleted."""
    return "WHOLE_TABLE_REPLACE" if replaces_everything(winner) else "ROW_LEVEL_CHANGES"


def replaces_everything(winner: Commit) -> bool:
    """Whether a winner declares that it replaced all rows; used for messages only."""
    info = winner.head.info
    parameters = info.get("operationParameters")
    if info.get("operation") != "WRITE" or not isinstance(parameters, Mapping):
        return False
    part = parameters.get("predicate") or parameters.get("isDynamicPartitionOverwrite")
    return str(parameters.get("mode")) == "Overwrite" and not part


def _selects_all(condition: Condition) -> bool:
    return condition.text.upper() == "TRUE" or condition.predicate == Always(True)


def _reads_everything(ours: Transaction, condition: Condition) -> bool:
    """Whether no condition of ours selects some of the table's rows: a MERGE's ON may only compare with the source."""
    return _selects_all(condition) or (ours.info.operation == "MERGE" and not columns_of(condition.predicate))


# -- what to do --------------------------------------------------------------------------------------------------------

_SUGGESTIONS = {
    "ROW_LEVEL_CHANGES": "Run the command again: it will see the winner's rows.",
    "WITH_PARTITION_HINT": "Run the command again, or name the partition in the condition, "
    "so that other partitions do not matter.",
    "WITHOUT_HINT": "Run the command again.",
    "PREDICATES_NEED_REWRITE": "Run the command again, or state the condition as SQL text with columns, literals and "
    "deterministic built-in functions only.",
    "WHOLE_TABLE_READ": "Run the command again, or give it a condition on the table's own columns.",
    "EMPTY_READ_PREDICATES": "Run the command again, or give it a condition on the table's own columns.",
    "WHOLE_TABLE_REPLACE": "Run the command again: all rows of the table are new.",
    "METADATA_CHANGE": "Run the command again: it will see the newest metadata and rows.",
    "PROTOCOL_CHANGE": "Run the command again: it will see the newest protocol and rows.",
    "VACUUM_UNDER_WAY": "Run the command again when that VACUUM has ended. Where its process died, read the version "
    "that is wanted and overwrite the table with its rows: that brings no old file back.",
    "ALLOTTED_TIME_EXCEEDED": "Run the command again when fewer others write, or raise the bound that was reached.",
}

_BY_FILES = frozenset({"WITH_PARTITION_HINT", "WITHOUT_HINT", "WHOLE_TABLE_READ", "EMPTY_READ_PREDICATES"})
_NARROWED = _BY_FILES | {"PREDICATES_NEED_REWRITE", "ALLOTTED_TIME_EXCEEDED"}
_TO_ON = "Add AND {} to the ON condition: that is what the source holds now, and keeps other files out of the way."
_TO_WHERE = "All rows that it selected have {}: if no others are meant, add that to the condition."


_READ_ANEW = (
    "Read the DataFrame anew, or make the view anew, then run the command again: it holds the rows of an older "
    "version, and others have changed the table since."
)


def _is_held(ours: Transaction) -> bool:
    return ours.reads is not None and ours.reads.held


def _suggestion(sub_condition: str, ours: Transaction, winner: Commit | None, narrower: str | None) -> str:
    if _is_held(ours):
        return _READ_ANEW
    sentences = [_SUGGESTIONS.get(sub_condition, "Run the command again.")]
    if narrower is not None:
        sentences.append((_TO_ON if ours.info.operation == "MERGE" else _TO_WHERE).format(narrower))
    if sub_condition in _BY_FILES and ours.resolution == "file" and ours.base is not None:
        vectors = ours.base.properties.vectors
        setting = "anabranch.conflictResolution = row" if vectors else "delta.enableDeletionVectors = true"
        sentences.append(f"With row-level conflict detection ({setting}) only the same rows would conflict.")
    if ours.isolation == SERIALIZABLE and winner is not None and is_blind_append(winner):
        sentences.append(
            "This transaction is at Serializable; at WriteSerializable an insert that reads nothing would not conflict."
        )
    return " ".join(sentences)


# -- who, where --------------------------------------------------------------------------------------------------------


def _winner_facts(winner: Commit | None) -> dict[str, Any]:
    if winner is None:
        return {"winner": "unknown", "winner_version": None}
    info = winner.head.info
    operation, engine = info.get("operation", "an unnamed operation"), info.get("engineInfo", "an unknown engine")
    user, txn_id = info.get("userName") or info.get("userId") or "an unknown user", info.get("txnId")
    return {
        "winner": f"version {winner.version}, {operation} by {user} ({engine}), at {in_words(winner.timestamp)}",
        "winner_version": winner.version,
        "winner_operation": operation,
        "winner_user": user,
        "winner_timestamp": winner.timestamp,
        "winner_txn_id": txn_id if isinstance(txn_id, str) else None,
    }


def _format_rows(rows: Sequence[int], count: int, samples: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return NOWHERE
    values = "; ".join(
        ", ".join(f"{name} = {_format_value(value)}" for name, value in sample.items()) for sample in samples
    )
    more = f" ({len(rows)} of {count:,})" if count > len(rows) else ""
    return f"{list(rows)} in it{more}" + (f", with {values}" if values else "")


def _format_value(value: Any) -> str:
    """A value in a sentence: texts in quotes, numbers and times as they are."""
    return repr(value) if isinstance(value, str | bytes) else str(value)


def some_of(rows: BitMap64) -> tuple[int, ...]:
    """The first few positions."""
    return tuple(rows[i] for i in range(min(SAMPLE, len(rows))))


def file_of(files: pa.Table, path: str) -> FileRow:
    """The row of a `FILES` table with this path."""
    row: FileRow = files.filter(pc.equal(files["path"], path)).to_pylist()[0]
    return row
