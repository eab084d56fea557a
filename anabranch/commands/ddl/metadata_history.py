"""The history of a table's metadata: all metadata that commits between two versions contain.

Knows the commits of one log, not rows. Reads each of them once, so it suits rare operations. Guarantee: a commit that
exists and cannot be read raises an error.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from anabranch._log.commit_files import read_commit
from anabranch._log.commits import parse_head
from anabranch._log.snapshot import Snapshot
from anabranch._log.version_timestamps import timeline
from anabranch._protocol.actions import Metadata
from anabranch._storage.contract import Entry

_READERS = 8


def metadata_between(base: Snapshot, target: Snapshot) -> tuple[Metadata, ...]:
    """The metadata in commits after ``target`` up to ``base``, oldest first. Raises CorruptLog: one cannot be read."""
    line = timeline(base.store, base.metadata)
    entries = [
        entry
        for version, entry in zip(line.versions, line.entries, strict=True)
        if target.version < version <= base.version
    ]

    def read_metadata(entry: Entry) -> Metadata | None:
        return parse_head(base.table, read_commit(base.store, entry)).metadata

    with ThreadPoolExecutor(_READERS) as pool:
        return tuple(metadata for metadata in pool.map(read_metadata, entries) if metadata is not None)
