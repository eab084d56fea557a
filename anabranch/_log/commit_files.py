"""Commit files in the store, read whole, or by ranges where one is long.

Knows names, sizes and bytes, not the content of the lines. Guarantees: readers get whole lines, and all of them in
order; of a long file only a few ranges are in memory; and the bytes are those of the listed file: where it was replaced
meanwhile, that is an error, never a mixture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from anabranch._log.file_names import commit_name, commit_version, compacted_range
from anabranch._log.size_limits import check_size, whole
from anabranch._storage.contract import Entry, Store
from anabranch._storage.local import LocalStore
from anabranch.errors import CorruptLog, NotFound

_READERS = 16
_MIN_PARALLEL = 3
"""Minimum number of commits that are read in parallel."""
LONG_BYTES = 32 << 20
"""Size in bytes above which a file is read by ranges, once for its head and once for its files."""
NEAR_BYTES, FAR_BYTES = 2 << 20, 16 << 20
"""Size of a range on a disk, which stays in the processor's cache while it is parsed, and over a network."""


@dataclass(frozen=True)
class LongFile:
    """A file of lines that is not held in memory; each use of `parts` reads it again."""

    store: Store
    entry: Entry

    def __len__(self) -> int:
        return self.entry.size

    def parts(self) -> Iterator[bytes]:
        """The file in parts of whole lines. Raises CorruptLog: it was removed or replaced."""
        partial: list[bytes] = []
        for data in self._ranges(NEAR_BYTES if isinstance(self.store, LocalStore) else FAR_BYTES):
            end = data.rfind(b"\n") + 1
            if end:
                yield b"".join([*partial, memoryview(data)[:end]])
                partial = []
            partial.append(data[end:])
        if any(partial):
            yield b"".join(partial)

    def _ranges(self, length: int) -> Iterator[bytes]:
        """The bytes, read one range ahead. The last range comes only if the file is still the same."""
        starts = range(0, self.entry.size, length)
        with ThreadPoolExecutor(1, thread_name_prefix="anabranch-ranges") as pool:
            next_read = pool.submit(self._range, starts[0], length)
            for start in starts[1:]:
                data, next_read = next_read.result(), pool.submit(self._range, start, length)
                yield data
            data = next_read.result()
            self._check_unchanged()
            yield data

    def _range(self, start: int, length: int) -> bytes:
        length = min(length, self.entry.size - start)
        try:
            data = self.store.read_range(self.entry.name, start, length)
        except NotFound:
            raise file_gone_error(self.store, self.entry) from None
        if len(data) < length:
            raise self._replaced_error()
        return data

    def _check_unchanged(self) -> None:
        current = self.store.head(self.entry.name)
        if current is None:
            raise file_gone_error(self.store, self.entry)
        if (current.size, current.etag) != (self.entry.size, self.entry.etag):
            raise self._replaced_error()

    def _replaced_error(self) -> CorruptLog:
        reason = "another file was put in its place while it was read."
        return CorruptLog(table=self.store.url, file=self.entry.name, reason=reason)


@dataclass(frozen=True)
class Raw:
    """A commit file from the store; ``identity`` (size, etag) distinguishes it from another one of the same name.

    ``name`` is set for other files of such lines: a log compaction, or a checkpoint in JSON.
    """

    version: int
    data: bytes | LongFile
    timestamp: int = 0
    identity: tuple[int, str | None] = (0, None)
    name: str | None = None

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.name or commit_name(self.version)

    def parts(self) -> Iterator[bytes]:
        """The file in parts of whole lines, as few as memory allows; an empty file is one empty part. Raises
        CorruptLog: as `LongFile.parts`.
        """
        if isinstance(self.data, bytes):
            yield self.data
        else:
            yield from self.data.parts()

    def lines(self) -> Iterator[bytes]:
        """The lines, without their ends."""
        for part in self.parts():
            yield from part.removesuffix(b"\n").split(b"\n")


def content_of(store: Store, entry: Entry) -> bytes | LongFile:
    """The content of a listed file of JSON lines.

    Raises:
        CorruptLog: it is larger than the setting allows, or than memory.
        NotFound: it does not exist, or was replaced.
    """
    if entry.size <= LONG_BYTES:
        return whole(store, entry)
    check_size(store, entry)
    return LongFile(store, entry)


def file_gone_error(store: Store, entry: Entry) -> CorruptLog:
    """The error for a listed file of the log that no longer exists."""
    reason = "the file was removed, or another one put in its place, while it was read."
    return CorruptLog(table=store.url, file=entry.name, reason=reason)


def read_commit(store: Store, entry: Entry) -> Raw:
    """Read a listed commit file or log compaction file. Raises CorruptLog: the file was removed or replaced after it
    was listed, or it is too large.
    """
    version = commit_version(entry.name)
    if version is None:
        version = (compacted_range(entry.name) or (0, 0))[1]
    try:
        data = content_of(store, entry)
    except NotFound:
        raise file_gone_error(store, entry) from None
    return Raw(version, data, entry.modified_ms, (entry.size, entry.etag), entry.name)


def read_commits(store: Store, entries: Sequence[Entry]) -> list[Raw]:
    """Read several such files, in their order; in parallel from a store behind a network. Raises CorruptLog: as
    `read_commit`.
    """
    if len(entries) < _MIN_PARALLEL or isinstance(store, LocalStore):
        return [read_commit(store, entry) for entry in entries]
    with ThreadPoolExecutor(min(_READERS, len(entries)), thread_name_prefix="anabranch-commits") as pool:
        return list(pool.map(lambda entry: read_commit(store, entry), entries))
