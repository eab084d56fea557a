"""A file system of Hadoop through hdfs-native, which speaks the own protocols of NameNodes and DataNodes.

Knows the client, and how it words a NameNode's refusals. The client has no time limit for a request, allocates memory
for the size that a NameNode states, and takes a DataNode's bytes for complete. So each request runs in a thread that is
abandoned when its time is over, and the bytes are counted.
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

_Result = TypeVar("_Result")

_FAILURES = (OSError, RuntimeError, ValueError, OverflowError)
_PANIC = "PanicException"
"""The client's own failure, on an answer that it does not understand; PyO3 derives it from ``BaseException``."""
_SENTENCE_CHARS = 1000
_REFUSED = re.compile(r'RPCError\("([\w.$]+)", "((?:[^"\\]|\\.)*)')
"""The client's form of a NameNode's answer: Java's name for the refusal, and its sentence with frames."""
_ABSENT = re.compile(r"is not a directory|is a directory|is not a file")
_CANNOT_SYNC = re.compile(r"erasure|unsupported|not supported", re.IGNORECASE)
_KINDS: dict[type[Exception], str] = {
    FileNotFoundError: "FileNotFoundException",
    IsADirectoryError: "FileNotFoundException",
    NotADirectoryError: "ParentNotDirectoryException",
    FileExistsError: "FileAlreadyExistsException",
    PermissionError: "AccessControlException",
}
"""Refusals that the client reports by a class of Python's."""
_FEWER_ATTEMPTS = {"dfs.client.failover.max.attempts": "4"}
"""The attempts at a single NameNode, which has no failover; by default the client tries 15 times, for three minutes."""
_DEFAULT_PORT = 8020
_PAUSES_S = (0.05, 0.2, 0.8)
"""Pauses before a partial file is removed once more."""
_ANSWER_S = 300
"""Time limit of a request, in seconds: longer than the client's own retries."""
_BYTES_A_SECOND = 1 << 16
"""Bytes for which a request gets one more second."""
_MAX_NUMBER = (1 << 63) - 1
"""The largest number of Java, and of a table's log."""
_FOLDER_ENTRIES = 6_400_000
"""Maximum number of entries of a folder in Hadoop (``dfs.namenode.fs-limits.max-directory-items``)."""


@dataclass(frozen=True)
class NativeFiles:
    """A ``FileSystem``, through a client of hdfs-native's.

    Attributes:
        answer_s: time limit of a request in seconds, besides the time for its bytes.
        folder_entries: maximum number of entries of a folder.
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
            statuses: dict[str, Status] = {}
            for entry in self.client.list_status(path, False):  # its own recursion ends where one folder goes meanwhile
                clock.allow(len(entry.path))
                if entry.path in statuses or len(statuses) == self.folder_entries:
                    raise Unanswered("the NameNode's list of the folder has no end", passes=False)
                statuses[entry.path] = _status(entry)
            return list(statuses.values())

        return self._answer(list_folder)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See ``FileSystem.read_range``."""

        def read(clock: _Clock) -> bytes:
            with self.client.read(path) as file:
                size = len(file)
                first = min(start, size) if start >= 0 else max(0, size + start)
                expected, data = min(length, size - first), bytearray()
                for part in file.read_range_stream(first, expected):
                    clock.allow(len(part))
                    data += part
                    if len(data) > expected:
                        break
            if len(data) != expected:
                raise Unanswered("its DataNodes send another number of bytes than the NameNode states", passes=False)
            return bytes(data)

        return self._answer(read)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """See ``FileSystem.write``; files of an erasure-coded folder cannot be forced to disks."""
        close = None
        try:
            file, close = self._answer(lambda _: _with_closer(self.client.create(path)))
            for chunk in chunks:
                self._write_chunk(file, chunk)
            self._answer(lambda _: _sync(file))
            self._answer(lambda _: close())
        except BaseException:
            self._remove_partial(path, close)
            raise

    def _write_chunk(self, file: Any, chunk: bytes) -> None:
        self._answer(lambda _: file.write(chunk), len(chunk))

    def _remove_partial(self, path: str, close: Callable[[], None] | None) -> None:
        """Remove a partial file; then close it, which would wait for missing blocks while the file exists."""
        with contextlib.suppress(Refused, Unanswered):
            retry(lambda: self.delete(path), _PAUSES_S)
        if close is not None:
            with contextlib.suppress(Refused, Unanswered):
                self._answer(lambda _: close())

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """See ``FileSystem.rename``."""
        self._answer(lambda _: self.client.rename(source, path, overwrite))

    def delete(self, path: str) -> bool:
        """See ``FileSystem.delete``."""
        return self._answer(lambda _: bool(self.client.delete(path, False)))

    def _answer(self, ask: Callable[[_Clock], _Result], size: int = 0) -> _Result:
        """The client's result, within the time for the bytes that are sent and received."""
        with _translate_errors():
            return _run_within(_Clock(self.answer_s + size / _BYTES_A_SECOND), ask)


class _Clock:
    """The time of a request."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + min(seconds, threading.TIMEOUT_MAX)

    def left(self) -> float:
        """The remaining seconds."""
        return max(0.0, self._ends - time.monotonic())

    def allow(self, size: int) -> None:
        """Extend the time for received bytes. Raises Unanswered: the time is over."""
        if not self.left():
            raise _timeout_error()
        self._ends += size / _BYTES_A_SECOND

    def stop(self) -> None:
        """End the time: the request is abandoned."""
        self._ends = 0.0


def _run_within(clock: _Clock, ask: Callable[[_Clock], _Result]) -> _Result:
    """The result of a call. Raises Unanswered: its time is over; its thread goes on, and keeps no process alive."""
    outcome = queue.SimpleQueue[tuple[_Result | None, BaseException | None]]()

    def run() -> None:
        try:
            outcome.put((ask(clock), None))
        except BaseException as error:
            outcome.put((None, error))

    threading.Thread(target=run, name="anabranch-hdfs", daemon=True).start()
    try:
        while left := clock.left():
            with contextlib.suppress(queue.Empty):
                result, error = outcome.get(timeout=left)
                if error is not None:
                    raise error
                return result  # type: ignore[return-value]
        raise _timeout_error()
    finally:
        clock.stop()


def _timeout_error() -> Unanswered:
    return Unanswered("it does not answer in time", passes=False)


def open_hdfs(scheme: str, authority: str, path: str, options: Mapping[str, str]) -> HdfsStore:
    """The store of a folder of a file system.

    Args:
        options: Hadoop's, such as ``dfs.nameservices``; they override those in the folder that HADOOP_CONF_DIR names.
            Where the location has a port, it is that of the only NameNode, and a request is tried four times at most.

    Raises:
        UnknownStore: the client is not installed, or refuses the options.
    """
    root = f"{scheme}://{authority}"
    where = f"/{path}" if path else ""
    settings = {**(_FEWER_ATTEMPTS if ":" in authority else {}), **options}
    environment = (os.environ.get("HADOOP_USER_NAME"), os.environ.get("HADOOP_CONF_DIR"))
    return HdfsStore(f"{root}{where}", where, NativeFiles(_client(root, tuple(sorted(settings.items())), environment)))


@memo("file systems", 64)
def _client(root: str, options: tuple[tuple[str, str], ...], environment: tuple[str | None, ...]) -> Any:
    """``environment`` is part of the cache key, since the client reads it, too."""
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
            return _client(f"{root}:{_DEFAULT_PORT}", tuple({**_FEWER_ATTEMPTS, **dict(options)}.items()), environment)
        raise UnknownStore(location=root, reason=reason(_answer(error))) from None


def _status(info: Any) -> Status:
    if max(info.length, info.modification_time) > _MAX_NUMBER:
        raise Unanswered("the NameNode states a size or a time that no file can have", passes=False)
    return Status(info.path, info.length, info.modification_time, info.isdir)


def _with_closer(file: Any) -> tuple[Any, Callable[[], None]]:
    """A file, and what alone closes it. Python's base class of files closes garbage, in whatever thread collects it,
    which would wait there for a NameNode, without a time limit.
    """
    close = file.close
    with contextlib.suppress(AttributeError):
        file.close = lambda: None
    return file, close


def _sync(file: Any) -> None:
    """Have the DataNodes write a file to their disks, unless it is erasure-coded."""
    try:
        file.hsync()
    except _FAILURES as error:
        if not _CANNOT_SYNC.search(str(error)):
            raise


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        raise _answer(error) from None
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise Unanswered("the client does not understand the answer", passes=False) from None


def _answer(error: Exception) -> Refused | Unanswered:
    """Convert the client's error: to the NameNode's own sentence without Java's frames, or to its first line."""
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
    # A refused connection is permanent: the client has retried by itself.
    return Unanswered(line, passes=isinstance(error, OSError) and not line.startswith("Connection refused"))
