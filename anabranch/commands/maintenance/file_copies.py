"""Copies: files of one table put into another's folder, with their vectors, before the commit that names them.

Knows stores, vectors and a job folder. Guarantee: what is returned is whole and durable, and lies in the job folder; of
data files no more than a few chunks are held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from pyroaring import BitMap64

from anabranch._log.file_locations import allowed_stores, locate_in_store
from anabranch._log.footers import check_is_parquet
from anabranch._log.snapshot import Snapshot
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import FileRow
from anabranch._protocol.cloning import Copy, row_of_copy
from anabranch._protocol.layout.deletion_vectors import Descriptor, pack
from anabranch._protocol.layout.outside_files import locate_file
from anabranch._protocol.layout.paths import encode, is_absolute, outside
from anabranch._storage.contract import Store
from anabranch._storage.copying import copy_file
from anabranch._storage.told import bind_context
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
"""So many bytes of vectors go into one file, and are held at most."""


def copy_files(source: Snapshot, copies: Sequence[Copy], staging: Staging, new_id: Callable[[], UUID]) -> list[FileRow]:
    """The rows of these copies, put into the job folder; files that are had already are not copied again.

    Args:
        source: the pinned version of the table that they come from.
        new_id: names vectors' files.

    Raises:
        MissingDataFile: a file of the source is gone, or not of its size. CorruptVector: a vector is gone or damaged.
        CloneRefused: a file is no Parquet file. FileOutsideTable: it lies on a store that is not allowed.
        StagedFilesVacuumed: a copy is gone already. StoreError: it could not be read or put.
    """
    keys = len(source.partition_columns)
    names = [_new_name(staging, number, each, keys) for number, each in enumerate(copies)]
    with ThreadPoolExecutor(_COPIERS, thread_name_prefix="anabranch-copy") as pool:
        copied_to = bind_context(lambda each, name: _path_of(source, each, name, staging))
        paths = list(track_progress("files copied", pool.map(copied_to, copies, names), len(copies)))
    vectors = _copy_vectors(source, copies, staging, new_id)
    times = _times(staging, copies, paths)
    return [
        row_of_copy(each, path, time, vectors.get(number))
        for number, (each, path, time) in enumerate(zip(copies, paths, times, strict=True))
    ]


def _times(staging: Staging, copies: Sequence[Copy], paths: Sequence[str]) -> list[int]:
    """When each copy was written, by the store's clock, as the fence and VACUUM go by it."""
    known = {encode(each.name): each.modified_ms for each in staging.store.list_all(staging.folder + "/")}
    known |= {each.had["path"]: each.had["modificationTime"] for each in copies if each.had is not None}
    for path in paths:
        if path not in known:
            raise StagedFilesVacuumed(table=staging.store.url, file=path, txn_id=staging.txn_id)
    return [known[path] for path in paths]


def check_there(source: Snapshot, target: Store, files: Sequence[FileRow]) -> None:
    """Raises an error unless these files are there, each of the size that the log says, and those that hold their
    vectors. They are named as the target names them: by absolute paths, but for those that lie in its own folder.

    Raises:
        MissingDataFile: one is not; with the version that names it.
        CorruptLog: a path is not one. FileOutsideTable: a file lies on a store that is not allowed.
    """
    wanted: dict[str, int | None] = {row["path"]: row["size"] for row in files}
    vectors = [Descriptor.from_row(row["deletionVector"]) for row in files if row["deletionVector"] is not None]
    wanted |= {each.path_or_inline: None for each in vectors if each.storage_type == "p"}
    for path in wanted:
        locate_file(target.url, path, allowed_stores(target))  # the target's readers will ask for no less
    with ThreadPoolExecutor(_LOOKERS, thread_name_prefix="anabranch-look") as pool:
        looks = pool.map(bind_context(lambda pair: _look(source, target, *pair)), wanted.items())
        for _ in track_progress("files looked for", looks, len(wanted)):
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
    """A name in the job folder, under the folders of the file's partition, where it lay in such."""
    folder = outside(copy.row["path"])[0].split("/")
    inner = folder[-keys:] if keys and all("=" in part for part in folder[-keys:]) else []
    return "/".join([staging.folder, *inner, f"part-{number:05}-{staging.txn_id}.parquet"])


def _path_of(source: Snapshot, copy: Copy, name: str, staging: Staging) -> str:
    """The path of a copy in the log, which is made unless it is had."""
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
        _look(source, staging.store, path, size)  # where the source is as it should be, the error says what is wrong
        raise
    return encode(name)


def _check_is_parquet(source: Snapshot, staging: Staging, store: Store, name: str, path: str, size: int) -> None:
    """Raises CloneRefused unless what is to be copied is a data file: a log may name any file of its store."""
    try:
        check_is_parquet(store, name)
    except ValueError:
        _look(source, staging.store, path, size)  # a file of another size is told as such
        reason = f"the data file {path} is no Parquet file."
        raise CloneRefused(source=source.table, table=staging.store.url, reason=reason) from None


def _copy_vectors(
    source: Snapshot, copies: Sequence[Copy], staging: Staging, new_id: Callable[[], UUID]
) -> dict[int, Descriptor]:
    """The vectors of copies by their numbers; those that stand in the log itself stay as they are."""
    found: dict[int, Descriptor] = {}
    for batch in _batches(source, copies, found):
        name, data, descriptors = pack({str(number): each for number, each in batch.items()}, new_id(), staging.folder)
        staging.store.put(name, data)
        found |= {int(key): each for key, each in descriptors.items()}
    return found


def _batches(source: Snapshot, copies: Sequence[Copy], found: dict[int, Descriptor]) -> Iterator[dict[int, BitMap64]]:
    batch: dict[int, BitMap64] = {}
    size = 0
    for number, each in enumerate(copies):
        row: dict[str, Any] | None = each.row["deletionVector"]
        if row is None:
            continue
        known = Descriptor.from_row(row)
        if known.storage_type == "i":
            found[number] = known
            continue
        batch[number] = vector_of(source.store, each.row)
        size += known.size
        if size >= _VECTORS_BYTES:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch
