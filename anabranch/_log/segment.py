"""A segment: the log files of one version.

Knows names in the log folder (PROTOCOL.md, "Action Reconciliation" and "Last Checkpoint File"), not what they hold.
Guarantee: the commits of a segment follow its checkpoint without a gap; ``_last_checkpoint`` is only ever a hint, and a
log compaction file only a shortcut for commits that are all there, used where a checksum file of the version can
confirm it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from anabranch._log.checkpoint_parts import CheckpointFiles, checkpoints_in, missing_part
from anabranch._log.file_names import checksum_version, commit_name, commit_version, compacted_range, first_name
from anabranch._log.last_checkpoint import read_hint
from anabranch._storage.contract import Entry, Store
from anabranch.errors import CorruptLog, NotATable, VersionNotFound


@dataclass(frozen=True)
class Segment:
    """The files to replay for ``version``: a checkpoint or none, then every later commit.

    Attributes:
        newest: the commit file of the version itself, or the checkpoint where that was cleaned up.
        compacted: log compaction files that may replace some of the commits.
        but: checkpoints that must not be used.
        stated: a later version that has only a checksum file in the listing.
    """

    version: int
    checkpoint: CheckpointFiles | None
    commits: tuple[Entry, ...]
    newest: Entry
    compacted: tuple[Entry, ...] = ()
    but: frozenset[str] = frozenset()
    stated: int | None = None

    @property
    def identity(self) -> tuple[int, str | None]:
        """Size and etag of the newest file, which distinguish this table from one created again at the same path."""
        return self.newest.size, self.newest.etag

    @property
    def timestamp(self) -> int:
        """When the newest file was written, in milliseconds."""
        return self.newest.modified_ms

    @property
    def entries_to_replay(self) -> tuple[Entry, ...]:
        """The files to read after the checkpoint, in order: the commits, some replaced by the longest compaction files.

        The newest commit is always read, since no compaction file has its commit information; replaying it after one
        that includes it changes nothing (PROTOCOL.md, "Log Compaction Files").
        """
        longest: dict[int, tuple[int, Entry]] = {}
        for entry in self.compacted:
            first, last = compacted_range(entry.name) or (0, -1)
            if first < last <= self.version and last > longest.get(first, (-1, entry))[0]:
                longest[first] = (last, entry)
        entries, after = [], -1
        for commit in self.commits:
            version = _version_of(commit)
            if version > after and version in longest:
                after, entry = longest[version]
                entries.append(entry)
            if version > after or version == self.version:
                entries.append(commit)
        return tuple(entries)

    @property
    def compaction(self) -> str | None:
        """The first log compaction file that is read, if any."""
        return next((entry.name for entry in self.entries_to_replay if compacted_range(entry.name)), None)

    def without_compacted(self) -> Segment:
        """The same with commits only."""
        return replace(self, compacted=())


def find_segment(store: Store, version: int | None = None, but: Collection[str] = ()) -> Segment:
    """The segment of a version, or of the newest one, without the checkpoints named in ``but``, which proved broken.

    Raises:
        NotATable: there is no log.
        VersionNotFound: there is no such version, or its files were cleaned up.
        CorruptLog: a commit, or a part of the only checkpoint, is missing.
    """
    hint = read_hint(store)
    start = hint.version if hint is not None and (version is None or version >= hint.version) else 0
    listing = store.list_from(first_name(max(start, 0)))
    if start and not any(checkpoint.version == start for checkpoint in checkpoints_in(listing, but)):
        listing = store.list_from(first_name(0))
    segment = _choose(store, listing, version, but)
    stated = checksum_version_beyond(listing, segment.version) if version is None else None
    checkpoint = segment.checkpoint
    if checkpoint is not None and hint is not None and hint.version == checkpoint.version:
        checkpoint = replace(checkpoint, hint=hint)
    return replace(segment, checkpoint=checkpoint, but=frozenset(but), stated=stated)


def checksum_version_beyond(listing: Sequence[Entry], newest: int) -> int | None:
    """The newest version with a checksum file in a listing, if it is later than ``newest``."""
    last = max((v for entry in listing if (v := checksum_version(entry.name)) is not None), default=-1)
    return last if last > newest else None


def check_contiguous(table: str, commits: list[Entry], first: int, last: int | None = None) -> None:
    """Raises CorruptLog, with the missing file, unless commits count up from ``first`` without a gap, to ``last`` if
    given.
    """
    versions = [commit_version(entry.name) for entry in commits]
    expected = range(first, first + len(versions) if last is None else last + 1)
    missing = next(
        (version for version in expected if versions[version - first : version - first + 1] != [version]), None
    )
    if missing is not None:
        raise CorruptLog(
            table=table, file=commit_name(missing), reason="the file is missing, though later versions are there."
        )


def fill_gaps(store: Store, commits: list[Entry], first: int, last: int | None = None) -> list[Entry]:
    """The commits from ``first`` on, with those that a listing missed while others were being written.

    A folder's listing is not atomic: it may show version 9 without version 8, which existed before. So a version that
    is missing below a listed one is looked up by name; only one that is still missing is a gap.

    Raises:
        CorruptLog: names the missing file.
    """
    by_version = {_version_of(entry): entry for entry in commits}
    newest = max(by_version, default=first - 1) if last is None else last
    for version in range(first, newest + 1):
        if version not in by_version:
            missed = store.head(commit_name(version))
            if missed is None:
                break
            by_version[version] = missed
    ordered = [by_version[version] for version in sorted(by_version) if version >= first]
    check_contiguous(store.url, ordered, first, last)
    return ordered


def _choose(store: Store, listing: list[Entry], version: int | None, but: Collection[str]) -> Segment:
    commits = [entry for entry in listing if commit_version(entry.name) is not None]
    checkpoints = checkpoints_in(listing, but)
    newest = max([*map(_version_of, commits), *(c.version for c in checkpoints)], default=None)
    if newest is None:
        _refuse_missing_part(store, listing, 0, None)
        raise NotATable(table=store.url, reason="The folder has no _delta_log with commits.")
    target = newest if version is None else version
    checkpoint = next((candidate for candidate in reversed(checkpoints) if candidate.version <= target), None)
    first = checkpoint.version + 1 if checkpoint else 0
    tail = [c for c in commits if first <= _version_of(c) <= target]
    if not 0 <= target <= newest:
        _refuse_version(store, target, newest)
    if first <= target and (not tail or _version_of(tail[0]) > first):
        _refuse_missing_part(store, listing, first, target)
        if checkpoint is None and checkpoints:
            _refuse_version(store, target, newest)  # the versions of an older checkpoint were cleaned up
    tail = fill_gaps(store, tail, first, target)
    own = next((c for c in commits if _version_of(c) == target), checkpoint.files[0] if checkpoint else None)
    assert own is not None
    is_summed = any(checksum_version(entry.name) == target for entry in listing)
    compacted = tuple(entry for entry in listing if is_summed and compacted_range(entry.name))
    return Segment(target, checkpoint, tuple(tail), own, compacted)


def _version_of(commit: Entry) -> int:
    version = commit_version(commit.name)
    assert version is not None
    return version


def _refuse_version(store: Store, version: int, newest: int) -> None:
    raise VersionNotFound(table=store.url, version=version, earliest=earliest_version(store), latest=newest)


def earliest_version(store: Store) -> int:
    """The oldest version that can still be rebuilt: 0, or the oldest checkpoint."""
    listing = store.list_from(first_name(0))
    versions = [v for v in (commit_version(e.name) for e in listing) if v is not None]
    checkpoints = [c.version for c in checkpoints_in(listing)]
    return 0 if versions[:1] == [0] else min(checkpoints, default=-1)


def _refuse_missing_part(store: Store, listing: list[Entry], first: int, last: int | None) -> None:
    """Raises for a gap that a checkpoint would fill if it were whole; names its missing part."""
    name = missing_part(listing, first, 10**20 if last is None else last)
    if name is not None:
        raise CorruptLog(
            table=store.url, file=name, reason="this part of a checkpoint is missing, and so are the commits before it."
        )
