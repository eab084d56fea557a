"""Tables partitioned by each type, written by Spark, read by us, delta-rs and DuckDB; and files that lie elsewhere."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyspark.sql import types as T

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.schema.types import Field, Struct
from anabranch.errors import InvalidPartitionValue
from tests.support.raw_logs import WITH_VECTORS, listing, metadata, put_commit, put_rows
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import table_path

pytestmark = [pytest.mark.spark, pytest.mark.interop]

UTC = dt.UTC
VALUES: dict[str, list[Any]] = {
    "tinyint": [-128, 0, 127],
    "smallint": [-32768, 32767],
    "int": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "float": [1.5, -0.25, 3.4028234663852886e38, math.inf],
    "double": [0.1, 1e-300, -1.7976931348623157e308, -math.inf],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-99999999.99"), Decimal("0.00")],
    "decimal(38,10)": [Decimal("1234567890123456789012345678.0123456789")],
    "string": [
        "a b",
        "a%20b",
        "x=y",
        "a:b",
        "#?&+",
        "é☃",
        "a/b",
        "'\"",
        "{[*]}",
        "\\",
        "null",
        " lead",
        "trail ",
        "\t\n",
    ],
    "binary": [b"text", "é".encode()],
    "boolean": [True, False],
    "date": [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(9999, 12, 31)],
    "timestamp": [dt.datetime(1582, 10, 4, 1, 2, 3, 4, UTC), dt.datetime(2021, 3, 28, 1, 30, tzinfo=UTC)],
    "timestamp_ntz": [
        dt.datetime(2020, 1, 1, 0, 0, 0, 500_000),
        dt.datetime(1500, 1, 1, 0, 0, 0, 1),
        dt.datetime(2021, 3, 28, 2, 30),
    ],
}


@pytest.fixture(autouse=True)
def installed(spark: Any) -> None:
    anabranch.install(spark)


def plain(value: Any) -> Any:
    """Python's instants come from Spark without a zone, in this machine's."""
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def ours(spark: Any, path: str) -> list[dict[str, Any]]:
    rows = spark.read.format("delta").load(path)
    is_instant = rows.schema["p"].dataType == T.TimestampType()
    found = [{name: plain(value) for name, value in row.asDict().items()} for row in rows.collect()]
    return [{**row, "p": row["p"].astimezone(UTC)} if is_instant and row["p"] else row for row in found]


def texts_of_partitions(path: str) -> list[str | None]:
    """The partition values of all files that commits added."""
    commits = sorted((Path(path) / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for each in commits for line in each.read_text().splitlines()]
    return [each["add"]["partitionValues"]["p"] for each in actions if "add" in each]


@pytest.mark.parametrize("name", VALUES)
def test_a_table_partitioned_by_a_type_is_read_and_changed_by_its_values(spark: Any, tmp_path: Path, name: str) -> None:
    path, values = table_path(tmp_path), [*VALUES[name], None]
    wanted = [{"id": i, "p": value} for i, value in enumerate(values)]
    spark.createDataFrame([(row["id"], row["p"]) for row in wanted], f"id int, p {name}").write.format(
        "delta"
    ).partitionBy("p").save(path)
    assert same_rows(ours(spark, path), wanted)
    assert same_rows(deltalake_rows(path), wanted)
    assert same_rows(duckdb_rows(path), wanted)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 0", {"id": "100"})
    assert len(set(texts_of_partitions(path))) == len(values), "one value is one partition, whoever writes it"
    table.delete("p IS NULL")
    left = ours(spark, path)
    assert {row["id"] for row in left} == {100, *range(1, len(values) - 1)}
    assert same_rows(deltalake_rows(path), left)
    assert table.check().is_clean


@pytest.mark.parametrize("name", ["float", "double"])
def test_nan_names_a_partition(spark: Any, tmp_path: Path, name: str) -> None:
    path = table_path(tmp_path)
    rows = spark.createDataFrame([(1, math.nan), (2, 0.5)], f"id int, p {name}")
    rows.write.format("delta").partitionBy("p").save(path)
    (found,) = [row for row in ours(spark, path) if row["id"] == 1]
    assert math.isnan(found["p"])
    assert spark.read.format("delta").load(path).filter("isnan(p)").count() == 1


def test_the_empty_string_is_null_in_a_partition(spark: Any, tmp_path: Path) -> None:
    """PROTOCOL.md, "Partition Value Serialization"."""
    path = table_path(tmp_path)
    spark.sql("SELECT 1 AS id, '' AS p UNION ALL SELECT 2, 'x'").write.format("delta").partitionBy("p").save(path)
    wanted = [{"id": 1, "p": None}, {"id": 2, "p": "x"}]
    assert same_rows(ours(spark, path), wanted)
    assert same_rows(deltalake_rows(path), wanted)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *[(name, None) for name in ("integer", "date", "timestamp", "timestamp_ntz", "boolean", "double", "binary")],
        *product(["timestamp", "timestamp_ntz"], ["2021-03-28T01:30:00Z", "2021-03-28 01:30:00"]),
    ],
)
def test_an_empty_text_of_another_writer_is_null_in_any_partition(
    spark: Any, tmp_path: Path, name: str, other: str | None
) -> None:
    check_empty_text(spark, tmp_path, name, other)


def test_an_empty_text_is_null_beside_a_local_time(spark: Any, tmp_path: Path) -> None:
    """Then texts are read in place of values."""
    check_empty_text(spark, tmp_path, "timestamp", "2021-03-28 01:30:00")


def check_empty_text(spark: Any, tmp_path: Path, name: str, other: str | None) -> None:
    schema = Struct((Field("id", "long"), Field("p", name)))
    adds = [put_rows(tmp_path, "a.parquet", [{"id": 1}, {"id": 2}], partitionValues={"p": ""})]
    if other is not None:
        adds.append(put_rows(tmp_path, "b.parquet", [{"id": 3}], partitionValues={"p": other}))
    put_commit(tmp_path, 0, WITH_VECTORS, metadata(schema, ["p"]), *adds)
    rows, others = spark.read.format("delta").load(str(tmp_path)), [] if other is None else [3]
    assert sorted(row["id"] for row in rows.filter("p IS NULL").collect()) == [1, 2]
    DeltaTable.forPath(spark, str(tmp_path)).delete("p IS NULL AND id = 1")
    assert sorted(row["id"] for row in spark.read.format("delta").load(str(tmp_path)).collect()) == [2, *others]


@pytest.mark.parametrize("value", ["DATE'+10000-01-01'", "DATE'-0044-03-15'", "TIMESTAMP_NTZ'+12345-01-01 00:00:00'"])
def test_a_year_that_cannot_be_read_back_partitions_nothing(spark: Any, tmp_path: Path, value: str) -> None:
    path = table_path(tmp_path)
    with pytest.raises(InvalidPartitionValue):
        spark.sql(f"SELECT 1 AS id, {value} AS p").write.format("delta").partitionBy("p").save(path)
    assert not (Path(path) / "_delta_log" / f"{0:020d}.json").exists()


# -- files elsewhere ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}"])
def test_files_outside_the_folder_are_read_and_never_touched(spark: Any, tmp_path: Path, spelling: str) -> None:
    """As a shallow clone has them: changes of their rows are written into the clone's own folder."""
    elsewhere, path = tmp_path / "an origin é %20", Path(table_path(tmp_path))
    added = put_rows(elsewhere, "part 1.parquet", [{"id": i} for i in range(5)])["add"]
    absolute = spelling.format(quote(str(elsewhere / "part 1.parquet")))
    inside = put_rows(path, "own.parquet", [{"id": 10}])
    schema = metadata(Struct((Field("id", "long"),)), delta_enableDeletionVectors="true")
    put_commit(path, 0, WITH_VECTORS, schema, {"add": {**added, "path": absolute}}, inside)
    before = listing(elsewhere)
    table = DeltaTable.forPath(spark, str(path))
    table.delete("id = 0")
    table.update("id = 1", {"id": "-1"})
    source = spark.range(2, 4).selectExpr("id")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"id": "t.id + 100"}).execute()
    found = sorted(row["id"] for row in spark.read.format("delta").load(str(path)).collect())
    assert found == [-1, 4, 10, 102, 103]
    spark.range(1).write.format("delta").mode("overwrite").save(str(path))
    assert listing(elsewhere) == before
    assert table.check().is_clean
