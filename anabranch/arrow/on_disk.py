"""Brings files to a disk, for what reads and writes them there alone, and what comes of them to the table.

Knows stores and temporary folders; not what is done. Guarantees: files that lie on a disk are used where they are; a
copy is gone when the block ends; what the block has written reaches the table only if the block ends well, and what
reached it in part is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from anabranch.arrow.data_files import located, reading
from anabranch.arrow.site import Site
from anabranch.arrow.writing import undone
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.storage.contract import Store
from anabranch.storage.local import LocalStore

_CHUNK = 8 << 20


@contextmanager
def on_disk(site: Site, files: FileSet, *folders: str | None) -> Iterator[tuple[Site, FileSet]]:
    """Within the block, a site whose files lie on a disk, and the files there. Files that the block leaves in these
    folders of that site are in those of the table when it ends.

    Raises:
        MissingDataFile: one is not there.
        CorruptLog, FileOutsideTable, UnknownStore: as `anabranch.arrow.data_files.data_files`.
        StagedFilesRemain: what was put into the table in part cannot be removed.
    """
    if isinstance(site.store, LocalStore):
        yield site, files
        return
    with TemporaryDirectory(prefix="anabranch-", ignore_cleanup_errors=True) as place:
        yield replace(site, store=LocalStore(place)), _copied(site.store, files, place)
        with undone(site.store) as names:
            for path in (path for folder in filter(None, folders) for path in _left(place, folder)):
                names.append(path)  # before it is there: of a put that fails there may be something, too
                site.store.put_stream(path, _chunks_of(f"{place}/{path}"))


def _copied(store: Store, files: FileSet, place: str) -> FileSet:
    """The same files in a folder, under names that are numbers."""
    paths, copies = files.files["path"].to_pylist(), dict[str, str]()
    sizes = files.files["size"].to_pylist()
    for path, size, (where, name) in zip(paths, sizes, located(store, files), strict=True):
        copies[path] = f"{len(copies)}.parquet"
        with Path(place, copies[path]).open("wb") as copy:
            for start in range(0, size, _CHUNK):
                with reading(files, path):  # what fails as it is written is not the file's fault
                    chunk = where.read_range(name, start, min(_CHUNK, size - start))
                copy.write(chunk)
    named = pa.array([copies[path] for path in paths], pa.string())
    told = files.files.set_column(files.files.column_names.index("path"), "path", named)
    return replace(files, files=told, vectors={copies[path]: marks for path, marks in files.vectors.items()})


def _left(place: str, folder: str) -> list[str]:
    """The files of a folder below a place, which may not be there, as names of the place."""
    inside = Path(place, folder)
    return sorted(f"{folder}/{each.name}" for each in os.scandir(inside) if each.is_file()) if inside.is_dir() else []


def _chunks_of(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
