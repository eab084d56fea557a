"""HDFS keeps the contract, as Hadoop's own NameNode and DataNode speak it."""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

import anabranch
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.hdfs_rpc import NativeFiles
from anabranch._storage.trees import tree
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
from tests.storage import mini_hdfs, rpc_front
from tests.storage.contract import StoreContract
from tests.support.patience import PATIENCE
from tests.support.worlds import World

fresh = itertools.count()
on_a_cluster = [pytest.mark.clouds]


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
    store.put("folder/name", b"x")
    hidden = f"/aside/folder/.name.{'0' * 32}.tmp"
    client_of(store).create(hidden).close()
    assert [entry.name for entry in store.list_all()] == ["folder/name"]
    with pytest.raises(StoreError, match="reserved for unfinished writes"):
        store.get(hidden.removeprefix("/aside/"))


@pytest.mark.clouds
def test_who_may_not_write_is_told_so(cluster: str) -> None:
    open_store(f"{cluster}/closed").put("name", b"x")
    store = open_store(f"{cluster}/closed")
    client_of(store).set_permission("/closed", 0o500)
    client_of(store).set_owner("/closed", "somebody", "some")
    try:
        os.environ["HADOOP_USER_NAME"] = "nobody"
        other = open_store(f"{cluster}/closed", {"anabranch.test": "another client"})
        with pytest.raises(StorePermissionDenied, match="closed"):
            other.put_if_absent("other", b"x")
    finally:
        del os.environ["HADOOP_USER_NAME"]


def client_of(store: Store) -> Any:
    """hdfs-native's client of a store."""
    assert isinstance(store, HdfsStore)
    assert isinstance(store.files, NativeFiles)
    return store.files.client


# -- with a network that fails -----------------------------------------------------------------------------------------


class Planned:
    """The first calls of one method have these faults."""

    def __init__(self, method: str, *faults: str) -> None:
        self.method, self.faults, self.met = method, list(faults), 0

    def __call__(self, call: rpc_front.Call) -> str:
        if call.method != self.method or not self.faults:
            return ""
        self.met += 1
        return self.faults.pop(0)


FAULTS = [("lost",), ("reply",), ("late",), ("busy",), ("late", "reply"), ("reply", "lost", "busy"), ("late", "busy")]


@pytest.mark.clouds
@pytest.mark.parametrize("faults", FAULTS, ids="+".join)
@pytest.mark.parametrize("method", ["getFileInfo", "create", "addBlock", "fsync", "complete", "rename2"])
def test_a_put_outlives_what_a_network_does_to_any_of_its_calls(
    cluster: str, method: str, faults: tuple[str, ...]
) -> None:
    planned, name = Planned(method, *faults), f"{method} {faults}"
    with rpc_front.before(port_of(cluster), planned, late_s=0.5) as port:
        store = open_store(f"hdfs://127.0.0.1:{port}/outlives {next(fresh)}")
        store.put_if_absent(name, b"mine")
        with pytest.raises(AlreadyExists):
            store.put_if_absent(name, b"another's")
    assert planned.met == len(faults)
    honest = open_store(f"{cluster}{store.url.removeprefix(f'hdfs://127.0.0.1:{port}')}")
    assert honest.get(name) == b"mine"
    assert [each.name for each in honest.list_all()] == [name]


@pytest.mark.clouds
@pytest.mark.parametrize("faults", FAULTS, ids="+".join)
def test_a_name_is_deleted_and_listed_through_a_bad_network(cluster: str, faults: tuple[str, ...]) -> None:
    for method in ("delete", "getListing"):
        planned = Planned(method, *faults)
        with rpc_front.before(port_of(cluster), planned, late_s=0.1) as port:
            store = open_store(f"hdfs://127.0.0.1:{port}/deleted {next(fresh)}")
            for name in ("a", "b"):
                store.put(name, b"x")
            store.delete("a")
            assert [each.name for each in store.list_from("")] == ["b"]
        assert planned.met == len(faults)


@pytest.mark.clouds
def test_a_rename_that_comes_after_its_writer_has_given_up_replaces_no_winner(cluster: str) -> None:
    planned = Planned("rename2", *["late"] * 20)
    with rpc_front.before(port_of(cluster), planned, late_s=1) as port:
        place = f"given up {next(fresh)}"
        store = open_store(f"hdfs://127.0.0.1:{port}/{place}")
        assert isinstance(store, HdfsStore)
        with pytest.raises(PutOutcomeUnknown):
            replace(store, pauses_s=(0.01,)).put_if_absent("version", b"late")
        open_store(f"{cluster}/{place}").put_if_absent("version", b"winner")
    assert planned.met == 2
    assert open_store(f"{cluster}/{place}").get("version") == b"winner"


def port_of(cluster: str) -> int:
    """The port of its NameNode."""
    port = urlsplit(cluster).port
    assert port is not None
    return port


# -- without one -------------------------------------------------------------------------------------------------------


def over(client: Any) -> HdfsStore:
    """A store that asks a client once only."""
    return HdfsStore("hdfs://nn/t", "/t", NativeFiles(client), pauses_s=())


class Failing:
    """A client whose renames fail so, one after the other, and the last one for ever; it has no file to read."""

    def __init__(self, *errors: Exception, removes: bool = True) -> None:
        self.errors, self.deleted, self.removes = list(errors), list[str](), removes

    def get_file_info(self, path: str) -> Any:
        raise FileNotFoundError(path)

    def create(self, path: str) -> Any:
        return self

    def write(self, data: bytes) -> None:
        pass

    hsync = close = lambda self: None

    def rename(self, *_: Any) -> None:
        raise self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]

    def read(self, path: str) -> Any:
        raise FileNotFoundError(path)

    def delete(self, path: str, recursive: bool) -> bool:
        self.deleted.append(path)
        return self.removes


DENIED = 'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=x, inode=\\"{}\\":y")'
NO_FOLDER = 'RPCError("org.apache.hadoop.security.AccessControlException", "/t/file (is not a directory)")'


@pytest.mark.parametrize("folder", ["/t/it is not a file/a", "/t/is a directory", "/t"])
def test_a_refusal_is_not_taken_for_an_absence_whatever_the_folder_is_called(folder: str) -> None:
    client = Failing(RuntimeError(DENIED.format(folder)))
    client.get_file_info = client.list_status = client.read = client.rename  # type: ignore[method-assign]
    store = over(client)
    for ask in (lambda: store.head("x"), lambda: store.get("x"), lambda: store.list_all(), lambda: store.list_from("")):
        with pytest.raises(StorePermissionDenied) as told:
            ask()
        assert f'inode="{folder}":y' in str(told.value)


def test_a_name_below_a_file_is_absent() -> None:
    client = Failing(RuntimeError(NO_FOLDER))
    client.get_file_info = client.list_status = client.rename  # type: ignore[method-assign]
    store = over(client)
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
    store = over(Vanishing())
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


class GarbageFile(io.RawIOBase):
    """A file that Python closes as garbage, as it does the client's own."""

    closed_by: ClassVar[list[int]] = []

    def write(self, data: Any) -> int:
        raise OSError("Broken pipe (os error 32)")

    def close(self) -> None:
        self.closed_by.append(threading.get_ident())


def test_whoever_collects_garbage_does_not_wait_for_a_name_node() -> None:
    client = Failing(RuntimeError("no rename is wanted"))
    client.create = lambda path: GarbageFile()  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        over(client).put("x", b"data")
    gc.collect()
    assert len(GarbageFile.closed_by) == 1
    assert threading.get_ident() not in GarbageFile.closed_by


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
        over(client).put("name", b"x")
    assert type(told.value) is kind
    assert len(client.deleted) == 1


def test_what_the_chunks_raise_is_raised_as_it_is_and_nothing_is_left() -> None:
    def chunks(error: Exception) -> Iterator[bytes]:
        yield b"x"
        raise error

    for error in (ValueError("mine"), PutOutcomeUnknown(name="y", root="s3://other", reason="lost")):
        client = Breaking(close=PIPE)
        with pytest.raises(type(error)) as told:
            over(client).put_stream("name", chunks(error))
        assert told.value is error
        assert len(client.deleted) == 1


def test_a_file_that_cannot_be_synced_is_closed_all_the_same() -> None:
    client = Breaking(hsync=RuntimeError("UnsupportedFeature: hsync of erasure coded files"))
    client.rename = lambda *_: None  # type: ignore[method-assign]
    over(client).put("name", b"x")


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
    store = over(client)
    for put in (store.put_if_absent, store.put):
        with pytest.raises(StoreError) as told:
            put("name", b"x")
        assert type(told.value) is kind
        assert "\tat" not in str(told.value)
    assert (len(client.deleted) == 2) is cleans, "a name may be given yet to what lies aside"


@pytest.mark.parametrize("refused", [RuntimeError(REFUSED), RuntimeError('RPCError("x.SafeModeException", "no")')])
def test_a_refusal_is_not_definite_while_what_lies_aside_may_still_be_renamed(refused: Exception) -> None:
    """An earlier request for it, of a client that repeats by itself, may be under way."""
    with pytest.raises(PutOutcomeUnknown):
        over(Failing(refused, removes=False)).put_if_absent("name", b"x")


class Renamed(Failing):
    """A client whose rename was carried out before its reply was lost; the name has these bytes now."""

    def __init__(self, data: bytes) -> None:
        super().__init__(OSError("RPC listener disconnected"), FileNotFoundError("rename source is not found."))
        self.data = data

    def read(self, path: str) -> Any:
        return contextlib.nullcontext(Opened(self.data))


class Opened(bytes):
    """An open file of hdfs-native's."""

    def read_range_stream(self, start: int, length: int) -> Iterator[bytes]:
        yield from (self[at : at + 1] for at in range(start, start + length))


class Listing(Failing):
    """A client of a NameNode that lists such paths."""

    def __init__(self, *paths: str) -> None:
        super().__init__(OSError())
        self.paths = paths

    def list_status(self, path: str, recursive: bool) -> list[Any]:
        known = {"length": 1, "modification_time": 1, "isdir": False}
        return [SimpleNamespace(path=path, **known) for path in self.paths]


@pytest.mark.parametrize(
    "path", ["/t/../x", "/t/..", "/t/.", "/t/", "/t/a/b", "/other/x", "x", "", "/t/a\0b", "/table"]
)
def test_what_is_listed_elsewhere_is_refused(path: str) -> None:
    for call in (lambda store: store.list_from(""), lambda store: store.list_all()):
        with pytest.raises(StoreError):
            call(over(Listing("/t/good", path)))
    assert [entry.name for entry in over(Listing("/t/good")).list_all()] == ["good"]


PanicException = type("PanicException", (BaseException,), {})
"""As PyO3 calls it."""


@pytest.mark.parametrize("failure", [OverflowError("a negative size"), PanicException("not yet implemented")])
def test_what_the_client_does_not_understand_is_our_error(failure: BaseException) -> None:
    client = Failing(OSError())

    def ask(*_: Any) -> Any:
        raise failure

    client.get_file_info = client.list_status = client.read = ask  # type: ignore[attr-defined, method-assign]
    store = over(client)
    for call in (lambda: store.head("x"), lambda: store.get("x"), lambda: store.list_all()):
        with pytest.raises(StoreError):
            call()


def test_a_folder_that_takes_a_name_is_not_said_to_be_a_winner() -> None:
    client = Failing(AssertionError("no rename is wanted"))
    folder = SimpleNamespace(path="/t/name", isdir=True, length=0, modification_time=1)
    client.get_file_info = lambda path: folder  # type: ignore[method-assign]
    for put in (over(client).put_if_absent, over(client).put_hint):
        with pytest.raises(StoreError, match="it is a folder") as told:
            put("name", b"x")
        assert type(told.value) is StoreError


@pytest.mark.parametrize("says", [{"length": 1 << 63}, {"modification_time": (1 << 64) - 1}])
def test_a_size_or_a_time_that_no_file_has_is_refused(says: dict[str, int]) -> None:
    client, known = Failing(OSError()), {"length": 1, "modification_time": 1, "isdir": False, **says}
    client.get_file_info = lambda path: SimpleNamespace(path=path, **known)  # type: ignore[method-assign]
    client.list_status = lambda *_: [SimpleNamespace(path="/t/x", **known)]  # type: ignore[attr-defined]
    for ask in (lambda store: store.head("x"), lambda store: store.list_all(), lambda store: store.get("x")):
        with pytest.raises(StoreError, match="no file can have"):
            ask(over(client))


class Giving(bytes):
    """An open file that says its length, and gives something else."""

    parts: tuple[bytes, ...]

    def read_range_stream(self, start: int, length: int) -> Iterator[bytes]:
        yield from self.parts


@pytest.mark.parametrize("parts", [(), (b"1234",), (b"123", b"456"), (b"",) * 3])
@pytest.mark.parametrize("start", [0, -5])
def test_other_bytes_than_a_file_has_are_none_of_it(parts: tuple[bytes, ...], start: int) -> None:
    client, file = Failing(OSError()), Giving(b"12345")
    file.parts = parts
    client.read = lambda _: contextlib.nullcontext(file)  # type: ignore[method-assign]
    client.get_file_info = lambda path: SimpleNamespace(path=path, isdir=False, length=5, modification_time=1)  # type: ignore[method-assign]
    for ask in (lambda store: store.read_range("x", start, 5), lambda store: store.get("x")):
        with pytest.raises(StoreError):
            ask(over(client))


@pytest.mark.parametrize("names", [itertools.repeat("a"), map(str, itertools.count())], ids=["one name", "new names"])
def test_a_folder_without_an_end_is_refused(names: Iterator[str]) -> None:
    client = Failing(OSError())
    known = {"length": 1, "modification_time": 1, "isdir": False}
    client.list_status = lambda *_: (SimpleNamespace(path=f"/t/{name}", **known) for name in names)  # type: ignore[attr-defined]
    store = HdfsStore("hdfs://nn/t", "/t", NativeFiles(client, folder_entries=1000), pauses_s=())
    with pytest.raises(StoreError, match="has no end"):
        store.list_from("")


class Silent(Failing):
    """A client that never answers one of its calls."""

    def __init__(self, call: str) -> None:
        super().__init__(OSError())
        self.over = threading.Event()
        self.rename = lambda *_: None  # type: ignore[method-assign]
        setattr(self, call, lambda *_: self.over.wait(PATIENCE))


@pytest.mark.slow
@pytest.mark.parametrize("call", ["get_file_info", "create", "write", "hsync", "close"])
def test_a_put_that_is_not_answered_ends_before_anything_is_renamed(call: str) -> None:
    client = Silent(call)
    store = HdfsStore("hdfs://nn/t", "/t", NativeFiles(client, answer_s=0.05), pauses_s=())
    with pytest.raises(StoreError, match="in time") as told:
        store.put_if_absent("name", b"x")
    assert not isinstance(told.value, PutOutcomeUnknown)
    client.over.set()


class NotWaitingForRenames(NativeFiles):
    """Waits long for each other answer, which a busy machine may bring late."""

    def rename(self, source: str, path: str, *, overwrite: bool) -> None:
        """See ``FileSystem.rename``."""
        NativeFiles(self.client, answer_s=0.05).rename(source, path, overwrite=overwrite)


@pytest.mark.slow
def test_a_rename_that_is_not_answered_leaves_its_outcome_unknown() -> None:
    client = Silent("rename")
    store = HdfsStore("hdfs://nn/t", "/t", NotWaitingForRenames(client, answer_s=PATIENCE), pauses_s=())
    for put in (store.put, store.put_if_absent):
        with pytest.raises(PutOutcomeUnknown):
            put("name", b"x")
    assert client.deleted == []
    client.over.set()


@pytest.mark.slow
@pytest.mark.parametrize("call", ["read", "list_status", "get_file_info"])
def test_what_is_read_and_not_answered_ends(call: str) -> None:
    client = Silent(call)
    store = HdfsStore("hdfs://nn/t", "/t", NativeFiles(client, answer_s=0.05), pauses_s=())
    asks = {
        "read": lambda: store.read_range("x", 0, 1),
        "list_status": store.list_all,
        "get_file_info": lambda: store.head("x"),
    }
    with pytest.raises(StoreError, match="in time"):
        asks[call]()
    client.over.set()


def test_a_sentence_without_an_end_is_cut() -> None:
    with pytest.raises(StoreError) as told:
        over(Failing(RuntimeError("x" * 10_000_000))).put("name", b"x")
    assert len(str(told.value)) < 10_000


def test_a_rename_that_finds_its_file_gone_is_taken_for_done_only_where_the_name_has_the_bytes() -> None:
    once_more = {"pauses_s": (0.0,)}
    replace(over(Renamed(b"mine")), **once_more).put_if_absent("name", b"mine")
    with pytest.raises(PutOutcomeUnknown):
        replace(over(Renamed(b"another's")), **once_more).put_if_absent("name", b"mine")


def test_a_request_is_sent_again_only_where_what_hinders_it_may_pass() -> None:
    busy, denied = 'RPCError("org.apache.hadoop.ipc.RetriableException", "too busy")', REFUSED
    for text, times in ((busy, 4), (denied, 1)):
        client, asked = Failing(RuntimeError(text)), list[str]()

        def ask(path: str, asked: list[str] = asked, text: str = text) -> Any:
            asked.append(path)
            raise RuntimeError(text)

        client.get_file_info = ask  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            replace(over(client), pauses_s=(0.0,) * 3).head("name")
        assert len(asked) == times


def test_a_location_needs_a_file_system() -> None:
    for location in ("hdfs:///data", "webhdfs:///data", "swebhdfs://host/data"):
        with pytest.raises(UnknownStore):
            open_store(location)


def test_without_the_client_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hdfs_native", None)
    with pytest.raises(UnknownStore, match=r"anabranch\[hdfs\]"):
        open_store(f"hdfs://host{next(fresh)}/data")
