"""Checks whether the files that a log names exist.

Knows where data files and vector files lie, including those outside the table's folder, as in a clone. Guarantee: a
file is absent only if the store reported for its name that it does not exist; every other failure is raised, so a store
that is out of reach never makes a file look lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from anabranch._log.file_locations import locate_in_store
from anabranch._log.vectors import descriptor_of, vector_location
from anabranch._protocol.actions import FileRow
from anabranch._storage.contract import Store
from anabranch._storage.store_settings import bind_context
from anabranch._transaction.conflict_errors import Conflict
from anabranch.commands.watching import track_progress
from anabranch.errors import ConcurrentWriteException, CorruptLog, CorruptVector

_LOOKERS = 16
_CHUNK = 4096


@dataclass(frozen=True)
class MissingFile:
    """A file of the log that cannot be read because its data file or its vector's file does not exist.

    Attributes:
        path: the path of the data file, as in the log.
        data: whether the data file is missing.
        vector: the location of its deletion vector; None if it has none or an inline one.
        vector_missing: whether the vector's file is missing.
    """

    path: str
    data: bool
    vector: str | None
    vector_missing: bool

    @property
    def missing(self) -> str:
        """The missing file; the data file if both are missing."""
        return self.path if self.data or self.vector is None else self.vector


def find_missing(store: Store, files: pa.Table) -> list[MissingFile]:
    """The files of ``files`` (`FILES`) whose data file or vector file does not exist.

    Raises:
        StoreError: the store could not look up a name. UnknownStore: a location names no store.
        CorruptLog, CorruptVector: the log contains an invalid path. UnsupportedVector: a vector is stored in a way that
            is not known here.
        FileOutsideTable: a file lies on a store that is neither the table's own nor allowed.
    """
    lookup = _Lookup(store)
    with ThreadPoolExecutor(_LOOKERS) as pool:
        looks = track_progress("files looked for", _rows(files, pool, lookup), len(files))
        return [file for file in looks if file is not None]


def reappearance_conflict(store: Store, files: pa.Table) -> Conflict | None:
    """The conflict if one of these files (`FILES`), which were absent, can be read again: its rows must stay. Raises
    the errors of `find_missing`.
    """
    absent_paths = {file.path for file in find_missing(store, files)}
    back = next((row for row in files.to_pylist() if row["path"] not in absent_paths), None)
    explanation = "a file that was missing is there again"
    return None if back is None else Conflict(ConcurrentWriteException, "WITHOUT_HINT", explanation, None, back)


def _rows(files: pa.Table, pool: ThreadPoolExecutor, lookup: _Lookup) -> Iterator[MissingFile | None]:
    references = files.select(["path", "deletionVector"])
    for start in range(0, len(references), _CHUNK):
        yield from pool.map(bind_context(lookup.look), references.slice(start, _CHUNK).to_pylist())


class _Lookup:
    """Looks up files; a file with the vectors of several data files is looked up once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._vectors: dict[tuple[str, str], bool] = {}

    def look(self, file: FileRow) -> MissingFile | None:
        data = not self._is_there(*locate_in_store(self._store, file["path"]))
        vector, missing = self._vector(file)
        return MissingFile(file["path"], data, vector, missing) if data or missing else None

    def _vector(self, file: FileRow) -> tuple[str | None, bool]:
        row = file.get("deletionVector")
        if row is None or row["storageType"] == "i":
            return None, False
        descriptor = descriptor_of(self._store.url, file)
        try:
            vector_store, name = vector_location(self._store, descriptor)
        except CorruptLog as error:
            raise CorruptVector(table=self._store.url, file=file["path"], reason=error.facts["reason"]) from None
        except ValueError as error:
            raise CorruptVector(table=self._store.url, file=file["path"], reason=f"{error}.") from None
        shown = name if vector_store is self._store else f"{vector_store.url}/{name}"
        key = (vector_store.url, name)
        if key not in self._vectors:
            self._vectors[key] = self._is_there(vector_store, name)
        return shown, not self._vectors[key]

    @staticmethod
    def _is_there(store: Store, name: str) -> bool:
        return store.head(name) is not None
