"""Protocols beside real delta-spark: upgrades and drops give the same one, and each goes on with the other's table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anabranch import DeltaTable
from anabranch._log.log import forget
from anabranch._protocol.features.table_features import describe
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.maintenance.upgrade_uniform import UpgradeUniform
from anabranch.errors import FeatureNotDropped
from tests.support.delta_spark import DeltaSpark, DeltaSparkError
from tests.support.readers import same_rows
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]

ROWS = [{"id": i} for i in range(8)]
Step = tuple[str, str]
CASES: dict[str, tuple[dict[str, str], tuple[Step, ...]]] = {
    "nothing": ({}, ()),
    "writer 4": ({"minReaderVersion": "1", "minWriterVersion": "4"}, ()),
    "writer 7 stands for nothing": ({"minReaderVersion": "1", "minWriterVersion": "7"}, ()),
    "writer 4 and vectors": ({"minWriterVersion": "4", "enableDeletionVectors": "true"}, ()),
    "a feature of an old version": ({"feature.checkConstraints": "supported"}, ()),
    "a feature by name": ({"feature.domainMetadata": "supported"}, ()),
    "a constraint": ({}, (("constraint", "id < 100"),)),
    "vectors later": ({"minWriterVersion": "4"}, (("set", "enableDeletionVectors=true"),)),
    "a feature later": ({}, (("set", "feature.vacuumProtocolCheck=supported"),)),
    "versions later": ({}, (("set", "minWriterVersion=4"),)),
    "versions do not go down": ({"minWriterVersion": "4"}, (("set", "minWriterVersion=2"),)),
    "drop from an old version": ({"minWriterVersion": "4"}, (("drop", "checkConstraints"),)),
    "drop vectors": ({"enableDeletionVectors": "true"}, (("drop", "deletionVectors"),)),
    "drop without a trace": (
        {"feature.vacuumProtocolCheck": "supported"},
        (("drop", "vacuumProtocolCheck TRUNCATE HISTORY"),),
    ),
    "drop in-commit timestamps": ({"enableInCommitTimestamps": "true"}, (("drop", "inCommitTimestamp"),)),
    "drop row tracking": ({"enableRowTracking": "true"}, (("drop", "rowTracking"),)),
    "drop V2 checkpoints": ({"checkpointPolicy": "v2"}, (("drop", "v2Checkpoint"),)),
    "partition columns in files": ({"enableMaterializePartitionColumnsFeature": "true"}, ()),
    "partition columns in files later": ({}, (("set", "enableMaterializePartitionColumnsFeature=true"),)),
    "drop partition columns in files": (
        {"enableMaterializePartitionColumnsFeature": "true"},
        (("drop", "materializePartitionColumns"),),
    ),
    "drop column mapping": ({"columnMapping.mode": "name"}, (("drop", "columnMapping"),)),
    "drop type widening": ({"enableTypeWidening": "true"}, (("drop", "typeWidening"),)),
    "Iceberg compatibility with row tracking": (
        {"enableIcebergCompatV3": "true", "enableRowTracking": "true", "columnMapping.mode": "name"},
        (),
    ),
    "drop Iceberg compatibility": (
        {"enableIcebergCompatV2": "true", "columnMapping.mode": "name"},
        (("drop", "icebergCompatV2"), ("drop", "columnMapping")),
    ),
    "drop in use": ({"enableDeletionVectors": "true"}, (("drop", "deletionVectors TRUNCATE HISTORY"),)),
    "drop with a constraint": ({}, (("constraint", "id < 100"), ("drop", "checkConstraints"))),
    "drop what is not there": ({}, (("drop", "deletionVectors"),)),
    "drop what nobody can": ({}, (("drop", "appendOnly"),)),
}


def ours(world: World, kind: str, what: str) -> str:
    """One step on our side; the condition of its refusal, if it is refused."""
    try:
        if kind == "set":
            key, _, value = what.partition("=")
            SetProperties(world.path, {f"delta.{key}": value}).run()
        elif kind == "constraint":
            AddConstraint(world.path, "c", world.condition(what)).run(world.engine)
        else:
            feature, _, history = what.partition(" ")
            DropFeature(world.path, feature, bool(history)).run(world.engine)
    except FeatureNotDropped as error:
        return error.getCondition()
    return ""


def theirs(delta_spark: DeltaSpark, table: str, kind: str, what: str) -> str:
    """The same step on their side."""
    key, _, value = what.partition("=")
    text = {
        "set": f"SET TBLPROPERTIES ('delta.{key}' = '{value}')",
        "constraint": f"ADD CONSTRAINT c CHECK ({what})",
        "drop": f"DROP FEATURE {what}",
    }[kind]
    try:
        delta_spark.sql(f"ALTER TABLE {table} {text}")
    except DeltaSparkError as error:
        return error.condition
    return ""


def protocol_of(path: str) -> Any:
    forget()
    return describe(World(path).log.snapshot().protocol)


@pytest.mark.parametrize("case", CASES)
def test_our_protocols_are_those_of_delta_spark(delta_spark: DeltaSpark, tmp_path: Path, case: str) -> None:
    properties, steps = CASES[case]
    mine, other = World(table_path(tmp_path)), table_path(tmp_path)
    named = {"delta.enableDeletionVectors": "false", **{f"delta.{key}": text for key, text in properties.items()}}
    mine.create(ROWS, **{key.replace(".", "_", 1): text for key, text in named.items()})
    listed = ", ".join(f"'{key}' = '{text}'" for key, text in named.items())
    delta_spark.sql(f"CREATE TABLE delta.`{other}` (id BIGINT) USING delta TBLPROPERTIES ({listed})")
    for kind, what in steps:
        assert ours(mine, kind, what) == theirs(delta_spark, f"delta.`{other}`", kind, what)
    assert protocol_of(mine.path) == protocol_of(other)
    assert same_rows(delta_spark.rows(mine.path), ROWS)


def test_each_goes_on_with_a_table_from_which_the_other_dropped_vectors(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    for dropped_by_us in (True, False):
        world = World(table_path(tmp_path)).create(ROWS)
        world.delete("id IN (2, 5)")
        old = world.version
        if dropped_by_us:
            DropFeature(world.path, "deletionVectors").run(world.engine)
        else:
            delta_spark.sql(f"ALTER TABLE delta.`{world.path}` DROP FEATURE deletionVectors")
        forget()
        assert same_rows(delta_spark.rows(world.path), world.rows())
        world.update("id = 3", id=30)
        delta_spark.sql(f"DELETE FROM delta.`{world.path}` WHERE id = 4")
        forget()
        assert {row["id"] for row in world.rows()} == {0, 1, 30, 6, 7}
        assert same_rows(delta_spark.rows(world.path), world.rows())
        assert same_rows(delta_spark.rows(world.path, old), world.rows(old))
        world.assert_clean()
        AddFeatureSupport(world.path, "deletionVectors").run()
        assert same_rows(delta_spark.rows(world.path), world.rows())


def test_delta_spark_reads_what_spark_wrote_anew_without_mapping_and_widening(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = table_path(tmp_path)
    named = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true", "delta.enableRowTracking": "true"}
    small = pa.schema([("id", pa.int32()), ("s", pa.struct([("a", pa.int32())])), ("p", pa.int32())])
    rows = [{"id": i, "s": {"a": i}, "p": i % 2} for i in range(8)]
    Append(path, pa.Table.from_pylist(rows, schema=small), ("p",), named).run()
    for column, name in ((("id",), "key"), (("s", "a"), "b"), (("p",), "part")):
        RenameColumn(path, column, name).run()
    table = DeltaTable.forPath(spark, path)
    ChangeColumn(path, ("key",), type="long").run()
    table.delete("key = 3")
    before = sorted((row.key, row.s.b, row.part) for row in table.toDF().collect())
    for feature in ("typeWidening", "columnMapping", "rowTracking"):
        table.dropFeatureSupport(feature)
        forget()
        assert sorted((row.key, row.s.b, row.part) for row in table.toDF().collect()) == before
        theirs = delta_spark.rows(path)
        assert sorted((row["key"], row["s"]["b"], row["part"]) for row in theirs) == before
    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (99, named_struct('b', 9), 1)")
    forget()
    assert len(table.toDF().collect()) == len(before) + 1


def test_delta_spark_goes_on_with_a_table_that_was_made_compatible_with_iceberg(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    rows = [{"id": i, "p": i % 2, "a": [i]} for i in range(6)]
    world = World(table_path(tmp_path)).create(rows, partition_by=("p",))
    world.delete("id = 3")
    UpgradeUniform(world.path).run(world.engine)
    assert same_rows(delta_spark.rows(world.path), world.rows())
    delta_spark.sql(f"INSERT INTO delta.`{world.path}` VALUES (9, 1, array(9))")
    forget()
    world.update("id = 0", p=1)
    assert same_rows(delta_spark.rows(world.path), world.rows())
    assert len(world.rows()) == 6
    world.assert_clean()
