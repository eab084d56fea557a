"""A file system of Hadoop through hdfs-native, which speaks to NameNodes and DataNodes in their own language.

Knows the client, and how it words what a NameNode refuses. The client has no time limit of its own for a request, takes
memory for as many bytes as a NameNode says a file has, and takes what a DataNode gives for all of it. So each request
runs in a thread that is left behind when its time is over, and what comes is counted.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.name_node import Refused, Status, Unanswered, reason, retry
from anabranch.errors import UnknownStore
from anabranch.errors.process_state import memo

_Found = TypeVar("_Found")

_FAILURES = (OSError, RuntimeError, ValueError, OverflowError)
_PANIC = "PanicException"
"""The client's own failure, on an answer that it does not understand; PyO3 derives it from ``BaseException``."""
_SENTENCE_CHARS = 1000
_REFUSED = re.compile(r'RPCError\("([\w.$]+)", "((?:[^"\\]|\\.)*)')
"""How the client says that the NameNode has answered: by Java's name for the refusal, and its sentence with frames."""
_ABSENT = re.compile(r"is not a directory|is a directory|is not a file")
_CANNOT_SYNC = re.compile(r"erasure|unsupported|not supported", re.IGNORECASE)
_KINDS: dict[type[Exception], str] = {
    FileNotFoundError: "FileNotFoundException",
    IsADirectoryError: "FileNotFoundException",
    NotADirectoryError: "ParentNotDirectoryException",
    FileExistsError: "FileAlreadyExistsException",
    PermissionError: "AccessControlException",
}
"""Refusals that the client tells by a class of Python's."""
_FEW_ATTEMPTS = {"dfs.client.failover.max.attempts": "4"}
"""Of one NameNode, to which nobody fails over; the client would ask 15 times, for three minutes."""
_DEFAULT_PORT = 8020
_PAUSES_S = (0.05, 0.2, 0.8)
"""Before a file that is not whole is removed once more."""
_ANSWER_S = 300
"""How long a request may take: longer than all that the client does by itself where something fails."""
_BYTES_A_SECOND = 1 << 16
"""One second more is given for so many."""
_MOST = (1 << 63) - 1
"""The largest number that Java, and a table's log, has."""
_FOLDER_ENTRIES = 6_400_000
"""How many Hadoop lets a folder have, at most (``dfs.namenode.fs-limits.max-directory-items``)."""


@dataclass(frozen=True)
class NativeFiles:
    """A ``FileSystem``, through a client of hdfs-native's.

    Attributes:
        answer_s: for how many seconds a request is waited for, beside the time for its bytes.
        folder_entries: how many a folder may have.
    """

    client: Any
    answer_s: float = _ANSWER_S
    folder_entries: int = _FOLDER_ENTRIES

    def status(self, path: str) -> Status:
        """See ``FileSystem.status``."""
        return self._answer(lambda _: _status(self.client.get_file_info(path)))

    def inside(self, path: str) -> list[Status]:
        """See ``FileSystem.inside``."""

        def list_folder(clock: _Clock) -> list[Status]:
            found: dict[str, Status] = {}
            for each in self.client.list_status(path, False):  # its own recursion ends where one folder goes meanwhile
                clock.allow(len(each.path))
                if each.path in found or len(found) == self.folder_entries:
                    raise Unanswered("the NameNode's list of the folder has no end", passes=False)
                found[each.path] = _status(each)
            return list(found.values())

        return self._answer(list_folder)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See ``FileSystem.read_range``."""

        def read(clock: _Clock) -> bytes:
            with self.client.read(path) as file:
                size = len(file)
                first = min(start, size) if start >= 0 else max(0, size + start)
                wanted, came = min(length, size - first), bytearray()
                for part in file.read_range_stream(first, wanted):
                    clock.allow(len(part))
                    came += part
                    if len(came) > wanted:
                        break
            if len(came) != wanted:
                raise Unanswered("its DataNodes give other bytes than the NameNode says it has", passes=False)
            return bytes(came)

        return self._answer(read)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """See ``FileSystem.write``; files of an erasure-coded folder cannot be told to be on disks."""
        file = None
        try:
            file = self._answer(lambda _: self.client.create(path))
            for chunk in chunks:
                self._take(file, chunk)
            self._answer(lambda _: _sync(file))
            self._answer(lambda _: file.close())
        except BaseException:
            self._give_up(path, file)
            raise

    def _take(self, file: Any, chunk: bytes) -> None:
        self._answer(lambda _: file.write(chunk), len(chunk))

    def _give_up(self, path: str, file: Any) -> None:
        """Remove a file that is not whole; then close it, which waits for blocks that are missing while it is there."""
        with contextlib.suppress(Refused, Unanswered):
            retry(lambda: self.delete(path), _PAUSES_S)
        if file is not None:
            with contextlib.suppress(Refused, Unanswered):
                self._answer(lambda _: file.close())

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """See ``FileSystem.rename``."""
        self._answer(lambda _: self.client.rename(source, path, overwrite))

    def delete(self, path: str) -> bool:
        """See ``FileSystem.delete``."""
        return self._answer(lambda _: bool(self.client.delete(path, False)))

    def _answer(self, ask: Callable[[_Clock], _Found], size: int = 0) -> _Found:
        """What the client gives, within the time for the bytes that it is given and those that come."""
        with _answers():
            return _within(_Clock(self.answer_s + size / _BYTES_A_SECOND), ask)


class _Clock:
    """The time of a request."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + min(seconds, threading.TIMEOUT_MAX)

    def left(self) -> float:
        """So many seconds are left."""
        return max(0.0, self._ends - time.monotonic())

    def allow(self, size: int) -> None:
        """Give the time for so many bytes that have come. Raises Unanswered: it is over."""
        if not self.left():
            raise _late()
        self._ends += size / _BYTES_A_SECOND

    def stop(self) -> None:
        """Nobody waits any longer."""
        self._ends = 0.0


def _within(clock: _Clock, ask: Callable[[_Clock], _Found]) -> _Found:
    """What a call gives, or raises. Raises Unanswered: its time is over; its thread waits on, and keeps no process."""
    outcome = queue.SimpleQueue[tuple[_Found | None, BaseException | None]]()

    def run() -> None:
        try:
            outcome.put((ask(clock), None))
        except BaseException as error:
            outcome.put((None, error))

    threading.Thread(target=run, name="anabranch-hdfs", daemon=True).start()
    try:
        while left := clock.left():
            with contextlib.suppress(queue.Empty):
                found, error = outcome.get(timeout=left)
                if error is not None:
                    raise error
                return found  # type: ignore[return-value]
        raise _late()
    finally:
        clock.stop()


def _late() -> Unanswered:
    return Unanswered("it does not answer in time", passes=False)


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
    return HdfsStore(f"{root}{where}", where, NativeFiles(_client(root, tuple(sorted(asked.items())), environment)))


@memo("file systems", 64)
def _client(root: str, options: tuple[tuple[str, str], ...], environment: tuple[str | None, ...]) -> Any:
    """``environment`` is what the client reads besides, so that another one makes another client."""
    for key, value in options:
        if not isinstance(value, str):
            raise UnknownStore(location=root, reason=f"the option {key} takes a text.")
    try:
        from hdfs_native import Client  # an extra: few need it
    except ImportError:
        missing = "HDFS needs a package of its own: pip install 'anabranch[hdfs]'."
        raise UnknownStore(location=root, reason=missing) from None
    try:
        return Client(root, dict(options))
    except _FAILURES as error:
        if ":" not in root.partition("://")[2] and "No NameNode hosts found" in str(error):  # no nameservice, so a host
            return _client(f"{root}:{_DEFAULT_PORT}", tuple({**_FEW_ATTEMPTS, **dict(options)}.items()), environment)
        raise UnknownStore(location=root, reason=reason(_answer(error))) from None


def _status(found: Any) -> Status:
    if max(found.length, found.modification_time) > _MOST:
        raise Unanswered("the NameNode says a size or a time that no file has", passes=False)
    return Status(found.path, found.length, found.modification_time, found.isdir)


def _sync(file: Any) -> None:
    """Have the DataNodes write a file to their disks; one that is erasure-coded cannot be told so."""
    try:
        file.hsync()
    except _FAILURES as error:
        if not _CANNOT_SYNC.search(str(error)):
            raise


@contextlib.contextmanager
def _answers() -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        raise _answer(error) from None
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise Unanswered("the client does not understand the answer", passes=False) from None


def _answer(error: Exception) -> Refused | Unanswered:
    """What the client's error says of its request: the NameNode's own sentence, without Java's frames, or a line."""
    text = str(error)[:_SENTENCE_CHARS]
    line = text.partition("\n")[0].strip()
    if (kind := _KINDS.get(type(error))) is not None:
        return Refused(kind, line)
    if (refused := _REFUSED.search(text)) is not None:
        return Refused(refused[1].rpartition(".")[2], refused[2].partition("\\n")[0].replace('\\"', '"').strip())
    if _ABSENT.search(text):
        return Refused("FileNotFoundException", line)
    if line.startswith("DataTransferError"):
        line = "no DataNode gives, or takes, the block"
    # If nobody listens, the client has tried for long enough by itself.
    return Unanswered(line, passes=isinstance(error, OSError) and not line.startswith("Connection refused"))
