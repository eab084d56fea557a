"""The log of the schemas with which a stream reads a table that changes its columns.

Knows a folder of numbered files, one for each change that the stream has met. Guarantee: rows from before a change are
read with the columns from before it; of two queries that note a change at once both go on with the same; what is
noted is believed only as far as the table's own log says the same.

A stream without such a log goes on with the newest columns, also for rows from before a change that it has yet to read.
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
class Known:
    """The metadata with which a stream reads on, and the version that it is of."""

    metadata: Metadata
    version: int


class SchemaLog:
    """The log at a location, for one table."""

    def __init__(self, location: str, table_id: str) -> None:
        self._store: Store = open_store(location)
        self._table_id, self._folder = table_id, f"_schema_log_{table_id}/"

    def newest(self) -> Known | None:
        """What was noted last; None where nothing was. Raises InvalidStreamOffset: it is damaged."""
        numbers = self._numbers()
        if not numbers:
            return None
        name = self._name(max(numbers))
        try:
            said = json.loads(hint(self._store, name))
            known = Known(Metadata.from_json(said["metaData"]), said["version"])
            if type(known.version) is not int or known.version < 0 or known.metadata.id != self._table_id:
                raise ValueError("it is of no version of this table")
            _ = known.metadata.schema  # which is read here for the first time
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSchema) as error:
            raise self.file_error(max(numbers), f"is not as it must be ({type(error).__name__})") from cause(error)
        return known

    def file_error(self, number: int, why: str) -> InvalidStreamOffset:
        """The error for one of its files."""
        name = self._name(number)
        return InvalidStreamOffset(
            table=self._store.url, version=0, offset=name, reason=f"the file {name} of its schemas {why}."
        )

    def check(self, known: Known, newest: Snapshot) -> None:
        """Raises InvalidStreamOffset unless the table had at that version what is noted last; a version that was
        cleaned up is not asked for.
        """
        log = open_log(newest.table)
        try:
            then = newest if newest.version == known.version else log.snapshot(known.version)
        except VersionNotFound:
            if known.version <= log.snapshot().version:
                return
            raise self.file_error(max(self._numbers()), f"is of version {known.version}, which there is not") from None
        is_alike = _read_with(then.metadata) == _read_with(known.metadata)
        if not is_alike and not same_but_marks(then.metadata, known.metadata):
            raise self.file_error(max(self._numbers()), f"has not the columns of version {known.version}")

    def note(self, known: Known) -> None:
        """Note what the stream reads with from now on, unless that is noted already.

        Raises:
            InvalidStreamOffset: the last file is damaged, or has a number behind which there is none.
        """
        data = json.dumps({"version": known.version, "metaData": known.metadata.to_json()}).encode()
        number = 0
        while (last := self.newest()) is None or last.version < known.version:
            number = max(number, *(each + 1 for each in self._numbers()), 0)
            if number == 10**_DIGITS:
                raise self.file_error(number - 1, "has the highest number, so that none can come behind it")
            try:
                self._store.put_if_absent(self._name(number), data)
            except AlreadyExists:  # another process of the same query was faster, or what is there is no file
                number += 1

    def _name(self, number: int) -> str:
        return f"{self._folder}{number:0{_DIGITS}}.json"

    def _numbers(self) -> list[int]:
        names = (entry.name.removeprefix(self._folder) for entry in self._store.list_from(self._folder))
        return [int(name[:-5]) for name in names if _NAME.fullmatch(name)]


def _read_with(metadata: Metadata) -> tuple[object, ...]:
    """What a stream goes by."""
    return (metadata.schema_string, metadata.partition_columns, dict(metadata.configuration))


def starting_columns(newest: Snapshot, schemas: str | None, start: int | None) -> Known:
    """The columns with which a stream begins, or goes on, as far as its options say; where nothing is noted yet its
    source knows more (`anabranch._streaming.source`), and notes it.

    Args:
        newest: the table as it is now.
        schemas: where the stream notes its columns; None: it reads with the newest.
        start: the version at which it is to begin; None: at the newest.

    Raises:
        InvalidStreamOffset: what is noted last is damaged, or not of this table's history.
    """
    if schemas is None:
        return Known(newest.metadata, newest.version)
    log = SchemaLog(schemas, newest.metadata.id)
    if (noted := log.newest()) is not None:
        log.check(noted, newest)
        return noted
    first = newest if start is None or start >= newest.version else open_log(newest.table).snapshot(start)
    return Known(first.metadata, first.version)
