"""Rebase: ours, moved from where it was read to where it can stand.

Knows commits, net effects and positions, and the log only to read later commits. `conflicts` judges; this module
transforms. Guarantee: each path has one present state in ``sources``; a vector is only joined to one that holds all
rows which ours knew as deleted; staged files are never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._log.log import Log
from anabranch._log.positions import LogPosition
from anabranch._log.row_lineage import RowIds, origins_of, row_ids_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.features import row_tracking
from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.layout.file_sets import count_of
from anabranch._protocol.properties import Properties
from anabranch._protocol.rules.identity import keep_assigned_values
from anabranch._protocol.stats.statistics import num_records, with_num_records
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.conflicts import Clear, LetGo, Redo, Verdict, judge, uses_row_rules
from anabranch._transaction.fence import Fence, StagedFileMissing
from anabranch._transaction.foreign_moves import may_have_moved, prove_moves
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import FileGuard, RebaseHandler
from anabranch._transaction.rebase_limits import BoundedHandler, Bounds, Exceeded
from anabranch._transaction.relocation import (
    Loaders,
    Relocation,
    follow_relocation,
    rebase_relocation,
    relocation_of,
)
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import ReadSet, Source, Transaction
from anabranch.errors import (
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    ExecutionFailed,
    NeedsSpark,
    ProtocolChangedException,
)

_CACHED_ORIGINS = 8


@dataclass(frozen=True)
class Placed:
    """Ours at its place in the order: behind the winners that it must follow, before all later ones.

    Invariant: both transactions change and read the same rows and stand behind the same version. They are one object,
    unless a winner that ours precedes has moved such rows: it changed nothing, but their addresses.

    Attributes:
        logical: names rows by their addresses at its place; the next window is judged against it.
        physical: names rows by their addresses in the newest version; it is put, or else the next window makes another
            from ``logical``.
    """

    logical: Transaction
    physical: Transaction

    @classmethod
    def at(cls, ours: Transaction) -> Placed:
        """Ours where no winner that it precedes has moved its rows."""
        return cls(ours, ours)

    def before(self, moved: Transaction) -> Placed:
        """Ours still at its place, before a winner that moved its rows; ``moved`` has followed that winner."""
        stands = replace(moved.position, rebased_to=self.logical.position.rebased_to)
        return replace(self, physical=replace(moved, position=stands))


class Rebase:
    """Ours on its way behind its winners, window after window, from the staged result of a command.

    Attributes:
        placed: ours, as the last window has placed it.
        winners: all commits since its base that were read, oldest first.
    """

    def __init__(self, ours: Transaction, log: Log, handler: RebaseHandler, runtime: Runtime) -> None:
        self.placed = Placed.at(ours)
        self.winners: list[Commit] = []
        self._log, self._runtime = log, runtime
        self._handler = BoundedHandler(handler, lambda: _bounds(ours), runtime.seconds)
        self._guard = handler if isinstance(handler, FileGuard) else None
        self._fence = Fence(log.store, runtime)
        self._cached_origins = lru_cache(_CACHED_ORIGINS)(lambda path: origins_of(log.store, path))
        self._proofs: dict[int, Relocation | None] = {}
        self._loaders = Loaders(self._handler.vector, self._origins)

    @property
    def next_version(self) -> int:
        """The version behind all winners."""
        return (self.winners[-1].version if self.winners else self.placed.logical.position.rebased_to) + 1

    def keep_identity_values(self) -> None:
        """Keep, in new metadata of ours, the identity values that the table has assigned. Raises InvalidProperty: the
        table's record of them is damaged.
        """
        ours = self.placed.logical
        if ours.base is not None and ours.declarations.metadata is not None:
            metadata = keep_assigned_values(ours.base.metadata, ours.declarations.metadata)
            self.placed = Placed.at(replace(ours, declarations=replace(ours.declarations, metadata=metadata)))

    def look(self) -> Sequence[Commit]:
        """The window: all winners since the version that ours stands behind, oldest first. Raises
        ProtocolChangedException: another table stands at this path now.
        """
        base = self.placed.logical.base
        if self.winners:
            position = LogPosition.commit(self.winners[-1], base.metadata.id if base else None)
        else:
            position = LogPosition.snapshot(base) if base else LogPosition.nothing()
        later = self._log.commits_after(position, base.partition_keys if base else ())
        if later is None:
            reason = "another table stands at this path now"
            raise self.error(Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", reason))
        self.winners.extend(later)
        return self.window

    @property
    def window(self) -> Sequence[Commit]:
        """The winners that ours does not stand behind yet, as the last look has read them."""
        return self.placed.logical.position.rest_of(self.winners)

    def over(self, window: Sequence[Commit]) -> None:
        """Move ours behind the winners of a window. Raises DeltaConcurrentModificationException: they conflict."""
        try:
            self._move_over(window)
        except Exceeded as bound:
            reason = f"what finding a place behind the winners may cost is used up ({bound})"
            limits = {"bound": bound.bound, "allowed": bound.allowed, "needed": bound.needed}
            error_class = ConcurrentWriteException
            raise self.error(
                Conflict(error_class, "ALLOTTED_TIME_EXCEEDED", reason, window[-1], more=limits)
            ) from bound

    def check_files(self) -> None:
        """Check that the files of ours still exist: a command that names files which others may delete checks them
        itself, for any other the fence does. Raises AnabranchError: ours may not be put now.
        """
        guard, fence = self._guard, self._fence
        conflict = fence.before_put(self.placed.physical) if guard is None else guard.before_put(self.winners)
        if conflict is not None:
            raise self.error(conflict)

    def discard(self) -> None:
        """Remove the files that rebase and command staged. Raises AnabranchError: some could not be removed."""
        self._fence.discard()
        self._handler.discard()

    def error(self, conflict: Conflict) -> DeltaConcurrentModificationException:
        """The exception for a conflict of ours."""
        return conflict.error(self.placed.logical, self._handler, self._runtime)

    def allotted_time_exceeded(self) -> DeltaConcurrentModificationException:
        """The exception for too many winners in too short a time."""
        reason = "the attempts or the time allowed for this commit are used up"
        last = self.winners[-1] if self.winners else None
        return self.error(Conflict(ConcurrentWriteException, "ALLOTTED_TIME_EXCEEDED", reason, last))

    # -- over one window: each transform with its time counted and its conflict raised

    def _move_over(self, window: Sequence[Commit]) -> None:
        """Judge ours and carry it over, segment by segment, each up to a winner that moved rows.

        If ours must stand behind that winner, both states follow it, and ours is judged again, against the rest. Else
        only the physical state follows.
        """
        ours, verdict = self._judge(self.placed.logical, window)
        reach("checked")
        placed, moves = self._carry_over(ours, verdict), list(verdict.moves)
        while moves:
            relocation = moves.pop(0)
            if relocation.winner.version <= verdict.must_follow:
                ours = self._follow_relocation(placed.logical, relocation)
                ours, verdict = self._judge(ours, ours.position.rest_of(window))
                placed, moves = self._carry_over(ours, verdict), list(verdict.moves)
            elif placed.logical.refers_to_rows:
                placed = placed.before(self._follow_relocation(placed.physical, relocation))
        self.placed = placed

    def _judge(self, ours: Transaction, window: Sequence[Commit]) -> tuple[Transaction, Verdict]:
        """Ours, without rows that it has to let go, and the verdict on it."""
        verdict = self._judge_once(ours, window)
        if not isinstance(verdict.outcome, LetGo):
            return ours, verdict
        less = self._handler.let_go(ours, verdict.outcome.lost)
        if less is None:
            return ours, replace(verdict, outcome=verdict.outcome.conflict)
        return less, self._judge_once(less, window)

    def _judge_once(self, ours: Transaction, window: Sequence[Commit]) -> Verdict:
        try:
            with self._handler.count_time():
                return judge(ours, window, self._handler, self._find_foreign_moves(ours, window))
        except (ExecutionFailed, NeedsSpark) as error:
            # the condition cannot be evaluated on a winner's rows, so these may matter
            reason = f"the winners' rows could not be judged: {error.message}"
            conflict = Conflict(ConcurrentWriteException, "PREDICATES_NEED_REWRITE", reason, window[-1])
            raise self.error(conflict) from error

    def _find_foreign_moves(self, ours: Transaction, window: Sequence[Commit]) -> Sequence[Relocation]:
        """The winners that moved rows of ours and do not record it, as far as row ids prove it."""
        base = ours.base
        hidden = None if base is None else row_tracking.tracking_columns(base.protocol, base.metadata)
        if base is None or hidden is None or ours.changes.groups is not None or not base.properties.vectors:
            return ()
        paths = _addressed_paths(ours)
        candidates = (winner for winner in window if may_have_moved(ours, winner, paths))
        proofs = (self._prove(winner, hidden) for winner in candidates if relocation_of(winner) is None)
        return [relocation for relocation in proofs if relocation is not None]

    def _prove(self, winner: Commit, hidden: HiddenColumns) -> Relocation | None:
        """A winner as a relocation by its row ids; remembered, since a window may be judged repeatedly."""
        if winner.version not in self._proofs:

            def read(file: FileRow, most_rows: int) -> RowIds:
                self._handler.check_time()
                return row_ids_of(self._log.store, file, hidden, most_rows)

            self._proofs[winner.version] = prove_moves(winner, read, self._handler.vector)
        return self._proofs[winner.version]

    def _carry_over(self, ours: Transaction, verdict: Verdict) -> Placed:
        if isinstance(verdict.outcome, Conflict):
            raise self.error(verdict.outcome)
        assert not isinstance(verdict.outcome, LetGo), "ours is judged again without its lost rows"
        ours = self._restage_threatened(ours)
        # a redo counts its time by itself, a relocation does not
        with nullcontext() if ours.changes.groups is None else self._handler.count_time():
            return Placed.at(carry_over(ours, verdict, self._handler, self._loaders))

    def _restage_threatened(self, ours: Transaction) -> Transaction:
        """Ours without staged files that a VACUUM may still remove; no VACUUM has listed files that are staged later.

        A command that names older files checks them itself (`check_files`): only its vectors are put again.
        """
        if self._guard is not None:
            return replace(ours)
        try:
            return self._fence.restage_threatened(ours, self.winners)
        except StagedFileMissing as gone:
            raise self.error(gone.conflict) from None

    def _follow_relocation(self, ours: Transaction, relocation: Relocation) -> Transaction:
        with self._handler.count_time():
            outcome = follow_relocation(ours, relocation, self._loaders)
        if isinstance(outcome, Conflict):
            raise self.error(outcome)
        return outcome

    def _origins(self, path: str) -> pa.Table:
        """The origins of moved rows, if there is time to read them; cached for the next look."""
        self._handler.check_time()
        return self._cached_origins(path)


def _addressed_paths(ours: Transaction) -> frozenset[str]:
    """The files in which ours refers to rows; where it is judged by files, all that it read."""
    if ours.reads is None:
        return ours.touched_paths
    read = frozenset(ours.reads.matched) if uses_row_rules(ours) else ours.reads.files
    return ours.touched_paths | read


def _bounds(ours: Transaction) -> Bounds:
    properties = ours.base.properties if ours.base is not None else Properties({})
    return Bounds(properties.resolution_bytes, properties.resolution_seconds)


# -- the transforms ----------------------------------------------------------------------------------------------------


def carry_over(ours: Transaction, verdict: Verdict, handler: RebaseHandler, loaders: Loaders) -> Transaction:
    """Ours behind all winners of the verdict: sources point to their newest state, and the rows of blind winners are
    redone; a relocation also applies the winners' deletions. Raises NothingLeft: ours only moves rows, and others have
    moved them all.
    """
    if not verdict.behind:
        return ours
    if ours.changes.groups is not None:
        return rebase_relocation(ours, verdict.net, verdict.behind, loaders)
    rebased = repoint_sources(ours, verdict, handler)
    if isinstance(verdict.outcome, Redo):
        extra = handler.redo(verdict.outcome.files, verdict.outcome.rows)
        rebased = join_transactions(rebased, extra).with_metrics(numRedoneRows=count_of(verdict.outcome.rows))
    versions = tuple(winner.version for winner in verdict.behind)
    rebased = _pass_metadata(update_read_set(rebased, verdict, handler), verdict)
    return replace(rebased, position=rebased.position.behind(*versions))


def _pass_metadata(ours: Transaction, verdict: Verdict) -> Transaction:
    """Ours with the newest metadata; if it changes the metadata, it keeps others' reserved identity values."""
    metadata = [winner.head.metadata for winner in verdict.behind if winner.head.metadata is not None]
    if not metadata:
        return ours
    ours = replace(ours, position=replace(ours.position, passed=metadata[-1]))
    if ours.declarations.metadata is None:
        return ours
    return replace(
        ours,
        declarations=replace(
            ours.declarations, metadata=keep_assigned_values(metadata[-1], ours.declarations.metadata)
        ),
    )


def join_transactions(ours: Transaction, extra: Transaction) -> Transaction:
    """Ours joined with a redo on files that ours had not touched."""
    assert not ours.touched_paths & extra.touched_paths, "a redo may only touch files that were added since"
    # A redo refers to files of ours by the names under which they were staged.
    withdrawn = frozenset(ours.changes.restaged.get(path, path) for path in extra.changes.withdraws)
    changes = replace(
        ours.changes,
        marks={**ours.changes.marks, **extra.changes.marks},
        removes=ours.changes.removes | extra.changes.removes,
        sources={**ours.changes.sources, **extra.changes.sources},
        adds=pa.concat_tables([without_withdrawn(ours.changes.adds, withdrawn), extra.changes.adds]),
        change_files=pa.concat_tables(
            [without_withdrawn(ours.changes.change_files, withdrawn), extra.changes.change_files]
        ),
    )
    together = replace(ours, changes=changes, reads=_join_reads(ours.reads, extra.reads))
    return together.with_metrics(**extra.info.metrics).with_steps(extra.info.steps.steps)


def without_withdrawn(adds: pa.Table, withdrawn: frozenset[str]) -> pa.Table:
    if not withdrawn:
        return adds
    return adds.filter(pc.invert(pc.is_in(adds["path"], value_set=pa.array(sorted(withdrawn), pa.string()))))


def _join_reads(ours: ReadSet | None, extra: ReadSet | None) -> ReadSet | None:
    """The reads of ours, with the rows that the redo matched."""
    if ours is None or extra is None:
        return ours
    return replace(ours, matched={**ours.matched, **extra.matched})


def repoint_sources(ours: Transaction, verdict: Verdict, handler: RebaseHandler) -> Transaction:
    """Point sources to the winners' newest rows and vectors of the files that ours touches; marks of ours are joined to
    these when the vectors are written (`anabranch._transaction.commit_actions`).
    """
    assert isinstance(verdict.outcome, Clear | Redo)
    sources, removed = dict(ours.changes.sources), set()
    for path in (ours.touched_paths | ours.changes.recommits) & verdict.net.changed.keys():
        after = verdict.net.changed[path].after
        if after is None:
            assert path not in ours.touched_paths, "a touched file that is gone is a conflict"
            removed.add(path)
            continue
        vector = handler.vector(after)
        assert not ours.changes.sources[path].vector - vector, "a shrunken vector is a conflict"
        sources[path] = Source(_with_row_count(after, ours.changes.sources[path].row), vector)
    return replace(ours, changes=replace(ours.changes, sources=sources, recommits=ours.changes.recommits - removed))


def _with_row_count(after: FileRow, before: FileRow) -> FileRow:
    """The winner's row; where it lacks the file's number of rows, which never changes, with ours."""
    count = num_records(before.get("stats"))
    if count is None or num_records(after.get("stats")) is not None:
        return after
    return {**after, "stats": with_num_records(after.get("stats"), count)}


def update_read_set(ours: Transaction, verdict: Verdict, handler: RebaseHandler) -> Transaction:
    """Update the files that ours reads: add those of blind winners that ours now stands behind, and drop those that a
    winner removed, which bring new rows if they ever come back.
    """
    if ours.reads is None:
        return ours
    blind = verdict.net.blind.files
    matching = frozenset(handler.could_match(blind)["path"].to_pylist()) if len(blind) else frozenset()
    removed = {path for path, change in verdict.net.changed.items() if change.after is None}
    return replace(ours, reads=replace(ours.reads, files=(ours.reads.files - removed) | matching))
