"""Segment: which files of the log make up one version.

Knows names in the log folder (PROTOCOL.md, "Action Reconciliation" and "Last Checkpoint File"), not what they hold.
Guarantee: the commits of a segment follow its checkpoint without a gap; ``_last_checkpoint`` is only ever a hint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from anabranch.errors import CorruptLog, NotATable, NotFound, UnsupportedFeature, VersionNotFound
from anabranch.log.names import (
    LAST_CHECKPOINT,
    checkpoint_version,
    commit_name,
    commit_version,
    first_name,
    other_checkpoint,
)
from anabranch.storage.contract import Entry, Store


@dataclass(frozen=True)
class Segment:
    """The files to replay for ``version``: a checkpoint or none, then every later commit.

    ``newest`` is the commit file of the version itself, or the checkpoint where that was cleaned up.
    """

    version: int
    checkpoint: Entry | None
    commits: tuple[Entry, ...]
    newest: Entry

    @property
    def identity(self) -> tuple[int, str | None]:
        """Size and etag of the newest file, which tell this table from one made again under the same path."""
        return self.newest.size, self.newest.etag

    @property
    def timestamp(self) -> int:
        """When the newest file was written, in milliseconds."""
        return self.newest.modified_ms


def find_segment(store: Store, version: int | None = None) -> Segment:
    """The segment of a version, or of the newest one.

    Raises:
        NotATable: there is no log.
        VersionNotFound: there is no such version, or its files were cleaned up.
        CorruptLog: a commit is missing in between.
    """
    hint = _hint(store)
    start = hint if hint is not None and (version is None or version >= hint) else 0
    listing = store.list_from(first_name(start))
    if start and not any(checkpoint_version(entry.name) == start for entry in listing):
        listing = store.list_from(first_name(0))
    return _choose(store, listing, version)


def contiguous(table: str, commits: list[Entry], first: int, last: int | None = None) -> None:
    """Refuse commits that do not count up from ``first`` without a gap, to ``last`` if that is given.

    Raises:
        CorruptLog: names the file that is missing.
    """
    found = [commit_version(entry.name) for entry in commits]
    wanted = range(first, first + len(found) if last is None else last + 1)
    missing = next((each for each in wanted if found[each - first : each - first + 1] != [each]), None)
    if missing is not None:
        raise CorruptLog(
            table=table, file=commit_name(missing), reason="the file is missing, though later versions are there."
        )


def filled(store: Store, commits: list[Entry], first: int, last: int | None = None) -> list[Entry]:
    """The commits from ``first`` on, with those that a listing missed while others were being written.

    A folder's listing is no snapshot: it may show version 9 and not yet 8, which was there before. So a version that is
    missing below one that was seen is looked for by its name; only one that is not there either is a gap.

    Raises:
        CorruptLog: names the file that is missing.
    """
    found = {_version_of(entry): entry for entry in commits}
    newest = max(found, default=first - 1) if last is None else last
    for version in range(first, newest + 1):
        if version not in found:
            missed = store.head(commit_name(version))
            if missed is None:
                break
            found[version] = missed
    ordered = [found[version] for version in sorted(found) if version >= first]
    contiguous(store.url, ordered, first, last)
    return ordered


def _hint(store: Store) -> int | None:
    try:
        value = json.loads(store.get(LAST_CHECKPOINT))
        return int(value["version"])
    except (NotFound, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # a missing or broken hint only costs a longer listing


def _choose(store: Store, listing: list[Entry], version: int | None) -> Segment:
    commits = [entry for entry in listing if commit_version(entry.name) is not None]
    checkpoints = [entry for entry in listing if checkpoint_version(entry.name) is not None]
    newest = max((v for v in map(_version_of, commits + checkpoints)), default=None)
    if newest is None:
        _refuse_other_checkpoints(store, listing, [], 0, None)
        raise NotATable(table=store.url, reason="the folder has no _delta_log with commits.")
    wanted = newest if version is None else version
    usable = [c for c in checkpoints if _version_of(c) <= wanted]
    checkpoint = max(usable, key=_version_of, default=None)
    first = _version_of(checkpoint) + 1 if checkpoint else 0
    tail = [c for c in commits if first <= _version_of(c) <= wanted]
    if not 0 <= wanted <= newest:
        _refuse_version(store, wanted, newest)
    _refuse_other_checkpoints(store, listing, tail, first, wanted)
    if checkpoint is None and checkpoints and (not tail or _version_of(tail[0]) > 0):
        _refuse_version(store, wanted, newest)  # what an older checkpoint stood for was cleaned up
    tail = filled(store, tail, first, wanted)
    own = next((c for c in commits if _version_of(c) == wanted), checkpoint)
    assert own is not None
    return Segment(wanted, checkpoint, tuple(tail), own)


def _version_of(entry: Entry) -> int:
    version = commit_version(entry.name)
    if version is None:
        version = checkpoint_version(entry.name)
    assert version is not None
    return version


def _refuse_version(store: Store, wanted: int, newest: int) -> None:
    raise VersionNotFound(table=store.url, version=wanted, earliest=earliest_version(store), latest=newest)


def earliest_version(store: Store) -> int:
    """The oldest version that can still be rebuilt: 0, or the oldest checkpoint."""
    listing = store.list_from(first_name(0))
    versions = [v for v in (commit_version(e.name) for e in listing) if v is not None]
    checkpoints = [v for v in (checkpoint_version(e.name) for e in listing) if v is not None]
    return 0 if versions[:1] == [0] else min(checkpoints, default=-1)


def _refuse_other_checkpoints(
    store: Store, listing: list[Entry], tail: list[Entry], first: int, wanted: int | None
) -> None:
    """A gap that a checkpoint of a kind unknown here would fill is a missing feature, not a damaged log."""
    if tail and _version_of(tail[0]) == first:
        return
    for version, kind in filter(None, (other_checkpoint(entry.name) for entry in listing)):
        if first <= version and (wanted is None or version <= wanted):
            raise UnsupportedFeature(table=store.url, kind="reader", feature=kind)
