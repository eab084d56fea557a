"""The history of a table, from the provenance in its commits (PROTOCOL.md, "Commit Provenance Information")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch._log.commit_files import read_commit
from anabranch._log.commits import parse_head
from anabranch._log.log import Log
from anabranch._log.version_timestamps import timeline
from anabranch._protocol.actions import Metadata
from anabranch._protocol.in_commit_timestamps import IN_COMMIT


@dataclass(frozen=True)
class HistoryEntry:
    """One version as in DESCRIBE HISTORY; ``timestamp`` in milliseconds, ``info`` is the whole ``commitInfo``."""

    version: int
    timestamp: int
    info: Mapping[str, Any]


def history(log: Log, limit: int | None = None, metadata: Metadata | None = None) -> Iterator[HistoryEntry]:
    """The newest versions first, at most ``limit``, with the timestamps of time travel; versions whose commit files
    were cleaned up are missing. The newest ``metadata`` determines which commits have in-commit timestamps.
    """
    commits = timeline(log.store, metadata)
    for position in list(range(len(commits)))[::-1][:limit]:
        raw = read_commit(log.store, commits.entries[position])
        info = parse_head(log.table, raw).info
        stated = info.get(IN_COMMIT) if position >= commits.first_in_commit_place else None
        yield HistoryEntry(raw.version, int(commits.file_times_ms[position] if stated is None else stated), info)
