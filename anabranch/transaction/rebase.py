"""Carrying over: ours, moved from where it was read to where it can stand.

Knows net effects and positions. Transforms only; `conflicts` has judged before. Guarantee: each path has one present
state in ``sources``; a vector is only ever joined to one that holds all rows which ours knew as deleted; what is
already staged is never changed.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.protocol.actions import FileRow
from anabranch.protocol.rules.identity import values_kept
from anabranch.protocol.stats.statistics import num_records, with_num_records
from anabranch.transaction.conflicts import Clear, RebaseHandler, Redo, Verdict
from anabranch.transaction.relocation import Loaders, overtaken
from anabranch.transaction.transaction import ReadSet, Source, Transaction


def carried_over(ours: Transaction, verdict: Verdict, handler: RebaseHandler, loaders: Loaders) -> Transaction:
    """Ours behind all winners of the verdict: sources re-pointed at their newest state, and rows of blind winners
    redone; a relocation with what they deleted.

    Raises:
        NothingLeft: ours only moves rows, and others have moved them all.
    """
    if not verdict.behind:
        return ours
    if ours.groups is not None:
        return overtaken(ours, verdict.net, verdict.behind, loaders)
    moved = _repointed(ours, verdict, handler)
    if isinstance(verdict.outcome, Redo):
        moved = joined(moved, handler.redo(verdict.outcome.files, verdict.outcome.rows))
    versions = tuple(winner.version for winner in verdict.behind)
    moved = _with_marks(_reading(moved, verdict, handler), verdict)
    return replace(moved, rebased_to=versions[-1], rebased_over=ours.rebased_over + versions)


def _with_marks(ours: Transaction, verdict: Verdict) -> Transaction:
    """Mine, knowing the newest metadata; where it changes that, it keeps what others have reserved of identity columns
    meanwhile.
    """
    known = [winner.head.metadata for winner in verdict.behind if winner.head.metadata is not None]
    if not known:
        return ours
    ours = replace(ours, passed=known[-1])
    return ours if ours.metadata is None else replace(ours, metadata=values_kept(known[-1], ours.metadata))


def joined(ours: Transaction, extra: Transaction) -> Transaction:
    """Ours together with what was done in addition, on files that ours had not touched."""
    assert not ours.touched & extra.touched, "a redo may only touch files that came in since"
    together = replace(
        ours,
        marks={**ours.marks, **extra.marks},
        removes=ours.removes | extra.removes,
        sources={**ours.sources, **extra.sources},
        adds=pa.concat_tables([_kept(ours.adds, _now(ours, extra.withdraws)), extra.adds]),
        reads=_both(ours.reads, extra.reads),
    )
    return together.with_counts(**extra.metrics)


def _now(ours: Transaction, paths: frozenset[str]) -> frozenset[str]:
    """What these files of ours are called by now: a redo knows them by the names under which it staged them."""
    return frozenset(ours.restaged.get(path, path) for path in paths)


def _kept(adds: pa.Table, withdrawn: frozenset[str]) -> pa.Table:
    if not withdrawn:
        return adds
    return adds.filter(pc.invert(pc.is_in(adds["path"], value_set=pa.array(sorted(withdrawn), pa.string()))))


def _both(ours: ReadSet | None, extra: ReadSet | None) -> ReadSet | None:
    """What ours read, and the rows that the redo matched besides."""
    if ours is None or extra is None:
        return ours
    return replace(ours, matched={**ours.matched, **extra.matched})


def _repointed(ours: Transaction, verdict: Verdict, handler: RebaseHandler) -> Transaction:
    """The winners' newest rows and vectors for the files that ours touches."""
    assert isinstance(verdict.outcome, Clear | Redo)
    moved, gone = dict(ours.sources), set()
    for path in (ours.touched | ours.recommits) & verdict.net.changed.keys():
        after = verdict.net.changed[path].after
        if after is None:
            assert path not in ours.touched, "a touched file that is gone is a conflict"
            gone.add(path)
            continue
        vector = handler.vector(after)
        assert not ours.sources[path].vector - vector, "a shrunken vector is a conflict"
        moved[path] = Source(_counted(after, ours.sources[path].row), vector)
    return replace(ours, sources=moved, recommits=ours.recommits - gone)


def _counted(after: FileRow, before: FileRow) -> FileRow:
    """The winner's row; where it does not say how many rows the file holds, which never changes, ours does."""
    count = num_records(before.get("stats"))
    if count is None or num_records(after.get("stats")) is not None:
        return after
    return {**after, "stats": with_num_records(after.get("stats"), count)}


def _reading(ours: Transaction, verdict: Verdict, handler: RebaseHandler) -> Transaction:
    """The files that ours has to watch from now on: those of blind winners too, once ours stands behind them, and no
    more those that a winner took away, which bring new rows if they ever come back.
    """
    if ours.reads is None:
        return ours
    blind = verdict.net.blind.files
    seen = frozenset(handler.could_match(blind)["path"].to_pylist()) if len(blind) else frozenset()
    gone = {path for path, change in verdict.net.changed.items() if change.after is None}
    return replace(ours, reads=replace(ours.reads, files=(ours.reads.files - gone) | seen))
