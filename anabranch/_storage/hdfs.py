"""The store over a folder of HDFS, for each protocol of its NameNode.

Knows names, paths, and what the NameNode's refusals mean for a put. A file is written aside, under a hidden
``.NAME.ID.tmp`` that no call lists or reads, and then renamed: the NameNode refuses to rename to a name that exists,
and decides that atomically. So put-if-absent has one winner among all writers, including Spark and delta-spark.

An unanswered request is sent again. That is safe even for the rename: nobody else knows the file aside, and it can be
renamed only once, however late a request of ours arrives. If it is gone, an earlier request was carried out.
"""

from __future__ import annotations

import contextlib
import posixpath
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from anabranch._storage.contract import Entry, check_folder, check_name
from anabranch._storage.disk import is_aside
from anabranch._storage.name_node import (
    PAUSES_S,
    FileSystem,
    Refused,
    Status,
    Unanswered,
    reason,
    retry,
    to_store_error,
)
from anabranch._storage.objects import refuse_after_fork
from anabranch.errors import AlreadyExists, NotFound, PutOutcomeUnknown, StoreError

_NAME_CHARS_ASIDE = 40
_SIZE_DIGITS = 20
_MAX_DEPTH = 1000
"""Maximum depth of Hadoop's folders."""


@dataclass(frozen=True)
class HdfsStore:
    """A ``Store`` over the folder ``root`` of a file system; it need not exist yet.

    Attributes:
        url: the root's canonical URL.
        root: its path, without a slash at its end.
        files: the client of the file system.
        allowed: other stores whose files a log in this one may name; the store itself does not use it.
        pauses_s: pauses before an unanswered request is sent again.
    """

    url: str
    root: str
    files: FileSystem = field(repr=False, compare=False)
    allowed: tuple[str, ...] = field(default=(), repr=False, compare=False)
    pauses_s: tuple[float, ...] = field(default=PAUSES_S, repr=False, compare=False)

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """See ``Store.get``. With an etag, the NameNode is queried once more after the read; without one before the
        read, for the size, and no more bytes are read.
        """
        before = self._require(name).etag if etag is None else etag
        size = _size_in(before)
        data = self.read_range(name, 0, size + 1)
        if etag is not None and (len(data) != size or self._require(name).etag != etag):
            raise NotFound(name=name, root=self.url)
        if len(data) > size:
            raise StoreError(name=name, root=self.url, reason="it has grown while it was read; read it again.")
        if len(data) < size and self._require(name).etag == before:
            raise StoreError(
                name=name, root=self.url, reason="its DataNodes send fewer bytes than the NameNode states."
            )
        return data

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See ``Store.read_range``."""
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        path = self._path(name)
        with self._translate_errors(name):
            return retry(lambda: self.files.read_range(path, start, length), self.pauses_s)

    def head(self, name: str) -> Entry | None:
        """See ``Store.head``."""
        status = self._status(name)
        return None if status is None or status.is_folder else _entry(name, status)

    def _status(self, name: str) -> Status | None:
        path = self._path(name)
        with contextlib.suppress(NotFound), self._translate_errors(name):
            return retry(lambda: self.files.status(path), self.pauses_s)
        return None

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See ``Store.put_if_absent``."""
        status = self._status(name)
        if status is not None and status.is_folder:  # nobody would find a winner
            raise StoreError(name=name, root=self.url, reason="it is a folder. Remove it if it is not needed.")
        if status is not None:
            raise AlreadyExists(name=name, root=self.url)
        self._put(name, data, overwrite=False)

    def put(self, name: str, data: bytes) -> None:
        """See ``Store.put``."""
        self._put(name, data, overwrite=True)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """See ``Store.put_stream``."""
        path, counted = self._path(name), _Counted(chunks)
        aside = _aside_path(path)
        with self._writing(name):
            self.files.write(aside, counted)
        self._rename(name, aside, lambda: self._require(name).size == counted.size, overwrite=True)

    def put_hint(self, name: str, data: bytes) -> None:
        """See ``Store.put_hint``."""
        self.put_if_absent(name, data)

    def list_from(self, start: str) -> list[Entry]:
        """See ``Store.list_from``."""
        slash = start.rfind("/") + 1
        folder, first = check_folder(start[:slash], self.url), start[slash:]
        return sorted(entry for entry in self._scan_folder(folder)[0] if posixpath.basename(entry.name) >= first)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See ``Store.list_all``."""
        return sorted(entry for files, *_ in self.walk_folders(check_folder(prefix, self.url)) for entry in files)

    def walk_folders(
        self, folder: str = "", skip: Callable[[str], bool] = lambda name: False
    ) -> Iterator[tuple[list[Entry], list[str], list[str]]]:
        """The files in a folder and in each folder below it, with the subfolders that are entered and those that are
        skipped.
        """
        pending = [folder]
        while pending:
            files, folders = self._scan_folder(current := pending.pop())
            if current.count("/") >= _MAX_DEPTH:
                raise StoreError(name=f"{current[:100]}…", root=self.url, reason="its folders have no end.")
            left_out = [name for name in folders if skip(name)]
            to_visit = [name for name in folders if name not in left_out]
            pending += to_visit
            yield files, to_visit, left_out

    def _scan_folder(self, folder: str) -> tuple[list[Entry], list[str]]:
        """The files in one folder, and the names of its subfolders; none where it does not exist."""
        refuse_after_fork(folder, self.url)
        path = posixpath.join(self.root or "/", folder.rstrip("/")).rstrip("/") or "/"
        statuses: list[Status] = []
        with contextlib.suppress(NotFound), self._translate_errors(folder):
            statuses = retry(lambda: self.files.inside(path), self.pauses_s)
        named = [(self._name_in(folder, path, status), status) for status in statuses if status.path != path]
        files = [_entry(name, status) for name, status in named if not status.is_folder]
        folders = [name for name, status in named if status.is_folder]
        return [entry for entry in files if not is_aside(posixpath.basename(entry.name))], folders

    def _name_in(self, folder: str, path: str, status: Status) -> str:
        """The name of an entry that the file system lists in a folder. Raises StoreError: it lies elsewhere."""
        folder_path, _, base = status.path.rpartition("/")
        if folder_path != path.rstrip("/"):
            raise StoreError(name=repr(base[:100]), root=self.url, reason="a NameNode lists it, and it is no name.")
        return check_name(f"{folder.rstrip('/')}/{base}" if folder else base, self.url)

    def remove_folder(self, folder: str) -> bool:
        """Remove an empty folder; True if it was removed."""
        refuse_after_fork(folder, self.url)
        return self._try_delete(posixpath.join(self.root, folder))

    def delete(self, name: str) -> None:
        """See ``Store.delete``."""
        path = self._path(name)
        if self.head(name) is not None:
            with contextlib.suppress(NotFound), self._translate_errors(name):
                retry(lambda: self.files.delete(path), self.pauses_s)

    def sync(self, names: Iterable[str]) -> None:
        """See ``Store.sync``: a file that its writer has closed is on its DataNodes."""

    # -- puts ----------------------------------------------------------------------------------------------------------

    def _put(self, name: str, data: bytes, *, overwrite: bool) -> None:
        path = self._path(name)
        with self._writing(name):
            aside = retry(lambda: self._write_aside(path, data), self.pauses_s)
        self._rename(name, aside, lambda: self.read_range(name, 0, len(data) + 1) == data, overwrite=overwrite)

    def _write_aside(self, path: str, data: bytes) -> str:
        """Write the bytes aside, and return the path: each try has its own file, since an older one may come late."""
        aside = _aside_path(path)
        try:
            self.files.write(aside, (data,))
        except Refused as error:
            if error.is_existence:  # a client that repeated the request by itself has met its own file
                raise Unanswered(error.sentence, passes=True) from None
            raise
        return aside

    def _rename(self, name: str, aside: str, has_it: Callable[[], bool], *, overwrite: bool) -> None:
        """Rename a file aside to its final name.

        Args:
            has_it: whether the final name has the content of the file aside.

        Raises:
            AlreadyExists: the name is taken, and must not be overwritten.
            PutOutcomeUnknown: it is unknown whether the file was renamed.
        """
        path = self._path(name)
        try:
            retry(lambda: self.files.rename(aside, path, overwrite=overwrite), self.pauses_s)
        except Unanswered as error:  # the file stays: it may have the name already, or get it yet
            raise PutOutcomeUnknown(name=name, root=self.url, reason=reason(error)) from None
        except Refused as error:
            self._resolve_refusal(name, aside, has_it, error)
        except BaseException:
            self._try_delete(aside)
            raise

    def _resolve_refusal(self, name: str, aside: str, has_it: Callable[[], bool], error: Refused) -> None:
        """Interpret a refusal to rename, since an earlier request may have been carried out, or may still come.

        A file aside that is removed can no longer be renamed; nor can it while the name is taken.
        """
        if error.is_absence:
            with contextlib.suppress(StoreError):
                if has_it():
                    return
            raise PutOutcomeUnknown(name=name, root=self.url, reason=reason(error)) from None
        was_deleted = self._try_delete(aside)
        if error.is_existence:
            raise AlreadyExists(name=name, root=self.url) from None
        if not was_deleted:
            raise PutOutcomeUnknown(name=name, root=self.url, reason=reason(error)) from None
        raise to_store_error(name, self.url, error) from None

    # -- what can go wrong ---------------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        refuse_after_fork(name, self.url)
        path = f"{self.root}/{check_name(name, self.url)}"
        if is_aside(posixpath.basename(path)):
            raise StoreError(name=name, root=self.url, reason="such names are reserved for unfinished writes.")
        return path

    def _require(self, name: str) -> Entry:
        entry = self.head(name)
        if entry is None:
            raise NotFound(name=name, root=self.url)
        return entry

    def _try_delete(self, path: str) -> bool:
        """Try to remove a file, or an empty folder; True if this request removed it."""
        with contextlib.suppress(Refused, Unanswered):
            return self.files.delete(path)
        return False

    @contextlib.contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        with self._writing(name):
            try:
                yield
            except Refused as error:
                if error.is_absence:
                    raise NotFound(name=name, root=self.url) from None
                raise

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """As `_translate_errors`, except that an absence is a failure like any other."""
        try:
            yield
        except (Refused, Unanswered) as error:
            raise to_store_error(name, self.url, error) from None


class _Counted:
    """Chunks, with a count of their bytes; their exceptions pass through."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            yield chunk


def _aside_path(path: str) -> str:
    folder, base = posixpath.split(path)
    return f"{folder}/.{base[:_NAME_CHARS_ASIDE]}.{uuid.uuid4().hex}.tmp"


def _entry(name: str, status: Status) -> Entry:
    return Entry(name, status.length, status.modified_ms, f"{status.modified_ms}-{status.length}")


def _size_in(etag: str | None) -> int:
    """The size in an etag of `_entry`; 0 for any other form, which no file has."""
    size = (etag or "").rpartition("-")[2]
    return int(size) if size.isdecimal() and len(size) < _SIZE_DIGITS else 0
