"""The change data feed beside delta-spark: what it writes, both read alike, and so the marks of ours."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch._log.log import forget
from tests.support.delta_spark import DeltaSpark, DeltaSparkError
from tests.support.readers import same_rows
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]


def theirs(delta_spark: DeltaSpark, path: str, start: int, end: int | None = None) -> list[Any]:
    ends = f"{start}" if end is None else f"{start}, {end}"
    return delta_spark.query(f"SELECT * FROM table_changes_by_path('{path}', {ends})").to_pylist()


def ours(spark: SparkSession, path: str, start: int, end: int | None = None) -> list[Any]:
    forget()
    return anabranch.changes(path, start, end, spark=spark).toArrow().to_pylist()


def statement(dice: random.Random, table: str) -> str:
    low = dice.randrange(12)
    match dice.choice(["INSERT", "INSERT", "UPDATE", "DELETE", "DELETE", "MERGE", "MERGE", "OPTIMIZE", "OVERWRITE"]):
        case "INSERT":
            return f"INSERT INTO {table} SELECT id, id % 3, concat('n', id) FROM range({low}, {low + 4})"
        case "UPDATE":
            return f"UPDATE {table} SET s = 'u{low}', g = {low % 3} WHERE id BETWEEN {low} AND {low + 2}"
        case "DELETE":
            return f"DELETE FROM {table} WHERE id BETWEEN {low} AND {low + 1} AND g <> {dice.randrange(3)}"
        case "OPTIMIZE":
            return f"OPTIMIZE {table}"
        case "OVERWRITE":
            return f"INSERT OVERWRITE {table} SELECT id + {low}, 1, NULL FROM range(5)"
    return f"""MERGE INTO {table} t USING (SELECT id FROM range({low}, {low + 5})) s ON t.id = s.id
        WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'm'
        WHEN NOT MATCHED THEN INSERT (id, g, s) VALUES (s.id, 2, 'i')"""


@pytest.mark.parametrize(
    ("seed", "clauses", "vectors", "mapping"),
    [(1, "", "true", "none"), (2, "PARTITIONED BY (g)", "false", "name"), (3, "PARTITIONED BY (g)", "true", "id")],
)
def test_whatever_delta_spark_did_both_feeds_are_alike(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int, clauses: str, vectors: str, mapping: str
) -> None:
    path, dice = table_path(tmp_path), random.Random(seed)
    table = f"delta.`{path}`"
    properties = {"enableChangeDataFeed": "true", "enableDeletionVectors": vectors, "columnMapping.mode": mapping}
    listed = ", ".join(f"'delta.{key}' = '{value}'" for key, value in properties.items())
    delta_spark.sql(f"CREATE TABLE {table} (id BIGINT, g INT, s STRING) USING delta {clauses} TBLPROPERTIES ({listed})")
    delta_spark.sql(
        f"INSERT INTO {table} SELECT id, id % 3, 'n' FROM range(9)",
        f"UPDATE {table} SET s = 'u' WHERE id > 6",
        f"DELETE FROM {table} WHERE id IN (2, 4)",
    )
    delta_spark.sql(*(statement(dice, table) for _ in range(6)))
    delta_spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 4", f"ALTER TABLE {table} ADD COLUMN more INT")
    newest = World(path).version
    found = ours(spark, path, 0)
    assert {row["_change_type"] for row in found} >= {"insert", "delete", "update_preimage", "update_postimage"}
    assert same_rows(found, theirs(delta_spark, path, 0))
    start, end = sorted((dice.randrange(newest), dice.randrange(newest)))
    assert same_rows(ours(spark, path, start, end), theirs(delta_spark, path, start, end))


def test_what_delta_spark_refuses_is_refused(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    table = f"delta.`{path}`"
    on = f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    off = on.replace("'true'", "'false'")
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    delta_spark.sql(f"CREATE TABLE {table} (id BIGINT, x INT) USING delta {mapped}", on)
    insert = f"INSERT INTO {table} VALUES (1, 2)"
    delta_spark.sql(insert, f"ALTER TABLE {table} RENAME COLUMN x TO y", insert, off, insert)
    for start, end in ((0, 1), (1, 3), (2, 4), (1, 5), (2, 1), (9, 9)):
        with pytest.raises(DeltaSparkError) as their_error:
            theirs(delta_spark, path, start, end)
        with pytest.raises(anabranch.errors.AnabranchError) as our_error:
            ours(spark, path, start, end)
        if start != 9:  # of which theirs is a plain IllegalArgumentException
            assert our_error.value.getCondition() == their_error.value.condition, (start, end)
    for start, end in ((1, 2), (3, 4)):
        assert same_rows(ours(spark, path, start, end), theirs(delta_spark, path, start, end))


def test_a_table_that_records_is_changed_by_turns(spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    rows = [{"id": i, "g": i % 2} for i in range(8)]
    world = World(table_path(tmp_path)).create(rows, partition_by=("g",), delta_enableChangeDataFeed="true")
    table = f"delta.`{world.path}`"
    world.delete("id IN (1, 2)")
    delta_spark.sql(f"UPDATE {table} SET g = 1 WHERE id IN (3, 4)")
    forget()
    world.append({"id": 9, "g": 0})
    world.delete("id IN (3, 9)")
    world.restore(0)
    world.optimize()
    delta_spark.sql(f"DELETE FROM {table} WHERE id = 5")
    forget()
    world.delete("g = 1")
    found = ours(spark, world.path, 0)
    counts = Counter(row["_change_type"] for row in found)
    assert (counts["update_preimage"], counts["update_postimage"], counts["insert"] - counts["delete"]) == (2, 2, 4)
    assert same_rows(found, theirs(delta_spark, world.path, 0))


@pytest.mark.parametrize(
    ("seed", "clauses", "vectors", "mapping"),
    [(1, "", "true", "none"), (2, "PARTITIONED BY (g)", "false", "name"), (3, "PARTITIONED BY (g)", "true", "id")],
)
def test_the_same_statements_give_the_same_feed_whoever_runs_them(
    spark: SparkSession, delta_spark: DeltaSpark, tmp_path: Path, seed: int, clauses: str, vectors: str, mapping: str
) -> None:
    dice, paths = random.Random(seed), [table_path(tmp_path), table_path(tmp_path)]
    properties = {"enableChangeDataFeed": "true", "enableDeletionVectors": vectors, "columnMapping.mode": mapping}
    listed = ", ".join(f"'delta.{key}' = '{value}'" for key, value in properties.items())
    columns = "(id BIGINT, g INT, s STRING)"
    statements = [
        f"CREATE TABLE delta.`{{}}` {columns} USING delta {clauses} TBLPROPERTIES ({listed})",
        "INSERT INTO delta.`{}` SELECT id, id % 3, 'n' FROM range(9)",
        "UPDATE delta.`{}` SET s = 'u', g = (g + 1) % 3 WHERE id > 5",
        "DELETE FROM delta.`{}` WHERE id IN (2, 4)",
        "INSERT INTO delta.`{}` REPLACE WHERE id BETWEEN 3 AND 6 SELECT id, 1, 'r' FROM range(4, 6)",
        *(statement(dice, "delta.`{}`") for _ in range(8)),
        "DELETE FROM delta.`{}` WHERE g = 1",
    ]
    for text in statements:
        anabranch.sql(spark, text.format(paths[0]))
    delta_spark.sql(*(text.format(paths[1]) for text in statements))
    mine, other = ours(spark, paths[0], 0), theirs(delta_spark, paths[1], 0)
    assert same_rows(mine, theirs(delta_spark, paths[0], 0)), "delta-spark reads our files otherwise than we do"
    assert by_version(mine) == by_version(other)
    assert {row["_change_type"] for row in mine} >= {"insert", "delete", "update_preimage", "update_postimage"}


def by_version(feed: list[Any]) -> list[Counter[Any]]:
    """The changes of each version that has any, in order, without its number and time."""
    found: dict[int, Counter[Any]] = {}
    for row in feed:
        shown = (row["_change_type"], row["id"], row["g"], row["s"])
        found.setdefault(row["_commit_version"], Counter())[shown] += 1
    return [found[version] for version in sorted(found)]
