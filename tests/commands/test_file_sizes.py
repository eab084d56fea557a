"""A data file that is empty, was cut, or was replaced by one of another size is told by its name, at every door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._log.log import forget
from anabranch._protocol.schema.types import Field, Struct
from anabranch._storage.sizes import sizes
from anabranch.commands.file_sizes import check_sizes
from anabranch.commands.queries.change_feed import ReadChanges
from anabranch.commands.queries.read import Read
from anabranch.errors import MissingDataFile
from anabranch.testing import DictStore
from anabranch.testing.stores import ObservedStore
from tests.support.raw_logs import PROTOCOL, metadata, put_commit, put_rows
from tests.support.worlds import World

ROWS = [{"id": i, "x": i, "p": i % 2} for i in range(8)]


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def replaced(path: Path) -> None:
    pq.write_table(pa.table({"id": [99], "x": [99]}), path)


DAMAGES = [emptied, cut, replaced]
VERBS: dict[str, Callable[[World], object]] = {
    "read": lambda world: Read(world.path).run(),
    "an older version": lambda world: Read(world.path, version=0).run(),
    "delete": lambda world: world.delete("x >= 0 and id = 1"),
    "update": lambda world: world.update("x >= 0 and id = 1", x=5),
    "merge": lambda world: world.merge([{"id": 1, "x": 7, "p": 1}]),
    "optimize": lambda world: world.optimize(),
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield World(str(tmp_path / "t")).create(ROWS)
    forget()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_of_another_size_is_told_to_readers_of_changes(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    world = World(str(tmp_path / "t")).create(ROWS, delta_enableChangeDataFeed="true")
    path = world.log.snapshot().files["path"][0].as_py()
    damage(Path(world.path, path))
    with pytest.raises(MissingDataFile) as caught:
        ReadChanges(world.path, 0).run()
    assert caught.value.file == path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_file_of_another_size_is_told_by_name_and_nothing_is_written(
    world: World, verb: str, damage: Callable[[Path], None]
) -> None:
    world.append({"id": 100, "x": 1, "p": 0})
    path = world.log.snapshot(0).files["path"][0].as_py()
    file = Path(world.path, path)
    size, version = file.stat().st_size, world.version
    damage(file)
    with pytest.raises(MissingDataFile) as caught:
        VERBS[verb](world)
    assert caught.value.file == path
    assert (caught.value.facts["size"], caught.value.facts["found"]) == (size, file.stat().st_size)
    assert f"has {file.stat().st_size} bytes, where the log says {size}" in caught.value.message
    assert world.version == version


def test_a_folder_in_the_place_of_a_file_is_told_whatever_is_inside(world: World) -> None:
    """Spark would read the files in it, which no log names."""
    path = world.log.snapshot().files["path"][0].as_py()
    file = Path(world.path, path)
    content = file.read_bytes()
    file.unlink()
    file.mkdir()
    (file / "inside.parquet").write_bytes(content)
    with pytest.raises(MissingDataFile, match="is no file"):
        Read(world.path).run()


def test_a_file_without_a_byte_is_told_though_the_log_says_so(tmp_path: Path) -> None:
    """Spark would leave it out, and its rows with it."""
    empty = put_rows(tmp_path, "empty.parquet", [{"id": 1}], size=0)
    (tmp_path / "empty.parquet").write_bytes(b"")
    put_commit(tmp_path, 0, PROTOCOL, metadata(Struct((Field("id", "long"),))), empty)
    with pytest.raises(MissingDataFile, match="has no bytes") as caught:
        Read(str(tmp_path)).run()
    assert caught.value.file == "empty.parquet"


def test_many_names_of_a_bucket_cost_a_listing_and_few_a_request_each() -> None:
    names = [f"job/part-{i}.parquet" for i in range(300)]
    store = DictStore("memory://sizes/t")
    for i, name in enumerate(names[:-1]):
        store.put(name, b"x" * i)
    store.put("job/another.parquet", b"")
    calls: list[str] = []
    watched = ObservedStore(store, before=lambda call: calls.append(call.method))
    assert sizes(watched, names) == {**{name: i for i, name in enumerate(names[:-1])}, names[-1]: None}
    assert sorted(calls) == ["head", "list_from"]
    calls.clear()
    assert sizes(watched, names[:3]) == {name: i for i, name in enumerate(names[:3])}
    assert calls == ["head"] * 3


def test_paths_in_other_spellings_are_the_same_files(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create(ROWS)
    Path(world.path, "a b.parquet").write_bytes(b"four")
    for path in ("a%20b.parquet", f"file://{world.path}/a%20b.parquet", f"{world.path}/a%20b.parquet"):
        check_sizes(world.log.store, pa.table({"path": [path], "size": [4]}))
        with pytest.raises(MissingDataFile):
            check_sizes(world.log.store, pa.table({"path": [path], "size": [5]}))
