"""Copies files to a local disk for code that works on local files only, and copies its output back to the table.

Knows stores and temporary folders; not the work itself. Guarantees: files that are on a disk are used in place; a copy
is gone when the block ends; output reaches the table only if the block succeeds, and partial output is removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

import pyarrow as pa

from anabranch._arrow.data_files import locate_files, reading
from anabranch._arrow.site import Site
from anabranch._arrow.writing import remove_on_failure
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._storage.contract import Store
from anabranch._storage.copying import copy_file
from anabranch._storage.local import LocalStore


@contextmanager
def on_disk(site: Site, files: FileSet, *folders: str | None) -> Iterator[tuple[Site, FileSet]]:
    """Provide a site whose files are on a disk, and the files there. When the block ends, files that it left in these
    folders of that site are copied to the same folders of the table.

    Raises:
        MissingDataFile: a file is missing.
        StoreError: a file's size differs from the log's, or it cannot be copied.
        CorruptLog, FileOutsideTable, UnknownStore: as `anabranch._arrow.data_files.data_files`.
        StagedFilesRemain: partial output cannot be removed from the table.
    """
    if isinstance(site.store, LocalStore):
        yield site, files
        return
    with TemporaryDirectory(prefix="anabranch-", ignore_cleanup_errors=True) as place:
        disk = LocalStore(place)
        yield replace(site, store=disk), _copy_files(site.store, files, disk)
        with remove_on_failure(site.store) as names:
            for entry in (entry for folder in filter(None, folders) for entry in disk.list_from(f"{folder}/")):
                names.append(entry.name)  # first, because even a put that fails may leave something
                copy_file(disk, entry.name, site.store, entry.name, size=entry.size)


def _copy_files(store: Store, files: FileSet, disk: LocalStore) -> FileSet:
    """Copies of the files on a disk, under numbered names."""
    paths, copies = files.files["path"].to_pylist(), dict[str, str]()
    sizes = files.files["size"].to_pylist()
    for path, size, (where, name) in zip(paths, sizes, locate_files(store, files), strict=True):
        copies[path] = f"{len(copies)}.parquet"
        with reading(files, path):
            copy_file(where, name, disk, copies[path], size=size)
    named = pa.array([copies[path] for path in paths], pa.string())
    copied_files = files.files.set_column(files.files.column_names.index("path"), "path", named)
    return replace(files, files=copied_files, vectors={copies[path]: marks for path, marks in files.vectors.items()})
