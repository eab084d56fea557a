"""The log of the schemas with which a stream reads a table that changes its columns.

Knows a folder of numbered files, one for each change that the stream has met. Guarantee: rows from before a change are
read with the columns from before it; of two queries that note a change at once both go on with the same.

A stream without such a log goes on with the newest columns, also for rows from before a change that it has yet to read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from anabranch.commands.opening import open_log
from anabranch.errors import AlreadyExists, InvalidStreamOffset
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.actions import Metadata
from anabranch.storage import open_store
from anabranch.storage.contract import Store


@dataclass(frozen=True)
class Known:
    """The metadata with which a stream reads on, and the version that it is of."""

    metadata: Metadata
    version: int


class SchemaLog:
    """The log at a location, for one table."""

    def __init__(self, location: str, table_id: str) -> None:
        self._store: Store = open_store(location)
        self._folder = f"_schema_log_{table_id}/"

    def newest(self) -> Known | None:
        """What was noted last; None where nothing was. Raises InvalidStreamOffset: it is damaged."""
        names = [entry.name for entry in self._store.list_from(self._folder) if entry.name.startswith(self._folder)]
        if not names:
            return None
        try:
            said = json.loads(self._store.get(max(names)))
            return Known(Metadata.from_json(said["metaData"]), int(said["version"]))
        except (ValueError, KeyError, TypeError) as error:
            reason = f"the file {max(names)} of its schemas is not as it must be ({error!r})."
            raise InvalidStreamOffset(table=self._store.url, version=0, offset=max(names), reason=reason) from None

    def note(self, known: Known) -> None:
        """Note what the stream reads with from now on, unless that is noted already."""
        last = self.newest()
        if last is not None and last.version >= known.version:
            return
        number = len([entry for entry in self._store.list_from(self._folder) if entry.name.startswith(self._folder)])
        said = {"version": known.version, "metaData": known.metadata.to_json()}
        try:
            self._store.put_if_absent(f"{self._folder}{number:020}.json", json.dumps(said).encode())
        except AlreadyExists:  # another process of the same query noted it first
            self.note(known)


def known_columns(newest: Snapshot, schemas: str | None, start: int | None) -> Known:
    """The columns with which a stream begins, or goes on.

    Args:
        newest: the table as it is now.
        schemas: where the stream notes its columns; None: it reads with the newest.
        start: the version at which it is to begin; None: at the newest.
    """
    if schemas is None:
        return Known(newest.metadata, newest.version)
    log = SchemaLog(schemas, newest.metadata.id)
    if (noted := log.newest()) is not None:
        return noted
    first = newest if start is None or start >= newest.version else open_log(newest.table).snapshot(start)
    log.note(Known(first.metadata, first.version))
    return log.newest() or Known(first.metadata, first.version)
