"""Whatever a service answers that lists keys: no name is believed that was not asked for, and no page comes again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import escape

import pytest

from anabranch._storage import Store, open_store
from anabranch._storage.objects import ObjectStore
from anabranch.errors import StoreError
from tests.storage import front

_DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
CALLS: dict[str, Callable[[Any], Any]] = {
    "list": lambda store: store.list_from(""),
    "list a folder": lambda store: store.list_from("folder/a"),
    "list all": lambda store: store.list_all(),
    "list all of a folder": lambda store: store.list_all("folder"),
}


def options(kind: str, port: int) -> dict[str, str]:
    """What opens a bucket of a server on this machine."""
    url = f"http://127.0.0.1:{port}"
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "us-east-1"}
    account = {"azure_storage_account_name": "account", "azure_storage_sas_key": "sv=1&sig=x"}
    services = {
        "s3": {"aws_endpoint": url, **keys},
        "az": {"azure_storage_endpoint": f"{url}/account", **account},
        "gs": {"google_base_url": url, "google_skip_signature": "true"},
    }
    return {**services[kind], "allow_http": "true"}


def page(kind: str, keys: list[str], more: str = "") -> bytes:
    """A page of keys, behind which another one is said to be."""
    if kind == "az":
        head = f"<Last-Modified>{_DATE}</Last-Modified><Content-Length>5</Content-Length>"
        properties = f"<Properties>{head}<Content-Type>x</Content-Type><Etag>e</Etag></Properties>"
        found = "".join(f"<Blob><Name>{escape(key)}</Name>{properties}</Blob>" for key in keys)
        return (
            f"<EnumerationResults><Blobs>{found}</Blobs><NextMarker>{more}</NextMarker></EnumerationResults>".encode()
        )
    rest = "<LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>e</ETag><Size>5</Size>"
    found = "".join(f"<Contents><Key>{escape(key)}</Key>{rest}</Contents>" for key in keys)
    token = f"<NextContinuationToken>{more}</NextContinuationToken>" if more else ""
    is_cut = str(bool(more)).lower()
    return f"<ListBucketResult><IsTruncated>{is_cut}</IsTruncated>{token}{found}</ListBucketResult>".encode()


@pytest.fixture
def server() -> Iterator[front.Front]:
    with front.serving() as server:
        yield server


def at(server: front.Front, kind: str) -> Store:
    return open_store(f"{kind}://bucket/table", options(kind, server.server_port))


each_kind = pytest.mark.parametrize("kind", ["s3", "az", "gs"])


@each_kind
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("key", ["other/x", "tablet/x", "table2/folder/x", "folder/x", "table/../x", "../table/x", "x"])
def test_a_key_that_was_not_asked_for_is_refused(server: front.Front, kind: str, call: str, key: str) -> None:
    """Cut to a name, it would be one of this table. Of Azure's keys obstore leaves out some of these by itself."""
    server.handle = lambda _: front.Answer(200, body=page(kind, ["table/folder/b", key]))
    with contextlib.suppress(StoreError):
        assert {entry.name for entry in CALLS[call](at(server, kind))} <= ({"folder/b"} if kind == "az" else set())
        assert kind == "az"


@each_kind
def test_a_key_of_another_folder_is_refused(server: front.Front, kind: str) -> None:
    server.handle = lambda _: front.Answer(200, body=page(kind, ["table/folder2/x"]))
    for call in ("list a folder", "list all of a folder"):
        with pytest.raises(StoreError):
            CALLS[call](at(server, kind))


def test_a_folder_of_another_table_is_none_of_this_one(server: front.Front) -> None:
    found = "<CommonPrefixes><Prefix>tablet/x/</Prefix></CommonPrefixes><IsTruncated>false</IsTruncated>"
    server.handle = lambda _: front.Answer(200, body=f"<ListBucketResult>{found}</ListBucketResult>".encode())
    store = at(server, "s3")
    assert isinstance(store, ObjectStore)
    with pytest.raises(StoreError):
        store.top_folders()


@each_kind
@pytest.mark.parametrize("call", ["list a folder", "list all", "list all of a folder"])
def test_a_page_that_comes_again_ends_the_list(server: front.Front, kind: str, call: str) -> None:
    keys = [f"table/folder/b{i:04}" for i in range(1000)]
    server.handle = lambda _: front.Answer(200, body=page(kind, keys, more="again"))
    with pytest.raises(StoreError, match="twice"):
        CALLS[call](at(server, kind))


@each_kind
def test_a_mark_of_a_folder_beside_a_file_of_its_name_is_no_second_page(server: front.Front, kind: str) -> None:
    marked = page(kind, ["table/folder/b", "table/folder/b/"])
    at_mark = marked.rindex(b">5<")
    server.handle = lambda _: front.Answer(200, body=marked[:at_mark] + b">0<" + marked[at_mark + 3 :])
    assert [entry.size for entry in at(server, kind).list_all()] == [0, 5]
