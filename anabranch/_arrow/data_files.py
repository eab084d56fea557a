"""Opens data files for Arrow: from a local disk by path, from a bucket by ranges.

Knows stores and Parquet's footers. Guarantees: only the footer and the requested chunks of a file in a bucket are
fetched; no file of a set occurs twice.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._arrow.files import leaves_in
from anabranch._arrow.instants import open_parquet
from anabranch._log.file_locations import locate_in_store
from anabranch._log.footers import footer_in, read_tail
from anabranch._log.lazy import lazy
from anabranch._log.row_groups import RowGroups
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._storage.contract import Entry, Store
from anabranch._storage.local import LocalStore
from anabranch._storage.native import file_with
from anabranch.errors import CorruptLog, MissingDataFile, NotFound


@dataclass(frozen=True)
class DataFile:
    """A data file of a table whose footer has been read.

    Attributes:
        log: path of the file, as in the log.
        parquet: the footer, with Arrow's schema.
    """

    log: str
    parquet: pq.ParquetFile = field(repr=False)
    _store: Store = field(repr=False)
    _entry: Entry = field(repr=False)
    _tail: bytes = field(default=b"", repr=False)

    @property
    def footer(self) -> pq.FileMetaData:
        """The footer."""
        return self.parquet.metadata

    @lazy
    def leaves(self) -> dict[str, str]:
        """The paths of its leaves, by those that Spark would give them."""
        return leaves_in(self.parquet)

    def open_row_group(self, group: int, leaves: Sequence[str]) -> pa.NativeFile:
        """Open the file so that these leaves of a row group can be read."""
        if isinstance(self._store, LocalStore):
            return _on_disk(self._store, self._entry.name)
        groups = RowGroups(footer_in(self._tail, self._entry.name), self.footer.num_row_groups)
        groups.check()  # Arrow kills the process if a chunk has another type than its column
        return file_with(self._store, self._entry.name, self._entry.size, groups.spans([group], leaves))


def data_files(store: Store, files: FileSet) -> Iterator[DataFile]:
    """Open the files of a set, one after the other.

    Raises:
        CorruptLog: two paths refer to the same file, or one leaves the table's folder.
        FileOutsideTable, UnknownStore: a file lies on a store that is neither the table's nor allowed, or on none.
        MissingDataFile: a file is missing or cannot be read.
    """
    for path, size, (where, name) in zip(
        *(files.files[column].to_pylist() for column in ("path", "size")), locate_files(store, files), strict=True
    ):
        with reading(files, path):
            opened = _open_file(path, where, Entry(name, size, 0, None))
        yield opened


@contextmanager
def reading(files: FileSet, path: str) -> Iterator[None]:
    """Translate errors of the block, which reads a file of a set, to MissingDataFile: it is missing or cannot be
    read.
    """
    try:
        yield
    except (FileNotFoundError, NotFound):
        raise MissingDataFile(table=files.root, file=path, version=files.version, reason="is not there") from None
    except (pa.ArrowInvalid, OSError) as error:
        why = "is no Parquet file that can be read" if isinstance(error, pa.ArrowInvalid) else "cannot be read"
        reason = f"{why}. Restore it from a copy"
        raise MissingDataFile(table=files.root, file=path, version=files.version, reason=reason) from None


def paths_on_disk(store: Store, files: FileSet) -> list[str | None]:
    """For each file its path on a disk; None if it is not on a disk. Raises as `data_files`, except for missing
    files.
    """
    return [_path(where, name) if isinstance(where, LocalStore) else None for where, name in locate_files(store, files)]


def locate_files(store: Store, files: FileSet) -> Iterator[tuple[Store, str]]:
    """For each file its store and its name there. Raises as `data_files`, except for missing files."""
    seen: dict[tuple[str, str], str] = {}
    for path in files.files["path"].to_pylist():
        where, name = locate_in_store(store, path)
        if (where.url, name) in seen:
            raise CorruptLog(table=files.root, file=path, reason=f"it is the same file as {seen[where.url, name]}.")
        seen[where.url, name] = path
        yield where, name


def _open_file(path: str, store: Store, entry: Entry) -> DataFile:
    if isinstance(store, LocalStore):
        with _on_disk(store, entry.name) as opened:
            return DataFile(path, open_parquet(opened), store, entry)
    tail = read_tail(store, entry)
    return DataFile(path, open_parquet(io.BytesIO(tail)), store, entry, tail)


def _on_disk(store: LocalStore, name: str) -> pa.OSFile:
    """Open a file on a disk. It is not memory-mapped: truncation of a mapped file would kill the process."""
    return pa.OSFile(_path(store, name))


def _path(store: LocalStore, name: str) -> str:
    return f"{store.root.rstrip('/')}/{name}"
