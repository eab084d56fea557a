"""A local folder keeps the contract, among processes and with links; and why obstore's own local store does not do."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import obstore
import pytest
from obstore.store import LocalStore as ObstoreLocalStore

from anabranch._storage import open_store
from anabranch._storage.local import LocalStore
from anabranch.errors import AlreadyExists, NotFound, StoreError
from tests.storage.contract import StoreContract
from tests.storage.disks import files_aside, files_of, refusing
from tests.storage.racing import version
from tests.support.patience import end
from tests.support.worlds import World

NAME = version(0)


class TestLocal(StoreContract):
    @pytest.fixture
    def location(self, tmp_path: Path) -> Iterator[str]:
        yield str(tmp_path / "a folder#1" / "table")
        assert not files_aside(tmp_path), "racing and refused writers leave nothing behind"


class TestLocalWithoutHardLinks(StoreContract):
    """As on exFAT: the name is claimed by a rename that does not replace."""

    bound_to_one_process = "hard links are taken away from this process only"

    @pytest.fixture
    def location(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        monkeypatch.setattr(os, "link", refusing(errno.EPERM))
        yield str(tmp_path)
        assert not files_aside(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "table"))


def test_a_store_can_be_sent_to_another_process(store: LocalStore) -> None:
    assert pickle.loads(pickle.dumps(store)) == store


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path, store: LocalStore) -> Iterator[Path]:
    """A folder beside the table, which must stay as it is, with a link to it from inside the table."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(b"secret")
    os.makedirs(store.root)
    os.symlink(folder, f"{store.root}/link")
    os.symlink(folder / "secret", f"{store.root}/file link")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["secret"]
    assert (folder / "secret").read_bytes() == b"secret"


def test_links_are_read(store: LocalStore, outside: Path) -> None:
    assert store.get("link/secret") == store.get("file link") == b"secret"
    assert [entry.name for entry in store.list_from("link/")] == ["link/secret"]


@pytest.fixture(params=["pipe", "link to a pipe", "/dev/zero", "/dev/stdin", "/proc/self/fd/0"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path, store: LocalStore) -> str:
    """The name of what has no end, or may wait for ever."""
    os.makedirs(store.root)
    path, pipe = f"{store.root}/no file", str(tmp_path / "pipe")
    os.mkfifo(pipe)
    if request.param == "pipe":
        os.rename(pipe, path)
    else:
        os.symlink(pipe if request.param == "link to a pipe" else request.param, path)
    return "no file"


def test_a_pipe_or_device_is_no_name_and_is_never_waited_for(store: LocalStore, no_file: str) -> None:
    calls = [store.get, partial(store.get, etag="1"), partial(store.read_range, start=0, length=5)]
    for call in (*calls, partial(store.read_range, start=-5, length=5)):
        with pytest.raises(NotFound):
            call(no_file)
    assert store.head(no_file) is None
    assert store.list_all() == []


def test_a_file_of_the_kernel_has_no_byte_since_its_size_is_none(store: LocalStore) -> None:
    os.makedirs(store.root)
    os.symlink("/proc/self/maps", f"{store.root}/maps")
    assert store.get("maps") == store.read_range("maps", 0, 10) == store.read_range("maps", -10, 10) == b""


def test_nothing_is_written_or_deleted_through_a_link_that_leads_out(store: LocalStore, outside: Path) -> None:
    for call in (store.delete, partial(store.put, data=b"x"), partial(store.put_if_absent, data=b"x")):
        for name in ("link/secret", "link/new", "link/new/deep"):
            with pytest.raises(StoreError, match="leads out of the root"):
                call(name)


def test_nothing_is_listed_through_a_link_to_a_folder(store: LocalStore, outside: Path) -> None:
    assert [entry.name for entry in store.list_all()] == ["file link"]
    for folder in ("link", "link/", "link/deep/"):
        with pytest.raises(StoreError, match="leads out of the root"):
            store.list_all(folder)


def test_a_link_itself_is_replaced_or_deleted_not_what_it_means(store: LocalStore, outside: Path) -> None:
    store.put("file link", b"ours")
    assert store.get("file link") == b"ours"
    store.delete("link")
    assert not os.path.lexists(f"{store.root}/link")


def test_links_in_a_circle_or_to_nothing_are_no_names(store: LocalStore) -> None:
    os.makedirs(store.root)
    os.symlink("circle", f"{store.root}/circle")
    os.symlink("nothing", f"{store.root}/to nothing")
    assert store.list_all() == []
    assert store.head("circle") is store.head("to nothing") is None
    with pytest.raises(NotFound):
        store.get("circle")


NO_FILES = {
    "a folder": os.mkdir,
    "a pipe": os.mkfifo,
    "a link to a device": partial(os.symlink, "/dev/zero"),
    "a link to nothing": partial(os.symlink, "nowhere"),
    "a link to a folder": partial(os.symlink, "."),
    "a link to itself": lambda path: os.symlink(os.path.basename(path), path),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_name_that_no_file_takes_is_not_said_to_be_lost_to_a_winner(tmp_path: Path, kind: str) -> None:
    """A writer would look for the winner's commit, find none, and put its own again for as long as it may."""
    world = World(str(tmp_path / "table")).create([{"id": 1}])
    taken = tmp_path / "table" / "_delta_log" / f"{1:020}.json"
    NO_FILES[kind](str(taken))
    for put in (open_store(world.path).put_if_absent, open_store(world.path).put_hint):
        with pytest.raises(StoreError, match="neither a file") as told:
            put(f"_delta_log/{1:020}.json", b"x")
        assert type(told.value) is StoreError
    with pytest.raises(StoreError, match="neither a file"):
        world.append({"id": 2})
    assert [row["id"] for row in world.rows()] == [1]
    (taken.rmdir if taken.is_dir() and not taken.is_symlink() else taken.unlink)()
    world.append({"id": 2})


def test_a_root_reached_by_a_link_is_written_to(store: LocalStore, tmp_path: Path) -> None:
    store.put("name", b"x")
    os.symlink(store.root, tmp_path / "link")
    open_store(tmp_path / "link").put("other", b"y")
    assert sorted(files_of(store)) == ["name", "other"]


# -- listing -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_list_looks_at_no_file_before_its_start(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    os.makedirs(f"{store.root}/_delta_log")
    for number in range(500):
        Path(store.root, version(number)).touch()
    looked_at, scandir = set[str](), os.scandir

    class Noted:
        """An entry of a folder, of which it is noted whether more than the name is asked for."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.entry = entry.name, entry

        def __getattr__(self, name: str) -> object:
            looked_at.add(self.name)
            return getattr(self.entry, name)

    @contextmanager
    def noted(path: str) -> Iterator[list[Noted]]:
        with scandir(path) as found:
            yield [Noted(entry) for entry in found]

    monkeypatch.setattr(os, "scandir", noted)
    assert len(store.list_from(version(498))) == 2
    assert looked_at == {Path(version(number)).name for number in (498, 499)}


def test_what_is_deleted_while_it_is_listed_is_left_out(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("a", b"")
    store.put("b", b"")
    scandir = os.scandir

    class Deleting:
        def __init__(self, path: str) -> None:
            self.found = list(scandir(path))

        def __enter__(self) -> list[os.DirEntry[str]]:
            os.unlink(f"{store.root}/a")
            return self.found

        def __exit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr(os, "scandir", Deleting)
    assert [entry.name for entry in store.list_all()] == ["b"]


# -- why not obstore's own ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_obstore_creates_atomically(tmp_path: Path) -> None:
    theirs, data, done = ObstoreLocalStore(tmp_path), bytes(range(256)) * 8192, threading.Event()
    torn: list[Path] = []

    def read() -> None:
        while not done.is_set():
            torn.extend(path for path in tmp_path.iterdir() if "#" not in path.name and path.read_bytes() != data)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        obstore.put(theirs, f"{number}", data, mode="create")
    done.set()
    end(reader)
    assert not torn


def test_obstore_has_no_names_that_end_in_a_staging_number(tmp_path: Path) -> None:
    theirs = ObstoreLocalStore(tmp_path)
    with pytest.raises(obstore.exceptions.GenericError, match="trailing"):
        obstore.put(theirs, "name#1", b"x", mode="create")
    (tmp_path / "name#1").write_bytes(b"x")
    assert [meta for found in obstore.list(theirs) for meta in found] == []
    assert [entry.name for entry in open_store(tmp_path).list_all()] == ["name#1"]


def test_already_exists_is_the_loser_and_nothing_else(store: LocalStore) -> None:
    store.put_if_absent(NAME, b"x")
    with pytest.raises(AlreadyExists, match=r"00000000000000000000\.json already exists under file:///"):
        store.put_if_absent(NAME, b"y")
