"""A real Google Cloud Storage server for tests: fake-gcs-server, on a free port of this machine, in its own process.

``tools/setup.py --servers`` brings it, where there is Go.

obstore speaks GCS's XML API, of which that server has reading, listing and deleting only. Its JSON API is whole, and
decides *ifGenerationMatch=0* under one lock. So a front here says in JSON what came as XML (`XmlToJson`); the store's
decisions are the server's own. Parts of a multipart upload wait in the front until the upload is completed. Spark's
connector speaks JSON, which passes through.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import unescape
from http.client import HTTPConnection
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.storage import front
from tests.storage.free_port import free_port
from tests.storage.front import Answer, Handler, Request, forwarding
from tests.support.patience import PATIENCE
from tools import servers

PUBLIC_HOST = "storage.googleapis.com"  # the name by which the server knows requests of the XML API
_JSON_ROOTS = ("storage", "upload", "download", "batch", "_internal")
_PARTS = re.compile(r"<PartNumber>(\d+)</PartNumber>")
_XML = (("content-type", "application/xml"),)


def why_absent() -> str:
    """Why there is no such server here, or nothing where there is one."""
    return servers.why_absent("fake-gcs-server")


@contextlib.contextmanager
def serving() -> Iterator[dict[str, str]]:
    """The environment in which ``gs://bucket`` is an empty bucket of a new server."""
    port = free_port()
    with _front(port) as url:
        where = ["-host", "127.0.0.1", "-port", str(port), "-scheme", "http", "-external-url", url]
        command = [str(servers.program("fake-gcs-server")), "-backend", "memory", *where, "-log-level", "error"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
            try:
                _make_bucket(port, server)
                yield environment_of(url)
            finally:
                server.kill()


@contextlib.contextmanager
def _front(port: int) -> Iterator[str]:
    """The URL of a front in a process of its own: Arrow keeps Python's lock while it asks for a file's size."""
    command = [sys.executable, "-m", __name__, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def environment_of(url: str) -> dict[str, str]:
    """What names the server at this URL: an account that signs nothing for obstore; the rest for Arrow."""
    nothing = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    account = json.dumps({"gcs_base_url": url, "disable_oauth": True, **nothing})
    plain = {"GOOGLE_BASE_URL": url, "GOOGLE_SKIP_SIGNATURE": "true", "GOOGLE_ALLOW_HTTP": "true"}
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": account, **plain}


def _make_bucket(port: int, server: subprocess.Popen[bytes]) -> None:
    """Make it as soon as the server listens."""
    ends = time.monotonic() + PATIENCE
    while True:
        assert server.poll() is None, "fake-gcs-server ended before it listened"
        try:
            with contextlib.closing(HTTPConnection("127.0.0.1", port)) as connection:
                connection.request("POST", "/storage/v1/b?project=p", json.dumps({"name": "bucket"}))
                assert connection.getresponse().status == 200
                return
        except ConnectionError:
            assert time.monotonic() < ends, "fake-gcs-server does not listen"
            time.sleep(0.02)


@dataclass(frozen=True)
class Asked:
    """A request of the XML API, taken apart; the names are as they were meant, not as they were spelled."""

    request: Request
    bucket: str
    key: str
    query: dict[str, str]

    @classmethod
    def of(cls, request: Request) -> Asked:
        parts = urlsplit(request.target)
        bucket, _, key = parts.path.removeprefix("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return cls(request, bucket, unquote(key), query)


@dataclass
class XmlToJson:
    """Hands requests on to a server, and those that write by the XML API as requests of its JSON API."""

    inner: Handler
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    fresh: Iterator[int] = field(default_factory=itertools.count)

    def __call__(self, request: Request) -> Answer | None:
        asked = Asked.of(request)
        if asked.bucket in _JSON_ROOTS:
            return _continued_here(self.inner(request), request)
        answer = self._answered(asked)
        if answer is not None and answer.status in (404, 500) and not self._has(asked.bucket):
            return Answer(404, _XML, b"<Error><Code>NoSuchBucket</Code></Error>")
        return answer

    def _answered(self, asked: Asked) -> Answer | None:
        method, query = asked.request.method, asked.query
        if method == "POST" and "uploads" in query:
            return self._begun(asked)
        if "uploadId" in query:
            return self._uploading(asked, query["uploadId"])
        if method == "PUT" and (source := asked.request.header("x-goog-copy-source")):
            return self._copied(asked, source)
        if method == "PUT":
            return self._put(asked, asked.request.body)
        answer = self.inner(asked.request)
        return _after(answer, query.get("start-after", "")) if answer and not asked.key else answer

    def _has(self, bucket: str) -> bool:
        answer = self.inner(Request("GET", f"/storage/v1/b/{quote(bucket, '')}", (("host", PUBLIC_HOST),), b""))
        return answer is not None and answer.status == 200

    def _put(self, asked: Asked, body: bytes) -> Answer | None:
        target = f"/upload/storage/v1/b/{quote(asked.bucket, '')}/o?uploadType=media&name={quote(asked.key, '')}"
        if expected := asked.request.header("x-goog-if-generation-match"):
            target += f"&ifGenerationMatch={expected}"
        return _as_xml(self.inner(replace(asked.request, method="POST", target=target, body=body)))

    def _copied(self, asked: Asked, source: str) -> Answer | None:
        origin, _, key = unquote(source).removeprefix("/").partition("/")
        there = f"b/{quote(asked.bucket, '')}/o/{quote(asked.key, '')}"
        target = f"/storage/v1/b/{quote(origin, '')}/o/{quote(key, '')}/copyTo/{there}"
        return _as_xml(self.inner(replace(asked.request, method="POST", target=target, body=b"{}")))

    # -- uploads in parts ----------------------------------------------------------------------------------------------

    def _begun(self, asked: Asked) -> Answer:
        upload = str(next(self.fresh))
        self.uploads[upload] = {}
        body = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
        return Answer(200, _XML, body.encode())

    def _uploading(self, asked: Asked, upload: str) -> Answer | None:
        parts = self.uploads.get(upload)
        if parts is None:
            return Answer(404, _XML, b"<Error><Code>NoSuchUpload</Code></Error>")
        if asked.request.method == "PUT":
            parts[int(asked.query["partNumber"])] = asked.request.body
            return Answer(200, (("etag", f'"{hashlib.md5(asked.request.body).hexdigest()}"'),))
        if asked.request.method == "DELETE":
            del self.uploads[upload]
            return Answer(204)
        listed = map(int, _PARTS.findall(asked.request.body.decode()))
        answer = self._put(asked, b"".join(parts[number] for number in listed))
        if answer is None or answer.status != 200:
            return answer
        del self.uploads[upload]
        tag = dict(answer.headers)["etag"].strip('"')
        body = f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        return replace(answer, headers=answer.headers + _XML, body=body.encode())


def _continued_here(answer: Answer | None, request: Request) -> Answer | None:
    """The answer, whose upload goes on at this front; the server names the host that it is asked by."""
    if answer is None:
        return None
    here = f"http://{request.header('host')}"
    told = ((name, value.replace(f"http://{PUBLIC_HOST}", here)) for name, value in answer.headers)
    return replace(answer, headers=tuple(told))


def _as_xml(answer: Answer | None) -> Answer | None:
    """The answer to what was put, as the XML API words it: tag and generation in the head."""
    if answer is None or answer.status != 200:
        return answer
    told = json.loads(answer.body)
    told = told.get("resource", told)
    return Answer(200, (("etag", f'"{told["etag"]}"'), ("x-goog-generation", str(told["generation"]))))


def _after(answer: Answer, start: str) -> Answer:
    """A listing without what is not after a name; the server lists all."""
    if not start or answer.status != 200:
        return answer

    def kept(found: re.Match[bytes]) -> bytes:
        name = re.search(rb"<Key>(.*?)</Key>", found[0], re.DOTALL)
        assert name is not None
        return found[0] if unescape(name[1].decode()) > start else b""

    return replace(answer, body=re.sub(rb"<Contents>.*?</Contents>", kept, answer.body, flags=re.DOTALL))


if __name__ == "__main__":
    with front.serving(XmlToJson(forwarding(int(sys.argv[1]), PUBLIC_HOST))) as serving_here:
        print(serving_here.url, flush=True)
        sys.stdin.read()  # until the process that asked for it ends
