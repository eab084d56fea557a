"""The log of one table: its newest snapshot, the commits after a version, and the put of a commit.

Knows names and versions; knows nothing of conflicts. All handles of one path in a process share snapshots, which are
refreshed with new commits. Guarantee: a refreshed snapshot is at least as new as every commit acknowledged before the
refresh began, and never a mixture of two tables at one path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import pyarrow.compute as pc

from anabranch._log.checkpoint_parts import checkpoints_in
from anabranch._log.checkpointing import State, put_classic, put_v2
from anabranch._log.checksum import Checksum, first_checksum, put_checksum, read_checksum
from anabranch._log.cleanup import forget_clean_ups, is_in_log
from anabranch._log.commit_files import Raw, read_commit, read_commits
from anabranch._log.commits import Commit, own_txn_id, parse_commit
from anabranch._log.committers import committer_of, private_committer
from anabranch._log.fallback import error_if_cleaned_up
from anabranch._log.file_names import commit_name, commit_version, first_name
from anabranch._log.log_end import End, end_of, lost_commit_error
from anabranch._log.positions import LogPosition, commit_mark
from anabranch._log.segment import checksum_version_beyond, earliest_version, fill_gaps, find_segment
from anabranch._log.snapshot import Snapshot, load_snapshot
from anabranch._log.vectors import forget_vectors
from anabranch._protocol.features.known import V2_CHECKPOINT
from anabranch._protocol.features.table_features import reader_features
from anabranch._storage.contract import Entry, Store
from anabranch.errors import AlreadyExists, CorruptLog, NotATable, UnsupportedFeature, VersionCleanedUp, VersionNotFound
from anabranch.errors.process_state import cache

_newest = cache("newest snapshots", 1000)
_checksums = cache("checksums", 1000)
MOST_FILES = 4_000_000
"""Maximum number of files in all cached snapshots together; each takes about 300 bytes."""
_ATTEMPTS = 2
_FEW_COMMITS = 20
"""Maximum number of commits up to a checkpoint over which a snapshot without loaded files follows the log."""
_MAX_COMMIT_BYTES = 4 << 20
"""Maximum size of a commit file from which a checksum file is computed."""


@dataclass(frozen=True)
class PreviousVersion:
    """The version that a commit follows: a snapshot, and all commits between it and that commit."""

    snapshot: Snapshot
    winners: Sequence[Commit]

    @property
    def own_txn_id(self) -> str | None:
        """The id of the transaction of ours that wrote the version; None where it is unknown."""
        return own_txn_id(self.winners[-1].head) if self.winners else self.snapshot.state.own_txn_id

    def try_checksum(self) -> Checksum | None:
        """The version's checksum from its files, where they have been read. It is unknown behind a winner: the commit
        of another engine may add live files again, so that it alone does not determine the totals.
        """
        return self.snapshot.checksum() if self.snapshot.files_are_loaded and not self.winners else None


class Log:
    """The transaction log in ``store``.

    Example:
        >>> log = Log(open_store("/data/flights"))
        >>> log.snapshot().version
    """

    def __init__(self, store: Store) -> None:
        self.store, self.table, self.committer = store, store.url, committer_of(store)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The newest snapshot, refreshed now, or that of an older version.

        Raises:
            NotATable: there is no table.
            VersionNotFound: the version does not exist or was cleaned up.
            CorruptLog: the log is damaged.
            UnsupportedFeature: a reader feature is unknown here.
        """
        try:
            newest = self._refresh()
        except NotATable as error:
            raise self._without_files(error) from None
        except (CorruptLog, UnsupportedFeature):
            if version is None:
                raise
            return load_snapshot(self.store, find_segment(self.store, version))  # an older one may be whole
        if version is None or version == newest.version:
            return newest
        if version > newest.version:
            earliest = earliest_version(self.store)
            raise VersionNotFound(table=self.table, version=version, earliest=earliest, latest=newest.version)
        return load_snapshot(self.store, find_segment(self.store, version))

    def newest(self) -> Snapshot | None:
        """The newest snapshot, refreshed now, or None where there is no table."""
        try:
            return self._refresh()
        except NotATable:
            return None

    def _without_files(self, error: NotATable) -> NotATable:
        """The same error, with a reason that says so where the path holds no file; it takes one list of the folder."""
        try:
            is_empty = not self.store.list_from("")
        except Exception:  # then the first error suffices
            return error
        reason = f"Path does not exist: {self.table}, or it holds no file."
        return NotATable(**{**error.facts, "reason": reason}) if is_empty else error

    def exists(self) -> bool:
        """Whether there is a table."""
        return self.newest() is not None

    def commits_after(self, position: LogPosition, partition_keys: Collection[str] = ()) -> list[Commit] | None:
        """Every commit after a position, oldest first; None where another table is now at this path.

        Raises:
            CorruptLog: one of them is missing or damaged.
            VersionCleanedUp: one of them was cleaned up; to put another in its place would go back in time.
        """
        listing = self.store.list_from(first_name(max(position.version, 0)))
        entries = _commit_entries(listing)
        own = [entry for entry in entries if commit_version(entry.name) == position.version]
        if not self._contains(position, own[0] if own else None, is_alone=not entries):
            return None
        try:
            later = fill_gaps(self.store, entries[len(own) :], position.version + 1)
        except CorruptLog as gap:
            raise error_if_cleaned_up(self.store, position.version) or gap from gap
        self._refuse_cleaned_up(listing, position.version + len(later))
        return [parse_commit(self.table, raw, partition_keys) for raw in read_commits(self.store, later)]

    def _contains(self, position: LogPosition, own: Entry | None, *, is_alone: bool) -> bool:
        """Whether a position belongs to the table that is now at this path. The table's id decides where the commit was
        cleaned up, before or since.
        """
        if own is not None and position.identity is not None:
            return position.identity == (own.size, own.etag)
        if position.identity is not None and is_alone:
            return False  # not even the commit at the position is left
        newest = self.newest() if position.table_id is not None else None
        return position.table_id is None or (newest is not None and newest.metadata.id == position.table_id)

    def find_oldest_replaced(self, commits: Collection[tuple[int, str]]) -> int | None:
        """The oldest of these versions whose commit was replaced; None where there is none.

        Args:
            commits: versions with the marks that their commits had (`commit_mark`). A version whose commit is gone
                counts as unchanged: other checks find out whether it was cleaned up.
        """
        if not commits:
            return None
        listing = self.store.list_from(first_name(min(version for version, _ in commits)))
        now = {commit_version(entry.name): commit_mark(entry.size, entry.etag) for entry in _commit_entries(listing)}
        return min((version for version, mark in commits if now.get(version, mark) != mark), default=None)

    def put(self, version: int, data: bytes) -> bool:
        """Put a commit; True if it is now ours, False if the version was taken.

        Raises:
            PutOutcomeUnknown: the store did not answer.
            StoreError: it was refused, and nothing was written.
        """
        try:
            self.committer.propose(version, data)
        except AlreadyExists:
            return False
        self.committer.publish(version)
        return True

    def read(self, version: int, partition_keys: Sequence[str] = ()) -> Commit | None:
        """The commit of one version, if it exists."""
        entry = self.store.head(commit_name(version))
        return None if entry is None else parse_commit(self.table, read_commit(self.store, entry), partition_keys)

    def write_checksum(
        self, version: int, data: bytes, before: PreviousVersion | None, restated: Collection[str] = ()
    ) -> None:
        """Write the checksum file of a version just committed, if it can be computed without reading the table: at
        version 0, after a version of ours that has one, and where the files have been read.

        Args:
            data: the commit file.
            before: the version that the commit follows, None for version 0.
            restated: the paths of live files that the commit adds again unchanged.

        Raises:
            StoreError: it could not be written; nothing depends on it.
        """
        if len(data) > _MAX_COMMIT_BYTES:
            return
        commit = parse_commit(self.table, Raw(version, data), ())
        previous = self._checksum(version - 1, before) if before is not None else None
        checksum = first_checksum(commit) if version == 0 else previous and previous.advance_by(commit, restated)
        if checksum is not None:
            put_checksum(self.store, checksum)
            _checksums[self.table] = checksum

    def _checksum(self, version: int, before: PreviousVersion) -> Checksum | None:
        """The checksum of a version, if it is certain: our own of the current commit, or one computed now.

        A table that was restored from a copy has another commit under the same version, and another engine's checksum
        may be wrong.
        """
        cached = _checksums.get(self.table)
        if cached is not None and cached.version == version and _is_by(cached, before.own_txn_id):
            return cached
        computed = before.try_checksum()
        if computed is not None:
            return computed
        own = before.own_txn_id or self._own_txn_id(version, before)
        read = read_checksum(self.store, version) if own is not None else None
        return read if read is not None and _is_by(read, own) else None

    def _own_txn_id(self, version: int, before: PreviousVersion) -> str | None:
        """The id from the commit itself, which was not read where a checkpoint of its version replaced it."""
        if before.winners or before.snapshot.segment.commits:
            return None
        commit = self.read(version)
        return None if commit is None else own_txn_id(commit.head)

    def check_stands(self, version: int) -> None:
        """Refuse a commit of ours that came after a clean-up had removed its version. Raises VersionCleanedUp: no
        reader will ever see it.
        """
        if not is_in_log(self.store, version):
            earliest = earliest_version(self.store)
            raise VersionCleanedUp(table=self.table, version=version, earliest=earliest, latest=earliest)

    def write_checkpoint(self, snapshot: Snapshot, *, now_ms: int, new_id: Callable[[], UUID] = uuid4) -> None:
        """Write a checkpoint of a snapshot, with the tombstones inside the retention: V2 where
        ``delta.checkpointPolicy`` asks for it and the feature is listed, else classic.
        """
        tombstones = snapshot.tombstones
        oldest = now_ms - snapshot.properties.tombstone_retention_ms
        fresh = pc.fill_null(pc.greater_equal(tombstones["deletionTimestamp"], oldest), True)
        unexpired = tombstones.filter(fresh)
        state = State(snapshot.version, snapshot.head, snapshot.files, unexpired)
        if snapshot.properties.checkpoint_policy == "v2" and V2_CHECKPOINT in reader_features(snapshot.protocol):
            put_v2(self.store, state, now_ms=now_ms, new_id=new_id)
        else:
            put_classic(self.store, state)
        self._begin_checksums(snapshot)

    def _begin_checksums(self, snapshot: Snapshot) -> None:
        """Write a checksum now that the files are read, so that those of later versions can be derived from it."""
        cached = _checksums.get(self.table)
        if cached is None or cached.version < snapshot.version:
            checksum = snapshot.checksum()
            put_checksum(self.store, checksum)
            _checksums[self.table] = checksum

    def _refresh(self) -> Snapshot:
        latest = _recall(self.store)
        snapshot = self._try_advance(latest.through(self.store)) if latest else None
        snapshot = snapshot or self._read_fully()
        remember(snapshot)
        return snapshot

    def _read_fully(self) -> Snapshot:
        """The newest snapshot; it is read twice if its end looks wrong, since a listing is not an atomic view of a
        folder. Raises CorruptLog: the newest commit was lost, by both reads.
        """
        for _ in range(_ATTEMPTS):
            snapshot, stated = self._load_newest()
            end = end_of(snapshot, stated)
            if end is End.RIGHT:
                break
        if end is End.LOST:
            raise lost_commit_error(self.table, stated or 0)
        return snapshot

    def _load_newest(self) -> tuple[Snapshot, int | None]:
        """The newest snapshot of a listing, and the version that the listing states beyond it; of a second listing
        where files of the first were replaced while they were read.
        """
        segment = find_segment(self.store)
        try:
            return load_snapshot(self.store, segment), segment.stated
        except CorruptLog:
            later = find_segment(self.store)
            if later == segment:
                raise
            return load_snapshot(self.store, later), later.stated

    def _refuse_cleaned_up(self, listing: Sequence[Entry], newest: int) -> None:
        """Raises VersionCleanedUp if a checkpoint is beyond the newest commit: commits were cleaned up, and a put there
        would go back in time.
        """
        for checkpoint in checkpoints_in(listing):
            if checkpoint.version > newest and self.store.head(commit_name(newest + 1)) is None:
                versions = {"version": newest + 1, "earliest": checkpoint.version, "latest": checkpoint.version}
                raise VersionCleanedUp(table=self.table, **versions)

    def _try_advance(self, snapshot: Snapshot) -> Snapshot | None:
        """The snapshot with the commits since, or None where it must be read again, or where a commit differed from the
        listing: another table may be at the path by now.
        """
        try:
            return self._advance(snapshot)
        except CorruptLog:
            return None

    def _advance(self, snapshot: Snapshot) -> Snapshot | None:
        listing = self.store.list_from(first_name(snapshot.version))
        entries = _commit_entries(listing)
        if not entries or commit_version(entries[0].name) != snapshot.version:
            return None
        if (entries[0].size, entries[0].etag) != snapshot.identity:
            return None
        new = fill_gaps(self.store, entries[1:], snapshot.version + 1)
        newest = snapshot.version + len(new)
        checkpoints = checkpoints_in(listing)
        if any(c.version > newest for c in checkpoints):
            return None  # its commit was cleaned up, and only a full read finds the version
        checkpoint = checkpoints[-1] if checkpoints else None
        if checkpoint is not None and not snapshot.knows_files and checkpoint.version - snapshot.version > _FEW_COMMITS:
            return None  # a read from that checkpoint is cheaper
        advanced = snapshot.advance_by(new, checkpoint) if new else snapshot
        return advanced if end_of(advanced, checksum_version_beyond(listing, newest)) is End.RIGHT else None


def forget(table: str | None = None) -> None:
    """Drop the cached snapshots and vectors of one table or of all, so that the next use reads them again."""
    forget_vectors(table)
    forget_clean_ups(table)
    if table is None:
        _newest.clear()
        _checksums.clear()
    else:
        _newest.pop(table, None)
        _checksums.pop(table, None)


def remember(snapshot: Snapshot) -> None:
    """Let the next use of the snapshot's table follow the log from it, as if it had been read just now."""
    private = private_committer(snapshot.store)
    if private is not None:
        private.newest_snapshot = snapshot
        return
    is_another = snapshot.table not in _newest
    _newest[snapshot.table] = snapshot
    if is_another:
        _newest.lighten(lambda entry: entry.files_in_memory, MOST_FILES)


def _recall(store: Store) -> Snapshot | None:
    """The snapshot from which the next use of a store's log may follow it."""
    private = private_committer(store)
    latest: Snapshot | None = _newest.get(store.url) if private is None else private.newest_snapshot
    return latest


def _is_by(checksum: Checksum, txn_id: str | None) -> bool:
    return txn_id is not None and checksum.txn_id == txn_id


def _commit_entries(listing: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in listing if commit_version(entry.name) is not None]
