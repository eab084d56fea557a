"""A web server that counts who asks: a hostile log names it, and nobody may come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Counting(ThreadingHTTPServer):
    """Answers every request by these bytes; ``requests`` holds what was asked for."""

    daemon_threads = True

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.data = data
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Counting

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        data, status = self.server.data, 200
        if "range" in self.headers and self.command == "GET":
            first, _, last = self.headers["range"].removeprefix("bytes=").partition("-")
            data = data[-int(last) :] if not first else data[int(first) : int(last) + 1 if last else None]
            status = 206
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if status == 206:
            whole = len(self.server.data)
            begins = whole - len(data) if not first else int(first)
            self.send_header("content-range", f"bytes {begins}-{begins + len(data) - 1}/{whole}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET


@contextmanager
def counting(data: bytes = b"") -> Iterator[Counting]:
    """A server on a free port of this machine."""
    server = Counting(data)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
