"""Copying: a file from one store to another, whatever keeps the two.

Knows stores only. Guarantee: a copy is whole and durable when it is named, or it is not there; no more than few chunks
of a file are held in memory, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.errors import StoreError
from anabranch.storage.contract import Store
from anabranch.storage.objects import ObjectStore

CHUNK_BYTES = 8 << 20
"""So much is read at a time; where parts of an upload are of this size, 10,000 of them make 80 GB."""


def copy_file(source: Store, name: str, target: Store, new_name: str, *, size: int) -> None:
    """Put a copy of a file, of ``size`` bytes, under another name; within one bucket the service itself copies it.

    Raises:
        NotFound: there is no such source.
        StoreError: it has not that many bytes, or could not be read or put; no part of it stands under the new name.
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
    """The file in chunks; where it is not of the size that it should be, they end in an error."""
    read = 0
    while chunk := source.read_range(name, read, CHUNK_BYTES):
        read += len(chunk)
        yield chunk
        if len(chunk) < CHUNK_BYTES:
            break
    _check(source, name, size, read)


def _check(source: Store, name: str, size: int, found: int) -> None:
    if found != size:
        reason = f"it has {found} bytes, and {size} were to be copied."
        raise StoreError(name=name, root=source.url, reason=reason)
