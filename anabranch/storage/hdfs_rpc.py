"""A file system of Hadoop through hdfs-native, which speaks to NameNodes and DataNodes in their own language.

Knows the client, and how it words what a NameNode refuses. The client has no time limit of its own for a request.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import UnknownStore
from anabranch.errors.process_state import memo
from anabranch.storage.hdfs import HdfsStore
from anabranch.storage.name_node import Refused, Status, Unanswered, reason, tried

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


@dataclass(frozen=True)
class NativeFiles:
    """A ``FileSystem``, through a client of hdfs-native's."""

    client: Any

    def status(self, path: str) -> Status:
        """See ``FileSystem.status``."""
        with _answers():
            return _status(self.client.get_file_info(path))

    def inside(self, path: str) -> list[Status]:
        """See ``FileSystem.inside``."""
        with _answers():  # the client's own recursion ends where one folder goes meanwhile
            return [_status(each) for each in self.client.list_status(path, False)]

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See ``FileSystem.read_range``."""
        with _answers(), self.client.read(path) as file:
            size = len(file)
            first = min(start, size) if start >= 0 else max(0, size + start)
            return bytes(file.read_range(first, min(length, size - first)))

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """See ``FileSystem.write``; files of an erasure-coded folder cannot be told to be on disks."""
        file = None
        try:
            with _answers():
                file = self.client.create(path)
            for chunk in chunks:
                with _answers():
                    file.write(chunk)
            with _answers():
                _sync(file)
                file.close()
        except BaseException:
            self._give_up(path, file)
            raise

    def _give_up(self, path: str, file: Any) -> None:
        """Remove a file that is not whole; then close it, which waits for blocks that are missing while it is there."""
        with contextlib.suppress(Refused, Unanswered):
            tried(lambda: self.delete(path), _PAUSES_S)
        if file is not None:
            with contextlib.suppress(*_FAILURES):
                file.close()

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """See ``FileSystem.rename``."""
        with _answers():
            self.client.rename(source, path, overwrite)

    def delete(self, path: str) -> bool:
        """See ``FileSystem.delete``."""
        with _answers():
            return bool(self.client.delete(path, False))


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
