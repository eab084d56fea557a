"""Commit: place mine in the order of its winners, by one put.

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
from anabranch.log.log import Known, Log
from anabranch.log.origins import origins_of
from anabranch.protocol.identity import values_kept
from anabranch.protocol.properties import Properties
from anabranch.transaction.bounds import Bounded, Bounds, Exceeded
from anabranch.transaction.clock import stamped
from anabranch.transaction.conflicts import Guarded, Hands, Verdict, judge
from anabranch.transaction.fence import Fence, StagedFileGone
from anabranch.transaction.footprint import Transaction
from anabranch.transaction.patience import APPEND_ATTEMPTS_AT_LEAST, Chance, Patience
from anabranch.transaction.phases import reach
from anabranch.transaction.place import VectorFile, commit_lines, remove_vectors, write_vectors
from anabranch.transaction.rebase import carried_over
from anabranch.transaction.relocation import Loaders, Relocation, followed, relocation_of
from anabranch.transaction.row_ids import row_ids
from anabranch.transaction.words import Conflict

_logger = logging.getLogger(__name__)
_ORIGINS_KEPT = 8


@dataclass(frozen=True)
class Committed:
    """Where mine stands: its ``version``, the versions that it was ``carried`` over, and what it did in numbers."""

    version: int
    carried: tuple[int, ...]
    attempts: int
    metrics: Mapping[str, int] = field(default_factory=dict)


def commit(mine: Transaction, log: Log, hands: Hands, patience: Patience, chance: Chance) -> Committed:
    """Place ``mine`` in the order of its winners, or raise the conflict that says why not.

    Raises:
        DeltaConcurrentModificationException: mine cannot stand behind its winners; nothing of it is visible.
        CommitOutcomeUnknown: the store never said whether the commit stands; nothing may be removed. An interrupt
            (``KeyboardInterrupt``, ``SystemExit``) in the middle of the put stays what it is, and has it as its cause.
        StoreError: the store refused; nothing of mine is visible.
        NothingLeft: mine only moves rows, and others have moved them all; nothing of it is visible.
    """
    mine = replace(mine, settled=-1 if mine.base is None else mine.base.version)
    attempt = Attempt(mine, log, hands, chance)
    try:
        attempt.keep_identity_values()
        committed = _tried(attempt, patience)
    except CommitOutcomeUnknown:
        raise
    except Exception:
        attempt.discard()
        raise
    except BaseException as interrupt:
        if attempt.putting is not None:
            raise interrupt from _unknown(mine, attempt.putting, f"{type(interrupt).__name__} came in between.")
        attempt.discard()
        raise
    reach("committed")
    _checkpoint(mine, log, committed.version, chance)
    return committed


def check_place(mine: Transaction, log: Log, hands: Hands, chance: Chance) -> None:
    """Hold that ``mine``, which found nothing to do, would have found nothing behind the versions either that stood
    there when its command began, though its base is older.

    Raises:
        DeltaConcurrentModificationException: what was committed by then may matter to it.
    """
    if mine.base is None or mine.seen <= mine.base.version:
        return
    attempt = Attempt(replace(mine, settled=mine.base.version), log, hands, chance)
    attempt.place([winner for winner in attempt.look() if winner.version <= mine.seen])


class Attempt:
    """The changing part of a commit: mine as it is carried along, the same as it is to be put, the winners seen so far,
    and its vectors' file.

    Attributes:
        putting: the version at which mine stands, or may stand since a put was begun and its outcome is not known; None
        while it is certain that the log does not name mine.
    """

    def __init__(self, mine: Transaction, log: Log, hands: Hands, chance: Chance) -> None:
        self.mine, self.placed, self.log, self.chance = mine, mine, log, chance
        self.hands = Bounded(hands, lambda: _bounds(mine), chance.seconds)
        self._guard = hands if isinstance(hands, Guarded) else None
        self.vectors = VectorFile(None, {})
        self.fence = Fence(log.store, chance)
        self._kept_origins = lru_cache(_ORIGINS_KEPT)(lambda path: origins_of(log.store, path))
        self._loaders = Loaders(self.hands.vector, self._origins)
        self._winners: list[Commit] = []
        self._placed_before = False
        self.putting: int | None = None

    def keep_identity_values(self) -> None:
        """Let new metadata of mine remember which identity values the table has given, whichever command brings it.

        Raises:
            InvalidProperty: what the table remembers of them is damaged.
        """
        base, metadata = self.mine.base, self.mine.metadata
        if base is not None and metadata is not None:
            self.mine = self.placed = replace(self.mine, metadata=values_kept(base.metadata, metadata))

    def look(self) -> Sequence[Commit]:
        """All winners since mine last settled, oldest first."""
        base = self.mine.base
        first = Known.snapshot(base) if base else Known.nothing()
        known = Known.commit(self._winners[-1]) if self._winners else first
        later = self.log.commits_after(known, base.partition_keys if base else ())
        if later is None:
            said = "another table stands at this path now"
            raise self.error(Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", said))
        self._winners.extend(later)
        return [winner for winner in self._winners if winner.version > self.mine.settled]

    def place(self, window: Sequence[Commit]) -> None:
        """Carry mine behind the winners of the window.

        Raises:
            DeltaConcurrentModificationException: it cannot stand there.
        """
        try:
            mine, placed = self._carried(window)
        except Exceeded as bound:
            raise self.error(_exceeded(bound, window)) from bound
        if placed is not self.placed or not self._placed_before:
            self._drop_vectors()  # the put that named them was decided: lost
            self.vectors = write_vectors(placed, self.log.store, self.chance)
        self.mine, self.placed, self._placed_before = mine, placed, True

    def guard(self) -> None:
        """Let a command that names files which others may delete look whether they are there.

        Raises:
            AnabranchError: mine may not be put now.
        """
        conflict = self._guard.before_put(self._winners) if self._guard is not None else None
        if conflict is not None:
            raise self.error(conflict)

    def commit_file(self, version: int) -> bytes:
        """The commit file of mine, placed as it is, at this version and at this moment."""
        now, base = self.chance.now_ms(), self.mine.base
        before = [*([] if base is None else [base.timestamp]), *(winner.timestamp for winner in self._winners)]
        mine, moment = stamped(self.placed, version=version, previous_ms=max(before, default=None), now_ms=now)
        ids, user = row_ids(mine, self._winners, version), self.chance.user()
        lines = commit_lines(mine, self.vectors, ids, now_ms=now, user=user, in_commit_ms=moment)
        text = "\n".join([*lines, ""])
        check_text("What is committed", text)
        return text.encode()

    def error(self, conflict: Conflict) -> DeltaConcurrentModificationException:
        """A conflict of mine as the exception that says it."""
        return conflict.error(self.mine, self.hands, self.chance)

    def out_of_patience(self) -> DeltaConcurrentModificationException:
        """The exception that says that too many winners came too fast."""
        said = "the attempts or the time allowed for this commit are used up"
        last = self._winners[-1] if self._winners else None
        return self.error(Conflict(ConcurrentWriteException, "ALLOTTED_TIME_EXCEEDED", said, last))

    def _carried(self, window: Sequence[Commit]) -> tuple[Transaction, Transaction]:
        """Mine behind its winners: as it settles there, and as it is to be put, which is the same but for rows that
        others have moved since. Between winners that only moved rows it goes leg by leg.
        """
        verdict = self._judged(self.mine, window)
        reach("checked")
        self._refuse(verdict)
        mine = self._behind(self._fenced(), verdict)
        while verdict.then is not None:
            mine = self._followed(mine, verdict.then)
            window = [winner for winner in window if winner.version > mine.settled]
            verdict = self._judged(mine, window)
            self._refuse(verdict)
            mine = self._behind(mine, verdict)
        return mine, self._past(mine, window)

    def _refuse(self, verdict: Verdict) -> None:
        if isinstance(verdict.outcome, Conflict):
            raise self.error(verdict.outcome)

    def _behind(self, mine: Transaction, verdict: Verdict) -> Transaction:
        if mine.groups is None:
            return carried_over(mine, verdict, self.hands, self._loaders)
        with self.hands.timed():
            return carried_over(mine, verdict, self.hands, self._loaders)

    def _fenced(self) -> Transaction:
        """Mine with nothing staged that a VACUUM may still remove; what is staged later, none of them has seen.

        Whoever names files that were there before looks after them by itself (`guard`): only its vectors are put again.
        """
        if self._guard is not None:
            return replace(self.mine)
        try:
            return self.fence.passed(self.mine, self._winners)
        except StagedFileGone as gone:
            raise self.error(gone.conflict) from None

    def _past(self, mine: Transaction, window: Sequence[Commit]) -> Transaction:
        """Mine as it is put behind winners that it precedes: nothing that they did matters, but where rows are now."""
        if mine.reads is None and not mine.touched:
            return mine
        placed = mine
        for winner in window:
            relocation = relocation_of(winner) if winner.version > mine.settled else None
            placed = placed if relocation is None else self._followed(placed, relocation)
        return placed if placed is mine else replace(placed, settled=mine.settled)

    def _followed(self, mine: Transaction, relocation: Relocation) -> Transaction:
        with self.hands.timed():
            outcome = followed(mine, relocation, self._loaders)
        if isinstance(outcome, Conflict):
            raise self.error(outcome)
        return outcome

    def _origins(self, path: str) -> pa.Table:
        """What says where moved rows came from, if there is time to read it; kept for the next look."""
        self.hands.check_time()
        return self._kept_origins(path)

    def _judged(self, mine: Transaction, window: Sequence[Commit]) -> Verdict:
        try:
            with self.hands.timed():
                return judge(mine, window, self.hands)
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
            self.hands.discard()
        except AnabranchError as error:
            _logger.warning("files that nothing names were left in %s for VACUUM: %s", self.log.table, error)

    def _drop_vectors(self) -> None:
        if self.vectors.name is not None:
            remove_vectors(self.log.store, self.vectors.name)
            self.vectors = VectorFile(None, {})


def _tried(attempt: Attempt, patience: Patience) -> Committed:
    """Look, judge, carry over, put; again for every put that was lost."""
    log, chance = attempt.log, attempt.chance
    started = chance.seconds()
    for number in range(patience.attempts):
        looked = (chance.now_ms(), chance.seconds())
        window = attempt.look()
        landed = next((winner for winner in window if winner.txn_id == attempt.mine.txn_id), None)
        if landed is not None:
            attempt.putting = landed.version
            return Committed(
                landed.version, attempt.mine.carried, number, attempt.mine.metrics
            )  # our reply was lost, not our commit
        attempt.place(window)
        attempt.guard()
        mine = attempt.mine
        version = window[-1].version + 1 if window else mine.settled + 1
        placed, data = attempt.placed, attempt.commit_file(version)
        reach("put")
        attempt.putting = version
        if _decided(mine, log, version, data, patience, chance):
            _check_stands(mine, log, version, looked, chance)
            _checksum(mine, log, version, data)
            return Committed(version, placed.carried, number + 1, placed.metrics)
        attempt.putting = None
        if chance.seconds() - started > patience.seconds and _may_stop(mine, number + 1):
            break
        chance.sleep(patience.pause(number, chance))
    raise attempt.out_of_patience()


def _check_stands(mine: Transaction, log: Log, version: int, looked: tuple[int, float], chance: Chance) -> None:
    """A put that came very late may have taken a version that others had taken, and cleaned up, in the meantime.

    Raises:
        VersionCleanedUp: mine stands where no reader looks; it is as if it had never been.
        CommitOutcomeUnknown: the store did not say.
    """
    late_ms = max(chance.now_ms() - looked[0], (chance.seconds() - looked[1]) * 1000)
    if late_ms <= YOUNGEST_MS // 2:
        return
    try:
        log.check_stands(version)
    except StoreError as error:
        raise _unknown(mine, version, error.message) from error


def _may_stop(mine: Transaction, attempts: int) -> bool:
    """Whether time counts yet: a blind append tries a documented number of times, however long that takes."""
    return not mine.is_blind or attempts >= APPEND_ATTEMPTS_AT_LEAST


def _bounds(mine: Transaction) -> Bounds:
    properties = mine.base.properties if mine.base is not None else Properties({})
    return Bounds(properties.resolution_bytes, properties.resolution_seconds)


def _exceeded(bound: Exceeded, window: Sequence[Commit]) -> Conflict:
    said = f"what finding a place behind the winners may cost is used up ({bound})"
    more = {"bound": bound.bound, "allowed": bound.allowed, "needed": bound.needed}
    return Conflict(ConcurrentWriteException, "ALLOTTED_TIME_EXCEEDED", said, window[-1], more=more)


def _decided(mine: Transaction, log: Log, version: int, data: bytes, patience: Patience, chance: Chance) -> bool:
    """Put until the store has answered: True if version is mine, False if it is another's; never a maybe."""
    deadline, doubt, attempt = chance.seconds() + patience.unknown_seconds, False, 0
    reason: StoreError
    while True:
        try:
            return log.put(version, data) or _is_mine(mine, log, version)
        except PutOutcomeUnknown as error:
            doubt, reason = True, error
        except StoreError as error:
            if not doubt:
                raise
            reason = error
        except CorruptLog:
            raise
        except Exception as error:  # a fault that no store should show: the bytes may have been written before it
            raise _unknown(mine, version, detail(error)) from cause(error)
        if chance.seconds() >= deadline:
            raise _unknown(mine, version, reason.message) from reason
        chance.sleep(patience.pause(attempt, chance))
        attempt += 1


def _unknown(mine: Transaction, version: int, reason: str) -> CommitOutcomeUnknown:
    return CommitOutcomeUnknown(table=mine.table, version=version, txn_id=mine.txn_id, reason=reason)


def _is_mine(mine: Transaction, log: Log, version: int) -> bool:
    """Whose commit stands at a version that was taken; a client that repeats a put by itself may have lost to itself.

    Raises:
        PutOutcomeUnknown: it cannot be read now, so it is not known.
    """
    try:
        winner = log.read(version)
    except CorruptLog:
        raise  # whatever stands there is not mine: puts are whole or not at all
    except AnabranchError as error:
        raise PutOutcomeUnknown(name=str(version), root=mine.table, reason=error.message) from error
    return winner is not None and winner.txn_id == mine.txn_id


def _checksum(mine: Transaction, log: Log, version: int, data: bytes) -> None:
    """Write the version's checksum file where that is cheap; a commit that stands never fails because of it."""
    try:
        log.write_checksum(version, data, mine.base.metadata.id if mine.base else None, _restated(mine))
    except Exception as error:  # whatever it is, the commit stands
        _logger.info("version %s of %s has no checksum file: %s", version, log.table, error)


def _restated(mine: Transaction) -> frozenset[str]:
    """The paths of live files that mine names again without taking them away."""
    if mine.base is None or mine.data_change or not mine.base.files_are_loaded:
        return mine.recommits
    is_live = pc.is_in(mine.adds["path"], value_set=mine.base.files["path"].combine_chunks())
    return mine.recommits | (frozenset(mine.adds["path"].filter(is_live).to_pylist()) - mine.removes)


def _checkpoint(mine: Transaction, log: Log, version: int, chance: Chance) -> None:
    """Write a checkpoint when it is due, and clean up behind it; a commit that stands never fails because of it."""
    try:
        base = mine.base
        interval = base.properties.checkpoint_interval if base else 0
        if interval and version > 0 and version % interval == 0:
            snapshot = log.snapshot(version)
            log.write_checkpoint(snapshot, now_ms=chance.now_ms(), new_id=chance.new_id)
            clean_up(snapshot, now_ms=chance.now_ms())
    except Exception as error:  # whatever it is, the commit stands
        _logger.warning(
            "version %s of %s is committed; its checkpoint, or the clean-up, is left to a later commit: %s",
            version,
            log.table,
            error,
        )
