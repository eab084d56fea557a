"""A client of HTTP, for servers that nobody vouches for.

Knows requests and answers, and not what they mean. Guarantees: each request is sent once, and to the server that its
address names: no redirect is followed, no answer unpacked, nothing logged, and no request says which one came before
it. An answer has no more bytes than its asker allows and ends in time, however slowly it comes; all else raises
`Unanswered`, in which no word is the server's.
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
"""A server that gives this much is waited for beyond its time."""
_HEAD_BYTES, _FRAMES = 1 << 20, 8
"""What an answer may take besides its bytes: for its head, and how many times their number in frames of chunks."""
_PIECE_BYTES = 1 << 20
_KEPT = 32
"""How many idle connections are kept for each server."""


@dataclass(frozen=True)
class Answer:
    """One answer; the names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def says_its_end(self) -> bool:
        """Whether it would be known of an answer that breaks off."""
        return "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()


class _Server(NamedTuple):
    """What a connection leads to; those of a process end with it."""

    scheme: str
    host: str
    port: int | None
    process: int


class WebClient:
    """Threads share one.

    Args:
        timeout_s: how long an answer may take, and besides one second for each 64 KiB that have come.
        connect_s: how long a connection may take.
        tls: for servers that are asked by https; by default as the machine trusts them.
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
        self._idle: dict[_Server, deque[HTTPConnection]] = defaultdict(partial(deque, maxlen=_KEPT))

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
        """What a server answers.

        Args:
            most_bytes: that the answer may have.
            body: is sent in chunks; what it raises is raised as it is, unless it is an `OSError`.
            cut: take the first bytes of an answer that has more, in place of refusing it.

        Raises:
            Unanswered: the server cannot be asked, or does not answer as it should.
        """
        try:
            return self._ask(method, url, most_bytes, {**self._headers, **(headers or {})}, body, cut)
        except TimeoutError:
            raise Unanswered("the server takes too long to answer", passes=False) from None
        except OSError as error:
            raise Unanswered(_describe_error(error), passes=True) from None
        except HTTPException as error:
            raise Unanswered("the server's answer breaks off, or is none of HTTP", passes=_broke(error)) from None
        except ValueError:
            raise Unanswered("the address cannot be asked by HTTP", passes=False) from None

    def _ask(
        self, method: str, url: str, most: int, headers: Mapping[str, str], body: Iterable[bytes] | None, cut: bool
    ) -> Answer:
        address, response, whole = urlsplit(url), None, False
        connection, target, more = self._connection(address)
        try:
            response = self._send(connection, method, target, {**headers, **more}, body, most)
            data = _body(response, most, cut)
            whole = response.isclosed() and not response.will_close
            return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, data)
        finally:
            if response is not None:
                response.close()
            if whole:
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
        most: int,
    ) -> HTTPResponse:
        connection.sock.settimeout(self._timeout_s)  # of each chunk
        chunked = {} if body is None else {"Transfer-Encoding": "chunked"}
        sent: Any = None if body is None else iter(body)
        try:
            connection.request(method, target, sent, {**headers, **chunked}, encode_chunked=body is not None)
        except (BrokenPipeError, ConnectionResetError):
            if body is None:
                raise  # else the server may have said why it takes no more
        until = time.monotonic() + self._timeout_s
        connection.response_class = partial(_Response, until=until, most=most)  # type: ignore[assignment]
        return connection.getresponse()

    # -- connections ---------------------------------------------------------------------------------------------------

    def _connection(self, address: SplitResult) -> tuple[HTTPConnection, str, Mapping[str, str]]:
        """A connection to a server, the target of a request there, and headers for a proxy."""
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(address.scheme)
        target = (address.path or "/") + (f"?{address.query}" if address.query else "")
        proxy = _proxy(self._proxy_of(address))
        more = _authorization(proxy)
        if proxy is not None and address.scheme == "http":
            target = f"http://{address.netloc.rpartition('@')[2]}{target}"
        connection = self._idle_one(_server(address)) or self._new_one(address, proxy, more)
        return connection, target, more if address.scheme == "http" else {}

    def _idle_one(self, server: _Server) -> HTTPConnection | None:
        idle = self._idle[server]
        while True:
            try:
                connection = idle.pop()
            except IndexError:
                return None
            if connection.sock is not None and not _is_dropped(connection.sock):
                return connection
            connection.close()

    def _new_one(
        self, address: SplitResult, proxy: SplitResult | None, tunnel_headers: Mapping[str, str]
    ) -> HTTPConnection:
        asked = address if proxy is None else proxy
        host, port = asked.hostname or "", asked.port
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
    found = getproxies()
    return found.get(address.scheme) or found.get("all")


def _proxy(url: str | None) -> SplitResult | None:
    if not url:
        return None
    found = urlsplit(url if "://" in url else f"http://{url}")
    if found.scheme != "http":
        raise Unanswered("only a proxy of plain http can be asked", passes=False)
    return found


class _Response(HTTPResponse):
    """An answer that ends by a deadline: a limit for each packet would let one come byte by byte for ever."""

    def __init__(self, sock: socket.socket, *args: Any, until: float, most: int, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Timed(sock, self.fp, until, most), 1 << 16)


class _Timed(io.RawIOBase):
    def __init__(self, sock: socket.socket, held: io.BufferedIOBase, until: float, most: int) -> None:
        self._sock, self._held, self._until = sock, held, until  # while ``held`` is open, the socket is
        self._left = _HEAD_BYTES + _FRAMES * most

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
        self._held.close()
        super().close()


def _body(response: HTTPResponse, most: int, cut: bool) -> bytes:
    """The bytes of an answer. Raises Unanswered: they are packed, too many, or too few."""
    if response.getheader("content-encoding", "identity").strip().lower() != "identity":
        raise Unanswered("the server packs its answer, which nobody asked for", passes=False)
    if not cut and (response.length or 0) > most:
        raise _too_large(most)
    pieces, left = list[bytes](), most + 1 if not cut else most
    while left and (piece := response.read(min(left, _PIECE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    if not left and not cut:
        raise _too_large(most)
    if left and response.length:
        raise Unanswered("the server's answer breaks off", passes=True)
    return b"".join(pieces)


def _too_large(most: int) -> Unanswered:
    return Unanswered(f"the server's answer has more than the {most} bytes that it may have", passes=False)


def _server(address: SplitResult) -> _Server:
    return _Server(address.scheme, address.hostname or "", address.port, os.getpid())


def _authorization(proxy: SplitResult | None) -> Mapping[str, str]:
    if proxy is None or not proxy.username:
        return {}
    who = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(who.encode()).decode()}"}


def _is_dropped(sock: socket.socket) -> bool:
    """Whether the server has ended an idle connection, or has said something that nobody asked for."""
    try:
        waiting = select.poll()
        waiting.register(sock, select.POLLIN)
        return bool(waiting.poll(0))
    except (OSError, ValueError):
        return True


def _describe_error(error: OSError) -> str:
    """The machine's own words; an error of TLS may quote a server's certificate, so it is told by its kind."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the server's certificate is not trusted, or is that of another one"
    if isinstance(error, ssl.SSLError):
        return "the server does not speak TLS as it should"
    if isinstance(error, ConnectionResetError):
        return "the server has ended the connection"
    return error.strerror or str(error) or type(error).__name__


def _broke(error: HTTPException) -> bool:
    """Whether an answer came to its end too early, and not in another form than HTTP's."""
    return type(error).__name__ in ("IncompleteRead", "RemoteDisconnected")
