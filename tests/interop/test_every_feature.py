"""Tables that we write with each feature of the protocol, and with all at once, as others read them.

Others are real delta-spark, delta-rs and DuckDB. Where one of them does not know a feature it must refuse, and
`CANNOT` says which; what it reads must be our rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.layout.clustering import paths_of
from anabranch._protocol.schema.types import Field
from anabranch.commands.clustering import ClusterBy
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from tests.support.delta_spark import DeltaSpark
from tests.support.readers import Row, deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]


@dataclass(frozen=True)
class Case:
    """Properties and layout of a table, and what is done to it besides the changes that all get."""

    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    also: tuple[Callable[[str], object], ...] = ()


def mapped(path: str) -> None:
    """Rename, drop and add columns; the new one has the name of one that is gone."""
    RenameColumn(path, ("y",), "y z,=").run()
    DropColumns(path, [("spare",)]).run()
    AddColumns(path, [NewColumn(Field("spare", "string"))]).run()


def widened(path: str) -> None:
    ChangeColumn(path, ("small",), type="long").run()


MAPPING = {"delta.columnMapping.mode": "name"}
ROWS_TRACKED = {"delta.enableRowTracking": "true"}
IN_COMMIT = {"delta.enableInCommitTimestamps": "true"}
V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"}
WIDENING = {"delta.enableTypeWidening": "true"}
COORDINATED = {"delta.feature.coordinatedCommits-preview": "supported"}

CASES = {
    "no feature": Case({"delta.enableDeletionVectors": "false"}),
    "deletionVectors": Case(),
    "columnMapping by name": Case(MAPPING, also=(mapped,)),
    "columnMapping by id": Case({"delta.columnMapping.mode": "id"}, also=(mapped,)),
    "columnMapping, partitioned": Case(MAPPING, partition_by=("p",), also=(mapped,)),
    "rowTracking": Case(ROWS_TRACKED),
    "rowTracking, files rewritten": Case({**ROWS_TRACKED, "delta.enableDeletionVectors": "false"}),
    "inCommitTimestamp": Case(IN_COMMIT),
    "v2Checkpoint": Case(V2),
    "typeWidening": Case(WIDENING, also=(widened,)),
    "clustering": Case(cluster_by=("id",), also=(lambda path: ClusterBy(path, paths_of(["p", "id"])).run(),)),
    "checkConstraints": Case({"delta.constraints.low": "id < 1000"}),
    "partition columns in files": Case(
        {"delta.feature.materializePartitionColumns": "supported", "delta.enableChangeDataFeed": "true"},
        partition_by=("p",),
    ),
    "partition columns in files, mapped and tracked": Case(
        {**MAPPING, **ROWS_TRACKED, "delta.enableMaterializePartitionColumnsFeature": "true"},
        partition_by=("p",),
        also=(mapped,),
    ),
    "icebergCompatV3": Case({"delta.enableIcebergCompatV3": "true"}, partition_by=("p",), also=(mapped,)),
    "coordinatedCommits, no coordinator": Case(COORDINATED),
    "zstd": Case({"delta.parquet.compression.codec": "zstd"}),
    "all at once": Case(
        {**MAPPING, **ROWS_TRACKED, **IN_COMMIT, **V2, **WIDENING, "delta.constraints.low": "id < 1000"},
        cluster_by=("id",),
        also=(mapped, widened),
    ),
    "all but wider types": Case(
        {**MAPPING, **ROWS_TRACKED, **IN_COMMIT, **V2, "delta.constraints.low": "id < 1000"},
        partition_by=("p",),
        also=(mapped,),
    ),
    "all at once, partitioned, by id": Case(
        {**ROWS_TRACKED, **IN_COMMIT, **V2, **WIDENING, "delta.columnMapping.mode": "id"},
        partition_by=("p",),
        also=(mapped, widened),
    ),
}

CANNOT: Mapping[str, frozenset[str]] = {
    "delta-rs": frozenset(
        name for name, case in CASES.items() if (WIDENING.items() | COORDINATED.items()) & case.properties.items()
    ),
    "DuckDB": frozenset(),
}
"""The cases that a reader refuses, by the names of `CASES`: delta-rs knows neither wider types nor
``vacuumProtocolCheck``, which coordinated commits need.
"""


def made(spark: SparkSession, path: str, case: Case) -> None:
    """A table to which every verb was done, with Spark's writer and with the small one.

    The partition column stands first, since DuckDB takes those of mapped tables for NULL elsewhere.
    """
    columns = ("id % 2 AS p", "id", "cast(id AS int) AS small", "id * 10 AS y", "cast(null AS string) AS spare")
    rows = anabranch.install(spark).range(8).selectExpr(*columns)
    writer = rows.coalesce(1).write.format("delta").options(**case.properties)
    writer = writer.partitionBy(*case.partition_by) if case.partition_by else writer
    writer = writer.clusterBy(*case.cluster_by) if case.cluster_by else writer
    writer.save(path)
    for step in case.also:
        step(path)
    table = DeltaTable.forPath(spark, path)
    y = next(name for name in table.toDF().columns if name.startswith("y"))
    anabranch.append(path, [{"id": 20, "p": 1, "small": 3, y: 5, "spare": "small"}])
    table.update("id = 1", {f"`{y}`": "-1"})
    table.delete("id IN (2, 20)")
    source = spark.createDataFrame([(3, -3), (30, -30)], "key long, value long").alias("s")
    values = {"id": "s.key", "p": "s.key % 2", "small": "cast(s.key AS int)", f"`{y}`": "s.value"}
    merge = table.alias("t").merge(source, "t.id = s.key").whenMatchedUpdate(set={f"`{y}`": "s.value"})
    merge.whenNotMatchedInsert(values=values).execute()
    rows.where("id = 7").toDF("p", "id", "small", y, "spare").write.format("delta").mode("append").save(path)


def ours(spark: SparkSession, path: str) -> list[Row]:
    return [row.asDict(recursive=True) for row in anabranch.read(path, spark=spark).collect()]


@pytest.mark.parametrize("name", CASES)
def test_others_read_what_we_write_with_every_feature(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str
) -> None:
    path = table_path(tmp_path)
    made(spark, path, CASES[name])
    found = ours(spark, path)
    assert sorted(row["id"] for row in found) == [0, 1, 3, 4, 5, 6, 7, 7, 30]
    assert same_rows(delta_spark.rows(path), found)
    for reader, read in (("delta-rs", deltalake_rows), ("DuckDB", duckdb_rows)):
        if name not in CANNOT[reader]:
            assert same_rows(read(path), found), reader
            continue
        with pytest.raises(Exception, match=r"(?i)feature|support"):
            read(path)
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)


@pytest.mark.parametrize("name", ["all at once", "all at once, partitioned, by id"])
def test_delta_spark_and_we_write_to_one_table_by_turns(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, name: str
) -> None:
    path = table_path(tmp_path)
    made(spark, path, CASES[name])
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"UPDATE {table} SET `y z,=` = 77 WHERE id = 4",
        f"DELETE FROM {table} WHERE id = 0",
        f"INSERT INTO {table} (id, p, small) VALUES (40, 0, 4)",
    )
    DeltaTable.forPath(spark, path).update("id IN (4, 40)", {"p": "1"})
    delta_spark.sql(f"OPTIMIZE {table}")
    DeltaTable.forPath(spark, path).delete("id = 5")
    found = ours(spark, path)
    assert sorted(row["id"] for row in found) == [1, 3, 4, 6, 7, 7, 30, 40]
    assert same_rows(delta_spark.rows(path), found)
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)
