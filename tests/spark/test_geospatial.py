"""Geometries and geographies: written as Parquet's own types, read back, and refused where nobody can compare them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import anabranch
from anabranch._protocol.schema.types import Field
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from anabranch.commands.opening import open_log
from anabranch.errors import (
    CheckConstraintViolated,
    FeatureNotDropped,
    InvalidCondition,
    InvalidOption,
    InvalidProperty,
    NeedsSpark,
    SchemaMismatch,
    UnsupportedType,
)
from tests.support.worlds import table_path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not hasattr(T, "GeometryType"), reason="PySpark has these types from 4.1 on"),
]

ONE, TWO = "0101000000000000000000F03F0000000000000040", "0101000000000000000000F03F000000000000F03F"
"""Points (1, 2) and (1, 1) as WKB."""
ROWS = f"""SELECT id, st_geomfromwkb(X'{ONE}', 4326) AS g, st_geogfromwkb(X'{TWO}') AS h,
    array(st_geomfromwkb(X'{ONE}', 3857)) AS a, named_struct('x', st_geomfromwkb(X'{TWO}'), 'n', 1) AS s
    FROM range(6)"""
COLUMNS = "id BIGINT, g GEOMETRY(4326), h GEOGRAPHY(4326), a ARRAY<GEOMETRY(3857)>, s STRUCT<x: GEOMETRY(0), n: INT>"


@pytest.fixture(autouse=True)
def installed(spark: Any) -> None:
    anabranch.install(spark)


@pytest.fixture(scope="module")
def written(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of which each test has a copy."""
    path = table_path(tmp_path_factory.mktemp("geospatial"))
    anabranch.install(spark).sql(
        f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta TBLPROPERTIES ("
        "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` {ROWS}")
    return path


@pytest.fixture
def path(written: str, tmp_path: Path) -> str:
    return shutil.copytree(written, table_path(tmp_path))


def points(spark: Any, path: str) -> dict[int, str | None]:
    rows = spark.sql(f"SELECT id, hex(st_asbinary(g)) AS g FROM delta.`{path}`").collect()
    return {row["id"]: row["g"] for row in rows}


def test_they_come_back_at_any_depth_and_the_protocol_lists_the_feature(spark: Any, path: str) -> None:
    snapshot = open_log(path).snapshot()
    assert snapshot.protocol.reader_features == {"deletionVectors", "geospatial"}
    assert snapshot.schema.field("h").type == "geography(OGC:CRS84, SPHERICAL)"
    rows = spark.read.format("delta").load(path)
    assert dict(rows.dtypes)["a"] == "array<geometry(3857)>"
    shown = rows.selectExpr("st_srid(g)", "hex(st_asbinary(h))", "st_srid(a[0])", "hex(st_asbinary(s.x))").distinct()
    assert [tuple(row) for row in shown.collect()] == [(4326, TWO, 3857, TWO)]


def test_files_hold_parquets_own_types_and_statistics_count_nulls_only(path: str) -> None:
    for file in Path(path).glob("*.parquet"):
        types = {column.path: str(column.logical_type) for column in pq.ParquetFile(file).schema}
        assert types["g"].startswith("Geometry")
        assert types["h"].startswith("Geography")
    for text in open_log(path).snapshot().files["stats"].to_pylist():
        stats = json.loads(text)
        assert set(stats["minValues"]) == {"id", "s"}
        assert stats["minValues"]["s"] == {"n": 1}
        assert stats["nullCount"]["g"] == 0


def test_rows_with_them_are_changed_deleted_merged_and_compacted(spark: Any, path: str) -> None:
    table = f"delta.`{path}`"
    spark.sql(f"UPDATE {table} SET g = st_geomfromwkb(X'{TWO}', 4326) WHERE id = 1")
    spark.sql(f"UPDATE {table} SET id = id + 100, s.x = NULL WHERE id = 2")
    spark.sql(f"DELETE FROM {table} WHERE st_srid(g) = 4326 AND id = 3")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id, st_geomfromwkb(X'{TWO}', 4326) AS g FROM VALUES 4L, 9L AS v(id)) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT (id, g) VALUES (s.id, s.g)"
    )
    spark.sql(f"OPTIMIZE {table}")
    assert points(spark, path) == {0: ONE, 1: TWO, 102: ONE, 4: TWO, 5: ONE, 9: TWO}
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
    assert feed.where("_change_type = 'update_postimage'").selectExpr("count(g)").collect() == [(3,)]
    assert anabranch.check(path, deep=True).is_clean


def test_a_column_is_added_and_the_feature_with_it(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    anabranch.append(path, [{"id": 0}])
    AddColumns(path, [NewColumn(Field("g", "geometry(OGC:CRS84)"))]).run()
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (5, st_geomfromwkb(X'{ONE}', 4326))")
    assert points(spark, path) == {0: None, 5: ONE}
    assert "geospatial" in (open_log(path).snapshot().protocol.writer_features or ())


@pytest.mark.parametrize("value", [f"st_geomfromwkb(X'{ONE}', 3857)", "'POINT(1 2)'", f"X'{ONE}'"])
def test_a_value_of_another_type_is_refused(spark: Any, path: str, value: str) -> None:
    with pytest.raises(SchemaMismatch):
        spark.sql(f"INSERT INTO delta.`{path}` (id, g) SELECT 7, {value}")


def test_they_are_compared_with_nothing(spark: Any, path: str) -> None:
    table = f"delta.`{path}`"
    with pytest.raises(InvalidCondition):
        spark.sql(f"DELETE FROM {table} WHERE g = st_geomfromwkb(X'{ONE}', 4326)")
    for refused in (f"OPTIMIZE {table} ZORDER BY (g)", f"ALTER TABLE {table} CLUSTER BY (g)"):
        with pytest.raises(InvalidOption):
            spark.sql(refused)
    with pytest.raises(InvalidProperty):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'g')")


@pytest.mark.parametrize(
    ("columns", "clause", "error"),
    [
        ("id INT, g GEOMETRY(4326)", "PARTITIONED BY (g)", InvalidOption),
        ("w BINARY, g GEOMETRY(4326) GENERATED ALWAYS AS (st_geomfromwkb(w, 4326))", "", InvalidOption),
        ("g GEOMETRY(4326)", "TBLPROPERTIES ('delta.enableIcebergCompatV3' = 'true')", InvalidProperty),
        ("g GEOMETRY(ANY)", "", UnsupportedType),
        ("g GEOMETRY", "", UnsupportedType),
        ("g GEOMETRY(27700)", "", UnsupportedType),
        ("g GEOGRAPHY(3857)", "", UnsupportedType),
    ],
)
def test_what_no_table_can_have_is_refused(
    spark: Any, tmp_path: Path, columns: str, clause: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        spark.sql(f"CREATE TABLE delta.`{table_path(tmp_path)}` ({columns}) USING delta {clause}")


def test_rows_whose_values_have_reference_systems_of_their_own_are_refused(spark: Any, tmp_path: Path) -> None:
    rows = spark.sql(f"SELECT CAST(st_geomfromwkb(X'{ONE}', 4326) AS GEOMETRY(ANY)) AS g")
    with pytest.raises(UnsupportedType, match=r"geometry\(any\)"):
        rows.write.format("delta").save(table_path(tmp_path))


def test_constraints_over_them_hold_and_a_violation_shows_the_value(spark: Any, path: str) -> None:
    table = f"delta.`{path}`"
    spark.sql(f"UPDATE {table} SET s.x = NULL")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT inside CHECK (s.x IS NULL AND hex(st_asbinary(g)) <> '{TWO}')")
    spark.sql(f"INSERT INTO {table} (id, g) SELECT 7, st_geomfromwkb(X'{ONE}', 4326)")
    with pytest.raises(CheckConstraintViolated, match=TWO):
        spark.sql(f"INSERT INTO {table} (id, g) SELECT 8, st_geomfromwkb(X'{TWO}', 4326)")


def test_the_feature_is_dropped_once_its_columns_are_gone(spark: Any, path: str) -> None:
    table = f"delta.`{path}`"
    with pytest.raises(FeatureNotDropped, match="g, h, a, s") as refused:
        spark.sql(f"ALTER TABLE {table} DROP FEATURE geospatial")
    assert refused.value.getCondition() == "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {table} DROP COLUMNS (g, h, a, s)")
    spark.sql(f"ALTER TABLE {table} DROP FEATURE geospatial")
    assert "geospatial" not in (open_log(path).snapshot().protocol.reader_features or ())


def test_without_spark_other_columns_are_read_and_what_needs_its_values_says_so(path: str) -> None:
    table = anabranch.table(path)
    assert table.to_arrow(columns=["id"]).num_rows == 6
    assert table.delete("id = 0").rows == 1
    for refused in (table.to_arrow, lambda: table.update("id = 1", {"id": "7"})):
        with pytest.raises(NeedsSpark):
            refused()
    with pytest.raises(UnsupportedType, match="which a row outside Spark cannot hold"):
        table.append(pa.table({"id": [1]}))


def test_a_stream_of_them_is_refused_before_it_begins(spark: Any, path: str) -> None:
    with pytest.raises(UnsupportedType, match="which a row outside Spark cannot hold"):
        spark.readStream.format("delta").load(path)
