"""REORG … APPLY (UPGRADE UNIFORM): a table is made compatible with Iceberg in one commit, and no row moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._protocol.iceberg import lacks_numbers
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.maintenance.upgrade_uniform import UpgradeUniform
from anabranch.errors import DeltaConcurrentModificationException, InvalidOption, InvalidProperty
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

V2 = "delta.enableIcebergCompatV2"
ROWS = [{"id": i, "p": i % 2, "s": {"a": i, "b": [i]}} for i in range(6)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(table_path(tmp_path)).create(ROWS, partition_by=("p",), delta_enableDeletionVectors="true")
    made.delete("id = 1")
    return made


def upgrade(world: World) -> Any:
    return UpgradeUniform(world.path).run(world.engine)


def assert_files_fit(world: World) -> None:
    snapshot = world.log.snapshot()
    assert snapshot.files["deletionVector"].null_count == len(snapshot.files)
    for path in snapshot.files["path"].to_pylist():
        there = pq.read_schema(f"{world.path}/{path}")
        assert "p" in there.names
        assert not lacks_numbers(there, snapshot.metadata.configuration)


@pytest.mark.slow
def test_flag_mapping_and_fitting_files_come_in_one_commit(world: World) -> None:
    before, version = world.rows(), world.version
    upgrade(world)
    snapshot = world.log.snapshot()
    assert snapshot.version == version + 1
    configuration = snapshot.metadata.configuration
    assert (configuration[V2], configuration["delta.columnMapping.mode"]) == ("true", "name")
    assert configuration["delta.enableDeletionVectors"] == "false"
    assert "delta.universalFormat.enabledFormats" not in configuration
    assert {"icebergCompatV2", "columnMapping"} <= (snapshot.protocol.writer_features or set())
    assert world.info()["operation"] == "REORG TABLE UPGRADE UNIFORM"
    assert V2 in json.loads(world.info()["operationParameters"]["properties"])
    assert_files_fit(world)
    assert world.rows() == before
    lines = Path(world.path, f"_delta_log/{snapshot.version:020d}.json").read_text()
    assert '"dataChange":true' not in lines
    world.append({"id": 9, "p": 1, "s": {"a": 9, "b": [9]}})
    world.update("id = 2", p=1)
    assert_files_fit(world)
    world.assert_clean()


def test_a_table_that_is_compatible_already_stays_as_it_is(world: World) -> None:
    upgrade(world)
    version = world.version
    assert upgrade(world) is None
    assert world.version == version


def test_files_that_fit_are_not_written_anew(tmp_path: Path) -> None:
    rows = [{"id": 1, "p": 0}]
    made = World(table_path(tmp_path)).create(rows, partition_by=("p",), delta_enableIcebergCompatV1="true")
    paths = set(made.log.snapshot().files["path"].to_pylist())
    upgrade(made)
    assert set(made.log.snapshot().files["path"].to_pylist()) == paths
    assert made.log.snapshot().metadata.configuration["delta.enableIcebergCompatV1"] == "false"
    assert made.rows() == rows
    made.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["append", "delete", "property"])
def test_it_fails_beside_whatever_else_is_committed(world: World, what: str) -> None:
    meanwhile = {
        "append": lambda: world.append({"id": 7, "p": 1, "s": {"a": 7, "b": [7]}}),
        "delete": lambda: world.delete("id = 4"),
        "property": lambda: SetProperties(world.path, {"delta.appendOnly": "false"}).run(),
    }[what]
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", meanwhile):
        upgrade(world)
    after = world.rows()
    assert V2 not in world.log.snapshot().metadata.configuration
    upgrade(world)
    assert world.rows() == after
    world.assert_clean()


@pytest.mark.slow
def test_a_write_that_has_not_seen_it_fails(world: World) -> None:
    with pytest.raises(DeltaConcurrentModificationException), at_phase("staged", lambda: upgrade(world)):
        world.update("id = 4", p=0)
    world.assert_clean()


def test_what_iceberg_does_not_know_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    made = World(table_path(tmp_path))
    small = pa.Table.from_pylist([{"id": 1}], schema=pa.schema([("id", pa.int32())]))
    Append(made.path, small, None, {"delta.enableTypeWidening": "true"}).run()
    ChangeColumn(made.path, ("id",), type="double").run()
    version, folders = made.version, set(Path(made.path).iterdir())
    with pytest.raises(InvalidProperty, match="Iceberg does not support the change of the type of id"):
        upgrade(made)
    assert made.version == version
    assert set(Path(made.path).iterdir()) == folders


def test_other_versions_of_the_compatibility_are_refused(world: World) -> None:
    with pytest.raises(InvalidOption, match="ICEBERG_COMPAT_VERSION"):
        UpgradeUniform(world.path, 4).run(world.engine)
