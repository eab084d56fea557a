"""Tables that we wrote as real delta-spark reads and changes them, and one table by turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._log.file_names import LAST_CHECKPOINT
from anabranch._log.log import forget
from anabranch.errors import CheckConstraintViolated, DeltaConcurrentModificationException
from anabranch.tables import IdentityGenerator
from anabranch.testing import at_phase
from tests.support.changes import CHANGES, NASTY, ROWS, TYPED, TYPES
from tests.support.delta_spark import DeltaSpark, DeltaSparkError
from tests.support.readers import Row, same_rows, sorted_rows
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]


def assert_same_for_delta_spark(delta_spark: DeltaSpark, world: World, version: int | None = None) -> None:
    forget(world.log.table)
    assert same_rows(delta_spark.rows(world.path, version), world.rows(version))


# -- ours, as delta-spark reads them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("partition_by", [(), ("day",)], ids=["flat", "by day"])
def test_delta_spark_reads_every_version_that_our_commands_make(
    delta_spark: DeltaSpark, tmp_path: Path, partition_by: tuple[str, ...], vectors: str
) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=partition_by, delta_enableDeletionVectors=vectors)
    for change in CHANGES.values():
        change(world)
    world.append(*ROWS)
    world.merge([{"id": i, "day": "merged", "x": 0.25} for i in (3, 5, 77)])
    for version in range(world.version + 1) if vectors == "true" else [world.version]:
        assert_same_for_delta_spark(delta_spark, world, version)
    world.assert_clean()


def test_delta_spark_reads_a_table_from_our_checkpoint(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("day",))
    for i in range(11):
        world.append({"id": 1000 + i, "day": f"d{i}", "x": None})
        world.update(f"id = {i}", x=-1.0)
    assert world.log.store.head(LAST_CHECKPOINT) is not None
    for version in range(10):  # what the checkpoint holds is read from nowhere else
        world.log.store.delete(f"_delta_log/{version:020d}.json")
    assert_same_for_delta_spark(delta_spark, world)


def test_delta_spark_reads_values_and_partition_values_of_every_type(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    for name, values in TYPED.items():
        rows = pa.table({"id": range(len(values)), "value": pa.array(values, TYPES.get(name))})
        world = World(table_path(tmp_path))
        anabranch.append(world.path, rows)
        assert_same_for_delta_spark(delta_spark, world)
    nasty = World(table_path(tmp_path))
    nasty.create([{"id": i, "p": value} for i, value in enumerate([*NASTY, None])], partition_by=("p",))
    nasty.delete("id > 9 AND id < 13")
    assert_same_for_delta_spark(delta_spark, nasty)


def test_delta_spark_reads_a_table_whose_columns_grew(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    anabranch.install(spark)
    rows = spark.createDataFrame([(50, (1, "x"))], "id long, more struct<a: int, b: string>")
    rows.write.format("delta").mode("append").option("mergeSchema", "true").save(world.path)
    world.update("id = 5", x=1.0)
    wider = spark.createDataFrame([(51, (1, "x", True))], "id long, more struct<a: int, b: string, c: boolean>")
    wider.write.format("delta").mode("append").option("mergeSchema", "true").save(world.path)
    ours = [row.asDict(recursive=True) for row in anabranch.read(world.path, spark=spark).collect()]
    assert same_rows(delta_spark.rows(world.path), ours)


# -- our rules hold delta-spark's rows ---------------------------------------------------------------------------------


def builder(spark: SparkSession, path: str) -> Any:
    return DeltaTable.create(anabranch.install(spark)).location(path).addColumn("id", "BIGINT")


def test_delta_spark_holds_its_rows_to_our_constraints(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = table_path(tmp_path)
    builder(spark, path).addColumn("x", "BIGINT", nullable=False).property("delta.constraints.low", "x < 9").execute()
    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 8)")
    for bad in ("9", "NULL"):
        with pytest.raises(DeltaSparkError, match=r"DELTA_(VIOLATE|NOT_NULL)_CONSTRAINT"):
            delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, {bad})")
    with pytest.raises(CheckConstraintViolated):
        anabranch.append(path, [{"id": 3, "x": 9}], spark=spark)
    assert same_rows(World(path).rows(), [{"id": 1, "x": 8}])


def test_delta_spark_fills_our_generated_and_default_and_identity_columns(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = table_path(tmp_path)
    made = builder(spark, path).addColumn("twice", "BIGINT", generatedAlwaysAs="id * 2")
    made.addColumn("n", "BIGINT", generatedAlwaysAs=IdentityGenerator(10, 5)).execute()
    anabranch.install(spark).range(1, 3).write.format("delta").mode("append").save(path)
    delta_spark.sql(f"INSERT INTO delta.`{path}` (id) VALUES (3), (4)")
    spark.range(5, 6).write.format("delta").mode("append").save(path)
    found = sorted_rows(row.asDict() for row in anabranch.read(path, spark=spark).collect())
    assert [row["twice"] for row in sorted(found, key=lambda row: row["id"])] == [2, 4, 6, 8, 10]
    assert len({row["n"] for row in found}) == 5
    assert same_rows(delta_spark.rows(path), found)
    with pytest.raises(DeltaSparkError, match="DELTA_VIOLATE_CONSTRAINT"):
        delta_spark.sql(f"INSERT INTO delta.`{path}` (id, twice) VALUES (7, 7)")


# -- by turns ----------------------------------------------------------------------------------------------------------

Turn = Callable[[DeltaSpark, World], Any]
TURNS: tuple[str, ...] = (
    "INSERT INTO {t} VALUES (200, 'd1', 1), (201, NULL, 2)",
    "UPDATE {t} SET x = 7 WHERE id IN (0, 6, 200)",
    "DELETE FROM {t} WHERE id IN (9, 201)",
    "MERGE INTO {t} t USING (SELECT id, 'merged' day, 0.5 x FROM range(10, 14)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'false')",
    "DELETE FROM {t}",
)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_both_write_one_table_by_turns(delta_spark: DeltaSpark, tmp_path: Path, vectors: str) -> None:
    world = World(table_path(tmp_path))
    world.create(ROWS, partition_by=("day",), delta_enableDeletionVectors=vectors)
    for ours, theirs in zip(CHANGES.values(), TURNS, strict=True):
        delta_spark.sql(theirs.replace("{t}", f"delta.`{world.path}`"))
        assert_same_for_delta_spark(delta_spark, world)
        ours(world)
        world.append({"id": 1, "day": "d0", "x": 1.0}, {"id": 6, "day": None, "x": None})
        assert_same_for_delta_spark(delta_spark, world)
    world.assert_clean()


def test_a_change_of_ours_is_carried_over_an_append_of_delta_spark(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    with at_phase("staged", lambda: delta_spark.sql(f"INSERT INTO delta.`{world.path}` VALUES (5, 'new', 5.0)")):
        world.update("id = 5", x=0.0)
    found: list[Row] = [row for row in world.rows() if row["id"] == 5]
    assert {row["day"]: row["x"] for row in found} == {"d2": 0.0, "new": 5.0}
    assert_same_for_delta_spark(delta_spark, world)
    world.assert_clean()


# -- moved rows --------------------------------------------------------------------------------------------------------


def in_three_files(path: str) -> World:
    world = World(path).create(ROWS[:5])
    world.append(*ROWS[5:10])
    world.append(*ROWS[10:15])
    world.delete("id = 7")
    return world


def test_an_optimize_of_delta_spark_says_not_where_rows_went_so_it_is_a_conflict_for_a_change_of_them(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    world = in_three_files(table_path(tmp_path))
    before = world.rows()
    with (
        pytest.raises(DeltaConcurrentModificationException) as refused,
        at_phase("staged", lambda: delta_spark.sql(f"OPTIMIZE delta.`{world.path}`")),
    ):
        world.update("id = 5", x=0.0)
    assert refused.value.winner_operation == "OPTIMIZE"
    assert world.rows() == before
    world.assert_clean()


@pytest.mark.parametrize("columns", [(), ("id",)], ids=["pack", "zorder"])
def test_an_optimize_of_ours_leaves_alone_what_delta_spark_has_moved(
    delta_spark: DeltaSpark, tmp_path: Path, columns: tuple[str, ...]
) -> None:
    world = in_three_files(table_path(tmp_path))
    before, version = world.rows(), world.version
    with at_phase("staged", lambda: delta_spark.sql(f"OPTIMIZE delta.`{world.path}`")):
        assert world.optimize(*columns).committed is None
    assert (world.version, world.rows()) == (version + 1, before)
    assert_same_for_delta_spark(delta_spark, world)
    world.assert_clean()


def test_delta_spark_reads_what_we_moved_and_moves_it_on(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = in_three_files(table_path(tmp_path))
    for move in (lambda: world.optimize("id", "x"), lambda: world.delete("id = 3"), world.reorg):
        move()
        assert_same_for_delta_spark(delta_spark, world)
    world.append(*ROWS[3:8])
    delta_spark.sql(f"OPTIMIZE delta.`{world.path}`")
    assert_same_for_delta_spark(delta_spark, world)
    world.optimize("id")
    assert_same_for_delta_spark(delta_spark, world)
    world.assert_clean()
