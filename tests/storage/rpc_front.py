"""A front before a NameNode's RPC port, which loses, delays and refuses what goes through it.

The calls of several threads share a connection, so one that is cut takes along whatever else is under way on it.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator

from tests.storage import rpc_wire as wire
from tests.storage.rpc_wire import Call
from tests.support.patience import end

_REFUSAL = b"org.apache.hadoop.ipc.RetriableException"


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
            self.behind.sendall(wire.exactly(self.request, wire.PREFACE_BYTES))
            replies.start()
            while not self.is_late and self._handed_on(wire.call_in(wire.frame(self.request))):
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
                frame = wire.frame(self.behind)
                if wire.number(wire.fields(wire.delimited(frame, 4)[0]), 1) in self.lost_replies:
                    break
                with self.answering:
                    self.request.sendall(frame)
        if not self.is_late:
            self._cut()

    def _cut(self) -> None:
        for each in (self.request, *(() if self.is_late else (self.behind,))):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _refusal(number: int) -> bytes:
    """The answer that a NameNode with too much to do gives."""
    words = b"Server too busy - disconnecting"
    return wire.framing(wire.delimiting(wire.message({1: number, 2: 1, 3: 9, 4: _REFUSAL, 5: words, 6: 1})))
