"""Transactions of several statements in SQL: BEGIN TRANSACTION … COMMIT, and BEGIN ATOMIC … END."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._transaction.open_transaction import open_transaction
from anabranch.testing import at_phase

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of three accounts, by its path in SQL."""
    path = f"{tmp_path}/accounts"
    anabranch.append(path, [{"id": number, "n": 100} for number in range(3)])
    yield f"delta.`{path}`"
    is_left_open = open_transaction() is not None
    if is_left_open:
        anabranch.sql(spark, "ROLLBACK")
    assert not is_left_open


def run(spark: SparkSession, *statements: str) -> None:
    for statement in statements:
        anabranch.sql(spark, statement)


def rows(spark: SparkSession, table: str) -> list[tuple[int, int]]:
    return sorted((row.id, row.n) for row in anabranch.sql(spark, f"SELECT id, n FROM {table}").collect())


def versions(table: str) -> int:
    return len(anabranch.history(table[7:-1]))


def test_statements_between_begin_and_commit_are_one_version(spark: SparkSession, table: str) -> None:
    run(spark, "BEGIN TRANSACTION", f"UPDATE {table} SET n = n - 10 WHERE id = 1")
    run(spark, f"INSERT INTO {table} SELECT id + 10, n FROM {table} WHERE id = 1")
    assert rows(spark, table) == [(0, 100), (1, 90), (2, 100), (11, 90)]
    assert versions(table) == 3  # as it shows inside
    run(spark, "COMMIT")
    assert rows(spark, table) == [(0, 100), (1, 90), (2, 100), (11, 90)]
    assert versions(table) == 2


def test_a_rollback_gives_all_up(spark: SparkSession, table: str) -> None:
    run(spark, "BEGIN TRANSACTION", f"DELETE FROM {table}", "ROLLBACK")
    assert rows(spark, table) == [(0, 100), (1, 100), (2, 100)]
    assert versions(table) == 1


def test_a_block_is_one_version(spark: SparkSession, table: str) -> None:
    run(
        spark,
        f"""-- a transfer; of 10
        BEGIN ATOMIC
            UPDATE {table} SET n = n - 10 WHERE id = 1;
            UPDATE {table} SET n = n + 10 WHERE id = 2;
            MERGE INTO {table} t USING (VALUES (2, 1), (7, 7)) AS s(id, n) ON t.id = s.id
                WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *;
        END;""",
    )
    assert rows(spark, table) == [(0, 100), (1, 90), (2, 111), (7, 7)]
    assert versions(table) == 2


def test_a_block_that_fails_has_done_nothing(spark: SparkSession, table: str) -> None:
    with pytest.raises(errors.UnknownColumn):
        run(spark, f"BEGIN ATOMIC DELETE FROM {table} WHERE id = 1; UPDATE {table} SET nope = 1; END")
    assert rows(spark, table) == [(0, 100), (1, 100), (2, 100)]


def test_a_block_runs_again_from_its_text_under_redo(spark: SparkSession, table: str) -> None:
    run(spark, f"ALTER TABLE {table} SET TBLPROPERTIES ('anabranch.conflictResolution' = 'redo')")
    other = anabranch.table(table[7:-1])
    with at_phase("staged", lambda: other.update("id = 1", {"n": "n + 1000"})):
        run(
            spark,
            f"""BEGIN ATOMIC
                UPDATE {table} SET n = n - 10 WHERE id = 1;
                INSERT INTO {table} SELECT 9, sum(n) FROM {table};
            END""",
        )
    assert rows(spark, table) == [(0, 100), (1, 1090), (2, 100), (9, 1290)]
    assert anabranch.history(table[7:-1])[0]["operationMetrics"]["numRedoneRuns"] == "1"


def test_doors_of_python_take_part(spark: SparkSession, table: str) -> None:
    path = table[7:-1]
    with anabranch.transaction(path, spark=spark) as transaction:
        DeltaTable.forPath(spark, path).update("id = 1", {"n": "n + 1"})
        frame = spark.createDataFrame([(5, 5)], "id long, n long")
        anabranch.install(spark)
        frame.write.format("anabranch").mode("append").save(path)
        assert DeltaTable.forPath(spark, path).toDF().count() == 4
        anabranch.sql(spark, f"DELETE FROM {table} WHERE id = 0")
    assert transaction.result is not None
    assert rows(spark, table) == [(1, 101), (2, 100), (5, 5)]
    assert versions(table) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "OPTIMIZE @t",
        "ALTER TABLE @t ADD COLUMN m INT",
        "VACUUM @t",
        "DROP TABLE @t",
        "CREATE TABLE @t_new (id INT)",
        "BEGIN TRANSACTION",
    ],
)
def test_what_may_not_stand_inside_is_refused_by_name(spark: SparkSession, table: str, statement: str) -> None:
    run(spark, "BEGIN TRANSACTION", f"DELETE FROM {table} WHERE id = 1")
    with pytest.raises(errors.NotInTransaction):
        run(spark, statement.replace("@t_new", table[:-1] + "-new`").replace("@t", table))
    run(spark, "COMMIT")
    assert rows(spark, table) == [(0, 100), (2, 100)]


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK WORK"])
def test_an_end_without_a_beginning_is_refused(spark: SparkSession, statement: str) -> None:
    with pytest.raises(errors.NotInTransaction, match="none is open"):
        run(spark, statement)


def test_a_block_does_not_decide_what_runs(spark: SparkSession, table: str) -> None:
    with pytest.raises(errors.NotBuilt, match="IF"):
        run(spark, f"BEGIN ATOMIC IF 1 = 1 THEN DELETE FROM {table}; END IF; END")


def test_a_block_inside_a_transaction_takes_effect_as_a_whole_or_not_at_all(spark: SparkSession, table: str) -> None:
    run(spark, "BEGIN TRANSACTION", f"UPDATE {table} SET n = 1 WHERE id = 0")
    with pytest.raises(errors.UnknownColumn):
        run(spark, f"BEGIN ATOMIC UPDATE {table} SET n = 99 WHERE id = 1; UPDATE {table} SET nope = 1; END")
    run(spark, f"BEGIN ATOMIC UPDATE {table} SET n = 2 WHERE id = 2; DELETE FROM {table} WHERE id = 7; END", "COMMIT")
    assert rows(spark, table) == [(0, 1), (1, 100), (2, 2)]


def test_truncate_may_stand_inside(spark: SparkSession, table: str) -> None:
    run(spark, f"BEGIN ATOMIC TRUNCATE TABLE {table}; INSERT INTO {table} VALUES (5, 5); END")
    assert rows(spark, table) == [(5, 5)]
