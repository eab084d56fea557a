"""The store over a local folder, which may be mounted from a file server.

Knows names, paths and what each ``OSError`` means for a put; the file operations are in ``disk.py``.

It uses plain system calls and not obstore's ``LocalStore``, although that has a put-if-absent, too: it stages, links,
and one of many racing callers wins. But it never calls fsync (observed: its file's blocks are not yet allocated when
the call returns), so a power cut can leave an acknowledged commit missing, or present and empty. It also hides and
refuses names that end in ``#`` and digits, and cannot handle a file server whose reply is lost. Ours writes aside,
fsyncs, links, fsyncs the folder.

A writer that is killed leaves a hidden ``.NAME.ID.tmp`` that no call lists or reads.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from anabranch._storage import disk
from anabranch._storage.contract import Entry, check_folder, check_name
from anabranch.errors import AlreadyExists, NotFound, PutOutcomeUnknown, StoreError, StoreFull, StorePermissionDenied
from anabranch.errors.rows import cause

_Result = TypeVar("_Result")
_DirEntries = list[tuple[str, "os.DirEntry[str]"]]
# A folder is not a name, nor is anything below a file; a circular link names nothing.
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_ATTEMPTS = 5
_FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class LocalStore:
    """A ``Store`` over the folder ``root``, an absolute path; it need not exist yet.

    ``allowed`` names other stores whose files a log in this one may name; the store itself does not use it.

    Only regular files are read, so no pipe and no device; symbolic links to them are followed. Nothing is written,
    deleted or listed through a link to a folder outside the root. Two names for one folder make two stores over the
    same bytes, which is fine.

    Example:
        >>> LocalStore("/data/events").url
        'file:///data/events'
    """

    root: str
    allowed: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def url(self) -> str:
        """``file://`` and the unchanged path; see ``Store.url``."""
        return f"file://{self.root}"

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """See ``Store.get``."""
        with self._reading(name):
            file, status = disk.open_regular_file(self._path(name))
            with file:
                if etag is not None and _etag(status) != etag:
                    raise NotFound(name=name, root=self.url)
                return file.read(status.st_size)  # a file of the kernel's own has no size, and may be endless

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See ``Store.read_range``."""
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        with self._reading(name):
            file, status = disk.open_regular_file(self._path(name))
            with file:
                first = start if start >= 0 else max(0, status.st_size + start)
                file.seek(first)
                return file.read(min(length, max(0, status.st_size - first)))

    def head(self, name: str) -> Entry | None:
        """See ``Store.head``."""
        path = self._path(name)
        with contextlib.suppress(NotFound), self._reading(name):
            status = os.stat(path)
            return _entry(name, status) if stat.S_ISREG(status.st_mode) else None
        return None

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See ``Store.put_if_absent``."""
        path = self._path_to_write(name)
        won = not os.path.lexists(path) and self._write_and_place(disk.claim, name, path, (data,))
        # The loser waits for the winner's name to be durable, too: it builds on it, or finds that it is its own.
        self._make_durable(name, path)
        if not won:
            raise self._taken_error(name, path)

    def put(self, name: str, data: bytes) -> None:
        """See ``Store.put``."""
        self.put_stream(name, (data,))

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """See ``Store.put_stream``."""
        path = self._path_to_write(name)
        self._write_and_place(os.replace, name, path, chunks)
        self._make_durable(name, path)

    def put_hint(self, name: str, data: bytes) -> None:
        """See ``Store.put_hint``."""
        path = self._path_to_write(name)
        if os.path.lexists(path) or not self._write_and_place(disk.claim, name, path, (data,), durably=False):
            raise self._taken_error(name, path)

    def list_from(self, start: str) -> list[Entry]:
        """See ``Store.list_from``."""
        slash = start.rfind("/") + 1
        folder, first = check_folder(start[:slash], self.url), start[slash:]
        return sorted(self._files(folder, self._scan(folder, first)))

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See ``Store.list_all``."""
        entries: list[Entry] = []
        folders = [check_folder(prefix, self.url)]
        self._require_inside(prefix, os.path.join(self.root, folders[0], ""))
        while folders:
            folder = folders.pop()
            scanned = self._scan(folder)
            entries += self._files(folder, scanned)
            folders += self._folders(folder, scanned)
        return sorted(entries)

    def delete(self, name: str) -> None:
        """See ``Store.delete``."""
        path = self._require_inside(name, self._path(name))
        with contextlib.suppress(NotFound), self._reading(name):
            os.unlink(path)

    def sync(self, names: Iterable[str]) -> None:
        """See ``Store.sync``."""
        paths = {name: self._path(name) for name in names}
        for name, path in paths.items():
            if not os.path.isfile(path):
                raise NotFound(name=name, root=self.url)
        with self._writing(f"{len(paths)} files"):
            disk.sync_all(paths.values())
            disk.sync_all(self._folders_above(paths))

    def check_inside(self, name: str) -> None:
        """Raises StoreError: the folder of a name is reached through a link out of the root."""
        self._path_to_write(name)

    # -- names and paths -----------------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        path = os.path.join(self.root, check_name(name, self.url))
        if disk.is_aside(os.path.basename(path)):
            raise StoreError(name=name, root=self.url, reason="such names are reserved for unfinished writes.")
        return path

    def _path_to_write(self, name: str) -> str:
        """The path of a name whose folder is not reached through a link out of the root; it need not exist yet."""
        return self._require_inside(name, self._path(name))

    def _require_inside(self, name: str, path: str) -> str:
        folder, root = os.path.realpath(os.path.dirname(path)), os.path.realpath(self.root)
        if os.path.commonpath([folder, root]) != root:
            raise StoreError(name=name, root=self.url, reason="a link leads out of the root.")
        return path

    def _folders_above(self, names: Iterable[str]) -> list[str]:
        """The folders of these names, up to the root and, if it is readable, the root's parent."""
        folders = {os.path.dirname(self.root)} if os.access(os.path.dirname(self.root), os.R_OK) else set()
        for name in names:
            parts = name.split("/")[:-1]
            folders |= {os.path.join(self.root, *parts[:depth]) for depth in range(len(parts) + 1)}
        return sorted(folders, key=len, reverse=True)

    # -- listing -------------------------------------------------------------------------------------------------------

    def _scan(self, folder: str, first: str = "") -> _DirEntries:
        """The files of a folder from the file name ``first`` on, by store name; empty if there is no such folder.

        Names are compared first: a log of 100,000 files costs its names, not its inodes.
        """
        before = f"{folder}/" if folder else ""
        with (
            contextlib.suppress(NotFound),
            self._reading(folder),
            os.scandir(os.path.join(self.root, folder)) as entries,
        ):
            selected = [entry for entry in entries if entry.name >= first]
            return [(before + entry.name, entry) for entry in selected if not disk.is_aside(entry.name)]
        return []

    def _files(self, folder: str, scanned: _DirEntries) -> list[Entry]:
        with self._reading(folder):
            statuses = [(name, _file_stat(entry)) for name, entry in scanned]
        return [_entry(name, file) for name, file in statuses if file]

    def _folders(self, folder: str, scanned: _DirEntries) -> list[str]:
        with self._reading(folder):
            return [name for name, entry in scanned if entry.is_dir(follow_symlinks=False)]

    # -- writing and what can go wrong ---------------------------------------------------------------------------------

    def _write_and_place(
        self,
        place: Callable[[str, str], _Result],
        name: str,
        path: str,
        chunks: Iterable[bytes],
        *,
        durably: bool = True,
    ) -> _Result:
        """Write the chunks aside, then call ``place(aside, path)``. Raises PutOutcomeUnknown: that failed undecided."""
        with self._writing(name):
            aside = _write_aside(path, chunks, durably=durably)
        try:
            return place(aside, path)
        except OSError as error:
            raise (self._to_store_error if disk.is_refusal(error) else self._unknown_outcome)(name, error) from cause(
                error
            )
        finally:
            disk.forget(aside)

    def _make_durable(self, name: str, path: str) -> None:
        """Make a visible name durable; after a failure the outcome of the put is unknown."""
        try:
            disk.sync(os.path.dirname(path))
        except OSError as error:
            raise self._unknown_outcome(name, error) from cause(error)

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            failed = NotFound(name=name, root=self.url) if _is_absence(error) else self._to_store_error(name, error)
            raise failed from cause(error)  # which quotes the path

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._to_store_error(name, error) from cause(error)

    def _taken_error(self, name: str, path: str) -> StoreError:
        """The error of a taken name; readers see files only, so they would find no winner where it is anything else."""
        if os.path.lexists(path) and not os.path.isfile(path):
            reason = "the name exists, but is neither a file nor a link to one. Remove it if it is not needed."
            return StoreError(name=name, root=self.url, reason=reason)
        return AlreadyExists(name=name, root=self.url)

    def _to_store_error(self, name: str, error: OSError) -> StoreError:
        """Our error for a disk's refusal; nothing has happened."""
        if error.errno in _DENIED:
            reason = f"{_reason(error)} Check the folder's owner."
            return StorePermissionDenied(name=name, root=self.url, reason=reason)
        kind = StoreFull if error.errno in _FULL else StoreError
        return kind(name=name, root=self.url, reason=f"{_reason(error)}{self._hint(error)}")

    def _hint(self, error: OSError) -> str:
        """Advice where a path leads through a file."""
        is_file = error.errno in (errno.ENOTDIR, errno.EEXIST) and os.path.isfile(self.root)
        return " A file is there, where a folder is needed: choose another path." if is_file else ""

    def _unknown_outcome(self, name: str, error: OSError) -> PutOutcomeUnknown:
        return PutOutcomeUnknown(name=name, root=self.url, reason=_reason(error))


def _write_aside(path: str, chunks: Iterable[bytes], *, durably: bool) -> str:
    """`disk.write_aside` after the folder is made, and again if the empty folder was removed meanwhile. (Then no chunk
    was consumed yet.)
    """
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            disk.make_folder(os.path.dirname(path))
            return disk.write_aside(path, chunks, durably=durably)
    return disk.write_aside(path, chunks, durably=durably)


def _reason(error: OSError) -> str:
    return f"{error.strerror or error}."


def _is_absence(error: OSError) -> bool:
    return error.errno in _ABSENT


def _file_stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    """The status of a file; None for folders, devices, broken links and files deleted meanwhile."""
    try:
        return entry.stat() if entry.is_file() else None
    except OSError as error:
        if _is_absence(error):
            return None
        raise


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(name, status.st_size, status.st_mtime_ns // 1_000_000, _etag(status))


def _etag(status: os.stat_result) -> str:
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"
