"""Moves of other engines: winners that record nothing, and are proved by row ids to have only moved rows.

Knows commits, and the ids and versions of rows, never their values. A row keeps its id wherever it moves, and the
version that last changed it (PROTOCOL.md, "Row Tracking"). So if the live rows of the files that a winner removed are,
id by id and version by version, the rows of the files that it added, it changed no row, and the ids are the record of
where each of them went. Guarantee: any gap, doubt or error is no proof, and the winner is judged as one that deleted
and added rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.commits import Commit
from anabranch._log.row_lineage import RowIds
from anabranch._protocol.actions import FileRow
from anabranch._protocol.features.row_tracking import FILE_FIELDS
from anabranch._protocol.layout.curves import ORIGINS
from anabranch._protocol.layout.moves import Group, Origin, Output
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.relocation import LoadVector, Relocation, states_no_change, touches_only_files
from anabranch._transaction.transaction import Transaction
from anabranch.errors import AnabranchError

ReadIds = Callable[[FileRow, int], RowIds]
"""The row ids of a file, if it has at most so many rows."""
MOST_ROWS = 20_000_000
"""The maximum number of rows, of the files that a winner removed and of those that it added together, whose ids are
compared: each takes about 60 bytes meanwhile.
"""


def may_have_moved(ours: Transaction, winner: Commit, paths: frozenset[str]) -> bool:
    """Whether it is worth a look at row ids: a winner that claims to change no data has removed a file of ``paths``,
    and ours, of a table with row ids and deletion vectors, could follow its rows.
    """
    removed = winner.removes["path"].to_pylist()
    if paths.isdisjoint(removed) or not (touches_only_files(winner) and states_no_change(winner)):
        return False
    every = [*removed, *winner.adds["path"].to_pylist()]
    has_ids = not any(files[name].null_count for files in (winner.adds, winner.removes) for name in FILE_FIELDS)
    is_plain = winner.adds["deletionVector"].null_count == len(winner.adds)
    return has_ids and is_plain and len(set(every)) == len(every) and _states_as_read(ours, winner)


def _states_as_read(ours: Transaction, winner: Commit) -> bool:
    """Whether the winner states the same ids as ours has read, for each file that ours knows."""
    base = () if ours.base is None else _rows_of(ours.base.files, winner.removes["path"])
    known = {row["path"]: row for row in (*base, *(source.row for source in ours.changes.sources.values()))}
    stated = winner.removes.select(["path", *FILE_FIELDS]).to_pylist()
    return all(row[name] == known.get(row["path"], row)[name] for row in stated for name in FILE_FIELDS)


def _rows_of(files: pa.Table, paths: pa.ChunkedArray) -> Sequence[FileRow]:
    chosen = files.filter(pc.is_in(files["path"], value_set=paths.combine_chunks()))
    rows: list[FileRow] = chosen.select(["path", *FILE_FIELDS]).to_pylist()
    return rows


def prove_moves(winner: Commit, read: ReadIds, vector: LoadVector) -> Relocation | None:
    """The winner as a relocation, if the ids of its rows prove that it is one; else None."""
    rows = [*winner.removes.to_pylist(), *winner.adds.to_pylist()]
    if sum(num_records(row["stats"]) or 0 for row in rows) > MOST_ROWS:
        return None
    try:
        files = list(_load_live_rows(rows, read, vector))
    except (AnabranchError, pa.ArrowException, OSError, ValueError, OverflowError):
        return None
    sources, outputs = files[: len(winner.removes)], files[len(winner.removes) :]
    before, after = _sort(sources), _sort(outputs)
    if not before.has_same_rows(after, winner.version):
        return None
    group = Group(
        tuple(Origin(file.row["path"], file.records, file.row["deletionVector"]) for file in sources),
        tuple(Output(file.row["path"], file.records, file.row["path"]) for file in outputs),
        in_order=False,
    )
    left = frozenset(file.row["path"] for file in sources)
    return Relocation(winner, (group,), left, _origins(before, after, outputs))


@dataclass(frozen=True, eq=False)
class _LiveRows:
    """The live rows of a file: their positions, ids and versions."""

    row: FileRow
    records: int
    positions: np.ndarray[Any, Any]
    ids: np.ndarray[Any, Any]
    versions: np.ndarray[Any, Any]


def _load_live_rows(rows: Iterable[FileRow], read: ReadIds, vector: LoadVector) -> Iterator[_LiveRows]:
    left = MOST_ROWS
    for row in rows:
        found = read(row, left)
        left -= len(found.ids)
        yield _live_rows(row, found, vector)


def _live_rows(row: FileRow, found: RowIds, vector: LoadVector) -> _LiveRows:
    """The live rows of a file. Raises ValueError: the log states another number of rows, or of deleted ones."""
    records, dead = len(found.ids), vector(row)
    if num_records(row["stats"]) not in (None, records):
        raise ValueError(f"{row['path']} holds another number of rows than the log states")
    if dead and dead.max() >= records:
        raise ValueError(f"{row['path']} has fewer rows than its deletion vector")
    is_live = np.ones(records, bool)
    is_live[np.asarray(dead.to_array(), np.int64)] = False
    positions = np.flatnonzero(is_live)
    return _LiveRows(row, records, positions, found.ids[positions], found.versions[positions])


@dataclass(frozen=True, eq=False)
class _SortedRows:
    """The live rows of some files by ascending id: ids, versions, the index of the file, and the position in it."""

    ids: np.ndarray[Any, Any]
    versions: np.ndarray[Any, Any]
    files: np.ndarray[Any, Any]
    positions: np.ndarray[Any, Any]

    def has_same_rows(self, after: _SortedRows, version: int) -> bool:
        """Whether ``after`` has exactly these rows, each id once, none of them changed by ``version``."""
        if len(self.ids) != len(after.ids) or (self.ids[1:] == self.ids[:-1]).any():
            return False
        are_same = np.array_equal(self.ids, after.ids) and np.array_equal(self.versions, after.versions)
        return are_same and not (self.versions >= version).any()


def _sort(files: Sequence[_LiveRows]) -> _SortedRows:
    ids = np.concatenate([file.ids for file in files])
    order = np.argsort(ids, kind="stable")
    index = np.repeat(np.arange(len(files)), [len(file.ids) for file in files])
    versions, positions = (
        np.concatenate([file.versions for file in files]),
        np.concatenate([file.positions for file in files]),
    )
    return _SortedRows(ids[order], versions[order], index[order], positions[order])


def _origins(before: _SortedRows, after: _SortedRows, outputs: Sequence[_LiveRows]) -> dict[str, pa.Table]:
    """The origin of each row of each output, by the output's path."""
    found = {}
    for number, output in enumerate(outputs):
        of_output = after.files == number
        order = np.argsort(after.positions[of_output])
        columns = [before.files[of_output][order].astype(np.int32), before.positions[of_output][order]]
        found[output.row["path"]] = pa.table([pa.array(values) for values in columns], schema=ORIGINS)
    return found
