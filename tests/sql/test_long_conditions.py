"""Conditions of thousands of terms, and of hundreds of levels, on real Spark: they work, or are refused by type."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch.errors import AnabranchError
from tests.support.tiers import examples

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TERMS = examples(2000, 300)


@pytest.mark.exhaustive(
    "tests/expressions/test_depth.py::test_every_door_skips_by_a_long_condition_and_refuses_a_deep_one",
    "tests/expressions/test_depth.py::test_a_check_is_held_however_long_it_is_and_refused_where_it_is_deep",
    "tests/sql/test_long_conditions.py::test_deep_conditions_work_or_are_refused_by_type",
)
def test_long_and_deep_conditions_go_through_every_door(spark: SparkSession, tmp_path: Path) -> None:
    sql, path = anabranch.install(spark), str(tmp_path / "t")
    sql.range(10).write.format("delta").save(path)
    table, name = DeltaTable.forPath(sql, path), f"delta.`{path}`"
    long = " OR ".join(f"id = {n}" for n in range(5, TERMS))
    assert sql.sql(f"SELECT id FROM {name} WHERE {long}").count() == 5
    assert sql.sql(f"UPDATE {name} SET id = id + 100 WHERE {long}").first()[0] == 5
    sql.range(100, 101).write.format("delta").mode("overwrite").option("replaceWhere", long + " OR id = 100").save(path)
    on = "t.id = s.id AND (" + " OR ".join(f"t.id != {n}" for n in range(TERMS)) + ")"
    table.alias("t").merge(sql.range(3).alias("s"), on).whenMatchedDelete().execute()
    sql.sql(f"ALTER TABLE {name} ADD CONSTRAINT c CHECK ({long} OR id IN (3, 4, 5, 100, 105, 106, 107, 108, 109))")
    assert sql.sql(f"DELETE FROM {name} WHERE id IN ({', '.join(map(str, range(TERMS)))})").first()[0] == 3
    assert table.toDF().count() == 0


def test_deep_conditions_work_or_are_refused_by_type(spark: SparkSession, tmp_path: Path) -> None:
    sql, path = anabranch.install(spark), str(tmp_path / "t")
    anabranch.append(path, [{"id": i} for i in range(10)])
    table, name = DeltaTable.forPath(sql, path), f"delta.`{path}`"
    table.update("(" * 1000 + "id = 1" + ")" * 1000, {"id": "(" * 1000 + "id" + ")" * 1000})
    column = F.col("id") == 0
    for _ in range(examples(1500, 300)):
        column = ~column
    deep = "(id = 1 OR (id = 2 AND " * 400 + "id = 3" + "))" * 400
    doors = [
        lambda: table.delete(deep),
        lambda: table.delete("NOT " * 3000 + "id = 1"),
        lambda: table.delete(column),
        lambda: table.delete("+".join(["id"] * 3000) + " > 100"),
        lambda: table.update(None, {"id": "+".join(["id"] * 3000)}),
        lambda: table.update(None, {"id": "abs(" * 400 + "id" + ")" * 400}),
        lambda: (
            table.alias("t").merge(sql.range(1).alias("s"), deep.replace("id", "t.id")).whenMatchedDelete().execute()
        ),
        lambda: sql.sql(f"DELETE FROM {name} WHERE {deep}"),
        lambda: sql.sql(f"ALTER TABLE {name} ADD CONSTRAINT c CHECK ({deep})"),
        lambda: sql.range(1).write.format("delta").mode("overwrite").option("replaceWhere", deep).save(path),
    ]
    for door in doors:
        with pytest.raises(AnabranchError):
            door()
    assert len(anabranch.history(path)) == 2
