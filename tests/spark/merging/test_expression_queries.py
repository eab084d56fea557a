"""A function may hide a query of the command's own table, in each place where an expression may stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from tests.support.readers import deltalake_rows

pytestmark = pytest.mark.spark

ONE = "(SELECT 1 AS id) s"
STATEMENTS = {
    "value": "UPDATE {t} SET x = most() + 1 WHERE id = 1",
    "ON": f"MERGE INTO {{t}} t USING {ONE} ON t.id = s.id AND t.x < most() WHEN MATCHED THEN UPDATE SET x = 10",
    "condition": f"MERGE INTO {{t}} t USING {ONE} ON t.id = s.id WHEN MATCHED AND t.x < most() THEN UPDATE SET x = 10",
    "value of a match": f"MERGE INTO {{t}} t USING {ONE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = most() + 1",
    "value of an insert": f"MERGE INTO {{t}} t USING {ONE} ON t.id = s.id + 2 WHEN NOT MATCHED THEN INSERT (id, x)"
    " VALUES (id, most() + 1)",
    "without a match": f"MERGE INTO {{t}} t USING {ONE} ON t.id = s.id"
    " WHEN NOT MATCHED BY SOURCE AND x >= most() THEN UPDATE SET x = most() + 1",
}
"""Names without a side stand where only one side is seen."""


def show(spark: SparkSession, rows: DataFrame) -> None:
    """Let a function ask these rows for the largest of their values."""
    rows.createOrReplaceTempView("own")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION most() RETURNS BIGINT RETURN (SELECT max(x) FROM own)")


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = f"{tmp_path}/t"
    anabranch.append(path, [{"id": 1, "x": 0}, {"id": 2, "x": 0}])
    show(spark, anabranch.read(path, spark=spark))
    DeltaTable.forPath(spark, path).update("id = 2", {"x": "9"})
    return path


def test_no_statement_may_ask_an_older_version_and_each_may_ask_the_newest(spark: SparkSession, path: str) -> None:
    texts = {where: text.format(t=f"delta.`{path}`") for where, text in STATEMENTS.items()}
    for text in texts.values():
        with pytest.raises(errors.DeltaConcurrentModificationException):
            anabranch.sql(spark, text)
    assert len(anabranch.history(path)) == 2
    show(spark, anabranch.read(path, spark=spark))
    anabranch.sql(spark, texts["condition"])
    assert sorted(row["x"] for row in deltalake_rows(path)) == [9, 10]


def test_columns_are_asked_as_texts_are(spark: SparkSession, path: str) -> None:
    table, source = DeltaTable.forPath(spark, path), spark.range(1, 2).alias("s")
    most = F.call_function("most")
    with pytest.raises(errors.DeltaConcurrentModificationException):
        table.update("id = 1", {"x": most})
    with pytest.raises(errors.DeltaConcurrentModificationException):
        table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"x": most}).execute()
    assert len(anabranch.history(path)) == 2


def test_what_asks_another_table_alone_is_no_reader_of_this_one(spark: SparkSession, path: str) -> None:
    show(spark, spark.range(5).selectExpr("id AS x"))
    anabranch.sql(spark, STATEMENTS["value"].format(t=f"delta.`{path}`"))
    assert sorted(row["x"] for row in deltalake_rows(path)) == [5, 9]
