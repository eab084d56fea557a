"""Rebase: ours, moved from where it was read to where it can stand.

Knows commits, net effects and positions, and the log only to see what was committed since. `conflicts` judges;
what is here transforms. Guarantee: each path has one present state in ``sources``; a vector is only ever joined to one
that holds all rows which ours knew as deleted; what is already staged is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._log.log import Log
from anabranch._log.positions import LogPosition
from anabranch._log.row_lineage import origins_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.properties import Properties
from anabranch._protocol.rules.identity import keep_assigned_values
from anabranch._protocol.stats.statistics import num_records, with_num_records
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.conflicts import Clear, Redo, Verdict, judge
from anabranch._transaction.fence import Fence, StagedFileGone
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import Guarded, RebaseHandler
from anabranch._transaction.rebase_limits import Bounded, Bounds, Exceeded
from anabranch._transaction.relocation import Loaders, Relocation, follow_relocation, overtaken, relocation_of
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import ReadSet, Source, Transaction
from anabranch.errors import (
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    ExecutionFailed,
    ProtocolChangedException,
)

_ORIGINS_KEPT = 8


class Rebase:
    """Ours on its way behind its winners: made of what a command staged, fed one window of winners after the other.

    Attributes:
        ours: as it stands behind the winners that it has to follow; the next window is judged against it.
        to_put: the same as it is to be put, at the addresses that rows have in the newest version.
        winners: all commits since its base that were seen, oldest first.
    """

    def __init__(self, ours: Transaction, log: Log, handler: RebaseHandler, runtime: Runtime) -> None:
        self.ours = self.to_put = ours
        self.winners: list[Commit] = []
        self._log, self._runtime = log, runtime
        self._handler = Bounded(handler, lambda: _bounds(ours), runtime.seconds)
        self._guard = handler if isinstance(handler, Guarded) else None
        self._fence = Fence(log.store, runtime)
        self._kept_origins = lru_cache(_ORIGINS_KEPT)(lambda path: origins_of(log.store, path))
        self._loaders = Loaders(self._handler.vector, self._origins)

    @property
    def next_version(self) -> int:
        """The version behind all winners."""
        return (self.winners[-1].version if self.winners else self.ours.stands.rebased_to) + 1

    def keep_identity_values(self) -> None:
        """Let new metadata of ours remember which identity values the table has given, whichever command brings it.
        Raises InvalidProperty: what the table remembers of them is damaged.
        """
        base, metadata = self.ours.base, self.ours.says.metadata
        if base is not None and metadata is not None:
            says = replace(self.ours.says, metadata=keep_assigned_values(base.metadata, metadata))
            self.ours = self.to_put = replace(self.ours, says=says)

    def look(self) -> Sequence[Commit]:
        """The window: all winners since the version that ours stands behind, oldest first. Raises
        ProtocolChangedException: another table stands at this path now.
        """
        base = self.ours.base
        if self.winners:
            known = LogPosition.commit(self.winners[-1], base.metadata.id if base else None)
        else:
            known = LogPosition.snapshot(base) if base else LogPosition.nothing()
        later = self._log.commits_after(known, base.partition_keys if base else ())
        if later is None:
            said = "another table stands at this path now"
            raise self.error(Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", said))
        self.winners.extend(later)
        return self.window

    @property
    def window(self) -> Sequence[Commit]:
        """The same, as the last look has shown them."""
        return [winner for winner in self.winners if winner.version > self.ours.stands.rebased_to]

    def over(self, window: Sequence[Commit]) -> None:
        """Move ours behind the winners of a window. Raises DeltaConcurrentModificationException: it cannot stand."""
        try:
            self._over(window)
        except Exceeded as bound:
            said = f"what finding a place behind the winners may cost is used up ({bound})"
            more = {"bound": bound.bound, "allowed": bound.allowed, "needed": bound.needed}
            kind = ConcurrentWriteException
            raise self.error(Conflict(kind, "ALLOTTED_TIME_EXCEEDED", said, window[-1], more=more)) from bound

    def check_files(self) -> None:
        """Let a command that names files which others may delete look whether they are there; for any other one the
        fence does that. Raises AnabranchError: ours may not be put now.
        """
        guard, fence = self._guard, self._fence
        conflict = fence.before_put(self.to_put) if guard is None else guard.before_put(self.winners)
        if conflict is not None:
            raise self.error(conflict)

    def discard(self) -> None:
        """Remove what was staged on the way, and by the command. Raises AnabranchError: some could not be removed."""
        self._fence.discard()
        self._handler.discard()

    def error(self, conflict: Conflict) -> DeltaConcurrentModificationException:
        """A conflict of ours as the exception that says it."""
        return conflict.error(self.ours, self._handler, self._runtime)

    def allotted_time_exceeded(self) -> DeltaConcurrentModificationException:
        """The exception that says that too many winners came too fast."""
        said = "the attempts or the time allowed for this commit are used up"
        last = self.winners[-1] if self.winners else None
        return self.error(Conflict(ConcurrentWriteException, "ALLOTTED_TIME_EXCEEDED", said, last))

    # -- over one window

    def _over(self, window: Sequence[Commit]) -> None:
        """Judge ours and carry it over; where winners only moved rows, segment by segment between them."""
        verdict = self._judge(self.ours, window)
        reach("checked")
        self._raise_conflict(verdict)
        ours = self._carry_over(self._restage_threatened(), verdict)
        while verdict.then is not None:
            ours = self._follow_relocation(ours, verdict.then)
            window = [winner for winner in window if winner.version > ours.stands.rebased_to]
            verdict = self._judge(ours, window)
            self._raise_conflict(verdict)
            ours = self._carry_over(ours, verdict)
        self.ours, self.to_put = ours, self._at_new_addresses(ours, window)

    def _judge(self, ours: Transaction, window: Sequence[Commit]) -> Verdict:
        try:
            with self._handler.count_time():
                return judge(ours, window, self._handler)
        except ExecutionFailed as error:
            # the condition cannot be evaluated on a winner's rows: whether they matter is unknown, so they do
            said = f"the winners' rows could not be judged: {error.message}"
            conflict = Conflict(ConcurrentWriteException, "PREDICATES_NEED_REWRITE", said, window[-1])
            raise self.error(conflict) from error

    def _raise_conflict(self, verdict: Verdict) -> None:
        if isinstance(verdict.outcome, Conflict):
            raise self.error(verdict.outcome)

    def _restage_threatened(self) -> Transaction:
        """Ours with nothing staged that a VACUUM may still remove; what is staged later, none of them has seen.

        Whoever names files that were there before looks after them by itself (`check_files`): only its vectors are put
        again.
        """
        if self._guard is not None:
            return replace(self.ours)
        try:
            return self._fence.restage_threatened(self.ours, self.winners)
        except StagedFileGone as gone:
            raise self.error(gone.conflict) from None

    def _carry_over(self, ours: Transaction, verdict: Verdict) -> Transaction:
        if ours.does.groups is None:
            return carry_over(ours, verdict, self._handler, self._loaders)
        with self._handler.count_time():  # a redo counts its time by itself, a relocation does not
            return carry_over(ours, verdict, self._handler, self._loaders)

    def _follow_relocation(self, ours: Transaction, relocation: Relocation) -> Transaction:
        with self._handler.count_time():
            outcome = follow_relocation(ours, relocation, self._loaders)
        if isinstance(outcome, Conflict):
            raise self.error(outcome)
        return outcome

    def _at_new_addresses(self, ours: Transaction, window: Sequence[Commit]) -> Transaction:
        """Ours as it is put behind winners that it precedes: nothing that they did matters, but where rows are now."""
        if ours.reads is None and not ours.touched_paths:
            return ours
        to_put = ours
        for winner in window:
            relocation = relocation_of(winner) if winner.version > ours.stands.rebased_to else None
            to_put = to_put if relocation is None else self._follow_relocation(to_put, relocation)
        if to_put is ours:
            return ours
        return replace(to_put, stands=replace(to_put.stands, rebased_to=ours.stands.rebased_to))

    def _origins(self, path: str) -> pa.Table:
        """What says where moved rows came from, if there is time to read it; kept for the next look."""
        self._handler.check_time()
        return self._kept_origins(path)


def _bounds(ours: Transaction) -> Bounds:
    properties = ours.base.properties if ours.base is not None else Properties({})
    return Bounds(properties.resolution_bytes, properties.resolution_seconds)


# -- the transforms ----------------------------------------------------------------------------------------------------


def carry_over(ours: Transaction, verdict: Verdict, handler: RebaseHandler, loaders: Loaders) -> Transaction:
    """Ours behind all winners of the verdict: sources re-pointed at their newest state, and rows of blind winners
    redone; a relocation with what they deleted. Raises NothingLeft: ours only moves rows, and others have moved them
    all.
    """
    if not verdict.behind:
        return ours
    if ours.does.groups is not None:
        return overtaken(ours, verdict.net, verdict.behind, loaders)
    moved = repoint_sources(ours, verdict, handler)
    if isinstance(verdict.outcome, Redo):
        moved = join_transactions(moved, handler.redo(verdict.outcome.files, verdict.outcome.rows))
    versions = tuple(winner.version for winner in verdict.behind)
    moved = _with_marks(still_reading(moved, verdict, handler), verdict)
    return replace(moved, stands=moved.stands.behind(*versions))


def _with_marks(ours: Transaction, verdict: Verdict) -> Transaction:
    """Ours, with the newest metadata; where it changes that, it keeps what others reserved of identity columns."""
    known = [winner.head.metadata for winner in verdict.behind if winner.head.metadata is not None]
    if not known:
        return ours
    ours = replace(ours, stands=replace(ours.stands, passed=known[-1]))
    if ours.says.metadata is None:
        return ours
    return replace(ours, says=replace(ours.says, metadata=keep_assigned_values(known[-1], ours.says.metadata)))


def join_transactions(ours: Transaction, extra: Transaction) -> Transaction:
    """Ours together with what was done in addition, on files that ours had not touched."""
    assert not ours.touched_paths & extra.touched_paths, "a redo may only touch files that came in since"
    # A redo knows ours by the names under which it staged them.
    withdrawn = frozenset(ours.does.restaged.get(path, path) for path in extra.does.withdraws)
    does = replace(
        ours.does,
        marks={**ours.does.marks, **extra.does.marks},
        removes=ours.does.removes | extra.does.removes,
        sources={**ours.does.sources, **extra.does.sources},
        adds=pa.concat_tables([without_withdrawn(ours.does.adds, withdrawn), extra.does.adds]),
        change_files=pa.concat_tables([without_withdrawn(ours.does.change_files, withdrawn), extra.does.change_files]),
    )
    together = replace(ours, does=does, reads=_both(ours.reads, extra.reads))
    return together.with_counts(**extra.info.metrics).with_steps(extra.info.steps.steps)


def without_withdrawn(adds: pa.Table, withdrawn: frozenset[str]) -> pa.Table:
    if not withdrawn:
        return adds
    return adds.filter(pc.invert(pc.is_in(adds["path"], value_set=pa.array(sorted(withdrawn), pa.string()))))


def _both(ours: ReadSet | None, extra: ReadSet | None) -> ReadSet | None:
    """What ours read, and the rows that the redo matched besides."""
    if ours is None or extra is None:
        return ours
    return replace(ours, matched={**ours.matched, **extra.matched})


def repoint_sources(ours: Transaction, verdict: Verdict, handler: RebaseHandler) -> Transaction:
    """The winners' newest rows and vectors for the files that ours touches; marks of ours are joined to these where the
    vectors are written (`anabranch._transaction.commit_actions`).
    """
    assert isinstance(verdict.outcome, Clear | Redo)
    moved, gone = dict(ours.does.sources), set()
    for path in (ours.touched_paths | ours.does.recommits) & verdict.net.changed.keys():
        after = verdict.net.changed[path].after
        if after is None:
            assert path not in ours.touched_paths, "a touched file that is gone is a conflict"
            gone.add(path)
            continue
        vector = handler.vector(after)
        assert not ours.does.sources[path].vector - vector, "a shrunken vector is a conflict"
        moved[path] = Source(_with_row_count(after, ours.does.sources[path].row), vector)
    return replace(ours, does=replace(ours.does, sources=moved, recommits=ours.does.recommits - gone))


def _with_row_count(after: FileRow, before: FileRow) -> FileRow:
    """The winner's row; where it does not say how many rows the file holds, which never changes, ours does."""
    count = num_records(before.get("stats"))
    if count is None or num_records(after.get("stats")) is not None:
        return after
    return {**after, "stats": with_num_records(after.get("stats"), count)}


def still_reading(ours: Transaction, verdict: Verdict, handler: RebaseHandler) -> Transaction:
    """The files that ours has to watch from now on: those of blind winners too, once ours stands behind them, and no
    more those that a winner took away, which bring new rows if they ever come back.
    """
    if ours.reads is None:
        return ours
    blind = verdict.net.blind.files
    seen = frozenset(handler.could_match(blind)["path"].to_pylist()) if len(blind) else frozenset()
    gone = {path for path, change in verdict.net.changed.items() if change.after is None}
    return replace(ours, reads=replace(ours.reads, files=(ours.reads.files - gone) | seen))
