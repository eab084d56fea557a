"""When Spark may read partition values off the folders, and what it would find there."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anabranch._protocol.actions import files_table
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.partitions import hive_segment
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.reading.hive_folders import folders_agree
from anabranch._spark.reading.scan import scan
from tests.spark.tables import file_row, file_set


def files(type_: str, *pairs: tuple[str, str | None]) -> FileSet:
    rows = [{"path": path, "partitionValues": {"p": value}, "size": 1, "modificationTime": 0} for path, value in pairs]
    schema = Struct((Field("a", "long"), Field("p", type_)))
    return FileSet("file:///t", schema, ("p",), files_table(rows), {})


@pytest.mark.parametrize(
    "given",
    [
        files("integer", ("p=1/a.parquet", "1"), ("p=2/a.parquet", "2")),
        files("string", ("job-1/p=x/a.parquet", "x"), ("job-2/p=x/a.parquet", "x"), ("p=y/a.parquet", "y")),
        files("string", ("p=__HIVE_DEFAULT_PARTITION__/a.parquet", None)),
        files("string", ("p=__HIVE_DEFAULT_PARTITION__/a.parquet", "")),
        files("string", (quote(hive_segment("p", "a/b%c: d")) + "/a.parquet", "a/b%c: d")),
        files("timestamp", ("p=2020-01-01T00%253A00%253A00.000000Z/a.parquet", "2020-01-01T00:00:00.000000Z")),
        files("date", ("p=2020-01-01/a.parquet", "2020-01-01")),
        files("boolean", ("p=true/a.parquet", "true")),
    ],
)
def test_folders_that_say_what_the_log_says_agree(given: FileSet) -> None:
    assert folders_agree(given)


@pytest.mark.parametrize(
    "given",
    [
        files("integer", ("a.parquet", "1")),
        files("integer", ("p=2/a.parquet", "1")),
        files("integer", ("P=1/a.parquet", "1")),
        files("integer", ("p=1/deeper/a.parquet", "1")),
        files("integer", ("q=7/p=1/a.parquet", "1")),
        files("integer", ("q=7/x/p=1/a.parquet", "1")),
        files("integer", ("p=1/a.parquet", None)),
        files("integer", ("file:///t/p=1/a.parquet", "1")),
        files("string", ("p=__HIVE_DEFAULT_PARTITION__/a.parquet", "__HIVE_DEFAULT_PARTITION__")),
        files("integer", ("p=1/a.parquet", "1"), ("p=2/a.parquet", "3")),
        files("decimal(10,2)", ("p=1.50/a.parquet", "1.50")),
        files("double", ("p=1.5/a.parquet", "1.5")),
        files("timestamp", ("p=2020-01-01 00%253A00%253A00/a.parquet", "2020-01-01 00:00:00")),
    ],
)
def test_folders_that_spark_would_read_otherwise_do_not(given: FileSet) -> None:
    assert not folders_agree(given)


VALUES: dict[str, list[str | None]] = {
    "string": ["x", "", None, "a b", "a/b", "é%", "=x", " ", "1", "{[^]}", "__HIVE_DEFAULT_PARTITION__"],
    "byte": ["-128", None],
    "short": ["300"],
    "integer": ["1", "007"],
    "long": ["9223372036854775807", None],
    "float": ["1.1", "-0.0"],
    "double": ["1.5", "NaN", "Infinity", "1.0E-10"],
    "boolean": ["true", "false", None],
    "decimal(10,2)": ["1.50", "-3.25", "7", None],
    "decimal(38,18)": ["1.5"],
    "date": ["2020-01-01", "0001-01-01", "9999-12-31", None],
    "timestamp": ["2020-01-01T00:00:00.123456Z", "1900-01-01T00:00:00.000000Z", None],
    "timestamp_ntz": ["2020-03-29 02:30:00.5", None],
    "binary": ["abc", "é"],
}
TYPED: dict[str, Any] = {"": None}


def partitioned(root: Path, type_: str, honest: bool) -> FileSet:
    """One row per value, in folders that say it or that lie."""
    rows = []
    for number, value in enumerate(VALUES[type_]):
        folder = hive_segment("p", value) if honest else hive_segment("p", VALUES[type_][number - 1])
        one = pa.table({"a": pa.array([number], pa.int64())})
        rows.append(file_row(root, f"{folder}/{number}.parquet", one, {"p": value}))
    return file_set(root, rows, Struct((Field("p", type_), Field("a", "long"))), ("p",))


@pytest.mark.spark
@pytest.mark.parametrize("type_", VALUES)
def test_partition_values_are_the_logs_whatever_the_folders_say(
    spark: SparkSession, tmp_path: Path, type_: str
) -> None:
    honest = scan(spark, partitioned(tmp_path / "honest", type_, honest=True))
    lying = scan(spark, partitioned(tmp_path / "lying", type_, honest=False))
    texts = {row["a"]: row["t"] for row in honest.selectExpr("a", "cast(p as string) t").collect()}
    assert texts == {row["a"]: row["t"] for row in lying.selectExpr("a", "cast(p as string) t").collect()}
    assert honest.columns == lying.columns == ["p", "a"]
    assert honest.schema == lying.schema
    assert texts == {number: as_text(value, type_) for number, value in enumerate(VALUES[type_])}


def as_text(value: str | None, type_: str) -> str | None:
    """The value as Spark prints it in a session in UTC."""
    if not value:
        return None
    printed = {"7": "7.00", "007": "7", "1.5": "1.500000000000000000" if type_ == "decimal(38,18)" else "1.5"}
    return (
        printed.get(value, value).replace("T", " ").replace("Z", "").replace("00:00:00.000000", "00:00:00")
        if type_ != "string"
        else value
    )


@pytest.mark.spark
def test_a_timestamp_without_zone_means_the_sessions(spark: SparkSession, tmp_path: Path) -> None:
    one = pa.table({"a": pa.array([1], pa.int64())})
    row = file_row(tmp_path, "x.parquet", one, {"p": "2020-01-01 00:00:00"})
    given = file_set(tmp_path, [row], Struct((Field("a", "long"), Field("p", "timestamp"))), ("p",))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        (found,) = scan(spark, given).selectExpr("unix_seconds(p)").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert found[0] == 1577804400


@pytest.mark.spark
def test_partitions_are_pruned_where_folders_agree(spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    scan(spark, partitioned(tmp_path, "short", honest=True)).filter("p = 300").explain()
    assert "PartitionFilters: [isnotnull(p" in capsys.readouterr().out
