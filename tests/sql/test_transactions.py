"""Transactions of several statements in SQL: BEGIN TRANSACTION … COMMIT, and BEGIN ATOMIC … END."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

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


def on_thread(work: Callable[[], Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


READS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "spark.read": lambda spark, path: spark.read.format("delta").load(path),
    "toDF": lambda spark, path: DeltaTable.forPath(spark, path).toDF(),
    "anabranch.read": lambda spark, path: anabranch.read(path, spark=spark),
    "sql": lambda spark, path: anabranch.sql(spark, f"SELECT * FROM delta.`{path}`"),
}


@pytest.mark.parametrize("door", READS)
def test_what_a_frame_shows_has_been_read(spark: SparkSession, table: str, door: str) -> None:
    path = table[7:-1]

    def program() -> None:
        with anabranch.transaction(path, spark=spark, isolation_level="Serializable"):
            total = sum(row.n for row in READS[door](spark, path).collect())
            anabranch.append(path, [{"id": 9, "n": total}])
            on_thread(lambda: anabranch.table(path).update("id = 1", {"n": "0"}))

    with pytest.raises(errors.DeltaConcurrentModificationException):
        program()


LOOKS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "anabranch.read": lambda spark, path: anabranch.read(path, "id = 1", spark=spark),
    "anabranch.read, in part": lambda spark, path: anabranch.read(path, "id = 1 AND hash(n) IS NOT NULL", spark=spark),
    "a query of one table": lambda spark, path: anabranch.sql(spark, f"SELECT n FROM delta.`{path}` WHERE id = 1"),
    "a query that Spark runs": lambda spark, path: anabranch.sql(
        spark, f"SELECT sum(n) AS n FROM delta.`{path}` AS t WHERE t.id = 1 AND hash(n) IS NOT NULL GROUP BY id"
    ),
    "a join": lambda spark, path: anabranch.sql(
        spark, f"SELECT t.n FROM delta.`{path}` AS t JOIN VALUES (1) AS v(one) ON v.one = t.id WHERE t.id = 1"
    ),
}


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
@pytest.mark.parametrize("door", LOOKS)
def test_a_query_that_selects_rows_has_read_just_these(spark: SparkSession, table: str, door: str, level: str) -> None:
    path = table[7:-1]

    def program(others: int) -> None:
        with anabranch.transaction(path, spark=spark, isolation_level=level):
            n = LOOKS[door](spark, path).collect()[0].n
            anabranch.append(path, [{"id": 9, "n": n}])
            on_thread(lambda: anabranch.table(path).update(f"id = {others}", {"n": "n + 1"}))

    program(2)
    assert rows(spark, table) == [(0, 100), (1, 100), (2, 101), (9, 100)]
    with pytest.raises(errors.DeltaConcurrentModificationException):
        program(1)


@pytest.mark.parametrize("comes", [1, 5])
def test_a_query_conflicts_with_rows_that_come_in_if_it_would_have_selected_them(
    spark: SparkSession, table: str, comes: int
) -> None:
    path = table[7:-1]

    def program() -> None:
        with anabranch.transaction(path, spark=spark, isolation_level="Serializable"):
            count = LOOKS["a query that Spark runs"](spark, path).count()
            anabranch.append(path, [{"id": 9, "n": count}])
            on_thread(lambda: anabranch.append(path, [{"id": comes, "n": 7}]))

    if comes == 5:
        return program()
    with pytest.raises(errors.ConcurrentAppendException):
        program()


def test_a_query_that_shows_where_rows_lie_has_read_the_files(spark: SparkSession, table: str) -> None:
    path = table[7:-1]

    def program() -> None:
        with anabranch.transaction(path, spark=spark):
            place = anabranch.sql(spark, f"SELECT _metadata.file_name AS n FROM {table} WHERE id = 1").collect()
            anabranch.append(path, [{"id": 9, "n": len(place)}])
            on_thread(lambda: anabranch.table(path).update("id = 2", {"n": "0"}))

    with pytest.raises(errors.DeltaConcurrentModificationException):
        program()


def test_a_version_that_the_transaction_has_made_holds_rows_that_are_read(spark: SparkSession, table: str) -> None:
    path = table[7:-1]

    def program() -> None:
        with anabranch.transaction(path, spark=spark):
            anabranch.append(path, [{"id": 9, "n": 1}])
            run(spark, f"INSERT INTO {table} SELECT id + 10, n FROM {table} VERSION AS OF 1 WHERE id = 1")
            on_thread(lambda: anabranch.table(path).update("id IN (1, 11)", {"n": "0"}))

    with pytest.raises(errors.DeltaConcurrentModificationException):
        program()


@pytest.mark.parametrize("begins", ["BEGIN TRANSACTION", "with"])
def test_the_level_of_a_session_is_that_of_its_transactions(spark: SparkSession, table: str, begins: str) -> None:
    path = table[7:-1]
    spark.conf.set("anabranch.isolationLevel", "Serializable")
    try:

        def program() -> None:
            with ExitStack() as scope:
                if begins == "with":
                    scope.enter_context(anabranch.transaction(path, spark=spark))
                else:
                    run(spark, begins)
                    scope.callback(lambda: run(spark, "COMMIT"))
                run(spark, f"UPDATE {table} SET n = n + 1 WHERE n = 100")
                on_thread(lambda: anabranch.append(path, [{"id": 9, "n": 100}]))

        with pytest.raises(errors.ConcurrentAppendException):
            program()
    finally:
        spark.conf.unset("anabranch.isolationLevel")


def test_values_by_position_are_counted_through_a_block(spark: SparkSession, table: str) -> None:
    text = f"BEGIN ATOMIC DELETE FROM {table} WHERE id = ?; UPDATE {table} SET n = ? WHERE id = ?; END"
    anabranch.sql(spark, text, [0, 7, 2])
    assert rows(spark, table) == [(1, 100), (2, 7)]


def test_a_statement_that_reads_what_the_session_calls_so_does_not_run_again(spark: SparkSession, table: str) -> None:
    """A view may be another one by then, which the program would not notice."""
    path = table[7:-1]

    def program() -> None:
        with anabranch.transaction(path, spark=spark, conflict_resolution="redo"):
            run(spark, f"UPDATE {table} SET n = n + 1 WHERE id = 1")
            for number in (10, 11):
                spark.createDataFrame([(number, 0)], "id long, n long").createOrReplaceTempView("batch")
                run(spark, f"INSERT INTO {table} SELECT * FROM batch")
            on_thread(lambda: anabranch.table(path).update("id = 1", {"n": "n + 5"}))

    with pytest.raises(errors.DeltaConcurrentModificationException) as conflict:
        program()
    assert conflict.value.retryable
    assert rows(spark, table) == [(0, 100), (1, 105), (2, 100)]


def test_statements_that_read_their_table_only_run_again(spark: SparkSession, table: str) -> None:
    path = table[7:-1]
    with anabranch.transaction(path, spark=spark, conflict_resolution="redo"):
        run(spark, f"UPDATE {table} SET n = n + 1 WHERE id = 1", f"INSERT INTO {table} VALUES (9, 1)")
        on_thread(lambda: anabranch.table(path).update("id = 1", {"n": "n + 5"}))
    assert rows(spark, table) == [(0, 100), (1, 106), (2, 100), (9, 1)]
