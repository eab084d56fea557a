"""Columns of char are compared as Spark compares them: with the blanks that they are padded with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from tests.support.tiers import few_of
from tests.support.worlds import World

pytestmark = pytest.mark.spark


@pytest.fixture(params=["", "PARTITIONED BY (c)", "renamed"])
def path(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Rows x, y and NULL of char(3) in a file each, and one file in which another writer has not padded its x."""
    location = str(tmp_path / "t")
    anabranch.install(spark)
    how = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if request.param == "renamed" else request.param
    spark.sql(f"CREATE TABLE delta.`{location}` (c CHAR(3), i INT) USING delta {how}")
    for row in ("('x', 1)", "('y', 2)", "(NULL, 3)"):
        spark.sql(f"INSERT INTO delta.`{location}` VALUES {row}")
    if request.param == "":
        first = next(each for each in Path(location).rglob("*.parquet") if pq.read_table(each)["i"].to_pylist() == [1])
        _put_unpadded(location, first)
    return location


def _put_unpadded(location: str, like: Path) -> None:
    rows = pq.read_table(like).set_column(0, "c", pa.array(["x"])).set_column(1, "i", pa.array([4], pa.int32()))
    stats = r"{\"numRecords\":1,\"minValues\":{\"c\":\"x\"},\"maxValues\":{\"c\":\"x\"},\"nullCount\":{\"c\":0}}"
    _put(location, rows, stats)


def _put(location: str, rows: pa.Table, stats: str) -> None:
    pq.write_table(rows, Path(location) / "other.parquet")
    log = Path(location) / "_delta_log"
    size = (Path(location) / "other.parquet").stat().st_size
    add = f'{{"path":"other.parquet","partitionValues":{{}},"size":{size},"modificationTime":0,"dataChange":true'
    (log / f"{len(list(log.glob('*.json'))):020}.json").write_text(f'{{"add":{add},"stats":"{stats}"}}}}\n')


def found(spark: SparkSession, path: str, where: str) -> list[int]:
    return sorted(row["i"] for row in spark.sql(f"SELECT * FROM delta.`{path}` WHERE {where}").collect())


def held(path: str) -> list[tuple[Any, ...]]:
    """The rows as they lie there, sorted by their number."""
    return sorted((tuple(row.values()) for row in World(path).rows()), key=lambda row: row[-1])


def test_a_text_finds_the_padded_value_by_every_door(spark: SparkSession, path: str) -> None:
    x = [1, 4] if (Path(path) / "other.parquet").exists() else [1]
    table = f"delta.`{path}`"
    expected = {
        "c = 'x'": x,
        "'x' = c": x,
        "c <=> 'x '": x,
        "c = 'x      '": x,
        "c IN ('q', 'x')": x,
        "c <> 'y'": x,
        "NOT c = 'x'": [2],
        "c NOT IN ('x', 'z')": [2],
        "c < 'y'": x,
        "c >= 'x' AND c <= 'x'": x,
        "c BETWEEN 'x' AND 'y'": x,  # Spark pads for none of its ends
        "c LIKE 'x%'": x,
        "c LIKE 'x'": [],
        "c LIKE 'x  '": x,
        "startswith(c, 'x ')": x,
        "c IS NULL": [3],
        "c = 'xxxx'": [],
        "length(c) = 3 AND c = 'x'": x,
    }
    asked = list(few_of([*expected], 5))
    assert {where: found(spark, path, where) for where in asked} == {where: expected[where] for where in asked}
    rows = spark.read.format("delta").load(path)
    assert sorted(row["i"] for row in rows.filter(F.col("c") == "x").collect()) == x
    assert sorted(row["i"] for row in anabranch.read(path, where="c = 'x'", spark=spark).collect()) == x
    assert {row["c"] for row in DeltaTable.forPath(spark, path).toDF().collect()} == {"x  ", "y  ", None}
    assert spark.sql(f"SELECT count(*) FROM {table} a JOIN {table} b ON a.c = b.c").first()[0] == len(x) ** 2 + 1


def test_changes_find_it_and_take_no_other_row(spark: SparkSession, path: str) -> None:
    x = [1, 4] if (Path(path) / "other.parquet").exists() else [1]
    table = f"delta.`{path}`"
    spark.sql(f"CREATE OR REPLACE TABLE delta.`{path}-s` (k CHAR(5), w INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{path}-s` VALUES ('x', 10), ('z', 20)")
    merged = f"MERGE INTO {table} t USING delta.`{path}-s` s ON t.c = s.k"
    assert spark.sql(f"{merged} WHEN MATCHED AND s.k = 'x' THEN UPDATE SET i = i + w").first()[0] == len(x)
    assert [i for c, i in held(path) if c == "x  "] == [each + 10 for each in x]
    assert spark.sql(f"UPDATE {table} SET i = i + 1 WHERE c = 'x'").first()[0] == len(x)
    spark.sql(f"INSERT INTO {table} REPLACE WHERE c = 'y' VALUES ('y', 9)")
    assert spark.sql(f"DELETE FROM {table} WHERE c = 'x'").first()[0] == len(x)
    assert held(path) == [(None, 3), ("y  ", 9)]
    assert anabranch.check(path, deep=True).is_clean


def test_chars_inside_of_a_column_are_padded_as_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    anabranch.install(spark)
    columns = "s STRUCT<c: CHAR(3), n: INT>, a ARRAY<CHAR(2)>, m MAP<CHAR(2), INT>, t STRING, i INT"
    spark.sql(f"CREATE TABLE delta.`{location}` ({columns}) USING delta")
    values = "named_struct('c', 'x', 'n', 1), array('x'), map('x', 1), '', 1"
    spark.sql(f"INSERT INTO delta.`{location}` VALUES ({values})")
    rows = pq.read_table(next(Path(location).rglob("*.parquet")))
    cells = [{"c": "x", "n": 1}, ["x"], [("x", 1)], "", 4]
    arrays = [pa.array([each], kind) for each, kind in zip(cells, rows.schema.types, strict=True)]
    _put(location, pa.table(arrays, schema=rows.schema), r"{\"numRecords\":1}")
    held_by = {
        "s.c = 'x'": [],
        "s.c = 'x  '": [1, 4],
        "s.c LIKE 'x'": [],
        "length(s.c) = 3": [1, 4],
        "a[0] = 'x ' AND m['x '] = 1": [1, 4],
        "s.n = 1": [1, 4],
    }
    assert {where: found(spark, location, where) for where in held_by} == held_by
    assert spark.sql(f"DELETE FROM delta.`{location}` WHERE s.c = 'x'").first()[0] == 0
    assert spark.sql(f"UPDATE delta.`{location}` SET t = s.c || '|' WHERE i > 0").first()[0] == 2
    assert {row["t"] for row in World(location).rows()} == {"x  |"}


@pytest.mark.exhaustive(
    "tests/sql/test_char.py::test_a_text_finds_the_padded_value_by_every_door",
    "tests/sql/test_char.py::test_changes_find_it_and_take_no_other_row",
)
def test_new_values_and_patterns_see_the_blanks_too(spark: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"
    assert spark.sql(f"UPDATE {table} SET i = if(c = 'y', 7, 8) WHERE c = 'y'").first()[0] == 1
    assert ("y  ", 7) in held(path)
    assert spark.sql(f"DELETE FROM {table} WHERE c LIKE 'x'").first()[0] == 0
