"""WebHDFS in memory, NameNode and DataNode in one, for what needs no Hadoop: how our client asks."""

from __future__ import annotations

import contextlib
import json
import posixpath
import threading
import time
from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.storage import front

_SERVICE = "/webhdfs/v1"


class Refusal(Exception):
    """What Java would throw."""


class FakeWebHdfs:
    """The files of one file system by their paths. A handler of `front`."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}
        self.folders = {"/"}
        self.lock, self.clock = threading.Lock(), count(time.time_ns() // 1_000_000)
        self.port = 0

    def __call__(self, request: front.Request) -> front.Answer:
        address = urlsplit(request.target)
        path = unquote(address.path.removeprefix(_SERVICE)).rstrip("/") or "/"
        asked = dict(parse_qsl(address.query))
        try:
            with self.lock:
                return getattr(self, f"_{asked['op'].lower()}")(request, path, asked)
        except Refusal as refusal:
            told = {"exception": refusal.args[0], "message": f"{path} is refused"}
            return _told({"RemoteException": told}, 404 if "NotFound" in refusal.args[0] else 403)

    def _getfilestatus(self, request: front.Request, path: str, asked: dict[str, str]) -> front.Answer:
        return _told({"FileStatus": self._status(path, "")})

    def _liststatus(self, request: front.Request, path: str, asked: dict[str, str]) -> front.Answer:
        if path in self.files:
            return _told({"FileStatuses": {"FileStatus": [self._status(path, "")]}})
        if path not in self.folders:
            raise Refusal("FileNotFoundException")
        inside = {each for each in {*self.files, *self.folders} if each != "/" and posixpath.dirname(each) == path}
        found = [self._status(each, posixpath.basename(each)) for each in sorted(inside)]
        return _told({"FileStatuses": {"FileStatus": found}})

    def _status(self, path: str, suffix: str) -> dict[str, Any]:
        if path in self.files:
            data, modified = self.files[path]
            kind = {"type": "FILE", "length": len(data), "modificationTime": modified}
        elif path in self.folders:
            kind = {"type": "DIRECTORY", "length": 0, "modificationTime": 0}
        else:
            raise Refusal("FileNotFoundException")
        return {"pathSuffix": suffix, **kind}

    def _open(self, request: front.Request, path: str, asked: dict[str, str]) -> front.Answer:
        if path not in self.files:
            raise Refusal("FileNotFoundException")
        if "datanode" not in asked:
            return self._handed_on(request)
        data, start = self.files[path][0], int(asked["offset"])
        if start > len(data):
            raise Refusal("EOFException")
        return front.Answer(200, body=data[start:][: int(asked["length"])])

    def _create(self, request: front.Request, path: str, asked: dict[str, str]) -> front.Answer:
        if path in self.files or path in self.folders:
            raise Refusal("FileAlreadyExistsException")
        if "datanode" not in asked:
            return self._handed_on(request)
        self.files[path] = request.body, next(self.clock)
        while (path := posixpath.dirname(path)) not in self.folders:
            self.folders.add(path)
        return front.Answer(201)

    def _handed_on(self, request: front.Request) -> front.Answer:
        return front.Answer(307, (("Location", f"http://127.0.0.1:{self.port}{request.target}&datanode=1"),))

    def _rename(self, request: front.Request, path: str, asked: dict[str, str]) -> front.Answer:
        to = asked["destination"]
        if path not in self.files:
            raise Refusal("FileNotFoundException")
        if to in self.folders or (to in self.files and asked["renameoptions"] == "NONE"):
            raise Refusal("FileAlreadyExistsException")
        self.files[to] = self.files.pop(path)
        return front.Answer(200)

    def _delete(self, request: front.Request, path: str, asked: dict[str, str]) -> front.Answer:
        went = self.files.pop(path, None) is not None
        if not went and path in self.folders and not any(each.startswith(f"{path}/") for each in self.files):
            self.folders.discard(path)
            went = True
        return _told({"boolean": went})


def _told(found: Any, status: int = 200) -> front.Answer:
    return front.Answer(status, (("Content-Type", "application/json"),), json.dumps(found).encode())


@contextlib.contextmanager
def serving() -> Iterator[tuple[front.Front, FakeWebHdfs]]:
    """A new and empty file system; what the front's ``handle`` is replaced by may ask it."""
    files = FakeWebHdfs()
    with front.serving(files) as server:
        files.port = server.server_port
        yield server, files
