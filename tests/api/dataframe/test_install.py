"""An installed session: existing code on tables with names, and what stays Spark's."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch._catalog import entries
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.prefilter import may_touch_delta
from tests.support.growth import times_more
from tests.support.patience import started
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of, is_short

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """An installed session in a schema of its own."""
    schema = f"i_{uuid.uuid4().hex[:10]}"
    anabranch.install(spark)
    spark.sql(f"CREATE DATABASE {schema}")
    spark.sql(f"USE {schema}")
    yield spark
    spark.sql("USE default")
    anabranch.uninstall(spark)
    spark.sql(f"DROP DATABASE {schema} CASCADE")


def rows(found: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in found.collect())


def path_of(session: SparkSession, name: str) -> str:
    found = entries.find(session, (name,))
    assert found is not None
    return found.location.removeprefix("file://").removeprefix("file:")


def held(session: SparkSession, name: str) -> list[Any]:
    """The rows of a table as another reader finds them."""
    return sorted(tuple(row.values()) for row in deltalake_rows(path_of(session, name)))


def append(session: SparkSession, name: str, *ids: int) -> None:
    anabranch.append(path_of(session, name), pa.table({"id": pa.array(ids, pa.int64())}))


def test_a_job_of_delta_runs_as_it_is(session: SparkSession) -> None:
    session.range(5).withColumn("day", F.lit("a")).write.format("delta").partitionBy("day").saveAsTable("bronze")
    session.sql("SELECT 7L AS id, 'b' AS day").write.format("delta").mode("append").saveAsTable("bronze")
    session.sql("CREATE TABLE silver (id BIGINT, day STRING) USING delta")
    session.table("bronze").where("id > 3").write.insertInto("silver")
    merge = "MERGE INTO silver s USING bronze b ON s.id = b.id WHEN NOT MATCHED AND b.id = :i THEN INSERT *"
    session.sql(merge, {"i": 0})
    DeltaTable.forName(session, "silver").update("id = 7", {"day": "'z'"})
    session.table("silver").writeTo("gold").using("delta").partitionedBy("day").create()
    session.sql("OPTIMIZE gold")
    both = session.sql("SELECT g.id, day FROM gold g JOIN silver USING (id, day)")
    assert rows(both) == [(0, "a"), (4, "a"), (7, "z")]
    assert session.read.table("gold").columns == ["id", "day"]
    assert session.sql("DESCRIBE DETAIL gold").first()["partitionColumns"] == ["day"]  # type: ignore[index]
    assert session.catalog.tableExists("gold")
    assert {"bronze", "gold", "silver"} <= {each.name for each in session.catalog.listTables()}
    session.sql("DROP TABLE gold")
    assert not session.catalog.tableExists("gold")


def test_tables_are_read_as_of_older_versions_by_their_names(session: SparkSession) -> None:
    session.sql("CREATE TABLE t (id BIGINT) USING delta")
    for n in (1, 2):
        append(session, "t", n)
    for older in (session.read.option("versionAsOf", 1).table("t"), session.sql("SELECT * FROM t VERSION AS OF 1")):
        assert len(older.inputFiles()) == 1
    for newest in (session.read.format("delta").load(path_of(session, "t")), session.table("t").select("t.id")):
        assert len(newest.inputFiles()) == 2


def test_a_temporary_view_follows_its_table_in_a_table_call_too(session: SparkSession) -> None:
    session.sql("CREATE TABLE t (id BIGINT) USING delta")
    both = "SELECT t.id, 'one' AS side FROM t UNION ALL SELECT i_t.id, 'other' FROM t AS i_t"
    session.sql(f"CREATE TEMPORARY VIEW follows AS {both}")
    for n, table in enumerate((session.table, session.read.table, session.read.option("mergeSchema", "true").table), 1):
        append(session, "t", n)
        assert len(table("follows").inputFiles()) == n
    assert rows(session.table("follows")) == [(i, side) for i in (1, 2, 3) for side in ("one", "other")]
    schema = session.catalog.currentDatabase()
    assert rows(session.sql(f"SELECT {schema}.t.id FROM {schema}.t WHERE {schema}.t.id > 1")) == [(2,), (3,)]
    session.catalog.dropTempView("follows")


def test_the_modes_of_save_as_table(session: SparkSession, tmp_path: Path) -> None:
    one = session.range(1)
    for mode in few_of(("append", "overwrite", "ignore", "error"), 2):
        one.write.format("delta").mode(mode).saveAsTable(f"m_{mode}")
        assert held(session, f"m_{mode}") == [(0,)]
    with pytest.raises(errors.NameTaken):
        one.write.format("delta").saveAsTable("m_error")
    one.write.format("delta").mode("ignore").saveAsTable("m_error")
    for mode in ("append", "overwrite"):  # the session's own format is another one
        with pytest.raises(errors.InvalidOption):
            one.write.mode(mode).saveAsTable("m_error")
    assert len(anabranch.history(path_of(session, "m_error"))) == 1
    one.write.format("delta").option("path", str(tmp_path / "x")).saveAsTable("x")
    assert path_of(session, "x").endswith("/x")
    with pytest.raises(errors.UnknownSchema):
        one.write.format("delta").saveAsTable("nowhere.t")


@pytest.fixture
def _views(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that are views, as on Spark Connect: those of tables have no columns."""
    monkeypatch.setattr(entries, "is_known", lambda spark: False)


def in_entry(session: SparkSession, name: str) -> list[str]:
    """The columns of a table as a session sees them that does not know Anabranch."""
    return [row["col_name"] for row in entries.exact_sql(session, f"DESCRIBE {name}").collect()]


@pytest.mark.usefixtures("_views")
def test_columns_that_rows_bring_are_in_the_entry_whatever_door_they_come_by(session: SparkSession) -> None:
    session.range(1).write.format("delta").saveAsTable("t")

    def more(*columns: str) -> DataFrame:
        found = session.range(1)
        for column in columns:
            found = found.withColumn(column, F.lit("x"))
        return found

    more("a").write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("t")
    assert in_entry(session, "t") == ["id", "a"]
    more("a", "b").write.option("mergeSchema", "true").insertInto("t")
    assert in_entry(session, "t") == ["id", "a", "b"]
    more("c").writeTo("t").option("mergeSchema", "true").append()
    assert in_entry(session, "t") == ["id", "a", "b", "c"]
    table = DeltaTable.forName(session, "t")
    merge = table.alias("x").merge(more("d").alias("s"), "x.id = s.id")
    merge.whenMatchedUpdateAll().withSchemaEvolution().execute()
    assert in_entry(session, "t") == ["id", "a", "b", "c", "d"]
    table.restoreToVersion(1)
    assert in_entry(session, "t") == ["id", "a"]
    more("e").write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable("t")
    assert in_entry(session, "t") == ["id", "e"]
    session.sql("CREATE TABLE other (id BIGINT) USING delta")
    DeltaTable.forName(session, "other").clone("t", replace=True)
    assert in_entry(session, "t") == ["id"]
    (first,) = (each["timestamp"] for each in anabranch.history(path_of(session, "t")) if each["version"] == 1)
    table.restoreToTimestamp(first.isoformat(" "))
    assert in_entry(session, "t") == ["id", "a"]


@pytest.mark.usefixtures("_views")
def test_a_handle_whose_name_now_leads_elsewhere_leaves_that_entry_alone(session: SparkSession, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE t (id BIGINT) USING delta LOCATION '{tmp_path / 't'}'")
    table = DeltaTable.forName(session, "t")
    session.sql("ALTER TABLE t ADD COLUMN a STRING")
    session.sql("DROP TABLE t")
    table.restoreToVersion(0)
    assert not session.catalog.tableExists("t")
    session.sql("CREATE TABLE t (id BIGINT, a STRING) USING delta")
    table.restoreToVersion(1)
    table.restoreToVersion(0)
    assert in_entry(session, "t") == ["id", "a"]


def test_the_writer_of_the_second_kind(session: SparkSession) -> None:
    rows_of_day = session.range(4).withColumn("day", (F.col("id") % 2).cast("int"))
    rows_of_day.writeTo("t").using("delta").partitionedBy("day").tableProperty("delta.appendOnly", "false").create()
    with pytest.raises(errors.NameTaken):
        rows_of_day.writeTo("t").using("delta").create()
    rows_of_day.where("id = 0").writeTo("t").append()
    assert len(held(session, "t")) == 5
    rows_of_day.where("id = 2").writeTo("t").overwritePartitions()
    assert held(session, "t") == [(1, 1), (2, 0), (3, 1)]
    rows_of_day.where("id = 3").writeTo("t").overwrite(F.col("day") == 1)
    assert held(session, "t") == [(2, 0), (3, 1)]
    with pytest.raises(errors.ReplaceWhereMismatch):
        rows_of_day.where("id = 3").writeTo("t").overwrite(F.col("day") == 0)
    session.range(1).writeTo("t").using("delta").createOrReplace()
    assert held(session, "t") == [(0,)]
    session.range(2).writeTo("t").using("delta").replace()
    assert held(session, "t") == [(0,), (1,)]
    with pytest.raises(errors.UnknownTable):
        session.range(2).writeTo("none").using("delta").replace()
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.range(2).writeTo("none").append()
    with pytest.raises(errors.InvalidOption):
        session.range(2).writeTo("none").using("delta").partitionedBy(F.bucket(2, "id")).create()
    assert not session.catalog.tableExists("none")


def test_what_is_not_delta_goes_to_spark_as_it_was(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Any] = []
    plain = type(session).sql.anabranch_plain  # type: ignore[attr-defined]

    def handing(spark: SparkSession, text: str, args: Any = None, **named: Any) -> DataFrame:
        handed.append(text)
        return plain(spark, text, args, **named)

    monkeypatch.setattr(type(session).sql, "anabranch_plain", handing)
    session.range(2).write.saveAsTable("p")
    for text in ("SELECT  1 -- x", "SELECT * FROM p", "INSERT INTO p  VALUES (5)", "SHOW TABLES", "DESCRIBE p"):
        session.sql(text)
        assert handed[-1] == text
    session.range(1).write.mode("append").insertInto("p")
    with pytest.raises(AnalysisException, match="Cannot write into v1 table"):
        session.range(1).writeTo("p").append()
    assert rows(session.table("p")) == [(0,), (0,), (1,), (5,)]
    assert session.sql("SELECT id AS of_df FROM {df} WHERE id = {x}", df=session.range(3), x=1).columns == ["of_df"]


def test_frames_and_values_stand_in_the_text_of_a_statement_on_a_table_with_a_name(session: SparkSession) -> None:
    session.sql("CREATE TABLE t (id BIGINT) USING delta")
    append(session, "t", *range(5))
    some, before = session.range(3, 9), session.catalog.listTables()
    found = session.sql("SELECT t.id FROM t JOIN {df} AS s USING (id) WHERE {col} < {n}", df=some, col=some.id, n=4)
    assert rows(found) == [(3,)]
    session.sql("INSERT INTO t SELECT id FROM {df} WHERE id > :n", {"n": 7}, df=some)
    assert len(held(session, "t")) == 6
    assert session.catalog.listTables() == before


def test_a_statement_without_delta_costs_no_more_than_a_look_at_its_text(session: SparkSession) -> None:
    """Every statement of the session pays for it. How much grows with the text, and not faster: ten times the columns
    would take a hundred times the work if each were held against each.
    """
    session.range(1).write.saveAsTable("p")
    numbers = itertools.count()

    def look(columns: int) -> None:
        text = ", ".join(f"coalesce(id, {i}) AS x{i}" for i in range(columns))
        assert not may_touch_delta(f"SELECT {text} FROM p WHERE id > {next(numbers)}", Names(session))

    look(1)
    assert times_more(lambda: look(200), lambda: look(2000)) < 40


def explained(found: DataFrame) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        found.explain(mode="extended")
    return re.sub(r"#\d+L?|plan_id=\d+|CTERelation(Def|Ref) \d+", "#", out.getvalue())


def test_a_statement_without_delta_has_the_plan_and_the_rows_that_spark_gives_it(session: SparkSession) -> None:
    plain = type(session).sql.anabranch_plain  # type: ignore[attr-defined]
    session.range(9).withColumn("b", F.col("id") % 3).write.saveAsTable("p")
    session.range(3).createOrReplaceTempView("v")
    session.sql("CREATE TABLE ours (id BIGINT) USING delta")
    for text, args in [
        ("SELECT p.b, count(*) AS n FROM p JOIN v USING (id), range(2) WHERE p.b > 0 GROUP BY p.b", None),
        (
            "WITH c AS (SELECT * FROM p WHERE id IN (SELECT id FROM v)) SELECT /*+ BROADCAST(c) */ * FROM c, c d",
            None,
        ),
        ("SELECT 'FROM ours', \"x\" AS `ours` FROM `p` WHERE id < :n -- FROM ours", {"n": 4}),
        ("VALUES (1), (2)", None),
    ]:
        found, expected = session.sql(text, args), plain(session, text, args)
        assert explained(found) == explained(expected)
        if args or not is_short():
            assert rows(found) == rows(expected)
    session.catalog.dropTempView("v")


def test_a_name_that_becomes_one_of_ours_is_seen_at_once(session: SparkSession) -> None:
    session.sql("CREATE TABLE t (id BIGINT) USING delta")
    append(session, "t", 0, 1, 2)
    session.range(1).withColumnRenamed("id", "of_view").createOrReplaceTempView("t")
    assert session.sql("SELECT * FROM t").columns == ["of_view"]
    session.catalog.dropTempView("t")
    assert rows(session.sql("SELECT * FROM t")) == [(0,), (1,), (2,)]
    schema = session.catalog.currentDatabase()
    session.sql("USE default")
    with pytest.raises(AnalysisException):
        session.sql("SELECT * FROM t")
    session.catalog.setCurrentDatabase(schema)
    assert len(session.sql("SELECT * FROM t").inputFiles()) == 1


def test_uninstalling_gives_back_what_was_there(spark: SparkSession) -> None:
    anabranch.uninstall(spark)
    wrapped = ((type(spark), "sql"), (type(spark), "read"), (type(spark.range(0)), "writeTo"))
    before = [vars(owner).get(name) for owner, name in wrapped]
    for _ in range(2):
        assert anabranch.install(spark) is spark
    assert vars(type(spark))["sql"] is not before[0]
    assert anabranch.uninstall(anabranch.uninstall(spark)) is spark
    after = [vars(owner).get(name) for owner, name in wrapped]
    assert after == before
    with pytest.raises(Exception, match=r"DATA_SOURCE_NOT_FOUND|PARSE|NOT_FOUND"):
        spark.range(1).write.format("delta").saveAsTable("t_uninstalled")


def test_many_threads_install_at_once(spark: SparkSession) -> None:
    threads = [threading.Thread(target=anabranch.install, args=(spark,)) for _ in range(8)]
    started(*threads)
    anabranch.uninstall(spark)
    assert not hasattr(type(spark).sql, "anabranch_plain")
