"""A table's column mapping is taken away by its property, with all files and names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from anabranch import errors
from anabranch.commands.ddl.alter import SetProperties, UnsetProperties
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.errors import DeltaConcurrentModificationException
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

MODE = "delta.columnMapping.mode"


@pytest.fixture(params=["name", "id"])
def renamed(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A table whose column and partition column have other names in files, with a marked row."""
    rows = [{"id": i, "p": i % 2} for i in range(6)]
    world = World(table_path(tmp_path)).create(rows, partition_by=("p",), **{"delta_columnMapping.mode": request.param})
    for old, new in (("id", "key"), ("p", "part")):
        RenameColumn(world.path, (old,), new).run()
    world.delete("key = 1")
    return world


def operations(world: World, behind: int) -> list[Any]:
    return [world.info(version)["operation"] for version in range(behind + 1, world.version + 1)]


def set_none(world: World, **others: str) -> Any:
    return SetProperties(world.path, {MODE: "none", **others}).run(world.engine)


def unset(world: World, *others: str) -> Any:
    return UnsetProperties(world.path, [MODE, *others], if_exists=True).run(world.engine)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [set_none, unset])
def test_a_mapping_ends_by_its_property_with_all_files_and_names(renamed: World, ends: Any) -> None:
    before, version = renamed.rows(), renamed.version
    ends(renamed)
    snapshot = renamed.log.snapshot()
    assert operations(renamed, version) == ["REMOVE COLUMN MAPPING"]
    assert "columnMapping" not in snapshot.metadata.schema_string
    left = {key: value for key, value in snapshot.metadata.configuration.items() if "columnMapping" in key}
    assert left == ({MODE: "none"} if ends is set_none else {})
    assert renamed.rows() == before
    for file in snapshot.files.to_pylist():
        assert pq.read_schema(f"{renamed.path}/{file['path']}").names[0] == "key"
        assert [key for key, _ in file["partitionValues"]] == ["part"]
    renamed.append({"key": 9, "part": 1})
    assert renamed.rows(version) == before
    renamed.assert_clean()


def test_what_else_was_asked_is_done_behind_it(renamed: World) -> None:
    version = renamed.version
    set_none(renamed, team="a")
    SetProperties(renamed.path, {MODE: "name"}).run()
    unset(renamed, "team")
    assert operations(renamed, version) == [
        "REMOVE COLUMN MAPPING",
        "SET TBLPROPERTIES",
        "SET TBLPROPERTIES",
        "REMOVE COLUMN MAPPING",
        "UNSET TBLPROPERTIES",
    ]
    assert not {MODE, "team"} & set(renamed.log.snapshot().metadata.configuration)


def test_what_else_is_refused_is_refused_before_a_file_is_written(renamed: World) -> None:
    version = renamed.version
    with pytest.raises(errors.InvalidProperty):
        set_none(renamed, **{"delta.isolationLevel": "Snapshot"})
    with pytest.raises(errors.InvalidProperty):
        unset(renamed, "delta.constraints.c")
    with pytest.raises(errors.InvalidOption, match="engine"):
        UnsetProperties(renamed.path, [MODE]).run()
    assert renamed.version == version
    renamed.assert_clean()


@pytest.mark.slow
def test_a_write_meanwhile_stands_in_the_way(renamed: World) -> None:
    with (
        pytest.raises(DeltaConcurrentModificationException),
        at_phase("staged", lambda: renamed.append({"key": 9, "part": 1})),
    ):
        unset(renamed)
    unset(renamed)
    assert 9 in {row["key"] for row in renamed.rows()}
    renamed.assert_clean()


def test_names_that_files_cannot_have_keep_the_mapping(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"a b": 1}], **{"delta_columnMapping.mode": "name"})
    for ends in (set_none, unset):
        with pytest.raises(errors.FeatureNotDropped, match="'a b'") as refused:
            ends(world)
        assert refused.value.getCondition() == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
    assert world.version == 0


def test_a_table_that_never_had_a_mapping_stays_as_it_is(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"a": 1}])
    assert unset(world) is None
    assert world.version == 0


def test_a_mapping_of_a_table_without_files_ends_and_no_row_was_copied(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"a": 1}], **{"delta_columnMapping.mode": "name"})
    world.delete()
    unset(world)
    assert world.info()["operation"] == "REMOVE COLUMN MAPPING"
    assert world.info()["operationMetrics"]["numCopiedRows"] == "0"
    assert MODE not in world.log.snapshot().metadata.configuration
