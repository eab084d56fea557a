"""The store over a folder of HDFS, through hdfs-native.

Knows names, paths, and what the NameNode's refusals mean for a put. A file is written aside, under a hidden
``.NAME.ID.tmp`` that no call lists or reads, and then renamed: the NameNode refuses to rename to a name that exists,
and decides that as one. So put-if-absent has one winner, whoever else writes, Spark and delta-spark among them.

What is acknowledged is on as many DataNodes as the file system replicates to, which were told to write it to their
disks (``hsync``); files of an erasure-coded folder cannot be told so.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anabranch.errors import (
    AlreadyExists,
    NotFound,
    PutOutcomeUnknown,
    StoreError,
    StoreFull,
    StorePermissionDenied,
    UnknownStore,
)
from anabranch.errors.process_state import memo
from anabranch.storage.contract import Entry, checked, checked_folder
from anabranch.storage.disk import is_aside
from anabranch.storage.objects import refuse_after_fork

_FAILURES = (OSError, RuntimeError, ValueError)
_REFUSED = re.compile(r'RPCError\("([\w.$]+)", "((?:[^"\\]|\\.)*)')
"""How the client says that the NameNode has answered: by Java's name for the refusal, and its sentence with frames."""
_ABSENT = re.compile(r"is not a directory|is a directory|is not a file")
_ABSENCES = frozenset({"FileNotFoundException", "ParentNotDirectoryException"})
_DENIED = re.compile(r"AccessControlException|Permission denied", re.IGNORECASE)
_FULL = re.compile(r"QuotaExceededException|could only be written to 0 of")
_CANNOT_SYNC = re.compile(r"erasure|unsupported|not supported", re.IGNORECASE)
_FEW_ATTEMPTS = {"dfs.client.failover.max.attempts": "4"}
"""Of one NameNode, to which nobody fails over; the client would ask 15 times, for three minutes."""
_DEFAULT_PORT = 8020
_NAME_CHARS_ASIDE = 40


@dataclass(frozen=True)
class HdfsStore:
    """A ``Store`` over the folder ``root`` of a file system; it need not exist yet.

    Attributes:
        url: the root's canonical URL.
        root: its path, without a slash at its end.
        client: hdfs-native's client of the file system.
        allowed: other stores whose files a log in this one may name; the store itself does not use it.
    """

    url: str
    root: str
    client: Any = field(repr=False, compare=False)
    allowed: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def get(self, name: str) -> bytes:
        """See ``Store.get``."""
        path = self._path(name)
        with self._reading(name), self.client.read(path) as file:
            return bytes(file.read())

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See ``Store.read_range``."""
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        path = self._path(name)
        with self._reading(name), self.client.read(path) as file:
            size = len(file)
            first = min(start, size) if start >= 0 else max(0, size + start)
            return bytes(file.read_range(first, min(length, size - first)))

    def head(self, name: str) -> Entry | None:
        """See ``Store.head``."""
        path = self._path(name)
        with contextlib.suppress(NotFound), self._reading(name):
            found = self.client.get_file_info(path)
            return None if found.isdir else _entry(name, found)
        return None

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See ``Store.put_if_absent``."""
        if self.head(name) is not None:
            raise AlreadyExists(name=name, root=self.url)
        self._placed(name, (data,), overwrite=False)

    def put(self, name: str, data: bytes) -> None:
        """See ``Store.put``."""
        self._placed(name, (data,), overwrite=True)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """See ``Store.put_stream``."""
        self._placed(name, chunks, overwrite=True)

    def put_hint(self, name: str, data: bytes) -> None:
        """See ``Store.put_hint``."""
        self.put_if_absent(name, data)

    def list_from(self, start: str) -> list[Entry]:
        """See ``Store.list_from``."""
        slash = start.rfind("/") + 1
        folder, first = checked_folder(start[:slash], self.url), start[slash:]
        return sorted(each for each in self._scanned(folder)[0] if posixpath.basename(each.name) >= first)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See ``Store.list_all``."""
        return sorted(each for files, *_ in self.walked(checked_folder(prefix, self.url)) for each in files)

    def walked(
        self, folder: str = "", skip: Callable[[str], bool] = lambda name: False
    ) -> Iterator[tuple[list[Entry], list[str], list[str]]]:
        """The files in a folder and in each folder below it, with the folders there that are gone into, and with those
        that are left out.
        """
        ahead = [folder]
        while ahead:  # the client's own recursion ends where one folder goes meanwhile
            files, below = self._scanned(ahead.pop())
            left_out = [name for name in below if skip(name)]
            entered = [name for name in below if name not in left_out]
            ahead += entered
            yield files, entered, left_out

    def _scanned(self, folder: str) -> tuple[list[Entry], list[str]]:
        """The files in one folder, and the names of the folders in it; none where it is not there."""
        refuse_after_fork(folder, self.url)
        path = posixpath.join(self.root or "/", folder.rstrip("/")).rstrip("/") or "/"
        seen: list[Any] = []
        with contextlib.suppress(NotFound), self._reading(folder):
            seen = list(self.client.list_status(path, False))
        inside = len(self.root) + 1
        named = [(each.path[inside:], each) for each in seen if each.path != path]
        files = [_entry(name, each) for name, each in named if not each.isdir]
        folders = [name for name, each in named if each.isdir]
        return [each for each in files if not is_aside(posixpath.basename(each.name))], folders

    def remove_folder(self, folder: str) -> bool:
        """Remove a folder in which nothing is; whether it went."""
        refuse_after_fork(folder, self.url)
        with contextlib.suppress(*_FAILURES):
            return bool(self.client.delete(posixpath.join(self.root, folder), False))
        return False

    def delete(self, name: str) -> None:
        """See ``Store.delete``."""
        path = self._path(name)
        if self.head(name) is not None:
            with contextlib.suppress(NotFound), self._reading(name):
                self.client.delete(path)

    def sync(self, names: Iterable[str]) -> None:
        """See ``Store.sync``: a file that its writer has closed is on its DataNodes."""

    # -- what can go wrong ---------------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        refuse_after_fork(name, self.url)
        path = f"{self.root}/{checked(name, self.url)}"
        if is_aside(posixpath.basename(path)):
            raise StoreError(name=name, root=self.url, reason="such names are kept for writes under way.")
        return path

    def _placed(self, name: str, chunks: Iterable[bytes], *, overwrite: bool) -> None:
        """Write the chunks aside, and rename that file.

        Raises:
            AlreadyExists: there is one of the name, and it is not to be overwritten.
            PutOutcomeUnknown: nobody can say whether it was renamed.
        """
        path = self._path(name)
        folder, base = posixpath.split(path)
        aside = f"{folder}/.{base[:_NAME_CHARS_ASIDE]}.{uuid.uuid4().hex}.tmp"
        renaming = False
        try:
            self._write_aside(name, aside, chunks)
            renaming = True
            self._rename(name, aside, path, overwrite=overwrite)
        except BaseException as error:
            if not (renaming and isinstance(error, PutOutcomeUnknown)):  # it may have the name already, or get it yet
                with contextlib.suppress(*_FAILURES):
                    self.client.delete(aside)
            raise

    def _write_aside(self, name: str, aside: str, chunks: Iterable[bytes]) -> None:
        """An exception of the chunks themselves is raised as it is."""
        with self._writing(name):
            file = self.client.create(aside)
        try:
            for chunk in chunks:
                with self._writing(name):
                    file.write(chunk)
            with self._writing(name):
                _sync(file)
        except BaseException:
            with contextlib.suppress(*_FAILURES):  # else it would hide what went wrong
                file.close()
            raise
        with self._writing(name):
            file.close()

    def _rename(self, name: str, aside: str, path: str, *, overwrite: bool) -> None:
        try:
            self.client.rename(aside, path, overwrite)
        except FileExistsError:
            raise AlreadyExists(name=name, root=self.url) from None
        except _FAILURES as error:
            # A request that was repeated finds the file gone that the first one has renamed.
            if isinstance(error, FileNotFoundError) or _REFUSED.search(str(error)) is None:
                raise PutOutcomeUnknown(name=name, root=self.url, reason=_reason(error)) from None
            raise self._failed(name, error) from None

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            if _is_absent(error):
                raise NotFound(name=name, root=self.url) from None
            raise self._failed(name, error) from None

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            raise self._failed(name, error) from None

    def _failed(self, name: str, error: Exception) -> StoreError:
        text = str(error)
        denied = isinstance(error, PermissionError) or _DENIED.search(text)
        kind = StorePermissionDenied if denied else StoreFull if _FULL.search(text) else StoreError
        return kind(name=name, root=self.url, reason=_reason(error))


def open_hdfs(scheme: str, authority: str, path: str, options: Mapping[str, str]) -> HdfsStore:
    """The store of a folder of a file system.

    Args:
        options: Hadoop's, such as ``dfs.nameservices``; they override those in the folder that HADOOP_CONF_DIR names.
            Where the location has a port, it is that of the only NameNode, and a request is tried four times at most.

    Raises:
        UnknownStore: there is no client, or it cannot be made so.
    """
    root = f"{scheme}://{authority}"
    where = f"/{path}" if path else ""
    asked = {**(_FEW_ATTEMPTS if ":" in authority else {}), **options}
    environment = (os.environ.get("HADOOP_USER_NAME"), os.environ.get("HADOOP_CONF_DIR"))
    return HdfsStore(f"{root}{where}", where, _client(root, tuple(sorted(asked.items())), environment))


@memo("file systems", 64)
def _client(root: str, options: tuple[tuple[str, str], ...], environment: tuple[str | None, ...]) -> Any:
    """``environment`` is what the client reads besides, so that another one makes another client."""
    for key, value in options:
        if not isinstance(value, str):
            raise UnknownStore(location=root, reason=f"the option {key} takes a text.")
    try:
        from hdfs_native import Client  # an extra: few need it
    except ImportError:
        reason = "HDFS needs a package of its own: pip install 'anabranch[hdfs]'."
        raise UnknownStore(location=root, reason=reason) from None
    try:
        return Client(root, dict(options))
    except _FAILURES as error:
        if ":" not in root.partition("://")[2] and "No NameNode hosts found" in str(error):  # no nameservice, so a host
            return _client(f"{root}:{_DEFAULT_PORT}", tuple({**_FEW_ATTEMPTS, **dict(options)}.items()), environment)
        raise UnknownStore(location=root, reason=_reason(error)) from None


def _entry(name: str, found: Any) -> Entry:
    return Entry(name, found.length, found.modification_time, f"{found.modification_time}-{found.length}")


def _sync(file: Any) -> None:
    """Have the DataNodes write a file to their disks; one that is erasure-coded cannot be told so."""
    try:
        file.hsync()
    except _FAILURES as error:
        if not _CANNOT_SYNC.search(str(error)):
            raise


def _is_absent(error: Exception) -> bool:
    """Whether there is nothing of the name, as the client or the NameNode says; a path in its words says nothing."""
    if isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError)):
        return True
    told = _told(error)
    if told is None:
        return _ABSENT.search(str(error)) is not None
    kind, sentence = told
    return kind in _ABSENCES or (kind == "AccessControlException" and sentence.endswith("(is not a directory)"))


def _told(error: Exception) -> tuple[str, str] | None:
    """Java's name for what the NameNode refused, and its sentence; None where it has not answered."""
    refused = _REFUSED.search(str(error))
    if refused is None:
        return None
    sentence = refused[2].partition("\\n")[0].replace('\\"', '"').strip()
    return refused[1].rpartition(".")[2], sentence


def _reason(error: Exception) -> str:
    """The NameNode's own sentence, without Java's frames, or the first line of the client's."""
    told = _told(error)
    text = ": ".join(told) if told is not None else str(error).partition("\n")[0].strip()
    if text.startswith("DataTransferError"):
        text = "no DataNode gives, or takes, the block"
    return text if text.endswith(".") else f"{text}."
