"""The store over a folder of HDFS, whichever way its NameNode is asked.

Knows names, paths, and what the NameNode's refusals mean for a put. A file is written aside, under a hidden
``.NAME.ID.tmp`` that no call lists or reads, and then renamed: the NameNode refuses to rename to a name that exists,
and decides that as one. So put-if-absent has one winner, whoever else writes, Spark and delta-spark among them.

A request that was not answered is sent again. That is safe even for the rename: nobody else knows the file aside, and
it can be renamed only once, however late a request of ours arrives. If it is gone, an earlier one was carried out.
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
_DEEPEST = 1000
"""How many folders Hadoop has below each other, at most."""


@dataclass(frozen=True)
class HdfsStore:
    """A ``Store`` over the folder ``root`` of a file system; it need not exist yet.

    Attributes:
        url: the root's canonical URL.
        root: its path, without a slash at its end.
        files: the client of the file system.
        allowed: other stores whose files a log in this one may name; the store itself does not use it.
        pauses_s: before a request that was not answered is sent again.
    """

    url: str
    root: str
    files: FileSystem = field(repr=False, compare=False)
    allowed: tuple[str, ...] = field(default=(), repr=False, compare=False)
    pauses_s: tuple[float, ...] = field(default=PAUSES_S, repr=False, compare=False)

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """See ``Store.get``. A NameNode is asked once more for an etag, after the bytes have come; without one before
        that, since it says how many there are, and no more are taken.
        """
        before = self._existing(name).etag if etag is None else etag
        size = _size_in(before)
        found = self.read_range(name, 0, size + 1)
        if etag is not None and (len(found) != size or self._existing(name).etag != etag):
            raise NotFound(name=name, root=self.url)
        if len(found) > size:
            raise StoreError(name=name, root=self.url, reason="it has grown while it was read; read it again.")
        if len(found) < size and self._existing(name).etag == before:
            raise StoreError(name=name, root=self.url, reason="its DataNodes give less than the NameNode says it has.")
        return found

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See ``Store.read_range``."""
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        path = self._path(name)
        with self._translate_errors(name):
            return retry(lambda: self.files.read_range(path, start, length), self.pauses_s)

    def head(self, name: str) -> Entry | None:
        """See ``Store.head``."""
        found = self._status(name)
        return None if found is None or found.is_folder else _entry(name, found)

    def _status(self, name: str) -> Status | None:
        path = self._path(name)
        with contextlib.suppress(NotFound), self._translate_errors(name):
            return retry(lambda: self.files.status(path), self.pauses_s)
        return None

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See ``Store.put_if_absent``."""
        found = self._status(name)
        if found is not None and found.is_folder:  # nobody would find a winner
            raise StoreError(name=name, root=self.url, reason="a folder is there. Remove it, if nobody needs it.")
        if found is not None:
            raise AlreadyExists(name=name, root=self.url)
        self._put(name, data, overwrite=False)

    def put(self, name: str, data: bytes) -> None:
        """See ``Store.put``."""
        self._put(name, data, overwrite=True)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """See ``Store.put_stream``."""
        path, counted = self._path(name), _Counted(chunks)
        aside = _aside(path)
        with self._writing(name):
            self.files.write(aside, counted)
        self._rename(name, aside, lambda: self._existing(name).size == counted.size, overwrite=True)

    def put_hint(self, name: str, data: bytes) -> None:
        """See ``Store.put_hint``."""
        self.put_if_absent(name, data)

    def list_from(self, start: str) -> list[Entry]:
        """See ``Store.list_from``."""
        slash = start.rfind("/") + 1
        folder, first = check_folder(start[:slash], self.url), start[slash:]
        return sorted(each for each in self._scan_folder(folder)[0] if posixpath.basename(each.name) >= first)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See ``Store.list_all``."""
        return sorted(each for files, *_ in self.walk_folders(check_folder(prefix, self.url)) for each in files)

    def walk_folders(
        self, folder: str = "", skip: Callable[[str], bool] = lambda name: False
    ) -> Iterator[tuple[list[Entry], list[str], list[str]]]:
        """The files in a folder and in each folder below it, with the folders there that are gone into, and with those
        that are left out.
        """
        ahead = [folder]
        while ahead:
            files, below = self._scan_folder(at := ahead.pop())
            if at.count("/") >= _DEEPEST:
                raise StoreError(name=f"{at[:100]}…", root=self.url, reason="its folders have no end.")
            left_out = [name for name in below if skip(name)]
            entered = [name for name in below if name not in left_out]
            ahead += entered
            yield files, entered, left_out

    def _scan_folder(self, folder: str) -> tuple[list[Entry], list[str]]:
        """The files in one folder, and the names of the folders in it; none where it is not there."""
        refuse_after_fork(folder, self.url)
        path = posixpath.join(self.root or "/", folder.rstrip("/")).rstrip("/") or "/"
        seen: list[Status] = []
        with contextlib.suppress(NotFound), self._translate_errors(folder):
            seen = retry(lambda: self.files.inside(path), self.pauses_s)
        named = [(self._name_in(folder, path, each), each) for each in seen if each.path != path]
        files = [_entry(name, each) for name, each in named if not each.is_folder]
        folders = [name for name, each in named if each.is_folder]
        return [each for each in files if not is_aside(posixpath.basename(each.name))], folders

    def _name_in(self, folder: str, path: str, found: Status) -> str:
        """The name of what the file system lists in a folder. Raises StoreError: it would be elsewhere."""
        folder_path, _, base = found.path.rpartition("/")
        if folder_path != path.rstrip("/"):
            raise StoreError(name=repr(base[:100]), root=self.url, reason="a NameNode lists it, and it is no name.")
        return check_name(f"{folder.rstrip('/')}/{base}" if folder else base, self.url)

    def remove_folder(self, folder: str) -> bool:
        """Remove a folder in which nothing is; whether it went."""
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
        """Write the bytes aside, and say where: each try has a file of its own, since an older one may come late."""
        aside = _aside(path)
        try:
            self.files.write(aside, (data,))
        except Refused as error:
            if error.is_existence:  # a client that repeated the request by itself has met its own file
                raise Unanswered(error.sentence, passes=True) from None
            raise
        return aside

    def _rename(self, name: str, aside: str, has_it: Callable[[], bool], *, overwrite: bool) -> None:
        """Give a file aside its name.

        Args:
            has_it: whether the name has what was written aside.

        Raises:
            AlreadyExists: there is one of the name, and it is not to be overwritten.
            PutOutcomeUnknown: nobody can say whether it was renamed.
        """
        path = self._path(name)
        try:
            retry(lambda: self.files.rename(aside, path, overwrite=overwrite), self.pauses_s)
        except Unanswered as error:  # the file stays: it may have the name already, or get it yet
            raise PutOutcomeUnknown(name=name, root=self.url, reason=reason(error)) from None
        except Refused as error:
            self._decide_refusal(name, aside, has_it, error)
        except BaseException:
            self._try_delete(aside)
            raise

    def _decide_refusal(self, name: str, aside: str, has_it: Callable[[], bool], error: Refused) -> None:
        """Decide what a refusal to rename means, since an earlier request may have been carried out, or may come yet.

        A file that is removed aside can no longer be renamed; nor can one while there is another of the name.
        """
        if error.is_absence:
            with contextlib.suppress(StoreError):
                if has_it():
                    return
            raise PutOutcomeUnknown(name=name, root=self.url, reason=reason(error)) from None
        went = self._try_delete(aside)
        if error.is_existence:
            raise AlreadyExists(name=name, root=self.url) from None
        if not went:
            raise PutOutcomeUnknown(name=name, root=self.url, reason=reason(error)) from None
        raise to_store_error(name, self.url, error) from None

    # -- what can go wrong ---------------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        refuse_after_fork(name, self.url)
        path = f"{self.root}/{check_name(name, self.url)}"
        if is_aside(posixpath.basename(path)):
            raise StoreError(name=name, root=self.url, reason="such names are kept for writes under way.")
        return path

    def _existing(self, name: str) -> Entry:
        entry = self.head(name)
        if entry is None:
            raise NotFound(name=name, root=self.url)
        return entry

    def _try_delete(self, path: str) -> bool:
        """Remove a file, or an empty folder, if that can be done; whether this request did it."""
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
        """As `_translate_errors`, where an absence is a failure as any other."""
        try:
            yield
        except (Refused, Unanswered) as error:
            raise to_store_error(name, self.url, error) from None


class _Counted:
    """Chunks, and how many bytes they had; what they raise is raised as it is."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            yield chunk


def _aside(path: str) -> str:
    folder, base = posixpath.split(path)
    return f"{folder}/.{base[:_NAME_CHARS_ASIDE]}.{uuid.uuid4().hex}.tmp"


def _entry(name: str, found: Status) -> Entry:
    return Entry(name, found.length, found.modified_ms, f"{found.modified_ms}-{found.length}")


def _size_in(etag: str | None) -> int:
    """The size that an etag of `_entry` says; none has another form, so no file has one that has."""
    size = (etag or "").rpartition("-")[2]
    return int(size) if size.isdecimal() and len(size) < _SIZE_DIGITS else 0
