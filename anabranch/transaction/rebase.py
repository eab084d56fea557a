"""Carrying over: mine, moved from where it was read to where it can stand.

Knows net effects and positions. Transforms only; `conflicts` has judged before. Guarantee: each path has one present
state in ``sources``; a vector is only ever joined to one that holds all rows which mine knew as deleted; what is
already staged is never changed.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.protocol.actions import FileRow
from anabranch.protocol.identity import values_kept
from anabranch.protocol.stats import num_records, with_num_records
from anabranch.transaction.conflicts import Clear, Hands, Redo, Verdict
from anabranch.transaction.footprint import Reads, Source, Transaction
from anabranch.transaction.relocation import Loaders, overtaken


def carried_over(mine: Transaction, verdict: Verdict, hands: Hands, loaders: Loaders) -> Transaction:
    """Mine behind all winners of the verdict: sources re-pointed at their newest state, and rows of blind winners
    redone; a relocation with what they deleted.

    Raises:
        NothingLeft: mine only moves rows, and others have moved them all.
    """
    if not verdict.behind:
        return mine
    if mine.groups is not None:
        return overtaken(mine, verdict.net, verdict.behind, loaders)
    moved = _repointed(mine, verdict, hands)
    if isinstance(verdict.outcome, Redo):
        moved = joined(moved, hands.redo(verdict.outcome.files, verdict.outcome.rows))
    versions = tuple(winner.version for winner in verdict.behind)
    moved = _with_marks(_reading(moved, verdict, hands), verdict)
    return replace(moved, settled=versions[-1], carried=mine.carried + versions)


def _with_marks(mine: Transaction, verdict: Verdict) -> Transaction:
    """Mine, knowing the newest metadata; where it changes that, it keeps what others have reserved of identity columns
    meanwhile.
    """
    known = [winner.head.metadata for winner in verdict.behind if winner.head.metadata is not None]
    if not known:
        return mine
    mine = replace(mine, passed=known[-1])
    return mine if mine.metadata is None else replace(mine, metadata=values_kept(known[-1], mine.metadata))


def joined(mine: Transaction, extra: Transaction) -> Transaction:
    """Mine together with what was done in addition, on files that mine had not touched."""
    assert not mine.touched & extra.touched, "a redo may only touch files that came in since"
    together = replace(
        mine,
        marks={**mine.marks, **extra.marks},
        removes=mine.removes | extra.removes,
        sources={**mine.sources, **extra.sources},
        adds=pa.concat_tables([_kept(mine.adds, _now(mine, extra.withdraws)), extra.adds]),
        reads=_both(mine.reads, extra.reads),
    )
    return together.with_counts(**extra.metrics)


def _now(mine: Transaction, paths: frozenset[str]) -> frozenset[str]:
    """What these files of mine are called by now: a redo knows them by the names under which it staged them."""
    return frozenset(mine.restaged.get(path, path) for path in paths)


def _kept(adds: pa.Table, withdrawn: frozenset[str]) -> pa.Table:
    if not withdrawn:
        return adds
    return adds.filter(pc.invert(pc.is_in(adds["path"], value_set=pa.array(sorted(withdrawn), pa.string()))))


def _both(mine: Reads | None, extra: Reads | None) -> Reads | None:
    """What mine read, and the rows that the redo matched besides."""
    if mine is None or extra is None:
        return mine
    return replace(mine, matched={**mine.matched, **extra.matched})


def _repointed(mine: Transaction, verdict: Verdict, hands: Hands) -> Transaction:
    """The winners' newest rows and vectors for the files that mine touches."""
    assert isinstance(verdict.outcome, Clear | Redo)
    moved, gone = dict(mine.sources), set()
    for path in (mine.touched | mine.recommits) & verdict.net.changed.keys():
        after = verdict.net.changed[path].after
        if after is None:
            assert path not in mine.touched, "a touched file that is gone is a conflict"
            gone.add(path)
            continue
        vector = hands.vector(after)
        assert not mine.sources[path].vector - vector, "a shrunken vector is a conflict"
        moved[path] = Source(_counted(after, mine.sources[path].row), vector)
    return replace(mine, sources=moved, recommits=mine.recommits - gone)


def _counted(after: FileRow, before: FileRow) -> FileRow:
    """The winner's row; where it does not say how many rows the file holds, which never changes, mine does."""
    count = num_records(before.get("stats"))
    if count is None or num_records(after.get("stats")) is not None:
        return after
    return {**after, "stats": with_num_records(after.get("stats"), count)}


def _reading(mine: Transaction, verdict: Verdict, hands: Hands) -> Transaction:
    """The files that mine has to watch from now on: those of blind winners too, once mine stands behind them, and no
    more those that a winner took away, which bring new rows if they ever come back.
    """
    if mine.reads is None:
        return mine
    blind = verdict.net.blind.files
    seen = frozenset(hands.could_match(blind)["path"].to_pylist()) if len(blind) else frozenset()
    gone = {path for path, change in verdict.net.changed.items() if change.after is None}
    return replace(mine, reads=replace(mine.reads, files=(mine.reads.files - gone) | seen))
