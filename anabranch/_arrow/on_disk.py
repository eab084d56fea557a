"""Brings files to a disk, for what reads and writes them there alone, and what comes of them to the table.

Knows stores and temporary folders; not what is done. Guarantees: files that lie on a disk are used where they are; a
copy is gone when the block ends; what the block has written reaches the table only if the block ends well, and what
reached it in part is removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

import pyarrow as pa

from anabranch._arrow.data_files import locate_files, reading
from anabranch._arrow.site import Site
from anabranch._arrow.writing import undone
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._storage.contract import Store
from anabranch._storage.copying import copy_file
from anabranch._storage.local import LocalStore


@contextmanager
def on_disk(site: Site, files: FileSet, *folders: str | None) -> Iterator[tuple[Site, FileSet]]:
    """Within the block, a site whose files lie on a disk, and the files there. Files that the block leaves in these
    folders of that site are in those of the table when it ends.

    Raises:
        MissingDataFile: one is not there.
        StoreError: one has another size than the log says, or cannot be copied.
        CorruptLog, FileOutsideTable, UnknownStore: as `anabranch._arrow.data_files.data_files`.
        StagedFilesRemain: what was put into the table in part cannot be removed.
    """
    if isinstance(site.store, LocalStore):
        yield site, files
        return
    with TemporaryDirectory(prefix="anabranch-", ignore_cleanup_errors=True) as place:
        disk = LocalStore(place)
        yield replace(site, store=disk), _copy_files(site.store, files, disk)
        with undone(site.store) as names:
            for each in (each for folder in filter(None, folders) for each in disk.list_from(f"{folder}/")):
                names.append(each.name)  # before it is there: of a put that fails there may be something, too
                copy_file(disk, each.name, site.store, each.name, size=each.size)


def _copy_files(store: Store, files: FileSet, disk: LocalStore) -> FileSet:
    """The same files on a disk, under names that are numbers."""
    paths, copies = files.files["path"].to_pylist(), dict[str, str]()
    sizes = files.files["size"].to_pylist()
    for path, size, (where, name) in zip(paths, sizes, locate_files(store, files), strict=True):
        copies[path] = f"{len(copies)}.parquet"
        with reading(files, path):
            copy_file(where, name, disk, copies[path], size=size)
    named = pa.array([copies[path] for path in paths], pa.string())
    told = files.files.set_column(files.files.column_names.index("path"), "path", named)
    return replace(files, files=told, vectors={copies[path]: marks for path, marks in files.vectors.items()})
