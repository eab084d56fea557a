"""Tables with geometries, by turns: what delta-spark writes of them we read and change, and the other way round."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import anabranch
from anabranch._log.log import forget
from anabranch.commands.opening import open_log
from tests.support.delta_spark import DeltaSpark
from tests.support.worlds import table_path

pytestmark = [
    pytest.mark.interop,
    pytest.mark.spark,
    pytest.mark.skipif(not hasattr(T, "GeometryType"), reason="PySpark has these types from 4.1 on"),
]

ONE, TWO = "0101000000000000000000F03F0000000000000040", "0101000000000000000000F03F000000000000F03F"
ROWS = f"""SELECT id, st_geomfromwkb(X'{ONE}', 4326) AS g, st_geogfromwkb(X'{TWO}') AS h,
    array(st_geomfromwkb(X'{ONE}')) AS a FROM range(4)"""
SHOWN = """SELECT id, hex(st_asbinary(g)) AS g, st_srid(g) AS s, hex(st_asbinary(h)) AS h, hex(st_asbinary(a[0])) AS a
    FROM delta.`{}` ORDER BY id"""
VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
_SETTINGS = ("spark.sql.geospatial.enabled", "spark.databricks.delta.geo.preview.enabled")


@pytest.fixture(scope="module", autouse=True)
def enabled(delta_spark: DeltaSpark) -> Iterator[None]:
    """delta-spark refuses these types, and Spark 4.2 their functions, by default."""
    for name in _SETTINGS:
        delta_spark.sql(f"SET {name} = true")
    yield
    for name in _SETTINGS:
        delta_spark.sql(f"RESET {name}")


def seen(delta_spark: DeltaSpark, spark: Any, path: str) -> dict[int, str | None]:
    """The geometries that both see, after both have read the same."""
    forget(open_log(path).table)
    theirs = delta_spark.query(SHOWN.format(path)).to_pylist()
    ours = [row.asDict() for row in anabranch.sql(spark, SHOWN.format(path)).collect()]
    assert ours == theirs
    assert anabranch.check(path, deep=True).is_clean
    return {row["id"]: row["g"] for row in ours}


def test_we_read_and_change_geometries_of_theirs(delta_spark: DeltaSpark, spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    table = f"delta.`{path}`"
    delta_spark.sql(f"CREATE TABLE {table} USING delta AS {ROWS}")
    assert open_log(path).snapshot().schema.field("g").type == "geometry(OGC:CRS84)"
    assert seen(delta_spark, spark, path) == dict.fromkeys(range(4), ONE)
    anabranch.sql(spark, f"UPDATE {table} SET g = st_geomfromwkb(X'{TWO}', 4326) WHERE id = 1")
    anabranch.sql(spark, f"DELETE FROM {table} WHERE id = 2")
    anabranch.sql(spark, f"INSERT INTO {table} (id, h) SELECT 9, st_geogfromwkb(X'{ONE}')")
    anabranch.sql(spark, f"OPTIMIZE {table}")
    assert seen(delta_spark, spark, path) == {0: ONE, 1: TWO, 3: ONE, 9: None}


def test_delta_spark_reads_and_changes_ours(delta_spark: DeltaSpark, spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    table = f"delta.`{path}`"
    anabranch.sql(spark, f"CREATE TABLE {table} USING delta AS {ROWS}")
    assert seen(delta_spark, spark, path) == dict.fromkeys(range(4), ONE)
    delta_spark.sql(
        f"UPDATE {table} SET g = st_geomfromwkb(X'{TWO}', 4326) WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 2",
        f"INSERT INTO {table} (id, h) SELECT 9, st_geogfromwkb(X'{ONE}')",
        f"OPTIMIZE {table}",
    )
    assert seen(delta_spark, spark, path) == {0: ONE, 1: TWO, 3: ONE, 9: None}


def test_both_write_the_same_schema_protocol_and_types_in_files(
    delta_spark: DeltaSpark, spark: Any, tmp_path: Path
) -> None:
    theirs, ours = table_path(tmp_path / "theirs"), table_path(tmp_path / "ours")
    delta_spark.sql(f"CREATE TABLE delta.`{theirs}` USING delta {VECTORS} AS {ROWS}")
    anabranch.sql(spark, f"CREATE TABLE delta.`{ours}` USING delta {VECTORS} AS {ROWS}")
    one, other = (open_log(path).snapshot() for path in (theirs, ours))
    assert json.loads(one.metadata.schema_string) == json.loads(other.metadata.schema_string)
    assert one.protocol == other.protocol
    assert types_in(theirs) == types_in(ours)


def types_in(path: str) -> set[tuple[str, str]]:
    return {
        (column.path, str(column.logical_type))
        for file in Path(path).rglob("*.parquet")
        for column in pq.ParquetFile(file).schema
    }
