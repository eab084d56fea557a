"""Confirms the list of live files by a second source before anything is deleted.

Knows the log of one version, and nothing of the folder. Guarantee: where `confirm` returns, the snapshot's live files
agree with the sums of the version's checksum file; or with another segment of the log, or an older checksum file and
the commits after it; or, where the log has none of these, with a second read of the same files, every line of which is
known. No file shows that the log once had later versions. Otherwise it refuses, and names the file.

docs/verbs/vacuum.md says the same for users.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow.compute as pc

from anabranch._log.checkpoint_parts import checkpoints_in
from anabranch._log.checksum import Checksum, read_checksum
from anabranch._log.checksum_verifier import same_files
from anabranch._log.commit_files import read_commit
from anabranch._log.file_names import (
    LAST_CHECKPOINT,
    checkpoint_version,
    checksum_name,
    checksum_version,
    commit_name,
    commit_version,
    compacted_range,
    first_name,
)
from anabranch._log.last_checkpoint import read_hint
from anabranch._log.segment import Segment, find_segment
from anabranch._log.snapshot import Snapshot, load_snapshot
from anabranch._protocol.actions import ADDS, DROPS, VECTOR
from anabranch.errors import AnabranchError, LiveFilesNotConfirmed

_KINDS = {"add", "remove", "metaData", "protocol", "txn", "commitInfo", "domainMetadata", "cdc"}
_FIELDS = {"add": set(ADDS.names), "remove": set(DROPS.names)}
_VECTOR = {field.name for field in VECTOR} | {"maxRowIndex"}


def confirm(snapshot: Snapshot) -> None:
    """Raises unless a second source confirms the live files of a snapshot.

    Raises:
        LiveFilesNotConfirmed: another source disagrees, or the log once had later versions.
        CorruptLog: a file of the log that should confirm them is damaged.
        StoreError: the log cannot be read.
    """
    check_end(snapshot)
    _check_unique(snapshot)
    stated = _try_read_checksum(snapshot, snapshot.version)
    _confirm_by_commits(snapshot)
    if stated is None:
        _confirm_by_reading_again(snapshot)
        return
    differences = stated.differs_from(snapshot.files)
    if not stated.describes(snapshot.metadata, snapshot.protocol):
        differences = [*differences, "it states another protocol or metadata"]
    if differences:
        raise _unconfirmed_error(snapshot, checksum_name(snapshot.version), f"{'; '.join(differences)}.")


def check_end(snapshot: Snapshot) -> None:
    """Raises LiveFilesNotConfirmed if a file of the log belongs to a version after the newest commit: one was lost."""
    store, hint = snapshot.store, read_hint(snapshot.store)
    listing = store.list_from(first_name(snapshot.version))
    commits = {commit_version(entry.name) for entry in listing}
    candidates = [
        (name, version)
        for name, version in _versions_in_names(entry.name for entry in listing)
        if version not in commits
    ]
    candidates += [(LAST_CHECKPOINT, hint.version)] if hint is not None and hint.version not in commits else []
    for name, version in candidates:
        if version > snapshot.version and store.head(commit_name(version)) is None:
            reason = f"it refers to version {version}, which has no commit."
            raise _unconfirmed_error(snapshot, name, reason)


def from_other_segment(snapshot: Snapshot, version: int) -> Snapshot | None:
    """The table at a version from a segment without a checkpoint of that version; None where there is none. Raises
    CorruptLog: the segment is damaged.
    """
    own = {c.name for c in checkpoints_in(snapshot.store.list_from(first_name(version)))}
    try:
        segment = find_segment(snapshot.store, version, own)
    except AnabranchError:
        return None
    return load_snapshot(snapshot.store, segment)


def _confirm_by_reading_again(snapshot: Snapshot) -> None:
    """Confirm by reading the version again; every segment of it must give the same files."""
    first = find_segment(snapshot.store, snapshot.version)
    _check_same(snapshot, first)
    if first.checkpoint is not None:
        other = _try_find_segment(snapshot, {first.checkpoint.name})
        if other is not None:
            _check_same(snapshot, other)
    since = max(first.checkpoint.version if first.checkpoint else -1, _last_checksum_version(snapshot, first))
    _check_lines(snapshot, (e for e in first.commits if (commit_version(e.name) or 0) > since))


def _confirm_by_commits(snapshot: Snapshot) -> None:
    """Confirm by the commits alone, or from the oldest checkpoint on: they have paths, where a checksum file only has
    sums, and no later checkpoint or compaction confirms itself.
    """
    names = [c.name for c in checkpoints_in(snapshot.store.list_from(first_name(0)))]
    for but in (set(names), set(names[1:])):
        segment = _try_find_segment(snapshot, but)
        if segment is not None:
            _check_same(snapshot, segment.without_compacted())
            return


def _check_same(snapshot: Snapshot, segment: Segment) -> None:
    files = load_snapshot(snapshot.store, segment).files
    if not same_files(snapshot.files, files):
        name = segment.checkpoint.name if segment.checkpoint else segment.newest.name
        expected = len(snapshot.files)
        reason = (
            f"read from there, the version has {len(files)} live files, which are not the {expected} that are known."
        )
        raise _unconfirmed_error(snapshot, name, reason)


def _try_find_segment(snapshot: Snapshot, but: set[str]) -> Segment | None:
    try:
        return find_segment(snapshot.store, snapshot.version, but)
    except AnabranchError:
        return None  # the commits before the checkpoint were cleaned up


def _last_checksum_version(snapshot: Snapshot, segment: Segment) -> int:
    """The newest version in the segment with a correct checksum file; -1 where there is none."""
    first = segment.checkpoint.version if segment.checkpoint else 0
    names = (entry.name for entry in snapshot.store.list_from(first_name(first)))
    versions = [v for name in names if (v := checksum_version(name)) is not None and v < snapshot.version]
    for version in reversed(versions):
        if _try_read_checksum(snapshot, version) is not None:
            _ = load_snapshot(snapshot.store, find_segment(snapshot.store, version)).files  # verified by it
            return version
    return -1


def _try_read_checksum(snapshot: Snapshot, version: int) -> Checksum | None:
    checksum = read_checksum(snapshot.store, version)
    return checksum if checksum is not None and checksum.metadata.id == snapshot.metadata.id else None


def _check_unique(snapshot: Snapshot) -> None:
    paths = snapshot.files["path"]
    if pc.count_distinct(paths).as_py() != len(paths):
        duplicates = pc.value_counts(paths).filter(pc.greater(pc.value_counts(paths).field("counts"), 1))
        raise _unconfirmed_error(
            snapshot, duplicates[0]["values"].as_py(), "the log has this file live more than once."
        )


def _versions_in_names(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        compacted = compacted_range(name)
        for version in (checksum_version(name), checkpoint_version(name), compacted and compacted[1]):
            if version is not None:
                yield name, version


def _check_lines(snapshot: Snapshot, commits: Iterable[Any]) -> None:
    """Raises if these commits hold an unknown field or action, which may be one whose name was garbled."""
    for entry in commits:
        raw = read_commit(snapshot.store, entry)
        for number, text in enumerate(raw.lines(), start=1):
            unknown = _describe_unknown(text) if text.strip() else None
            if unknown is not None:
                reason = f"line {number} has {unknown}, which is unknown, and no checksum file confirms it."
                raise _unconfirmed_error(snapshot, raw.file, reason)


def _describe_unknown(text: bytes) -> str | None:
    try:
        action = json.loads(text)
    except (ValueError, RecursionError):
        return "something that is no JSON"
    for kind, body in action.items() if isinstance(action, dict) else [("?", None)]:
        if kind not in _KINDS or not isinstance(body, dict):
            return f"an action {kind!r}"
        if kind in _FIELDS:
            vector = body.get("deletionVector") or {}
            fields = (set(body) - _FIELDS[kind]) | (set(vector) - _VECTOR)
            if fields:
                return f"an action {kind} with {sorted(fields)}"
    return None


def _unconfirmed_error(snapshot: Snapshot, file: str, reason: str) -> LiveFilesNotConfirmed:
    return LiveFilesNotConfirmed(table=snapshot.table, file=file, reason=reason)
