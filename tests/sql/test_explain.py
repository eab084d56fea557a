"""EXPLAIN of a change of rows says what it would look at and read, and does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    for low in (0, 10):
        anabranch.append(str(tmp_path / "t"), [{"id": low + n, "v": n} for n in range(3)], spark=spark)
    return f"delta.`{tmp_path}/t`"


@pytest.fixture
def plan(spark: SparkSession, table: str) -> Any:
    def explained(text: str, args: Any = None) -> str:
        before = anabranch.history(table[7:-1])
        found = anabranch.sql(spark, text.replace("@T", table), args)
        assert found.columns == ["plan"]
        (row,) = found.collect()
        assert anabranch.history(table[7:-1]) == before
        return str(row["plan"])

    return explained


def test_a_delete_and_an_update_say_which_files_they_look_at(plan: Any) -> None:
    for text in ("EXPLAIN DELETE FROM @T WHERE id > 5", "EXPLAIN UPDATE @T AS a SET v = a.v + 1 WHERE a.id > 5"):
        shown = plan(text)
        assert "at version 1: 1 of 2 files" in shown
        assert "id > 5: 1 ruled out" in shown
        assert "== Physical Plan ==" in shown
        assert "Filter" in shown


def test_a_parameter_and_a_subquery_stand_in_the_condition(plan: Any) -> None:
    assert "2 of 2 files" in plan("EXPLAIN DELETE FROM @T WHERE v = :v", {"v": 1})
    assert "Join" in plan("EXPLAIN DELETE FROM @T WHERE id IN (SELECT max(id) FROM @T)")


def test_a_merge_shows_the_join_that_its_clauses_need(plan: Any) -> None:
    head = "EXPLAIN MERGE INTO @T AS t USING (WITH s AS (SELECT 1 AS id) SELECT * FROM s) AS s ON t.id = s.id"
    assert "Inner" in plan(f"{head} WHEN MATCHED THEN DELETE")
    assert "RightOuter" in plan(f"{head} WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
    both = f"{head} WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    assert "FullOuter" in plan(both)


def test_a_merge_says_where_each_expression_is_computed(plan: Any) -> None:
    shown = plan(
        "EXPLAIN MERGE INTO @T AS t USING @T AS s ON t.id = s.id AND s.v > 1 WHEN MATCHED AND t.v < s.v THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v + 1 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, shiftright(s.v % 2, 0))"
    )
    assert "ON: computed without Spark" in shown
    assert "WHEN MATCHED AND t.v < s.v: computed without Spark" in shown
    assert "UPDATE v: computed without Spark" in shown
    assert "INSERT v: computed by Spark, since `shiftright` is not in the table of functions" in shown
    shown = plan("EXPLAIN MERGE INTO @T AS t USING @T AS s ON t.id > s.id WHEN MATCHED THEN DELETE")
    assert "ON: computed by Spark, since it requires no column of the table to equal one of the source" in shown


def test_each_step_of_a_change_says_what_does_it(plan: Any) -> None:
    shown = plan("EXPLAIN UPDATE @T SET v = v + 1")
    assert "  find rows: Arrow\n  write new rows: Arrow\n" in shown
    shown = plan("EXPLAIN UPDATE @T SET v = shiftright(v % 3, 0) WHERE id > 5")
    assert "  find rows: Arrow\n  write new rows: Spark, since `shiftright` is not in the table of functions\n" in shown
    shown = plan("EXPLAIN MERGE INTO @T AS t USING @T AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    assert "  join: Arrow\n  write new rows: Arrow\n" in shown


def test_an_insert_shows_the_rows_that_it_would_write(plan: Any) -> None:
    shown = plan("EXPLAIN WITH s AS (SELECT id FROM range(7)) INSERT INTO @T (id) SELECT id FROM s")
    assert "INSERT: file://" in shown
    assert "Range" in shown
    assert "  write rows: Spark, since the rows are of a query\n" in shown
    assert "== Physical Plan ==" in plan("EXPLAIN INSERT INTO @T VALUES (1, DEFAULT)")
    assert "  write rows: Arrow\n" in plan("EXPLAIN INSERT INTO @T VALUES (1, 2)")


def test_each_mode_is_sparks(plan: Any) -> None:
    assert "== Analyzed Logical Plan ==" in plan("EXPLAIN EXTENDED TRUNCATE TABLE @T")
    assert "(1)" in plan("EXPLAIN FORMATTED UPDATE @T SET v = 2")
    assert "Statistics(" in plan("EXPLAIN COST DELETE FROM @T")
    assert "WholeStageCodegen" in plan("EXPLAIN CODEGEN INSERT INTO @T SELECT id, 1 FROM range(3)")


def test_what_the_change_refuses_its_explanation_refuses(plan: Any) -> None:
    with pytest.raises(errors.UnknownColumn):
        plan("EXPLAIN UPDATE @T SET nope = 1")
    with pytest.raises(errors.InputError, match="nope"):
        plan("EXPLAIN DELETE FROM @T WHERE nope = 1")
    with pytest.raises(errors.NotBuilt):
        plan("EXPLAIN UPDATE @T SET v = (SELECT 1)")


def test_an_optimize_says_which_files_it_would_write_anew(plan: Any, table: str) -> None:
    shown = plan("EXPLAIN OPTIMIZE @T")
    assert "OPTIMIZE: file://" in shown
    assert "at version 1: writes 2 of 2 files anew, " in shown
    assert shown.endswith("\n  pack 2 files, in 1 group: Arrow")
    assert plan("EXPLAIN OPTIMIZE @T ZORDER BY (id, v)").endswith("\n  order 2 files by id, v, in 1 group: Arrow")
    with pytest.raises(errors.InvalidCondition):
        plan("EXPLAIN OPTIMIZE @T WHERE id = 1")
    anabranch.sql(SparkSession.active(), f"OPTIMIZE {table}")
    assert "writes 0 of 1 files anew, 0 bytes" in plan("EXPLAIN OPTIMIZE @T")
