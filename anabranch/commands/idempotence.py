"""Idempotent writes: an application numbers its writes, and the log records the last number.

Knows the numbers of a command and those of its session. Guarantee: a number up to the one in the log is not written
again; a number without an application is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import AppTransaction
from anabranch._protocol.session_settings import current, record_txn_use
from anabranch._protocol.settings import TXN_APP_ID, TXN_VERSION
from anabranch._transaction.transaction import Transaction
from anabranch.errors import InvalidOption


def application(
    app_id: str | None, version: int | str | None, names: tuple[str, str] = ("txnAppId", "txnVersion")
) -> AppTransaction | None:
    """The application transaction from the user's options of these names; None if neither is set. Raises InvalidOption:
    one is set without the other, or the version is not a whole number from 0.
    """
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        missing = names[0] if app_id is None else names[1]
        raise InvalidOption(option=missing, value="left out", reason=f"{names[0]} and {names[1]} go together.")
    if not re.fullmatch("[0-9]+", str(version)) or int(version) >= 1 << 63:
        reason = "it takes a whole number from 0 that fits 64 bits."
        raise InvalidOption(option=names[1], value=version, reason=reason)
    return AppTransaction(app_id, int(version))


def application_of(given: AppTransaction | None = None) -> AppTransaction | None:
    """The application transaction of a write: the command's, else that of the session's settings. Raises InvalidOption:
    the session sets only one of them, or no number.
    """
    if given is not None:
        return given
    txn = application(current().app_id, current().txn_version, (TXN_APP_ID, TXN_VERSION))
    if txn is not None:
        record_txn_use()
    return txn


def is_written(txn: AppTransaction | None, snapshot: Snapshot | None, now_ms: int) -> bool:
    """Whether the log records this number or a later one: the write is a repetition."""
    if txn is None or snapshot is None:
        return False
    recorded = snapshot.state.app_transactions.get(txn.app_id)
    is_expired = recorded is not None and recorded.is_older_than(now_ms, snapshot.properties.transaction_retention_ms)
    return recorded is not None and not is_expired and recorded.version >= txn.version


def with_txn(ours: Transaction, txn: AppTransaction | None, now_ms: int) -> Transaction:
    """The transaction with the application transaction added."""
    return (
        ours
        if txn is None
        else replace(
            ours, declarations=replace(ours.declarations, app_transactions=(replace(txn, last_updated=now_ms),))
        )
    )
