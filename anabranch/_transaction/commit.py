"""Commit: place ours in the order of its winners, by one put.

Guarantees: nothing is visible before the put; a commit in the log is never reported as failed, nor put twice; no staged
file is removed before it is certain that the log does not name it; after an error while deciding, nothing is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from anabranch._log.cleanup import SKEW_MS, clean_up
from anabranch._log.log import Log
from anabranch._protocol.steps import NO_STEPS, RowPlan
from anabranch._transaction.clock import stamp
from anabranch._transaction.commit_actions import commit_lines, inline_vectors
from anabranch._transaction.open_transaction import OpenTransaction, Part, open_transaction
from anabranch._transaction.own_commits import note_own
from anabranch._transaction.phases import reach
from anabranch._transaction.put import Put, check_stands, unknown_outcome_error, write_checksum
from anabranch._transaction.rebase import Rebase
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.refused_transactions import note
from anabranch._transaction.retry import APPEND_ATTEMPTS_AT_LEAST, RetryPolicy, Runtime
from anabranch._transaction.transaction import Transaction
from anabranch.errors import AnabranchError, CommitOutcomeUnknown
from anabranch.errors.html import ShownAsTable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CommitResult(ShownAsTable):
    """Our transaction in the log: its ``version``, the versions that it was ``rebased_over``, its metrics, and the
    backend of each of its ``steps``: Arrow, Spark or the log alone.
    """

    version: int
    rebased_over: tuple[int, ...]
    attempts: int
    metrics: Mapping[str, int] = field(default_factory=dict)
    steps: RowPlan = NO_STEPS


def commit(ours: Transaction, log: Log, handler: RebaseHandler, retry: RetryPolicy, runtime: Runtime) -> CommitResult:
    """Place ``ours`` in the order of its winners, or raise the conflict that prevents it; inside a transaction of
    several statements, make it a part of that one.

    Raises:
        DeltaConcurrentModificationException: ours cannot stand behind its winners; nothing of it is visible.
        CommitOutcomeUnknown: the store did not confirm or deny the commit; nothing may be removed. An interrupt
            (``KeyboardInterrupt``, ``SystemExit``) in the middle of the put is raised as it is, with this as its cause.
        StoreError: the store refused; nothing of ours is visible.
        NothingLeft: ours only moves rows, and others have moved them all; nothing of it is visible.
        NotInTransaction: ours cannot be a part of this thread's open transaction.
    """
    transaction = open_transaction()
    if transaction is not None:
        return _commit_inside(transaction, ours, log, handler, runtime)
    rebase, put = Rebase(ours, log, handler, runtime), Put(log, retry, runtime)
    try:
        committed = _commit_with_retries(rebase, put, log, retry, runtime)
    except CommitOutcomeUnknown:
        raise
    except Exception as error:
        _discard(rebase, put, log)
        note(ours, error)
        raise
    except BaseException as interrupt:
        if put.may_stand_at is not None:
            raise interrupt from unknown_outcome_error(
                ours, put.may_stand_at, f"{type(interrupt).__name__} came in between."
            )
        _discard(rebase, put, log)
        raise
    reach("committed")
    _checkpoint(ours, log, committed.version, runtime)
    handler.finish()
    return committed


def give_up(ours: Transaction, handler: RebaseHandler) -> None:
    """End a transaction that has nothing to change. Alone, it stands at the version that it read; inside a transaction
    of several statements, what it has read counts.
    """
    transaction = open_transaction()
    if transaction is None:
        handler.discard()
    else:
        transaction.add(Part(ours, handler))


def _commit_inside(
    transaction: OpenTransaction, ours: Transaction, log: Log, handler: RebaseHandler, runtime: Runtime
) -> CommitResult:
    """Commit to the private log of an open transaction; the staged files stay under way until that one is decided."""
    try:
        transaction.check_statement(ours, log)
        rebase = Rebase(ours, log, handler, runtime)
        rebase.over(rebase.look())
        placed, version = rebase.placed.physical, rebase.next_version
        moment_of, moment = stamp(placed, version=version, previous_ms=None, now_ms=runtime.now_ms())
        lines = commit_lines(
            moment_of, inline_vectors(placed), now_ms=runtime.now_ms(), user=runtime.user(), in_commit_ms=moment
        )
        data = "\n".join([*lines, ""]).encode()
        log.put(version, data)
    except BaseException:
        handler.discard()
        raise
    note_own(placed, version, len(data))
    transaction.add(Part(placed, handler, version))
    return _make_committed(placed, version, 1)


def _commit_with_retries(rebase: Rebase, put: Put, log: Log, retry: RetryPolicy, runtime: Runtime) -> CommitResult:
    """Read the winners, check for conflicts, rebase and put the commit file; repeat while others take the version."""
    rebase.keep_identity_values()
    looked = (runtime.now_ms(), runtime.seconds())
    for attempt in _attempts(rebase.placed.logical, put, retry, runtime):
        if attempt == 2 and put.has_seen_winner:  # the put has just read the winners, without a pause since
            window = rebase.window
        else:
            looked = (runtime.now_ms(), runtime.seconds())
            window = rebase.look()
        ours = rebase.placed.logical
        own = next((winner for winner in window if winner.txn_id == ours.txn_id), None)
        if own is not None:  # our reply was lost, not our commit
            put.may_stand_at = own.version
            note_own(ours, own.version, own.identity[0])
            return _make_committed(ours, own.version, attempt - 1)
        rebase.over(window)
        ours, to_put = rebase.placed.logical, rebase.placed.physical
        put.write_vectors(to_put)
        rebase.check_files()
        version = rebase.next_version
        data = put.commit_file(to_put, rebase.winners, version)
        reach("put")
        if put.at(to_put, version, data, rebase.look):
            note_own(ours, version, len(data))
            check_stands(ours, log, version, looked, runtime)
            write_checksum(ours, log, rebase.winners, version, data)
            return _make_committed(to_put, version, attempt)
    raise rebase.allotted_time_exceeded()


def _attempts(ours: Transaction, put: Put, retry: RetryPolicy, runtime: Runtime) -> Iterator[int]:
    """The attempts from 1 on, with a pause after each but the first, until their number or the time is used up.

    A blind append tries a documented number of times, however long that takes.
    """
    started = runtime.seconds()
    for attempt in range(1, retry.attempts + 1):
        yield attempt
        may_stop = not ours.is_blind or attempt >= APPEND_ATTEMPTS_AT_LEAST
        if may_stop and runtime.seconds() - started > retry.seconds:
            return
        if attempt > 1:
            runtime.sleep(retry.pause(attempt - 2, runtime, put.took))


def _make_committed(ours: Transaction, version: int, attempts: int) -> CommitResult:
    return CommitResult(version, ours.position.rebased_over, attempts, ours.info.metrics, ours.info.steps)


def _discard(rebase: Rebase, put: Put, log: Log) -> None:
    """Remove the staged files, once it is certain that no commit names them."""
    put.remove_vectors()
    try:
        rebase.discard()
    except AnabranchError as error:
        _logger.warning("files that nothing names were left in %s for VACUUM: %s", log.table, error)


def _checkpoint(ours: Transaction, log: Log, version: int, runtime: Runtime) -> None:
    """Write a checkpoint when it is due, and clean up behind it; a durable commit never fails because of it."""
    try:
        interval = ours.base.properties.checkpoint_interval if ours.base is not None else 0
        if interval and version > 0 and version % interval == 0:
            snapshot = log.snapshot(version)
            log.write_checkpoint(snapshot, now_ms=runtime.now_ms(), new_id=runtime.new_id)
            clean_up(snapshot, now_ms=min(runtime.now_ms(), snapshot.segment.timestamp + SKEW_MS))
    except Exception as error:  # whatever it is, the commit is durable
        message = "version %s of %s is committed; its checkpoint, or the clean-up, is left to a later commit: %s"
        _logger.warning(message, version, log.table, error)
