"""Relocation: rows that were moved to other files, and everyone who had marked them.

Knows footprints, positions and the record of moves, never a row's values. A commit that only moves rows changes nothing
that a reader could see, so it stands in nobody's way: a change that meets one takes its own marks along to the new
addresses (`follow_relocation`), and a relocation that meets changes takes theirs (`overtaken`), or leaves those files
alone. Guarantee: each marked row has exactly one new address, or there is a conflict; a row that a winner deleted never
comes back by having been copied; errors mean conflict.

Source: beyond the documented matrix, which promises this of OPTIMIZE without ZORDER only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._protocol.actions import FILES, FileRow
from anabranch._protocol.features import row_tracking
from anabranch._protocol.layout import moves
from anabranch._protocol.layout.file_sets import Marks, union_of
from anabranch._protocol.layout.moves import Group, Misplaced, Origin
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.net_effect import Change, Net, growth
from anabranch._transaction.transaction import ReadSet, Source, Transaction, tags_of
from anabranch.errors import AnabranchError, ConcurrentDeleteReadException
from anabranch.errors.process_state import per_object

_KINDS = frozenset({"commitInfo", "add", "remove", "domainMetadata"})

LoadVector = Callable[[FileRow], BitMap64]
LoadOrigins = Callable[[str], pa.Table]


@dataclass(frozen=True)
class Loaders:
    """What lies in the store: the deleted positions of a file, and the table of a name (`moves.Output.origins`)."""

    vector: LoadVector
    origins: LoadOrigins


@dataclass(frozen=True)
class Relocation:
    """A winner that moved rows and did nothing else; ``left`` are the paths that it took away. (A source of its groups
    that is none of them had been emptied before.)
    """

    winner: Commit
    groups: tuple[Group, ...]
    left: frozenset[str]


def relocation_of(winner: Commit) -> Relocation | None:
    """A winner as a relocation, if moving rows is for certain all that it did and it says where they went."""
    if winner not in _known:
        _known[winner] = _relocation(winner)
    found: Relocation | None = _known[winner]
    return found


_known = per_object("moves of winners")
"""What was found of winners that are looked at again and again."""


def _relocation(winner: Commit) -> Relocation | None:
    text = tags_of(winner).get(moves.TAG)
    others = {domain.domain for domain in winner.head.domains} - {row_tracking.DOMAIN}
    if not isinstance(text, str) or others or winner.has_change_feed or not winner.head.kinds <= _KINDS:
        return None
    try:
        groups = moves.from_text(text)
    except (ValueError, RecursionError):
        return None
    left = frozenset(winner.removes["path"].to_pylist())
    return Relocation(winner, groups, left) if only_moves(winner, groups) else None


def only_moves(winner: Commit, groups: Sequence[Group]) -> bool:
    """Whether the record speaks of every file that came or went."""
    sources = [path for group in groups for path in group.paths]
    outputs = [each.path for group in groups for each in group.outputs]
    removed, added = winner.removes["path"].to_pylist(), winner.adds["path"].to_pylist()
    once = len(set(sources)) == len(sources) and len(set(outputs)) == len(outputs) and not set(sources) & set(outputs)
    silent = not any(pc.any(pc.fill_null(each["dataChange"], True)).as_py() for each in (winner.adds, winner.removes))
    apart = once and silent and bool(removed) and set(removed) <= set(sources) and set(added) <= set(outputs)
    return apart and _counts_agree(winner, groups)


def _counts_agree(winner: Commit, groups: Sequence[Group]) -> bool:
    """Whether the log itself says of no file another number of rows, and as many live rows came as went."""
    told = {each.path: each.records for group in groups for each in group.sources}
    told |= {each.path: each.records for group in groups for each in group.outputs}
    if _live_rows(winner.adds, told) != _live_rows(winner.removes, told):
        return False
    logged = [
        (path, num_records(stats))
        for actions in (winner.adds, winner.removes)
        for path, stats in zip(actions["path"].to_pylist(), actions["stats"].to_pylist(), strict=True)
    ]
    return all(records is None or told[path] == records for path, records in logged)


def _live_rows(files: pa.Table, records: Mapping[str, int]) -> int:
    vectors = (0 if each is None else each["cardinality"] or 0 for each in files["deletionVector"].to_pylist())
    return sum(records[path] for path in files["path"].to_pylist()) - sum(vectors)


# -- ours has marked rows, and a winner moved them ---------------------------------------------------------------------


def follow_relocation(ours: Transaction, relocation: Relocation, loaders: Loaders) -> Transaction | Conflict:
    """Ours behind a relocation: what it marks, removes and watches, at the new addresses."""
    if ours.does.means_files and ours.touched_paths & relocation.left:
        return _in_the_way(ours, relocation, "the rows of files that ours takes away were moved to others")
    try:
        for group in relocation.groups:
            ours = _through(ours, group, relocation, loaders)
    except (Misplaced, AnabranchError) as error:
        said = f"rows that ours had read were moved, and cannot be found again: {error}"
        return _in_the_way(ours, relocation, said)
    return replace(ours, stands=ours.stands.behind(relocation.winner.version))


def _through(ours: Transaction, group: Group, relocation: Relocation, loaders: Loaders) -> Transaction:
    gone, winner = group.paths & relocation.left, relocation.winner
    ours = replace(ours, does=replace(ours.does, recommits=ours.does.recommits - gone))
    if ours.reads is not None:
        ours = replace(ours, reads=_reads(ours.reads, gone, group, winner, loaders))
    touched = ours.touched_paths & gone
    if not touched:
        return ours
    rows = {each.path: _rows_to_remove(ours, each, loaders) for each in group.sources if each.path in touched}
    found = moves.locate_rows(group, rows, loaders.vector, loaders.origins)
    outputs = {path: _output(winner, path, loaders) for path in found}
    left = {path: source for path, source in ours.does.sources.items() if path not in touched}
    marks = {path: positions for path, positions in ours.does.marks.items() if path not in touched}
    does = replace(ours.does, sources={**left, **outputs}, marks=marks, removes=ours.does.removes - touched)
    return _taking(replace(ours, does=does), found)


def _rows_to_remove(ours: Transaction, origin: Origin, loaders: Loaders) -> BitMap64:
    """The rows of a file that ours takes away. (Who takes whole files away need not have read their vectors.)"""
    row = ours.does.sources[origin.path].row
    if num_records(row.get("stats")) not in (None, origin.records):
        raise Misplaced(f"{origin.path} holds another number of rows than the record of moves says")
    if origin.path in ours.does.marks:
        return ours.does.marks[origin.path]
    return _all_but(loaders.vector(row), origin.records)


def _output(winner: Commit, path: str, loaders: Loaders) -> Source:
    found = winner.adds.filter(pc.equal(winner.adds["path"], path)).select(FILES.names).to_pylist()
    if not found:
        raise Misplaced(f"{path} was left out, since every row in it had been deleted")
    return Source(found[0], loaders.vector(found[0]))


def _taking(ours: Transaction, found: Marks) -> Transaction:
    """Ours with these rows taken away: whole files where no other row is left, else by marks, if the table has them."""
    marks, removes = dict(ours.does.marks), set(ours.does.removes)
    for path, rows in found.items():
        source = ours.does.sources[path]
        records = num_records(source.row.get("stats"))
        if rows & source.vector or records is None or rows.max() >= records:
            raise Misplaced(f"a row in {path} was deleted already")
        if len(rows) + len(source.vector) == records:
            removes.add(path)
        elif ours.base is not None and ours.base.properties.vectors:
            marks[path] = rows
        else:
            raise Misplaced("without deletion vectors a part of a file cannot be taken away")
    return replace(ours, does=replace(ours.does, marks=marks, removes=frozenset(removes)))


def _reads(reads: ReadSet, gone: frozenset[str], group: Group, winner: Commit, loaders: Loaders) -> ReadSet:
    """What ours watches: the files that the rows lie in now, and where what it had matched is."""
    matched = {path: rows for path, rows in reads.matched.items() if path in gone}
    if matched:
        found = moves.locate_rows(group, matched, loaders.vector, loaders.origins)
        kept = {path: rows for path, rows in reads.matched.items() if path not in gone}
        reads = replace(reads, matched=union_of([kept, found]))
    if not reads.files & gone:
        return reads
    there = set(winner.adds["path"].to_pylist()) & {each.path for each in group.outputs}
    return replace(reads, files=(reads.files - gone) | there)


def _in_the_way(ours: Transaction, relocation: Relocation, said: str) -> Conflict:
    winner, path = relocation.winner, min(ours.touched_paths & relocation.left, default=None)
    file = None if path is None else ours.does.sources[path].row
    return Conflict(ConcurrentDeleteReadException, "WITHOUT_HINT", said, winner, file)


# -- ours has moved rows, and winners marked them ----------------------------------------------------------------------


class NothingLeft(Exception):
    """All that ours would move was moved, or is no longer there as it was: there is nothing to commit."""


def overtaken(ours: Transaction, net: Net, behind: Sequence[Commit], loaders: Loaders) -> Transaction:
    """Ours, which only moves rows, behind winners: what they deleted is deleted where ours has put it; a group of files
    that others have moved, or brought rows back to, is left as it is. Raises NothingLeft: of ours nothing remains.
    """
    assert ours.does.groups is not None, "only a relocation is overtaken"
    found = (_overtaken(ours, group, net, loaders) for group in ours.does.groups)
    kept = [each for each in found if each is not None and each.sources]
    if not kept:
        raise NothingLeft
    outputs = {output.path for each in kept for output in each.group.outputs}
    sources = {path: source for each in kept for path, source in each.sources.items()}
    before = {path: rows for path, rows in ours.does.buried.items() if path in outputs}
    adds = ours.does.adds
    does = replace(
        ours.does,
        groups=tuple(each.group for each in kept),
        sources=sources,
        removes=frozenset(sources),
        adds=adds.filter(pc.is_in(adds["path"], value_set=pa.array(sorted(outputs), pa.string()))),
        buried=union_of([before, *(each.buried for each in kept)]),
    )
    return replace(ours, does=does, stands=ours.stands.behind(*(winner.version for winner in behind)))


@dataclass(frozen=True)
class _Overtaken:
    """A group, those of its sources that are still there in their newest state, and which rows of its outputs were
    deleted meanwhile.
    """

    group: Group
    sources: Mapping[str, Source]
    buried: Marks


def _overtaken(ours: Transaction, group: Group, net: Net, loaders: Loaders) -> _Overtaken | None:
    """A group behind winners; None where it is left alone, since others have moved its files too, or brought rows back,
    or deleted some where there are no vectors to say so.
    """
    known = {path: ours.does.sources[path] for path in group.paths & ours.does.sources.keys()}
    try:
        states = {p: _state(known[p], net.changed[p], loaders) for p in known.keys() & net.changed.keys()}
        lost = {path: rows for path, (_, rows) in states.items() if rows}
        if lost and not (ours.base is not None and ours.base.properties.vectors):
            return None
        buried = moves.locate_rows(group, lost, loaders.vector, loaders.origins) if lost else {}
    except (Misplaced, AnabranchError):
        return None
    newest = {**known, **{path: source for path, (source, _) in states.items()}}
    return _Overtaken(group, {path: source for path, source in newest.items() if source is not None}, buried)


def _state(before: Source, change: Change, loaders: Loaders) -> tuple[Source | None, BitMap64]:
    """The newest state of a source, None where it is gone, and its rows that were deleted since. Raises Misplaced: they
    are not where ours has put them, or not all of those that are there now are.
    """
    if change.after is None:
        if _was_moved(change):
            raise Misplaced(f"{change.before['path']} was moved by another")
        return None, _all_but(before.vector, _records_of(before))
    after = loaders.vector(change.after)
    grown, shrunk = growth(before.vector, after)
    if shrunk:
        raise Misplaced(f"rows of {change.before['path']} were restored")
    return Source(change.after, after), grown


def _was_moved(change: Change) -> bool:
    """Whether the winner that took a file away says that no data changed by it."""
    removes = change.winners[-1].removes
    removed = removes.filter(pc.equal(removes["path"], change.before["path"]))
    return not pc.all(pc.fill_null(removed["dataChange"], True)).as_py()


def _records_of(source: Source) -> int:
    records = num_records(source.row.get("stats"))
    if records is None:
        raise Misplaced(f"it is not known how many rows {source.row['path']} holds")
    return records


def _all_but(dead: BitMap64, records: int) -> BitMap64:
    """All rows of a file that are not deleted."""
    rows = BitMap64()
    rows.add_range(0, records)  # as one run, however many they are
    return rows - dead
