"""The timeline of a table, read from its log: it opens no data file and needs no engine.

Reads the commit files that still exist, in one pass, in batches of `_READ_TOGETHER`. The state before the first of
them comes from the snapshot of that version, where one can be built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.checkpoint_parts import checkpoints_in
from anabranch._log.commit_files import read_commits
from anabranch._log.commits import Commit, parse_commit
from anabranch._log.file_names import first_name
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._log.version_timestamps import Timeline
from anabranch._log.version_timestamps import timeline as line_of
from anabranch._protocol.actions import empty_files
from anabranch._protocol.in_commit_timestamps import IN_COMMIT
from anabranch._protocol.layout import packing
from anabranch._protocol.layout.cubes import Cube, layout
from anabranch._protocol.schema.leaves import format_column_list
from anabranch._transaction.refused_transactions import find_refused
from anabranch._transaction.running_vacuums import END, START, retention_of
from anabranch.commands.context import NEWEST
from anabranch.commands.opening import Location, open_log
from anabranch.commands.queries.timeline.actions import (
    FileActions,
    FreedFiles,
    RunningTotals,
    count_freed,
    file_actions,
)
from anabranch.commands.queries.timeline.advice import Figures, advise
from anabranch.commands.queries.timeline.commit_info import kind_of, parse_commit_info
from anabranch.commands.queries.timeline.entries import Entry, FileChange, Refusal, TableTimeline
from anabranch.commands.queries.timeline.texts import text_of
from anabranch.errors import CorruptLog, InvalidOption, VersionNotFound
from anabranch.errors.secrets import without_secrets

LAST = 10_000
"""Default number of versions to read, counted from the newest."""
_READ_TOGETHER = 256
_MOST_FILES_SHOWN = 20_000
"""Maximum number of files that a timeline names; the newest versions name theirs first."""


def timeline(
    table: Location,
    last: int = LAST,
    *,
    storage_options: Mapping[str, str] | None = None,
    now_ms: int | None = None,
) -> TableTimeline:
    """The newest ``last`` versions whose commit files exist.

    Args:
        now_ms: the time from which retention is counted, in milliseconds since 1970; the default is now.

    Raises:
        NotATable: there is no table.
        InvalidOption: ``last`` is no whole number from 1.
        CorruptLog: a commit is damaged.
    """
    if not isinstance(last, int) or isinstance(last, bool) or last < 1:
        raise InvalidOption(option="last", value=last, reason="it takes a whole number from 1.")
    log = open_log(table, storage_options)
    newest = log.snapshot()
    whole = line_of(log.store, newest.metadata)
    places = [place for place, version in enumerate(whole.versions) if version <= newest.version]
    target = packing.target_size(newest.properties, pc.sum(newest.files["size"]).as_py() or 0)
    checkpoints = checkpoint_versions(log)
    all_entries, freed = _entries(log, newest, whole, places[-last:], checkpoints, target // 2)
    entries = _without_many_files(all_entries)
    now = NEWEST.runtime.now_ms() if now_ms is None else now_ms
    refusals = tuple(Refusal(*refusal) for refusal in find_refused(log.table, newest.metadata.id))
    figures = _figures(newest, entries, freed, checkpoints, target, now)
    shown = without_secrets(log.table)
    return TableTimeline(
        table=shown,
        newest=newest.version,
        entries=tuple(entries),
        older=len(places[:-last]),
        small_below=target // 2,
        advice=advise(replace(figures, refused=len(refusals)), shown),
        refusals=refusals,
    )


def checkpoint_versions(log: Log) -> frozenset[int]:
    """The versions that have a complete checkpoint in the log."""
    return frozenset(checkpoint.version for checkpoint in checkpoints_in(log.store.list_from(first_name(0))))


# -- the pass over the commits -----------------------------------------------------------------------------------------


def _entries(
    log: Log, newest: Snapshot, whole: Timeline, places: Sequence[int], checkpoints: frozenset[int], small_below: int
) -> tuple[list[Entry], list[FreedFiles]]:
    """The entry of each version, and the files that its commit freed for VACUUM."""
    running = RunningTotals(small_below)
    versions = [whole.versions[place] for place in places]
    first_known, base = _first_state(log, newest, versions, checkpoints)
    entries, freed_by_version = list[Entry](), list[FreedFiles]()
    for place, commit in zip(places, _commits(log, newest, whole, places), strict=True):
        if not running.known and commit.version == first_known + 1:
            running = RunningTotals(small_below, base)
        actions = file_actions(commit)
        entry = _entry(whole, place, commit, actions, running, commit.version in checkpoints)
        freed_by_version.append(_freed_files(entry.said.operation, actions, running.freed))
        if commit.version == first_known:  # the state after it is known, the state before it is not
            running = RunningTotals(small_below, base)
            entry = replace(entry, totals=running.totals)
        entries.append(entry)
    return entries, freed_by_version


def _freed_files(operation: str | None, actions: FileActions, freed: FreedFiles) -> FreedFiles:
    """The files that a commit freed for VACUUM. FSCK removes files that no longer exist, and the files that a RESTORE
    adds were freed by an earlier commit.
    """
    if operation == "FSCK":
        return FreedFiles()
    if operation != "RESTORE":
        return freed
    restored = count_freed({path: file for _, path, file in actions.adds})
    are_sizes_known = freed.bytes is not None and restored.bytes is not None
    return FreedFiles(freed.files - restored.files, freed.bytes - restored.bytes if are_sizes_known else None)  # type: ignore[operator]


def _first_state(
    log: Log, newest: Snapshot, versions: Sequence[int], checkpoints: Iterable[int]
) -> tuple[int, pa.Table]:
    """The oldest version from which the totals are known without a gap, and its live files."""
    whole = _last_run(versions)
    if not whole:
        return newest.version, newest.files
    if whole[0] == 0:
        return -1, empty_files()
    for version in (whole[0] - 1, *sorted(version for version in checkpoints if version >= whole[0])):
        try:
            return version, log.snapshot(version).files
        except (VersionNotFound, CorruptLog):
            continue
    return newest.version, newest.files


def _last_run(versions: Sequence[int]) -> Sequence[int]:
    """The consecutive versions at the end, after the last gap."""
    start = len(versions) - 1
    while start > 0 and versions[start - 1] == versions[start] - 1:
        start -= 1
    return versions[max(start, 0) :]


def _commits(log: Log, newest: Snapshot, whole: Timeline, places: Sequence[int]) -> Iterator[Commit]:
    for start in range(0, len(places), _READ_TOGETHER):
        some = [whole.entries[place] for place in places[start : start + _READ_TOGETHER]]
        for raw in read_commits(log.store, some):
            yield parse_commit(log.table, raw, newest.partition_keys)


def _entry(
    whole: Timeline, place: int, commit: Commit, actions: FileActions, running: RunningTotals, is_checkpoint: bool
) -> Entry:
    head = commit.head
    did = running.after(actions, change_files=commit.has_change_feed)
    commit_timestamp = head.info.get(IN_COMMIT) if place >= whole.first_in_commit_place else None
    return Entry(
        version=commit.version,
        timestamp=int(whole.file_times_ms[place] if commit_timestamp is None else commit_timestamp),
        kind=kind_of(head, adds=bool(actions.adds), removes=bool(actions.removes), changes_data=actions.changes_data),
        bytes=len(commit.raw.data),
        said=parse_commit_info(head.info),
        did=did,
        streams=tuple(
            (text_of(application.app_id, 200) or "", application.version) for application in head.app_transactions
        ),
        is_checkpoint=is_checkpoint,
        totals=running.totals,
    )


def _without_many_files(entries: list[Entry]) -> list[Entry]:
    """The entries; only the newest ones name their files, up to `_MOST_FILES_SHOWN` in all."""
    remaining, newest_first = _MOST_FILES_SHOWN, []
    for entry in reversed(entries):
        shown: tuple[FileChange, ...] = entry.did.files if len(entry.did.files) <= remaining else ()
        remaining -= len(shown)
        newest_first.append(entry if shown == entry.did.files else replace(entry, did=replace(entry.did, files=shown)))
    return newest_first[::-1]


# -- figures -----------------------------------------------------------------------------------------------------------


def _figures(
    newest: Snapshot,
    entries: Sequence[Entry],
    freed: Sequence[FreedFiles],
    checkpoints: Iterable[int],
    target: int,
    now_ms: int,
) -> Figures:
    packable, packed = _count_packable(newest, target)
    removed = _count_vacuumable(entries, freed, now_ms, newest.properties.tombstone_retention_ms)
    with_base = [entry for entry in entries if entry.said.base is not None]
    return Figures(
        totals=entries[-1].totals if entries and entries[-1].version == newest.version else None,
        packable=packable,
        packed=packed,
        behind=newest.version - max(checkpoints, default=-1) - (0 if checkpoints else 1),
        checkpoint_interval=newest.properties.checkpoint_interval,
        removed_files=removed.files,
        removed_bytes=removed.bytes,
        commits=len(with_base),
        raced=sum((entry.said.base or 0) < entry.version - 1 for entry in with_base),
    )


def _count_packable(newest: Snapshot, target: int) -> tuple[int, int]:
    """The number of files that OPTIMIZE would rewrite, and the number that it would write."""
    if not newest.clustering_columns:
        bins = packing.plan(newest.files, target)
        return sum(map(len, bins)), len(bins)
    cube = Cube(tuple(format_column_list([column]) for column in newest.clustering_columns), "hilbert")
    groups = layout(newest.files, cube, target)
    return sum(len(group.files) for group in groups), sum(group.outputs for group in groups)


def _count_vacuumable(
    entries: Sequence[Entry], freed: Sequence[FreedFiles], now_ms: int, retention_ms: int
) -> FreedFiles:
    """The files removed before the retention time and after the cutoff of the last VACUUM. Subtracts files that a
    RESTORE brought back, whenever it did, so the figures tend to be too small.
    """
    already_vacuumed_ms = _last_vacuum_cutoff_ms(entries, retention_ms)
    old = [
        freed_files
        for entry, freed_files in zip(entries, freed, strict=True)
        if already_vacuumed_ms < entry.timestamp and (entry.timestamp <= now_ms - retention_ms or freed_files.files < 0)
    ]
    sizes = [part.bytes for part in old]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    return FreedFiles(sum(part.files for part in old), total)


def _last_vacuum_cutoff_ms(entries: Sequence[Entry], default_ms: int) -> int:
    """The cutoff of the last completed VACUUM: it deleted what commits had removed until then. 0 if none is known."""
    ends = [place for place, entry in enumerate(entries) if entry.said.operation == END]
    before = entries[: ends[-1]] if ends else ()
    start = next((entry for entry in reversed(before) if entry.said.operation == START), None)
    if start is None:
        return entries[ends[-1]].timestamp - default_ms if ends else 0
    retained = retention_of(start.said.parameters)
    return start.timestamp - (default_ms if retained is None else retained)
