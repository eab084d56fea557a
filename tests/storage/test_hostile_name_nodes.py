"""Whatever a NameNode, or a DataNode, answers over HTTP: the client ends, takes no more than was asked for, believes no
name that is none, and says what is wrong by our own errors.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._storage import Store, open_store
from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.trees import tree
from anabranch.errors import StoreError
from tests.storage import fake_webhdfs, front, raw_servers
from tests.storage.contract import relaxed
from tests.support.tiers import few_of

TOKEN = "VERY/SECRET+tökén=="
CALLS: dict[str, Callable[[HdfsStore], Any]] = {
    "get": lambda store: store.get("name"),
    "get by etag": lambda store: store.get("name", etag="1-5"),
    "range": lambda store: store.read_range("name", 1, 2),
    "range from the end": lambda store: store.read_range("name", -2, 2),
    "head": lambda store: store.head("name"),
    "put": lambda store: store.put("name", b"x"),
    "put if absent": lambda store: store.put_if_absent("name", b"x"),
    "put in chunks": lambda store: store.put_stream("name", [b"x"]),
    "list": lambda store: store.list_from(""),
    "list all": lambda store: store.list_all(),
    "walk": lambda store: tree(store, lambda name: False),
    "delete": lambda store: store.delete("name"),
}
each_call = pytest.mark.parametrize("call", CALLS)


def at(port: int, **options: str) -> HdfsStore:
    """A store there, whose requests are not sent again."""
    store = open_store(f"webhdfs://127.0.0.1:{port}/table", options)
    assert isinstance(store, HdfsStore)
    return replace(store, pauses_s=())


@pytest.fixture
def server() -> Iterator[front.Front]:
    with front.serving() as server:
        yield server


def a_file(length: int = 5, **fields: Any) -> dict[str, Any]:
    return {"pathSuffix": "name", "type": "FILE", "length": length, "modificationTime": 1, **fields}


def answering(**by_operation: Any) -> Callable[[front.Request], front.Answer]:
    """A handler that answers each operation by JSON, or by an answer."""

    def handle(request: front.Request) -> front.Answer:
        found = next((told for name, told in by_operation.items() if f"op={name}&" in request.target), None)
        return found if isinstance(found, front.Answer) else front.Answer(200, body=json.dumps(found).encode())

    return handle


# -- forms -------------------------------------------------------------------------------------------------------------

DEEP = b"[" * 100_000
TORN = [b"", b"{", b"[]", b"null", b"7", b'"x"', b"<html>", b"\xff\xfe", DEEP, b"1" * 5000, b'{"FileStatus": []}']
TORN += [b'{"FileStatus": {"length": "5"}}', b'{"FileStatuses": {"FileStatus": {"x": 1}}}', b'{"boolean": {}}']
TORN += [json.dumps({"FileStatuses": {"FileStatus": [a_file(**wrong)]}}).encode() for wrong in ({"pathSuffix": 5}, {})]
for wrong in ({"length": -1}, {"length": 1e400}, {"length": True}, {"modificationTime": None}, {"length": 10**30}):
    TORN.append(json.dumps({"FileStatus": a_file(**wrong)}).encode())


@pytest.mark.slow
@each_call
def test_an_answer_that_is_none_of_a_name_node_is_our_error(server: front.Front, call: str) -> None:
    for body in TORN:
        for status in (200, 201, 307, 403, 404):
            server.handle = lambda _, body=body, status=status: front.Answer(status, body=body)
            with contextlib.suppress(StoreError):
                CALLS[call](at(server.server_port))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["FILE", "DIRECTORY"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["FileStatus", "FileStatuses", "pathSuffix", "type", "length", "modificationTime"])
            | st.sampled_from(["RemoteException", "exception", "message", "boolean"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
headers = st.lists(
    st.tuples(
        st.sampled_from(["Location", "Content-Encoding", "Content-Type", "Transfer-Encoding"]),
        st.sampled_from(
            ["", "http://[", "//", "http://127.0.0.1:1/x", "ftp://x", "gzip", "http://h:port/", "identity"]
        ),
    ),
    max_size=2,
)


@pytest.mark.slow
@relaxed
@given(
    call=st.sampled_from(sorted(CALLS)),
    answers=st.lists(
        st.tuples(st.sampled_from([200, 201, 307, 403, 404, 500]), headers, values), min_size=1, max_size=4
    ),
)
def test_drawn_answers_end_in_our_errors_or_in_no_error(
    server: front.Front, call: str, answers: list[tuple[int, list[tuple[str, str]], Any]]
) -> None:
    drawn = iter(answers)

    def handle(request: front.Request) -> front.Answer | None:
        status, said, value = next(drawn, (404, [], None))
        return front.Answer(status, tuple(said), json.dumps(value).encode())

    server.handle = handle
    with contextlib.suppress(StoreError):
        CALLS[call](at(server.server_port))


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize(
    "location", [None, "", "nowhere", "//", "http://[::1", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://h:port/"]
)
def test_a_data_node_that_is_no_address_is_not_asked(server: front.Front, location: str | None) -> None:
    said = () if location is None else (("Location", location),)
    server.handle = answering(
        OPEN=front.Answer(307, said), CREATE=front.Answer(307, said), GETFILESTATUS=front.Answer(404)
    )
    for call in ("range", "put"):
        with pytest.raises(StoreError):
            CALLS[call](at(server.server_port))


@pytest.mark.usefixtures("without_pauses")
def test_a_data_node_that_hands_a_request_on_has_not_answered_it(server: front.Front) -> None:
    def handle(request: front.Request) -> front.Answer:
        return front.Answer(307, (("Location", f"{server.url}{request.target}"),), b"these are not the bytes")

    server.handle = handle
    with pytest.raises(StoreError):
        at(server.server_port).read_range("name", 0, 100)
    with pytest.raises(StoreError):
        at(server.server_port).put("name", b"x")


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".", "..", "../other", "../../etc/passwd", "a/b", "/etc", "x\0y", "name/"])
@pytest.mark.parametrize("kind", ["FILE", "DIRECTORY"])
def test_a_name_that_lies_elsewhere_is_refused(server: front.Front, suffix: str, kind: str) -> None:
    listed = {"FileStatuses": {"FileStatus": [a_file(), a_file(pathSuffix=suffix, type=kind)]}}
    server.handle = answering(LISTSTATUS=listed)
    for call in ("list", "list all", "walk"):
        with pytest.raises(StoreError):
            CALLS[call](at(server.server_port))


def test_a_folder_that_is_in_itself_is_no_folder_of_it(server: front.Front) -> None:
    listed = {"FileStatuses": {"FileStatus": [a_file(), a_file(pathSuffix="", type="DIRECTORY")]}}
    server.handle = answering(LISTSTATUS=listed)
    assert [entry.name for entry in at(server.server_port).list_all()] == ["name"]


@pytest.mark.slow
@pytest.mark.parametrize("names", [["again"], ["again", "and again"]])
def test_folders_without_an_end_are_refused(server: front.Front, names: list[str]) -> None:
    inside = [a_file(pathSuffix=name, type="DIRECTORY") for name in names]
    server.handle = answering(LISTSTATUS={"FileStatuses": {"FileStatus": inside}})
    for call in few_of(("list all", "walk"), 1):
        with pytest.raises(StoreError, match="have no end"):
            CALLS[call](at(server.server_port))


# -- sizes and times ---------------------------------------------------------------------------------------------------


@each_call
def test_a_packed_answer_is_not_unpacked(server: front.Front, call: str) -> None:
    bomb = gzip.compress(gzip.compress(bytes(1 << 26)))
    server.handle = lambda _: front.Answer(200, (("Content-Encoding", "gzip"),), bomb)
    with pytest.raises(StoreError, match="compresses its answer"):
        CALLS[call](at(server.server_port))


HEADS = {
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",
    "no length": b"HTTP/1.1 200 OK\r\n\r\n",
    "a refusal": b"HTTP/1.1 403 Forbidden\r\n\r\n",
    "headers": b"HTTP/1.1 200 OK\r\n",
    "interim answers": b"",
}
PIECES = {"chunks": b"10000\r\n%b\r\n" % bytes(1 << 16), "headers": b"x: y\r\n" * 1000}
PIECES["interim answers"] = b"HTTP/1.1 100 Continue\r\n\r\n" * 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind", HEADS)
def test_an_answer_without_an_end_is_given_up(kind: str) -> None:
    def talk(connection: Any) -> None:
        connection.sendall(HEADS[kind])
        for piece in repeat(PIECES.get(kind, bytes(1 << 16))):
            connection.sendall(piece)

    with raw_servers.serving(talk) as port:
        for call in ("head", "range", "get by etag"):
            with pytest.raises(StoreError):
                CALLS[call](at(port))


def test_a_good_answer_with_a_tail_without_an_end_is_none() -> None:
    good = json.dumps({"FileStatus": a_file()}).encode()

    def talk(connection: Any) -> None:
        connection.sendall(HEADS["chunks"] + b"%x\r\n%b\r\n" % (len(good), good))
        for blanks in repeat(b"10000\r\n%b\r\n" % (b" " * (1 << 16))):
            connection.sendall(blanks)

    with raw_servers.serving(talk) as port, pytest.raises(StoreError, match="more than"):
        at(port).head("name")


@pytest.mark.slow
@pytest.mark.parametrize("kind", HEADS)
def test_an_answer_that_drips_is_given_up_when_its_time_is_over(kind: str) -> None:
    """Each byte comes well before the limit of a single one; a length that is too large is refused at once."""

    def talk(connection: Any) -> None:
        connection.sendall(HEADS[kind])
        for piece in repeat(PIECES.get(kind, b" ")):
            for byte in piece:
                connection.sendall(bytes([byte]))
                time.sleep(0.02)

    with raw_servers.serving(talk) as port:
        for call in few_of(("head", "list", "get by etag", "put"), 2):
            with pytest.raises(StoreError, match=r"takes too long|more than"):
                CALLS[call](at(port, timeout="0.3"))


@pytest.mark.parametrize("gives", [b"123456", b"12345678901" * 1000, b""])
def test_other_bytes_than_a_file_has_are_none_of_it(gives: bytes) -> None:
    with fake_webhdfs.serving() as (server, files):
        store: Store = at(server.server_port)
        store.put("name", b"12345")
        entry = store.head("name")
        assert entry is not None

        def handle(request: front.Request) -> front.Answer:
            return front.Answer(200, body=gives) if "datanode=1" in request.target else files(request)

        server.handle = handle
        for etag in (None, entry.etag):
            if gives or etag:
                with pytest.raises(StoreError):
                    store.get("name", etag=etag)


# -- secrets -----------------------------------------------------------------------------------------------------------

SPELLINGS = [
    TOKEN,
    quote(TOKEN, safe=""),
    quote(TOKEN),
    quote(TOKEN, safe="").lower(),
    quote(quote(TOKEN, safe=""), safe=""),
]
SPELLINGS += [json.dumps(TOKEN)[1:-1], TOKEN.replace("/", "\\/"), TOKEN.replace("=", "&#61;")]


@pytest.mark.slow
@each_call
def test_a_token_is_in_no_error_and_no_record(server: front.Front, call: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said = " ".join(SPELLINGS)
    told = {"RemoteException": {"exception": "InvalidToken", "message": f"token {said}"}}
    named = {"RemoteException": {"exception": TOKEN, "message": said}}
    answers = [front.Answer(403, body=json.dumps(each).encode()) for each in (told, named)]
    answers += [front.Answer(500, body=said.encode()), front.Answer(200, body=said.encode())]
    answers += [
        front.Answer(307, (("Location", f"http://127.0.0.1:1/?delegation={spelled}"),)) for spelled in SPELLINGS[1:5]
    ]
    for answer in answers:
        server.handle = lambda _, answer=answer: answer
        store = at(server.server_port, delegation=TOKEN)
        shown = ""
        try:
            CALLS[call](store)
        except StoreError as error:
            shown = f"{error!r} {error} {error.facts} {error.__cause__!r} {store!r}"
        for spelled in SPELLINGS:
            assert spelled not in shown
            assert spelled not in caplog.text


def test_no_request_says_where_another_went() -> None:
    seen: list[front.Request] = []
    with fake_webhdfs.serving() as (server, files):

        def handle(request: front.Request) -> front.Answer:
            seen.append(request)
            return files(request)

        server.handle = handle
        store = at(server.server_port, delegation=TOKEN)
        store.put_if_absent("name", b"12345")
        assert store.get("name") == b"12345"
    assert seen
    assert not [request for request in seen if request.header("referer")]
