"""Pieces: the rows of one data file that a stream shows.

Knows which rows a version or a commit adds, as `anabranch._protocol.change_feed` tells it. Pure. Guarantee: a file that
only moved rows gives none, and neither does a file of which only other rows were deleted; the index of an offset means
the same action of a commit as it does to delta-spark, whichever rows that action gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._protocol.change_feed import INSERT, VersionChanges, changing


class Shown(NamedTuple):
    """What a feed says of rows: how they changed, at which version, and when, in milliseconds since 1970. The change is
    None where the file says it for each row.
    """

    change: str | None
    version: int
    timestamp: int


@dataclass(frozen=True)
class Piece:
    """Rows of one file.

    Attributes:
        path: the file, as the log spells it.
        size: its bytes.
        values: its partition values, as the log says them.
        version: the version that they are read for; errors name it.
        hidden: positions that are left out.
        only: the positions that are shown; None: all that are not hidden.
        shown: what a feed says of them; None: they are read without a feed.
    """

    path: str
    size: int
    values: Mapping[str, str | None]
    version: int
    hidden: BitMap64 | None = None
    only: BitMap64 | None = None
    shown: Shown | None = None


Group = tuple[Piece, ...]
"""What one action of a commit gives, which has one index: nothing, or rows of one file."""


def of_snapshot(files: pa.Table, vectors: Mapping[str, BitMap64], version: int, moment: int | None) -> list[Piece]:
    """The live rows of a version, file by file, the oldest first; with a ``moment`` as inserts of a feed.

    Args:
        files: a table `anabranch._protocol.actions.FILES`.
        vectors: the deleted positions of files.
        moment: when the version was committed, in milliseconds since 1970; None: no feed is read.
    """
    ordered = files.select(["path", "partitionValues", "size", "modificationTime"])
    ordered = ordered.sort_by([("modificationTime", "ascending"), ("path", "ascending")])
    shown = None if moment is None else Shown(INSERT, version, moment)
    return [_piece(row, version, hidden=vectors.get(row["path"]), shown=shown) for row in ordered.to_pylist()]


def groups_of_inserts(changes: VersionChanges, actions: pa.Table) -> list[Group]:
    """The rows that a commit added, for each of its adds that states a data change.

    Args:
        changes: what its actions changed.
        actions: all of them, as `anabranch._log.commits.Commit.in_order` gives them.
    """
    adds = [group for kind, group in _by_action(changes, actions) if kind == "add"]
    return [tuple(each for each in group if each.shown is not None and each.shown.change == INSERT) for group in adds]


def groups_of_changes(changes: VersionChanges, actions: pa.Table) -> list[Group]:
    """All changes of a commit, for each of its files of change data, else for each action that states a data change;
    arguments as of `groups_of_inserts`.
    """
    said = Shown(None, changes.version, changes.timestamp)
    written: list[Group] = [(_piece(row, changes.version, shown=said),) for row in changes.written.to_pylist()]
    return written or [group for _, group in _by_action(changes, actions)]


def _by_action(changes: VersionChanges, actions: pa.Table) -> Iterator[tuple[str, Group]]:
    """The kind of each action that states a data change, and what it gives."""
    found: dict[tuple[str, str], Group] = {}
    for kind, piece in _pieces_with_kind(changes):
        found[kind, piece.path] = (*found.get((kind, piece.path), ()), piece)
    for row in changing(actions).to_pylist():
        yield row["kind"], found.pop((row["kind"], row["path"]), ())


def _pieces_with_kind(changes: VersionChanges) -> Iterator[tuple[str, Piece]]:
    """The rows, each with the kind of the action that gives them: of a file that was added again, its add."""
    version = changes.version
    for row in changes.whole.to_pylist():
        shown = Shown(row["change"], version, changes.timestamp)
        kind = "add" if row["change"] == INSERT else "remove"
        yield kind, _piece(row, version, hidden=changes.hidden.get(row["path"]), shown=shown)
    for row, only in zip(changes.partly.to_pylist(), changes.rows, strict=True):
        yield "add", _piece(row, version, only=only, shown=Shown(row["change"], version, changes.timestamp))


def _piece(row: Mapping[str, Any], version: int, **said: Any) -> Piece:
    return Piece(row["path"], row["size"] or 0, dict(row["partitionValues"] or ()), version, **said)
