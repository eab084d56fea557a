"""``anabranch.sql`` on real Spark: what it gives, what it reads, what it refuses; and the command line's ``sql``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import anabranch
from anabranch import DeltaTable, _cli, errors
from anabranch._cli import app
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.schema.types import Field
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar.parts import Table
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from anabranch.commands.opening import open_log
from anabranch.testing import at_phase
from tests.support.worlds import World

pytestmark = pytest.mark.spark


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "table"
    for first in (0, 10, 20):
        anabranch.append(folder, [{"id": first + i, "s": f"s{first + i}"} for i in range(3)])
    return str(folder)


def ids(found: Any) -> list[int]:
    return sorted(row[0] for row in found.collect())


def test_a_query_is_pinned_to_one_snapshot_however_often_it_names_the_table(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = StatementContext.frame

    def with_a_writer_in_between(self: StatementContext, reference: Any) -> Any:
        found = plain(self, reference)
        anabranch.append(path, [{"id": 99, "s": "late"}])
        return found

    monkeypatch.setattr(StatementContext, "frame", with_a_writer_in_between)
    twice = f"SELECT (SELECT count(*) FROM delta.`{path}`) - (SELECT count(*) FROM anabranch.`{path}`)"
    assert ids(anabranch.sql(spark, twice)) == [0]
    assert len(anabranch.history(path)) == 5


def test_later_commits_do_not_change_what_a_query_gave(spark: SparkSession, path: str) -> None:
    found = anabranch.sql(spark, f"SELECT id FROM delta.`{path}` WHERE id < 3")
    anabranch.sql(spark, f"DELETE FROM delta.`{path}`")
    assert ids(found) == [0, 1, 2]


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT id FROM @T WHERE id >= 20", 1),
        ("SELECT id FROM @T WHERE id = :id", 1),
        ("SELECT a.id FROM @T a JOIN range(30) b ON a.id = b.id WHERE a.id < 3 AND b.id > 0", 1),
        ("SELECT id FROM @T WHERE id >= 20 OR length(s) > 0", 3),
        ("SELECT a.id FROM range(30) b LEFT JOIN @T a ON a.id = b.id WHERE a.id IS NULL", 3),
        ("SELECT count(*) FROM (SELECT * FROM @T WHERE id IN (1, 11)) WHERE id > 0", 2),
    ],
)
def test_a_query_opens_only_files_that_its_where_cannot_rule_out(
    spark: SparkSession, path: str, query: str, files: int
) -> None:
    text = query.replace("@T", f"delta.`{path}`")
    found = anabranch.sql(spark, text, {"id": 21})
    assert len(found.inputFiles()) == files
    whole = anabranch.read(path, spark=spark)
    whole.createOrReplaceTempView("whole_table")
    same = spark.sql(query.replace("@T", "whole_table"), {"id": 21})
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, same.collect()))


def test_nothing_is_left_behind_in_the_session(spark: SparkSession, path: str) -> None:
    before = spark.sql("SHOW TABLES").collect()
    anabranch.sql(spark, f"SELECT * FROM delta.`{path}`").collect()
    last = f"NOT EXISTS (SELECT 1 FROM delta.`{path}` x WHERE x.id = t.id + 1)"
    anabranch.sql(spark, f"DELETE FROM delta.`{path}` AS t WHERE {last}")
    with pytest.raises(errors.AnabranchError):
        anabranch.sql(spark, f"DELETE FROM delta.`{path}` WHERE id IN (SELECT nope FROM delta.`{path}`)")
    assert spark.sql("SHOW TABLES").collect() == before


def test_a_subquery_of_a_delete_reads_the_snapshot_of_the_delete(spark: SparkSession, path: str) -> None:
    text = f"DELETE FROM delta.`{path}` AS t WHERE EXISTS (SELECT 1 FROM delta.`{path}` x WHERE x.id = t.id + 1)"
    assert anabranch.sql(spark, text).first()[0] == 6
    assert [row["id"] for row in World(path).rows()] == [2, 12, 22]


@pytest.mark.exhaustive(
    "tests/sql/test_subqueries.py::test_it_goes_by_files_beside_other_writers",
    "tests/sql/test_subqueries.py::test_what_was_asked_of_the_table_itself_counts_as_read_since_then",
)
def test_a_delete_that_asks_the_table_conflicts_with_a_winner_that_wrote_it(spark: SparkSession, path: str) -> None:
    text = f"DELETE FROM delta.`{path}` WHERE id = (SELECT max(id) FROM delta.`{path}`)"
    with (
        at_phase("staged", lambda: anabranch.sql(spark, f"UPDATE delta.`{path}` SET s = 'w' WHERE id = 0")),
        pytest.raises(errors.DeltaConcurrentModificationException),
    ):
        anabranch.sql(spark, text)


CHANGES = (
    "UPDATE @t SET s = 'x' WHERE id = 0",
    "DELETE FROM @t WHERE id = 0",
    "MERGE INTO @t t USING (SELECT 0 AS k) ON id = k WHEN MATCHED THEN DELETE",
)


def test_a_change_runs_on_the_version_for_which_its_words_were_understood(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = StatementContext.snapshot

    def overtaken(self: StatementContext, table: Table) -> Snapshot:
        found = plain(self, table)
        if open_log(path).snapshot().version == found.version:
            AddColumns(path, [NewColumn(Field(f"more{found.version}", "long"))]).run()
        return found

    monkeypatch.setattr(StatementContext, "snapshot", overtaken)
    for change in CHANGES:
        with pytest.raises(errors.MetadataChangedException):
            anabranch.sql(spark, change.replace("@t", f"delta.`{path}`"))


def test_sql_has_the_row_level_too(spark: SparkSession, path: str) -> None:
    other = f"UPDATE delta.`{path}` SET s = 'other' WHERE id = 0"
    with at_phase("staged", lambda: anabranch.sql(spark, other)):
        anabranch.sql(spark, f"UPDATE delta.`{path}` AS t SET t.s = 'mine' WHERE t.id = :id", {"id": 1})
    assert [row["s"] for row in World(path).rows()][:3] == ["other", "mine", "s2"]


@pytest.mark.parametrize(
    "gone", ["array_contains(tags, 'a')", "from_json(json, 'n INT').n = 1", "exists(tags, t -> t = 'a')"]
)
def test_conditions_on_what_is_nested_in_a_row_have_it_as_well(spark: SparkSession, tmp_path: Path, gone: str) -> None:
    rows = [{"id": i, "tags": [tag], "json": f'{{"n": {n}}}'} for i, tag, n in ((0, "a", 1), (1, "b", 2), (2, "c", 3))]
    table = f"delta.`{tmp_path}`"
    anabranch.append(tmp_path, rows)
    with at_phase("staged", lambda: anabranch.sql(spark, f"UPDATE {table} SET id = 20 WHERE id = 2")):
        assert anabranch.sql(spark, f"DELETE FROM {table} WHERE {gone}").first()[0] == 1
    assert sorted(row["id"] for row in World(str(tmp_path)).rows()) == [1, 20]
    with (
        at_phase("staged", lambda: anabranch.sql(spark, f"UPDATE {table} SET tags = array('a'), json = '{{\"n\":1}}'")),
        pytest.raises(errors.DeltaConcurrentModificationException),
    ):
        anabranch.sql(spark, f"UPDATE {table} SET id = -1 WHERE {gone} OR id = 1")


@pytest.mark.parametrize(
    "hostile", ["x' OR '1'='1", "x' OR 1=1 --", "\\' OR 1=1 --", "x'; DROP TABLE y; --", '" OR ""="']
)
def test_no_value_becomes_sql(spark: SparkSession, path: str, hostile: str) -> None:
    deleted = anabranch.sql(spark, f"DELETE FROM delta.`{path}` WHERE s = :s", {"s": hostile})
    assert deleted.first()["num_affected_rows"] == 0
    anabranch.sql(spark, f"UPDATE delta.`{path}` SET s = ? WHERE id = ?", [hostile, 1])
    found = anabranch.sql(spark, f"SELECT id FROM delta.`{path}` WHERE s = :s", {"s": hostile})
    assert ids(found) == [1]
    assert len(World(path).rows()) == 9


def test_a_statement_of_sparks_is_sparks(spark: SparkSession) -> None:
    text = "SELECT /* as it is */ 'delta' AS `x`"
    assert anabranch.sql(spark, text).schema == spark.sql(text).schema
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        anabranch.sql(spark, "SELECT * FROM nowhere_at_all")


def test_braces_and_comments_reach_spark_as_they_were_written(spark: SparkSession, path: str) -> None:
    found = anabranch.sql(spark, f"SELECT '{{x}}' AS `a{{b}}c` /* {{y}} */ FROM delta.`{path}` LIMIT 1")
    assert found.columns == ["a{b}c"]
    assert found.first()[0] == "{x}"


def test_an_unknown_column_is_shown_with_those_that_are_near(spark: SparkSession, path: str) -> None:
    with pytest.raises(errors.SqlAnalysisError) as error:
        anabranch.sql(spark, f"SELECT id,\n  idd FROM delta.`{path}`")
    assert error.value.getCondition().startswith("UNRESOLVED_COLUMN")
    assert error.value.getSqlState() == "42703"
    assert "`id`" in str(error.value)
    assert "_pyspark" not in str(error.value)
    assert error.value.excerpt == f"== SQL (line 2, position 3) ==\n  idd FROM delta.`{path}`\n  ^^^"


def test_settings_under_which_quotes_mean_something_else_are_refused(spark: SparkSession, path: str) -> None:
    setting = "spark.sql.parser.escapedStringLiterals"
    spark.conf.set(setting, "true")
    try:
        with pytest.raises(errors.InvalidOption):
            anabranch.sql(spark, f"DELETE FROM delta.`{path}` WHERE s = 'a\\' OR id = 1")
        assert anabranch.sql(spark, f"SELECT count(*) FROM delta.`{path}` WHERE s = 's1'").first()[0] == 1
    finally:
        spark.conf.unset(setting)


def test_an_overwrite_follows_the_sessions_mode_of_partitions(spark: SparkSession, tmp_path: Path) -> None:
    table, setting = f"delta.`{tmp_path}/p`", "spark.sql.sources.partitionOverwriteMode"
    World(f"{tmp_path}/p").create([{"v": 1, "p": 1}, {"v": 2, "p": 2}], partition_by=("p",))
    spark.conf.set(setting, "dynamic")
    try:
        anabranch.sql(spark, f"INSERT OVERWRITE {table} VALUES (10, 1)")
    finally:
        spark.conf.unset(setting)
    assert World(f"{tmp_path}/p").rows() == [{"v": 2, "p": 2}, {"v": 10, "p": 1}]
    anabranch.sql(spark, f"INSERT OVERWRITE {table} VALUES (3, 3)")
    assert World(f"{tmp_path}/p").rows() == [{"v": 3, "p": 3}]


def test_a_table_made_anew_from_itself_keeps_its_id_and_history(spark: SparkSession, path: str) -> None:
    before = DeltaTable.forPath(spark, path).detail().first()["id"]
    text = (
        f"CREATE OR REPLACE TABLE delta.`{path}` TBLPROPERTIES ('a' = 'b') COMMENT 'c' AS SELECT id FROM delta.`{path}`"
    )
    anabranch.sql(spark, text)
    after = DeltaTable.forPath(spark, path).detail().first()
    assert (after["id"], after["description"], after["properties"]["a"]) == (before, "c", "b")
    assert len(anabranch.history(path)) == 4


def test_a_table_is_kept_in_shape(spark: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"
    done = anabranch.sql(spark, f"OPTIMIZE {table} ZORDER BY (id)").first()
    assert (done["metrics"]["numFilesRemoved"], done["metrics"]["numFilesAdded"]) == (3, 1)
    anabranch.sql(spark, f"DELETE FROM {table} WHERE id = 0")
    assert anabranch.sql(spark, f"REORG TABLE {table} APPLY (PURGE)").first()["metrics"]["numFilesRemoved"] == 1
    assert anabranch.sql(spark, f"FSCK REPAIR TABLE {table} DRY RUN").collect() == []
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        going = anabranch.sql(spark, f"VACUUM {table} RETAIN 0 HOURS DRY RUN").collect()
        assert all(row["path"].startswith("file://") for row in going)
        assert len(going) >= 4
        assert anabranch.sql(spark, f"VACUUM {table} RETAIN 0 HOURS").first()["path"].endswith("/table")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert len(World(path).rows()) == 8
    assert anabranch.history(path)[0]["operation"] == "VACUUM END"


def test_a_table_goes_back_and_is_cloned(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table, copy = f"delta.`{path}`", f"delta.`{tmp_path}/copy`"
    anabranch.sql(spark, f"DELETE FROM {table}")
    assert anabranch.sql(spark, f"RESTORE TABLE {table} TO VERSION AS OF 1").first()["num_restored_files"] == 2
    made = anabranch.sql(spark, f"CREATE TABLE {copy} DEEP CLONE {table} VERSION AS OF :v", {"v": 0}).first()
    assert made["num_copied_files"] == 1
    assert [row["id"] for row in World(f"{tmp_path}/copy").rows()] == [0, 1, 2]


def test_an_insert_may_bring_columns(spark: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"
    anabranch.sql(spark, f"INSERT WITH SCHEMA EVOLUTION INTO {table} SELECT 99, 'x', true AS late")
    anabranch.sql(spark, f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT 98 AS id, 1.5D AS more")
    assert [tuple(row.values()) for row in World(path).rows()][-2:] == [(98, None, None, 1.5), (99, "x", True, None)]


def test_columns_are_qualified_by_the_whole_name_of_their_table(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table, other = f"delta.`{path}`", f"delta.`{tmp_path}/other`"
    anabranch.append(f"{tmp_path}/other", [{"id": 1, "s": "o"}, {"id": 2, "s": "p"}])
    joined = f"SELECT {table}.id, {other}.* FROM {table} JOIN {other} ON {table}.id = {other}.id WHERE {table}.s = 's1'"
    assert [tuple(row) for row in anabranch.sql(spark, joined).collect()] == [(1, 1, "o")]
    inner = f"SELECT {table}.id FROM {table} WHERE EXISTS (SELECT 1 FROM {table} x WHERE x.id = {table}.id + 20)"
    assert ids(anabranch.sql(spark, inner)) == [0, 1, 2]
    assert anabranch.sql(spark, f"UPDATE {table} SET {table}.s = 'u' WHERE {table}.id = :i", {"i": 1}).first()[0] == 1
    merged = f"""MERGE INTO {table} USING {other} ON {table}.id = {other}.id
        WHEN MATCHED AND {table}.s = 'u' THEN UPDATE SET {table}.s = upper({other}.s)
        WHEN NOT MATCHED THEN INSERT (id) VALUES ({other}.id)"""
    assert anabranch.sql(spark, merged).first()["num_updated_rows"] == 1
    nested = f"DELETE FROM {table} WHERE {table}.id IN (SELECT {other}.id FROM {other} WHERE {other}.id = {table}.id)"
    assert anabranch.sql(spark, nested).first()[0] == 2
    aliased = f"SELECT {table}.id FROM {table} AS x"
    with pytest.raises(errors.SqlAnalysisError):
        anabranch.sql(spark, aliased)


def test_a_temporary_view_follows_its_tables(spark: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"

    def counted(*views: str) -> list[int]:
        each = " UNION ALL ".join(f"SELECT {i} FROM {view}" for i, view in enumerate(views))
        rows = Counter(row[0] for row in anabranch.sql(spark, each).collect())
        return [rows[i] for i in range(len(views))]

    def is_as_the_table(*views: str) -> bool:
        files = [sorted(anabranch.sql(spark, f"SELECT * FROM {view}").inputFiles()) for view in (*views, table)]
        return all(each == files[-1] for each in files)

    for text in (
        f"CREATE TEMP VIEW follows (k) AS SELECT id FROM {table}",
        "CREATE TEMP VIEW behind AS SELECT k + 1 AS k FROM follows",
        f"CREATE GLOBAL TEMPORARY VIEW everywhere AS SELECT * FROM {table}",
        f"CREATE TEMP VIEW pinned AS SELECT * FROM {table} VERSION AS OF 1",
        f"CREATE OR REPLACE TEMP VIEW grows AS SELECT id FROM {table}",
        f"CREATE OR REPLACE TEMP VIEW grows AS SELECT id FROM grows UNION ALL SELECT id FROM {table}",
    ):
        anabranch.sql(spark, text)
    views = ("follows", "behind", "global_temp.everywhere", "pinned", "grows")
    try:
        anabranch.append(path, [{"id": 99, "s": "late"}])
        assert counted(*views) == [10, 10, 10, 6, 18]
        anabranch.sql(spark, f"DELETE FROM {table} WHERE id IN (SELECT k FROM follows WHERE k > 20)")
        assert len(World(path).rows()) == 7
        anabranch.sql(spark, f"ALTER TABLE {table} ADD COLUMN more INT")
        assert anabranch.sql(spark, "SELECT * FROM global_temp.everywhere").columns == ["id", "s"]
        with pytest.raises(Exception, match="RECURSIVE_VIEW"):
            anabranch.sql(spark, "CREATE OR REPLACE TEMP VIEW behind AS SELECT k FROM behind")
        anabranch.append(path, [{"id": 5, "s": "later"}])
        assert is_as_the_table("behind", "follows")
        spark.range(3).createOrReplaceTempView("follows")
        assert counted("follows", "pinned") == [3, 6]
        spark.catalog.dropTempView("behind")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            anabranch.sql(spark, "SELECT * FROM behind")
    finally:
        for view in ("follows", "behind", "pinned", "grows"):
            spark.catalog.dropTempView(view)
        spark.catalog.dropGlobalTempView("everywhere")


# -- the command line --------------------------------------------------------------------------------------------------


def run(*words: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, ["sql", *words], input=text, env={"COLUMNS": "120"})


@pytest.mark.usefixtures("spark")
def test_the_command_line_gives_json_and_csv(path: str) -> None:
    query = f"SELECT id, s, CAST(NULL AS DATE) AS d FROM delta.`{path}` WHERE id < 2 ORDER BY id"
    assert json.loads(run(query, "--json").stdout) == [{"id": 0, "s": "s0", "d": None}, {"id": 1, "s": "s1", "d": None}]
    assert run(query, "--csv").stdout == "id,s,d\n0,s0,\n1,s1,\n"


@pytest.mark.usefixtures("spark")
def test_the_command_line_takes_a_file_and_a_pipe(path: str, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(f"DELETE FROM delta.`{path}` WHERE id > 0; -- most\nSELECT count(*) AS n FROM delta.`{path}`;")
    assert run("--file", str(script), "--csv").stdout == "num_affected_rows\n8\nn\n1\n"
    assert run("--csv", text=f"SELECT id FROM delta.`{path}`").stdout == "id\n0\n"


@pytest.mark.usefixtures("spark")
def test_the_command_line_bounds_what_it_draws(path: str) -> None:
    found = run(f"SELECT id FROM delta.`{path}` ORDER BY id", "--limit", "2").stdout
    assert "and more" in found
    assert "10" not in found


@pytest.mark.usefixtures("spark")
def test_an_error_on_the_command_line_is_a_message_and_an_exit_code(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    for query, said in (
        (f"DELETE FORM delta.`{path}`", "^^^^"),
        ("SELECT * FROM nowhere_at_all", "TABLE_OR_VIEW_NOT_FOUND"),
        (f"SELECT raise_error(s) FROM delta.`{path}`", "USER_RAISED_EXCEPTION"),
    ):
        monkeypatch.setattr("sys.argv", ["anabranch", "sql", query])
        with pytest.raises(SystemExit) as left:
            _cli.main()
        assert left.value.code == 2
        printed = capsys.readouterr().err
        assert said in printed
        assert "Traceback" not in printed
        assert "at org.apache" not in printed
