"""What VACUUM looks at: the whole folder, or, for LITE, the files that the log says were removed.

Knows the store's listing and the log's commits; decides nothing. Guarantee: whatever is found here was there before the
VACUUM announced itself, so that what a writer puts after that is never among it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from anabranch._log.log import Log
from anabranch._log.size_limits import hint
from anabranch._log.snapshot import Snapshot
from anabranch._log.timeline import Timeline, timeline
from anabranch._protocol.layout.paths import is_text
from anabranch._storage.contract import Entry, Store
from anabranch._storage.trees import is_link, tree
from anabranch.commands.maintenance.vacuum_retained import (
    Hidden,
    find_removed_files,
    first_since,
    folders_of,
    running_jobs,
    tables_around,
    tables_inside,
)
from anabranch.errors import CorruptLog, LiteVacuumImpossible, NotFound

LAST = "_delta_log/_last_vacuum_info"
"""How far the log was worked off by the last VACUUM, as delta-spark keeps it."""

_VERSION = "latestCommitVersionOutsideOfRetentionWindow"


@dataclass(frozen=True)
class Found:
    """What may be removed, if nothing holds it.

    Attributes:
        files: that were there.
        folders: likewise, where the store has folders.
        directories: how many there were.
        running: the jobs that showed a sign of life; None: jobs do not matter.
        others: folders of other tables.
        through: the version up to which every remove is older than ``cutoff_ms``; None: not one is.
    """

    files: Sequence[Entry]
    folders: Sequence[str]
    directories: int
    running: frozenset[str] | None
    others: tuple[str, ...]
    through: int | None
    cutoff_ms: int

    def correct_through(self, snapshot: Snapshot, cutoff_ms: int) -> int | None:
        """``through`` for the moment that turned out to be the right one: this clock may have been ahead."""
        if self.through is None or cutoff_ms >= self.cutoff_ms:
            return self.through
        through = _through(timeline(snapshot.store, snapshot.metadata), cutoff_ms)
        return None if through is None else min(through, self.through)


def in_folder(snapshot: Snapshot, hidden: Hidden, cutoff_ms: int, alive_since_ms: int, threads: int) -> Found:
    """Everything below the table's root that is not hidden and that a log can name. Raises StoreError: something could
    not be listed.
    """
    listed = tree(snapshot.store, hidden.skips, threads)
    files, known = [each for each in listed.files if is_text(each.name)], [*filter(is_text, listed.folders)]
    folders = set(known) or folders_of(files)
    running = running_jobs(files, alive_since_ms)
    through = _through(timeline(snapshot.store, snapshot.metadata), cutoff_ms)
    return Found(files, known, len(folders) + 1, running, tables_inside(listed), through, cutoff_ms)


def in_log(log: Log, snapshot: Snapshot, cutoff_ms: int, threads: int) -> Found:
    """The files that commits removed which are older than the retention and that no VACUUM has looked at yet.

    Raises:
        LiteVacuumImpossible: some of these commits were cleaned up.
        CorruptLog: one cannot be read.
    """
    line = timeline(log.store, snapshot.metadata)
    through, done = _through(line, cutoff_ms), last_version(log.store)
    earliest = line.versions[0] if len(line) else snapshot.version + 1
    if earliest > 0 and (done is None or done < earliest - 1):
        needed = 0 if done is None else done + 1
        raise LiteVacuumImpossible(table=log.table, needed=needed, earliest=earliest)
    names: dict[str, int] = {}
    for version in range(
        earliest if done is None else max(done + 1, earliest), (-1 if through is None else through) + 1
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
        others = tables_around(log.store, folders, Hidden.of(snapshot), pool)
    return Found(files, (), len(folders) + 1, None, others, through, cutoff_ms)


def _through(line: Timeline, cutoff_ms: int) -> int | None:
    kept_from = first_since(line, cutoff_ms)
    return line.versions[kept_from - 1] if kept_from else None


def last_version(store: Store) -> int | None:
    """The version up to which the last VACUUM has worked off the log; None where nothing says so."""
    try:
        said = json.loads(hint(store, LAST)).get(_VERSION)
    except (NotFound, ValueError, AttributeError, RecursionError):
        return None
    return said if isinstance(said, int) else None


def remember(store: Store, version: int) -> None:
    """Say how far the log was worked off; only the next LITE goes by it. Raises StoreError: the store refused."""
    known = last_version(store)
    if known is None or known < version:
        store.put(LAST, json.dumps({_VERSION: version}, separators=(",", ":")).encode())
