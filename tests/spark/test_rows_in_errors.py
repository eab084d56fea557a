"""Values of rows, where they are switched off: no error of a door on Spark holds one, whatever Spark says."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import errors
from anabranch.tables import DeltaTable
from tests.support.failing_rows import COLUMNS, PLANTED, doors, prepare, said, shows
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("how", ["environment", "property"])
def test_no_door_on_spark_quotes_a_row(
    how: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anabranch.install(spark)
    quiet = {"anabranch.rowsInErrors": "false"} if how == "property" else {}
    path = str(tmp_path / "t")
    prepare(spark, path, quiet)
    if how == "environment":
        monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", "false")
    shown = {}
    for door, run in few_of([*doors(spark, path, quiet).items()], 9):
        with pytest.raises(errors.AnabranchError) as told:
            run()
        text = said(told.value)
        if shows(text):
            shown[door] = text
        assert path in text or "not shown" in text, door
    assert not shown


def test_the_same_doors_quote_their_rows_where_nobody_minds(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.sql(spark, f"CREATE TABLE delta.`{path}` ({COLUMNS})")
    every = doors(spark, path, {})
    for door in ("length", "sql: cast of a text", "sql: spark's cast", "raise_error"):
        with pytest.raises(errors.AnabranchError) as told:
            every[door]()
        assert PLANTED in str(told.value), door


def test_a_table_that_keeps_its_rows_out_does_so_where_others_are_written_from_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In SQL and by DataFrames, into new tables and old, whatever those say themselves; and nowhere else."""
    source, target = f"delta.`{tmp_path}/source`", f"delta.`{tmp_path}/target`"
    anabranch.append(f"{tmp_path}/source", [{"s": PLANTED}], properties={"anabranch.rowsInErrors": "false"})
    anabranch.append(f"{tmp_path}/target", pa.table({"id": pa.array([1], pa.int32()), "s": ["a"]}))
    rows = spark.read.format("anabranch").load(f"{tmp_path}/source")
    table, cast = DeltaTable.forPath(spark, f"{tmp_path}/target"), F.col("s").cast("int").alias("id")
    merge = table.alias("t").merge(rows.alias("q"), "t.id = 5").whenNotMatchedInsert(values={"id": "q.s"})
    failing: dict[str, Callable[[], Any]] = {
        "ctas": lambda: anabranch.sql(
            spark, f"CREATE TABLE delta.`{tmp_path}/a` AS SELECT CAST(s AS INT) i FROM {source}"
        ),
        "insert": lambda: anabranch.sql(spark, f"INSERT INTO {target} SELECT s, 'b' FROM {source}"),
        "subquery": lambda: anabranch.sql(
            spark, f"DELETE FROM {target} WHERE id IN (SELECT CAST(s AS INT) FROM {source})"
        ),
        "merge": lambda: anabranch.sql(
            spark, f"MERGE INTO {target} t USING {source} q ON t.id = 5 WHEN NOT MATCHED THEN INSERT (id) VALUES (q.s)"
        ),
        "merge by name": merge.execute,
        "write": lambda: rows.select(cast).write.format("anabranch").save(f"{tmp_path}/b"),
        "append": lambda: rows.select(cast).write.format("anabranch").mode("append").save(f"{tmp_path}/target"),
    }
    for name, run in few_of([*failing.items()], 4):
        with pytest.raises(errors.ExecutionFailed) as failed:
            run()
        assert "planted" not in "".join(traceback.format_exception(failed.value)), name
    shown = spark.sql("SELECT 'another' AS s").select(cast)
    with pytest.raises(errors.ExecutionFailed, match="another"):
        shown.write.format("anabranch").mode("append").save(f"{tmp_path}/target")
