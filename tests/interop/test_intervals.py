"""Tables with intervals, by turns: what real delta-spark writes of them we read and change, and the other way round.

delta-spark refuses these types unless it is told not to check types, and then stores them as the protocol's proposal
says (RFC #7077).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import anabranch
from anabranch._log.log import forget
from anabranch.commands.maintenance.check import check
from anabranch.commands.opening import open_log
from tests.support.delta_spark import DeltaSpark, DeltaSparkError
from tests.support.readers import deltalake_rows, duckdb_rows
from tests.support.worlds import table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]

SPELLED = "CAST(ym AS STRING) AS ym, CAST(ds AS STRING) AS ds, CAST(inside AS STRING) AS inside"
ROWS = """SELECT id, make_ym_interval(0, CAST(id AS INT) - 1) AS ym, make_dt_interval(0, 0, 0, id - 1.5) AS ds,
    array(INTERVAL '5' MONTH) AS inside FROM range(3)"""


@pytest.fixture(scope="module", autouse=True)
def unchecked(delta_spark: DeltaSpark) -> Iterator[None]:
    delta_spark.sql("SET spark.databricks.delta.schema.typeCheck.enabled = false")
    yield
    delta_spark.sql("RESET spark.databricks.delta.schema.typeCheck.enabled")


def months_seen(delta_spark: DeltaSpark, path: str) -> list[int]:
    """The months that both see, in order, after both have read the same."""
    forget(open_log(path).table)
    theirs = delta_spark.query(f"SELECT id, {SPELLED} FROM delta.`{path}` ORDER BY id").to_pylist()
    rows = sorted(anabranch.table(path).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [each["id"] for each in theirs] == [row["id"] for row in rows]
    for each, row in zip(theirs, rows, strict=True):
        sign, months = "-" if row["ym"] < 0 else "", abs(row["ym"])
        assert each["ym"] == f"INTERVAL '{sign}{months // 12}-{months % 12}' YEAR TO MONTH"
        seconds = float(each["ds"].split(":")[-1].partition("'")[0]) * (-1 if "'-" in each["ds"] else 1)
        assert row["ds"] == dt.timedelta(seconds=seconds)
        assert each["inside"] in ("[INTERVAL '0-5' YEAR TO MONTH]", "[INTERVAL '5' MONTH]"), "it keeps narrow spellings"
    assert check(open_log(path).snapshot(), deep=True).is_clean
    return [row["ym"] for row in rows]


@pytest.mark.parametrize("partition_by", ["", "PARTITIONED BY (ym)"], ids=["whole", "partitioned"])
def test_we_read_and_change_intervals_of_theirs(delta_spark: DeltaSpark, tmp_path: Path, partition_by: str) -> None:
    path = table_path(tmp_path)
    delta_spark.sql(f"CREATE TABLE delta.`{path}` USING delta {partition_by} AS {ROWS}")
    assert months_seen(delta_spark, path) == [-1, 0, 1]
    stats = [json.loads(text) for text in open_log(path).snapshot().files["stats"].to_pylist()]
    assert all(set(each["minValues"]) == {"id"} for each in stats), "it has no bounds of intervals either"
    anabranch.append(path, [{"id": 3, "ym": 14, "ds": dt.timedelta(seconds=-1.5), "inside": [5]}])
    table = anabranch.table(path)
    table.update("id = 1", {"id": "10"})
    table.delete("ds = ds AND id = 0")
    assert months_seen(delta_spark, path) == [1, 14, 0]


@pytest.mark.parametrize("partition_by", ["", "PARTITIONED BY (ym)"], ids=["whole", "partitioned"])
def test_delta_spark_reads_and_changes_ours(
    delta_spark: DeltaSpark, spark: object, tmp_path: Path, partition_by: str
) -> None:
    path = table_path(tmp_path)
    anabranch.sql(spark, f"CREATE TABLE delta.`{path}` USING delta {partition_by} AS {ROWS}")
    assert months_seen(delta_spark, path) == [-1, 0, 1]
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"INSERT INTO {table} SELECT 3L, INTERVAL '1-2' YEAR TO MONTH, INTERVAL '0 00:00:02' DAY TO SECOND,"
        " array(INTERVAL '0-5' YEAR TO MONTH)",
        f"UPDATE {table} SET ym = ym * 2 WHERE ym = INTERVAL '0-1' YEAR TO MONTH",
        f"DELETE FROM {table} WHERE ds < INTERVAL '-1' SECOND",
        f"OPTIMIZE {table}",
    )
    assert months_seen(delta_spark, path) == [0, 2, 14]


def test_delta_spark_refuses_intervals_where_it_checks_types(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    delta_spark.sql("SET spark.databricks.delta.schema.typeCheck.enabled = true")
    try:
        with pytest.raises(DeltaSparkError) as refused:
            delta_spark.sql(f"CREATE TABLE delta.`{table_path(tmp_path)}` USING delta AS {ROWS}")
    finally:
        delta_spark.sql("SET spark.databricks.delta.schema.typeCheck.enabled = false")
    assert refused.value.condition == "DELTA_UNSUPPORTED_DATA_TYPES"


def test_delta_rs_reads_numbers_and_duckdb_refuses_the_type(tmp_path: Path) -> None:
    path = table_path(tmp_path)
    rows = [{"id": 1, "ds": dt.timedelta(seconds=1)}]
    anabranch.append(path, rows, properties={"delta.enableDeletionVectors": "false"})
    assert deltalake_rows(path) == [{"id": 1, "ds": 1_000_000}]
    with pytest.raises(Exception, match="Unsupported Delta table type"):
        duckdb_rows(path)
