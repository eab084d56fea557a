"""The put: one commit file, and the decision who owns its version.

Knows the log and the store. Guarantees: a put ends as created, as taken by another, or as `CommitOutcomeUnknown`;
nothing is put twice; no vectors' file is removed before it is certain that the log does not name it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from anabranch._log.cleanup import YOUNGEST_MS
from anabranch._log.commits import Commit
from anabranch._log.log import Log, PreviousVersion
from anabranch._transaction.clock import stamp
from anabranch._transaction.commit_actions import VectorFile, commit_lines, remove_vectors, write_vectors
from anabranch._transaction.retry import RetryPolicy, Runtime
from anabranch._transaction.row_ids import row_ids
from anabranch._transaction.transaction import Transaction
from anabranch.errors import AnabranchError, CommitOutcomeUnknown, CorruptLog, PutOutcomeUnknown, StoreError
from anabranch.errors.inputs import check_text
from anabranch.errors.rows import cause, detail

_logger = logging.getLogger(__name__)

Look = Callable[[], Sequence[Commit]]
"""Returns all winners that ours does not stand behind yet."""


class Put:
    """The puts of one transaction, at one version after the other.

    Attributes:
        may_stand_at: the version at which it stands, or may stand while the outcome of a put is unknown; None while it
            is certain that the log does not name it.
        took: duration of the last put until it was decided, in seconds.
        has_seen_winner: whether the last put was lost, and a look at the log has shown the winner.
    """

    def __init__(self, log: Log, retry: RetryPolicy, runtime: Runtime) -> None:
        self.may_stand_at: int | None = None
        self.has_seen_winner, self.took = False, 0.0
        self._log, self._retry, self._runtime = log, retry, runtime
        self._vectors = VectorFile(None, {})
        self._vectors_of: Transaction | None = None

    def write_vectors(self, to_put: Transaction) -> None:
        """Put the vectors' file that the commit will name, unless the last one was of the very same transaction."""
        if to_put is self._vectors_of:
            return
        self.remove_vectors()  # the put that named them was lost
        self._vectors = write_vectors(to_put, self._log.store, self._runtime)
        self._vectors_of = to_put

    def remove_vectors(self) -> None:
        """Remove the vectors' file, once it is certain that no commit names it."""
        if self._vectors.name is not None:
            remove_vectors(self._log.store, self._vectors.name)
            self._vectors = VectorFile(None, {})

    def commit_file(self, to_put: Transaction, winners: Sequence[Commit], version: int) -> bytes:
        """The commit file at this version and at this moment.

        Args:
            winners: all commits since the transaction's base.
        """
        now, base = self._runtime.now_ms(), to_put.base
        before = [*([] if base is None else [base.timestamp]), *(winner.timestamp for winner in winners)]
        ours, moment = stamp(to_put, version=version, previous_ms=max(before, default=None), now_ms=now)
        ids, user = row_ids(ours, winners, version), self._runtime.user()
        lines = commit_lines(ours, self._vectors, ids, now_ms=now, user=user, in_commit_ms=moment)
        text = "\n".join([*lines, ""])
        check_text("What is committed", text)
        return text.encode()

    def at(self, ours: Transaction, version: int, data: bytes, look: Look) -> bool:
        """Put the file: True if the version is ours now, False if it is another's.

        Args:
            look: returns the winners, to find the owner of a version that was taken.
        """
        began = self._runtime.seconds()
        self.may_stand_at = version
        self.has_seen_winner = False
        if put_until_decided(lambda: self._put(ours, version, data, look), ours, version, self._retry, self._runtime):
            return True
        self.may_stand_at = None
        self.took = self._runtime.seconds() - began
        return False

    def _put(self, ours: Transaction, version: int, data: bytes, look: Look) -> bool:
        if self._log.put(version, data):
            return True
        window = _try_look(look)
        winner = next((w for w in window if w.version == version), None)
        self.has_seen_winner = winner is not None
        return is_ours(ours, self._log, version, winner)


def unknown_outcome_error(ours: Transaction, version: int, reason: str) -> CommitOutcomeUnknown:
    """The error for an unknown outcome of the commit at a version."""
    return CommitOutcomeUnknown(table=ours.table, version=version, txn_id=ours.txn_id, reason=reason)


def put_until_decided(
    put: Callable[[], bool], ours: Transaction, version: int, retry: RetryPolicy, runtime: Runtime
) -> bool:
    """Put until the store has decided: True if the version is ours, False if it is another's."""
    deadline, doubt, attempt = runtime.seconds() + retry.unknown_seconds, False, 0
    reason: StoreError
    while True:
        began = runtime.seconds()
        try:
            return put()
        except PutOutcomeUnknown as error:
            doubt, reason = True, error
        except StoreError as error:
            if not doubt:
                raise
            reason = error
        except CorruptLog:
            raise
        except Exception as error:  # no store should raise this: the bytes may have been written before it
            raise unknown_outcome_error(ours, version, detail(error)) from cause(error)
        if runtime.seconds() >= deadline:
            raise unknown_outcome_error(ours, version, reason.message) from reason
        runtime.sleep(retry.pause(attempt, runtime, runtime.seconds() - began))
        attempt += 1


def _try_look(look: Look) -> Sequence[Commit]:
    """The winners; none where they cannot be read, since the next look reports the reason."""
    try:
        return look()
    except AnabranchError:
        return ()


def is_ours(ours: Transaction, log: Log, version: int, winner: Commit | None) -> bool:
    """Whether the commit at a taken version is ours; a client that repeats a put by itself may have lost to itself. A
    winner that was not listed is read by its name. Raises PutOutcomeUnknown: it cannot be read now.
    """
    try:
        winner = winner or log.read(version)
    except CorruptLog:
        raise  # a damaged commit is not ours: puts are whole or not at all
    except AnabranchError as error:
        raise PutOutcomeUnknown(name=str(version), root=ours.table, reason=error.message) from error
    return winner is not None and winner.txn_id == ours.txn_id


def check_stands(ours: Transaction, log: Log, version: int, looked: tuple[int, float], runtime: Runtime) -> None:
    """Check that ours is still in the log, if its put came very late: it may have taken a version that others had
    taken, and cleaned up, in the meantime.

    Args:
        looked: when the winners were read, by both clocks.

    Raises:
        VersionCleanedUp: ours lies where no reader looks; it has no effect.
        CommitOutcomeUnknown: the store did not answer.
    """
    late_ms = max(runtime.now_ms() - looked[0], (runtime.seconds() - looked[1]) * 1000)
    if late_ms <= YOUNGEST_MS // 2:
        return
    try:
        log.check_stands(version)
    except StoreError as error:
        raise unknown_outcome_error(ours, version, error.message) from error


def write_checksum(ours: Transaction, log: Log, winners: Sequence[Commit], version: int, data: bytes) -> None:
    """Write the version's checksum file where that is cheap; a durable commit never fails because of it.

    Args:
        winners: all commits since the transaction's base, before ours.
    """
    try:
        before = None if ours.base is None else PreviousVersion(ours.base, winners)
        log.write_checksum(version, data, before, ours.restated_paths)
    except Exception as error:  # whatever it is, the commit is durable
        _logger.info("version %s of %s has no checksum file: %s", version, log.table, error)
