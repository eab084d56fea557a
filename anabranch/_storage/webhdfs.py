"""A file system of Hadoop over HTTP: WebHDFS, as NameNodes and DataNodes serve it.

Knows the seven operations that a store needs, and how a NameNode words a refusal. Each request is sent once and follows
no redirect by itself, so that the caller knows what may have happened; one that a NameNode redirects to a DataNode goes
there and no further. An answer in another form leaves its request unanswered, and no message repeats the token. The
rename specifies how it treats an existing name (``renameoptions``): without that, WebHDFS answers a lost race with
``{"boolean": false}``, or moves the file into a folder of that name. Each block is forced to the disks of its DataNodes
when it ends (``SYNC_BLOCK``).
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.name_node import Refused, Status, Unanswered
from anabranch._storage.web_client import Answer, WebClient
from anabranch.errors import UnknownStore
from anabranch.errors.process_state import memo
from anabranch.errors.secrets import without_texts

_T = TypeVar("_T")

_DEFAULT_PORT = 9870
_SERVICE = "/webhdfs/v1"
_OPTIONS, _SECRET = {"user", "delegation", "timeout"}, {"delegation"}
_TIMEOUT_S, _LONGEST_S = 60.0, 1e6
_DONE, _REDIRECTED = {200, 201}, {307}
_ANSWER_BYTES, _LISTED_BYTES = 1 << 20, 256 << 20
"""Maximum bytes of a NameNode's answer, and of a folder's list: some 700,000 names."""
_SENTENCE_CHARS = 1000
_JAVA_NAME = re.compile(r"[\w.$]{1,200}")
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""Errors that a malformed answer may raise."""
_TRANSIENT = {408, 429, 500, 502, 503, 504}
_BEYOND = "out of the range"
"""The NameNode's words for an offset beyond the end of a file."""
_PAUSES_S = (0.05, 0.2, 0.8, 0.0)
"""Pauses after each attempt to remove a partial file."""


@dataclass(frozen=True)
class WebFiles:
    """A ``FileSystem``, over HTTP.

    Attributes:
        root: of the NameNode's server, without a path.
        who: the parameters that identify the user.
    """

    root: str
    who: tuple[tuple[str, str], ...] = field(repr=False)
    client: WebClient = field(repr=False)

    def status(self, path: str) -> Status:
        """See ``FileSystem.status``."""
        return self._request_json("GET", path, "GETFILESTATUS", lambda document: _status(path, document["FileStatus"]))

    def inside(self, path: str) -> list[Status]:
        """See ``FileSystem.inside``."""
        folder = path.rstrip("/")

        def read(document: Any) -> list[Status]:
            entries = [(entry["pathSuffix"], entry) for entry in document["FileStatuses"]["FileStatus"]]
            return [_status(f"{folder}/{suffix}" if suffix else path, entry) for suffix, entry in entries]

        return self._request_json("GET", path, "LISTSTATUS", read, _LISTED_BYTES)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See ``FileSystem.read_range``."""
        if start >= 0 and length > 0:
            try:
                return self._read_data(path, start, length)
            except Refused as error:
                if _BEYOND not in error.sentence and error.kind != "EOFException":  # a DataNode's, for an empty file
                    raise
                return b""
        return self._read_within(path, start, length)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """See ``FileSystem.write``."""
        body, flags = _Chunks(chunks), "CREATE,SYNC_BLOCK"
        redirect = self._request("PUT", path, "CREATE", _REDIRECTED, overwrite="false", createflag=flags)
        node = self._data_node(path, redirect)
        try:
            self._send("PUT", node, _DONE, body=body, headers={"Content-Type": "application/octet-stream"})
        except BaseException:
            self._remove_partial(path)
            if body.failed is not None:
                raise body.failed from None
            raise

    def _remove_partial(self, path: str) -> None:
        """Remove a partial file; the DataNode may be about to create it, so try more than once."""
        for pause_s in _PAUSES_S:
            with contextlib.suppress(Refused, Unanswered):
                if self.delete(path):
                    return
            time.sleep(pause_s)

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """See ``FileSystem.rename``."""
        options = "OVERWRITE" if overwrite else "NONE"
        answer = self._request("PUT", source, "RENAME", _DONE, destination=path, renameoptions=options)
        if answer.data:
            raise Unanswered("the server does not rename as a NameNode does, so it is not one", passes=False)

    def delete(self, path: str) -> bool:
        """See ``FileSystem.delete``."""
        return self._request_json(
            "DELETE", path, "DELETE", lambda document: document["boolean"] is True, recursive="false"
        )

    # -- requests ------------------------------------------------------------------------------------------------------

    def _read_within(self, path: str, start: int, length: int) -> bytes:
        """A range relative to the file's end, or an empty one."""
        before = self.status(path)
        if before.is_folder:
            raise Refused("FileNotFoundException", f"{path} is a folder")
        first = start if start >= 0 else max(0, before.length + start)
        length = min(length, before.length - first)
        if length <= 0:
            return b""
        data = self._read_data(path, first, length)
        if self.status(path) != before:
            raise Unanswered("the file was replaced while it was read", passes=True)
        return data

    def _read_data(self, path: str, start: int, length: int) -> bytes:
        redirect = self._request("GET", path, "OPEN", _REDIRECTED, offset=str(start), length=str(length))
        answer = self._send("GET", self._data_node(path, redirect), _DONE, length)
        if "content-length" not in answer.headers:
            raise Unanswered("the DataNode does not state the size of its answer", passes=True)
        return answer.data

    def _request_json(
        self,
        method: str,
        path: str,
        operation: str,
        read: Callable[[Any], _T],
        most_bytes: int = _ANSWER_BYTES,
        **parameters: str,
    ) -> _T:
        """Parse an answer in JSON by ``read``."""
        answer = self._request(method, path, operation, _DONE, most_bytes, **parameters)
        try:
            return read(json.loads(answer.data))
        except _MALFORMED:
            raise Unanswered("the answer is not a NameNode's", passes=False) from None

    def _request(
        self,
        method: str,
        path: str,
        operation: str,
        statuses: set[int],
        most_bytes: int = _ANSWER_BYTES,
        **parameters: str,
    ) -> Answer:
        query = urlencode({"op": operation, **parameters, **dict(self.who)}, quote_via=quote, safe="")
        return self._send(method, f"{self.root}{_SERVICE}{quote(path, safe='/')}?{query}", statuses, most_bytes)

    def _data_node(self, path: str, answer: Answer) -> str:
        """The address at the DataNode to which a NameNode redirects a request.

        Its path is replaced by ours: Java composes letters with their marks, which gives the path of another file.
        """
        try:
            target = urlsplit(answer.headers["location"])
        except _MALFORMED:
            raise Unanswered("the NameNode names no DataNode", passes=False) from None
        return target._replace(path=f"{_SERVICE}{quote(path, safe='/')}").geturl()

    def _send(self, method: str, url: str, statuses: set[int], most_bytes: int = _ANSWER_BYTES, **more: Any) -> Answer:
        answer = self.client.ask(method, url, max(most_bytes, _ANSWER_BYTES), **more)
        if answer.status not in statuses:
            raise self._to_error(answer)
        if len(answer.data) > most_bytes:
            raise Unanswered("the DataNode sends more than requested", passes=False)
        return answer

    def _to_error(self, answer: Answer) -> Refused | Unanswered:
        """Convert an unsuccessful answer to an error; only an answer with Java's name for it is a refusal by the
        NameNode or a DataNode.
        """
        with contextlib.suppress(*_MALFORMED):
            remote = json.loads(answer.data)["RemoteException"]
            kind, message = remote["exception"], remote["message"] or ""
            if _JAVA_NAME.fullmatch(kind):
                sentence = message[:_SENTENCE_CHARS].partition("\n")[0].strip()
                return Refused(kind, without_texts(sentence, [value for key, value in self.who if key in _SECRET]))
        if answer.status == 401:
            return Refused("AccessControlException", "the NameNode requires an authentication that is not supported")
        if answer.status in _DONE | _REDIRECTED:
            return Unanswered("the server does not behave as a NameNode", passes=False)
        return Unanswered(f"the server answered with status {answer.status}", passes=answer.status in _TRANSIENT)


class _Chunks:
    """Chunks for a client, which may mistake their exception for one of the connection; ``failed`` keeps it."""

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
        UnknownStore: there is no such option.
    """
    root, where = f"webhdfs://{authority}", f"/{path}" if path else ""
    for key in sorted(set(options) - _OPTIONS):
        raise UnknownStore(location=root, reason=f"WebHDFS has no option {key}; it has user, delegation and timeout.")
    try:
        seconds = float(options.get("timeout", _TIMEOUT_S))
    except (ValueError, TypeError):
        seconds = 0.0
    if not 0 < seconds < _LONGEST_S:
        raise UnknownStore(location=root, reason="the option timeout takes a number of seconds.")
    host = authority if authority.rpartition(":")[2].isdigit() else f"{authority}:{_DEFAULT_PORT}"
    files = WebFiles(f"http://{host}", _credentials(options), _client(seconds))
    return HdfsStore(f"{root}{where}", where, files)


def _credentials(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if token := options.get("delegation"):
        return (("delegation", token),)
    return (("user.name", options.get("user") or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()),)


@memo("connections of WebHDFS", 64)
def _client(seconds: float) -> WebClient:
    return WebClient(seconds)


def _status(path: str, fields: Mapping[str, Any]) -> Status:
    return Status(
        path,
        _parse_whole_number(fields["length"]),
        _parse_whole_number(fields["modificationTime"]),
        fields["type"] == "DIRECTORY",
    )


def _parse_whole_number(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 1 << 63:
        raise ValueError("this is no number of a file's")
    return number
