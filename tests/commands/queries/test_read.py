"""Which files a read looks at: all that may hold a matching row, of one version."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.predicates import Always, And, Compare, IsNull, Unknown
from anabranch._protocol.stats.skipping import FileFacts
from anabranch.commands.dml.append import Append
from anabranch.commands.opening import open_log
from anabranch.commands.queries.read import FILE_COLUMNS, Read, extent_from_log, files, row_id_columns
from tests.support.raw_logs import add, put_commit
from tests.support.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three files: p = a with ids 0 and 1 (one of them deleted), p = b with id 10, no p with id 20."""
    made = World(str(tmp_path / "t")).create([{"id": 0, "p": "a"}, {"id": 1, "p": "a"}], partition_by=("p",))
    made.append({"id": 10, "p": "b"})
    made.append({"id": 20, "p": None})
    made.delete("id = 1")
    return made


def partitions(table: pa.Table) -> list[str | None]:
    return sorted((dict(each)["p"] for each in table["partition_values"].to_pylist()), key=str)


def test_the_files_of_a_table_are_described(world: World) -> None:
    found = files(world.path)
    assert tuple(found.column_names) == FILE_COLUMNS
    by_partition = {dict(row["partition_values"])["p"]: row for row in found.to_pylist()}
    assert (by_partition["a"]["rows"], by_partition["a"]["vector"]) == (2, 1)
    assert (by_partition["b"]["rows"], by_partition["b"]["vector"]) == (1, 0)
    assert all((Path(world.path) / row["path"]).stat().st_size == row["size"] for row in found.to_pylist())


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (Compare("p", "=", "a"), ["a"]),
        (Compare("id", ">", 5), [None, "b"]),
        (IsNull("p"), [None]),
        (And((Compare("p", "=", "b"), Compare("id", "=", 11))), []),
        (Unknown(), [None, "a", "b"]),
        (Always(False), []),
    ],
)
def test_files_that_cannot_match_are_left_out(world: World, where: object, kept: list[str | None]) -> None:
    assert partitions(files(world.path, where)) == kept  # type: ignore[arg-type]
    assert Read(world.path, where=where).run().files.num_rows == len(kept)  # type: ignore[arg-type]


def test_an_older_version_is_read_as_it_was(world: World) -> None:
    assert partitions(files(world.path, version=0)) == ["a"]
    assert world.rows(version=0) == [{"id": 0, "p": "a"}, {"id": 1, "p": "a"}]
    assert Read(world.path, version=0).run().vectors == {}


def test_the_vectors_of_the_files_come_along(world: World) -> None:
    found = Read(world.path).run()
    assert [list(vector) for vector in found.vectors.values()] == [[1]]
    assert Read(world.path, where=Compare("p", "=", "b")).run().vectors == {}


def test_a_read_is_pinned(world: World) -> None:
    found = Read(world.path).run()
    world.delete()
    assert len(world.engine.rows(found)) == 3


@pytest.mark.parametrize("version", [-1, 4, 99])
def test_a_version_that_is_not_there_is_refused(world: World, version: int) -> None:
    with pytest.raises(errors.VersionNotFound):
        Read(world.path, version=version).run()


def test_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.NotATable):
        files(tmp_path / "nothing")


def test_rows_are_unknown_where_the_log_does_not_say_them(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Append(path, [{"id": 1}], properties={"delta.dataSkippingNumIndexedCols": "0"}).run()
    assert files(path)["rows"].to_pylist() == [1]
    assert files(path, Compare("id", "=", 99)).num_rows == 1


def test_one_file_without_ids_is_enough_that_none_are_shown(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 1}], delta_enableRowTracking="true")
    assert sorted(row_id_columns(Read(world.path).run()).values()) == ["_row_commit_version", "_row_id"]
    put_commit(world.path, 1, add("without.parquet"))
    with pytest.raises(errors.CorruptLog, match="no row ids") as refused:
        row_id_columns(Read(world.path).run())
    assert refused.value.file == "without.parquet"


# -- the least and the greatest value by the log alone -----------------------------------------------------------------

DAYS = [dt.date(2024, 1, 1), None, dt.date(2023, 5, 6)]


def extents(path: str) -> dict[str, Any]:
    snapshot = open_log(path).snapshot()
    return {name: extent_from_log(snapshot, name) for name in snapshot.schema.names}


def test_the_log_knows_the_least_and_the_greatest_whole_number_and_day(tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = {
        "id": [3, 1, None],
        "day": DAYS,
        "none": pa.nulls(3, pa.int32()),
        "s": ["a", "b", None],
        "f": [1.0, 2.0, 3.0],
    }
    anabranch.append(path, pa.table(rows))
    anabranch.append(path, pa.table({"id": [-7]}))
    known = extents(path)
    assert known["id"] == (-7, 3)
    assert known["day"] == (dt.date(2023, 5, 6), dt.date(2024, 1, 1))
    assert known["none"] == (None, None)
    assert known["s"] is known["f"] is None  # texts are cut, and NaN is left out


def test_the_log_does_not_know_the_extent_of_rows_some_of_which_are_deleted(tmp_path: Path) -> None:
    path = str(tmp_path)
    anabranch.append(path, [{"id": n, "p": n // 5} for n in range(10)], partition_by="p")
    anabranch.table(path).delete("id = 9")
    assert extents(path) == {"id": None, "p": (0, 1)}
    anabranch.table(path).delete("p = 1")
    assert extents(path) == {"id": (0, 4), "p": (0, 0)}
    anabranch.table(path).delete()
    assert extents(path) == {"id": (None, None), "p": (None, None)}


def test_a_file_that_says_too_little_leaves_the_extent_unknown(tmp_path: Path) -> None:
    path = str(tmp_path)
    anabranch.append(path, [{"id": 1, "p": 1}], partition_by="p")
    snapshot = open_log(path).snapshot()
    for stats, ids, parts in (
        (None, None, None),
        ('{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":1},"tightBounds":false}', None, (1, 1)),
        ('{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":1},"tightBounds" : false}', None, (1, 1)),
        ('{"numRecords":1,"minValues":{"id":1}}', None, (1, 1)),
        ('{"numRecords":0}', None, (None, None)),
        ('{"numRecords":0,"nullCount":{"id":0}}', (None, None), (None, None)),
        ('{"minValues":{"id":1},"maxValues":{"id":1}}', (1, 1), None),
    ):
        files = snapshot.files.set_column(
            snapshot.files.column_names.index("stats"), "stats", pa.array([stats], pa.string())
        )
        said = SimpleNamespace(
            files=files,
            schema=snapshot.schema,
            partition_columns=snapshot.partition_columns,
            facts=FileFacts(files, snapshot.schema, snapshot.partition_columns),
        )
        assert (extent_from_log(cast(Any, said), "id"), extent_from_log(cast(Any, said), "p")) == (ids, parts), stats
