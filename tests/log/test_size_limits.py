"""A file of the log that is too large, for a setting or for the memory that there is, is refused by its name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import errors
from anabranch._log import columnar, commits
from anabranch._log.file_names import LAST_CHECKPOINT, checksum_name, commit_name
from anabranch._log.log import forget
from anabranch._log.size_limits import LARGEST, LARGEST_BYTES, largest
from anabranch._storage.local import LocalStore
from tests.support.patience import PATIENCE
from tests.support.raw_logs import info, put_commit
from tests.support.tiers import few_of
from tests.support.worlds import World, table_path

Door = Callable[[World], object]
DOORS: dict[str, Door] = {
    "files": lambda world: anabranch.files(world.path),
    "history": lambda world: anabranch.history(world.path),
    "append": lambda world: world.append({"id": 9}),
    "update": lambda world: world.update("id = 1", id=2),
    "check": lambda world: anabranch.check(world.path),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(table_path(tmp_path)).create([{"id": 1}])
    put_commit(made.path, 1, info(userMetadata="x" * 5000))
    forget()
    return made


def refused(world: World, door: Door) -> errors.CorruptLog:
    before = sorted(path.name for path in Path(world.path).rglob("*"))
    with pytest.raises(errors.CorruptLog) as refusal:
        door(world)
    assert sorted(path.name for path in Path(world.path).rglob("*")) == before
    return refusal.value


@pytest.mark.parametrize("door", DOORS)
def test_a_commit_above_the_bound_is_not_even_fetched(world: World, door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    get = LocalStore.get

    def told(store: LocalStore, name: str, *, etag: str | None = None) -> bytes:
        fetched.append(name)
        return get(store, name, etag=etag)

    monkeypatch.setattr(LocalStore, "get", told)
    monkeypatch.setenv(LARGEST, "5000")
    error = refused(world, DOORS[door])
    assert error.file == commit_name(1)
    assert LARGEST in str(error)
    assert commit_name(1) not in fetched
    monkeypatch.setenv(LARGEST, "6000")
    DOORS[door](world)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1e9", "9" * 30])
def test_the_bound_is_a_number_of_bytes(world: World, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert largest() == LARGEST_BYTES
    monkeypatch.setenv(LARGEST, value)
    with pytest.raises(errors.InvalidOption, match=LARGEST):
        anabranch.files(world.path)


def out_of_memory(*_: Any, **__: Any) -> Any:
    raise MemoryError


BOUNDARIES: dict[str, tuple[Any, str]] = {
    "parsing a line": (commits.json, "loads"),
    "telling lines apart": (commits, "separate_file_lines"),
    "parsing file actions": (commits, "file_actions"),
}


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("door", ["files", "update"])
def test_what_runs_out_of_memory_is_named(
    world: World, door: str, boundary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*BOUNDARIES[boundary], out_of_memory)
    assert "not enough memory" in str(refused(world, DOORS[door]))


@pytest.mark.parametrize("door", ["files", "update"])
@pytest.mark.parametrize("hint", [False, True])
def test_a_file_that_cannot_be_fetched_for_lack_of_memory_is_named_or_done_without(
    world: World, door: str, hint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checksums and the hint of the newest checkpoint are passed by; a commit is not."""
    get = LocalStore.get

    def lacking(store: LocalStore, name: str, *, etag: str | None = None) -> bytes:
        if name == commit_name(1):
            out_of_memory()
        return get(store, name, etag=etag)

    monkeypatch.setattr(LocalStore, "get", lacking)
    if hint:
        monkeypatch.setattr(LocalStore, "read_range", out_of_memory)
    assert "not enough memory" in str(refused(world, DOORS[door]))


@pytest.mark.parametrize("name", [checksum_name(1), LAST_CHECKPOINT])
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/dev/stdin", "vast"])
def test_a_hint_that_has_no_end_is_passed_by(
    tmp_path: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of a terabyte of nothing takes no room on a disk."""
    get = LocalStore.get

    def known(store: LocalStore, asked: str, *, etag: str | None = None) -> bytes:
        assert asked != name, "a hint is not asked for as a whole"
        return get(store, asked, etag=etag)

    monkeypatch.setattr(LocalStore, "get", known)
    world = World(table_path(tmp_path)).create([{"id": 1}])
    world.append({"id": 2})
    path = Path(world.path, name)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "vast":
        path.touch()
        os.truncate(path, 200 << 30)
    else:
        path.symlink_to(kind)
    forget()
    assert [row["id"] for row in world.rows()] == [1, 2]
    world.append({"id": 3})
    forget()
    assert len(anabranch.history(world.path)) == 3
    anabranch.check(world.path)


def test_arrow_s_own_lack_of_memory_is_named_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: Any, **__: Any) -> Any:
        raise columnar.pa.ArrowMemoryError("malloc of size 1 failed")

    monkeypatch.setattr(commits, "file_actions", lacking)
    assert "not enough memory" in str(refused(world, DOORS["files"]))


CHILD = """
import resource, sys
import anabranch, pyarrow
from anabranch._log.log import forget
from tests.support.worlds import World

path, megabytes = sys.argv[1], int(sys.argv[2])
world = World(path)
doors = [
    lambda: anabranch.files(path), lambda: anabranch.history(path), lambda: world.append({"id": 9}),
    lambda: world.update("id = 1", id=2), lambda: anabranch.check(path),
]
world.version
pyarrow.array([1])  # loads pandas, if it is there
forget()
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used * 1024 + (megabytes << 20),) * 2)
for door in doors:
    try:
        door()
        print("done")
    except Exception as error:
        print(type(error).__name__, str(error)[-90:].replace(chr(10), " "))
    forget()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of memory is one of Linux here")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one line", "many lines", "tags"])
def test_a_commit_that_does_not_fit_into_memory_is_refused_by_a_typed_error(tmp_path: Path, kind: str) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1}])
    file = Path(world.path) / commit_name(1)
    size = 32 << 20
    add = {"path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    if kind == "one line":
        text = json.dumps({"commitInfo": {"userMetadata": "x" * size}})
    elif kind == "many lines":
        text = (json.dumps({"add": add}) + "\n") * (size // 120)
    else:
        tags = {f"k{i}": "v" * 80 for i in range(size // 100)}
        text = json.dumps({"add": {**add, "tags": tags}})
    file.write_text(text)
    forget()
    for megabytes in few_of(("16", "80"), 1):
        said = ran_with(world.path, megabytes)
        assert len(said) == 5, said
        allowed = ("done", "CorruptLog", "NotFound", "MissingFile", "RuntimeError can't start new thread")
        assert all(each.startswith(allowed) for each in said), said
        assert said[0].startswith(("CorruptLog", "RuntimeError")) or megabytes != "16", said
        file.with_name(f"{2:020}.json").unlink(missing_ok=True)


def ran_with(path: str, megabytes: str) -> list[str]:
    """What a process says that has so much memory left; one that libraries below Python end for lack of it (they cannot
    start a thread, or throw where nobody catches) is begun again.
    """
    for _ in range(10):
        ran = subprocess.run(
            [sys.executable, "-c", CHILD, path, megabytes],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if ran.returncode == 0:
            return ran.stdout.splitlines()
        assert "Traceback" not in ran.stderr, ran.stderr[-2000:]
    pytest.skip("no process came to its end with so little memory")
