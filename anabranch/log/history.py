"""History: who did what, from the commits' own provenance (PROTOCOL.md, "Commit Provenance Information")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.log.commits import parse_head
from anabranch.log.log import Log
from anabranch.log.names import commit_version, first_name
from anabranch.log.snapshot import read_commit


@dataclass(frozen=True)
class HistoryEntry:
    """One version as DESCRIBE HISTORY shows it; ``timestamp`` in milliseconds, ``info`` the whole ``commitInfo``."""

    version: int
    timestamp: int
    info: Mapping[str, Any]


def history(log: Log, limit: int | None = None) -> Iterator[HistoryEntry]:
    """The newest versions first, at most ``limit`` of them; those whose commit files were cleaned up are gone."""
    listing = log.store.list_from(first_name(0))
    commits = [entry for entry in listing if commit_version(entry.name) is not None]
    for entry in list(reversed(commits))[:limit]:
        raw = read_commit(log.store, entry)
        info = parse_head(log.table, raw).info
        yield HistoryEntry(raw.version, int(info.get("inCommitTimestamp") or raw.timestamp), info)
