"""FSCK: files that are gone are found, named, and taken out of the table; nothing else is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch import errors
from anabranch._cli import app
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch.commands.maintenance.fsck import MISSING, Fsck
from tests.support.worlds import World, assert_others_agree, table_path

ROWS = [{"id": i, "p": i % 3} for i in range(6)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create(ROWS, partition_by=("p",))


def lose(world: World, partition: int) -> str:
    """Delete the data file of a partition."""
    files = world.log.snapshot().files.to_pylist()
    [path] = [row["path"] for row in files if dict(row["partitionValues"])["p"] == str(partition)]
    os.unlink(Path(world.path, path))
    return str(path)


def lose_vector(world: World) -> str:
    [row] = [row["deletionVector"] for row in world.log.snapshot().files.to_pylist() if row["deletionVector"]]
    name = Descriptor.from_row(row).name
    os.unlink(Path(world.path, name))
    return name


def test_a_whole_table_gets_no_commit(world: World) -> None:
    done = Fsck(world.path).run()
    assert (done.missing, done.committed, done.files, world.version) == ((), None, 3, 0)


def test_a_dry_run_names_what_is_missing_and_changes_nothing(world: World) -> None:
    lost = lose(world, 1)
    done = anabranch.fsck(world.path)
    assert done.rows == [
        {"dataFilePath": lost, "dataFileMissing": True, "deletionVectorPath": None, "deletionVectorFileMissing": False}
    ]
    assert list(done.rows[0]) == MISSING.names
    assert (done.committed, world.version) == (None, 0)


def test_a_repair_takes_out_what_is_missing_and_says_so(world: World) -> None:
    lost = lose(world, 1)
    done = anabranch.fsck(world.path, dry_run=False)
    assert done.committed is not None
    commit = world.log.read(1)
    assert commit is not None
    assert commit.removes["path"].to_pylist() == [lost]
    assert commit.removes["dataChange"].to_pylist() == [True]
    assert len(commit.adds) == 0
    assert world.info()["operation"] == "FSCK"
    assert world.info()["operationMetrics"]["numRemovedFiles"] == "1"
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 5]
    assert anabranch.check(world.path, deep=True).is_clean
    assert_others_agree(world.path)
    assert Fsck(world.path).run().committed is None


def test_a_file_whose_vector_is_gone_is_taken_out_too(world: World) -> None:
    world.delete("id = 1")
    vector = lose_vector(world)
    [missing] = Fsck(world.path).run().missing
    assert (missing.data, missing.vector, missing.vector_missing) == (False, vector, True)
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 5]
    assert_others_agree(world.path)


def test_where_both_are_gone_both_are_named(world: World) -> None:
    world.delete("id = 1")
    vector, lost = lose_vector(world), lose(world, 1)
    [missing] = Fsck(world.path, dry_run=True).run().missing
    assert (missing.path, missing.data, missing.vector, missing.vector_missing) == (lost, True, vector, True)


def test_a_store_that_does_not_answer_is_an_error_and_no_file_is_missing(world: World, monkeypatch: Any) -> None:
    store = type(world.log.store)
    real = store.head

    def refuse(self: Any, name: str) -> Any:
        if name.endswith(".parquet"):
            raise errors.StoreError(name=name, root=self.url, reason="the disk is asleep.")
        return real(self, name)

    monkeypatch.setattr(store, "head", refuse)
    for dry_run in (True, False):
        with pytest.raises(errors.StoreError):
            Fsck(world.path, dry_run).run()
    assert world.version == 0


def test_a_path_that_leaves_the_table_is_an_error(world: World) -> None:
    line = (
        '{"add": {"path": "../x", "partitionValues": {"p": "1"}, "size": 1, "modificationTime": 0, "dataChange": true}}'
    )
    world.log.put(1, f'{{"commitInfo": {{}}}}\n{line}\n'.encode())
    with pytest.raises(errors.CorruptLog, match="leaves the table"):
        Fsck(world.path).run()


def test_a_file_outside_the_table_is_looked_for_where_it_lies(world: World, tmp_path: Path) -> None:
    there, gone = tmp_path / "there.parquet", tmp_path / "gone.parquet"
    there.write_bytes(b"x")
    adds = [
        f'{{"add": {{"path": "{each.as_uri()}", "partitionValues": {{"p": "1"}}, "size": 1, "modificationTime": 0, '
        '"dataChange": true}}'
        for each in (there, gone)
    ]
    world.log.put(1, "\n".join(['{"commitInfo": {}}', *adds, ""]).encode())
    assert [each.path for each in Fsck(world.path, dry_run=True).run().missing] == [gone.as_uri()]


def test_nothing_is_taken_out_of_an_append_only_table(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("p",), delta_appendOnly="true")
    lose(world, 1)
    assert len(Fsck(world.path, dry_run=True).run().missing) == 1
    with pytest.raises(errors.AppendOnlyTable):
        Fsck(world.path).run()


def test_the_command_line_names_first_and_repairs_when_told(world: World) -> None:
    lost = lose(world, 1)
    named = CliRunner().invoke(app, ["fsck", world.path, "--json"])
    assert (named.exit_code, lost in named.output) == (1, True)
    assert CliRunner().invoke(app, ["fsck", world.path, "--repair"]).exit_code == 0
    assert CliRunner().invoke(app, ["fsck", world.path]).exit_code == 0
