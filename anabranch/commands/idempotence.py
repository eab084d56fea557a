"""Writes that are done once: an application numbers them, and the log remembers how far it has written.

Knows the numbers that a command is given, and those that its session says. Guarantee: a number that stands in the log,
or is below the one there, is not written again; one without an application is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import AppTransaction
from anabranch._protocol.session_says import current, record_txn_use
from anabranch._protocol.settings import TXN_APP_ID, TXN_VERSION
from anabranch._transaction.transaction import Transaction
from anabranch.errors import InvalidOption


def application(
    app_id: str | None, version: int | str | None, names: tuple[str, str] = ("txnAppId", "txnVersion")
) -> AppTransaction | None:
    """How far an application will have written, from what the user gives under these names; None where that is nothing.
    Raises InvalidOption: one is given without the other, or the version is no whole number from 0.
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
    """How far an application will have written with a write: as the command was given it, else as its session says.
    Raises InvalidOption: the session says only a part of it, or no number.
    """
    if given is not None:
        return given
    found = application(current().app_id, current().txn_version, (TXN_APP_ID, TXN_VERSION))
    if found is not None:
        record_txn_use()
    return found


def is_written(txn: AppTransaction | None, snapshot: Snapshot | None, now_ms: int) -> bool:
    """Whether the application has written as far already: this is the same write, run again."""
    if txn is None or snapshot is None:
        return False
    known = snapshot.state.app_transactions.get(txn.app_id)
    forgotten = known is not None and known.is_older_than(now_ms, snapshot.properties.transaction_retention_ms)
    return known is not None and not forgotten and known.version >= txn.version


def with_txn(ours: Transaction, txn: AppTransaction | None, now_ms: int) -> Transaction:
    """Ours as it says how far the application will have written."""
    return (
        ours
        if txn is None
        else replace(ours, says=replace(ours.says, app_transactions=(replace(txn, last_updated=now_ms),)))
    )
