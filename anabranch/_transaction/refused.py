"""The refused transactions of this process, of which no log says anything: for timelines, which show them.

Knows what a conflict's exception states. Guarantee: a bounded number is kept, the latest ones, and of each a few facts
without rows.
"""

from __future__ import annotations

from typing import NamedTuple

from anabranch._transaction.transaction import Transaction
from anabranch.errors import DeltaConcurrentModificationException
from anabranch.errors.process_state import cache

_refused = cache("refused transactions", 1000)


class Refused(NamedTuple):
    """One of them: the winner's version, our base, what ours was, the exception's condition, and when, in ms."""

    winner: int
    base: int
    operation: str
    condition: str
    timestamp: int


def note(ours: Transaction, error: BaseException) -> None:
    """Remember that ours was refused, if the error says so and names a winner."""
    if not isinstance(error, DeltaConcurrentModificationException) or ours.base is None:
        return
    winner, moment = error.facts.get("winner_version"), error.facts.get("timestamp")
    if isinstance(winner, int) and isinstance(moment, int):
        refused = Refused(winner, ours.base.version, ours.info.operation, error.getCondition(), moment)
        _refused[ours.table, ours.base.metadata.id, ours.txn_id] = refused


def find_refused(table: str, table_id: str) -> tuple[Refused, ...]:
    """Those of the table at a location with this id, oldest first."""
    found = ((key, _refused.get(key)) for key in _refused if key[:2] == (table, table_id))
    return tuple(sorted((each for _, each in found if each is not None), key=lambda each: each.timestamp))
