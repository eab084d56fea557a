"""What a table's metadata was in the meantime: all that commits between two versions have said.

Knows the commits of one log, not rows. Reads each of them once: meant for what is rare. Guarantee: a commit that is
there and cannot be read is an error, never passed over.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from anabranch._log.commit_files import read_commit
from anabranch._log.commits import parse_head
from anabranch._log.snapshot import Snapshot
from anabranch._log.timeline import timeline
from anabranch._protocol.actions import Metadata
from anabranch._storage.contract import Entry

_READERS = 8


def metadata_between(base: Snapshot, target: Snapshot) -> tuple[Metadata, ...]:
    """The metadata that commits behind ``target`` have brought, up to ``base``, oldest first. Raises CorruptLog: a
    commit cannot be read.
    """
    line = timeline(base.store, base.metadata)
    entries = [
        entry
        for version, entry in zip(line.versions, line.entries, strict=True)
        if target.version < version <= base.version
    ]

    def read_metadata(entry: Entry) -> Metadata | None:
        return parse_head(base.table, read_commit(base.store, entry)).metadata

    with ThreadPoolExecutor(_READERS) as pool:
        return tuple(each for each in pool.map(read_metadata, entries) if each is not None)
