"""Identity columns on Spark: by the builder, by writes and by MERGE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch.tables import IdentityGenerator
from tests.support.worlds import World, table_path

pytestmark = pytest.mark.spark


@pytest.fixture
def path(tmp_path: Path) -> str:
    return table_path(tmp_path)


@pytest.fixture
def table(spark: SparkSession, path: str) -> DeltaTable:
    anabranch.install(spark)
    return created(spark, path, generatedAlwaysAs=IdentityGenerator(10, 5))


def created(spark: SparkSession, path: str, **generated: Any) -> DeltaTable:
    builder = DeltaTable.create(spark).location(path).addColumn("name", "STRING")
    return builder.addColumn("n", "BIGINT", **generated).execute()


def numbers(path: str) -> dict[str, int]:
    return {row["name"]: row["n"] for row in World(path).rows()}


def test_rows_of_many_partitions_are_counted_without_a_gap(spark: SparkSession, table: DeltaTable, path: str) -> None:
    rows = spark.range(100, numPartitions=7).filter("id % 3 > 0").selectExpr("cast(id as string) AS name")
    rows.write.format("delta").mode("append").save(path)
    rows.limit(2).write.format("delta").mode("append").save(path)
    assert sorted(row["n"] for row in World(path).rows()) == [10 + 5 * i for i in range(68)]


def test_a_source_that_is_random_is_counted_as_it_is_written(spark: SparkSession, table: DeltaTable, path: str) -> None:
    rows = spark.range(200, numPartitions=3).filter("rand() < 0.5").selectExpr("cast(id as string) AS name")
    rows.write.format("delta").mode("append").save(path)
    found = numbers(path).values()
    assert len(set(found)) == len(found) > 0
    assert max(found) == 10 + 5 * (len(found) - 1)


def test_a_merge_gives_each_row_that_it_inserts_a_number(spark: SparkSession, table: DeltaTable, path: str) -> None:
    anabranch.append(path, [{"name": "a"}, {"name": "b"}], spark=spark)
    source = spark.createDataFrame([("b",), ("c",), ("d",)], "name string").repartition(3).alias("s")
    merge = table.alias("t").merge(source, "t.name = s.name").whenMatchedUpdate(set={"name": "upper(t.name)"})
    merge.whenNotMatchedInsertAll().execute()
    found = numbers(path)
    assert found.keys() == {"a", "B", "c", "d"}
    assert (found["a"], found["B"]) == (10, 15)
    assert len({*found.values()}) == 4
    assert min(found["c"], found["d"]) >= 20


@pytest.mark.exhaustive(
    "tests/commands/dml/test_identity_values.py::test_an_overwrite_counts_on_too",
    "tests/sql/test_identity_columns.py::test_rows_of_many_partitions_are_counted_without_a_gap",
)
def test_an_overwrite_counts_on(spark: SparkSession, table: DeltaTable, path: str) -> None:
    anabranch.append(path, [{"name": "a"}], spark=spark)
    spark.createDataFrame([("z",)], "name string").write.format("delta").mode("overwrite").save(path)
    assert numbers(path) == {"z": 15}
    assert table.check(deep=True).is_clean


def test_a_user_may_give_numbers_by_default_only(
    spark: SparkSession, tmp_path: Path, table: DeltaTable, path: str
) -> None:
    own = spark.createDataFrame([("a", 7)], "name string, n long")
    with pytest.raises(errors.IdentityColumnGiven):
        own.write.format("delta").mode("append").save(path)
    other = table_path(tmp_path)
    free = created(spark, other, generatedByDefaultAs=IdentityGenerator())
    own.write.format("delta").mode("append").save(other)
    anabranch.append(other, [{"name": "b"}], spark=spark)
    assert numbers(other) == {"a": 7, "b": 1}
    for command in (lambda: free.update(set={"n": "n + 1"}), lambda: table.update(set={"n": "n + 1"})):
        with pytest.raises(errors.IdentityColumnGiven):
            command()


def test_a_table_that_counts_lists_the_feature(table: DeltaTable) -> None:
    assert "identityColumns" in table.detail().first()["tableFeatures"]


@pytest.mark.parametrize(
    ("type_", "generated"),
    [
        ("INT", {"generatedAlwaysAs": IdentityGenerator()}),
        ("BIGINT", {"generatedByDefaultAs": "1 + 1"}),
        ("BIGINT", {"generatedAlwaysAs": IdentityGenerator(), "generatedByDefaultAs": IdentityGenerator()}),
        ("BIGINT", {"generatedAlwaysAs": 5}),
    ],
)
def test_what_cannot_be_generated_is_refused(spark: SparkSession, type_: str, generated: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidOption):
        DeltaTable.create(spark).addColumn("n", type_, **generated)
    with pytest.raises(errors.InvalidArgument):
        DeltaTable.create(spark).addColumn("n", "BIGINT", generatedAlwaysAs=IdentityGenerator(1, 0))
