"""Lost rows: those that ours marks and winners have changed, which ours can let go instead of running again as a whole.

Knows positions, never a row's values. Pure but for the vectors. Ours without its lost rows is what the command would
have done if it had not selected them; what their winners made of them are new rows, which the command is redone on if
it selects these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._protocol.layout.file_sets import Marks, union_of
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.net_effect import Change, NetEffect, growth
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.transaction import Source, Transaction


def find_lost_rows(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Marks | None:
    """The rows that ours marks, or removes with their files, and winners have deleted; None where they cannot be told,
    or where rows were restored.
    """
    lost: dict[str, BitMap64] = {}
    for path in sorted(ours.touched_paths & net.changed.keys()):
        rows = _find_lost_rows_of_file(
            ours.changes.sources[path], ours.changes.marks.get(path), net.changed[path], handler
        )
        if rows is None:
            return None
        if rows:
            lost[path] = rows
    return lost


def without_rows(ours: Transaction, lost: Marks) -> Transaction:
    """Ours without its marks on these rows; a file that it removes whole is marked instead."""
    changes, marks = ours.changes, dict(ours.changes.marks)
    for path, rows in lost.items():
        left = (marks.pop(path, None) or _live_rows(changes.sources[path])) - rows
        if left:
            marks[path] = left
    removes = changes.removes - lost.keys()
    kept = removes | marks.keys() | changes.recommits
    sources = {path: source for path, source in changes.sources.items() if path in kept}
    return replace(ours, changes=replace(changes, marks=marks, removes=removes, sources=sources))


def with_buried(ours: Transaction, rows: Marks) -> tuple[Transaction, list[str]]:
    """Ours with these rows of its own new files deleted; and the paths of those in which no row is left, which it does
    not add any longer.
    """
    buried, adds = union_of([ours.changes.buried, rows]), ours.changes.adds
    counts = dict(zip(adds["path"].to_pylist(), map(num_records, adds["stats"].to_pylist()), strict=True))
    emptied = [path for path, deleted in buried.items() if len(deleted) == counts[path]]
    changes = replace(
        ours.changes,
        adds=without_files(adds, emptied),
        buried={path: deleted for path, deleted in buried.items() if path not in emptied},
    )
    return replace(ours, changes=changes), emptied


def with_files_replaced(ours: Transaction, replaced: frozenset[str], adds: pa.Table) -> Transaction:
    """Ours with other new files in place of these, which are named as they were staged."""
    present = frozenset(ours.changes.restaged.get(path, path) for path in replaced)
    kept = without_files(ours.changes.adds, present)
    return replace(ours, changes=replace(ours.changes, adds=pa.concat_tables([kept, adds])))


def without_files(files: pa.Table, paths: Collection[str]) -> pa.Table:
    """The files but those at these paths."""
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=pa.array(sorted(paths), pa.string()))))


def _live_rows(source: Source) -> BitMap64:
    return BitMap64(range(num_records(source.row.get("stats")) or 0)) - source.vector


def _find_lost_rows_of_file(
    source: Source, marks: BitMap64 | None, change: Change, handler: RebaseHandler
) -> BitMap64 | None:
    """The lost rows of one file; without ``marks``, ours removes it whole."""
    if marks is None and num_records(source.row.get("stats")) is None:
        return None
    ours = _live_rows(source) if marks is None else marks
    if change.after is None:
        return ours
    deleted, restored = growth(source.vector, handler.vector(change.after))
    return None if restored else deleted & ours
