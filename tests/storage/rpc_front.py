"""A front before a NameNode's RPC port, which loses, delays and refuses what goes through it.

Knows how Hadoop frames its calls: a length, and a header with the number of the call. The calls of several threads
share a connection, so one that is cut takes along whatever else is under way on it.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.support.patience import end

_PREFACE_BYTES = 7  # "hrpc", version, class of service, kind of authentication
_REFUSAL = "org.apache.hadoop.ipc.RetriableException"
Fields = dict[int, int | bytes]


class Call(NamedTuple):
    """One request of a client; numbers below zero are of the connection itself."""

    number: int
    method: str
    frame: bytes


Faults = Callable[[Call], str]
"""Of each call its fault, or nothing.

A *lost* or *failed* call never reaches the NameNode; of one whose *reply* is lost it was carried out; a *late* one is
carried out after its sender has given it up. All of them cut the connection. *busy* is what a NameNode says that has
too much to do, and nothing was done.
"""


@contextlib.contextmanager
def before(port: int, faults: Faults, late_s: float = 3) -> Iterator[int]:
    """The port of a front before a NameNode's; at its end every late call has been handed on.

    Args:
        late_s: for how long a late call is held.
    """
    front = _Front(port, faults, late_s)
    thread = threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield front.server_address[1]
    finally:
        front.shutdown()
        end(thread)
        front.server_close()
        end(*front.late)


class _Front(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, faults: Faults, late_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port, self.faults, self.late_s = port, faults, late_s
        self.late: list[threading.Thread] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone away is no news."""


class _Connection(socketserver.BaseRequestHandler):
    server: _Front
    request: socket.socket

    def handle(self) -> None:
        self.lost_replies, self.is_late = set[int](), False
        self.answering = threading.Lock()
        self.behind = socket.create_connection(("127.0.0.1", self.server.port))
        for each in (self.request, self.behind):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        replies = threading.Thread(target=self._replies, daemon=True)
        try:
            self.behind.sendall(_exactly(self.request, _PREFACE_BYTES))
            replies.start()
            while not self.is_late and self._handed_on(_call(_frame(self.request))):
                pass
        except OSError:
            pass
        finally:
            self._cut()

    def _handed_on(self, call: Call) -> bool:
        """Whether the connection stays, after this call."""
        fault = self.server.faults(call) if call.number >= 0 else ""
        if fault in ("lost", "failed"):
            return False
        if fault == "late":
            self.is_late = True
            late = threading.Thread(target=self._hand_on_late, args=(call,))
            self.server.late.append(late)
            late.start()
            return False
        if fault == "busy":
            with self.answering:
                self.request.sendall(_refusal(call.number))
            return True
        if fault == "reply":
            self.lost_replies.add(call.number)
        self.behind.sendall(call.frame)
        return True

    def _hand_on_late(self, call: Call) -> None:
        time.sleep(self.server.late_s)
        with contextlib.suppress(OSError):
            self.behind.sendall(call.frame)
            time.sleep(0.5)  # a NameNode leaves out the calls of who has gone
        self.behind.close()

    def _replies(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                frame = _frame(self.behind)
                if _number(_fields(*_delimited(frame, 4)), 1) in self.lost_replies:
                    break
                with self.answering:
                    self.request.sendall(frame)
        if not self.is_late:
            self._cut()

    def _cut(self) -> None:
        for each in (self.request, *(() if self.is_late else (self.behind,))):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


# -- what is on the wire -----------------------------------------------------------------------------------------------


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = source.recv(count - len(parts))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return bytes(parts)


def _frame(source: socket.socket) -> bytes:
    """One message with the length before it."""
    length = _exactly(source, 4)
    return length + _exactly(source, struct.unpack(">i", length)[0])


def _call(frame: bytes) -> Call:
    header, end = _delimited(frame, 4)
    number = _number(_fields(header), 3)
    number = (number >> 1) ^ -(number & 1)  # a sint32
    method = _fields(_delimited(frame, end)[0]).get(1, b"") if number >= 0 else b""
    return Call(number, method.decode() if isinstance(method, bytes) else "", frame)


def _refusal(number: int) -> bytes:
    """The answer that a NameNode with too much to do gives."""
    name, words = _REFUSAL.encode(), b"Server too busy - disconnecting"
    header = b"\x08" + _varint(number) + b"\x10\x01\x18\x09"
    header += b"\x22" + _varint(len(name)) + name + b"\x2a" + _varint(len(words)) + words + b"\x30\x01"
    message = _varint(len(header)) + header
    return struct.pack(">i", len(message)) + message


def _delimited(data: bytes, at: int) -> tuple[bytes, int]:
    """A message whose length stands before it, and where it ends."""
    length, at = _read_varint(data, at)
    return data[at : at + length], at + length


def _fields(message: bytes, _end: int = 0) -> Fields:
    """The fields of a message of Protocol Buffers, as far as they are numbers or bytes."""
    found: Fields = {}
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        if key & 7 == 0:
            found[key >> 3], at = _read_varint(message, at)
        else:
            assert key & 7 == 2, "Hadoop's headers have no other kinds"
            found[key >> 3], at = _delimited(message, at)
    return found


def _number(fields: Fields, field_number: int) -> int:
    found = fields.get(field_number, 0)
    assert isinstance(found, int)
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
