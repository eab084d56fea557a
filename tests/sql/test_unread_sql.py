"""Statements on Spark that Delta's parser takes, too: done, or refused by an error of ours, never by one of Java's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import errors
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark


@pytest.mark.exhaustive(
    "tests/sql/grammar/test_tables.py::test_a_name_may_begin_with_a_digit",
    "tests/sql/grammar/test_tables.py::test_a_table_whose_name_begins_with_a_digit_is_found_wherever_it_is_named",
)
def test_a_name_may_begin_with_a_digit(run: Any) -> None:
    run("CREATE TABLE 2020_sales (id INT) USING delta")
    run("INSERT INTO 2020_sales VALUES (1), (2)")
    run("DELETE FROM 2020_sales WHERE 2020_sales.id = 1")
    assert run("SELECT 2020_sales.id FROM 2020_sales") == [(2,)]
    run("VACUUM 2020_sales DRY RUN")


@pytest.mark.exhaustive(
    "tests/sql/grammar/test_tables.py::test_a_column_is_qualified_by_more_of_the_tables_name_than_the_statement_said",
    "tests/sql/test_sql.py::test_columns_are_qualified_by_the_whole_name_of_their_table",
)
def test_a_column_is_found_by_more_of_its_tables_name_than_was_said(run: Any, schema: str) -> None:
    run("CREATE TABLE t (id INT, v INT) USING delta")
    run("INSERT INTO IDENTIFIER('t') VALUES (1, 1), (2, 2), (3, 3)")
    run(f"DELETE FROM t WHERE t.id = 1 AND {schema}.t.v = 1")
    run(f"UPDATE t SET {schema}.t.v = {schema}.t.v + spark_catalog.{schema}.t.id WHERE {schema}.t.id = 2")
    assert run(f"SELECT {schema}.t.id, v FROM t") == [(2, 4), (3, 3)]


@pytest.mark.exhaustive(
    "tests/sql/grammar/test_tables.py::test_an_external_table_is_one_with_a_location_if_it_says_one",
    "tests/sql/grammar/test_tables.py::test_an_external_table_like_another_one_is_refused",
)
def test_an_external_table_is_made_as_a_query(run: Any, tmp_path: Path) -> None:
    run(f"CREATE EXTERNAL TABLE e USING delta CLUSTER BY (id) LOCATION '{tmp_path}/e' AS SELECT 1 AS id")
    assert run(f"SELECT * FROM delta.`{tmp_path}/e`") == run("SELECT * FROM e") == [(1,)]
    run("CREATE EXTERNAL TABLE f (id INT) USING delta")  # as for delta-spark, it lies where the others of its schema do
    assert run("SELECT * FROM f") == []


@pytest.mark.exhaustive("tests/sql/grammar/test_tables.py::test_with_before_merge_belongs_to_its_source")
def test_with_before_merge_is_a_part_of_its_source(run: Any) -> None:
    run("CREATE TABLE t (id INT, v INT) USING delta")
    run("INSERT INTO t VALUES (1, 1), (2, 2)")
    merge = """WITH two AS (SELECT id, :v AS v FROM t WHERE id > 1) MERGE INTO t USING two ON t.id = two.id
               WHEN MATCHED THEN UPDATE SET v = two.v"""
    run(merge, {"v": 9})
    assert run("SELECT * FROM t") == [(1, 1), (2, 9)]


def test_rows_of_a_temporary_view_of_a_delta_table_are_not_changed(run: Any, held: Any) -> None:
    run("CREATE TABLE t USING delta AS SELECT 1 AS id")
    run("CREATE OR REPLACE TEMPORARY VIEW seen_of_t AS SELECT id + 0 AS id FROM t")
    changes = (
        "DELETE FROM seen_of_t WHERE id = 1",
        "UPDATE SEEN_of_t SET id = 2",
        "INSERT INTO seen_of_t VALUES (2)",
        "INSERT OVERWRITE TABLE seen_of_t VALUES (2)",
        "TRUNCATE TABLE seen_of_t",
        "WITH two AS (SELECT 2 AS id) INSERT INTO TABLE seen_of_t SELECT * FROM two",
        "WITH two AS (SELECT 2 AS id) DELETE FROM seen_of_t WHERE id IN (SELECT id FROM two)",
        "MERGE INTO seen_of_t USING (SELECT 1 AS id) s ON seen_of_t.id = s.id WHEN MATCHED THEN DELETE",
    )
    for text in few_of(changes, 5):
        with pytest.raises(errors.ViewIsNoTable, match=r"(?i)seen_of_t"):
            run(text)
    assert held("t") == [(1,)]
    run("DROP VIEW seen_of_t")


def test_a_bound_of_changes_and_a_moment_know_no_column(run: Any) -> None:
    run("CREATE TABLE t (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    for text in ("SELECT * FROM table_changes('t', 0, id)", "SELECT * FROM t TIMESTAMP AS OF timestamp_seconds(id)"):
        with pytest.raises(errors.InputError, match="id"):
            run(text)


def test_an_identity_column_neither_partitions_nor_is_an_int(run: Any) -> None:
    with pytest.raises(errors.InvalidOption, match="partition"):
        run("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta PARTITIONED BY (id)")
    with pytest.raises(errors.InvalidOption, match="BIGINT"):
        run("CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY, v INT) USING delta")
    assert [name for _, name, is_temporary in run("SHOW TABLES") if not is_temporary] == []


def test_statements_of_sparks_on_a_delta_table_are_refused_by_a_name(run: Any) -> None:
    run("CREATE TABLE t (id INT) USING delta")
    run("CREATE TABLE u (id INT) USING delta")
    for text in (
        "EXPLAIN VACUUM t",
        "CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN SELECT max(id) FROM t",
    ):
        with pytest.raises(errors.NotBuilt):
            run(text)
    assert run("EXPLAIN SELECT * FROM t")


def test_what_is_said_of_a_table_and_its_columns_is_shown(run: Any, schema: str) -> None:
    run("CREATE TABLE t (id INT, s STRUCT<x: INT>) USING delta")
    run("COMMENT ON TABLE t IS 'words'")
    run("COMMENT ON COLUMN t.id IS 'key'")
    run(f"COMMENT ON COLUMN {schema}.t.s.x IS 'inside'")
    assert run("DESCRIBE DETAIL t")[0][3] == "words"
    assert ("comment", "key") in run("DESCRIBE t id")


@pytest.mark.exhaustive(
    "tests/sql/grammar/test_statements.py::test_statements_that_show_a_table_or_keep_it_in_shape",
    "tests/commands/ddl/test_change_column.py::test_a_comment_comes_and_goes",
    "tests/sql/test_unread_sql.py::test_what_is_said_of_a_table_and_its_columns_is_shown",
)
def test_what_was_said_of_a_table_and_its_columns_is_taken_back(run: Any) -> None:
    run("CREATE TABLE t (id INT COMMENT 'key') USING delta COMMENT 'words'")
    run("COMMENT ON TABLE t IS NULL")
    run("COMMENT ON COLUMN t.id IS NULL")
    assert not run("DESCRIBE DETAIL t")[0][3]
    assert ("comment", "NULL") in run("DESCRIBE t id")


def test_columns_are_shown_of_a_table_in_a_schema(run: Any, schema: str) -> None:
    run("CREATE TABLE t (id INT, v INT) USING delta")
    run(f"REFRESH TABLE {schema}.t")
    for text in (f"t FROM {schema}", f"t IN {schema}", f"{schema}.t IN {schema}"):
        assert run(f"SHOW COLUMNS IN {text}") == [("id",), ("v",)]


def test_one_query_block_feeds_several_tables(run: Any, held: Any) -> None:
    for name, rows in (("source", "(1, 'a'), (2, 'b'), (3, 'c')"), ("large", "(9, 'old')")):
        run(f"CREATE TABLE {name} USING delta AS SELECT * FROM VALUES {rows} AS r (id, v)")
    run("CREATE TABLE small (id INT, v STRING) USING delta")
    run(
        "FROM source AS s JOIN (SELECT 1 AS one) ON true "
        "INSERT INTO small SELECT s.id, s.v WHERE s.id < 2 "
        "INSERT OVERWRITE TABLE large (v, id) SELECT upper(v), id WHERE id >= 2 "
        "INSERT INTO small SELECT id + 10, v"
    )
    assert held("small") == [(1, "a"), (11, "a"), (12, "b"), (13, "c")]
    assert held("large") == [(2, "B"), (3, "C")]


@pytest.mark.parametrize(
    ("second", "error"),
    [
        ("t SELECT id", errors.SchemaMismatch),
        ("t (id, misspelt) SELECT id, id", errors.UnknownColumn),
        ("t SELECT id, misspelt", errors.SqlAnalysisError),
        ("delta.`{}/absent` SELECT id, id", errors.NotATable),
    ],
)
def test_no_table_is_fed_where_what_another_one_is_fed_is_not_understood(
    run: Any, held: Any, tmp_path: Path, second: str, error: type[Exception]
) -> None:
    run("CREATE TABLE t (id INT, v INT) USING delta")
    with pytest.raises(error):
        run(f"FROM range(3) INSERT INTO t SELECT id, 0 INSERT INTO {second.format(tmp_path)}")
    assert held("t") == []


@pytest.mark.exhaustive(
    "tests/sql/test_unread_sql.py::test_one_query_block_feeds_several_tables",
    "tests/sql/grammar/test_parameters.py::test_places_count_over_the_whole_statement",
)
def test_parameters_of_a_block_that_feeds_several_tables_go_to_each(run: Any) -> None:
    run("CREATE TABLE source (id INT) USING delta")
    run("CREATE TABLE t (id INT, p INT) USING delta")
    run("INSERT INTO source VALUES (1), (2), (3)")
    block = "FROM (SELECT * FROM source WHERE id > ?) "
    run(f"{block} INSERT INTO t SELECT id, ? INSERT INTO t SELECT id, ? WHERE id > ?", [1, 10, 20, 2])
    assert run("SELECT * FROM t") == [(2, 10), (3, 10), (3, 20)]


def test_a_temporary_view_of_a_path_follows_the_table_or_stays_at_a_version(run: Any, tmp_path: Path) -> None:
    path = f"{tmp_path}/of 'quotes' `and`"
    in_text = path.replace("'", "\\'")
    run(f"CREATE TABLE delta.`{path.replace('`', '``')}` (id INT) USING delta")
    run(f"CREATE TEMPORARY VIEW moving USING delta OPTIONS (path '{in_text}')")
    run(f"CREATE OR REPLACE TEMP VIEW fixed USING delta OPTIONS ('path' = '{in_text}', 'versionAsOf' = '0')")
    run(f"INSERT INTO delta.`{path.replace('`', '``')}` VALUES (1)")
    assert run("SELECT * FROM moving") == [(1,)]
    assert run("SELECT * FROM fixed") == []
    for view in ("moving", "fixed"):
        run(f"DROP VIEW {view}")


@pytest.mark.parametrize("mode", ["none", "name"])
def test_members_are_added_inside_of_arrays_and_maps(run: Any, mode: str) -> None:
    deep = "MAP<STRING, STRUCT<z: INT>>"
    said = f"s STRUCT<x: INT, l: ARRAY<STRUCT<y: INT>>, m: {deep}>, d ARRAY<{deep}>"
    run(f"CREATE TABLE t ({said}) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')")
    old = "named_struct('x', 1, 'l', array(named_struct('y', 1)), 'm', map('k', named_struct('z', 1)))"
    run(f"INSERT INTO t SELECT {old}, array(map('k', named_struct('z', 1)))")
    run("ALTER TABLE t ADD COLUMNS (s.n STRING FIRST, s.l.element.n INT AFTER y, s.m.value.n INT FIRST)")
    run("ALTER TABLE t ADD COLUMN d.element.value.n INT")
    new = "'n', 'a', 'x', 2, 'l', array(named_struct('y', 2, 'n', 3)), 'm', map('k', named_struct('n', 4, 'z', 2))"
    run(f"INSERT INTO t SELECT named_struct({new}), array(map('k', named_struct('z', 2, 'n', 5)))")
    run("UPDATE t SET s.x = s.x + 10 WHERE s.n IS NULL")
    found = "s.x, s.n, s.l[0].y, s.l[0].n, s.m['k'].n, s.m['k'].z, d[0]['k'].z, d[0]['k'].n"
    assert run(f"SELECT {found} FROM t") == [(2, "a", 2, 3, 4, 2, 2, 5), (11, None, 1, None, None, 1, 1, None)]


def test_rows_are_changed_by_the_name_of_a_view_that_shows_all_of_a_table(run: Any, held: Any) -> None:
    run("CREATE TABLE t USING delta AS SELECT * FROM VALUES (1, 1), (2, 2), (3, 3), (4, 4) AS r (k, v)")
    run("CREATE OR REPLACE TEMP VIEW whole_of_t AS SELECT * FROM t")
    run("DELETE FROM whole_of_t WHERE whole_of_t.k = 1")
    run("UPDATE Whole_Of_T AS w SET v = w.v * 10 WHERE w.k = 2")
    source = "(SELECT 3 AS k, 30 AS v UNION ALL SELECT 5, 50) s"
    matched = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    assert run(f"MERGE INTO whole_of_t USING {source} ON whole_of_t.k = s.k {matched}") == [(2, 1, 0, 1)]
    assert held("t") == [(2, 20), (3, 30), (4, 4), (5, 50)]
    run("INSERT INTO whole_of_t (v, k) VALUES (60, 6)")
    assert "INSERT: file:" in run("EXPLAIN FORMATTED INSERT INTO whole_of_t VALUES (1, 1)")[0][0]
    assert held("t")[-1] == (6, 60)
    run("ALTER TABLE t ADD COLUMN new INT")
    with pytest.raises(errors.ViewIsNoTable):  # of which it shows no longer all
        run("UPDATE whole_of_t SET v = 0")
    with pytest.raises(errors.ViewIsNoTable):
        run("INSERT INTO whole_of_t VALUES (1, 1)")
    run("DROP VIEW whole_of_t")


@pytest.mark.exhaustive(
    "tests/sql/test_unread_sql.py::test_rows_are_changed_by_the_name_of_a_view_that_shows_all_of_a_table",
    "tests/sql/test_unread_sql.py::test_rows_of_a_temporary_view_of_a_delta_table_are_not_changed",
    "tests/sql/test_unread_sql.py::test_one_query_block_feeds_several_tables",
)
def test_queries_are_inserted_by_the_name_of_a_view_that_shows_all_of_a_table(run: Any, held: Any) -> None:
    run("CREATE TABLE t (k INT, v INT) USING delta")
    run("CREATE OR REPLACE TEMP VIEW whole_of_t AS SELECT * FROM t")
    run("WITH s AS (SELECT 7 AS k, 70 AS v) INSERT INTO TABLE WHOLE_of_t SELECT * FROM s")
    run("FROM range(3) INSERT INTO whole_of_t SELECT id + 10, 0 WHERE id = 2 INSERT INTO t SELECT 22, 0 WHERE id = 2")
    assert held("t") == [(7, 70), (12, 0), (22, 0)]
    run("INSERT OVERWRITE whole_of_t SELECT * FROM whole_of_t WHERE k = 7")
    assert held("t") == [(7, 70)]
    run("DROP VIEW whole_of_t")


@pytest.mark.exhaustive("tests/sql/test_unread_sql.py::test_rows_of_a_temporary_view_of_a_delta_table_are_not_changed")
@pytest.mark.parametrize(
    "shown", ["SELECT k, v FROM t WHERE k > 1", "SELECT v AS k, k AS v FROM t", "SELECT * FROM t LIMIT 1"]
)
def test_rows_are_not_changed_by_the_name_of_another_view(run: Any, shown: str) -> None:
    run("CREATE TABLE t (k INT, v INT) USING delta")
    run("INSERT INTO t VALUES (1, 1), (2, 2)")
    run(f"CREATE OR REPLACE TEMP VIEW part_of_t AS {shown}")
    for text in (
        "DELETE FROM part_of_t",
        "UPDATE part_of_t SET v = 0",
        "INSERT INTO part_of_t SELECT * FROM t",
        "MERGE INTO part_of_t USING t ON part_of_t.k = t.k WHEN MATCHED THEN UPDATE SET v = 0",
    ):
        with pytest.raises(errors.ViewIsNoTable):
            run(text)
    run("DROP VIEW part_of_t")
    assert run("SELECT * FROM t") == [(1, 1), (2, 2)]


def test_a_path_is_said_as_a_text(run: Any, tmp_path: Path) -> None:
    run(f"CREATE TABLE delta.`{tmp_path}/t` (id INT) USING delta")
    assert [row[0] for row in run(f"DESCRIBE HISTORY '{tmp_path}/t'")] == [0]
    assert run(f"DESCRIBE DETAIL '{tmp_path}' '/t'") == run(f"DESCRIBE DETAIL delta.`{tmp_path}/t`")
    assert run(f"VACUUM '{tmp_path}/t' DRY RUN") == []
    run(f'OPTIMIZE "{tmp_path}/t"')


def test_partitions_are_shown(run: Any, path_of: Any) -> None:
    run("CREATE TABLE t (id BIGINT, y BIGINT, m STRING) USING delta PARTITIONED BY (y, m)")
    months = [(2024, "01"), (2024, "01"), (2023, "12")]
    anabranch.append(path_of("t"), [{"id": i, "y": y, "m": m} for i, (y, m) in enumerate(months)])
    assert run("SHOW PARTITIONS t") == [(2023, "12"), (2024, "01")]
    assert run("SHOW PARTITIONS t PARTITION (Y = 2024)") == [(2024, "01")]
    with pytest.raises(errors.UnknownColumn, match="id"):
        run("SHOW PARTITIONS t PARTITION (id = 1)")
    run("CREATE TABLE u (id INT) USING delta")
    with pytest.raises(errors.InvalidOption, match="not partitioned"):
        run("SHOW PARTITIONS u")
