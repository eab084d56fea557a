"""An HTTP front before a real server: it hands each request on, and what stands in it may count, change, lose or delay.

A part of it is a `Handler`, from a request to its answer, around another one. `forwarding` is the innermost: it sends
the request to the server as it came. An answer of None means that the connection is cut without one.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.patience import PATIENCE, end

# What concerns one connection only, and what is written anew beside a body.
_OWN = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


@dataclass(frozen=True)
class Request:
    """One request; ``target`` is the path with its query, as it was sent."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """The value of a header, or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True)
class Answer:
    """One answer; ``length`` is what the answer to a HEAD says of the body that it leaves out."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    length: str = ""


Handler = Callable[[Request], Answer | None]


def forwarding(port: int, host: str = "") -> Handler:
    """A handler that asks the server at this port, by one connection per thread.

    Args:
        host: what the header *Host* says to it; as the client had it by default, since some sign it.
    """
    mine = threading.local()

    def ask(request: Request) -> Answer | None:
        for attempt in range(2):  # a connection that was idle may be closed by now
            if attempt or not hasattr(mine, "connection"):
                mine.connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            with contextlib.suppress(HTTPException, ConnectionError):
                return _asked(mine.connection, request, host)
        return Answer(502)

    return ask


def _asked(connection: HTTPConnection, request: Request, host: str) -> Answer:
    kept = [(key, value) for key, value in request.headers if key.lower() not in _OWN]
    connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
    for key, value in kept:
        connection.putheader(key, host if host and key.lower() == "host" else value)
    if request.body or request.method in ("PUT", "POST"):
        connection.putheader("content-length", str(len(request.body)))
    connection.endheaders(request.body)
    got = connection.getresponse()
    body = got.read()
    headers = tuple((key, value) for key, value in got.getheaders() if key.lower() not in _OWN)
    return Answer(got.status, headers, body, got.headers.get("content-length") or "")


@contextlib.contextmanager
def serving(handle: Handler | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Front]:
    """A front on a free port of this machine; its handler may be set later, but before the first request.

    Args:
        tls: with it the front speaks TLS; the server behind it is still asked without.
    """
    front = Front(handle, tls)
    thread = threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield front
    finally:
        front.shutdown()
        end(thread)
        front.server_close()


class Front(ThreadingHTTPServer):
    """Answers each request by what ``handle`` says of it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handle: Handler | None, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.handle: Handler = handle or (lambda request: Answer(503))
        if tls:  # the handshake waits for the connection's own thread
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone away is no news."""


class _Connection(BaseHTTPRequestHandler):
    server: Front
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self) -> None:
        request = Request(self.command, self.path, tuple(self.headers.items()), self._body())
        answer = self.server.handle(request)
        if answer is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(answer.status)
        for key, value in answer.headers:
            self.send_header(key, value)
        if answer.status not in (204, 304):
            length = answer.length if self.command == "HEAD" else ""
            self.send_header("content-length", length or str(len(answer.body)))
        self.end_headers_and(b"" if self.command == "HEAD" else answer.body)

    def end_headers_and(self, body: bytes) -> None:
        """Send head and body at once: two small packets would wait for each other's acknowledgement."""
        self._headers_buffer.append(b"\r\n" + body)
        self.flush_headers()

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = do_PROPFIND = _answer
