"""In a case-sensitive session a column is named to the letter, in every clause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors

pytestmark = pytest.mark.spark

ELSEWHERE = [
    "UPDATE @t SET key = 1",
    "UPDATE @t SET s.in = 1",
    "UPDATE @t SET KeY = key",
    "UPDATE @t SET KeY = 1 WHERE key = 1",
    "DELETE FROM @t WHERE key = 1",
    "INSERT INTO @t (key) VALUES (1)",
    "INSERT INTO @t BY NAME SELECT 1 AS key",
    "INSERT INTO @t REPLACE WHERE key = 1 SELECT 1, 1, NULL",
    "INSERT INTO @t PARTITION (p = 1) SELECT 1, NULL",
    "MERGE INTO @t t USING (SELECT 1 AS KeY) s ON t.KeY = s.KeY WHEN MATCHED THEN UPDATE SET key = 1",
    "MERGE INTO @t t USING (SELECT 1 AS KeY) s ON t.KeY = s.KeY WHEN NOT MATCHED THEN INSERT (key) VALUES (1)",
    "MERGE INTO @t t USING (SELECT 1 AS KeY) s ON t.KeY = s.KeY WHEN NOT MATCHED THEN INSERT (KeY) VALUES (s.key)",
    "MERGE INTO @t t USING (SELECT 1 AS key, 1 AS P, NULL AS s) s ON t.P = s.P WHEN MATCHED THEN UPDATE SET *",
    "ALTER TABLE @t ALTER COLUMN key COMMENT 'c'",
    "ALTER TABLE @t ALTER COLUMN P AFTER S",
    "ALTER TABLE @t ADD COLUMN n INT AFTER key",
    "ALTER TABLE @t RENAME COLUMN key TO k",
    "ALTER TABLE @t DROP COLUMN s.in",
    "ALTER TABLE @t ADD CONSTRAINT c CHECK (key > 0)",
    "OPTIMIZE @t ZORDER BY (key)",
]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    location = str(tmp_path / "t")
    anabranch.install(spark)
    how = "USING delta PARTITIONED BY (P) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    spark.sql(f"CREATE TABLE delta.`{location}` (KeY INT, P INT, s STRUCT<In: INT>) {how}")
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield location
    spark.conf.unset("spark.sql.caseSensitive")


def test_a_name_in_another_case_is_another_name_in_every_clause(spark: SparkSession, path: str) -> None:
    before = len(anabranch.history(path))
    for text in ELSEWHERE:
        with pytest.raises(errors.InputError, match=r"(?i)key|in\b|\bp\b|\bs\b"):
            spark.sql(text.replace("@t", f"delta.`{path}`"))
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(errors.UnknownColumn):
        table.update(None, {"key": "1"})
    with pytest.raises(errors.UnknownColumn):
        table.optimize().executeZOrderBy("key")
    assert len(anabranch.history(path)) == before
    spark.conf.unset("spark.sql.caseSensitive")
    spark.sql(f"UPDATE delta.`{path}` SET key = 1 WHERE KEY = 2")


def test_names_to_the_letter_are_taken(spark: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"
    spark.sql(f"INSERT INTO {table} (KeY, P, s) VALUES (1, 1, named_struct('In', 5))")
    spark.sql(f"UPDATE {table} SET s.In = s.In + 1 WHERE KeY = 1")
    merged = f"MERGE INTO {table} t USING (SELECT 2 AS KeY, 1 AS P) s ON t.KeY = s.KeY"
    spark.sql(f"{merged} WHEN NOT MATCHED THEN INSERT (KeY, P) VALUES (s.KeY, s.P)")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN KeY COMMENT 'c'")
    rows = spark.sql(f"SELECT KeY, s.In FROM {table} WHERE P = 1").collect()
    assert sorted(map(tuple, rows)) == [(1, 6), (2, None)]
