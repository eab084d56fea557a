"""The log of the schemas with which a stream reads a table that changes its columns.

Knows a folder of numbered files, one per change that the stream has met. Guarantee: rows from before a change are read
with the columns from before it; of two queries that record a change at once both continue with the same; an entry is
trusted only if the table's own log agrees.

A stream without such a log uses the newest columns, also for rows from before a change that it has not read yet.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from anabranch._log.size_limits import hint
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata
from anabranch._protocol.rules.identity import same_but_marks
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch.commands.opening import open_log
from anabranch.errors import AlreadyExists, InvalidSchema, InvalidStreamOffset, VersionNotFound
from anabranch.errors.rows import cause

_DIGITS = 20
_NAME = re.compile(rf"\d{{{_DIGITS}}}\.json", re.ASCII)


@dataclass(frozen=True)
class StreamColumns:
    """The metadata with which a stream reads, and its version."""

    metadata: Metadata
    version: int


class SchemaLog:
    """The log at a location, for one table."""

    def __init__(self, location: str, table_id: str) -> None:
        self._store: Store = open_store(location)
        self._table_id, self._folder = table_id, f"_schema_log_{table_id}/"

    def newest(self) -> StreamColumns | None:
        """The last entry; None if there is none. Raises InvalidStreamOffset: it is damaged."""
        numbers = self._numbers()
        if not numbers:
            return None
        name = self._name(max(numbers))
        try:
            entry = json.loads(hint(self._store, name))
            columns = StreamColumns(Metadata.from_json(entry["metaData"]), entry["version"])
            if type(columns.version) is not int or columns.version < 0 or columns.metadata.id != self._table_id:
                raise ValueError("it is of no version of this table")
            _ = columns.metadata.schema  # parsed here for the first time
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSchema) as error:
            raise self.file_error(max(numbers), f"is malformed ({type(error).__name__})") from cause(error)
        return columns

    def file_error(self, number: int, problem: str) -> InvalidStreamOffset:
        """The error for one of its files."""
        name = self._name(number)
        return InvalidStreamOffset(
            table=self._store.url, version=0, offset=name, reason=f"the file {name} of its schemas {problem}."
        )

    def check(self, columns: StreamColumns, newest: Snapshot) -> None:
        """Raises InvalidStreamOffset unless the last entry agrees with the table's version; a version that was cleaned
        up is not checked.
        """
        log = open_log(newest.table)
        try:
            then = newest if newest.version == columns.version else log.snapshot(columns.version)
        except VersionNotFound:
            if columns.version <= log.snapshot().version:
                return
            raise self.file_error(
                max(self._numbers()), f"is of version {columns.version}, which does not exist"
            ) from None
        is_same = _read_with(then.metadata) == _read_with(columns.metadata)
        if not is_same and not same_but_marks(then.metadata, columns.metadata):
            raise self.file_error(max(self._numbers()), f"does not have the columns of version {columns.version}")

    def note(self, columns: StreamColumns) -> None:
        """Records the columns of the stream from now on, unless they are recorded already.

        Raises:
            InvalidStreamOffset: the last file is damaged, or has the highest possible number.
        """
        data = json.dumps({"version": columns.version, "metaData": columns.metadata.to_json()}).encode()
        number = 0
        while (last := self.newest()) is None or last.version < columns.version:
            number = max(number, *(last_number + 1 for last_number in self._numbers()), 0)
            if number == 10**_DIGITS:
                raise self.file_error(number - 1, "has the highest number possible")
            try:
                self._store.put_if_absent(self._name(number), data)
            except AlreadyExists:  # another process of the query was faster, or it is no file
                number += 1

    def _name(self, number: int) -> str:
        return f"{self._folder}{number:0{_DIGITS}}.json"

    def _numbers(self) -> list[int]:
        names = (entry.name.removeprefix(self._folder) for entry in self._store.list_from(self._folder))
        return [int(name[:-5]) for name in names if _NAME.fullmatch(name)]


def _read_with(metadata: Metadata) -> tuple[object, ...]:
    """The metadata that matters to a stream."""
    return (metadata.schema_string, metadata.partition_columns, dict(metadata.configuration))


def starting_columns(newest: Snapshot, schemas: str | None, start: int | None) -> StreamColumns:
    """The columns with which a stream begins, or continues, as far as its options determine; without an entry in the
    log, its source knows more (`anabranch._streaming.source`), and records it.

    Args:
        newest: the newest version of the table.
        schemas: the location of the schema log; None: the stream reads with the newest columns.
        start: the version at which it begins; None: at the newest.

    Raises:
        InvalidStreamOffset: the last entry is damaged, or not of this table's history.
    """
    if schemas is None:
        return StreamColumns(newest.metadata, newest.version)
    log = SchemaLog(schemas, newest.metadata.id)
    if (recorded := log.newest()) is not None:
        log.check(recorded, newest)
        return recorded
    first = newest if start is None or start >= newest.version else open_log(newest.table).snapshot(start)
    return StreamColumns(first.metadata, first.version)
