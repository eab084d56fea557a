"""Writing into a table: what each mode does where there is one, and where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.log import forget
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.write import Write
from anabranch.testing import ArrowEngine, at_phase
from tests.support.raw_logs import PROTOCOL, info, listing, metadata, put_commit, put_rows, remove
from tests.support.worlds import World

ROWS = [{"id": i, "x": i} for i in range(4)]
NEW = pa.table({"id": [7], "x": [7]})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    forget()
    made = World(str(tmp_path / "t"))
    yield made
    if (tmp_path / "t" / "_delta_log").is_dir():
        made.assert_clean()


def ids(world: World, version: int | None = None) -> list[int]:
    return [row["id"] for row in world.rows(version)]


def write(world: World, mode: str, source: pa.Table = NEW, **options: Any) -> Any:
    return Write(world.path, source, mode, **options).run(world.engine)


# -- modes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "errorifexists", "ignore"])
def test_every_mode_creates_a_table_where_there_is_none(world: World, mode: str) -> None:
    assert write(world, mode).version == 0
    assert ids(world) == [7]
    assert world.info()["operation"] == "WRITE"


@pytest.mark.parametrize(
    ("mode", "expected"), [("append", [0, 1, 2, 3, 7]), ("overwrite", [7]), ("ignore", [0, 1, 2, 3])]
)
def test_what_a_mode_does_to_a_table(world: World, mode: str, expected: list[int]) -> None:
    world.create(ROWS)
    committed = write(world, mode)
    assert ids(world) == expected
    assert (committed is None) == (mode == "ignore")
    assert ids(world, version=0) == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", ["error", "errorifexists"])
def test_a_table_is_not_created_twice(world: World, mode: str) -> None:
    world.create(ROWS)
    before = listing(world.path)
    with pytest.raises(errors.TableAlreadyExists):
        write(world, mode)
    assert listing(world.path) == before


@pytest.mark.parametrize("mode", ["", "Append", "upsert", "truncate"])
def test_a_mode_that_there_is_not_is_refused(world: World, mode: str) -> None:
    with pytest.raises(errors.InvalidOption, match="append, overwrite"):
        write(world, mode)
    assert not Path(world.path).exists()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_another_partitioning_than_the_tables_is_refused(world: World, mode: str) -> None:
    world.create(ROWS, partition_by=("x",))
    before = listing(world.path)
    for columns in (("id",), (), ("x", "id")):
        with pytest.raises(errors.InvalidOption, match="which are: x"):
            write(world, mode, partition_by=columns)
    assert listing(world.path) == before
    write(world, mode, partition_by=("x",))
    write(world, mode)


def test_staging_that_fails_leaves_nothing(world: World) -> None:
    class Broken(ArrowEngine):
        def write(self, *args: Any) -> None:
            super().write(*args)
            raise errors.ExecutionFailed(what="the source", reason="it broke.")

    world.create(ROWS)
    before = listing(world.path)
    for mode in ("append", "overwrite"):
        with pytest.raises(errors.ExecutionFailed):
            Write(world.path, NEW, mode).run(Broken())
    assert listing(world.path) == before


def test_staging_leaves_a_marker_that_it_ended(world: World) -> None:
    write(world, "append")
    names = [name for name in listing(world.path) if "_committed_" in name or "_started_" in name]
    assert len(names) == 1
    assert "_committed_" in names[0]


# -- overwrite ---------------------------------------------------------------------------------------------------------


def test_an_overwrite_keeps_the_tables_metadata(world: World) -> None:
    world.create(ROWS, partition_by=("x",), **{"delta_checkpointInterval": "5"})
    before = world.log.snapshot().metadata
    world.overwrite({"id": 9, "x": 1})
    assert world.log.snapshot().metadata == before
    assert ids(world) == [9]


def test_an_overwrite_ends_files_with_their_vectors(world: World) -> None:
    world.create(ROWS)
    world.delete("id = 1")
    world.overwrite({"id": 9, "x": 9})
    (gone,) = [row for row in world.log.snapshot().tombstones.to_pylist() if row["deletionVector"] is not None]
    assert gone["deletionVector"]["cardinality"] == 1
    assert ids(world) == [9]


def test_an_overwrite_of_an_empty_table_and_by_no_rows(world: World) -> None:
    write(world, "append", NEW.slice(0, 0))
    write(world, "overwrite")
    write(world, "overwrite", NEW.slice(0, 0))
    assert ids(world) == []
    write(world, "overwrite", NEW.slice(0, 0))
    assert world.version == 3


def test_an_overwrite_removes_what_a_blind_append_brought_before_its_place(world: World) -> None:
    """The append is followed by a winner that read the table: ours stands behind both, so its row goes too."""
    world.create(ROWS)

    def winners() -> None:
        world.append({"id": 50, "x": 50})
        put_commit(world.path, 2, info(), {"txn": {"appId": "a", "version": 1}})

    with at_phase("staged", winners):
        world.overwrite({"id": 9, "x": 9})
    assert ids(world) == [9]
    assert world.info()["tags"]["anabranch.cut"] == "2"


def test_an_overwrite_removes_a_blind_file_whose_rows_nobody_counted(world: World) -> None:
    """Without numRecords it holds some rows for all that is known."""
    world.create(ROWS)

    def winners() -> None:
        new = put_rows(world.path, "new.parquet", [{"id": 50, "x": 50}], stats=None)
        put_commit(world.path, 1, info(isBlindAppend=True), new)
        put_commit(world.path, 2, info(), {"txn": {"appId": "a", "version": 1}})

    with at_phase("staged", winners):
        world.overwrite({"id": 9, "x": 9})
    assert ids(world) == [9]


def test_two_overwrites_at_once_conflict(world: World) -> None:
    world.create(ROWS)
    with (
        pytest.raises(errors.DeltaConcurrentModificationException) as refused,
        at_phase("staged", lambda: world.overwrite({"id": 8, "x": 8})),
    ):
        world.overwrite({"id": 9, "x": 9})
    assert refused.value.winner_version == 1
    assert ids(world) == [8]


def test_two_overwrites_of_an_empty_table_conflict(world: World) -> None:
    """The second has not read the first one's rows."""
    write(world, "append", NEW.slice(0, 0))
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: world.overwrite({"id": 8, "x": 8})),
    ):
        world.overwrite({"id": 9, "x": 9})
    assert ids(world) == [8]


def test_a_file_without_a_live_row_does_not_stop_an_overwrite(world: World) -> None:
    world.create(ROWS)
    world.append({"id": 50, "x": 50})

    def winner() -> None:
        (last,) = [row for row in world.log.snapshot().files.to_pylist() if json.loads(row["stats"])["numRecords"] == 1]
        put_commit(world.path, 2, info(), remove(last["path"], size=last["size"]))

    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", winner):
        world.overwrite({"id": 9, "x": 9})
    assert ids(world) == [0, 1, 2, 3]


# -- creation ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["overwrite", "error", "ignore"])
def test_a_creation_that_lost_its_race_is_told_unless_it_only_appends(world: World, mode: str) -> None:
    with (
        pytest.raises(errors.ProtocolChangedException) as refused,
        at_phase("staged", lambda: world.append({"id": 1, "x": 1})),
    ):
        write(world, mode)
    assert refused.value.winner_version == 0
    assert ids(world) == [1]
    assert sum(name.endswith(".parquet") for name in listing(world.path)) == 1


def test_a_bulk_append_that_lost_the_race_to_create_lands_in_a_new_folder(world: World) -> None:
    with at_phase("staged", lambda: world.append({"id": 1, "x": 1})):
        write(world, "append")
    assert ids(world) == [1, 7]
    jobs = {name.partition("/")[0] for name in listing(world.path) if name.startswith("job-")}
    assert len(jobs) == 1


def test_a_creation_race_lost_to_a_table_with_an_unknown_feature_writes_nothing(world: World) -> None:
    def winner() -> None:
        put_commit(world.path, 0, {"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}}, metadata())

    with pytest.raises(errors.UnsupportedFeature), at_phase("staged", winner):
        Append(world.path, [{"id": 1, "x": 1}]).run()
    assert list(listing(world.path)) == ["_delta_log/00000000000000000000.json"]
    put_commit(world.path, 0, PROTOCOL, metadata())


@pytest.mark.parametrize(
    ("source", "columns", "option"),
    [
        (pa.table({}), None, "columns"),
        (NEW, ("nope",), "partitionBy"),
        (NEW, ("id", "x"), "partitionBy"),
        (NEW, ("id", "ID"), "partitionBy"),
        (pa.table({"id": [7], "x": [7], "y": [7]}), ("id", "ID"), "partitionBy"),
        (pa.table({"s": [{"a": 1}], "x": [1]}), ("s",), "partitionBy"),
    ],
)
def test_a_table_that_cannot_be_is_not_created(
    world: World, source: pa.Table, columns: tuple[str, ...] | None, option: str
) -> None:
    with pytest.raises(errors.InvalidOption) as refused:
        write(world, "append", source, partition_by=columns)
    assert refused.value.option == option
    assert not Path(world.path).exists()


def test_two_columns_that_differ_in_case_only_are_refused(world: World) -> None:
    with pytest.raises(errors.InputError, match=r"(?i)column"):
        write(world, "append", pa.table({"id": [1], "ID": [2]}))
    assert not Path(world.path).exists()
