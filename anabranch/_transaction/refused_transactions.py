"""The refused transactions of this process, which no log records: for timelines, which show them.

Knows the facts of a conflict's exception. Guarantee: only the latest ones are kept, up to a bound, each with a few
facts without rows.
"""

from __future__ import annotations

from typing import NamedTuple

from anabranch._transaction.transaction import Transaction
from anabranch.errors import DeltaConcurrentModificationException
from anabranch.errors.process_state import cache

_refused = cache("refused transactions", 1000)


class RefusedTransaction(NamedTuple):
    """One refused transaction: the winner's version, our base and operation, the error's condition, the time in ms."""

    winner: int
    base: int
    operation: str
    condition: str
    timestamp: int


def note(ours: Transaction, error: BaseException) -> None:
    """Remember that ours was refused, if the error is a conflict that names a winner."""
    if not isinstance(error, DeltaConcurrentModificationException) or ours.base is None:
        return
    winner, moment = error.facts.get("winner_version"), error.facts.get("timestamp")
    if isinstance(winner, int) and isinstance(moment, int):
        refused = RefusedTransaction(winner, ours.base.version, ours.info.operation, error.getCondition(), moment)
        _refused[ours.table, ours.base.metadata.id, ours.txn_id] = refused


def find_refused(table: str, table_id: str) -> tuple[RefusedTransaction, ...]:
    """The refused transactions of the table at a location with this id, oldest first."""
    entries = ((key, _refused.get(key)) for key in _refused if key[:2] == (table, table_id))
    return tuple(sorted((entry for _, entry in entries if entry is not None), key=lambda entry: entry.timestamp))
