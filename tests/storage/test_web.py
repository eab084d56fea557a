"""A table on a web server: what is asked there, by whom, and what is believed."""

from __future__ import annotations

import contextlib
import logging
import pickle
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anabranch
from anabranch._storage import Store, open_store
from anabranch._storage.trees import tree
from anabranch.commands.opening import open_log
from anabranch.errors import NotFound, StoreError, StorePermissionDenied, UnknownStore
from tests.storage import front, raw_servers
from tests.storage.contract import ODD_NAMES, relaxed
from tests.storage.fake_webdav import FakeWebDav, Hrefs
from tests.support.planted import SECRET
from tests.support.worlds import World

ASKING: dict[str, Callable[[Store], Any]] = {
    "get": lambda store: store.get("a/name"),
    "range": lambda store: store.read_range("a/name", 1, 2),
    "range from the end": lambda store: store.read_range("a/name", -2, 2),
    "head": lambda store: store.head("a/name"),
    "list": lambda store: store.list_from("a/"),
    "list all": lambda store: store.list_all(),
    "walk": lambda store: tree(store, lambda name: False),
}
each_way = pytest.mark.parametrize("way", ASKING)


@pytest.fixture
def server() -> Iterator[front.Front]:
    with front.serving() as server:
        yield server


@pytest.fixture
def files(tmp_path: Path, server: front.Front) -> FakeWebDav:
    """The files that the server gives."""
    (tmp_path / "served").mkdir()
    server.handle = dav = FakeWebDav(tmp_path / "served")
    return dav


def put(files: FakeWebDav, name: str, data: bytes) -> None:
    path = files.folder / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# -- what is there -----------------------------------------------------------------------------------------------------

HREFS: dict[str, Hrefs] = {
    "paths": str,
    "addresses": lambda path: f"http://127.0.0.1{path}",
    "those of another host": lambda path: f"https://behind.a.proxy:8443{path}",
    "small letters": lambda path: path.replace("%C3%A9", "%c3%a9"),
    "nothing encoded that need not be": lambda path: path.replace("%3D", "="),
}


@pytest.mark.parametrize("spelling", HREFS)
@pytest.mark.parametrize("prefix", ["D:", "lp1:", ""])
def test_a_table_below_a_path_is_found(server: front.Front, files: FakeWebDav, spelling: str, prefix: str) -> None:
    """Of obstore's client the answers of an ordinary server were no table."""
    files.href, files.prefix = HREFS[spelling], prefix
    world = World(str(files.folder / "a b" / "t é")).create([{"id": 1, "p": "x=é"}], partition_by=("p",))
    world.append({"id": 2, "p": "y"})
    there = f"{server.url}/dav/files/a b/t é"
    assert [row["version"] for row in anabranch.history(there)] == [1, 0]
    assert World(there).rows() == world.rows()
    assert anabranch.check(there, deep=True).is_clean
    assert World(f"{server.url}/dav/files/a%20b/t%20%C3%A9").rows() == world.rows()


def test_names_are_those_of_the_files(server: front.Front, files: FakeWebDav) -> None:
    names = sorted(name for name in (*ODD_NAMES, "deep/er/name") if name != "é/ü/日本")
    for name in names:
        put(files, name, name.encode())
    put(files, "empty", b"")
    store = open_store(f"{server.url}/dav/files/t/")
    assert [each.name for each in store.list_all()] == sorted([*names, "empty"])
    assert [each.name for each in store.list_from("deep/er/")] == ["deep/er/name"]
    for name in names:
        assert store.get(name) == name.encode()
        assert store.head(name) in store.list_all()
    assert store.get("empty") == b""
    assert store.head("deep/er") is None
    assert store.list_from("deep/") == store.list_all("absent") == []
    assert [each.name for each in tree(store, lambda name: name == "deep").files] == sorted(
        {*names, "empty"} - {"deep/er/name"}
    )
    assert pickle.loads(pickle.dumps(store)).get("empty") == b""


@pytest.mark.slow
@pytest.mark.parametrize("ranges", [True, False])
@relaxed
@given(data=st.binary(max_size=12), start=st.integers(-15, 15), length=st.integers(0, 15))
def test_a_range_is_a_slice(
    server: front.Front, files: FakeWebDav, ranges: bool, data: bytes, start: int, length: int
) -> None:
    files.ranges = ranges
    put(files, "name", data)
    assert open_store(f"{server.url}/dav/files/t").read_range("name", start, length) == data[start:][:length]


def test_an_absent_name_is_not_found(server: front.Front, files: FakeWebDav) -> None:
    store = open_store(f"{server.url}/dav/files/t")
    assert store.head("absent") is None
    for ask in (
        lambda: store.get("absent"),
        lambda: store.read_range("absent", 0, 1),
        lambda: store.read_range("absent", -1, 0),
    ):
        with pytest.raises(NotFound):
            ask()
    put(files, "name", b"x")
    with pytest.raises(NotFound):
        store.get("name", etag="another")
    assert not open_log(f"{server.url}/dav/files/t").exists()


def test_nothing_is_written_there(server: front.Front, files: FakeWebDav) -> None:
    store = open_store(f"{server.url}/dav/files/t")
    for call in (store.put_if_absent, store.put, store.put_hint):
        with pytest.raises(StoreError, match="read-only"):
            call("name", b"x")
    with pytest.raises(StoreError, match="read-only"):
        store.put_stream("name", [b"x"])
    with pytest.raises(StoreError, match="read-only"):
        store.delete("name")


def test_a_server_that_knows_files_alone_gives_them(tmp_path: Path) -> None:
    """As Python's own does: it knows no ranges."""
    (tmp_path / "a name").write_bytes(b"bytes")
    files = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=files.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        store = open_store(f"http://127.0.0.1:{files.server_port}/")
        assert store.get("a name") == b"bytes"
        assert store.read_range("a name", 1, 2) == b"yt"
        assert store.read_range("a name", -2, 5) == b"es"
    finally:
        files.shutdown()
        files.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


# -- redirects and secrets ---------------------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_server_that_sends_us_elsewhere_is_not_followed_and_its_words_are_not_shown(
    server: front.Front, way: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked: list[front.Request] = []
    with front.serving(lambda request: asked.append(request) or front.Answer(200, body=b"of another host")) as other:  # type: ignore[func-returns-value]
        for to in (
            f"{other.url}/x?{SECRET}",
            f"//127.0.0.1:{other.server_port}/a/name/",
            f"{server.url}/again",
            "/elsewhere",
            "",
        ):
            server.handle = lambda _, to=to: front.Answer(status, (("Location", to),), b"secret words of the server")
            with pytest.raises(StoreError, match="redirects") as told:
                ASKING[way](open_store(f"{server.url}/t?sig={SECRET}"))
            shown = f"{told.value} {told.value!r} {told.value.__cause__!r} {told.value.facts} {caplog.text}"
            assert SECRET not in shown
            assert "secret words" not in shown
    assert asked == []


@each_way
def test_a_query_goes_with_each_request_and_no_request_says_where_another_went(
    server: front.Front, files: FakeWebDav, way: str
) -> None:
    seen: list[front.Request] = []
    server.handle = lambda request: seen.append(request) or files(request)  # type: ignore[func-returns-value]
    put(files, "a/name", b"12345")
    ASKING[way](open_store(f"{server.url}/dav/files/t?sig={SECRET}"))
    assert seen
    for request in seen:
        assert request.target.endswith(f"?sig={SECRET}")
        assert not request.header("referer")


@each_way
@pytest.mark.parametrize(
    ("status", "kind"), [(401, StorePermissionDenied), (403, StorePermissionDenied), (400, StoreError)]
)
def test_a_refusal_says_nothing_that_the_server_said(
    server: front.Front, way: str, status: int, kind: type[StoreError]
) -> None:
    server.handle = lambda request: front.Answer(status, body=f"<h1>{request.target}</h1> secret words".encode())
    with pytest.raises(kind) as told:
        ASKING[way](open_store(f"{server.url}/t?sig={SECRET}"))
    assert str(status) in str(told.value)
    assert "secret words" not in str(told.value)
    assert SECRET not in str(told.value)


def test_a_server_without_webdav_gives_files_and_no_listing(server: front.Front, files: FakeWebDav) -> None:
    server.handle = lambda request: front.Answer(501) if request.method == "PROPFIND" else files(request)
    put(files, "a/name", b"12345")
    store = open_store(f"{server.url}/dav/files/t")
    assert store.get("a/name") == b"12345"
    for call in (store.list_all, lambda: store.list_from("")):
        with pytest.raises(StoreError, match="not a WebDAV server"):
            call()


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_asked_again(server: front.Front, files: FakeWebDav, status: int) -> None:
    faults = iter([front.Answer(status), None])
    server.handle = lambda request: next(faults, files(request))
    put(files, "a/name", b"12345")
    assert open_store(f"{server.url}/dav/files/t").get("a/name") == b"12345"


# -- what is no listing ------------------------------------------------------------------------------------------------

ENTITIES = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b SYSTEM "file:///etc/passwd">]>
<multistatus xmlns="DAV:"><response><href>/t/a/&a;&b;</href></response></multistatus>"""
FOREIGN = [
    "/elsewhere",
    "/t/../x",
    "/t/a/../../x",
    "/t/a/%2e%2e/x",
    "/t/a/x%2fy",
    "/t",
    "",
    "/t/a/%ff",
    "http://[::1",
    "//",
]


def listing(*hrefs: str, status: str = "HTTP/1.1 200 OK") -> str:
    prop = f"<propstat><prop><getcontentlength>1</getcontentlength></prop><status>{status}</status></propstat>"
    found = "".join(f"<response><href>{href}</href>{prop}</response>" for href in hrefs)
    return f'<multistatus xmlns="DAV:">{found}</multistatus>'


NONE = ["", "<html>", "<html/>", '<multistatus xmlns="DAV:"><response/></multistatus>', ENTITIES, "<a>" * 10_000, "\0"]
NONE.append(f'<!DOCTYPE m [<!ENTITY a "x">]>{listing("/t/a/&a;")}')
NONE += [listing(href) for href in FOREIGN] + [
    listing("/t/a/x", "/t/b/x"),
    listing("/t/a/x", status="HTTP/1.1 404 Gone"),
]


@pytest.mark.parametrize("body", NONE, ids=range(len(NONE)))
def test_what_is_no_listing_is_an_error_and_no_empty_folder(server: front.Front, body: str) -> None:
    server.handle = lambda _: front.Answer(207, body=body.encode())
    with pytest.raises(StoreError, match="of no use"):
        open_store(f"{server.url}/t").list_from("a/")


def test_folders_without_an_end_are_refused(server: front.Front) -> None:
    def handle(request: front.Request) -> front.Answer:
        kind = "<prop><resourcetype><collection/></resourcetype></prop>"
        folder = f"<propstat>{kind}<status>HTTP/1.1 200 OK</status></propstat>"
        found = f"<response><href>{request.target}again/</href>{folder}</response>"
        return front.Answer(207, body=f'<multistatus xmlns="DAV:">{found}</multistatus>'.encode())

    server.handle = handle
    with pytest.raises(StoreError, match="have no end"):
        open_store(f"{server.url}/t").list_all()


bodies = st.binary(max_size=20) | st.sampled_from(NONE).map(str.encode) | st.just(listing("/t/a/x").encode())
fields = st.lists(
    st.tuples(
        st.sampled_from(["Location", "Content-Encoding", "Content-Range", "Last-Modified", "ETag"]),
        st.sampled_from(
            ["", "x", "gzip", "bytes 1-2/5", "bytes 0-9/x", "bytes 1-99999999999999999999/1", "/t/a/name/"]
        ),
    ),
    max_size=3,
)


@pytest.mark.slow
@relaxed
@given(
    way=st.sampled_from(sorted(ASKING)),
    status=st.sampled_from([200, 206, 207, 302, 404, 416, 418]),
    said=fields,
    body=bodies,
)
def test_drawn_answers_end_in_our_errors_or_in_no_error(
    server: front.Front, way: str, status: int, said: list[tuple[str, str]], body: bytes
) -> None:
    server.handle = lambda _: front.Answer(status, tuple(said), body)
    with contextlib.suppress(StoreError):
        ASKING[way](open_store(f"{server.url}/t"))


# -- sizes and times ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in ASKING if way != "walk"])
def test_an_answer_that_drips_is_given_up_when_its_time_is_over(way: str) -> None:
    def talk(connection: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        for byte in repeat(b"x"):
            connection.sendall(byte)

    with raw_servers.serving(talk) as port, pytest.raises(StoreError):
        ASKING[way](open_store(f"http://127.0.0.1:{port}/t", {"timeout": "300ms"}))


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("head", [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b""])
def test_a_file_that_breaks_off_is_none(head: bytes) -> None:
    def talk(connection: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + b"\r\n4\r\n")

    with raw_servers.serving(talk) as port, pytest.raises(StoreError):
        open_store(f"http://127.0.0.1:{port}/t").get("name")


# -- options -----------------------------------------------------------------------------------------------------------


def test_a_proxy_is_asked_where_one_is_named(
    server: front.Front, files: FakeWebDav, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(files, "a/name", b"12345")
    seen: list[str] = []

    def proxy(request: front.Request) -> front.Answer:
        seen.append(request.target)
        return front.Answer(200, body=b"of the proxy")

    with front.serving(proxy) as between:
        store = open_store("http://far.away/t?x=1", {"proxy_url": between.url})
        assert store.get("name") == b"of the proxy"
        monkeypatch.setenv("http_proxy", between.url)
        assert open_store("http://far.away/t").get("name") == b"of the proxy"
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert open_store(f"{server.url}/dav/files/t").get("a/name") == b"12345"
    assert seen == ["http://far.away/t/name?x=1", "http://far.away/t/name?x=1"]


@pytest.mark.parametrize(
    "option",
    [
        {"colour": "red"},
        {"timeout": "soon"},
        {"allow_http": "false"},
        {"root_certificate": "none"},
        {"proxy_excludes": "x"},
    ],
)
def test_an_option_that_cannot_be_followed_is_refused(option: dict[str, str]) -> None:
    with pytest.raises(UnknownStore):
        open_store("http://host/t", option)


def test_a_location_that_is_no_address_is_refused() -> None:
    for location in ("http://", "http://[x/t", "https://host:999999/t"):
        with pytest.raises(UnknownStore):
            open_store(location)
