"""Pieces: the rows of one data file that a stream shows.

Knows which rows a version or a commit adds (`anabranch._protocol.change_feed`). Pure. Guarantee: a file whose rows
only moved, or lost rows that are not shown, gives no piece; the index of an offset means the same action of a commit
as in delta-spark, whichever rows that action gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._protocol.change_feed import INSERT, VersionChanges, data_changes


class ChangeColumns(NamedTuple):
    """The change feed's columns of some rows: the change, its version, and its time in milliseconds since 1970. The
    change is None where the file has it per row.
    """

    change: str | None
    version: int
    timestamp: int


@dataclass(frozen=True)
class Piece:
    """Rows of one file.

    Attributes:
        path: the file, as the log spells it.
        size: its size in bytes.
        values: its partition values, as in the log.
        version: the version that the rows are read for; errors name it.
        hidden: positions that are left out.
        only: the positions that are shown; None: all that are not hidden.
        shown: their columns of the change feed; None: they are read without a feed.
    """

    path: str
    size: int
    values: Mapping[str, str | None]
    version: int
    hidden: BitMap64 | None = None
    only: BitMap64 | None = None
    shown: ChangeColumns | None = None


Group = tuple[Piece, ...]
"""The pieces of one action of a commit, which share one index: none, or rows of one file."""


def of_snapshot(files: pa.Table, vectors: Mapping[str, BitMap64], version: int, moment: int | None) -> list[Piece]:
    """The live rows of a version, file by file, the oldest first; with a ``moment``, as inserts of a change feed.

    Args:
        files: a table `anabranch._protocol.actions.FILES`.
        vectors: the deleted positions of files.
        moment: when the version was committed, in milliseconds since 1970; None: no feed is read.
    """
    ordered = files.select(["path", "partitionValues", "size", "modificationTime"])
    ordered = ordered.sort_by([("modificationTime", "ascending"), ("path", "ascending")])
    shown = None if moment is None else ChangeColumns(INSERT, version, moment)
    return [_piece(row, version, hidden=vectors.get(row["path"]), shown=shown) for row in ordered.to_pylist()]


def groups_of_inserts(changes: VersionChanges, actions: pa.Table) -> list[Group]:
    """The rows that a commit added, for each of its adds with a data change.

    Args:
        changes: the changes of its actions.
        actions: all of them, as `anabranch._log.commits.Commit.in_order` gives them.
    """
    adds = [group for kind, group in _by_action(changes, actions) if kind == "add"]
    return [
        tuple(piece for piece in group if piece.shown is not None and piece.shown.change == INSERT) for group in adds
    ]


def groups_of_changes(changes: VersionChanges, actions: pa.Table) -> list[Group]:
    """All changes of a commit, for each of its change data files, else for each action with a data change; arguments
    as of `groups_of_inserts`.
    """
    shown = ChangeColumns(None, changes.version, changes.timestamp)
    pieces: list[Group] = [(_piece(row, changes.version, shown=shown),) for row in changes.written.to_pylist()]
    return pieces or [group for _, group in _by_action(changes, actions)]


def _by_action(changes: VersionChanges, actions: pa.Table) -> Iterator[tuple[str, Group]]:
    """The kind and the pieces of each action with a data change."""
    groups: dict[tuple[str, str], Group] = {}
    for kind, piece in _pieces_with_kind(changes):
        groups[kind, piece.path] = (*groups.get((kind, piece.path), ()), piece)
    for row in data_changes(actions).to_pylist():
        yield row["kind"], groups.pop((row["kind"], row["path"]), ())


def _pieces_with_kind(changes: VersionChanges) -> Iterator[tuple[str, Piece]]:
    """The pieces, with the kind of the action that gives them: for a file that was added again, its add."""
    version = changes.version
    for row in changes.whole.to_pylist():
        shown = ChangeColumns(row["change"], version, changes.timestamp)
        kind = "add" if row["change"] == INSERT else "remove"
        yield kind, _piece(row, version, hidden=changes.hidden.get(row["path"]), shown=shown)
    for row, only in zip(changes.partly.to_pylist(), changes.rows, strict=True):
        yield "add", _piece(row, version, only=only, shown=ChangeColumns(row["change"], version, changes.timestamp))


def _piece(row: Mapping[str, Any], version: int, **details: Any) -> Piece:
    return Piece(row["path"], row["size"] or 0, dict(row["partitionValues"] or ()), version, **details)
