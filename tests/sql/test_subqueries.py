"""DELETE and UPDATE whose condition asks another table, or the same one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch.testing import at_phase
from tests.support.tiers import few_of
from tests.support.worlds import World, assert_others_agree

pytestmark = pytest.mark.spark


@pytest.fixture(params=["true", "false"], ids=["vectors", "plain"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DeltaTable]:
    """Rows 0 to 5 with x = 10 id, and a view `wanted` of 1, 3 and NULL."""
    path, session = str(tmp_path / "t"), anabranch.install(spark)
    World(path).create([{"id": i, "x": 10 * i} for i in range(6)], delta_enableDeletionVectors=request.param)
    session.sql("SELECT * FROM VALUES (1L), (3L), (NULL) AS wanted (key)").createOrReplaceTempView("wanted")
    yield DeltaTable.forPath(session, path)
    assert anabranch.check(path, deep=True).is_clean
    assert_others_agree(path)


def ids(folder: Path) -> list[int]:
    return [row["id"] for row in World(f"{folder}/t").rows()]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id IN (SELECT key FROM wanted)", [0, 2, 4, 5]),
        ("id NOT IN (SELECT key FROM wanted)", [0, 1, 2, 3, 4, 5]),  # a NULL among them: never TRUE
        ("id NOT IN (SELECT key FROM wanted WHERE key IS NOT NULL)", [1, 3]),
        ("EXISTS (SELECT 1 FROM wanted w WHERE w.key = id + 1)", [1, 3, 4, 5]),
        ("x > (SELECT max(key) * 10 FROM wanted)", [0, 1, 2, 3]),
        ("id = 5 OR id IN (SELECT key FROM wanted)", [0, 2, 4]),
        ("x < (SELECT max(w.key) * 25 FROM wanted w WHERE w.key = id)", [0, 2, 4, 5]),
        ("CASE WHEN id < 2 THEN x < (SELECT max(w.key) * 25 FROM wanted w WHERE w.key >= id) END", [2, 3, 4, 5]),
        ("id = (SELECT w.key FROM wanted w WHERE w.key <= id ORDER BY w.key DESC LIMIT 1)", [0, 2, 4, 5]),
        ("x > (SELECT max(n) FROM (SELECT id + 30 AS n))", [0, 1, 2, 3]),
        ("x < largest(id)", [0, 2, 4, 5]),
    ],
)
def test_a_delete_asks_another_table(
    spark: SparkSession, table: DeltaTable, where: str, left: list[int], tmp_path: Path
) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION largest(i BIGINT) RETURNS BIGINT"
        " RETURN (SELECT max(w.key) * 25 FROM wanted w WHERE w.key = i)"
    )
    table.delete(where)
    assert ids(tmp_path) == left


def test_what_a_where_may_hold_in_spark_a_change_may_hold_too(
    spark: SparkSession, table: DeltaTable, tmp_path: Path
) -> None:
    """The statement of the report, by each door that takes a condition with a subquery."""
    path = table.detail().first()["location"]  # type: ignore[index]
    largest = f"(SELECT max(y.x) FROM delta.`{path}` y WHERE y.id % 2 = t.id % 2)"
    spark.sql(f"DELETE FROM delta.`{path}` t WHERE x < {largest} AND id < 2")
    assert ids(tmp_path) == [2, 3, 4, 5]
    spark.sql(f"UPDATE delta.`{path}` AS t SET x = -1 WHERE x < {largest}")
    assert sorted(row["x"] for row in World(f"{tmp_path}/t").rows()) == [-1, -1, 40, 50]
    replaced = f"(SELECT max(y.x) FROM delta.`{path}` y WHERE y.x >= z)"
    spark.sql(f"INSERT INTO delta.`{path}` REPLACE WHERE x = {replaced.replace('z', '50')} VALUES (7, 50)")
    assert ids(tmp_path) == [2, 3, 4, 7]
    for low, left, asked in few_of(
        [
            (40, [4, 7], lambda same: F.col("t.x") < same.select(F.max("o.x") + 1).scalar()),
            (50, [7], lambda same: same.select("x").exists()),
        ],
        1,
    ):
        same = table.toDF().alias("o").where(F.col("t.id").outer() == F.col("o.id"))
        table.alias("t").delete((F.col("t.x") < low) & asked(same))
        assert ids(tmp_path) == left


def test_subqueries_of_a_delete_or_an_update_see_the_tables_of_a_with_before_it(
    spark: SparkSession, table: DeltaTable, tmp_path: Path
) -> None:
    path = table.detail().first()["location"]  # type: ignore[index]
    chosen = f"WITH w AS (SELECT key FROM wanted), chosen AS (SELECT t.id FROM delta.`{path}` t JOIN w ON t.id = w.key)"
    spark.sql(f"{chosen} UPDATE delta.`{path}` AS t SET x = -1 WHERE EXISTS (SELECT 1 FROM chosen c WHERE c.id = t.id)")
    assert [row["x"] for row in World(f"{tmp_path}/t").rows()] == [0, -1, 20, -1, 40, 50]
    spark.sql(f"{chosen} DELETE FROM delta.`{path}` WHERE id = 5 OR id IN (SELECT id FROM chosen)")
    assert ids(tmp_path) == [0, 2, 4]


@pytest.mark.parametrize(
    "where",
    [
        "x < (SELECT max(w.key + rand()) FROM wanted w WHERE w.key = id)",
        "x < (SELECT max(w.key) * rand() FROM wanted w WHERE w.key = id)",
        "EXISTS (SELECT 1 FROM wanted w WHERE w.key = id AND rand() > 0.5)",
    ],
)
def test_a_subquery_that_is_another_one_each_time_is_refused(table: DeltaTable, where: str, tmp_path: Path) -> None:
    with pytest.raises(errors.Nondeterministic):
        table.delete(where)
    assert len(ids(tmp_path)) == 6


@pytest.mark.exhaustive(
    "tests/sql/test_subqueries.py::test_what_a_where_may_hold_in_spark_a_change_may_hold_too",
    "tests/sql/test_subqueries.py::test_a_delete_asks_another_table",
)
def test_an_update_asks_another_table(table: DeltaTable, tmp_path: Path) -> None:
    table.update("id IN (SELECT key FROM wanted)", {"x": "x + 1"})
    assert [row["x"] for row in World(f"{tmp_path}/t").rows()] == [0, 11, 20, 31, 40, 50]


def test_it_goes_by_files_beside_other_writers(table: DeltaTable, tmp_path: Path) -> None:
    """Another row of the same file would not stop a condition that depends on its own row alone."""
    path = f"{tmp_path}/t"
    with (
        pytest.raises(errors.DeltaConcurrentModificationException) as refused,
        at_phase("staged", lambda: table.delete("id = 5")),
    ):
        table.delete("id IN (SELECT key FROM wanted)")
    assert ids(tmp_path) == [0, 1, 2, 3, 4]
    if World(path).log.snapshot().metadata.configuration["delta.enableDeletionVectors"] == "true":
        assert refused.value.getCondition().endswith("PREDICATES_NEED_REWRITE")
    assert len(anabranch.history(path)) == 2


def test_what_was_asked_of_the_table_itself_counts_as_read_since_then(
    spark: SparkSession, table: DeltaTable, tmp_path: Path
) -> None:
    """The view shows the table before the winner; the winner came after the view, and before the command."""
    table.toDF().createOrReplaceTempView("own")
    World(f"{tmp_path}/t").update("id = 0", x=999)
    with pytest.raises(errors.DeltaConcurrentModificationException):
        table.delete("x = (SELECT max(x) FROM own)")
    assert len(ids(tmp_path)) == 6
    table.toDF().createOrReplaceTempView("own")
    table.delete("x = (SELECT max(x) FROM own)")
    assert ids(tmp_path) == [1, 2, 3, 4, 5]


def test_an_overwrite_whose_condition_asks_an_older_version_is_refused_as_a_delete_is(
    spark: SparkSession, table: DeltaTable, tmp_path: Path
) -> None:
    path = f"{tmp_path}/t"
    replacing = f"INSERT INTO delta.`{path}` REPLACE WHERE id IN (SELECT id FROM own WHERE x = 30) VALUES (3, 31)"
    table.toDF().createOrReplaceTempView("own")
    World(path).update("id = 3", x=0)
    with pytest.raises(errors.DeltaConcurrentModificationException):
        spark.sql(replacing)
    assert len(anabranch.history(path)) == 2
    World(path).update("id = 3", x=30)
    table.toDF().createOrReplaceTempView("own")
    spark.sql(replacing)
    assert sorted(row["x"] for row in World(path).rows()) == [0, 10, 20, 31, 40, 50]


def test_a_function_that_asks_an_older_version_is_a_subquery_too(
    spark: SparkSession, table: DeltaTable, tmp_path: Path
) -> None:
    path = f"{tmp_path}/t"
    table.toDF().createOrReplaceTempView("own")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION most() RETURNS BIGINT RETURN (SELECT max(x) FROM own)")
    World(path).update("id = 0", x=999)
    changes = (
        lambda: table.delete("id = 5 AND x = most()"),
        lambda: spark.sql(f"UPDATE delta.`{path}` SET x = 0 WHERE id = 5 AND x = most()"),
        lambda: table.delete((F.col("id") == 5) & (F.col("x") == F.call_function("most"))),
        lambda: spark.sql(f"INSERT INTO delta.`{path}` REPLACE WHERE x = most() VALUES (5, 50)"),
    )
    for change in few_of(changes, 3):
        with pytest.raises(errors.DeltaConcurrentModificationException):
            change()
    assert len(anabranch.history(path)) == 2


def test_a_table_that_is_not_there_is_an_invalid_condition(table: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidCondition, match="nowhere"):
        table.delete("id IN (SELECT key FROM nowhere)")
    assert len(ids(tmp_path)) == 6


def test_elsewhere_a_subquery_is_refused(spark: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(errors.NotBuilt):
        table.update("id = 1", {"x": "(SELECT max(key) FROM wanted)"})
    rows, path = spark.range(1).selectExpr("id", "id x"), f"{tmp_path}/t"
    overwrite = rows.write.format("delta").mode("overwrite").option("replaceWhere", "id IN (SELECT 1)")
    with pytest.raises(errors.NotBuilt):
        overwrite.save(path)


@pytest.mark.usefixtures("table")
def test_a_command_whose_subquery_reads_the_tables_own_files_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    files = str(next(iter(Path(path).rglob("*.parquet"))).parent)
    raw = f"(SELECT max(x) FROM parquet.`{files}`)"
    for text in (
        f"INSERT INTO delta.`{path}` SELECT 9, {raw}",
        f"DELETE FROM delta.`{path}` WHERE x = {raw}",
        f"MERGE INTO delta.`{path}` t USING (SELECT {raw} AS x) s ON t.x = s.x WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(errors.UnknownSourceVersion):
            spark.sql(text)


def test_a_command_whose_subquery_may_read_the_tables_own_files_is_not_blind(
    spark: SparkSession, table: DeltaTable, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    files = str(next(iter(Path(path).rglob("*.parquet"))).parent)
    (tmp_path / "elsewhere").mkdir()
    pq.write_table(pa.table({"id": [0], "x": [0]}), tmp_path / "elsewhere/a.parquet")
    spark.read.parquet(str(tmp_path / "elsewhere"), files).createOrReplaceTempView("wanted")
    may = f"INSERT INTO delta.`{path}` SELECT 9, (SELECT max(x) FROM wanted)"
    with (
        pytest.raises(errors.DeltaConcurrentModificationException),
        at_phase("staged", lambda: table.delete("id = 5")),
    ):
        spark.sql(may)
    spark.sql(may)
    assert not anabranch.history(path)[0]["isBlindAppend"]
    assert ids(tmp_path) == [0, 1, 2, 3, 4, 9]


# -- subqueries that are values ----------------------------------------------------------------------------------------


def xs(folder: Path) -> list[int]:
    return [row["x"] for row in World(f"{folder}/t").rows()]


def test_an_update_sets_the_values_of_subqueries(spark: SparkSession, table: DeltaTable, tmp_path: Path) -> None:
    path = table.detail().first()["location"]  # type: ignore[index]
    spark.sql(f"UPDATE delta.`{path}` AS t SET x = t.x + (SELECT max(key) FROM wanted) WHERE t.id > (SELECT 3)")
    assert xs(tmp_path) == [0, 10, 20, 30, 43, 53]
    spark.sql(f"UPDATE delta.`{path}` SET x = coalesce((SELECT key FROM wanted WHERE key > 9), -1) WHERE id = 5")
    assert xs(tmp_path)[5] == -1
    mine = f"(SELECT max(x) FROM delta.`{path}`)"
    spark.sql(f"WITH w AS (SELECT 7 AS n) UPDATE delta.`{path}` SET x = {mine} + (SELECT n FROM w) WHERE id = 0")
    assert xs(tmp_path)[0] == 50


def test_an_update_that_asks_its_own_table_for_a_value_has_read_all_of_it(
    spark: SparkSession, table: DeltaTable, tmp_path: Path
) -> None:
    path = table.detail().first()["location"]  # type: ignore[index]
    statement = f"UPDATE delta.`{path}` SET x = (SELECT max(x) FROM delta.`{path}`) WHERE id = 0"
    with (
        pytest.raises(errors.DeltaConcurrentModificationException),
        at_phase("staged", lambda: World(path.removeprefix("file:")).update("id = 5", x=500)),
    ):
        spark.sql(statement)
    other = f"UPDATE delta.`{path}` SET x = (SELECT max(key) FROM wanted) WHERE id = 0"
    with at_phase("staged", lambda: World(path.removeprefix("file:")).update("id = 4", x=400)):
        spark.sql(other)
    assert xs(tmp_path) == [3, 10, 20, 30, 400, 500]


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        ("(SELECT max(key) FROM wanted w WHERE w.key = t.id)", "NOT_BUILT_YET"),
        ("CASE WHEN id IN (SELECT key FROM wanted) THEN 1 END", "NOT_BUILT_YET"),
        ("(SELECT array(key) FROM wanted LIMIT 1)", "NOT_BUILT_YET"),
        ("(SELECT key FROM wanted)", "EXECUTION_FAILED"),
        ("(SELECT nobody FROM wanted)", "NOT_BUILT_YET"),
    ],
)
def test_other_subqueries_in_a_value_are_refused(
    spark: SparkSession, table: DeltaTable, value: str, condition: str, tmp_path: Path
) -> None:
    path = table.detail().first()["location"]  # type: ignore[index]
    with pytest.raises(errors.AnabranchError) as refused:
        spark.sql(f"UPDATE delta.`{path}` AS t SET x = {value}")
    assert refused.value.getCondition() == condition
    assert xs(tmp_path) == [0, 10, 20, 30, 40, 50]
