"""Names as tables USING delta: what Spark's catalog holds of them, and names that delta-spark has made."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.catalog import Catalog

import anabranch
from anabranch import DeltaTable, errors
from anabranch._catalog import entries, table_entries
from anabranch._catalog.delta_format import run_in_hidden_session
from anabranch._catalog.entry import Kind
from anabranch._catalog.entry_properties import MANAGED
from anabranch._spark.sessions.session import is_connect
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.opening import open_log
from anabranch.errors.process_state import forget
from anabranch.testing import at_phase
from tests.support.patience import started
from tests.support.readers import deltalake_rows

pytestmark = pytest.mark.spark
made_as_a_table = pytest.mark.classic("a name that is made there is a view")
changed_as_a_table = pytest.mark.classic("a name that is a table is neither renamed nor dropped there: NOT_BUILT_YET")


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """The current schema of an installed session; Spark's own, since it makes no table of ours."""
    found = f"c_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {found}")
    spark.sql(f"USE {found}")
    anabranch.install(spark)
    yield found
    anabranch.uninstall(spark)
    spark.sql("USE default")
    run_in_hidden_session(spark, f"DROP DATABASE {found} CASCADE")


def rows(found: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in found.collect())


def held(spark: SparkSession, name: str) -> list[Any]:
    """The rows of a Delta table as another reader finds them."""
    return sorted(tuple(row.values()) for row in deltalake_rows(str(folder(spark, name))))


def shown(spark: SparkSession, name: str) -> str:
    return str(entries.exact_sql(spark, f"SHOW TABLE EXTENDED LIKE '{name}'").collect()[0][3])


def folder(spark: SparkSession, name: str) -> Path:
    found = entries.find(spark, (name,))
    assert found is not None
    return Path(found.location.removeprefix("file:"))


def filled(spark: SparkSession, name: str, number: int) -> None:
    """A table of this one number, for tests of what its name does."""
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta")
    anabranch.append(folder(spark, name), [{"id": number}])


def made_by_delta_spark(spark: SparkSession, schema: str, name: str, location: Path | None = None) -> None:
    """What delta-spark leaves in the catalog: a table without columns, managed by Spark where it has no LOCATION."""
    where = "" if location is None else f" LOCATION '{location}'"
    run_in_hidden_session(spark, f"CREATE TABLE {schema}.{name} USING delta{where}")
    anabranch.append(folder(spark, name), [{"id": 1}, {"id": 2}])


@made_as_a_table
def test_a_name_is_a_table_without_columns_that_says_where_it_lies(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE t (id BIGINT COMMENT 'c') USING delta COMMENT 'hello'")
    lines = shown(spark, "t").splitlines()
    assert {"Type: EXTERNAL", "Provider: delta", f"Database: {schema}"} <= set(lines)
    assert [line for line in lines if line.startswith("Location: ")] == [f"Location: file:{folder(spark, 't')}"]
    assert not any(line.startswith("Schema") for line in lines)
    assert (folder(spark, "t") / "_delta_log").is_dir()


def test_a_table_without_columns_gets_them_by_its_first_write(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE t USING delta")
    spark.sql(f"CREATE TABLE u USING delta LOCATION '{tmp_path / 'u'}'")
    DeltaTable.create(spark).tableName("w").property("delta.appendOnly", "true").execute()
    for read in (lambda: spark.table("t"), lambda: spark.sql("SELECT * FROM u"), lambda: spark.sql("SELECT 1 FROM w")):
        with pytest.raises(errors.TableWithoutColumns, match="no columns yet"):
            read()
    assert rows(spark.sql("DESCRIBE t")) == []
    assert "Table Properties" in [row[0] for row in spark.sql("DESCRIBE EXTENDED t").collect()]
    assert spark.sql("SHOW CREATE TABLE w").first()[0].startswith("CREATE TABLE w")
    assert spark.catalog.listColumns("t") == []
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
    spark.sql("OPTIMIZE t")
    spark.sql("VACUUM t")
    with pytest.raises(errors.SchemaMismatch):
        spark.range(2).write.format("delta").mode("append").saveAsTable("t")
    spark.range(2).write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("t")
    spark.sql("ALTER TABLE u ADD COLUMN (id BIGINT, s STRING)")
    spark.sql("INSERT INTO u VALUES (1, 'a')")
    assert (held(spark, "t"), held(spark, "u")) == ([(0,), (1,)], [(1, "a")])
    with pytest.raises(errors.TableWithoutColumns):
        spark.sql("SELECT * FROM t VERSION AS OF 0")
    spark.sql("RESTORE TABLE t TO VERSION AS OF 0")
    with pytest.raises(errors.TableWithoutColumns):
        spark.table("t")
    for i in range(12):
        SetProperties(str(folder(spark, "w")), {"n": str(i)}).run()
    assert list((folder(spark, "w") / "_delta_log").glob("*.checkpoint.parquet"))
    spark.range(3).write.format("delta").mode("append").option("mergeSchema", "true").save(str(folder(spark, "w")))
    assert held(spark, "w") == [(0,), (1,), (2,)]


def test_only_a_new_table_may_lack_columns(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE t (id INT) USING delta")
    for text in (
        "CREATE OR REPLACE TABLE t USING delta",
        "CREATE TABLE p USING delta PARTITIONED BY (a)",
        "CREATE TABLE p USING delta CLUSTER BY (a)",
    ):
        with pytest.raises(errors.InputError):
            spark.sql(text)
    with pytest.raises(errors.InvalidOption, match="at least one column"):
        spark.createDataFrame([()], T.StructType()).write.format("delta").save(str(tmp_path / "x"))
    assert spark.table("t").columns == ["id"]
    with pytest.raises(errors.UnknownTable):
        DeltaTable.forName(spark, "p")


def test_a_name_that_delta_spark_made_goes_through_every_door(spark: SparkSession, schema: str) -> None:
    made_by_delta_spark(spark, schema, "old")
    assert spark.table("old").columns == ["id"]
    spark.sql(f"UPDATE {schema}.old SET id = 5 WHERE id = 2")
    DeltaTable.forName(spark, "old").delete("id = 1")
    spark.range(7, 8).write.format("delta").mode("append").saveAsTable("old")
    spark.range(8, 9).writeTo("old").append()
    spark.range(9, 10).write.insertInto("old")
    spark.sql("ALTER TABLE old ADD COLUMN s STRING")
    spark.sql("MERGE INTO old USING (SELECT 10 AS n) ON id = n WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n, 'm')")
    both = rows(spark.read.table("old").unionAll(spark.sql("SELECT * FROM old")))
    assert both == sorted([(5, None), (7, None), (8, None), (9, None), (10, "m")] * 2)
    assert spark.sql("DESCRIBE DETAIL old").first()["name"] == f"spark_catalog.{schema}.old"  # type: ignore[index]
    said = {row[0]: row[1] for row in spark.sql("DESCRIBE EXTENDED old").collect()}
    assert (said["Type"], said["Provider"]) == ("MANAGED", "delta")
    spark.sql("OPTIMIZE old")
    spark.range(1).write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable("old")
    assert held(spark, "old") == [(0,)]
    assert "Type: MANAGED" in shown(spark, "old")


@changed_as_a_table
def test_a_managed_table_of_delta_spark_is_renamed_and_dropped_with_its_folder(
    spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    made_by_delta_spark(spark, schema, "old")
    before = folder(spark, "old")
    spark.sql("ALTER TABLE old RENAME TO new")
    assert not before.exists()
    assert held(spark, "new") == [(1,), (2,)]
    with pytest.raises(errors.InvalidOption, match="clone it"):
        spark.sql("ALTER TABLE new RENAME TO default.elsewhere")
    after = folder(spark, "new")
    spark.sql("DROP TABLE new")
    assert not after.exists()
    assert not spark.catalog.tableExists("new")
    made_by_delta_spark(spark, schema, "outside", tmp_path / "x")
    spark.sql("DROP TABLE outside")
    assert len(anabranch.history(tmp_path / "x")) == 1


def test_a_session_that_can_write_no_such_table_neither_renames_nor_drops_one(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of Spark Connect; it reads and writes the table."""
    made_by_delta_spark(spark, schema, "old")
    monkeypatch.setattr(table_entries, "is_known", lambda spark: False)
    for statement in ("ALTER TABLE old RENAME TO new", "DROP TABLE old"):
        with pytest.raises(errors.NotBuilt, match=r"A change of the catalog's table .*`old`"):
            spark.sql(statement)
    spark.sql("INSERT INTO old VALUES (3)")
    assert spark.table("old").count() == len(held(spark, "old")) == 3


@changed_as_a_table
def test_a_dropped_name_that_delta_spark_made_again_shows_the_new_rows(spark: SparkSession, schema: str) -> None:
    for _ in range(2):
        made_by_delta_spark(spark, schema, "t")
        assert rows(spark.table("t")) == [(1,), (2,)]
        spark.sql("INSERT INTO t VALUES (3)")
        spark.sql("DROP TABLE t")


@changed_as_a_table
def test_the_mark_of_a_managed_table_counts_beside_its_own_location_only(
    spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    """Else a name for somebody's table, with the mark of another one, would take that one's files with it."""
    anabranch.append(tmp_path / "precious", [{"id": 1}])
    mark = hashlib.sha256(str(tmp_path / "another").encode()).hexdigest()[:32]
    properties = f"TBLPROPERTIES ('{MANAGED}' = '{mark}')"
    run_in_hidden_session(spark, f"CREATE TABLE {schema}.t USING delta {properties} LOCATION '{tmp_path}/precious'")
    spark.sql("DROP TABLE t")
    assert len(anabranch.history(tmp_path / "precious")) == 1


@changed_as_a_table
def test_no_name_takes_the_files_of_another_ones_table(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    """What the catalog says is one witness, whom anybody may write who may make names; the folder is the other."""
    spark.sql("CREATE TABLE mine USING delta AS SELECT 1 AS id")
    anabranch.append(tmp_path / "x", [{"id": 1}])
    for victim in (folder(spark, "mine"), tmp_path / "x"):
        mark = f"'{MANAGED}' = '{hashlib.sha256(open_log(victim).table.encode()).hexdigest()[:32]}'"
        run_in_hidden_session(
            spark, f"CREATE TABLE {schema}.alias USING delta TBLPROPERTIES ({mark}) LOCATION '{victim}'"
        )
        assert spark.catalog.getTable("alias").tableType == "MANAGED"
        spark.sql("DROP TABLE alias")
        view = f"TBLPROPERTIES ('anabranch.location' = '{victim}', 'anabranch.managed' = 'true')"
        entries.exact_sql(spark, f"CREATE VIEW alias {view} AS SELECT 1 AS id")
        spark.sql("DROP TABLE alias")
        assert len(anabranch.history(victim)) == 1


def test_a_name_that_is_older_than_its_folder_leaves_the_new_table_alone(spark: SparkSession, schema: str) -> None:
    filled(spark, "p1", 1)
    spark.sql("ALTER TABLE p1 RENAME TO p2")
    shutil.rmtree(folder(spark, "p2"))
    filled(spark, "p1", 2)
    spark.sql("DROP TABLE p2")
    assert held(spark, "p1") == [(2,)]
    spark.sql("DROP TABLE p1")


@pytest.mark.parametrize(
    "statement",
    ["CREATE OR REPLACE TABLE t USING delta AS SELECT 9 AS id", "CREATE TABLE IF NOT EXISTS t (id INT) USING delta"],
)
@pytest.mark.parametrize("again", [False, True])
def test_a_statement_that_waits_takes_nothing_of_a_table_that_was_made_and_renamed_meanwhile(
    spark: SparkSession, schema: str, statement: str, again: bool
) -> None:
    def meanwhile() -> None:
        spark.sql("CREATE TABLE t USING delta AS SELECT 100 AS id")
        spark.sql("ALTER TABLE t RENAME TO u")
        if again:
            spark.sql("CREATE TABLE t USING delta AS SELECT 300 AS id")

    with (
        pytest.raises(errors.NameTaken) if again and "REPLACE" in statement else contextlib.nullcontext(),
        at_phase("staged", meanwhile),
    ):
        spark.sql(statement)
    assert held(spark, "u") == [(100,)]
    assert folder(spark, "u") != folder(spark, "t")
    if again:
        assert held(spark, "t") == [(300,)]


def test_a_write_to_a_name_that_is_dropped_meanwhile_says_so(spark: SparkSession, schema: str) -> None:
    for write in (
        lambda: spark.sql("CREATE OR REPLACE TABLE t USING delta AS SELECT 2 AS id"),
        lambda: spark.sql("SELECT 3L AS id").write.format("delta").mode("overwrite").saveAsTable("t"),
    ):
        spark.sql("CREATE TABLE t (id BIGINT) USING delta")
        with pytest.raises(errors.AnabranchError), at_phase("staged", lambda: spark.sql("DROP TABLE t")):
            write()
        assert not spark.catalog.tableExists("t")


def test_a_rename_into_another_schema_leaves_a_table_that_took_the_name_meanwhile(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(spark, "t", 1)
    plain, target = entries.mark_rename, f"{schema}_moved"

    def mark(*args: Any) -> None:
        monkeypatch.setattr(entries, "mark_rename", plain)
        spark.sql("DROP TABLE t")
        spark.sql(f"CREATE TABLE t USING delta LOCATION '{folder_of_another}' AS SELECT 2 AS id")
        plain(*args)

    folder_of_another = folder(spark, "t").with_name("another")
    monkeypatch.setattr(entries, "mark_rename", mark)
    with pytest.raises(errors.UnknownTable):
        spark.sql(f"ALTER TABLE t RENAME TO default.{target}")
    assert held(spark, "t") == [(2,)]
    assert not spark.catalog.tableExists(f"default.{target}")
    spark.sql("ALTER TABLE t RENAME TO u")


def test_a_schema_whose_path_has_a_blank_keeps_its_tables_where_spark_does(
    spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE DATABASE {schema}_b LOCATION '{tmp_path}/a b%20c'")
    try:
        spark.sql(f"CREATE TABLE {schema}_b.t USING delta AS SELECT 1 AS id")
        assert [each.name for each in tmp_path.iterdir()] == ["a b%20c"]
        assert (tmp_path / "a b%20c/t/_delta_log").is_dir()
    finally:
        spark.sql(f"DROP TABLE {schema}_b.t")
        spark.sql(f"DROP DATABASE {schema}_b")


@pytest.mark.parametrize("said", ["Location: /evil", "Provider: parquet", "Type: MANAGED", "Table Properties: [a=b]"])
def test_a_comment_cannot_say_where_a_table_lies_or_whose_its_files_are(
    spark: SparkSession, schema: str, tmp_path: Path, said: str
) -> None:
    anabranch.append(tmp_path / "t", [{"id": 1}])
    run_in_hidden_session(spark, f"CREATE TABLE {schema}.t USING delta COMMENT 'a\n{said}\nb' LOCATION '{tmp_path}/t'")
    if said.startswith("Location"):
        with pytest.raises(errors.UnreadableEntry) as error:
            spark.sql("SELECT * FROM t")
        assert error.value.getCondition() == "UNREADABLE_CATALOG_ENTRY"
        with pytest.raises(errors.UnreadableEntry):
            spark.sql("DROP TABLE t")
    else:
        assert rows(spark.table("t")) == [(1,)]
        spark.sql("DROP TABLE t")
    assert len(anabranch.history(tmp_path / "t")) == 1


def test_a_table_of_another_format_with_such_a_comment_is_sparks(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE p (id BIGINT) USING parquet COMMENT 'a\nProvider: delta\nLocation: /evil'")
    spark.sql("INSERT INTO p VALUES (4)")
    assert rows(spark.sql("SELECT * FROM p")) == rows(spark.table("p")) == [(4,)]
    with pytest.raises(errors.UnknownTable):
        DeltaTable.forName(spark, "p")


def test_a_path_with_a_line_break_can_have_no_name(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    path = tmp_path / "a\nLocation: b"
    anabranch.append(path, [{"id": 1}])
    builder = DeltaTable.createIfNotExists(spark).tableName("t").location(str(path)).addColumn("id", "BIGINT")
    if is_connect(spark):  # a view says it in a property, of which nothing can be misread
        assert rows(builder.execute().toDF()) == [(1,)]
        return
    with pytest.raises(errors.InvalidOption, match="line break"):
        builder.execute()
    assert not spark.catalog.tableExists("t")


@pytest.mark.parametrize("name", ["a b", "é", "100%", "%20", "a#b?c=d", "it's", "{x}", "${x}", "a,b]", "hex:1"])
def test_a_table_at_a_path_of_any_letters_has_a_name(
    spark: SparkSession, schema: str, tmp_path: Path, name: str
) -> None:
    spark.range(3).write.format("delta").option("path", str(tmp_path / name)).saveAsTable("t")
    assert (tmp_path / name / "_delta_log").is_dir()
    assert spark.table("t").count() == 3
    assert folder(spark, "t") == tmp_path / name


def test_the_session_of_the_user_stays_as_it_was(spark: SparkSession, schema: str) -> None:
    before = dict(spark.conf.getAll) if not callable(spark.conf.getAll) else dict(spark.conf.getAll())
    spark.sql("CREATE TABLE t USING delta AS SELECT 1 AS id")
    assert SparkSession.getActiveSession() is spark
    assert spark.catalog.currentDatabase() == schema
    after = spark.conf.getAll
    assert dict(after() if callable(after) else after) == before
    anabranch.uninstall(spark)
    for read in (lambda: spark.table("t"), lambda: spark.read.format("delta").load("/nowhere")):
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND" + "|anabranch.install" * is_connect(spark)):
            read().collect()


@pytest.mark.parametrize("mode", ["overwrite", "append", "ignore", "error"])
def test_a_session_without_anabranch_neither_replaces_nor_drops_it(spark: SparkSession, schema: str, mode: str) -> None:
    filled(spark, "t", 1)
    files = folder(spark, "t")
    anabranch.uninstall(spark)
    for write in (spark.range(5).write.format("delta"), spark.range(5).write.format("parquet")):
        with contextlib.suppress(Exception):
            write.mode(mode).saveAsTable("t")
    anabranch.install(spark)
    assert deltalake_rows(str(files)) == [{"id": 1}]
    if is_connect(spark) and mode == "overwrite":  # Spark drops a view before it asks a format to write it
        assert not spark.catalog.tableExists("t")
    else:
        assert rows(spark.table("t")) == [(1,)]


def test_a_write_of_another_format_to_its_name_is_refused_by_name(
    spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    filled(spark, "t", 1)
    for mode in ("append", "overwrite"):
        for write in (
            lambda mode=mode: spark.range(5).write.format("parquet").mode(mode).saveAsTable("t"),
            lambda mode=mode: spark.range(5).write.saveAsTable("t", format="orc", mode=mode),
        ):
            with pytest.raises(errors.InvalidOption, match="is a Delta table"):
                write()
    with pytest.raises(errors.NameTaken):
        spark.range(5).write.format("parquet").saveAsTable("t")
    spark.range(5).write.format("parquet").mode("ignore").saveAsTable("t")
    spark.range(5, 6).write.format("parquet").insertInto("t")
    assert held(spark, "t") == [(1,), (5,)]
    with pytest.raises(errors.NotBuilt, match="LIKE"):
        spark.sql("CREATE TABLE p LIKE t USING parquet")
    spark.range(2).write.format("parquet").option("compression", "gzip").saveAsTable("p")
    spark.range(2).write.format("parquet").save(str(tmp_path / "files"))
    spark.range(2).write.save(str(tmp_path / "csv"), format="csv", mode="overwrite")
    assert [file.name for file in tmp_path.glob("csv/*.csv")]
    assert pq.read_table(tmp_path / "files").num_rows == 2
    assert any(file.name.endswith(".gz.parquet") for file in spark_files(spark, "p"))


def test_a_table_like_one_of_sparks_has_its_partitioning_and_takes_no_name(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE p (id INT, day STRING) USING parquet PARTITIONED BY (day)")
    spark.sql("CREATE TABLE d LIKE p USING delta")
    assert spark.sql("DESCRIBE DETAIL d").first()["partitionColumns"] == ["day"]
    assert spark.table("d").columns == ["id", "day"]
    with pytest.raises(errors.NameTaken):
        spark.sql("CREATE TABLE d LIKE p")
    spark.sql("CREATE TABLE IF NOT EXISTS d LIKE p")
    for layout in ("PARTITIONED BY (id)", "CLUSTER BY (id)"):
        with pytest.raises(errors.SqlSyntaxError, match="copies the layout"):
            spark.sql(f"CREATE TABLE e LIKE p USING delta {layout}")


def test_what_only_a_delta_table_supports_says_what_a_name_is_instead(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE VIEW w AS SELECT 1 AS id")
    for name, kind in (("p", "a table of the format parquet"), ("w", "a view")):
        for statement in (
            f"OPTIMIZE {name}",
            f"RESTORE TABLE {name} TO VERSION AS OF 0",
            f"VACUUM {name}",
            f"SELECT * FROM table_changes('{name}', 0)",
        ):
            with pytest.raises(errors.NotADeltaTable, match=f"`{name}` is not a Delta table but {kind}"):
                spark.sql(statement)
        with pytest.raises(errors.NotADeltaTable, match=kind):
            anabranch.DeltaTable.forName(spark, name)
    with pytest.raises(errors.UnknownTable, match="the table or view cannot be found"):
        spark.sql("OPTIMIZE nope")


def test_if_not_exists_and_the_mode_ignore_leave_tables_of_spark_alone(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE TABLE IF NOT EXISTS p (x STRING) USING delta")
    spark.sql("CREATE TABLE IF NOT EXISTS p USING delta AS SELECT 'x' AS x")
    spark.range(5).write.format("delta").mode("ignore").saveAsTable("p")
    for statement in ("CREATE TABLE p (x STRING) USING delta", "CREATE OR REPLACE TABLE p (x STRING) USING delta"):
        with pytest.raises(errors.NameTaken):
            spark.sql(statement)
    with pytest.raises(errors.NameTaken):
        spark.range(5).write.format("delta").mode("append").saveAsTable("p")
    assert rows(spark.table("p")) == [(1,)]


def test_a_write_that_fails_leaves_no_folder_in_the_way_of_the_name(spark: SparkSession, schema: str) -> None:
    for fails in (
        lambda: spark.sql("CREATE TABLE t USING delta AS SELECT raise_error('no') AS id FROM range(1)"),
        lambda: spark.sql("SELECT assert_true(id < 0) AS id FROM range(1)").write.format("delta").saveAsTable("t"),
    ):
        with pytest.raises(Exception, match=r"(?i)no|assert|true"):
            fails()
    spark.sql("CREATE TABLE t (id INT) USING parquet")
    assert rows(spark.table("t")) == []


def test_show_create_table_shows_nothing_that_create_refuses(spark: SparkSession, schema: str) -> None:
    asked = "'delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true'"
    spark.sql(f"CREATE TABLE t (id INT) USING delta TBLPROPERTIES ({asked})")
    spark.sql("CREATE TABLE bare USING delta")
    for name in ("t", "bare"):
        text = spark.sql(f"SHOW CREATE TABLE {name}").first()[0]
        spark.sql(f"ALTER TABLE {name} RENAME TO {name}_before")
        spark.sql(text)
        assert spark.catalog.tableExists(name)
        assert "()" not in text.replace(" ", "")


def test_show_create_table_shows_what_members_of_structs_are(spark: SparkSession, schema: str) -> None:
    spark.sql(
        "CREATE TABLE t (s STRUCT<a: INT NOT NULL COMMENT 'it\\'s', l: ARRAY<STRUCT<b: INT COMMENT 'c'>>>) USING delta"
    )
    before, text = DeltaTable.forName(spark, "t"), spark.sql("SHOW CREATE TABLE t").first()[0]
    assert "a: INT NOT NULL COMMENT 'it\\'s', l: ARRAY<STRUCT<b: INT COMMENT 'c'>>" in text
    spark.sql("ALTER TABLE t RENAME TO t_before")
    spark.sql(text)
    assert DeltaTable.forName(spark, "t").toDF().schema == before.toDF().schema


def test_a_table_is_called_by_its_name(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE t USING delta AS SELECT id, id AS v FROM range(6)")
    table = DeltaTable.forName(spark, f"{schema}.t")
    table.delete("t.id = 0")
    table.delete(F.col("t.id") == 1)
    table.update("t.id = 2", {"t.v": "t.v + 10"})
    source = spark.createDataFrame([(3,), (9,)], "id long").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedDelete("t.v = 3")
    merge.whenNotMatchedInsert(values={"t.id": "s.id"}).execute()
    assert rows(table.toDF().select("t.id", "v").orderBy("id")) == [(2, 12), (4, 4), (5, 5), (9, None)]
    spark.sql("CREATE TABLE s USING delta AS SELECT named_struct('a', id) AS s FROM range(2)")
    DeltaTable.forName(spark, "s").delete("s.a = 0")
    assert rows(spark.table("s")) == [((1,),)]


def test_a_lasting_view_is_not_read_as_of_a_version(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE t USING delta AS SELECT 1 AS id")
    spark.sql("INSERT INTO t VALUES (2)")
    spark.sql("CREATE VIEW v AS SELECT * FROM t")
    for option, value in (("versionAsOf", 0), ("timestampAsOf", "2020-01-01"), ("readChangeFeed", "true")):
        with pytest.raises(errors.InvalidOption, match=option):
            spark.read.option(option, value).table("v")
    assert rows(spark.read.table("v")) == [(1,), (2,)]


def spark_files(spark: SparkSession, name: str) -> list[Path]:
    return [Path(each.removeprefix("file:")) for each in spark.table(name).inputFiles()]


def test_the_history_says_whether_a_table_is_managed(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE t (id INT) USING delta")
    spark.sql(f"CREATE TABLE u (id INT) USING delta LOCATION '{tmp_path / 'u'}'")
    said = [spark.sql(f"DESCRIBE HISTORY {name}").first()["operationParameters"]["isManaged"] for name in ("t", "u")]
    assert said == ["true", "false"]


@pytest.mark.classic("a client has no RDDs")
def test_a_frame_of_an_rdd_is_of_the_session_that_it_was_of(spark: SparkSession, schema: str) -> None:
    """PySpark lets the newest session make them, and Spark drops a table before it asks a format to write it."""

    def maker() -> SparkSession:
        return spark.sparkContext.parallelize([(2,)]).toDF(["id"]).sparkSession

    before = maker()
    forget("sessions that know the format of names")
    spark.sql("CREATE TABLE t USING delta AS SELECT 1L AS id")
    assert maker() is before


def test_another_session_sees_a_new_name_at_once_and_a_thread_of_its_own_too(spark: SparkSession, schema: str) -> None:
    other = anabranch.install(spark.newSession())
    try:
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            other.sql(f"SELECT * FROM {schema}.t")
        made = threading.Thread(target=spark.sql, args=("CREATE TABLE t USING delta AS SELECT 1 AS id",))
        started(made)
        assert rows(other.table(f"{schema}.t")) == [(1,)]
        other.sql(f"ALTER TABLE {schema}.t RENAME TO {schema}.u")
        assert rows(spark.table("u")) == [(1,)]
    finally:
        anabranch.uninstall(other)


def test_a_table_takes_the_name_of_a_temporary_view_that_was_dropped(spark: SparkSession, schema: str) -> None:
    filled(spark, "t", 1)
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT * FROM t")
    assert rows(spark.sql("SELECT * FROM v")) == [(1,)]
    spark.catalog.dropTempView("v")
    filled(spark, "v", 2)
    assert rows(spark.sql("SELECT * FROM v").unionAll(spark.table("v"))) == [(2,), (2,)]
    spark.sql("FROM t INSERT INTO v SELECT id")
    assert held(spark, "v") == [(1,), (2,)]


def test_where_spark_tells_capitals_apart_so_do_names(spark: SparkSession, schema: str) -> None:
    filled(spark, "Flights", 1)
    assert rows(spark.table("FLIGHTS")) == [(1,)]
    assert spark.catalog.tableExists("flights")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        filled(spark, "Trains", 2)
        assert rows(spark.table("Trains")) == [(2,)]
        for other in ("TRAINS", "FLIGHTS"):
            assert not spark.catalog.tableExists(other)
        spark.sql("ALTER TABLE Trains RENAME TO Trams")
        spark.sql("DROP TABLE Trams")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.classic("all names that are made there are views")
def test_entries_that_are_views_are_read_renamed_and_dropped_beside_tables(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older version, or Spark Connect, has made them."""
    with monkeypatch.context() as patched:
        patched.setattr(entries, "is_known", lambda spark: False)
        spark.sql("CREATE TABLE v USING delta AS SELECT 1 AS id")
    found = entries.find(spark, ("v",))
    assert found is not None
    assert found.kind is Kind.VIEW
    spark.sql("ALTER TABLE v RENAME TO w")
    spark.sql("CREATE TABLE t USING delta AS SELECT 2 AS id")
    assert rows(spark.sql("SELECT w.id, t.id FROM w, t")) == [(1, 2)]
    path = folder(spark, "w")
    spark.sql("ALTER TABLE w RENAME TO default.w")  # a table there, as all new entries are
    moved = entries.find(spark, ("default", "w"))
    assert moved is not None
    assert (moved.kind, moved.came_from) == (Kind.TABLE, None)
    spark.sql("DROP TABLE default.w")
    assert not path.exists()


def test_the_catalog_shows_names_that_are_views_as_the_tables_that_they_are(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "is_known", lambda spark: False)
    spark.sql("CREATE TABLE t USING delta COMMENT 'hello' AS SELECT 1 AS id")
    spark.sql("CREATE VIEW v AS SELECT id FROM t")
    listed = {each.name: each for each in spark.catalog.listTables(schema) if not each.isTemporary}
    assert {name: each.tableType for name, each in listed.items()} == {"t": "MANAGED", "v": "VIEW"}
    assert spark.catalog.getTable("t") == listed["t"]
    assert listed["t"].description == "hello"


# -- spark.catalog -----------------------------------------------------------------------------------------------------


def test_the_catalog_shows_tables_as_it_shows_its_own(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    spark.sql(
        "CREATE TABLE m (id BIGINT NOT NULL COMMENT 'c', day STRING, s STRUCT<a: INT>) USING delta"
        " PARTITIONED BY (day) COMMENT 'hello'"
    )
    spark.sql(f"CREATE TABLE x USING delta LOCATION '{tmp_path}/x' AS SELECT 1 AS id")
    spark.sql("CREATE TABLE p (id INT) USING parquet")
    spark.sql("CREATE VIEW v AS SELECT 1 AS one")
    spark.range(1).createOrReplaceTempView("temporary")
    listed = {each.name: each for each in spark.catalog.listTables()}
    kinds = {name: each.tableType for name, each in listed.items() if not each.isTemporary or name == "temporary"}
    assert kinds == {"m": "MANAGED", "x": "EXTERNAL", "p": "MANAGED", "v": "VIEW", "temporary": "TEMPORARY"}
    assert spark.catalog.getTable("m") == listed["m"]
    assert (listed["m"].catalog, listed["m"].namespace) == ("spark_catalog", [schema])
    assert (listed["m"].description, listed["m"].isTemporary) == ("hello", False)
    assert [each.name for each in spark.catalog.listTables(schema, "m*")] == ["m"]
    assert [each.name for each in spark.catalog.listTables(f"spark_catalog.{schema}", "p|x")] == ["p", "x"]
    columns = spark.catalog.listColumns("m")
    assert [(each.name, each.dataType, each.nullable, each.isPartition) for each in columns] == [
        ("id", "bigint", False, False),
        ("day", "string", True, True),
        ("s", "struct<a:int>", True, False),
    ]
    assert columns[0].description == "c"
    assert [each.name for each in spark.catalog.listColumns("p")] == ["id"]
    spark.catalog.dropTempView("temporary")


def test_the_catalog_makes_tables_and_gives_tables_their_names(
    spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    made = spark.catalog.createTable("t", source="delta", schema=spark.range(1).schema, description="it's ${ours}")
    assert (made.columns, held(spark, "t")) == (["id"], [])
    assert spark.catalog.getTable("t").description == "it's ${ours}"
    more = (
        T.StructType()
        .add("a", "integer", False)
        .add("b", "integer", True, {"CURRENT_DEFAULT": "7", "comment": "it's b"})
    )
    assert spark.catalog.createTable("d", source="delta", schema=more).columns == ["a", "b"]
    spark.sql("INSERT INTO d (a) VALUES (1)")
    assert held(spark, "d") == [(1, 7)]
    assert [each.description for each in spark.catalog.listColumns("d")] == [None, "it's b"]
    anabranch.append(tmp_path / "x", [{"id": 1}])
    x = spark.catalog.createTable("x", path=str(tmp_path / "x"), source="DELTA")
    y = spark.catalog.createExternalTable("y", path=str(tmp_path / "x"), source="delta")
    assert rows(x.unionAll(y)) == [(1,), (1,)]
    with pytest.raises(errors.NameTaken):
        spark.catalog.createTable("t", source="delta", schema=spark.range(1).schema)
    with pytest.raises(errors.InvalidOption):
        spark.catalog.createTable("z", source="delta", schema=spark.range(1).schema, header="true")
    with pytest.raises(errors.InvalidArgument):
        spark.catalog.createTable("z", source="delta", schema="id INT")  # type: ignore[arg-type]
    spark.catalog.createTable("p", source="parquet", schema=spark.range(1).schema)
    assert spark.catalog.getTable("p").tableType == "MANAGED"
    assert spark.catalog.tableExists("t", schema)
    assert spark.catalog.tableExists(f"delta.`{tmp_path}/x`")
    assert not spark.catalog.tableExists(f"delta.`{tmp_path}/none`")
    assert not spark.catalog.tableExists("none")
    spark.catalog.refreshTable("t")
    spark.catalog.refreshTable("p")
    assert isinstance(spark.catalog, Catalog) or is_connect(spark)
    assert spark.catalog.currentDatabase() == schema
    spark.catalog.cacheTable("x", StorageLevel.DISK_ONLY)
    assert spark.catalog.isCached("x")
    spark.catalog.uncacheTable("x")
    assert (spark.catalog.isCached("x"), spark.catalog.isCached("p")) == (False, False)


def test_the_catalog_drops_and_empties_tables(spark: SparkSession, schema: str) -> None:
    if not hasattr(type(spark.catalog), "dropTable") or spark.version < "4.2":
        pytest.skip("PySpark's catalog drops tables from 4.2 on")
    spark.sql("CREATE TABLE t USING delta AS SELECT 1 AS id")
    assert spark.catalog.getTableProperties("t")["delta.minReaderVersion"] == "3"
    assert spark.catalog.getCreateTableString("t").startswith("CREATE TABLE t (")
    spark.catalog.truncateTable("t")
    assert spark.table("t").count() == 0
    spark.catalog.dropTable("t")
    assert not spark.catalog.tableExists("t")
    spark.catalog.dropTable("t", ifExists=True)


# -- views that Spark, or delta-spark, made ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_views(spark: SparkSession) -> Iterator[str]:
    """A schema with views of Spark over Parquet tables, of which one is a Delta table by now, as where delta-spark
    made them.
    """
    schema = f"v_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {schema}")
    spark.sql(f"USE {schema}")
    spark.sql("CREATE TABLE p USING parquet AS SELECT id, id + 1 AS x FROM range(2)")
    spark.sql("CREATE TABLE q USING parquet AS SELECT id, id * 10 AS y FROM range(2)")
    spark.sql(
        "CREATE VIEW vp (a, b) AS WITH c AS (SELECT id, x FROM p) SELECT c.x, c.id FROM c JOIN q ON c.id = q.id"
        f" WHERE EXISTS (SELECT 1 FROM {schema}.p AS p2 WHERE p2.id = c.id)"
    )
    spark.sql("CREATE VIEW vv AS SELECT a + 1 AS a1 FROM vp")
    spark.sql("CREATE VIEW plain AS SELECT y FROM q")
    spark.sql("CREATE VIEW changed AS SELECT x FROM p")
    spark.sql("CREATE VIEW lateral_view AS SELECT e FROM p, LATERAL explode(array(x, 5)) AS s(e) JOIN LATERAL range(1)")
    spark.sql("DROP TABLE p")
    anabranch.install(spark)
    spark.sql("CREATE TABLE p (id BIGINT, x BIGINT) USING delta")
    anabranch.append(folder(spark, "p"), [{"id": i, "x": i + 1} for i in range(4)])
    yield schema
    anabranch.uninstall(spark)
    run_in_hidden_session(spark, f"DROP DATABASE {schema} CASCADE")


@pytest.fixture
def of_spark(spark: SparkSession, with_views: str) -> Iterator[str]:
    """Those views, in the current schema of an installed session."""
    spark.sql(f"USE {with_views}")
    anabranch.install(spark)
    yield with_views
    anabranch.uninstall(spark)
    spark.sql("USE default")


def test_views_of_spark_are_read_over_delta_tables_from_any_schema(spark: SparkSession, of_spark: str) -> None:
    assert rows(spark.table("vp")) == [(1, 0), (2, 1)]
    spark.sql("USE default")
    spark.sql(f"INSERT INTO {of_spark}.q VALUES (9, 90)")
    each = f"SELECT a1 FROM {of_spark}.vv UNION ALL SELECT y FROM {of_spark}.plain"
    found = rows(spark.sql(f"{each} UNION ALL SELECT e + 100 FROM {of_spark}.lateral_view"))
    assert found[:5] == [(0,), (2,), (3,), (10,), (90,)]
    assert found[5:] == [(101,), (102,), (103,), (104,), *[(105,)] * 4]
    assert spark.table(f"{of_spark}.vv").columns == ["a1"]


@pytest.mark.parametrize(
    ("setting", "then", "query"),
    [
        (
            "spark.sql.session.timeZone",
            "Asia/Tokyo",
            "SELECT CAST(TIMESTAMP'1970-01-01 20:00:00Z' AS DATE) AS d, id FROM p",
        ),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false", "SELECT CAST(1 AS DECIMAL(38,18)) / 3 AS d FROM p"),
        ("spark.sql.caseSensitive", "true", "SELECT id, id + 1 AS ID FROM p"),
    ],
)
def test_a_view_of_spark_is_not_read_under_other_settings_than_it_was_made_under(
    spark: SparkSession, schema: str, setting: str, then: str, query: str
) -> None:
    spark.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    before = spark.conf.get(setting)
    spark.conf.set(setting, then)
    try:
        spark.sql(f"CREATE VIEW v AS {query}")
        spark.sql("DROP TABLE p")
        filled(spark, "p", 1)
        assert len(rows(spark.table("v"))) == 1
    finally:
        spark.conf.set(setting, before)
    with pytest.raises(errors.InvalidOption, match="may have other rows here") as refused:
        spark.sql("SELECT * FROM v").collect()
    assert refused.value.option == setting


@pytest.mark.exhaustive(
    "tests/catalog/test_tables_of_the_catalog.py::test_views_of_spark_are_read_over_delta_tables_from_any_schema",
    "tests/catalog/test_persistent_views.py::test_a_view_and_its_table_are_read_at_one_version_and_through_other_views",
)
def test_changes_and_new_tables_read_views_of_spark(spark: SparkSession, of_spark: str) -> None:
    spark.sql("CREATE TABLE c USING delta AS SELECT * FROM vp")
    spark.sql("INSERT INTO c SELECT a1, 100 FROM vv")
    spark.sql("MERGE INTO c USING vp ON c.a = vp.a WHEN MATCHED THEN UPDATE SET b = -1")
    spark.sql("DELETE FROM c WHERE a IN (SELECT max(a1) FROM vv)")
    assert rows(spark.table("c")) == [(1, -1), (2, -1), (2, -1)]
    spark.sql("CREATE VIEW ours AS SELECT b FROM vp")
    assert rows(spark.table("ours")) == [(0,), (1,)]


def test_what_spark_shows_and_changes_of_its_views_stays_as_it_is(spark: SparkSession, of_spark: str) -> None:
    assert "CREATE VIEW" in spark.sql("SHOW CREATE TABLE vp").first()[0]
    assert [row[0] for row in spark.sql("DESCRIBE vp").collect()] == ["a", "b"]
    assert rows(spark.sql("SHOW COLUMNS IN vp")) == [("a",), ("b",)]
    with pytest.raises(errors.ViewIsNoTable):
        spark.sql("INSERT INTO vp VALUES (1, 2)")
    spark.sql("ALTER VIEW changed AS SELECT 7 AS seven")
    assert rows(spark.table("changed")) == [(7,)]
    spark.sql("CREATE OR REPLACE VIEW changed AS SELECT x FROM p")
    assert rows(spark.table("changed")) == [(1,), (2,), (3,), (4,)]
    spark.sql("DROP VIEW changed")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("changed").collect()
