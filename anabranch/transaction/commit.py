"""Commit: place ours in the order of its winners, by one put.

Knows the log, the grid and the carrying over, and is the only place that puts a commit. Guarantees: nothing is
visible before the put; a commit is never reported as failed when it stands in the log, nor put twice; no staged file
is given up before it is known that the log does not name it; errors while deciding mean that nothing is committed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import (
    AnabranchError,
    CommitOutcomeUnknown,
    ConcurrentWriteException,
    CorruptLog,
    DeltaConcurrentModificationException,
    ExecutionFailed,
    ProtocolChangedException,
    PutOutcomeUnknown,
    StoreError,
)
from anabranch.errors.inputs import check_text
from anabranch.errors.rows import cause, detail
from anabranch.log.cleanup import YOUNGEST_MS, clean_up
from anabranch.log.commits import Commit
from anabranch.log.log import Log, LogPosition
from anabranch.log.row_lineage import origins_of
from anabranch.protocol.properties import Properties
from anabranch.protocol.rules.identity import values_kept
from anabranch.transaction.clock import stamped
from anabranch.transaction.commit_actions import VectorFile, commit_lines, remove_vectors, write_vectors
from anabranch.transaction.conflict_errors import Conflict
from anabranch.transaction.conflicts import Guarded, RebaseHandler, Verdict, judge
from anabranch.transaction.fence import Fence, StagedFileGone
from anabranch.transaction.phases import reach
from anabranch.transaction.rebase import carried_over
from anabranch.transaction.rebase_limits import Bounded, Bounds, Exceeded
from anabranch.transaction.relocation import Loaders, Relocation, followed, relocation_of
from anabranch.transaction.retry import APPEND_ATTEMPTS_AT_LEAST, RetryPolicy, Runtime
from anabranch.transaction.row_ids import row_ids
from anabranch.transaction.transaction import Transaction

_logger = logging.getLogger(__name__)
_ORIGINS_KEPT = 8


@dataclass(frozen=True)
class Committed:
    """Where our transaction stands: its ``version``, the versions that it was ``rebased_over``, and its metrics."""

    version: int
    rebased_over: tuple[int, ...]
    attempts: int
    metrics: Mapping[str, int] = field(default_factory=dict)


def commit(ours: Transaction, log: Log, handler: RebaseHandler, retry: RetryPolicy, runtime: Runtime) -> Committed:
    """Place ``ours`` in the order of its winners, or raise the conflict that says why not.

    Raises:
        DeltaConcurrentModificationException: ours cannot stand behind its winners; nothing of it is visible.
        CommitOutcomeUnknown: the store never said whether the commit stands; nothing may be removed. An interrupt
            (``KeyboardInterrupt``, ``SystemExit``) in the middle of the put stays what it is, and has it as its cause.
        StoreError: the store refused; nothing of ours is visible.
        NothingLeft: ours only moves rows, and others have moved them all; nothing of it is visible.
    """
    ours = replace(ours, rebased_to=-1 if ours.base is None else ours.base.version)
    attempt = Attempt(ours, log, handler, runtime)
    try:
        attempt.keep_identity_values()
        committed = _tried(attempt, retry)
    except CommitOutcomeUnknown:
        raise
    except Exception:
        attempt.discard()
        raise
    except BaseException as interrupt:
        if attempt.putting is not None:
            raise interrupt from _unknown(ours, attempt.putting, f"{type(interrupt).__name__} came in between.")
        attempt.discard()
        raise
    reach("committed")
    _checkpoint(ours, log, committed.version, runtime)
    return committed


def check_place(ours: Transaction, log: Log, handler: RebaseHandler, runtime: Runtime) -> None:
    """Hold that ``ours``, which found nothing to do, would have found nothing behind the versions either that stood
    there when its command began, though its base is older.

    Raises:
        DeltaConcurrentModificationException: what was committed by then may matter to it.
    """
    if ours.base is None or ours.seen <= ours.base.version:
        return
    attempt = Attempt(replace(ours, rebased_to=ours.base.version), log, handler, runtime)
    attempt.place([winner for winner in attempt.look() if winner.version <= ours.seen])


class Attempt:
    """The changing part of a commit: ours as it is carried along, the same as it is to be put, the winners seen so far,
    and its vectors' file.

    Attributes:
        putting: the version at which ours stands, or may stand since a put was begun and its outcome is not known; None
        while it is certain that the log does not name ours.
    """

    def __init__(self, ours: Transaction, log: Log, handler: RebaseHandler, runtime: Runtime) -> None:
        self.ours, self.placed, self.log, self.runtime = ours, ours, log, runtime
        self.handler = Bounded(handler, lambda: _bounds(ours), runtime.seconds)
        self._guard = handler if isinstance(handler, Guarded) else None
        self.vectors = VectorFile(None, {})
        self.fence = Fence(log.store, runtime)
        self._kept_origins = lru_cache(_ORIGINS_KEPT)(lambda path: origins_of(log.store, path))
        self._loaders = Loaders(self.handler.vector, self._origins)
        self._winners: list[Commit] = []
        self._placed_before = False
        self.putting: int | None = None

    def keep_identity_values(self) -> None:
        """Let new metadata of ours remember which identity values the table has given, whichever command brings it.

        Raises:
            InvalidProperty: what the table remembers of them is damaged.
        """
        base, metadata = self.ours.base, self.ours.metadata
        if base is not None and metadata is not None:
            self.ours = self.placed = replace(self.ours, metadata=values_kept(base.metadata, metadata))

    def look(self) -> Sequence[Commit]:
        """All winners since ours last settled, oldest first."""
        base = self.ours.base
        first = LogPosition.snapshot(base) if base else LogPosition.nothing()
        known = LogPosition.commit(self._winners[-1]) if self._winners else first
        later = self.log.commits_after(known, base.partition_keys if base else ())
        if later is None:
            said = "another table stands at this path now"
            raise self.error(Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", said))
        self._winners.extend(later)
        return [winner for winner in self._winners if winner.version > self.ours.rebased_to]

    def place(self, window: Sequence[Commit]) -> None:
        """Carry ours behind the winners of the window.

        Raises:
            DeltaConcurrentModificationException: it cannot stand there.
        """
        try:
            ours, placed = self._carried(window)
        except Exceeded as bound:
            raise self.error(_exceeded(bound, window)) from bound
        if placed is not self.placed or not self._placed_before:
            self._drop_vectors()  # the put that named them was decided: lost
            self.vectors = write_vectors(placed, self.log.store, self.runtime)
        self.ours, self.placed, self._placed_before = ours, placed, True

    def guard(self) -> None:
        """Let a command that names files which others may delete look whether they are there.

        Raises:
            AnabranchError: ours may not be put now.
        """
        conflict = self._guard.before_put(self._winners) if self._guard is not None else None
        if conflict is not None:
            raise self.error(conflict)

    def commit_file(self, version: int) -> bytes:
        """The commit file of ours, placed as it is, at this version and at this moment."""
        now, base = self.runtime.now_ms(), self.ours.base
        before = [*([] if base is None else [base.timestamp]), *(winner.timestamp for winner in self._winners)]
        ours, moment = stamped(self.placed, version=version, previous_ms=max(before, default=None), now_ms=now)
        ids, user = row_ids(ours, self._winners, version), self.runtime.user()
        lines = commit_lines(ours, self.vectors, ids, now_ms=now, user=user, in_commit_ms=moment)
        text = "\n".join([*lines, ""])
        check_text("What is committed", text)
        return text.encode()

    def error(self, conflict: Conflict) -> DeltaConcurrentModificationException:
        """A conflict of ours as the exception that says it."""
        return conflict.error(self.ours, self.handler, self.runtime)

    def allotted_time_exceeded(self) -> DeltaConcurrentModificationException:
        """The exception that says that too many winners came too fast."""
        said = "the attempts or the time allowed for this commit are used up"
        last = self._winners[-1] if self._winners else None
        return self.error(Conflict(ConcurrentWriteException, "ALLOTTED_TIME_EXCEEDED", said, last))

    def _carried(self, window: Sequence[Commit]) -> tuple[Transaction, Transaction]:
        """Ours behind its winners: as it settles there, and as it is to be put, which is the same but for rows that
        others have moved since. Between winners that only moved rows it goes leg by leg.
        """
        verdict = self._judged(self.ours, window)
        reach("checked")
        self._refuse(verdict)
        ours = self._behind(self._fenced(), verdict)
        while verdict.then is not None:
            ours = self._followed(ours, verdict.then)
            window = [winner for winner in window if winner.version > ours.rebased_to]
            verdict = self._judged(ours, window)
            self._refuse(verdict)
            ours = self._behind(ours, verdict)
        return ours, self._past(ours, window)

    def _refuse(self, verdict: Verdict) -> None:
        if isinstance(verdict.outcome, Conflict):
            raise self.error(verdict.outcome)

    def _behind(self, ours: Transaction, verdict: Verdict) -> Transaction:
        if ours.groups is None:
            return carried_over(ours, verdict, self.handler, self._loaders)
        with self.handler.timed():
            return carried_over(ours, verdict, self.handler, self._loaders)

    def _fenced(self) -> Transaction:
        """Ours with nothing staged that a VACUUM may still remove; what is staged later, none of them has seen.

        Whoever names files that were there before looks after them by itself (`guard`): only its vectors are put again.
        """
        if self._guard is not None:
            return replace(self.ours)
        try:
            return self.fence.passed(self.ours, self._winners)
        except StagedFileGone as gone:
            raise self.error(gone.conflict) from None

    def _past(self, ours: Transaction, window: Sequence[Commit]) -> Transaction:
        """Ours as it is put behind winners that it precedes: nothing that they did matters, but where rows are now."""
        if ours.reads is None and not ours.touched:
            return ours
        placed = ours
        for winner in window:
            relocation = relocation_of(winner) if winner.version > ours.rebased_to else None
            placed = placed if relocation is None else self._followed(placed, relocation)
        return placed if placed is ours else replace(placed, rebased_to=ours.rebased_to)

    def _followed(self, ours: Transaction, relocation: Relocation) -> Transaction:
        with self.handler.timed():
            outcome = followed(ours, relocation, self._loaders)
        if isinstance(outcome, Conflict):
            raise self.error(outcome)
        return outcome

    def _origins(self, path: str) -> pa.Table:
        """What says where moved rows came from, if there is time to read it; kept for the next look."""
        self.handler.check_time()
        return self._kept_origins(path)

    def _judged(self, ours: Transaction, window: Sequence[Commit]) -> Verdict:
        try:
            with self.handler.timed():
                return judge(ours, window, self.handler)
        except ExecutionFailed as error:
            # the condition cannot be evaluated on a winner's rows: whether they matter is unknown, so they do
            said = f"the winners' rows could not be judged: {error.message}"
            conflict = Conflict(ConcurrentWriteException, "PREDICATES_NEED_REWRITE", said, window[-1])
            raise self.error(conflict) from error

    def discard(self) -> None:
        """Remove what was staged, now that it is known that no commit names it."""
        self._drop_vectors()
        self.fence.discard()
        try:
            self.handler.discard()
        except AnabranchError as error:
            _logger.warning("files that nothing names were left in %s for VACUUM: %s", self.log.table, error)

    def _drop_vectors(self) -> None:
        if self.vectors.name is not None:
            remove_vectors(self.log.store, self.vectors.name)
            self.vectors = VectorFile(None, {})


def _tried(attempt: Attempt, retry: RetryPolicy) -> Committed:
    """Look, judge, carry over, put; again for every put that was lost."""
    log, runtime = attempt.log, attempt.runtime
    started = runtime.seconds()
    for number in range(retry.attempts):
        looked = (runtime.now_ms(), runtime.seconds())
        window = attempt.look()
        landed = next((winner for winner in window if winner.txn_id == attempt.ours.txn_id), None)
        if landed is not None:
            attempt.putting = landed.version
            return Committed(
                landed.version, attempt.ours.rebased_over, number, attempt.ours.metrics
            )  # our reply was lost, not our commit
        attempt.place(window)
        attempt.guard()
        ours = attempt.ours
        version = window[-1].version + 1 if window else ours.rebased_to + 1
        placed, data = attempt.placed, attempt.commit_file(version)
        reach("put")
        attempt.putting = version
        if _decided(ours, log, version, data, retry, runtime):
            _check_stands(ours, log, version, looked, runtime)
            _checksum(ours, log, version, data)
            return Committed(version, placed.rebased_over, number + 1, placed.metrics)
        attempt.putting = None
        if runtime.seconds() - started > retry.seconds and _may_stop(ours, number + 1):
            break
        runtime.sleep(retry.pause(number, runtime))
    raise attempt.allotted_time_exceeded()


def _check_stands(ours: Transaction, log: Log, version: int, looked: tuple[int, float], runtime: Runtime) -> None:
    """A put that came very late may have taken a version that others had taken, and cleaned up, in the meantime.

    Raises:
        VersionCleanedUp: ours stands where no reader looks; it is as if it had never been.
        CommitOutcomeUnknown: the store did not say.
    """
    late_ms = max(runtime.now_ms() - looked[0], (runtime.seconds() - looked[1]) * 1000)
    if late_ms <= YOUNGEST_MS // 2:
        return
    try:
        log.check_stands(version)
    except StoreError as error:
        raise _unknown(ours, version, error.message) from error


def _may_stop(ours: Transaction, attempts: int) -> bool:
    """Whether time counts yet: a blind append tries a documented number of times, however long that takes."""
    return not ours.is_blind or attempts >= APPEND_ATTEMPTS_AT_LEAST


def _bounds(ours: Transaction) -> Bounds:
    properties = ours.base.properties if ours.base is not None else Properties({})
    return Bounds(properties.resolution_bytes, properties.resolution_seconds)


def _exceeded(bound: Exceeded, window: Sequence[Commit]) -> Conflict:
    said = f"what finding a place behind the winners may cost is used up ({bound})"
    more = {"bound": bound.bound, "allowed": bound.allowed, "needed": bound.needed}
    return Conflict(ConcurrentWriteException, "ALLOTTED_TIME_EXCEEDED", said, window[-1], more=more)


def _decided(ours: Transaction, log: Log, version: int, data: bytes, retry: RetryPolicy, runtime: Runtime) -> bool:
    """Put until the store has answered: True if version is ours, False if it is another's; never a maybe."""
    deadline, doubt, attempt = runtime.seconds() + retry.unknown_seconds, False, 0
    reason: StoreError
    while True:
        try:
            return log.put(version, data) or _is_mine(ours, log, version)
        except PutOutcomeUnknown as error:
            doubt, reason = True, error
        except StoreError as error:
            if not doubt:
                raise
            reason = error
        except CorruptLog:
            raise
        except Exception as error:  # a fault that no store should show: the bytes may have been written before it
            raise _unknown(ours, version, detail(error)) from cause(error)
        if runtime.seconds() >= deadline:
            raise _unknown(ours, version, reason.message) from reason
        runtime.sleep(retry.pause(attempt, runtime))
        attempt += 1


def _unknown(ours: Transaction, version: int, reason: str) -> CommitOutcomeUnknown:
    return CommitOutcomeUnknown(table=ours.table, version=version, txn_id=ours.txn_id, reason=reason)


def _is_mine(ours: Transaction, log: Log, version: int) -> bool:
    """Whose commit stands at a version that was taken; a client that repeats a put by itself may have lost to itself.

    Raises:
        PutOutcomeUnknown: it cannot be read now, so it is not known.
    """
    try:
        winner = log.read(version)
    except CorruptLog:
        raise  # whatever stands there is not ours: puts are whole or not at all
    except AnabranchError as error:
        raise PutOutcomeUnknown(name=str(version), root=ours.table, reason=error.message) from error
    return winner is not None and winner.txn_id == ours.txn_id


def _checksum(ours: Transaction, log: Log, version: int, data: bytes) -> None:
    """Write the version's checksum file where that is cheap; a commit that stands never fails because of it."""
    try:
        log.write_checksum(version, data, ours.base.metadata.id if ours.base else None, _restated(ours))
    except Exception as error:  # whatever it is, the commit stands
        _logger.info("version %s of %s has no checksum file: %s", version, log.table, error)


def _restated(ours: Transaction) -> frozenset[str]:
    """The paths of live files that ours names again without taking them away."""
    if ours.base is None or ours.data_change or not ours.base.files_are_loaded:
        return ours.recommits
    is_live = pc.is_in(ours.adds["path"], value_set=ours.base.files["path"].combine_chunks())
    return ours.recommits | (frozenset(ours.adds["path"].filter(is_live).to_pylist()) - ours.removes)


def _checkpoint(ours: Transaction, log: Log, version: int, runtime: Runtime) -> None:
    """Write a checkpoint when it is due, and clean up behind it; a commit that stands never fails because of it."""
    try:
        base = ours.base
        interval = base.properties.checkpoint_interval if base else 0
        if interval and version > 0 and version % interval == 0:
            snapshot = log.snapshot(version)
            log.write_checkpoint(snapshot, now_ms=runtime.now_ms(), new_id=runtime.new_id)
            clean_up(snapshot, now_ms=runtime.now_ms())
    except Exception as error:  # whatever it is, the commit stands
        _logger.warning(
            "version %s of %s is committed; its checkpoint, or the clean-up, is left to a later commit: %s",
            version,
            log.table,
            error,
        )
