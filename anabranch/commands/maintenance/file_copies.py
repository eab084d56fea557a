"""Copies files of one table, with their vectors, into the folder of another, before the commit that references them.

Knows stores, vectors and a job folder. Guarantee: the returned copies are complete and durable, and lie in the job
folder; at most a few chunks of data files are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from pyroaring import BitMap64

from anabranch._log.file_locations import allowed_stores, locate_in_store
from anabranch._log.footers import check_is_parquet
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import descriptor_of, vector_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.cloning import Copy, row_of_copy
from anabranch._protocol.layout.deletion_vectors import Descriptor, pack
from anabranch._protocol.layout.outside_files import locate_file
from anabranch._protocol.layout.paths import encode, is_absolute, split_absolute
from anabranch._storage.contract import Store
from anabranch._storage.copying import copy_file
from anabranch._storage.store_settings import bind_context
from anabranch.commands.staging import Staging
from anabranch.commands.watching import track_progress
from anabranch.errors import (
    CloneRefused,
    MissingDataFile,
    NotFound,
    StagedFilesVacuumed,
    StoreError,
    StorePermissionDenied,
)

_COPIERS = 4
_LOOKERS = 16
_VECTORS_BYTES = 64 << 20
"""Maximum number of bytes of vectors that go into one file and are held in memory."""


def copy_files(source: Snapshot, copies: Sequence[Copy], staging: Staging, new_id: Callable[[], UUID]) -> list[FileRow]:
    """Copies files into the job folder and returns their rows; files that the target has already are not copied again.

    Args:
        source: the pinned version of the source table.
        new_id: makes the ids in the names of vector files.

    Raises:
        MissingDataFile: a file of the source is gone, or has another size. CorruptVector: a vector is gone or damaged.
        CloneRefused: a file is not a Parquet file. FileOutsideTable: it lies on a store that is not allowed.
        StagedFilesVacuumed: a copy is gone already. StoreError: a file could not be read or put.
    """
    keys = len(source.partition_columns)
    names = [_new_name(staging, number, copy, keys) for number, copy in enumerate(copies)]
    with ThreadPoolExecutor(_COPIERS, thread_name_prefix="anabranch-copy") as pool:
        copy_to = bind_context(lambda copy, name: _path_of(source, copy, name, staging))
        paths = list(track_progress("files copied", pool.map(copy_to, copies, names), len(copies)))
    vectors = _copy_vectors(source, copies, staging, new_id)
    times = _times(staging, copies, paths)
    return [
        row_of_copy(copy, path, time, vectors.get(number))
        for number, (copy, path, time) in enumerate(zip(copies, paths, times, strict=True))
    ]


def _times(staging: Staging, copies: Sequence[Copy], paths: Sequence[str]) -> list[int]:
    """When each copy was written, by the store's clock, which the fence and VACUUM use."""
    times = {encode(entry.name): entry.modified_ms for entry in staging.store.list_all(staging.folder + "/")}
    times |= {copy.had["path"]: copy.had["modificationTime"] for copy in copies if copy.had is not None}
    for path in paths:
        if path not in times:
            raise StagedFilesVacuumed(table=staging.store.url, file=path, txn_id=staging.txn_id)
    return [times[path] for path in paths]


def check_files_exist(source: Snapshot, target: Store, files: Sequence[FileRow]) -> None:
    """Raises an error unless these files exist with the size in the log, and the files of their vectors exist. Their
    paths are the target's: absolute, except those of files in its own folder.

    Raises:
        MissingDataFile: one does not; with the version that references it.
        CorruptLog: a path is invalid. FileOutsideTable: a file lies on a store that is not allowed.
    """
    sizes: dict[str, int | None] = {row["path"]: row["size"] for row in files}
    vectors = [descriptor_of(target.url, row) for row in files if row["deletionVector"] is not None]
    sizes |= {vector.path_or_inline: None for vector in vectors if vector.storage_type == "p"}
    for path in sizes:
        locate_file(target.url, path, allowed_stores(target))  # the target's readers will check the same
    with ThreadPoolExecutor(_LOOKERS, thread_name_prefix="anabranch-look") as pool:
        looks = pool.map(bind_context(lambda pair: _look(source, target, *pair)), sizes.items())
        for _ in track_progress("files looked for", looks, len(sizes)):
            pass


def _look(source: Snapshot, target: Store, path: str, size: int | None) -> None:
    store, name = locate_in_store(source.store if is_absolute(path) else target, path)
    entry = store.head(name)
    if entry is None:
        raise _missing(source, path, "is not there")
    if size is not None and entry.size != size:
        raise _missing(source, path, f"has {entry.size} bytes, and not the {size} that the log says")


def _missing(source: Snapshot, path: str, what: str) -> MissingDataFile:
    reason = f"version {source.version} names and which {what}: a VACUUM may have removed it. Nothing was committed"
    return MissingDataFile(table=source.table, file=path, version=source.version, reason=reason)


def _new_name(staging: Staging, number: int, copy: Copy, keys: int) -> str:
    """A name in the job folder, under the folders of the file's partition if it had such."""
    folder = split_absolute(copy.row["path"])[0].split("/")
    inner = folder[-keys:] if keys and all("=" in part for part in folder[-keys:]) else []
    return "/".join([staging.folder, *inner, f"part-{number:05}-{staging.txn_id}.parquet"])


def _path_of(source: Snapshot, copy: Copy, name: str, staging: Staging) -> str:
    """The path of a copy in the log; makes the copy unless the target has it."""
    if copy.had is not None:
        return str(copy.had["path"])
    path, size = copy.row["path"], copy.row["size"]
    store, old = locate_in_store(source.store, path)
    try:
        _check_is_parquet(source, staging, store, old, path, size)
        copy_file(store, old, staging.store, name, size=size)
    except NotFound:
        raise _missing(source, path, "is not there") from None
    except StorePermissionDenied:
        raise
    except StoreError:
        _look(source, staging.store, path, size)  # if the source is intact, the store's error explains the failure
        raise
    return encode(name)


def _check_is_parquet(source: Snapshot, staging: Staging, store: Store, name: str, path: str, size: int) -> None:
    """Raises CloneRefused unless the file is Parquet: a log may name any file of its store."""
    try:
        check_is_parquet(store, name)
    except ValueError:
        _look(source, staging.store, path, size)  # a wrong size has its own error
        reason = f"the data file {path} is no Parquet file."
        raise CloneRefused(source=source.table, table=staging.store.url, reason=reason) from None


def _copy_vectors(
    source: Snapshot, copies: Sequence[Copy], staging: Staging, new_id: Callable[[], UUID]
) -> dict[int, Descriptor]:
    """The vectors of copies, by the copies' numbers; inline vectors stay as they are."""
    copied: dict[int, Descriptor] = {}
    for batch in _batches(source, copies, copied):
        name, data, descriptors = pack(
            {str(number): vector for number, vector in batch.items()}, new_id(), staging.folder
        )
        staging.store.put(name, data)
        copied |= {int(key): descriptor for key, descriptor in descriptors.items()}
    return copied


def _batches(source: Snapshot, copies: Sequence[Copy], inline: dict[int, Descriptor]) -> Iterator[dict[int, BitMap64]]:
    batch: dict[int, BitMap64] = {}
    size = 0
    for number, copy in enumerate(copies):
        if copy.row["deletionVector"] is None:
            continue
        descriptor = descriptor_of(source.table, copy.row)
        if descriptor.storage_type == "i":
            inline[number] = descriptor
            continue
        batch[number] = vector_of(source.store, copy.row)
        size += descriptor.size
        if size >= _VECTORS_BYTES:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch
