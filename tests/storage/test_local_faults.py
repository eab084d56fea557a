"""What stays on a disk after a power cut, a kill, a full disk, a lost reply."""

from __future__ import annotations

import ctypes
import errno
import io
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from anabranch._storage import disk
from anabranch._storage.local import LocalStore
from anabranch.errors import (
    NotFound,
    PutOutcomeUnknown,
    StoreError,
    StoreFull,
    StorePermissionDenied,
)
from tests.storage.disks import files_of, refusing
from tests.storage.racing import version, wins

ROOT = Path(__file__).resolve().parents[2]
NAME = version(0)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "table"))


# -- what is durable when ----------------------------------------------------------------------------------------------


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Each system call that makes something durable or visible, with the path it is about, in order."""
    calls: list[tuple[str, str]] = []
    fsync, link, replace, mkdir = os.fsync, os.link, os.replace, os.mkdir

    def spy(name: str, call: Callable[..., None], path_of: Callable[..., str]) -> None:
        def traced(*args: object) -> None:
            calls.append((name, path_of(*args)))
            call(*args)

        monkeypatch.setattr(os, name, traced)

    spy("fsync", fsync, lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    spy("link", link, lambda _, path: path)
    spy("replace", replace, lambda _, path: path)
    spy("mkdir", mkdir, lambda path, *_: path)
    return calls


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="names open files by /proc")
class TestDurability:
    def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_return(
        self, store: LocalStore, trace: list[tuple[str, str]]
    ) -> None:
        os.makedirs(f"{store.root}/_delta_log")
        trace.clear()
        store.put_if_absent(NAME, b"x")
        (written, aside), *rest = trace
        assert (written, os.path.dirname(aside)) == ("fsync", f"{store.root}/_delta_log")
        assert disk.is_aside(os.path.basename(aside))
        assert rest == [("link", f"{store.root}/{NAME}"), ("fsync", f"{store.root}/_delta_log")]

    def test_a_replaced_name_is_durable_in_the_same_order(
        self, store: LocalStore, trace: list[tuple[str, str]]
    ) -> None:
        store.put("hint", b"x")
        trace.clear()
        store.put("hint", b"y")
        assert [call for call, _ in trace] == ["fsync", "replace", "fsync"]
        assert [path for _, path in trace[1:]] == [f"{store.root}/hint", store.root]

    def test_a_loser_leaves_only_when_the_winner_is_durable(
        self, store: LocalStore, trace: list[tuple[str, str]]
    ) -> None:
        store.put_if_absent(NAME, b"x")
        trace.clear()
        assert not wins(store, NAME, b"y")
        assert trace == [("fsync", f"{store.root}/_delta_log")]

    def test_new_folders_are_durable_before_they_are_used(
        self, store: LocalStore, trace: list[tuple[str, str]]
    ) -> None:
        store.put("a/b/name", b"x")
        parent = os.path.dirname(store.root)
        assert trace[:6] == [
            ("mkdir", store.root),
            ("fsync", parent),
            ("mkdir", f"{store.root}/a"),
            ("fsync", store.root),
            ("mkdir", f"{store.root}/a/b"),
            ("fsync", f"{store.root}/a"),
        ]

    def test_sync_reaches_the_files_and_every_folder_above_them(
        self, store: LocalStore, trace: list[tuple[str, str]]
    ) -> None:
        names = ["job/p=1/x", "job/p=2/x", "job/p=2/y", "z"]
        for name in names:
            path = Path(store.root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"spark's")
        trace.clear()
        store.sync(names)
        synced = [path for _, path in trace]
        folders = [os.path.dirname(store.root), *(f"{store.root}{x}" for x in ("", "/job", "/job/p=1", "/job/p=2"))]
        assert sorted(synced[:4]) == sorted(f"{store.root}/{name}" for name in names)
        assert sorted(synced[4:]) == sorted(folders)

    def test_sync_misses_no_file(self, store: LocalStore) -> None:
        store.put("job/there", b"x")
        for absent in ("job/gone", "job"):
            with pytest.raises(NotFound) as told:
                store.sync(["job/there", absent])
            assert told.value.name == absent


# -- what fails --------------------------------------------------------------------------------------------------------

KINDS = {
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EACCES: StorePermissionDenied,
    errno.EROFS: StorePermissionDenied,
    errno.ENAMETOOLONG: StoreError,
}


@pytest.fixture(params=["put_if_absent", "put"])
def put(request: pytest.FixtureRequest, store: LocalStore) -> Callable[[str, bytes], None]:
    call: Callable[[str, bytes], None] = getattr(store, request.param)
    return call


@pytest.mark.parametrize("number", KINDS, ids=errno.errorcode.get)
@pytest.mark.parametrize("step", ["mkdir", "open", "write", "fsync", "claim"])
def test_a_refusal_at_any_step_is_told_and_leaves_nothing(
    store: LocalStore, put: Callable[[str, bytes], None], monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    if step == "claim":
        monkeypatch.setattr(os, "link", refusing(number))
        monkeypatch.setattr(os, "replace", refusing(number))
    elif step == "open":
        monkeypatch.setattr(disk, "open", refusing(number), raising=False)
    elif step == "write":
        monkeypatch.setattr(disk, "open", opening_a_file_that_cannot_be_written(number), raising=False)
    else:
        monkeypatch.setattr(os, step, refusing(number))
    with pytest.raises(KINDS[number]) as told:
        put(NAME, b"x")
    monkeypatch.undo()
    assert type(told.value) is KINDS[number]
    assert told.value.name == NAME
    assert os.strerror(number) in told.value.reason
    assert store.head(NAME) is None
    assert files_of(store) == []
    put(NAME, b"x")
    assert files_of(store) == [os.path.basename(NAME)]


class Unwritable(io.FileIO):
    """A file that takes one byte and no more."""

    number = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        super().write(data[:1])
        raise OSError(self.number, os.strerror(self.number))


def opening_a_file_that_cannot_be_written(number: int) -> Callable[..., io.FileIO]:
    return type("UnwritableBy", (Unwritable,), {"number": number})


def test_a_put_below_a_file_is_refused(store: LocalStore, put: Callable[[str, bytes], None]) -> None:
    store.put("file", b"x")
    with pytest.raises(StoreError, match="Not a directory") as told:
        put("file/name", b"y")
    assert type(told.value) is StoreError
    assert files_of(store) == ["file"]


def test_a_put_onto_a_folder_changes_nothing(store: LocalStore, put: Callable[[str, bytes], None]) -> None:
    store.put("folder/name", b"x")
    with pytest.raises(StoreError):
        put("folder", b"y")
    assert files_of(store) == ["name"]


def test_where_no_safe_claim_exists_the_put_is_refused(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refusing(errno.EOPNOTSUPP))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    with pytest.raises(StoreError, match="neither link a file nor rename") as told:
        store.put_if_absent(NAME, b"x")
    assert not isinstance(told.value, PutOutcomeUnknown)
    assert files_of(store) == []


def test_an_input_error_while_claiming_leaves_the_outcome_unknown(
    store: LocalStore, put: Callable[[str, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in ("link", "replace"):
        monkeypatch.setattr(os, step, refusing(errno.EIO))
    with pytest.raises(PutOutcomeUnknown) as told:
        put(NAME, b"x")
    assert told.value.retryable
    assert files_of(store) == []


def test_a_name_that_cannot_be_made_durable_leaves_the_outcome_unknown(
    store: LocalStore, put: Callable[[str, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("_delta_log/other", b"x")
    monkeypatch.setattr(os, "fsync", failing_from_call(2, errno.EIO))
    with pytest.raises(PutOutcomeUnknown):
        put(NAME, b"x")
    monkeypatch.undo()
    assert store.get(NAME) == b"x"
    assert not wins(store, NAME, b"x")


def failing_from_call(first: int, number: int) -> Callable[..., None]:
    calls = itertools.count(1)
    return lambda *_: refusing(number)() if next(calls) >= first else None


@pytest.mark.parametrize("number", [errno.EEXIST, errno.EIO, errno.ESTALE], ids=errno.errorcode.get)
def test_a_lost_reply_of_a_file_server_does_not_make_the_winner_a_loser(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    link = os.link

    def linked_but_told_otherwise(aside: str, path: str) -> None:
        link(aside, path)
        refusing(number)()

    monkeypatch.setattr(os, "link", linked_but_told_otherwise)
    store.put_if_absent(NAME, b"x")
    assert store.get(NAME) == b"x"


def test_a_folder_that_cannot_be_synced_does_not_stop_a_put(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def sync_files_only(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            refusing(errno.EINVAL)()
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync_files_only)
    store.put_if_absent(NAME, b"x")
    assert store.get(NAME) == b"x"


# -- what interrupts ---------------------------------------------------------------------------------------------------


def test_an_interrupt_before_the_claim_leaves_nothing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("fsync", "link"):
        with monkeypatch.context() as patch:
            os.makedirs(f"{store.root}/_delta_log", exist_ok=True)
            patch.setattr(os, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.put_if_absent(NAME, b"x")
        assert files_of(store) == []


def test_an_interrupt_after_the_claim_leaves_all_of_it(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def interrupted(aside: str, path: str) -> None:
        link(aside, path)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.put_if_absent(NAME, b"whole")
    monkeypatch.undo()
    assert store.get(NAME) == b"whole"
    assert files_of(store) == [os.path.basename(NAME)]
    assert not wins(store, NAME, b"whole")


KILLED_AT = """
import os, signal, sys
from anabranch._storage import open_store
step = getattr(os, sys.argv[2])
def killed(*args):
    if sys.argv[3] == "after":
        step(*args)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], killed)
open_store(sys.argv[1]).put_if_absent(sys.argv[4], b"whole")
"""


@pytest.mark.parametrize(
    ("step", "when", "visible"), [("link", "before", False), ("link", "after", True), ("unlink", "before", True)]
)
@pytest.mark.slow
def test_a_killed_writer_leaves_all_or_nothing_to_be_seen(
    store: LocalStore, step: str, when: str, visible: bool
) -> None:
    os.makedirs(f"{store.root}/_delta_log")
    killed = subprocess.run([sys.executable, "-c", KILLED_AT, store.root, step, when, NAME], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [entry.name for entry in store.list_all()] == [entry.name for entry in store.list_from("_delta_log/")]
    assert [store.get(entry.name) for entry in store.list_all()] == ([b"whole"] if visible else [])
    assert wins(store, NAME, b"next") is not visible


def test_a_write_under_way_is_neither_listed_nor_a_name(store: LocalStore) -> None:
    store.put("folder/name", b"x")
    aside = os.path.relpath(disk.write_aside(f"{store.root}/folder/{'long name ' * 20}", [b"half"]), store.root)
    assert [entry.name for entry in store.list_all()] == ["folder/name"]
    assert store.list_from("folder/.") == store.list_all()
    puts = (partial(store.put, data=b""), partial(store.put_if_absent, data=b""))
    for call in (store.get, store.head, store.delete, *puts):
        with pytest.raises(StoreError, match="reserved for unfinished writes"):
            call(aside)
