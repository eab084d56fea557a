"""A client of HTTP, for untrusted servers.

Knows requests and answers, not their meaning. Guarantees: each request is sent once, and only to the server of its
address: no redirect is followed, no answer decompressed, nothing logged, and no request reveals an earlier one. An
answer has at most the bytes that the caller allows and ends in time, however slowly it comes; anything else raises
`Unanswered`, which quotes nothing from the server.
"""

from __future__ import annotations

import io
import os
import select
import socket
import ssl
import time
from base64 import b64encode
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from anabranch._storage.name_node import Unanswered

_BYTES_PER_S = 64 << 10
"""Rate of an answer, in bytes per second, that extends its time limit."""
_HEAD_BYTES, _FRAME_OVERHEAD = 1 << 20, 8
"""Bytes allowed beyond the body of an answer: for its head, and, as a multiple of its limit, for chunk frames."""
_PIECE_BYTES = 1 << 20
_MAX_IDLE = 32
"""Maximum number of idle connections to each server."""


@dataclass(frozen=True)
class Answer:
    """One answer; the names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def says_its_end(self) -> bool:
        """Whether a truncated answer can be recognised."""
        return "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()


class _Server(NamedTuple):
    """The server of a connection; connections belong to one process."""

    scheme: str
    host: str
    port: int | None
    process: int


class WebClient:
    """A client that threads can share.

    Args:
        timeout_s: time limit of an answer, besides one second for each 64 KiB received.
        connect_s: time limit of connecting.
        tls: for https servers; by default the machine's trust store.
        proxy_of: the URL of the proxy for an address, if it has one.
        headers: of all requests.
    """

    def __init__(
        self,
        timeout_s: float = 60.0,
        connect_s: float = 10.0,
        tls: ssl.SSLContext | None = None,
        proxy_of: Callable[[SplitResult], str | None] = lambda address: None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._timeout_s, self._connect_s, self._tls, self._proxy_of = timeout_s, connect_s, tls, proxy_of
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "anabranch", **(headers or {})}
        self._idle: dict[_Server, deque[HTTPConnection]] = defaultdict(partial(deque, maxlen=_MAX_IDLE))

    def ask(
        self,
        method: str,
        url: str,
        most_bytes: int,
        *,
        headers: Mapping[str, str] | None = None,
        body: Iterable[bytes] | None = None,
        cut: bool = False,
    ) -> Answer:
        """Send a request and return the answer.

        Args:
            most_bytes: maximum size of the answer.
            body: sent in chunks; its exceptions pass through, except an `OSError`.
            cut: truncate an answer that has more bytes instead of refusing it.

        Raises:
            Unanswered: the server cannot be reached, or its answer is not valid.
        """
        try:
            return self._ask(method, url, most_bytes, {**self._headers, **(headers or {})}, body, cut)
        except TimeoutError:
            raise Unanswered("the server takes too long to answer", passes=True) from None
        except OSError as error:
            raise Unanswered(_describe_error(error), passes=True) from None
        except HTTPException as error:
            raise Unanswered("the server's answer breaks off, or is not HTTP", passes=_is_truncated(error)) from None
        except ValueError:
            raise Unanswered("the address cannot be requested by HTTP", passes=False) from None

    def _ask(
        self, method: str, url: str, max_bytes: int, headers: Mapping[str, str], body: Iterable[bytes] | None, cut: bool
    ) -> Answer:
        address, response, is_reusable = urlsplit(url), None, False
        connection, target, proxy_headers = self._connection(address)
        try:
            response = self._send(connection, method, target, {**headers, **proxy_headers}, body, max_bytes)
            data = _body(response, max_bytes, cut)
            is_reusable = response.isclosed() and not response.will_close
            return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, data)
        finally:
            if response is not None:
                response.close()
            if is_reusable:
                self._idle[_server(address)].append(connection)
            else:
                connection.close()

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Iterable[bytes] | None,
        max_bytes: int,
    ) -> HTTPResponse:
        connection.sock.settimeout(self._timeout_s)  # of each chunk
        chunked = {} if body is None else {"Transfer-Encoding": "chunked"}
        chunks: Any = None if body is None else iter(body)
        try:
            connection.request(method, target, chunks, {**headers, **chunked}, encode_chunked=body is not None)
        except (BrokenPipeError, ConnectionResetError):
            if body is None:
                raise  # else the server may have answered why it takes no more
        deadline = time.monotonic() + self._timeout_s
        connection.response_class = partial(_Response, deadline=deadline, max_bytes=max_bytes)  # type: ignore[assignment]
        return connection.getresponse()

    # -- connections ---------------------------------------------------------------------------------------------------

    def _connection(self, address: SplitResult) -> tuple[HTTPConnection, str, Mapping[str, str]]:
        """A connection to a server, the target of a request there, and headers for a proxy."""
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(address.scheme)
        target = (address.path or "/") + (f"?{address.query}" if address.query else "")
        proxy = _proxy(self._proxy_of(address))
        proxy_headers = _authorization(proxy)
        if proxy is not None and address.scheme == "http":
            target = f"http://{address.netloc.rpartition('@')[2]}{target}"
        connection = self._take_idle(_server(address)) or self._connect(address, proxy, proxy_headers)
        return connection, target, proxy_headers if address.scheme == "http" else {}

    def _take_idle(self, server: _Server) -> HTTPConnection | None:
        idle = self._idle[server]
        while True:
            try:
                connection = idle.pop()
            except IndexError:
                return None
            if connection.sock is not None and not _is_dropped(connection.sock):
                return connection
            connection.close()

    def _connect(
        self, address: SplitResult, proxy: SplitResult | None, tunnel_headers: Mapping[str, str]
    ) -> HTTPConnection:
        server = address if proxy is None else proxy
        host, port = server.hostname or "", server.port
        connection: HTTPConnection
        if address.scheme == "https":
            context = self._tls or ssl.create_default_context()
            connection = HTTPSConnection(host, port, timeout=self._connect_s, context=context)
            if proxy is not None:
                connection.set_tunnel(address.hostname or "", address.port, dict(tunnel_headers))
        else:
            connection = HTTPConnection(host, port, timeout=self._connect_s)
        try:
            connection.connect()
        except TimeoutError:
            connection.close()
            raise ConnectionError("the server does not take a connection") from None
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def proxy_by_environment(address: SplitResult) -> str | None:
    """The proxy that the machine's environment names for an address (``HTTPS_PROXY``, ``NO_PROXY`` and their like)."""
    if proxy_bypass(address.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(address.scheme) or proxies.get("all")


def _proxy(url: str | None) -> SplitResult | None:
    if not url:
        return None
    parsed = urlsplit(url if "://" in url else f"http://{url}")
    if parsed.scheme != "http":
        raise Unanswered("only a proxy with plain http is supported", passes=False)
    return parsed


class _Response(HTTPResponse):
    """An answer with a deadline: a time limit for each packet would let it come byte by byte for ever."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, max_bytes: int, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Timed(sock, self.fp, deadline, max_bytes), 1 << 16)


class _Timed(io.RawIOBase):
    def __init__(self, sock: socket.socket, response: io.BufferedIOBase, deadline: float, max_bytes: int) -> None:
        self._sock, self._response, self._until = sock, response, deadline  # the open response keeps the socket open
        self._left = _HEAD_BYTES + _FRAME_OVERHEAD * max_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if self._left <= 0:
            raise HTTPException
        self._sock.settimeout(left_s)
        got = self._sock.recv_into(buffer)
        self._left -= got
        self._until += got / _BYTES_PER_S
        return got

    def close(self) -> None:
        self._response.close()
        super().close()


def _body(response: HTTPResponse, max_bytes: int, cut: bool) -> bytes:
    """The bytes of an answer. Raises Unanswered: it is compressed, too large, or truncated."""
    if response.getheader("content-encoding", "identity").strip().lower() != "identity":
        raise Unanswered("the server compresses its answer without being asked to", passes=False)
    if not cut and (response.length or 0) > max_bytes:
        raise _too_large(max_bytes)
    pieces, remaining = list[bytes](), max_bytes + 1 if not cut else max_bytes
    while remaining and (piece := response.read(min(remaining, _PIECE_BYTES))):
        pieces.append(piece)
        remaining -= len(piece)
    if not remaining and not cut:
        raise _too_large(max_bytes)
    if remaining and response.length:
        raise Unanswered("the server's answer breaks off", passes=True)
    return b"".join(pieces)


def _too_large(max_bytes: int) -> Unanswered:
    return Unanswered(f"the server's answer has more than the {max_bytes} bytes that it may have", passes=False)


def _server(address: SplitResult) -> _Server:
    return _Server(address.scheme, address.hostname or "", address.port, os.getpid())


def _authorization(proxy: SplitResult | None) -> Mapping[str, str]:
    if proxy is None or not proxy.username:
        return {}
    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(credentials.encode()).decode()}"}


def _is_dropped(sock: socket.socket) -> bool:
    """Whether the server has closed an idle connection, or has sent data without a request."""
    try:
        waiting = select.poll()
        waiting.register(sock, select.POLLIN)
        return bool(waiting.poll(0))
    except (OSError, ValueError):
        return True


def _describe_error(error: OSError) -> str:
    """The machine's own message; an error of TLS may quote a server's certificate, so only its kind is named."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the server's certificate is not trusted, or is that of another one"
    if isinstance(error, ssl.SSLError):
        return "the server does not speak TLS as it should"
    if isinstance(error, ConnectionResetError):
        return "the server has ended the connection"
    return error.strerror or str(error) or type(error).__name__


def _is_truncated(error: HTTPException) -> bool:
    """Whether an answer ended too early, as opposed to not being HTTP."""
    return type(error).__name__ in ("IncompleteRead", "RemoteDisconnected")
