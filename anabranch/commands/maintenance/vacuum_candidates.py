"""The candidates of VACUUM: all files of the folder or, for LITE, the files that commits removed.

Knows the store's listing and the log's commits; decides nothing. Guarantee: every candidate existed before the VACUUM
announced itself, so files that a writer puts later are never among them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from anabranch._log.log import Log
from anabranch._log.size_limits import hint
from anabranch._log.snapshot import Snapshot
from anabranch._log.version_timestamps import Timeline, timeline
from anabranch._protocol.layout.paths import is_text
from anabranch._storage.contract import Entry, Store
from anabranch._storage.trees import is_link, tree
from anabranch.commands.maintenance.vacuum_retained import (
    HiddenNames,
    find_removed_files,
    first_since,
    folders_of,
    running_jobs,
    tables_around,
    tables_inside,
)
from anabranch.errors import CorruptLog, LiteVacuumImpossible, NotFound

LAST = "_delta_log/_last_vacuum_info"
"""The file in which delta-spark records up to which version the last VACUUM processed the log."""

_VERSION = "latestCommitVersionOutsideOfRetentionWindow"


@dataclass(frozen=True)
class Candidates:
    """What VACUUM may remove, unless a retained version needs it.

    Attributes:
        files: the files that exist.
        folders: the folders that exist, if the store has folders.
        directories: number of folders.
        running: the jobs that showed a sign of life; None: jobs do not matter.
        others: folders of other tables.
        through: the version up to which every remove is older than ``cutoff_ms``; None: no remove is.
    """

    files: Sequence[Entry]
    folders: Sequence[str]
    directories: int
    running: frozenset[str] | None
    others: tuple[str, ...]
    through: int | None
    cutoff_ms: int

    def correct_through(self, snapshot: Snapshot, cutoff_ms: int) -> int | None:
        """``through`` for the corrected cutoff: this machine's clock may have been ahead."""
        if self.through is None or cutoff_ms >= self.cutoff_ms:
            return self.through
        through = _through(timeline(snapshot.store, snapshot.metadata), cutoff_ms)
        return None if through is None else min(through, self.through)


def candidates_in_folder(
    snapshot: Snapshot, hidden: HiddenNames, cutoff_ms: int, alive_since_ms: int, threads: int
) -> Candidates:
    """Everything below the table's root that is not hidden and whose name a log can hold. Raises StoreError: a folder
    could not be listed.
    """
    listing = tree(snapshot.store, hidden.skips, threads)
    files, folder_names = [file for file in listing.files if is_text(file.name)], [*filter(is_text, listing.folders)]
    all_folders = set(folder_names) or folders_of(files)
    running = running_jobs(files, alive_since_ms)
    through = _through(timeline(snapshot.store, snapshot.metadata), cutoff_ms)
    return Candidates(files, folder_names, len(all_folders) + 1, running, tables_inside(listing), through, cutoff_ms)


def candidates_in_log(log: Log, snapshot: Snapshot, cutoff_ms: int, threads: int) -> Candidates:
    """The files that commits removed before the cutoff and that no VACUUM has processed yet.

    Raises:
        LiteVacuumImpossible: some of these commits were cleaned up.
        CorruptLog: a commit cannot be read.
    """
    line = timeline(log.store, snapshot.metadata)
    through, vacuumed_through = _through(line, cutoff_ms), last_version(log.store)
    earliest = line.versions[0] if len(line) else snapshot.version + 1
    if earliest > 0 and (vacuumed_through is None or vacuumed_through < earliest - 1):
        needed = 0 if vacuumed_through is None else vacuumed_through + 1
        raise LiteVacuumImpossible(table=log.table, needed=needed, earliest=earliest)
    names: dict[str, int] = {}
    for version in range(
        earliest if vacuumed_through is None else max(vacuumed_through + 1, earliest),
        (-1 if through is None else through) + 1,
    ):
        commit = log.read(version, snapshot.partition_keys)
        if commit is None:
            raise CorruptLog(
                table=log.table, file=f"version {version}", reason="it was removed while VACUUM read the log."
            )
        try:
            names |= find_removed_files(log.table, commit)
        except ValueError as error:
            raise CorruptLog(table=log.table, file=commit.raw.file, reason=f"{error}.") from None
    with ThreadPoolExecutor(threads, thread_name_prefix="anabranch-head") as pool:
        heads = [entry for entry in pool.map(log.store.head, sorted(names)) if entry is not None]
        files = [entry for entry in heads if not is_link(log.store, entry.name)]
        folders = folders_of(files)
        others = tables_around(log.store, folders, HiddenNames.of(snapshot), pool)
    return Candidates(files, (), len(folders) + 1, None, others, through, cutoff_ms)


def _through(line: Timeline, cutoff_ms: int) -> int | None:
    first_retained = first_since(line, cutoff_ms)
    return line.versions[first_retained - 1] if first_retained else None


def last_version(store: Store) -> int | None:
    """The version up to which the last VACUUM processed the log; None if it is not recorded."""
    try:
        version = json.loads(hint(store, LAST)).get(_VERSION)
    except (NotFound, ValueError, AttributeError, RecursionError):
        return None
    return version if isinstance(version, int) else None


def record_last_version(store: Store, version: int) -> None:
    """Record how far the log was processed, for the next LITE VACUUM. Raises StoreError: the store refused."""
    recorded = last_version(store)
    if recorded is None or recorded < version:
        store.put(LAST, json.dumps({_VERSION: version}, separators=(",", ":")).encode())
