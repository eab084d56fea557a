"""A file system of Hadoop over HTTP: WebHDFS, as NameNodes and DataNodes serve it, through urllib3.

Knows the seven operations that a store needs, and how a NameNode words what it refuses. Each request is sent once and
follows no redirect by itself, so that whoever asks knows what may have happened. The rename says how it treats a name
that exists (``renameoptions``): without that, WebHDFS answers a lost race with ``{"boolean": false}``, or moves the
file into a folder of that name. Each block is forced to the disks of its DataNodes when it ends (``SYNC_BLOCK``).
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from anabranch.errors import UnknownStore
from anabranch.errors.process_state import memo
from anabranch.storage.hdfs import HdfsStore
from anabranch.storage.name_node import Refused, Status, Unanswered

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

_DEFAULT_PORT = 9870
_SERVICE = "/webhdfs/v1"
_OPTIONS = {"user", "delegation", "timeout"}
_TIMEOUT_S = 60.0
_ANSWERS = {200, 201, 307}
_MAY_PASS = {408, 429, 500, 502, 503, 504}
_BEYOND = "out of the range"
"""How a NameNode says that a file ends before an offset."""
_PAUSES_S = (0.05, 0.2, 0.8, 0.0)
"""After each look for a file that is not whole."""


@dataclass(frozen=True)
class WebFiles:
    """A ``FileSystem``, over HTTP.

    Attributes:
        root: of the NameNode's server, without a path.
        who: the parameters that say who asks.
    """

    root: str
    who: tuple[tuple[str, str], ...] = field(repr=False)
    pool: PoolManager = field(repr=False)

    def status(self, path: str) -> Status:
        """See ``FileSystem.status``."""
        return _status(path, self._told("GET", path, "GETFILESTATUS")["FileStatus"])

    def inside(self, path: str) -> list[Status]:
        """See ``FileSystem.inside``."""
        found = self._told("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        folder = path.rstrip("/")
        return [_status(f"{folder}/{each['pathSuffix']}" if each["pathSuffix"] else path, each) for each in found]

    def read(self, path: str) -> bytes:
        """See ``FileSystem.read``."""
        return self._opened(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See ``FileSystem.read_range``."""
        if start >= 0 and length > 0:
            try:
                return self._opened(path, offset=str(start), length=str(length))
            except Refused as error:
                if _BEYOND not in error.sentence and error.kind != "EOFException":  # as an empty file's DataNode says
                    raise
                return b""
        return self._read_within(path, start, length)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """See ``FileSystem.write``."""
        body, how = _Chunks(chunks), {"overwrite": "false", "createflag": "CREATE,SYNC_BLOCK"}
        node = self._redirected(path, self._asked("PUT", path, "CREATE", **how))
        try:
            self._sent("PUT", node, body=iter(body), headers={"Content-Type": "application/octet-stream"})
        except BaseException:
            self._give_up(path)
            if body.failed is not None:
                raise body.failed from None
            raise

    def _give_up(self, path: str) -> None:
        """Remove a file that is not whole; the DataNode may be about to create it, so look more than once."""
        for pause_s in _PAUSES_S:
            with contextlib.suppress(Refused, Unanswered):
                if self.delete(path):
                    return
            time.sleep(pause_s)

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """See ``FileSystem.rename``."""
        options = "OVERWRITE" if overwrite else "NONE"
        told = self._asked("PUT", source, "RENAME", destination=path, renameoptions=options)
        if told.data:
            raise Unanswered("the server does not rename as a NameNode does, so it is none", passes=False)

    def delete(self, path: str) -> bool:
        """See ``FileSystem.delete``."""
        return bool(self._told("DELETE", path, "DELETE", recursive="false")["boolean"])

    # -- requests ------------------------------------------------------------------------------------------------------

    def _read_within(self, path: str, start: int, length: int) -> bytes:
        """A range whose place the file's size decides, or one without a byte."""
        before = self.status(path)
        if before.is_folder:
            raise Refused("FileNotFoundException", f"{path} is a folder")
        first = start if start >= 0 else max(0, before.length + start)
        length = min(length, before.length - first)
        if length <= 0:
            return b""
        data = self._opened(path, offset=str(first), length=str(length))
        if self.status(path) != before:
            raise Unanswered("the file was replaced while it was read", passes=True)
        return data

    def _opened(self, path: str, **range_: str) -> bytes:
        answer = self._sent("GET", self._redirected(path, self._asked("GET", path, "OPEN", **range_)))
        if "content-length" not in answer.headers:
            raise Unanswered("the DataNode does not say how much it gives", passes=True)
        return answer.data

    def _told(self, method: str, path: str, operation: str, **parameters: str) -> Any:
        answer = self._asked(method, path, operation, **parameters)
        try:
            return json.loads(answer.data)
        except ValueError:
            raise Unanswered("the NameNode's answer breaks off", passes=True) from None

    def _asked(self, method: str, path: str, operation: str, **parameters: str) -> BaseHTTPResponse:
        query = urlencode({"op": operation, **parameters, **dict(self.who)}, quote_via=quote, safe="")
        return self._sent(method, f"{self.root}{_SERVICE}{quote(path, safe='/')}?{query}")

    def _redirected(self, path: str, answer: BaseHTTPResponse) -> str:
        """The address at the DataNode that a NameNode hands a request to.

        Its path is written anew: Java composes letters in it with their marks, which makes it that of another file.
        """
        if answer.status != 307:
            raise Unanswered("the server names no DataNode, so it is no NameNode", passes=False)
        return urlsplit(answer.headers["location"])._replace(path=f"{_SERVICE}{quote(path, safe='/')}").geturl()

    def _sent(self, method: str, url: str, **more: Any) -> BaseHTTPResponse:
        with self._unanswered():
            answer = self.pool.request(method, url, redirect=False, retries=False, **more)
        if answer.status not in _ANSWERS:
            raise _refusal(answer.status, answer.data)
        return answer

    @contextlib.contextmanager
    def _unanswered(self) -> Iterator[None]:
        from urllib3.exceptions import HTTPError

        try:
            yield
        except (HTTPError, OSError) as error:
            text = str(error).partition("\n")[0]
            for _, value in self.who:  # a token, perhaps
                text = text.replace(value, "***")
            raise Unanswered(text or type(error).__name__, passes=True) from None


class _Chunks:
    """Chunks for urllib3, which may take an exception of theirs for one of the connection; it is kept here."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.failed: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from (chunk for chunk in self._chunks if chunk)  # an empty one would end the body
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failed = error
            raise


def open_webhdfs(authority: str, path: str, options: Mapping[str, str]) -> HdfsStore:
    """The store of a folder of a file system, by its NameNode's HTTP port, 9870 if the location names none.

    Args:
        options: ``user`` (else HADOOP_USER_NAME, or the process's), or ``delegation``, a token; ``timeout`` in seconds.

    Raises:
        UnknownStore: there is no client, or no such option.
    """
    root, where = f"webhdfs://{authority}", f"/{path}" if path else ""
    for key in sorted(set(options) - _OPTIONS):
        raise UnknownStore(location=root, reason=f"WebHDFS has no option {key}; it has user, delegation and timeout.")
    try:
        seconds = float(options.get("timeout", _TIMEOUT_S))
    except ValueError:
        raise UnknownStore(location=root, reason="the option timeout takes a number of seconds.") from None
    host = authority if authority.rpartition(":")[2].isdigit() else f"{authority}:{_DEFAULT_PORT}"
    files = WebFiles(f"http://{host}", _who(options), _pool(root, seconds))
    return HdfsStore(f"{root}{where}", where, files)


def _who(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if token := options.get("delegation"):
        return (("delegation", token),)
    return (("user.name", options.get("user") or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()),)


@memo("connections of WebHDFS", 64)
def _pool(root: str, seconds: float) -> PoolManager:
    try:
        from urllib3 import PoolManager, Timeout  # an extra: few need it
    except ImportError:
        missing = "WebHDFS needs a package of its own: pip install 'anabranch[webhdfs]'."
        raise UnknownStore(location=root, reason=missing) from None
    return PoolManager(maxsize=32, timeout=Timeout(connect=10, read=seconds))


def _status(path: str, found: Mapping[str, Any]) -> Status:
    return Status(path, found["length"], found["modificationTime"], found["type"] == "DIRECTORY")


def _refusal(status: int, data: bytes) -> Refused | Unanswered:
    """What an answer means that is no success; only with Java's name in it the NameNode, or a DataNode, has spoken."""
    try:
        told = json.loads(data)["RemoteException"]
        return Refused(told["exception"], (told["message"] or "").partition("\n")[0].strip())
    except (ValueError, KeyError, TypeError):
        pass
    if status == 401:
        return Refused("AccessControlException", "the NameNode asks for an authentication that is not built in")
    return Unanswered(f"the server answered with status {status}", passes=status in _MAY_PASS)
