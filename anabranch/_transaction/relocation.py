"""Relocation: rows that were moved to other files, and transactions that had marked them.

Knows footprints, positions and the record of moves, never a row's values. A commit that only moves rows changes nothing
that a reader could see, so it conflicts with nothing: a change that meets one moves its own marks to the new addresses
(`follow_relocation`), and a relocation that meets changes applies their marks to its outputs (`rebase_relocation`), or
leaves those files alone. Guarantee: each marked row has exactly one new address, or there is a conflict; a row that a
winner deleted never comes back by having been copied; errors mean conflict.

Source: beyond the documented matrix, which promises this of OPTIMIZE without ZORDER only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._protocol.actions import FILES, FileRow
from anabranch._protocol.features import row_tracking
from anabranch._protocol.layout import moves
from anabranch._protocol.layout.deletion_vectors import vector_id
from anabranch._protocol.layout.file_sets import Marks, union_of
from anabranch._protocol.layout.moves import Group, Origin, RowsNotLocated
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.net_effect import Change, NetEffect, growth
from anabranch._transaction.transaction import ReadSet, Source, Transaction, tags_of
from anabranch.errors import AnabranchError, ConcurrentDeleteReadException
from anabranch.errors.process_state import per_object

_KINDS = frozenset({"commitInfo", "add", "remove", "domainMetadata"})

LoadVector = Callable[[FileRow], BitMap64]
LoadOrigins = Callable[[str], pa.Table]


@dataclass(frozen=True)
class Loaders:
    """Load from the store: the deleted positions of a file, and a table of origins by name (`moves.Output.origins`)."""

    vector: LoadVector
    origins: LoadOrigins


@dataclass(frozen=True)
class Relocation:
    """A winner that moved rows and did nothing else; ``left`` are the paths that it removed. (A source of its groups
    that is not among them was already empty.) ``origins`` are those that no file of the winner's records, by their name
    in an output.
    """

    winner: Commit
    groups: tuple[Group, ...]
    left: frozenset[str]
    origins: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def is_recorded(self) -> bool:
        """Whether the winner itself records where the rows went."""
        return not self.origins

    def loaders(self, loaders: Loaders) -> Loaders:
        """The loaders, which find its own origins too."""
        return loaders if self.is_recorded else replace(loaders, origins=self.origins.__getitem__)


def relocation_of(winner: Commit) -> Relocation | None:
    """A winner as a relocation, if it provably did nothing but move rows and records where they went."""
    if winner not in _known:
        _known[winner] = _relocation(winner)
    relocation: Relocation | None = _known[winner]
    return relocation


def relocations_in(window: Sequence[Commit]) -> tuple[Relocation, ...]:
    """The winners that only moved rows, as relocations, in their order."""
    return tuple(relocation for winner in window if (relocation := relocation_of(winner)) is not None)


_known = per_object("moves of winners")
"""The relocations of winners, which are needed repeatedly."""


def _relocation(winner: Commit) -> Relocation | None:
    text = tags_of(winner).get(moves.TAG)
    if not isinstance(text, str) or not touches_only_files(winner):
        return None
    try:
        groups = moves.from_text(text)
    except (ValueError, RecursionError):
        return None
    removed = frozenset(winner.removes["path"].to_pylist())
    return Relocation(winner, groups, removed) if only_moves(winner, groups) else None


def touches_only_files(winner: Commit) -> bool:
    """Whether a winner adds and removes files and changes nothing else of the table but the mark of row ids."""
    other_domains = {domain.domain for domain in winner.head.domains} - {row_tracking.DOMAIN}
    return not other_domains and not winner.has_change_feed and winner.head.kinds <= _KINDS


def states_no_change(winner: Commit) -> bool:
    """Whether each file action of a winner states that it changes no data."""
    return not any(pc.any(pc.fill_null(files["dataChange"], True)).as_py() for files in (winner.adds, winner.removes))


def only_moves(winner: Commit, groups: Sequence[Group]) -> bool:
    """Whether the record covers every file that was added or removed."""
    sources = [path for group in groups for path in group.paths]
    outputs = [output.path for group in groups for output in group.outputs]
    removed, added = winner.removes["path"].to_pylist(), winner.adds["path"].to_pylist()
    are_unique = (
        len(set(sources)) == len(sources) and len(set(outputs)) == len(outputs) and not set(sources) & set(outputs)
    )
    is_recorded = (
        are_unique
        and states_no_change(winner)
        and bool(removed)
        and set(removed) <= set(sources)
        and set(added) <= set(outputs)
    )
    return is_recorded and _counts_agree(winner, groups)


def _counts_agree(winner: Commit, groups: Sequence[Group]) -> bool:
    """Whether the log states no other number of rows for a file, and as many live rows were added as removed."""
    counts = {source.path: source.records for group in groups for source in group.sources}
    counts |= {output.path: output.records for group in groups for output in group.outputs}
    if _live_rows(winner.adds, counts) != _live_rows(winner.removes, counts):
        return False
    logged = [
        (path, num_records(stats))
        for actions in (winner.adds, winner.removes)
        for path, stats in zip(actions["path"].to_pylist(), actions["stats"].to_pylist(), strict=True)
    ]
    return all(records is None or counts[path] == records for path, records in logged)


def _live_rows(files: pa.Table, records: Mapping[str, int]) -> int:
    vectors = (0 if vector is None else vector["cardinality"] or 0 for vector in files["deletionVector"].to_pylist())
    return sum(records[path] for path in files["path"].to_pylist()) - sum(vectors)


# -- ours has marked rows, and a winner moved them ---------------------------------------------------------------------


def follow_relocation(ours: Transaction, relocation: Relocation, loaders: Loaders) -> Transaction | Conflict:
    """Ours behind a relocation, with the rows that it marks, removes and reads at their new addresses."""
    if ours.changes.means_files and ours.touched_paths & relocation.left:
        return _conflict(ours, relocation, "rows of files that ours removes were moved to other files")
    loaders = relocation.loaders(loaders)
    try:
        for group in relocation.groups:
            ours = _follow_group(ours, group, relocation, loaders)
    except (RowsNotLocated, AnabranchError) as error:
        reason = f"rows that ours had read were moved, and cannot be found again: {error}"
        return _conflict(ours, relocation, reason)
    return replace(ours, position=ours.position.behind(relocation.winner.version))


def _follow_group(ours: Transaction, group: Group, relocation: Relocation, loaders: Loaders) -> Transaction:
    removed, winner = group.paths & relocation.left, relocation.winner
    ours = replace(ours, changes=replace(ours.changes, recommits=ours.changes.recommits - removed))
    if ours.reads is not None:
        ours = replace(ours, reads=_move_reads(ours.reads, removed, group, winner, loaders))
    touched = ours.touched_paths & removed
    if not touched:
        return ours
    if not relocation.is_recorded:
        _check_removed(ours, group, touched)
    rows = {origin.path: _rows_to_remove(ours, origin, loaders) for origin in group.sources if origin.path in touched}
    located = moves.locate_rows(group, rows, loaders.vector, loaders.origins)
    outputs = {path: _load_output(winner, path, loaders) for path in located}
    sources = {path: source for path, source in ours.changes.sources.items() if path not in touched}
    marks = {path: positions for path, positions in ours.changes.marks.items() if path not in touched}
    changes = replace(ours.changes, sources={**sources, **outputs}, marks=marks, removes=ours.changes.removes - touched)
    return _delete_rows(replace(ours, changes=changes), located)


def _check_removed(ours: Transaction, group: Group, touched: frozenset[str]) -> None:
    """Raises RowsNotLocated unless the winner removed these files as they were: a ``remove`` with another vector leaves
    the file in the table (PROTOCOL.md, "Action Reconciliation").
    """
    for origin in group.sources:
        if origin.path in touched and vector_id(ours.changes.sources[origin.path].row) != vector_id(origin.row):
            raise RowsNotLocated(f"{origin.path} was removed with another deletion vector than it had")


def _rows_to_remove(ours: Transaction, origin: Origin, loaders: Loaders) -> BitMap64:
    """The rows of a file that ours deletes. (Who removes whole files may not have read their vectors.)"""
    row = ours.changes.sources[origin.path].row
    if num_records(row.get("stats")) not in (None, origin.records):
        raise RowsNotLocated(f"{origin.path} holds another number of rows than the record of moves states")
    if origin.path in ours.changes.marks:
        return ours.changes.marks[origin.path]
    return _complement(loaders.vector(row), origin.records)


def _load_output(winner: Commit, path: str, loaders: Loaders) -> Source:
    rows = winner.adds.filter(pc.equal(winner.adds["path"], path)).select(FILES.names).to_pylist()
    if not rows:
        raise RowsNotLocated(f"{path} was left out, since every row in it had been deleted")
    return Source(rows[0], loaders.vector(rows[0]))


def _delete_rows(ours: Transaction, marked: Marks) -> Transaction:
    """Ours with these rows deleted: by removing a file where no other row is left, else by marks, if the table has
    deletion vectors.
    """
    marks, removes = dict(ours.changes.marks), set(ours.changes.removes)
    for path, rows in marked.items():
        source = ours.changes.sources[path]
        records = num_records(source.row.get("stats"))
        if rows & source.vector or records is None or rows.max() >= records:
            raise RowsNotLocated(f"a row in {path} was deleted already")
        if len(rows) + len(source.vector) == records:
            removes.add(path)
        elif ours.base is not None and ours.base.properties.vectors:
            marks[path] = rows
        else:
            raise RowsNotLocated("rows of a file cannot be deleted without deletion vectors")
    return replace(ours, changes=replace(ours.changes, marks=marks, removes=frozenset(removes)))


def _move_reads(reads: ReadSet, removed: frozenset[str], group: Group, winner: Commit, loaders: Loaders) -> ReadSet:
    """The read set after a move: the files that now hold the rows, and the new addresses of the matched rows."""
    matched = {path: rows for path, rows in reads.matched.items() if path in removed}
    if matched:
        located = moves.locate_rows(group, matched, loaders.vector, loaders.origins)
        unmoved = {path: rows for path, rows in reads.matched.items() if path not in removed}
        reads = replace(reads, matched=union_of([unmoved, located]))
    if not reads.files & removed:
        return reads
    added = set(winner.adds["path"].to_pylist()) & {output.path for output in group.outputs}
    return replace(reads, files=(reads.files - removed) | added)


def _conflict(ours: Transaction, relocation: Relocation, reason: str) -> Conflict:
    winner, path = relocation.winner, min(ours.touched_paths & relocation.left, default=None)
    file = None if path is None else ours.changes.sources[path].row
    return Conflict(ConcurrentDeleteReadException, "WITHOUT_HINT", reason, winner, file)


# -- ours has moved rows, and winners marked them ----------------------------------------------------------------------


class NothingLeft(Exception):
    """All that ours would move was moved or changed by others: there is nothing to commit."""


def rebase_relocation(ours: Transaction, net: NetEffect, behind: Sequence[Commit], loaders: Loaders) -> Transaction:
    """Ours, which only moves rows, behind winners: rows that they deleted are deleted in its outputs; a group whose
    files others moved, or restored rows in, is left as it is. Raises NothingLeft: of ours nothing remains.
    """
    assert ours.changes.groups is not None, "only a relocation is overtaken"
    rebased = (_rebase_group(ours, group, net, loaders) for group in ours.changes.groups)
    remaining = [part for part in rebased if part is not None and part.sources]
    if not remaining:
        raise NothingLeft
    outputs = {output.path for part in remaining for output in part.group.outputs}
    sources = {path: source for part in remaining for path, source in part.sources.items()}
    before = {path: rows for path, rows in ours.changes.buried.items() if path in outputs}
    adds = ours.changes.adds
    changes = replace(
        ours.changes,
        groups=tuple(part.group for part in remaining),
        sources=sources,
        removes=frozenset(sources),
        adds=adds.filter(pc.is_in(adds["path"], value_set=pa.array(sorted(outputs), pa.string()))),
        buried=union_of([before, *(part.buried for part in remaining)]),
    )
    return replace(ours, changes=changes, position=ours.position.behind(*(winner.version for winner in behind)))


@dataclass(frozen=True)
class _RebasedGroup:
    """A group, those of its sources that still exist in their newest state, and the rows of its outputs that were
    deleted meanwhile.
    """

    group: Group
    sources: Mapping[str, Source]
    buried: Marks


def _rebase_group(ours: Transaction, group: Group, net: NetEffect, loaders: Loaders) -> _RebasedGroup | None:
    """A group behind winners; None where it is left alone, since others moved its files too, or restored rows, or
    deleted some while the table has no deletion vectors.
    """
    sources = {path: ours.changes.sources[path] for path in group.paths & ours.changes.sources.keys()}
    try:
        states = {p: _newest_state(sources[p], net.changed[p], loaders) for p in sources.keys() & net.changed.keys()}
        lost = {path: rows for path, (_, rows) in states.items() if rows}
        if lost and not (ours.base is not None and ours.base.properties.vectors):
            return None
        buried = moves.locate_rows(group, lost, loaders.vector, loaders.origins) if lost else {}
    except (RowsNotLocated, AnabranchError):
        return None
    newest = {**sources, **{path: source for path, (source, _) in states.items()}}
    return _RebasedGroup(group, {path: source for path, source in newest.items() if source is not None}, buried)


def _newest_state(before: Source, change: Change, loaders: Loaders) -> tuple[Source | None, BitMap64]:
    """The newest state of a source, None where it was removed, and its rows that were deleted since. Raises
    RowsNotLocated: another transaction moved the file, or restored rows in it.
    """
    if change.after is None:
        if _was_moved(change):
            raise RowsNotLocated(f"{change.before['path']} was moved by another")
        return None, _complement(before.vector, _records_of(before))
    after = loaders.vector(change.after)
    deleted, restored = growth(before.vector, after)
    if restored:
        raise RowsNotLocated(f"rows of {change.before['path']} were restored")
    return Source(change.after, after), deleted


def _was_moved(change: Change) -> bool:
    """Whether the winner that removed a file states that no data changed by it."""
    removes = change.winners[-1].removes
    removed = removes.filter(pc.equal(removes["path"], change.before["path"]))
    return not pc.all(pc.fill_null(removed["dataChange"], True)).as_py()


def _records_of(source: Source) -> int:
    records = num_records(source.row.get("stats"))
    if records is None:
        raise RowsNotLocated(f"it is not known how many rows {source.row['path']} holds")
    return records


def _complement(dead: BitMap64, records: int) -> BitMap64:
    """All rows of a file that are not deleted."""
    rows = BitMap64()
    rows.add_range(0, records)  # as one run, however many they are
    return rows - dead
