"""With Spark a commit says of each of its steps what did it, Arrow or Spark, and why Spark did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch._arrow import finding
from anabranch.tables import DeltaTable

pytestmark = pytest.mark.spark

QUERY = "write rows: Spark, since the rows are of a query"


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": n, "s": text} for n, text in enumerate(["1", " 2", "x"])], spark=spark)
    return path


def said(path: str) -> list[str]:
    return str(anabranch.history(path, 1)[0]["steps"]).split("\n")


def explained(spark: SparkSession, path: str, statement: str) -> str:
    (row,) = anabranch.sql(spark, f"EXPLAIN {statement.replace('@T', f'delta.`{path}`')}").collect()
    return str(row["plan"])


def run(spark: SparkSession, path: str, statement: str) -> list[str]:
    anabranch.sql(spark, statement.replace("@T", f"delta.`{path}`")).collect()
    return said(path)


def test_a_step_that_spark_does_says_why_as_its_plan_did(spark: SparkSession, path: str) -> None:
    update = "UPDATE @T SET id = shiftright(id * 2, 0) WHERE id >= 1"
    plan = explained(spark, path, update)
    steps = run(spark, path, update)
    assert steps == [
        "find rows: Arrow",
        "write new rows: Spark, since `shiftright` is not in the table of functions",
    ]
    assert all(f"  {each}\n" in plan for each in steps)


def test_a_step_that_arrow_gives_up_in_the_middle_was_sparks(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in the rows, no plan can know; and what an error of a stranger says, nobody repeats."""
    update = "UPDATE @T SET id = CAST(s AS BIGINT) + 1 WHERE id <= 1"
    assert "  write new rows: Arrow\n" in explained(spark, path, update)
    reason = "a text is not a plain whole number"
    assert run(spark, path, update) == ["find rows: Arrow", f"write new rows: Spark, since {reason}"]

    def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a row holds 4711")

    monkeypatch.setattr(finding, "find", failing)
    assert run(spark, path, "DELETE FROM @T WHERE s LIKE '%2'") == ["find rows: Spark, since Arrow raised RuntimeError"]


def test_no_literal_of_a_statement_gets_into_its_steps(spark: SparkSession, path: str) -> None:
    steps = run(spark, path, """UPDATE @T SET s = "it's\\\\tsecret" WHERE id = 1""")
    assert "secret" not in "".join(steps)
    assert steps[1].startswith("write new rows:")


def test_a_merge_of_a_dataframe_says_what_joined_it_and_what_wrote(spark: SparkSession, path: str) -> None:
    source = spark.createDataFrame([(1, "new"), (9, "nine")], "id BIGINT, s STRING")
    table = DeltaTable.forPath(spark, path)
    for on, join in (
        ("t.id = q.id", "join: Arrow"),
        ("t.id <=> q.id", "join: Arrow"),
        (F.col("t.id").eqNullSafe(F.col("q.id")), "join: Arrow"),
        (F.equal_null("t.id", "q.id"), "join: Arrow"),
        ("t.id <= q.id AND t.id >= q.id", "join: Spark, since ON requires no columns to be equal"),
    ):
        merge = table.alias("t").merge(source.alias("q"), on).whenMatchedUpdateAll().whenNotMatchedInsertAll()
        merge.execute()
        assert said(path)[:2] == ["read the source: Spark, since the rows are of a query", join]
        assert said(path)[2].startswith("write new rows: ")
    assert table.history(1).columns == DeltaTable.forPath(spark, path).history().columns
    assert "steps" not in table.history(1).columns


def test_a_merge_of_a_table_says_what_read_it_as_its_plan_did(spark: SparkSession, path: str) -> None:
    merge = "MERGE INTO @T t USING @T q ON t.id = q.id WHEN MATCHED AND q.id > 0 THEN UPDATE SET s = upper(q.s)"
    plan = explained(spark, path, merge)
    steps = run(spark, path, merge)
    assert steps == ["read the source: Arrow", "join: Arrow", "write new rows: Arrow"]
    assert "\n".join(f"  {each}" for each in steps) in plan
    query = merge.replace("USING @T", "USING (SELECT * FROM @T WHERE id < 9)")
    assert "  read the source: Arrow\n" in explained(spark, path, query)
    query = merge.replace("USING @T", "USING (SELECT DISTINCT * FROM @T)")
    assert "  read the source: Spark, since the rows are of a query\n" in explained(spark, path, query)


def test_a_merge_of_nested_rows_says_which_column_spark_holds(spark: SparkSession, path: str) -> None:
    source = "(SELECT id, named_struct('s', s) AS both FROM @T)"
    merge = f"MERGE INTO @T t USING {source} q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = upper(q.both.s)"
    assert "join: Spark, since the column both of the source is held by Spark" in run(spark, path, merge)


def test_an_insert_of_a_query_is_written_by_spark_and_one_of_literals_by_arrow(spark: SparkSession, path: str) -> None:
    assert run(spark, path, "INSERT INTO @T SELECT id + 10, s FROM @T") == [QUERY]
    assert run(spark, path, "INSERT INTO @T VALUES (100L, 'a')") == ["write rows: Arrow"]
    assert run(spark, path, "INSERT OVERWRITE @T SELECT id, s FROM @T") == [QUERY, "find rows: the log"]


def test_files_that_arrow_does_not_pack_are_packed_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "nan")
    for value in (1.0, float("nan")):
        anabranch.append(path, [{"x": value}], spark=spark)
    reason = "Arrow does not read or write what is in the files just as Spark does"
    assert run(spark, path, "OPTIMIZE @T") == [f"pack 2 files, in 1 group: Spark, since {reason}"]
    anabranch.append(path, [{"x": 2.0}], spark=spark)
    assert run(spark, path, "OPTIMIZE @T ZORDER BY (x)")[0].startswith("order 2 files by x, in 1 group: ")
