"""A condition that was given as a Column stands in the history as SQL that selects the same rows."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable

pytestmark = pytest.mark.spark

CONDITIONS = {
    "(id = 3)": lambda: F.col("id") == 3,
    "(c = 'O\\'Hara')": lambda: F.col("c") == "O'Hara",
    "((id > 1) AND (NOT (c IN ('a', 'b'))))": lambda: (F.col("id") > 1) & ~F.col("c").isin("a", "b"),
    "((id >= 1) AND (id <= 2))": lambda: F.col("id").between(1, 2),
    "((c IS NULL) OR (c LIKE 'a%'))": lambda: F.col("c").isNull() | F.col("c").like("a%"),
    "(d = DATE '2020-01-02')": lambda: F.col("d") == dt.date(2020, 1, 2),
    "(n = 1.50)": lambda: F.col("n") == Decimal("1.50"),
    "(upper(c) = 'A')": lambda: F.upper("c") == "A",
    "(`a b` = 2)": lambda: F.col("a b") == 2,
    "(CAST(id AS STRING) = '3')": lambda: F.col("id").cast("string") == "3",
    "id % 2 = 1 AND c = 'a'": lambda: F.expr("id % 2 = 1 AND c = 'a'"),
}
ROWS = [
    {"id": i, "c": c, "d": dt.date(2020, 1, i), "n": Decimal(i) / 2, "a b": i}
    for i, c in enumerate(("a", "b", "O'Hara", None), 1)
]


@pytest.mark.classic("Spark Connect prints a Column otherwise")
def test_what_stands_there_selects_the_rows_that_were_deleted(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, ROWS, properties={"delta.columnMapping.mode": "name"})
    table = DeltaTable.forPath(spark, path)
    for text, made in CONDITIONS.items():
        found = anabranch.sql(spark, f"SELECT id FROM delta.`{path}` WHERE {text}").collect()
        assert found, text
        table.delete(made())
        said = anabranch.history(path, 1)[0]["operationParameters"]["predicate"]
        assert json.loads(said) == [text]
        assert {row["id"] for row in ROWS} - {row["id"] for row in table.toDF().collect()} == {row[0] for row in found}
        table.restoreToVersion(0)


@pytest.mark.classic("Spark Connect prints a Column otherwise")
def test_the_condition_of_a_merge_does_too(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, ROWS, properties={"delta.columnMapping.mode": "name"})
    table, news = DeltaTable.forPath(spark, path).alias("t"), spark.range(3).alias("s")
    on: Column = (F.col("t.id") == F.col("s.id")) & (F.col("t.c") == "a")
    table.merge(news, on).whenMatchedDelete(F.col("t.id") < 2).execute()
    said: Any = anabranch.history(path, 1)[0]["operationParameters"]
    assert json.loads(said["predicate"]) == ["((t.id = s.id) AND (t.c = 'a'))"]
    assert json.loads(said["matchedPredicates"])[0]["predicate"] == "(t.id < 2)"
