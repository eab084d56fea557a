"""Copies a file from one store to another of any kind.

Guarantee: a copy is whole and durable once its name exists; only a few chunks of a file are in memory, whatever its
size.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch._storage.contract import Store
from anabranch._storage.objects import ObjectStore
from anabranch.errors import StoreError

CHUNK_BYTES = 8 << 20
"""Bytes per read; where the parts of an upload have this size, 10,000 of them make 80 GB."""


def copy_file(source: Store, name: str, target: Store, new_name: str, *, size: int) -> None:
    """Copy a file of ``size`` bytes to another name; within one bucket the service itself copies.

    Raises:
        NotFound: there is no such source.
        StoreError: it has another size, or cannot be read or put; nothing is left under the new name.
    """
    if isinstance(source, ObjectStore) and isinstance(target, ObjectStore) and target.copy_from(source, name, new_name):
        copied = target.head(new_name)
        try:
            _check(source, name, size, 0 if copied is None else copied.size)
        except BaseException:
            target.delete(new_name)
            raise
        return
    target.put_stream(new_name, _chunks(source, name, size))


def _chunks(source: Store, name: str, size: int) -> Iterator[bytes]:
    """The file in chunks; raises at the end if the size is wrong."""
    read = 0
    while chunk := source.read_range(name, read, CHUNK_BYTES):
        read += len(chunk)
        yield chunk
        if len(chunk) < CHUNK_BYTES:
            break
    _check(source, name, size, read)


def _check(source: Store, name: str, size: int, actual: int) -> None:
    if actual != size:
        reason = f"it has {actual} bytes, and {size} were to be copied."
        raise StoreError(name=name, root=source.url, reason=reason)
