"""Removes log files that are older than the table's retention.

Knows PROTOCOL.md, sections "Metadata Cleanup" and "Checkpoint Protection". Guarantees: every version inside the
retention can still be rebuilt, from a checkpoint that was read in full just before and that agrees with the commits
before it or with the checksum file of its version; files are removed oldest first, so that a crash, or a second
cleaner, leaves a log without a gap; nothing outside ``_delta_log`` is touched; any doubt ends it without a deletion.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile

import pyarrow as pa

from anabranch._log.checkpoint import Checkpoint, CheckpointHead
from anabranch._log.checkpoint_parts import CheckpointFiles, checkpoints_in
from anabranch._log.checksum import read_checksum
from anabranch._log.checksum_verifier import same_files
from anabranch._log.commit_files import read_commit
from anabranch._log.commits import parse_head
from anabranch._log.confirmation import from_other_segment
from anabranch._log.file_names import (
    SIDECARS,
    checkpoint_version,
    checksum_version,
    commit_version,
    compacted_range,
    first_name,
)
from anabranch._log.segment import check_contiguous
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.known import CHECKPOINT_PROTECTION
from anabranch._protocol.features.table_features import check_readable, writer_features
from anabranch._protocol.schema.column_mapping import number_in
from anabranch._storage.contract import Entry, Store
from anabranch.errors import AnabranchError
from anabranch.errors.process_state import cache

DAY_MS = 86_400_000
YOUNGEST_MS = 3_600_000
"""No log file younger than this is ever removed, whatever the retention: a put that began earlier could follow it."""

SKEW_MS = 60_000
"""Maximum time by which a clock may be ahead of the store's, or a commit may be old, before the store's clock counts:
another history would seem expired by it.
"""

_PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
_logger = logging.getLogger(__name__)
_done = cache("clean-ups of logs", 10_000)


def clean_up(snapshot: Snapshot, *, now_ms: int) -> list[str]:
    """Remove the log files that the retention of the snapshot's table no longer covers, and return their names.

    In one process the log is listed once per day and retention: nothing more expires before the next midnight.

    Args:
        now_ms: by the clock that gave the log files their times, or earlier.

    Raises:
        StoreError: the store refused; the remaining log has no gap.
    """
    cutoff = _cutoff(snapshot, now_ms)
    if cutoff is None or _done.get(snapshot.table) == (snapshot.metadata.id, cutoff):
        return []
    removed = [*_remove_expired(snapshot, cutoff), *_remove_orphans(snapshot.store, now_ms)]
    _done[snapshot.table] = (snapshot.metadata.id, cutoff)
    return removed


def forget_clean_ups(table: str | None = None) -> None:
    """Drop the record of clean-ups of one table or of all, so that the next one lists the log again."""
    if table is None:
        _done.clear()
    else:
        _done.pop(table, None)


def is_in_log(store: Store, version: int) -> bool:
    """Whether a commit that was put long after its writer had read the log is part of the log.

    Its version may have been taken and cleaned up in the meantime; then the files after it are older.
    """
    listing = store.list_from(first_name(version))
    own = next((entry for entry in listing if commit_version(entry.name) == version), None)
    later = [e for e in listing if max(commit_version(e.name) or 0, checkpoint_version(e.name) or 0) > version]
    return own is not None and all(entry.modified_ms > own.modified_ms - YOUNGEST_MS // 2 for entry in later)


def is_confirmed(snapshot: Snapshot, listed: CheckpointFiles) -> bool:
    """Whether a checkpoint can be read in full now, and a second source agrees: the commits that would be removed with
    it, or, where some are missing, the checksum file of its version.
    """
    checkpoint = Checkpoint(snapshot.store, listed)
    try:
        head = checkpoint.head()
        if head.protocol is None or head.metadata is None:
            return False
        check_readable(snapshot.table, head.protocol, head.metadata)
        files = checkpoint.files()
        checkpoint.tombstones()
        objection = _objection(snapshot, listed, head, files)
    except AnabranchError as error:
        objection = error.message
    if objection is not None:
        _logger.warning("the log of %s is not cleaned up to version %s: %s", snapshot.table, listed.version, objection)
    return objection is None


def _objection(snapshot: Snapshot, listed: CheckpointFiles, head: CheckpointHead, files: pa.Table) -> str | None:
    """Why a checkpoint is not confirmed; None where it is."""
    other = from_other_segment(snapshot, listed.version)
    if other is not None:
        agrees = same_files(files, other.files) and _same_head(head, other.head)
        return None if agrees else f"{listed.name} and the commits before it disagree"
    stated = read_checksum(snapshot.store, listed.version)
    if stated is None or head.metadata is None or head.protocol is None:
        return f"no other file confirms the live files of {listed.name}"
    agrees = not stated.differs_from(files) and stated.describes(head.metadata, head.protocol)
    return None if agrees else f"{listed.name} and the checksum file of its version disagree"


def _same_head(head: CheckpointHead, other: CheckpointHead) -> bool:
    """Whether both are equal apart from files; old application transactions may be missing."""
    apps = {name: app.version for name, app in head.app_transactions.items()}
    other_apps = {name: app.version for name, app in other.app_transactions.items() if name in apps}
    live = {name: domain for name, domain in head.domains.items() if not domain.removed}
    return (head.protocol, head.metadata, live, apps) == (
        other.protocol,
        other.metadata,
        dict(other.domains),
        other_apps,
    )


def _cutoff(snapshot: Snapshot, now_ms: int) -> int | None:
    """The time up to which files may be removed: a midnight in UTC, as in other engines."""
    if not snapshot.properties.cleans_up_log:
        return None
    midnight = (now_ms - snapshot.properties.log_retention_ms) // DAY_MS * DAY_MS
    return min(midnight, now_ms - YOUNGEST_MS)


def _remove_expired(snapshot: Snapshot, cutoff: int) -> Iterator[str]:
    """Remove commits, checkpoints, checksums and compactions before the newest confirmed expired checkpoint."""
    store = snapshot.store
    listing = store.list_from(first_name(0))
    oldest = _oldest_to_keep(snapshot, listing, cutoff)
    if oldest is None:
        return
    for _, name in sorted((version, name) for name, version in _older_files(listing, oldest.version)):
        store.delete(name)
        yield name


def _oldest_to_keep(snapshot: Snapshot, listing: list[Entry], cutoff: int) -> CheckpointFiles | None:
    commits = [entry for entry in listing if commit_version(entry.name) is not None]
    version = newest_expired_version(snapshot, commits, cutoff)
    for checkpoint in reversed(checkpoints_in(listing)):
        if version is None or checkpoint.version > version or checkpoint.version > snapshot.version:
            continue
        if not any(True for _ in _older_files(listing, checkpoint.version)) or _is_protected(
            snapshot, checkpoint.version
        ):
            return None
        if is_confirmed(snapshot, checkpoint):
            later = [entry for entry in commits if (commit_version(entry.name) or 0) >= checkpoint.version]
            check_contiguous(snapshot.table, later, checkpoint.version)
            _logger.info("the log of %s before version %s is cleaned up", snapshot.table, checkpoint.version)
            return checkpoint
    return None


def newest_expired_version(snapshot: Snapshot, commits: Sequence[Entry], cutoff: int) -> int | None:
    """The newest version that was committed at or before the cut-off, with all versions before it."""
    # the first young commit ends the scan, so that a clock that went back makes nothing older
    candidates = list(takewhile(lambda entry: entry.modified_ms <= cutoff, commits))
    if snapshot.metadata.configuration.get("delta.enableInCommitTimestamps", "").strip().lower() == "true":
        since = number_in(snapshot.metadata.configuration, "delta.inCommitTimestampEnablementVersion")
        older = [e for e in candidates if (commit_version(e.name) or 0) < since]
        stamped = candidates[len(older) :]
        candidates = [*older, *stamped[: bisect_right(stamped, cutoff, key=lambda e: _in_commit(snapshot.store, e))]]
    return commit_version(candidates[-1].name) if candidates else None


def _in_commit(store: Store, entry: Entry) -> int:
    raw = read_commit(store, entry)
    return int(parse_head(store.url, raw).info.get("inCommitTimestamp") or raw.timestamp)


def _is_protected(snapshot: Snapshot, version: int) -> bool:
    """PROTOCOL.md, "Checkpoint Protection": everything before a version is removed in one go, or nothing."""
    if CHECKPOINT_PROTECTION not in writer_features(snapshot.protocol):
        return False
    try:
        return version < int(snapshot.metadata.configuration.get(_PROTECTED_BEFORE, 0))
    except ValueError:
        return True


def _older_files(listing: list[Entry], version: int) -> Iterator[tuple[str, int]]:
    """The files that belong only to older versions, with the version by which they are sorted."""
    for entry in listing:
        compacted = compacted_range(entry.name)
        if compacted is not None and compacted[0] <= version:
            yield entry.name, compacted[0]
        for version_of in (commit_version, checkpoint_version, checksum_version):
            entry_version = version_of(entry.name)
            if entry_version is not None and entry_version < version:
                yield entry.name, entry_version


def _remove_orphans(store: Store, now_ms: int) -> Iterator[str]:
    """Remove sidecars that no checkpoint refers to, unless they are so young that a checkpoint may still follow."""
    listed = store.list_from(f"{SIDECARS}/")
    youngest = (now_ms // DAY_MS - 1) * DAY_MS
    old = [entry.name for entry in listed if entry.modified_ms < youngest]
    referenced = _referenced_sidecars(store) if old else frozenset[str]()
    if referenced is None:
        return
    for name in old:
        if name not in referenced:
            store.delete(name)
            yield name


def _referenced_sidecars(store: Store) -> frozenset[str] | None:
    """The existing sidecars that the checkpoints name; None where a checkpoint cannot be read."""
    try:
        checkpoints = checkpoints_in(store.list_from(first_name(0)))
        referenced = frozenset(name for c in checkpoints for name in Checkpoint(store, c).sidecars())
        lost = referenced - {entry.name for entry in store.list_from(f"{SIDECARS}/")}
        if not lost:
            return referenced
        _logger.warning("sidecars of %s are kept, since one of them is missing: %s", store.url, min(lost))
        return None
    except AnabranchError as error:
        _logger.warning("sidecars of %s are kept, since a checkpoint cannot be read: %s", store.url, error)
        return None
