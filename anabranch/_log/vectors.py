"""Reads deletion vectors from the store.

Knows where a descriptor's bytes are. Guarantee: a vector is returned only when its checksum, magic number and
cardinality are right; vectors are immutable once logged, so small ones are cached and shared.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.file_locations import locate_in_store
from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.deletion_vectors import Descriptor, UnknownStorage, inline, unframe
from anabranch._protocol.stats.statistics import num_records
from anabranch._storage.contract import Store
from anabranch.errors import CorruptLog, CorruptVector, NotFound, UnknownStore, UnsupportedVector
from anabranch.errors.process_state import cache

KEPT, KEPT_BYTES_EACH = 512, 128 * 1024
"""Maximum number of cached vectors, and the maximum size of one in bytes."""
_kept = cache("deletion vectors", KEPT)


def vector_of(store: Store, file: FileRow) -> BitMap64:
    """The deleted positions of one live file, an empty bitmap if it has no vector. Do not change it in place.

    Raises:
        CorruptVector: the vector's bytes are missing, or differ from the log's description.
        UnsupportedVector: it is stored in a way that is not known here.
        FileOutsideTable: they are on a store that is neither the table's own nor allowed.
    """
    if file.get("deletionVector") is None:
        return BitMap64()
    return load_vector(store, descriptor_of(store.url, file), file["path"], file.get("stats"))


def descriptor_of(table: str, file: FileRow) -> Descriptor:
    """The descriptor of a file's vector, which it must have.

    Raises:
        CorruptVector: the descriptor lacks a field.
        UnsupportedVector: the vector is stored in a way that is not known here.
    """
    try:
        return Descriptor.from_row(file["deletionVector"])
    except UnknownStorage as unknown:
        raise UnsupportedVector(table=table, file=file["path"], storage_type=unknown.storage_type) from None
    except ValueError as error:
        raise CorruptVector(table=table, file=file["path"], reason=f"{error}.") from None


def vectors_of(store: Store, files: pa.Table) -> dict[str, BitMap64]:
    """The vectors of the files of a `FILES` table that have one."""
    if files["deletionVector"].null_count == len(files):
        return {}
    marked = files.select(["path", "deletionVector", "stats"]).filter(pc.is_valid(files["deletionVector"]))
    return {row["path"]: vector_of(store, row) for row in marked.to_pylist()}


def load_vector(store: Store, descriptor: Descriptor, path: str, stats: str | None = None) -> BitMap64:
    """The vector of a descriptor; ``path`` is the data file for errors, ``stats`` have its number of rows."""
    key = (store.url, descriptor.unique_id, descriptor.size, descriptor.cardinality)
    cached: BitMap64 | None = _kept.get(key)
    if cached is not None:
        return cached
    vector = _read(store, descriptor, path)
    _check_inside(vector, store, path, stats)
    if descriptor.size <= KEPT_BYTES_EACH:
        _kept[key] = vector
    return vector


def forget_vectors(table: str | None = None) -> None:
    """Drop the cached vectors of one table, or of all."""
    for key in [key for key in _kept if table in (None, key[0])]:
        _kept.pop(key, None)


def _check_inside(vector: BitMap64, store: Store, path: str, stats: str | None) -> None:
    """Raises for a position outside the file: a vector of another file would hide other rows than were deleted."""
    records = num_records(stats)
    if vector and records is not None and vector.max() >= records:
        reason = f"it deletes the row at position {vector.max()} of a file that has {records} rows."
        raise CorruptVector(table=store.url, file=path, reason=reason)


def _read(store: Store, descriptor: Descriptor, path: str) -> BitMap64:
    try:
        if descriptor.storage_type == "i":
            return inline(descriptor)
        where, name = vector_location(store, descriptor)
        return unframe(where.read_range(name, *descriptor.span), descriptor)
    except NotFound:
        raise CorruptVector(table=store.url, file=path, reason="its file is not there.") from None
    except CorruptLog as error:
        raise CorruptVector(table=store.url, file=path, reason=error.facts["reason"]) from None
    except UnknownStore as error:
        raise CorruptVector(table=store.url, file=path, reason=str(error)) from None
    except ValueError as error:
        raise CorruptVector(table=store.url, file=path, reason=f"{error}.") from None


def vector_location(store: Store, descriptor: Descriptor) -> tuple[Store, str]:
    """The store of a vector's file and its name there; a clone's may be outside the table, and is only read.

    Raises:
        ValueError: the descriptor names no file.
        CorruptLog: it names one that would leave the table's folder.
        FileOutsideTable: it names one on a store that is neither the table's own nor allowed.
        UnknownStore: the location names no store.
    """
    if descriptor.storage_type == "u":
        return store, descriptor.name
    if descriptor.storage_type != "p":
        raise ValueError("it is in the log, and not in a file")
    return locate_in_store(store, descriptor.path_or_inline)
