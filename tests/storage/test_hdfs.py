"""HDFS keeps the contract, as Hadoop's own NameNode and DataNode speak it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import anabranch
from anabranch.commands.ddl.drop import Drop
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.errors import (
    AlreadyExists,
    PutOutcomeUnknown,
    StoreError,
    StoreFull,
    StorePermissionDenied,
    UnknownStore,
)
from anabranch.storage import open_store
from anabranch.storage.hdfs import HdfsStore
from anabranch.storage.trees import tree
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
def test_folders_go_with_what_was_in_them(cluster: str) -> None:
    world = World(f"{cluster}/tables/folders")
    world.create([{"id": i, "p": i} for i in range(3)], partition_by=("p",)).delete("p = 1")
    store = open_store(world.path)
    folders = set(tree(store, lambda folder: False).folders)
    Vacuum(world.path, 0, check_retention=False).run()
    gone = folders - set(tree(store, lambda folder: False).folders)
    assert any("p=1" in folder for folder in gone)
    Drop(world.path).run()
    assert tree(store, lambda folder: False).folders == []
    assert "folders" not in tree(open_store(f"{cluster}/tables"), lambda folder: "/" in folder).folders


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


DENIED = 'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=x, inode=\\"{}\\":y")'
NO_FOLDER = 'RPCError("org.apache.hadoop.security.AccessControlException", "/t/file (is not a directory)")'


@pytest.mark.parametrize("folder", ["/t/it is not a file/a", "/t/is a directory", "/t"])
def test_a_refusal_is_not_taken_for_an_absence_whatever_the_folder_is_called(folder: str) -> None:
    client = Failing(RuntimeError(DENIED.format(folder)))
    client.get_file_info = client.list_status = client.read = client.rename  # type: ignore[method-assign]
    store = HdfsStore("hdfs://nn/t", "/t", client)
    for ask in (lambda: store.head("x"), lambda: store.get("x"), lambda: store.list_all(), lambda: store.list_from("")):
        with pytest.raises(StorePermissionDenied) as told:
            ask()
        assert f'inode="{folder}":y' in str(told.value)


def test_a_name_below_a_file_is_absent() -> None:
    client = Failing(RuntimeError(NO_FOLDER))
    client.get_file_info = client.list_status = client.rename  # type: ignore[method-assign]
    store = HdfsStore("hdfs://nn/t", "/t", client)
    assert (store.head("file/x"), store.list_all("file/")) == (None, [])


class Vanishing:
    """A client of a file system in which one folder goes while it is listed."""

    def list_status(self, path: str, recursive: bool) -> Iterator[Any]:
        assert not recursive
        if path == "/t/gone":
            raise FileNotFoundError(path)
        names = {"/t": ["gone", "kept"], "/t/kept": ["a", "b"]}[path]
        for name in names:
            yield SimpleNamespace(path=f"{path}/{name}", isdir=path == "/t", length=1, modification_time=0)


def test_a_folder_that_goes_while_all_is_listed_takes_no_other_file_along() -> None:
    store = HdfsStore("hdfs://nn/t", "/t", Vanishing())
    assert [each.name for each in store.list_all()] == ["kept/a", "kept/b"]
    found = tree(store, lambda folder: False)
    assert [each.name for each in found.files] == ["kept/a", "kept/b"]
    assert sorted(found.folders) == ["gone", "kept"]


class Breaking(Failing):
    """A client whose files break so: at the write, at the sync, at the close."""

    def __init__(self, **breaks: BaseException) -> None:
        super().__init__(AssertionError("no rename is wanted"))
        self.breaks = breaks

    def _at(self, step: str) -> None:
        if step in self.breaks:
            raise self.breaks[step]

    def write(self, data: bytes) -> None:
        self._at("write")

    def hsync(self) -> None:  # type: ignore[override]
        self._at("hsync")

    def close(self) -> None:  # type: ignore[override]
        self._at("close")


QUOTA = RuntimeError('RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "DiskSpace quota")')
PIPE = OSError("Broken pipe (os error 32)")


@pytest.mark.parametrize(
    ("breaks", "kind"),
    [
        ({"write": KeyboardInterrupt(), "close": PIPE}, KeyboardInterrupt),
        ({"write": QUOTA, "close": PIPE}, StoreFull),
        ({"hsync": OSError("No space left on device")}, StoreError),
        ({"close": PIPE}, StoreError),
    ],
)
def test_what_went_wrong_first_is_told_and_nothing_is_left(
    breaks: dict[str, BaseException], kind: type[BaseException]
) -> None:
    client = Breaking(**breaks)
    with pytest.raises(kind) as told:
        HdfsStore("hdfs://nn/t", "/t", client).put("name", b"x")
    assert type(told.value) is kind
    assert len(client.deleted) == 1


def test_what_the_chunks_raise_is_raised_as_it_is_and_nothing_is_left() -> None:
    def chunks(error: Exception) -> Iterator[bytes]:
        yield b"x"
        raise error

    for error in (ValueError("mine"), PutOutcomeUnknown(name="y", root="s3://other", reason="lost")):
        client = Breaking(close=PIPE)
        with pytest.raises(type(error)) as told:
            HdfsStore("hdfs://nn/t", "/t", client).put_stream("name", chunks(error))
        assert told.value is error
        assert len(client.deleted) == 1


def test_a_file_that_cannot_be_synced_is_closed_all_the_same() -> None:
    client = Breaking(hsync=RuntimeError("UnsupportedFeature: hsync of erasure coded files"))
    client.rename = lambda *_: None  # type: ignore[method-assign]
    HdfsStore("hdfs://nn/t", "/t", client).put("name", b"x")


def test_options_are_texts() -> None:
    with pytest.raises(UnknownStore, match=r"dfs\.replication takes a text"):
        open_store("hdfs://host:1/data", {"dfs.replication": 1})  # type: ignore[dict-item]


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
