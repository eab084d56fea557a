"""Whatever a NameNode and its DataNodes say in their own languages: a call ends, by our own errors or with the truth.

The client is the real one, so each of these tests needs the extra ``hdfs``, and none needs Hadoop.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from anabranch._storage import open_store
from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.hdfs_rpc import NativeFiles
from anabranch.errors import PutOutcomeUnknown, StoreError
from tests.storage import fake_hdfs
from tests.storage import rpc_wire as wire
from tests.storage.fake_hdfs import Lies, packet
from tests.storage.rpc_wire import message
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.clouds]
NAME = "/table/name"


@contextlib.contextmanager
def store_of(lies: Lies, answer_s: float = PATIENCE) -> Iterator[HdfsStore]:
    """A store there with one file of five bytes, whose requests are not sent again."""
    pytest.importorskip("hdfs_native")
    lies.files[NAME] = b"12345"
    with fake_hdfs.serving(lies) as port:
        store = open_store(f"hdfs://127.0.0.1:{port}/table")
        assert isinstance(store, HdfsStore)
        assert isinstance(store.files, NativeFiles)
        yield replace(store, files=replace(store.files, answer_s=answer_s), pauses_s=())


READS: dict[str, Callable[[HdfsStore], bytes]] = {
    "get": lambda store: store.get("name"),
    "get by etag": lambda store: store.get("name", etag="1000-5"),
    "range": lambda store: store.read_range("name", 0, 5),
    "range from the end": lambda store: store.read_range("name", -5, 5),
}
each_read = pytest.mark.parametrize("read", READS)


@each_read
def test_honest_servers_are_believed(read: str) -> None:
    with store_of(Lies()) as store:
        store.put_if_absent("folder/new", b"x" * 100_000)
        assert READS[read](store) == b"12345"
        assert store.get("folder/new") == b"x" * 100_000
        assert [each.name for each in store.list_all()] == ["folder/new", "name"]


# -- what is read ------------------------------------------------------------------------------------------------------


class Blocks(Lies):
    """A NameNode that says such blocks of a file: where each begins, and how long it is."""

    said: tuple[tuple[int, int], ...] = ()

    def blocks(self, path: str, length: int) -> bytes:
        found = [self.block(path, size, offset=at) for at, size in self.said]
        return message({1: length, 2: found, 3: 0, 5: 1})


@each_read
@pytest.mark.parametrize("said", [(), ((0, 2),), ((0, 5), (0, 5)), ((3, 2),)])
def test_blocks_that_are_not_the_whole_file_are_none_of_it(read: str, said: tuple[tuple[int, int], ...]) -> None:
    lies = Blocks()
    lies.said = said
    with store_of(lies) as store, pytest.raises(StoreError):
        READS[read](store)


class Long(Lies):
    """A NameNode that says so many bytes of each file."""

    says = 0

    def entry(self, name: str | bytes, length: int, kind: int = 2, modified_ms: int = 1000) -> bytes:
        return super().entry(name, self.says, kind, modified_ms)

    def blocks(self, path: str, length: int) -> bytes:
        return super().blocks(path, self.says)


@pytest.mark.slow
@pytest.mark.parametrize("says", [1 << 31, 1 << 40, 1 << 50, (1 << 63) - 1, (1 << 64) - 1])
def test_no_memory_is_taken_for_bytes_that_do_not_come(says: int) -> None:
    """The client would take all of it at once, which ends the process."""
    lies = Long()
    lies.says = says
    with store_of(lies, answer_s=0.5) as store:
        for ask in (READS["get"], READS["range from the end"], lambda store: store.read_range("name", 0, says)):
            with pytest.raises(StoreError):
                ask(store)


class Sent(Lies):
    """A DataNode that sends these bytes, and then what it says for ever."""

    sends, again = b"", b""

    def read(self, peer: socket.socket, path: str, start: int, length: int) -> None:
        peer.sendall(self.sends)
        while self.again:
            peer.sendall(self.again)
        self.over.wait(PATIENCE)


HEAD = Lies().checked(0)
SENT: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "no packet": (HEAD, b""),
    "garbage": (b"\xff" * 1000, b""),
    "fewer bytes": (HEAD + packet(b"12", 0, 0) + packet(b"", 2, 1, last=True), b""),
    "less than a packet says": (HEAD + packet(b"12", 0, 0, says=500), b""),
    "a length below zero": (HEAD + packet(b"12", 0, 0, says=-5), b""),
    "a huge packet": (HEAD + struct.pack(">IH", 0xFFFFFFFF, 25), b""),
    "bad sums": (
        wire.delimiting(message({1: 0, 4: message({1: message({1: 2, 2: 512}), 2: 0})})),
        packet(b"12345", 0, 0),
    ),
    "sums of nothing": (
        wire.delimiting(message({1: 0, 4: message({1: message({1: 2, 2: 0}), 2: 0})})),
        packet(b"1", 0, 0),
    ),
    "packets without an end": (HEAD, packet(b"x" * 60_000, 0, 0)),
    "a refusal": (wire.delimiting(message({1: 1, 5: b"no " * 100_000})), b""),
}


@pytest.mark.slow
@each_read
@pytest.mark.parametrize("sent", SENT)
def test_what_a_data_node_gives_wrongly_ends(read: str, sent: str) -> None:
    lies = Sent()
    lies.sends, lies.again = SENT[sent]
    with store_of(lies, answer_s=0.5) as store, pytest.raises(StoreError):
        READS[read](store)


# -- what is written ---------------------------------------------------------------------------------------------------


class Acknowledging(Lies):
    """A DataNode that answers each packet so."""

    says: bytes | None = b""

    def acknowledged(self, header: dict[int, int]) -> bytes:
        if self.says is None:
            self.over.wait(PATIENCE)
        return self.says or b""


ACKNOWLEDGED = {
    "nothing": None,
    "garbage": b"\xff" * 100,
    "an error": wire.delimiting(message({1: 0, 2: 1})),
    "another packet": wire.delimiting(message({1: 14, 2: 0})),
    "heartbeats": wire.delimiting(message({1: 1, 2: 0})) * 1000,
}


@pytest.mark.slow
@pytest.mark.parametrize("says", ACKNOWLEDGED)
@pytest.mark.parametrize("put", ["put", "put_if_absent"])
def test_a_block_that_is_not_acknowledged_is_no_put(put: str, says: str) -> None:
    lies = Acknowledging()
    lies.says = ACKNOWLEDGED[says]
    with store_of(lies, answer_s=0.5) as store, pytest.raises(StoreError) as told:
        getattr(store, put)("new", b"x")
    assert not isinstance(told.value, PutOutcomeUnknown)
    assert "rename2" not in lies.calls


class Silent(Lies):
    """A NameNode that never answers one kind of call."""

    call_left = ""

    def call(self, method: str, asked: wire.Fields) -> bytes | Exception | None:
        return None if method == self.call_left else super().call(method, asked)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["getFileInfo", "create", "addBlock", "complete", "rename2"])
def test_a_put_that_a_name_node_does_not_answer_is_no_put_or_an_unknown_one(call: str) -> None:
    lies = Silent()
    lies.call_left = call
    with store_of(lies, answer_s=0.5) as store, pytest.raises(StoreError) as told:
        store.put_if_absent("new", b"x")
    assert isinstance(told.value, PutOutcomeUnknown) is ("rename2" in lies.calls)


# -- what is listed ----------------------------------------------------------------------------------------------------


class Listing(Lies):
    """A NameNode whose folders have no end."""

    is_new = False

    def getListing(self, asked: wire.Fields) -> bytes:
        first = len(self.calls) * 100 if self.is_new else 0
        names = [self.entry(f"{first + i:012}", 1) for i in range(100)]
        return message({1: message({1: names, 2: 1})})


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [False, True])
def test_a_folder_without_an_end_is_refused(is_new: bool) -> None:
    lies = Listing()
    lies.is_new = is_new
    with store_of(lies) as store:
        few: Any = replace(store.files, folder_entries=5000)
        with pytest.raises(StoreError, match="has no end"):
            replace(store, files=few).list_all()
