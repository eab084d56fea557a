"""A clustered table: created, written to by every verb, clustered otherwise, and kept from losing its statistics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import anabranch
from anabranch._protocol.actions import DomainMetadata
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.clustering import ClusterBy
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Replace
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.commands.queries.describe import detail
from anabranch.errors import ColumnInUse, ConcurrentWriteException, InvalidOption, ProtocolChangedException
from anabranch.testing import at_phase
from tests.support.raw_logs import listing
from tests.support.worlds import World, table_path


def clustered_world(folder: Path, *columns: str) -> World:
    made = World(table_path(folder))
    return made.create([{"id": 1, "x": 10}, {"id": 2, "x": 20}], cluster_by=columns or ("x",))


def by(world: World) -> tuple[tuple[str, ...], ...]:
    return world.log.snapshot().clustering_columns


def test_creating_lists_the_features_and_says_by_which_columns(tmp_path: Path) -> None:
    world = clustered_world(tmp_path)
    assert by(world) == (("x",),)
    assert {"clustering", "domainMetadata"} <= writer_features(world.log.snapshot().protocol)
    assert detail(world.path)["clusteringColumns"] == ["x"]
    world.assert_clean()


@pytest.mark.slow
def test_every_verb_writes_to_it_and_leaves_the_clustering(tmp_path: Path) -> None:
    world = clustered_world(tmp_path)
    world.append({"id": 3, "x": 30})
    world.update("id = 1", x=11)
    world.delete("id = 2")
    world.merge([{"id": 3, "x": 31}, {"id": 4, "x": 40}])
    world.overwrite(*world.rows(), {"id": 5, "x": 50})
    assert [row["id"] for row in world.rows()] == [1, 3, 4, 5]
    assert by(world) == (("x",),)
    world.assert_clean()


def test_a_write_that_names_other_columns_is_refused(tmp_path: Path) -> None:
    world = clustered_world(tmp_path)
    with pytest.raises(InvalidOption, match="clustered by x"):
        anabranch.append(world.path, [{"id": 3, "x": 30}], cluster_by=["id"])
    anabranch.append(world.path, [{"id": 3, "x": 30}], cluster_by=["X"])
    assert world.version == 1


@pytest.mark.slow
def test_cluster_by_changes_the_columns_without_stopping_writers(tmp_path: Path) -> None:
    world = clustered_world(tmp_path)
    with at_phase("staged", lambda: ClusterBy(world.path, paths_of(["id", "x"])).run()):
        world.append({"id": 3, "x": 30})
    assert by(world) == (("id",), ("x",))
    with at_phase("staged", lambda: world.update("id = 3", x=31)):
        ClusterBy(world.path, paths_of(["id"])).run()
    assert by(world) == (("id",),)
    assert world.info()["operation"] == "CLUSTER BY"
    assert world.info()["isBlindAppend"] is False
    assert ClusterBy(world.path, paths_of(["ID"])).run() is None
    ClusterBy(world.path, ()).run()
    assert by(world) == ()
    world.assert_clean()


def test_of_two_that_cluster_at_once_one_wins(tmp_path: Path) -> None:
    world = clustered_world(tmp_path)
    with (
        pytest.raises(ConcurrentWriteException, match=r"delta\.clustering"),
        at_phase("staged", lambda: ClusterBy(world.path, paths_of(["id"])).run()),
    ):
        ClusterBy(world.path, ()).run()
    assert by(world) == (("id",),)


def test_clustering_a_plain_table_is_a_change_of_the_protocol(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1}])
    with (
        pytest.raises(ProtocolChangedException),
        at_phase("staged", lambda: ClusterBy(world.path, paths_of(["id"])).run()),
    ):
        world.append({"id": 2})
    assert by(world) == (("id",),)


def test_statistics_of_a_clustering_column_cannot_be_switched_off(tmp_path: Path) -> None:
    world = clustered_world(tmp_path)
    with pytest.raises(InvalidOption, match="no statistics"):
        SetProperties(world.path, {"delta.dataSkippingNumIndexedCols": "1"}).run()
    assert world.version == 0


def test_a_table_whose_clustering_column_gets_no_statistics_is_not_written(tmp_path: Path) -> None:
    """As another engine could have left it: the protocol demands those statistics of every writer."""
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 1}], delta_dataSkippingNumIndexedCols="1")
    _say(world, DomainMetadata("delta.clustering", '{"clusteringColumns": [["x"]]}'))
    for write in (lambda: world.append({"id": 2, "x": 2}), lambda: world.delete("id = 1"), lambda: world.merge([])):
        with pytest.raises(InvalidOption, match="no statistics"):
            write()
    assert len(world.rows()) == 1


def _say(world: World, domain: DomainMetadata) -> None:
    name = Path(world.path) / "_delta_log" / f"{world.version + 1:020}.json"
    name.write_text(json.dumps({"domainMetadata": domain.to_json()}) + "\n")


def test_a_clustering_column_is_renamed(tmp_path: Path) -> None:
    mapped = {"delta_columnMapping.mode": "name"}
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 10}], cluster_by=("x",), **mapped)
    RenameColumn(world.path, ("x",), "z").run()
    assert by(world) == (("z",),)
    world.append({"id": 2, "z": 20})
    world.update("z = 20", z=30)
    assert world.rows() == [{"id": 1, "z": 10}, {"id": 2, "z": 30}]
    with pytest.raises(ColumnInUse, match="clustering"):
        DropColumns(world.path, (("z",),)).run()
    world.assert_clean()


def test_replacing_takes_the_clustering_of_the_new_table(tmp_path: Path) -> None:
    world = clustered_world(tmp_path)
    schema = Struct((Field("day", "date"),))
    Replace(world.path, NewTable(schema, cluster_by=(("day",),))).run()
    assert by(world) == (("day",),)
    Replace(world.path, NewTable(schema)).run()
    assert by(world) == ()


def test_replacing_the_columns_takes_the_clustering_that_is_given(tmp_path: Path) -> None:
    import pyarrow as pa

    world = clustered_world(tmp_path)
    rows = pa.table({"z": [1]})
    Write(world.path, rows, "overwrite", schema_change="overwrite", cluster_by=(("z",),)).run(world.engine)
    assert by(world) == (("z",),)


def test_a_table_is_not_both_partitioned_and_clustered(tmp_path: Path) -> None:
    path = table_path(tmp_path)
    with pytest.raises(InvalidOption, match="not both"):
        Append(path, [{"id": 1, "x": 1}], ("id",), cluster_by=(("x",),)).run()
    assert not listing(path)
