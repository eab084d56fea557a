"""Values of rows, where they are switched off: no error of a door on Spark holds one, whatever Spark says."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import errors
from anabranch.tables import DeltaTable

pytestmark = pytest.mark.spark
PLANTED, NUMBER = "planted value", 987654321
COLUMNS = "id INT NOT NULL, s STRING, short VARCHAR(3), n INT, m MAP<STRING, INT>"


def said(error: BaseException) -> str:
    facts = getattr(error, "facts", {})
    hidden = {name: fact for name, fact in facts.items() if name not in ("what", "expression")}
    text = str(error)
    for name in ("what", "expression"):
        text = text.replace(str(facts.get(name, "\0")), "")
    return f"{text} {hidden} {error.__cause__} {pickle.dumps(error) and ''}"


def doors(spark: SparkSession, path: str, quiet: dict[str, str]) -> dict[str, Callable[[], Any]]:
    """Each lets a row with a planted value fail, in the log's own terms or in Spark's."""
    rows = spark.sql(f"SELECT 1 id, '{PLANTED}' s, 'b' short, 2 n, map('a', 1) m")
    table, name = DeltaTable.forPath(spark, path), f"delta.`{path}`"

    def frame(**columns: Any) -> Any:
        return rows.withColumns(columns)

    def insert(values: str) -> Callable[[], Any]:
        return lambda: anabranch.sql(spark, f"INSERT INTO {name} {values}")

    def write(**columns: Any) -> Callable[[], Any]:
        return lambda: frame(**columns).write.format("anabranch").mode("append").save(path)

    number = F.col("id") + NUMBER
    # In a view, for the words of a statement are the user's own, and shown.
    spark.sql(f"SELECT 7 AS id, '{PLANTED}' AS s, {NUMBER}000L AS n").createOrReplaceTempView("planted")
    source = "planted"
    return {
        "constraint": write(),
        "not null": write(id=F.lit(None).cast("int"), s=F.lit(PLANTED)),
        "length": write(s=F.lit("x"), short=F.col("s")),
        "sql: cast of a text": insert("SELECT 1, 'x', 'b', s, NULL FROM planted"),
        "sql: spark's cast": insert("SELECT 1, 'x', 'b', CAST(s AS INT), NULL FROM planted"),
        "sql: overflow": insert("SELECT 1, 'x', 'b', CAST(n AS INT), NULL FROM planted"),
        "sql: a number too large": insert("SELECT 1, 'x', 'b', n, NULL FROM planted"),
        "keys twice": write(s=F.lit("x"), m=F.expr(f"map_from_arrays(array('{PLANTED}', s), array(1, 2))")),
        "raise_error": write(s=F.raise_error(F.concat(F.lit("about "), F.col("s"))).cast("string")),
        "division": write(s=F.lit("x"), n=(number / (number - number)).cast("int")),
        "update": lambda: table.update("id = 0", {"n": F.expr("CAST(s AS INT)")}),
        "update: constraint": lambda: table.update("id = 0", {"s": F.concat(F.lit("planted"), F.lit(" value"))}),
        "delete": lambda: table.delete("CAST(s AS INT) = 5"),
        "merge: source": lambda: anabranch.sql(
            spark,
            f"MERGE INTO {name} t USING (SELECT CAST(s AS INT) id FROM {source}) u ON t.id = u.id "
            "WHEN MATCHED THEN DELETE",
        ),
        "merge: clause": lambda: anabranch.sql(
            spark,
            f"MERGE INTO {name} t USING {source} u ON t.id + 7 = u.id "
            "WHEN MATCHED THEN UPDATE SET n = CAST(u.s AS INT)",
        ),
        "merge: insert": lambda: anabranch.sql(
            spark,
            f"MERGE INTO {name} t USING {source} u ON t.id = u.id "
            "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (u.id, u.s)",
        ),
        "create": lambda: (
            frame(n=F.expr("CAST(s AS INT)")).write.format("anabranch").options(**quiet).save(f"{path}-new")
        ),
    }


@pytest.mark.parametrize("how", ["environment", "property"])
def test_no_door_on_spark_quotes_a_row(
    how: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anabranch.install(spark)
    quiet = {"anabranch.rowsInErrors": "false"} if how == "property" else {}
    path = str(tmp_path / "t")
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in quiet.items())
    anabranch.sql(
        spark, f"CREATE TABLE delta.`{path}` ({COLUMNS})" + (f" TBLPROPERTIES ({properties})" if properties else "")
    )
    anabranch.sql(spark, f"INSERT INTO delta.`{path}` VALUES (0, 'planted', 'b', 1, NULL)")
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT plain CHECK (s NOT LIKE 'pl%ue')")
    if how == "environment":
        monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", "false")
    shown = {}
    for door, run in doors(spark, path, quiet).items():
        with pytest.raises(errors.AnabranchError) as told:
            run()
        text = said(told.value)
        if PLANTED in text or str(NUMBER) in text or "'planted'" in text:
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
    anabranch.sql(spark, f"CREATE TABLE {source} (s STRING) TBLPROPERTIES ('anabranch.rowsInErrors' = 'false')")
    anabranch.sql(spark, f"INSERT INTO {source} VALUES ('{PLANTED}')")
    anabranch.sql(spark, f"CREATE TABLE {target} (id INT, s STRING)")
    anabranch.sql(spark, f"INSERT INTO {target} VALUES (1, 'a')")
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
    for name, run in failing.items():
        with pytest.raises(errors.ExecutionFailed) as failed:
            run()
        assert "planted" not in "".join(traceback.format_exception(failed.value)), name
    shown = spark.sql("SELECT 'another' AS s").select(cast)
    with pytest.raises(errors.ExecutionFailed, match="another"):
        shown.write.format("anabranch").mode("append").save(f"{tmp_path}/target")
