"""HDFS keeps the contract, as Hadoop's own NameNode and DataNode speak it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest

import anabranch
from anabranch.errors import (
    AlreadyExists,
    PutOutcomeUnknown,
    StoreError,
    StorePermissionDenied,
    UnknownStore,
)
from anabranch.storage import open_store
from anabranch.storage.hdfs import HdfsStore
from tests.storage import mini_hdfs
from tests.storage.contract import StoreContract
from tests.support.worlds import World

fresh = itertools.count()
on_a_cluster = [pytest.mark.clouds, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if reason := mini_hdfs.why_absent():
        required = os.environ.get("ANABRANCH_CLOUDS") == "required"
        (pytest.fail if required else pytest.skip)(reason)
    with mini_hdfs.serving(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


class TestHdfs(StoreContract):
    pytestmark = on_a_cluster
    versions_raced = 20
    confused = ":"

    @pytest.fixture
    def location(self, cluster: str) -> str:
        return f"{cluster}/test {next(fresh)}/100%/table"


@pytest.mark.clouds
def test_a_table_lives_there(cluster: str) -> None:
    world = World(f"{cluster}/tables/a b/50%")
    world.create([{"id": i, "p": f"a {i % 2}"} for i in range(6)], partition_by=("p",)).delete("id = 3")
    world.append({"id": 9, "p": "é"})
    world.update("id = 9", p="%")
    world.optimize("id")
    assert [row["id"] for row in world.rows()] == [0, 1, 2, 4, 5, 9]
    assert anabranch.check(world.path, deep=True).is_clean


@pytest.mark.clouds
def test_what_is_written_aside_is_no_name(cluster: str) -> None:
    store = open_store(f"{cluster}/aside")
    assert isinstance(store, HdfsStore)
    store.put("folder/name", b"x")
    hidden = f"/aside/folder/.name.{'0' * 32}.tmp"
    store.client.create(hidden).close()
    assert [entry.name for entry in store.list_all()] == ["folder/name"]
    with pytest.raises(StoreError, match="kept for writes under way"):
        store.get(hidden.removeprefix("/aside/"))


@pytest.mark.clouds
def test_who_may_not_write_is_told_so(cluster: str) -> None:
    open_store(f"{cluster}/closed").put("name", b"x")
    store = open_store(f"{cluster}/closed")
    assert isinstance(store, HdfsStore)
    store.client.set_permission("/closed", 0o500)
    store.client.set_owner("/closed", "somebody", "some")
    try:
        os.environ["HADOOP_USER_NAME"] = "nobody"
        other = open_store(f"{cluster}/closed", {"anabranch.test": "another client"})
        with pytest.raises(StorePermissionDenied, match="closed"):
            other.put_if_absent("other", b"x")
    finally:
        del os.environ["HADOOP_USER_NAME"]


# -- without one -------------------------------------------------------------------------------------------------------


class Failing:
    """A client whose renames fail so."""

    def __init__(self, error: Exception) -> None:
        self.error, self.deleted = error, list[str]()

    def get_file_info(self, path: str) -> Any:
        raise FileNotFoundError(path)

    def create(self, path: str) -> Any:
        return self

    def write(self, data: bytes) -> None:
        pass

    hsync = close = lambda self: None

    def rename(self, *_: Any) -> None:
        raise self.error

    def delete(self, path: str) -> None:
        self.deleted.append(path)


REFUSED = 'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied\\n\\tat org.x")'


@pytest.mark.parametrize(
    ("error", "kind", "cleans"),
    [
        (FileExistsError("rename destination /t/name already exists"), AlreadyExists, True),
        (RuntimeError(REFUSED), StorePermissionDenied, True),
        (RuntimeError('RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "no")'), StoreError, True),
        (FileNotFoundError("rename source /t/.name.tmp is not found."), PutOutcomeUnknown, False),
        (OSError("Connection reset by peer (os error 104)"), PutOutcomeUnknown, False),
        (RuntimeError("something new"), PutOutcomeUnknown, False),
    ],
)
def test_only_a_refusal_of_the_name_node_is_definite(error: Exception, kind: type[StoreError], cleans: bool) -> None:
    client = Failing(error)
    store = HdfsStore("hdfs://nn/t", "/t", client)
    for put in (store.put_if_absent, store.put):
        with pytest.raises(StoreError) as told:
            put("name", b"x")
        assert type(told.value) is kind
        assert "\tat" not in str(told.value)
    assert (len(client.deleted) == 2) is cleans, "a name may be given yet to what lies aside"


def test_a_location_needs_a_file_system() -> None:
    for location in ("hdfs:///data", "webhdfs://host/data"):
        with pytest.raises(UnknownStore):
            open_store(location)


def test_without_the_client_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hdfs_native", None)
    with pytest.raises(UnknownStore, match=r"anabranch\[hdfs\]"):
        open_store(f"hdfs://host{next(fresh)}/data")
