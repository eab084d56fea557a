"""Net effect: the combined changes of a run of winners to the table.

Knows commits, folded in order; never a row's values. Pure but for the vectors, which are loaded through a function
that is passed in. A file that was added and removed again inside the run has no effect and is not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._protocol.actions import FILES, FileRow, empty_files
from anabranch._transaction.transaction import is_blind_append


@dataclass(frozen=True)
class Change:
    """A file that was live before the run and was marked, restored or removed in it.

    ``after`` is None where it was removed. ``winners`` are the commits that touched it, oldest first.
    """

    before: FileRow
    after: FileRow | None
    winners: tuple[Commit, ...]


@dataclass(frozen=True)
class AddedFiles:
    """Files that are live after the run and were not before: ``files`` (`FILES`), all of the same kind of winner."""

    files: pa.Table
    winners: Mapping[str, Commit]
    """path -> the winner that first added it"""


@dataclass(frozen=True)
class NetEffect:
    """The effect of a run of winners: changed files, and new ones, by whether their winner was a blind append."""

    changed: Mapping[str, Change]
    blind: AddedFiles
    seeing: AddedFiles
    """added by winners that had read the table"""

    @property
    def is_nothing(self) -> bool:
        """Whether the run changed no row."""
        return not self.changed and len(self.blind.files) == 0 and len(self.seeing.files) == 0


NO_EFFECT = NetEffect({}, AddedFiles(empty_files(), {}), AddedFiles(empty_files(), {}))
"""The effect of no winners."""


def net_effect(winners: Iterable[Commit], live: frozenset[str] = frozenset()) -> NetEffect:
    """Fold commits into their net effect.

    Args:
        winners: the run, oldest first.
        live: paths known to be live before it: an ``add`` of one of them, as when statistics are recomputed, adds no
            new file, even without a ``remove``.
    """
    changed: dict[str, Change] = {}
    added: dict[str, _Arrival] = {}
    for commit in winners:
        adds = {path: i for i, path in enumerate(commit.adds["path"].to_pylist())}
        for row in commit.removes.to_pylist():
            _remove(row, commit, changed, added, comes_back=row["path"] in adds)
        for path, position in adds.items():
            _add(path, position, commit, changed, added, live)
    return NetEffect(changed, _collect(added, blind=True), _collect(added, blind=False))


class _Arrival(NamedTuple):
    """A file that the run added: the first commit that did, and the position of its newest ``add``."""

    first: Commit
    latest: Commit
    position: int


def _remove(
    row: FileRow, commit: Commit, changed: dict[str, Change], added: dict[str, _Arrival], *, comes_back: bool
) -> None:
    path = row["path"]
    if path in added:
        if not comes_back:
            del added[path]
        return
    change = changed.get(path)
    original = change.before if change else row
    changed[path] = Change(original, None, (*(change.winners if change else ()), commit))


def _add(
    path: str,
    position: int,
    commit: Commit,
    changed: dict[str, Change],
    added: dict[str, _Arrival],
    live: frozenset[str],
) -> None:
    change = changed.get(path)
    if change is not None:
        touching = change.winners if change.winners[-1] is commit else (*change.winners, commit)
        changed[path] = Change(change.before, _row(commit.adds, position), touching)
        return
    if path in live:
        row = _row(commit.adds, position)
        changed[path] = Change(row, row, (commit,))
        return
    first = added[path].first if path in added else commit
    added[path] = _Arrival(first, commit, position)


def _row(adds: pa.Table, position: int) -> FileRow:
    row: FileRow = adds.slice(position, 1).select(FILES.names).to_pylist()[0]
    return row


def _collect(added: Mapping[str, _Arrival], *, blind: bool) -> AddedFiles:
    """The surviving new files whose first winner was (not) blind, as one table; one take per commit."""
    chosen = {path: arrival for path, arrival in added.items() if is_blind_append(arrival.first) is blind}
    rows: dict[int, list[int]] = {}
    commits: dict[int, Commit] = {}
    for arrival in chosen.values():
        rows.setdefault(arrival.latest.version, []).append(arrival.position)
        commits[arrival.latest.version] = arrival.latest
    tables = [commits[v].adds.select(FILES.names).take(pa.array(places)) for v, places in rows.items()]
    files = pa.concat_tables(tables) if tables else empty_files()
    return AddedFiles(files, {path: arrival.first for path, arrival in chosen.items()})


def growth(before: BitMap64, after: BitMap64) -> tuple[BitMap64, BitMap64]:
    """Positions that a vector gained, and those that it lost (a RESTORE can restore rows)."""
    return after - before, before - after
