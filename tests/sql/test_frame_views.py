"""Changes of rows by the name of a temporary view that was made of a DataFrame."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch._sql.executor.frame_views import table_of
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.opening import open_log
from tests.support.readers import deltalake_rows
from tests.support.worlds import table_path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = [{"k": i, "v": i * 10} for i in range(4)]
Shown = Callable[[SparkSession, str], DataFrame]


def load(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("delta").load(path)


def over_another(spark: SparkSession, path: str) -> DataFrame:
    load(spark, path).createOrReplaceTempView("inner_of_t")
    spark.sql("CREATE OR REPLACE TEMP VIEW outer_of_t AS SELECT * FROM inner_of_t")
    return spark.table("outer_of_t")


WHOLE: dict[str, Shown] = {
    "read": anabranch.read,
    "toDF": lambda spark, path: DeltaTable.forPath(spark, path).toDF(),
    "alias": lambda spark, path: load(spark, path).alias("q"),
    "star": lambda spark, path: load(spark, path).select("*"),
    "columns": lambda spark, path: load(spark, path).select("k", F.col("v").alias("v")),
    "a query": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}`"),
    "a view over a view": over_another,
}
IN_PART: dict[str, Shown] = {
    "filter": lambda spark, path: load(spark, path).where("k > 1"),
    "filter that skips": lambda spark, path: load(spark, path).where("k > 100"),
    "filter behind a hidden plan": lambda spark, path: load(spark, path).where("k > 1").localCheckpoint(),
    "limit behind a hidden plan": lambda spark, path: load(spark, path).limit(1).localCheckpoint(),
    "a query with WHERE": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}` WHERE k > 1"),
    "read where": lambda spark, path: anabranch.read(path, "k > 1", spark=spark),
    "limit": lambda spark, path: load(spark, path).limit(1),
    "distinct": lambda spark, path: load(spark, path).distinct(),
    "union": lambda spark, path: load(spark, path).union(load(spark, path)),
    "fewer columns": lambda spark, path: load(spark, path).select("k"),
    "more columns": lambda spark, path: load(spark, path).withColumn("w", F.lit(1)),
    "another order": lambda spark, path: load(spark, path).select("v", "k"),
    "other names": lambda spark, path: load(spark, path).toDF("v", "k").select("k", "v"),
    "other values": lambda spark, path: load(spark, path).withColumn("v", F.col("v") + 0),
    "other types": lambda spark, path: load(spark, path).withColumn("v", F.col("v").cast("string")),
    "other types and back": lambda spark, path: load(spark, path).select(
        "k", F.expr("cast(cast(v AS int) AS bigint) v")
    ),
    "an old version": lambda spark, path: spark.read.format("delta").option("versionAsOf", 0).load(path),
}
CHANGES = (
    "DELETE FROM of_t WHERE k = 1",
    "UPDATE of_t SET v = 0",
    "INSERT INTO of_t VALUES (9, 9)",
    "INSERT OVERWRITE TABLE of_t VALUES (9, 9)",
    "MERGE INTO of_t USING (SELECT 1 AS k) s ON of_t.k = s.k WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE of_t",
    "EXPLAIN DELETE FROM of_t",
)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    anabranch.install(spark)
    made = table_path(tmp_path)
    anabranch.append(made, ROWS)
    return made


def rows(path: str) -> list[tuple[Any, ...]]:
    """The rows of the table as another reader finds them."""
    return [(row["k"], row["v"]) for row in deltalake_rows(path)]


@pytest.mark.parametrize("is_global", [False, True])
def test_every_change_goes_to_the_table_and_the_view_shows_it(spark: SparkSession, path: str, is_global: bool) -> None:
    frame, name = load(spark, path), "global_temp.of_t" if is_global else "of_t"
    (frame.createOrReplaceGlobalTempView if is_global else frame.createOrReplaceTempView)("of_t")
    try:
        assert "DELETE" in spark.sql(f"EXPLAIN DELETE FROM {name} WHERE k = 0").first()[0]  # type: ignore[index]
        assert rows(path) == [(0, 0), (1, 10), (2, 20), (3, 30)]
        spark.sql(f"DELETE FROM {name} WHERE k = 0")
        if not is_global:
            frame.createOrReplaceTempView("of_t")  # an old version, which nobody asked for
        spark.sql(f"UPDATE {name.upper()} AS x SET v = x.v + 1 WHERE k = 1")
        source = "(SELECT 2 AS k UNION ALL SELECT 8)"
        spark.sql(
            f"MERGE INTO {name} t USING {source} s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 80)"
        )
        anabranch.sql(spark, f"INSERT INTO {name} VALUES (:k, 90)", {"k": 9})
        assert rows(path) == [(1, 11), (2, 0), (3, 30), (8, 80), (9, 90)]
        assert sorted(map(tuple, spark.table(name).collect())) == rows(path)
    finally:
        (spark.catalog.dropGlobalTempView if is_global else spark.catalog.dropTempView)("of_t")


def test_the_view_may_be_made_in_many_ways(spark: SparkSession, path: str) -> None:
    for way, shown in WHOLE.items():
        shown(spark, path).createOrReplaceTempView("of_t")
        assert table_of(spark, ("of_t",)) == open_log(path).table, way
    spark.sql("UPDATE of_t SET v = 5 WHERE k = 0")
    assert rows(path)[0] == (0, 5)


def test_a_view_that_shows_anything_else_is_no_table(spark: SparkSession, path: str) -> None:
    SetProperties(path, {"delta.enableChangeDataFeed": "true"}).run()
    changes = spark.read.format("delta").option("readChangeFeed", True)
    in_part = {**IN_PART, "changes": lambda spark, path: changes.load(path, startingVersion=1)}
    for i, (way, shown) in enumerate(in_part.items()):
        shown(spark, path).createOrReplaceTempView("of_t")
        for text in CHANGES if i == 0 else [CHANGES[i % len(CHANGES)]]:
            with pytest.raises(errors.ViewIsNoTable, match=r"(?s)`of_t` is a view.*Name the table.*\^") as refused:
                spark.sql(text)
            assert "\tat " not in str(refused.value), way
    assert rows(path) == [(0, 0), (1, 10), (2, 20), (3, 30)]
    assert len(anabranch.history(path)) == 2


def test_the_doors_of_data_frames_take_such_a_view_too(spark: SparkSession, path: str) -> None:
    load(spark, path).createOrReplaceTempView("of_t")
    new = spark.createDataFrame([(1, 11), (9, 90)], "k long, v long")
    new.where("k = 9").write.insertInto("of_t")
    assert len(rows(path)) == 5
    merge = new.alias("s").mergeInto("of_t", F.expr("of_t.k = s.k"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert rows(path) == [(0, 0), (1, 11), (2, 20), (3, 30), (9, 90)]
    assert sorted(map(tuple, spark.table("of_t").collect())) == rows(path)
    load(spark, path).where("k > 1").createOrReplaceTempView("of_t")
    with pytest.raises(errors.ViewIsNoTable):
        new.write.insertInto("of_t")
    with pytest.raises(errors.ViewIsNoTable):
        new.mergeInto("of_t", F.expr("of_t.k = s.k")).whenMatched().delete().merge()
    with pytest.raises(errors.AnabranchError):
        DeltaTable.forName(spark, "of_t")


def test_a_view_of_no_table_gives_no_frames_of_java(spark: SparkSession, path: str) -> None:
    for frame in (spark.range(3).toDF("k"), load(spark, path).localCheckpoint()):
        frame.createOrReplaceTempView("of_t")
        with pytest.raises(errors.ViewIsNoTable):
            spark.sql("DELETE FROM of_t WHERE k = 1")


def test_of_two_copies_of_a_table_the_one_that_is_shown_is_changed(spark: SparkSession, path: str) -> None:
    copy = f"{path}-copy"
    shutil.copytree(path, copy)
    load(spark, path).createOrReplaceTempView("of_t")
    assert load(spark, copy).columns == ["k", "v"]  # was seen last
    spark.sql("DELETE FROM of_t WHERE k > 0")
    assert (len(rows(path)), len(rows(copy))) == (1, 4)


def test_a_table_that_was_made_again_is_another_one(spark: SparkSession, path: str) -> None:
    load(spark, path).createOrReplaceTempView("of_t")
    shutil.rmtree(path)
    anabranch.append(path, ROWS)
    with pytest.raises(errors.ViewIsNoTable):
        spark.sql("DELETE FROM of_t")
    assert len(rows(path)) == 4


def test_columns_that_came_later_are_not_shown(spark: SparkSession, path: str) -> None:
    load(spark, path).createOrReplaceTempView("of_t")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN w INT")
    with pytest.raises(errors.ViewIsNoTable):
        spark.sql("UPDATE of_t SET v = 1")
