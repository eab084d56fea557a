"""HDFS over HTTP keeps the contract, as Hadoop's own NameNode and DataNode speak it."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

import anabranch
from anabranch._storage import open_store
from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.name_node import Refused, Unanswered
from anabranch.errors import PutOutcomeUnknown, StoreError, StorePermissionDenied, UnknownStore
from tests.storage import fake_webhdfs, front, mini_hdfs
from tests.storage.contract import StoreContract
from tests.storage.mini_hdfs import Urls
from tests.storage.racing import wins
from tests.support.patience import until
from tests.support.worlds import World

fresh = itertools.count()
on_a_cluster = [pytest.mark.clouds]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Urls]:
    if reason := mini_hdfs.why_absent():
        required = os.environ.get("ANABRANCH_CLOUDS") == "required"
        (pytest.fail if required else pytest.skip)(reason)
    with mini_hdfs.serving_both(tmp_path_factory.mktemp("hdfs")) as urls:
        yield urls


class TestWebHdfs(StoreContract):
    pytestmark = on_a_cluster
    versions_raced = 20
    confused = ":"

    @pytest.fixture
    def location(self, cluster: Urls) -> str:
        return f"{cluster.webhdfs}/test {next(fresh)}/100%/table"


@pytest.mark.clouds
def test_a_table_lives_there_and_is_the_same_in_hadoops_own_language(cluster: Urls) -> None:
    world = World(f"{cluster.webhdfs}/tables/a b/50%")
    world.create([{"id": i, "p": f"a {i % 2}"} for i in range(6)], partition_by=("p",)).delete("id = 3")
    world.append({"id": 9, "p": "é"})
    world.update("id = 9", p="%")
    world.optimize("id")
    for url in cluster:
        assert [row["id"] for row in World(f"{url}/tables/a b/50%").rows()] == [0, 1, 2, 4, 5, 9]
    assert anabranch.check(world.path, deep=True).is_clean


@pytest.mark.clouds
def test_both_ways_to_a_file_system_agree_who_has_won(cluster: Urls) -> None:
    ways = [open_store(f"{url}/both ways") for url in cluster]
    for number, (first, second) in enumerate([(ways[0], ways[1]), (ways[1], ways[0])]):
        assert wins(first, f"{number}", b"first")
        assert not wins(second, f"{number}", b"second")
        assert second.get(f"{number}") == b"first"
        assert first.list_all() == second.list_all()


@pytest.mark.clouds
@pytest.mark.parametrize("way", [0, 1], ids=["hdfs", "webhdfs"])
def test_what_is_put_is_on_the_disk_of_its_data_node(cluster: Urls, way: int) -> None:
    store = open_store(f"{cluster[way]}/on disk {way}")
    before = settled(cluster)
    store.put_if_absent("name", b"x" * 1000)
    until(lambda: written_to_disk(cluster) > before)  # what Java shows of it is some seconds old


@pytest.mark.clouds
def test_letters_that_can_be_composed_are_names_of_their_own(cluster: Urls) -> None:
    """Java composes them in the address of the DataNode that it sends a client to."""
    store = open_store(f"{cluster.webhdfs}/e\u0301")
    names = ["\ufb1d", "\u05d9\u05b4", "e\u0301", "\u00e9"]
    for name in names:
        store.put_if_absent(name, ascii(name).encode())
    assert [store.get(name) for name in names] == [ascii(name).encode() for name in names]
    assert [store.read_range(name, -1, 1) for name in names] == [b"'"] * 4


def settled(cluster: Urls) -> int:
    """The same, when all that was done before is counted."""
    time.sleep(15)  # Hadoop's clock shows it a new sum each ten seconds, whatever else the machine does
    return written_to_disk(cluster)


def written_to_disk(cluster: Urls) -> int:
    """How often the DataNode has forced something to its disk."""
    name = "Hadoop:service=DataNode,name=DataNodeActivity*"
    with urlopen(f"{cluster.webhdfs.removeprefix('web').replace('hdfs:', 'http:')}/jmx?qry={name}") as answer:
        return int(json.load(answer)["beans"][0]["FsyncCount"])


@pytest.mark.clouds
def test_who_may_not_write_is_told_so(cluster: Urls) -> None:
    store = open_store(f"{cluster.webhdfs}/closed/folder", {"user": "somebody"})
    with pytest.raises(StorePermissionDenied, match="user=somebody"):
        store.put_if_absent("name", b"x")
    open_store(f"{cluster.webhdfs}/closed/folder").put("name", b"x")
    with pytest.raises(StorePermissionDenied, match="user=somebody"):
        store.delete("name")


@pytest.mark.clouds
def test_an_upload_that_is_cut_short_is_never_acknowledged(cluster: Urls) -> None:
    """Nothing has the name, and nothing stays aside, though the DataNode keeps what had come."""
    store = open_store(f"{cluster.webhdfs}/cut short")

    def chunks() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise OSError("the source broke off")

    with pytest.raises(OSError, match="the source broke off"):
        store.put_stream("name", chunks())
    assert isinstance(store, HdfsStore)
    assert store.files.inside("/cut short") == []


@pytest.mark.clouds
@pytest.mark.parametrize("fault", ["lost", "reply", "busy", "failed"])
@pytest.mark.parametrize("operation", ["GETFILESTATUS", "CREATE", "RENAME", "DELETE", "LISTSTATUS", "OPEN"])
def test_what_a_network_does_to_a_request_is_outlived(cluster: Urls, operation: str, fault: str) -> None:
    forwarding, met = front.forwarding(port_of(cluster.webhdfs)), list[str]()

    def handle(request: front.Request) -> front.Answer | None:
        if f"op={operation}&" not in request.target or len(met) == 2:
            return forwarding(request)
        met.append(fault)
        if fault == "reply":
            forwarding(request)
        return {"busy": front.Answer(503), "failed": front.Answer(500)}.get(fault)

    with front.serving(handle) as names:
        store = open_store(f"webhdfs://127.0.0.1:{names.server_port}/outlives {next(fresh)}")
        store.put_if_absent("name", b"mine")
        assert not wins(store, "name", b"another's")
        store.put("gone", b"x")
        store.delete("gone")
        assert [each.name for each in store.list_all()] == ["name"]
        assert store.get("name") == b"mine"
    assert len(met) == 2


@pytest.mark.clouds
def test_a_gateway_that_renames_in_another_way_is_not_believed(cluster: Urls) -> None:
    forwarding = front.forwarding(port_of(cluster.webhdfs))

    def old(request: front.Request) -> front.Answer | None:
        """As HttpFS does: it answers with a truth value, and knows no options."""
        return forwarding(replace(request, target=re.sub("&renameoptions=[A-Z]+", "", request.target)))

    with front.serving(old) as names:
        store = open_store(f"webhdfs://127.0.0.1:{names.server_port}/gateway {next(fresh)}")
        with pytest.raises(PutOutcomeUnknown, match="it is not one"):
            store.put_if_absent("name", b"x")


def port_of(url: str) -> int:
    """The port of its NameNode."""
    port = urlsplit(url).port
    assert port is not None
    return port


# -- without one -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_memory() -> Iterator[front.Front]:
    with fake_webhdfs.serving() as (server, _):
        yield server


class TestWithoutHadoop(StoreContract):
    versions_raced = 20
    confused = ":"

    @pytest.fixture
    def location(self, in_memory: front.Front) -> str:
        return f"webhdfs://127.0.0.1:{in_memory.server_port}/test {next(fresh)}/100%/table"


@pytest.mark.parametrize("operation", ["op=CREATE", "op=RENAME", "op=GETFILESTATUS", "op=OPEN"])
def test_a_request_whose_answer_comes_too_late_is_sent_again(operation: str) -> None:
    files, late = fake_webhdfs.FakeWebHdfs(), list[str]()

    def handle(request: front.Request) -> front.Answer | None:
        if operation in request.target and not late:
            late.append(request.target)
            time.sleep(1.2)
        return files(request)

    with front.serving(handle) as server:
        files.port = server.server_port
        store = open_store(f"webhdfs://127.0.0.1:{server.server_port}/table", {"timeout": "0.6"})
        store.put("name", b"12345")
        assert store.get("name") == b"12345"
        assert len(late) == 1


def test_only_what_java_has_refused_is_a_refusal(free_server: front.Front) -> None:
    told = b'{"RemoteException": {"exception": "SafeModeException", "javaClassName": "x.Safe", "message": "no"}}'
    answers = [(403, told, Refused), (403, b"<html>a proxy</html>", Unanswered), (404, b"", Unanswered)]
    store = open_store(f"webhdfs://127.0.0.1:{free_server.server_port}/t")
    assert isinstance(store, HdfsStore)
    for status, body, kind in answers:
        free_server.handle = lambda _, status=status, body=body: front.Answer(status, body=body)
        for ask in (lambda: store.files.rename("/a", "/b", overwrite=False), lambda: store.files.status("/a")):
            with pytest.raises(kind):
                ask()


def test_a_token_is_not_shown(free_server: front.Front) -> None:
    free_server.handle = lambda _: None
    store = open_store(f"webhdfs://127.0.0.1:{free_server.server_port}/t", {"delegation": "VERYSECRET"})
    assert isinstance(store, HdfsStore)
    with pytest.raises(StoreError) as told:
        replace(store, pauses_s=()).get("name")
    assert "VERYSECRET" not in f"{told.value!r} {told.value} {store!r}"


def test_no_such_option_is_refused() -> None:
    with pytest.raises(UnknownStore, match=r"no option dfs\.replication"):
        open_store("webhdfs://host:1/data", {"dfs.replication": "1"})
    with pytest.raises(UnknownStore, match="number of seconds"):
        open_store("webhdfs://host:1/data", {"timeout": "2s"})


@pytest.fixture
def free_server() -> Iterator[front.Front]:
    """A server that answers as a test says."""
    with front.serving() as server:
        yield server
