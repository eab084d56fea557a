"""Presence: whether the files that a log names are there.

Knows where data files and files of vectors lie, also those outside the table's folder, as of a clone. Guarantee: what
is called absent was asked for by name, and the store said that there is no such name; whatever else goes wrong while
looking is raised, so that a store out of reach never makes a file look lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from anabranch._log.file_locations import locate_in_store
from anabranch._log.vectors import vector_location
from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch._storage.contract import Store
from anabranch._storage.told import bind_context
from anabranch._transaction.conflict_errors import Conflict
from anabranch.commands.watching import track_progress
from anabranch.errors import ConcurrentWriteException, CorruptLog, CorruptVector

_LOOKERS = 16
_CHUNK = 4096


@dataclass(frozen=True)
class Absent:
    """A file of the log that cannot be read, since a file that belongs to it is not there.

    Attributes:
        path: of the data file, as the log has it.
        data: whether that is missing.
        vector: where its deletion vector lies, None where it has none or the log holds it.
        vector_missing: whether that file is missing.
    """

    path: str
    data: bool
    vector: str | None
    vector_missing: bool

    @property
    def missing(self) -> str:
        """The file that is not there; of two the data file."""
        return self.path if self.data or self.vector is None else self.vector


def absent(store: Store, files: pa.Table) -> list[Absent]:
    """Those of these files (`FILES`) of which the data file or the file of the vector is not there.

    Raises:
        StoreError: the store did not say whether a name is there. UnknownStore: a location names no store.
        CorruptLog, CorruptVector: the log names something that is no file of any table.
        FileOutsideTable: it names a file on a store that is neither the table's own nor allowed.
    """
    there = _Known(store)
    with ThreadPoolExecutor(_LOOKERS) as pool:
        looks = track_progress("files looked for", _rows(files, pool, there), len(files))
        return [found for found in looks if found is not None]


def came_back(store: Store, files: pa.Table) -> Conflict | None:
    """The conflict if one of these files (`FILES`), which were absent, can be read again: its rows count. Raises as
    `absent`.
    """
    still = {each.path for each in absent(store, files)}
    back = next((row for row in files.to_pylist() if row["path"] not in still), None)
    said = "a file that was missing is there again"
    return None if back is None else Conflict(ConcurrentWriteException, "WITHOUT_HINT", said, None, back)


def _rows(files: pa.Table, pool: ThreadPoolExecutor, there: _Known) -> Iterator[Absent | None]:
    named = files.select(["path", "deletionVector"])
    for start in range(0, len(named), _CHUNK):
        yield from pool.map(bind_context(there.look), named.slice(start, _CHUNK).to_pylist())


class _Known:
    """Looks for files; a file that holds the vectors of many is asked for once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._vectors: dict[tuple[str, str], bool] = {}

    def look(self, file: FileRow) -> Absent | None:
        data = not self._is_there(*locate_in_store(self._store, file["path"]))
        vector, missing = self._vector(file)
        return Absent(file["path"], data, vector, missing) if data or missing else None

    def _vector(self, file: FileRow) -> tuple[str | None, bool]:
        row = file.get("deletionVector")
        if row is None or row["storageType"] == "i":
            return None, False
        try:
            where, name = vector_location(self._store, Descriptor.from_row(row))
        except CorruptLog as error:
            raise CorruptVector(table=self._store.url, file=file["path"], reason=error.facts["reason"]) from None
        except ValueError as error:
            raise CorruptVector(table=self._store.url, file=file["path"], reason=f"{error}.") from None
        shown = name if where is self._store else f"{where.url}/{name}"
        key = (where.url, name)
        if key not in self._vectors:
            self._vectors[key] = self._is_there(where, name)
        return shown, not self._vectors[key]

    @staticmethod
    def _is_there(store: Store, name: str) -> bool:
        return store.head(name) is not None
