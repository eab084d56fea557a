"""Returning files: those that a transaction brings back to a table, and the running VACUUMs that may delete them.

Knows the commits of VACUUMs (`anabranch._transaction.running_vacuums`) and tombstones; not why files come back.
Guarantee: a file that a running VACUUM may delete, by the log, is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from anabranch._log.commit_files import read_commit
from anabranch._log.commits import Commit, parse_head
from anabranch._log.log import Log
from anabranch._log.replay import keys
from anabranch._log.snapshot import Snapshot
from anabranch._log.version_timestamps import in_words, timeline
from anabranch._protocol.actions import FileRow
from anabranch._transaction.conflict_errors import Conflict
from anabranch._transaction.retry import Runtime
from anabranch._transaction.running_vacuums import DEAD_AFTER_MS, Event, event_of, under_way
from anabranch.errors import ConcurrentWriteException

_READERS = 8


class ReturningFiles:
    """The files (`FILES`) that a transaction on a snapshot brings back."""

    def __init__(self, base: Snapshot, files: pa.Table, runtime: Runtime) -> None:
        self._base, self._files, self._runtime = base, files, runtime
        self._known_vacuums: tuple[Event, ...] | None = None

    def conflict(self, winners: Sequence[Commit]) -> Conflict | None:
        """The conflict with a VACUUM, up to the last of ``winners``, that has a START and no END and may delete one of
        the files.
        """
        if not len(self._files):
            return None
        if self._known_vacuums is None:
            self._known_vacuums = tuple(_vacuums_until(self._base))
        winner_events = (event_of(winner.version, winner.timestamp, winner.head.info) for winner in winners)
        events = [*self._known_vacuums, *(event for event in winner_events if event is not None)]
        for vacuum in under_way(events, self._runtime.now_ms()):
            file = next((row for row, removed in self._with_removal_times() if vacuum.may_delete(removed)), None)
            if file is not None:
                return self._conflict(vacuum, file, winners)
        return None

    def _conflict(self, vacuum: Event, file: FileRow, winners: Sequence[Commit]) -> Conflict:
        winner = next((commit for commit in winners if commit.version == vacuum.version), None)
        winner = winner or Log(self._base.store).read(vacuum.version)
        moment = in_words(vacuum.timestamp)
        explanation = (
            f"a VACUUM that began at {moment} has not committed its end, and may delete a file that would come back"
        )
        return Conflict(ConcurrentWriteException, "VACUUM_UNDER_WAY", explanation, winner, file)

    def _with_removal_times(self) -> Iterator[tuple[FileRow, int | None]]:
        """The files, each with the time at which it was removed, if the log still records it."""
        tombstones = self._base.tombstones
        moments = dict(zip(keys(tombstones).to_pylist(), tombstones["deletionTimestamp"].to_pylist(), strict=True))
        names = keys(self._files).to_pylist()
        for name, row in zip(names, self._files.to_pylist(), strict=True):
            yield row, moments.get(name)


def _vacuums_until(snapshot: Snapshot) -> Iterator[Event]:
    """The VACUUM events in commits up to a snapshot, as far back as one may still run, oldest first."""
    line = timeline(snapshot.store, snapshot.metadata)
    oldest = snapshot.timestamp - DEAD_AFTER_MS
    recent = [
        entry
        for version, entry in zip(line.versions, line.entries, strict=True)
        if version <= snapshot.version and entry.modified_ms >= oldest
    ]

    def read_event(entry: Any) -> Event | None:
        raw = read_commit(snapshot.store, entry)
        return event_of(raw.version, raw.timestamp, parse_head(snapshot.table, raw).info)

    with ThreadPoolExecutor(_READERS) as pool:
        yield from (event for event in pool.map(read_event, recent) if event is not None)
