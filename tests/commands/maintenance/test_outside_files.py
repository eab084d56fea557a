"""A table from a stranger names files outside its folder: nothing is asked for, copied, shown or deleted there."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch import errors
from anabranch._log.file_locations import locate_in_store
from anabranch._log.vectors import forget_vectors
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.maintenance.fsck import Fsck
from anabranch.commands.maintenance.generate import Generate
from anabranch.commands.maintenance.restore import Restore
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.opening import file_set, open_log
from anabranch.commands.queries.change_feed import ReadChanges
from tests.support.counting import Counting, counting
from tests.support.raw_logs import WITH_VECTORS, add, info, metadata, put_commit, put_rows, remove
from tests.support.worlds import World

SECRET = b"root:x:0:0:the words of another file:/root:/bin/sh\n" * 4
ROWS = [{"id": 1, "x": 1}, {"id": 2, "x": 2}]


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return sink.getvalue()


@pytest.fixture
def server() -> Iterator[Counting]:
    with counting(parquet()) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_is_allowed_or_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANABRANCH_ALLOWED_STORES", raising=False)
    forget_vectors()


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file of the reader's that is none of the table's."""
    path = tmp_path / "home" / "passwd"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


def hostile(table: Path, path: str, size: int, **fields: Any) -> World:
    """A table of one file, which lies where a stranger says."""
    put_commit(table, 0, WITH_VECTORS, metadata(), add(path, size=size, stats='{"numRecords": 2}', **fields))
    return World(str(table))


def vector_at(path: str) -> Mapping[str, Any]:
    return Descriptor("p", path, 40, 1, 1).to_row()


def marked(table: Path, path: str) -> World:
    """A table of one good file, whose vector lies where a stranger says."""
    put_commit(table, 0, WITH_VECTORS, metadata(), put_rows(table, "a.parquet", ROWS, deletionVector=vector_at(path)))
    return World(str(table))


DOORS: dict[str, Callable[[World], Any]] = {
    "read": lambda world: world.rows(),
    "delete": lambda world: world.delete("id = 1"),
    "update": lambda world: world.update("id = 1", x=5),
    "merge": lambda world: world.merge([{"id": 1, "x": 7}]),
    "optimize": lambda world: world.optimize("id"),
    "reorg": lambda world: world.reorg(),
    "fsck": lambda world: Fsck(world.path).run(),
    "fsck dry run": lambda world: Fsck(world.path, dry_run=True).run(),
    "shallow clone": lambda world: Clone(world.path, f"{world.path}-copy", True).run(),
    "deep clone": lambda world: Clone(world.path, f"{world.path}-copy", False).run(),
    "generate": lambda world: Generate(world.path).run(),
}
each_door = pytest.mark.parametrize("door", [each for each in DOORS if each != "reorg"])


# -- other stores ------------------------------------------------------------------------------------------------------


@each_door
def test_no_door_asks_another_store_for_a_data_file(door: str, tmp_path: Path, server: Counting) -> None:
    world = hostile(tmp_path / "t", f"{server.url}/a.parquet", len(server.data))
    if door == "optimize":
        put_commit(world.path, 1, put_rows(world.path, "b.parquet", ROWS), put_rows(world.path, "c.parquet", ROWS))
    with pytest.raises(errors.FileOutsideTable) as told:
        DOORS[door](world)
    assert server.requests == []
    assert told.value.store == server.url
    assert not Path(f"{world.path}-copy").exists() or not open_log(f"{world.path}-copy").exists()


@pytest.mark.parametrize("door", [each for each in DOORS if each not in ("optimize", "generate")])
def test_no_door_asks_another_store_for_a_vector(door: str, tmp_path: Path, server: Counting) -> None:
    world = marked(tmp_path / "t", f"{server.url}/v.bin")
    with pytest.raises(errors.FileOutsideTable):
        DOORS[door](world)
    assert server.requests == []


@pytest.mark.parametrize("door", ["read", "delete", "update", "merge", "reorg", "deep clone"])
@pytest.mark.parametrize("device", [False, True])
def test_no_door_waits_for_a_pipe_or_reads_a_device(door: str, device: bool, tmp_path: Path) -> None:
    world = marked_by_no_file(tmp_path, device=device)
    with pytest.raises(errors.CorruptVector):
        DOORS[door](world)
    assert not anabranch.check(world.path, deep=True).is_clean


def marked_by_no_file(folder: Path, *, device: bool) -> World:
    os.mkfifo(pipe := folder / "pipe")
    return marked(folder / "t", "file:///dev/zero" if device else f"file://{pipe}")


@pytest.mark.parametrize("device", [False, True])
def test_to_a_repair_a_pipe_or_a_device_is_no_vector(device: bool, tmp_path: Path) -> None:
    found = Fsck(marked_by_no_file(tmp_path, device=device).path, dry_run=True).run()
    assert [(each.path, each.data, each.vector_missing) for each in found.missing] == [("a.parquet", False, True)]


@each_door
def test_no_door_reads_a_pipe_as_a_data_file(door: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    world = hostile(tmp_path / "t", f"file://{tmp_path}/pipe", 100)
    with contextlib.suppress(errors.AnabranchError):
        DOORS[door](world)
    assert not anabranch.check(world.path, deep=True).is_clean or door.startswith("fsck")


def test_a_check_finds_such_files_and_asks_nobody(tmp_path: Path, server: Counting) -> None:
    world = hostile(tmp_path / "t", f"{server.url}/a.parquet", len(server.data))
    put_commit(world.path, 1, put_rows(world.path, "b.parquet", ROWS, deletionVector=vector_at(f"{server.url}/v.bin")))
    found = anabranch.check(world.path, deep=True)
    assert {each.file for each in found.findings} == {f"{server.url}/a.parquet", "b.parquet"}
    assert server.requests == []


def test_a_restore_asks_nobody(tmp_path: Path, server: Counting) -> None:
    world = hostile(tmp_path / "t", f"{server.url}/a.parquet", len(server.data))
    put_commit(world.path, 1, remove(f"{server.url}/a.parquet"))
    with pytest.raises(errors.FileOutsideTable):
        Restore(world.path, 0).run()
    assert server.requests == []


def test_changes_and_vacuum_ask_nobody(tmp_path: Path, server: Counting) -> None:
    world = hostile(tmp_path / "t", f"{server.url}/a.parquet", len(server.data))
    put_commit(world.path, 1, metadata(delta_enableChangeDataFeed="true"))
    put_commit(world.path, 2, remove(f"{server.url}/a.parquet", deletionVector=vector_at(f"{server.url}/v.bin")))
    put_commit(world.path, 3, info(), {"cdc": {"path": f"{server.url}/c.parquet", "partitionValues": {}, "size": 1}})
    with pytest.raises(errors.FileOutsideTable):
        ReadChanges(world.path, start=1).run()
    Vacuum(world.path, 0, check_retention=False).run()
    Vacuum(world.path, 0, lite=True, check_retention=False).run()
    assert server.requests == []


@pytest.mark.parametrize("how", ["environment", "option"])
def test_a_store_that_the_user_allows_is_asked(
    how: str, tmp_path: Path, server: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = hostile(tmp_path / "t", f"{server.url}/share/a.parquet", len(server.data))
    options = {"anabranch.allowedStores": f"s3://else, {server.url}/share"} if how == "option" else {}
    if how == "environment":
        monkeypatch.setenv("ANABRANCH_ALLOWED_STORES", f" s3://else ,{server.url}/share")
    files = file_set(open_log(world.path, options).snapshot())
    assert files.allowed == ("s3://else", f"{server.url}/share")
    assert anabranch.check(world.path, deep=True, storage_options=options).is_clean
    Clone(world.path, f"{world.path}-copy", storage_options=options, target_options={}).run()
    assert World(f"{world.path}-copy").rows() == ROWS
    assert server.requests
    with pytest.raises(errors.FileOutsideTable):
        locate_in_store(open_log(world.path, options).store, server.url.replace("http", "https") + "/share/a.parquet")


def test_an_option_of_one_handle_is_none_of_another(tmp_path: Path, server: Counting) -> None:
    world = hostile(tmp_path / "t", f"{server.url}/a.parquet", len(server.data))
    assert anabranch.check(world.path, storage_options={"anabranch.allowedStores": server.url}).is_clean
    assert not anabranch.check(world.path).is_clean


def test_a_shallow_clone_that_nobody_could_read_is_not_made(tmp_path: Path) -> None:
    source = World(str(tmp_path / "t")).create(ROWS)
    with pytest.raises(errors.FileOutsideTable):
        Clone(source.path, "memory://outside/copy", shallow=True).run()
    assert not open_log("memory://outside/copy").exists()


# -- files of the same disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["file", "plain", "encoded"])
def test_a_deep_clone_copies_nothing_but_parquet(path: str, tmp_path: Path, private: Path) -> None:
    spelled = {"file": private.as_uri(), "plain": str(private), "encoded": f"file:{str(private).replace('p', '%70')}"}
    world = hostile(tmp_path / "t", spelled[path], len(SECRET))
    copy = tmp_path / "copy"
    with pytest.raises(errors.CloneRefused, match="no Parquet file") as told:
        Clone(world.path, str(copy)).run()
    assert "words" not in str(told.value)
    assert SECRET not in b"".join(each.read_bytes() for each in copy.rglob("*") if each.is_file())


@pytest.mark.parametrize("disguise", [b"PAR1" + SECRET, SECRET + b"PAR1", b"PAR1" + SECRET + b"PAR1"])
def test_the_letters_of_parquet_alone_do_not_make_a_file_parquet(disguise: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(disguise)
    world = hostile(tmp_path / "t", (tmp_path / "x.parquet").as_uri(), len(disguise))
    with pytest.raises(errors.CloneRefused, match="no Parquet file"):
        Clone(world.path, str(tmp_path / "copy")).run()
    assert not list((tmp_path / "copy").rglob("*.parquet"))


def test_a_link_to_a_private_file_is_not_copied(tmp_path: Path, private: Path) -> None:
    world = hostile(tmp_path / "t", "a.parquet", len(SECRET))
    os.symlink(private, tmp_path / "t" / "a.parquet")
    with pytest.raises(errors.CloneRefused):
        Clone(world.path, str(tmp_path / "copy")).run()


def test_what_a_private_file_holds_is_not_shown(tmp_path: Path, private: Path) -> None:
    world = hostile(tmp_path / "t", private.as_uri(), len(SECRET))
    put_commit(world.path, 1, put_rows(world.path, "b.parquet", ROWS, deletionVector=vector_at(private.as_uri())))
    said = str(anabranch.check(world.path, deep=True))
    for door in ("delete", "merge", "read", "shallow clone"):
        try:
            DOORS[door](world)
        except Exception as error:
            said += str(error)
    number = int.from_bytes(SECRET[1:5], "big")
    assert "words" not in said
    assert str(number) not in said
    assert str(int.from_bytes(SECRET[-8:-4], "little")) not in said


BAD = [
    "../x.bin",
    "%2e%2e/x.bin",
    "file:///a/../x.bin",
    "file:///a/%2E%2e/x.bin",
    "a%00.bin",
    "s3:///x.bin",
    "s3:/bucket/x.bin",
    "//host/x.bin",
    "a//b.bin",
    "",
]


@pytest.mark.parametrize("path", BAD)
def test_a_path_that_is_none_is_a_typed_error_at_every_door(path: str, tmp_path: Path) -> None:
    for number, (door, run) in enumerate(DOORS.items()):
        if door in ("optimize", "reorg"):  # of one file without vectors there is nothing to do
            continue
        with pytest.raises(errors.CorruptLog):
            run(hostile(tmp_path / f"t{number}", path, 1))
        assert not open_log(str(tmp_path / f"t{number}-copy")).exists()


@pytest.mark.parametrize("path", [each for each in BAD if each])
def test_a_vector_s_path_that_is_none_is_a_typed_error_at_every_door(path: str, tmp_path: Path) -> None:
    for number, (door, run) in enumerate(DOORS.items()):
        if door in ("optimize", "generate"):
            continue
        with pytest.raises((errors.CorruptVector, errors.CorruptLog)):
            run(marked(tmp_path / f"t{number}", path))
        assert not open_log(str(tmp_path / f"t{number}-copy")).exists()


# -- vectors that are stored in an unknown way -------------------------------------------------------------------------


def marked_in_a_new_way(table: Path, storage_type: str = "r") -> World:
    """A table of one file, whose vector lies in the table's folder at a path that only a newer engine understands."""
    vector = {**vector_at("vectors/v.bin"), "storageType": storage_type}
    put_commit(table, 0, WITH_VECTORS, metadata(), put_rows(table, "a.parquet", ROWS, deletionVector=vector))
    return World(str(table))


@pytest.mark.parametrize("door", [each for each in DOORS if each not in ("optimize", "generate")])
@pytest.mark.parametrize("storage_type", ["r", "x"])
def test_a_vector_of_an_unknown_storage_type_is_refused_at_every_door(
    door: str, storage_type: str, tmp_path: Path
) -> None:
    world = marked_in_a_new_way(tmp_path / "t", storage_type)
    with pytest.raises(errors.UnsupportedVector) as refusal:
        DOORS[door](world)
    assert (refusal.value.file, refusal.value.storage_type) == ("a.parquet", storage_type)
    assert os.listdir(tmp_path / "t" / "_delta_log") == [f"{0:020d}.json"]
    assert not Path(f"{world.path}-copy").exists() or not open_log(f"{world.path}-copy").exists()


def test_optimize_packs_no_file_whose_vector_it_cannot_read(tmp_path: Path) -> None:
    world = marked_in_a_new_way(tmp_path / "t")
    put_commit(tmp_path / "t", 1, put_rows(world.path, "b.parquet", ROWS), put_rows(world.path, "c.parquet", ROWS))
    with pytest.raises(errors.UnsupportedVector):
        world.optimize("id")


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("lite", [False, True])
def test_vacuum_deletes_nothing_where_it_does_not_know_which_file_a_vector_is(
    removed: bool, lite: bool, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    marked_in_a_new_way(table)
    (table / "vectors").mkdir()
    orphan, vector = table / "orphan.parquet", table / "vectors" / "v.bin"
    for each in (orphan, vector):
        each.write_bytes(b"x" * 40)
        os.utime(each, (time.time() - 40 * 86400,) * 2)
    if removed:
        gone, soon = {**vector_at("vectors/v.bin"), "storageType": "r"}, int(time.time() * 1000) + 60_000
        put_commit(table, 1, remove("a.parquet", deletionVector=gone, deletionTimestamp=soon))  # nothing has expired
    with pytest.raises(errors.UnsupportedVector):
        Vacuum(str(table), retention_hours=0, lite=lite, check_retention=False).run()
    assert orphan.exists()
    assert vector.exists()


def test_check_names_the_file_whose_vector_is_stored_in_an_unknown_way(tmp_path: Path) -> None:
    world = marked_in_a_new_way(tmp_path / "t")
    found = anabranch.check(world.path, deep=True).findings
    assert any("a.parquet" in str(each) and "storage type r" in str(each) for each in found)


def test_the_feed_of_changes_refuses_a_vector_stored_in_an_unknown_way(tmp_path: Path) -> None:
    table = tmp_path / "t"
    file = put_rows(table, "a.parquet", ROWS)
    put_commit(table, 0, WITH_VECTORS, metadata(**{"delta.enableChangeDataFeed": "true"}), file)
    marked = {**file["add"], "deletionVector": {**vector_at("vectors/v.bin"), "storageType": "r"}}
    put_commit(table, 1, remove("a.parquet"), {"add": marked})
    with pytest.raises(errors.UnsupportedVector):
        ReadChanges(str(table), 1).run()


# -- nothing is deleted outside ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lite", [False, True])
def test_vacuum_deletes_nothing_outside_the_folder(lite: bool, tmp_path: Path, private: Path) -> None:
    other = private.parent / "other.parquet"
    other.write_bytes(parquet())
    table = tmp_path / "t"
    os.makedirs(table)
    os.symlink(private.parent, table / "linked")
    os.symlink(private, table / "link.parquet")
    old = time.time() - 40 * 86400
    for each in (private, other):
        os.utime(each, (old, old))
    paths = [
        "../home/passwd",
        "a/../../home/passwd",
        "%2e%2e/home/passwd",
        "..%2Fhome%2Fother.parquet",
        private.as_uri(),
        str(other),
        f"file:{table}/../home/passwd",
        f"file://localhost{other}",
        "linked/passwd",
        "linked/other.parquet",
        "link.parquet",
        "_delta_log/00000000000000000000.json",
    ]
    put_commit(table, 0, WITH_VECTORS, metadata(), put_rows(table, "live.parquet", ROWS))
    put_commit(table, 1, *[remove(path, deletionVector=vector_at(str(private))) for path in paths])
    put_commit(table, 2, info(), *[{"cdc": {"path": path, "partitionValues": {}, "size": 1}} for path in paths])
    put_commit(table, 3, put_rows(table, "more.parquet", ROWS))
    Vacuum(str(table), 0, lite=lite, check_retention=False).run()
    assert private.read_bytes() == SECRET
    assert other.read_bytes() == parquet()
    assert (table / "_delta_log" / "00000000000000000000.json").exists()
    assert (table / "live.parquet").exists()


def test_a_purge_and_its_vacuum_leave_the_files_of_others(tmp_path: Path) -> None:
    """A shallow clone is rewritten whole: its source's files are given up, and stay."""
    source = World(str(tmp_path / "source")).create(ROWS)
    source.delete("id = 1")
    clone = World(str(tmp_path / "clone"))
    Clone(source.path, clone.path, shallow=True).run()
    clone.reorg()
    clone.vacuum(0)
    Vacuum(clone.path, 0, lite=True, check_retention=False).run()
    assert source.rows() == clone.rows() == [{"id": 2, "x": 2}]
    source.assert_clean()
