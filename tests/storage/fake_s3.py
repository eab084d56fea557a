"""A small S3 over HTTP that can be told how to fail: only what a put-if-absent and a read need.

moto and Azurite keep the whole contract; this one loses replies, answers with chosen statuses, and counts requests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.patience import PATIENCE, end, happens
from tests.support.planted import SECRET


class FakeS3(ThreadingHTTPServer):
    """Objects by path; ``requests`` counts by method; ``fault`` is asked before each PUT takes effect.

    ``fault`` returns None to go on, a status to refuse with, ``"lost"`` to write and then hang up without a word, or
    ``"slow"`` to write and answer only when the test sets ``given_up``.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.fault: Callable[[], int | str | None] = lambda: None
        self.given_up = threading.Event()

    @property
    def options(self) -> dict[str, str]:
        """What opens a store on this server."""
        return {
            "endpoint": f"http://127.0.0.1:{self.server_port}",
            "allow_http": "true",
            "access_key_id": "any",
            "secret_access_key": SECRET,
            "region": "us-east-1",
            "timeout": f"{PATIENCE}s",
        }

    def puts(self) -> int:
        return sum(method == "PUT" for method, _ in self.requests)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeS3

    def log_message(self, *_: object) -> None:
        pass

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append(("PUT", self.path))
        fault = self.server.fault()
        if isinstance(fault, int):
            return self.answer(fault)
        if self.headers["if-none-match"] == "*" and self.path in self.server.objects:
            return self.answer(412)
        self.server.objects[self.path] = data
        if fault == "lost":
            self.close_connection = True
            return None
        if fault == "slow":
            happens(self.server.given_up)
        return self.answer(200)

    def do_GET(self) -> None:
        self.server.requests.append((self.command, self.path))
        data = self.server.objects.get(self.path)
        if data is None:
            return self.answer(404)
        if "range" in self.headers:
            return self.answer_range(data)
        return self.answer(200, data)

    do_HEAD = do_GET

    def answer_range(self, data: bytes) -> None:
        first, _, last = self.headers["range"].removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(len(data), int(last) + 1) if first and last else len(data)
        if start >= len(data):
            return self.answer(416)
        return self.answer(206, data[start:end], f"bytes {start}-{end - 1}/{len(data)}")

    def answer(self, status: int, data: bytes = b"", content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.send_header("etag", f'"{hash(data)}"')
        self.send_header("last-modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        if content_range:
            self.send_header("content-range", content_range)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def serving() -> Iterator[FakeS3]:
    server = FakeS3()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        end(thread)
        server.server_close()
