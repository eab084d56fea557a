"""A NameNode and a DataNode that speak Hadoop's own languages, honestly, until a test says how they lie.

Knows how their messages are framed, and the few fields that a client reads; a file is one block, kept in memory.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.storage import rpc_wire as wire
from tests.storage.rpc_wire import message
from tests.support.patience import PATIENCE, end

_WRITE, _READ = 80, 81
_SUM_BYTES = 512
_KINDS = {
    FileNotFoundError: b"java.io.FileNotFoundException",
    FileExistsError: b"org.apache.hadoop.fs.FileAlreadyExistsException",
}


class Lies:
    """What the two do; a test overrides what is to be a lie. Its methods are called as those of the NameNode are."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.port = 0
        self.over = threading.Event()

    # -- the NameNode --------------------------------------------------------------------------------------------------

    def call(self, method: str, asked: wire.Fields) -> bytes | Exception | None:
        """The message that answers a call; with ``None`` there is no answer, ever."""
        answer: Callable[[wire.Fields], Any] = getattr(self, method)
        found: bytes | Exception | None = answer(asked)
        return found

    def getServerDefaults(self, _: wire.Fields) -> bytes:
        return message({1: message({1: 1 << 27, 2: _SUM_BYTES, 3: 65536, 4: 1, 5: 4096})})

    def getFileInfo(self, asked: wire.Fields) -> bytes:
        found = self.found(text(asked, 1))
        return message({1: found} if found is not None else {})

    def getListing(self, asked: wire.Fields) -> bytes:
        folder = text(asked, 1).rstrip("/") + "/"
        names = sorted({path.removeprefix(folder).partition("/")[0] for path in self.files if path.startswith(folder)})
        if not names:
            return message({})
        return message({1: message({1: [self.status(name, self.found(folder + name)) for name in names], 2: 0})})

    def getBlockLocations(self, asked: wire.Fields) -> bytes | Exception:
        data = self.files.get(text(asked, 1))
        if data is None:
            return FileNotFoundError(text(asked, 1))
        return message({1: self.blocks(text(asked, 1), len(data))})

    def create(self, asked: wire.Fields) -> bytes:
        self.files[text(asked, 1)] = b""
        return message({1: self.entry(text(asked, 1), 0)})

    def addBlock(self, asked: wire.Fields) -> bytes:
        return message({1: self.block(text(asked, 1), 0)})

    def fsync(self, _: wire.Fields) -> bytes:
        return b""

    def complete(self, _: wire.Fields) -> bytes:
        return message({1: 1})

    def rename2(self, asked: wire.Fields) -> bytes | Exception:
        source, path = text(asked, 1), text(asked, 2)
        if path in self.files and not asked.get(3):
            return FileExistsError(path)
        self.files[path] = self.files.pop(source)
        return b""

    def delete(self, asked: wire.Fields) -> bytes:
        return message({1: int(self.files.pop(text(asked, 1), None) is not None)})

    def renewLease(self, _: wire.Fields) -> bytes:
        return b""

    def found(self, path: str) -> bytes | None:
        """The status of a path; its name is empty, as a NameNode's is."""
        if path in self.files:
            return self.entry("", len(self.files[path]))
        is_folder = any(each.startswith(f"{path.rstrip('/')}/") for each in self.files)
        return self.entry("", 0, kind=1) if is_folder else None

    def status(self, name: str, found: bytes | None) -> bytes:
        """A status with a name."""
        assert found is not None
        return found + wire.field(2, name.encode())  # the last one counts

    def entry(self, name: str | bytes, length: int, kind: int = 2, modified_ms: int = 1000) -> bytes:
        """A status."""
        name = name.encode() if isinstance(name, str) else name
        rights = message({1: 0o644})
        return message(
            {1: kind, 2: name, 3: length, 4: rights, 5: b"o", 6: b"g", 7: modified_ms, 8: 0, 10: 1, 11: 1 << 27, 13: 7}
        )

    def blocks(self, path: str, length: int) -> bytes:
        """Where a file's only block is."""
        return message({1: length, 2: [self.block(path, length)] if length else [], 3: 0, 5: 1})

    def block(self, path: str, length: int, offset: int = 0) -> bytes:
        """A block, which this DataNode has."""
        block = message({1: path.encode(), 2: 1, 3: 1, 4: length})
        node = {1: b"127.0.0.1", 2: b"localhost", 3: b"node", 4: self.port, 5: 0, 6: 0}
        token = message({1: b"", 2: b"", 3: b"", 4: b""})
        return message({1: block, 2: offset, 3: message({1: message(node)}), 4: 0, 5: token, 7: 1, 8: b"storage"})

    # -- the DataNode --------------------------------------------------------------------------------------------------

    def read(self, peer: socket.socket, path: str, start: int, length: int) -> None:
        """Give the bytes of a block, from the checksum's border before them."""
        start -= start % _SUM_BYTES
        peer.sendall(self.checked(start))
        data = self.files.get(path, b"")[start : start + length + _SUM_BYTES]
        peer.sendall(packet(data, start, 0))
        peer.sendall(packet(b"", start + len(data), 1, last=True))
        wire.delimited_from(peer)

    def checked(self, start: int) -> bytes:
        """What comes before the packets; without checksums."""
        sums = message({1: message({1: 0, 2: _SUM_BYTES}), 2: start})
        return wire.delimiting(message({1: 0, 4: sums}))

    def write(self, peer: socket.socket, path: str) -> None:
        """Take packets, and acknowledge each."""
        peer.sendall(wire.delimiting(message({1: 0, 2: b""})))
        while True:
            header, data = taken(peer)
            self.files[path] = self.files.get(path, b"") + data
            peer.sendall(self.acknowledged(header))
            if header[3]:
                return

    def acknowledged(self, header: dict[int, int]) -> bytes:
        """The reply to a packet."""
        return wire.delimiting(message({1: abs(header[2]) << 1, 2: 0}))


def packet(data: bytes, offset: int, number: int, *, last: bool = False, says: int | None = None) -> bytes:
    """A packet of a block, with sums that nobody looks at."""
    sums = b"\0\0\0\0" * -(-len(data) // _SUM_BYTES)
    size = len(data) if says is None else says
    header = b"\x09" + struct.pack("<q", offset) + b"\x11" + struct.pack("<q", number) + bytes([0x18, last])
    header += b"\x25" + struct.pack("<i", size)
    return struct.pack(">IH", len(sums) + len(data) + 4, len(header)) + header + sums + data


def taken(peer: socket.socket) -> tuple[dict[int, int], bytes]:
    """A packet that a client sends: the fields of its header, and its data."""
    size, head = struct.unpack(">IH", wire.exactly(peer, 6))
    header = wire.exactly(peer, head)
    offset, number = struct.unpack("<q", header[1:9])[0], struct.unpack("<q", header[10:18])[0]
    length = struct.unpack("<i", header[21:25])[0]
    rest = wire.exactly(peer, size - 4)
    return {1: offset, 2: number, 3: header[19], 4: length}, rest[len(rest) - length :]


def text(asked: wire.Fields, number: int) -> str:
    """A field that is a text."""
    found = asked[number]
    assert isinstance(found, bytes)
    return found.decode()


@contextlib.contextmanager
def serving(lies: Lies) -> Iterator[int]:
    """The port of the NameNode."""
    with contextlib.ExitStack() as stack:
        lies.port = stack.enter_context(_listening(lambda peer: _transfer(lies, peer)))
        yield stack.enter_context(_listening(lambda peer: _talk(lies, peer)))
        lies.over.set()


@contextlib.contextmanager
def _listening(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(PATIENCE)
            with contextlib.suppress(OSError):
                talk(self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            end(thread)


def _talk(lies: Lies, peer: socket.socket) -> None:
    """What a NameNode does on a connection."""
    wire.exactly(peer, wire.PREFACE_BYTES)
    while True:
        call = wire.call_in(wire.frame(peer))
        if call.number < 0:
            continue
        lies.calls.append(call.method)
        answer = lies.call(call.method, wire.fields(call.asked))
        if answer is None:
            lies.over.wait(PATIENCE)
            return
        if isinstance(answer, Exception):
            head = {1: call.number, 2: 1, 4: _KINDS.get(type(answer), b"java.io.IOException"), 5: str(answer).encode()}
            peer.sendall(wire.framing(wire.delimiting(message(head))))
        else:
            head = {1: call.number, 2: 0}
            peer.sendall(wire.framing(wire.delimiting(message(head)) + wire.delimiting(answer)))


def _transfer(lies: Lies, peer: socket.socket) -> None:
    """What a DataNode does on a connection."""
    while True:
        operation = wire.exactly(peer, 3)[2]
        asked = wire.fields(wire.delimited_from(peer))
        header = wire.fields(wire.inner(asked, 1))
        path = text(wire.fields(wire.inner(wire.fields(wire.inner(header, 1)), 1)), 1)
        if operation == _READ:
            lies.read(peer, path, wire.number(asked, 2), wire.number(asked, 3))
        elif operation == _WRITE:
            lies.write(peer, path)
