"""A statement that makes or changes a Delta table is read, or refused by an error of ours; Spark never gets it."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch import errors
from anabranch._catalog.table_names import path_in
from anabranch._protocol.rules.table_rules import CONSTRAINT_PREFIX
from anabranch._sql import reading as parsing
from anabranch._sql.grammar import row_values
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.grammar.ddl_targets import CreateTarget

KNOWN = {("t",): "/t", ("db", "t"): "/t", ("cat", "db", "t"): "/t", ("1a_x",): "/1", ("db", "1a_x"): "/1", ("u",): "/u"}


def located(name: tuple[str, ...]) -> Any:
    return KNOWN.get(tuple(part.lower() for part in name)) or path_in(name)


def is_ours(making: CreateTarget) -> bool:
    return making.format == "delta" or making.clones


def placed(name: tuple[str, ...], making: CreateTarget) -> Any:
    return (making.location or f"/{name[-1]}") if is_ours(making) else None


def parsed(text: str, args: Any = None) -> Any:
    return parsing.statement(text, args, located, placed, located, is_ours)


# -- types and columns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        ("INTERVAL", "interval"),
        ("INTERVAL MONTH TO DAY", "interval month to day"),
        ("INTERVAL SECOND TO MINUTE", "interval second to minute"),
        ("TIME(6)", "time"),
        ("ARRAY<TIME>", "time"),
        ("MAP<STRING, INTERVAL>", "interval"),
        ("STRING COLLATE UTF8_LCASE", "string collate UTF8_LCASE"),
    ],
)
def test_a_type_of_sparks_that_no_delta_table_holds_is_refused_by_its_name(declared: str, shown: str) -> None:
    with pytest.raises(errors.UnsupportedType) as refused:
        parsed(f"CREATE TABLE n (a {declared}) USING delta")
    assert refused.value.facts["column"] == "a"
    assert refused.value.facts["type"] == shown


@pytest.mark.parametrize("fields", ["YEAR TO MONTH", "YEAR", "MONTH", "DAY TO SECOND", "HOUR", "minute to second"])
def test_an_interval_is_declared_by_its_fields(fields: str) -> None:
    (column, other) = parsed(f"CREATE TABLE n (a INTERVAL {fields} COMMENT 'how long', b INT) USING delta").columns
    is_of_months = fields in ("YEAR TO MONTH", "YEAR", "MONTH")
    assert column.type == ("interval year to month" if is_of_months else "interval day to second")
    assert (column.metadata, other.type) == ({"comment": "how long"}, "integer")


def test_a_type_that_nobody_knows_is_refused_for_a_delta_table_and_left_to_spark_for_others() -> None:
    with pytest.raises(errors.SqlSyntaxError, match="no such type"):
        parsed("CREATE TABLE n (a FOO) USING delta")
    assert parsed("CREATE TABLE n (a FOO) USING parquet") is None


@pytest.mark.parametrize("how", ["ALWAYS", "BY DEFAULT"])
def test_an_identity_column_that_is_no_bigint_is_refused(how: str) -> None:
    with pytest.raises(errors.InvalidOption, match="an identity column is a BIGINT"):
        parsed(f"CREATE TABLE n (id INT GENERATED {how} AS IDENTITY, v INT) USING delta")


def test_a_check_behind_a_column_is_a_constraint_of_the_table() -> None:
    made = parsed(
        "CREATE TABLE n (id INT CHECK (id > 0), b INT NOT NULL DEFAULT 2 CONSTRAINT small CHECK (b < 3) COMMENT 'x') "
        "USING delta"
    )
    assert isinstance(made, v.CreateTable)
    assert made.properties == {f"{CONSTRAINT_PREFIX}n_chk": "id > 0", f"{CONSTRAINT_PREFIX}small": "b < 3"}
    assert made.columns[1].metadata == {"CURRENT_DEFAULT": "2", "comment": "x"}
    assert not made.columns[1].nullable


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["123_", "1a_x", "2020_sales"])
def test_a_name_may_begin_with_a_digit(name: str) -> None:
    made = parsed(f"CREATE TABLE {name} (id INT) USING delta")
    assert made.table.name == (name,)


def test_a_table_whose_name_begins_with_a_digit_is_found_wherever_it_is_named() -> None:
    assert parsed("VACUUM db.1a_x").table.location == "/1"
    assert parsed("DELETE FROM 1a_x WHERE 1a_x.a = 1e5").table.location == "/1"
    assert [each.table.location for each in parsed("SELECT 1a_x.a FROM 1a_x").references] == ["/1"]


# -- CREATE EXTERNAL TABLE ---------------------------------------------------------------------------------------------


def test_an_external_table_is_one_with_a_location_if_it_says_one() -> None:
    text = "TABLE n USING delta CLUSTER BY (a) LOCATION '/x/n' AS SELECT * FROM t"
    external, plain = parsed(f"CREATE EXTERNAL {text}"), parsed(f"CREATE {text}")
    assert (external.table, external.clusters) == (plain.table, plain.clusters)
    assert external.query.text == plain.query.text == "SELECT * FROM t"
    assert parsed("CREATE EXTERNAL TABLE n (a INT) USING delta") == parsed("CREATE TABLE n (a INT) USING delta")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE EXTERNAL TABLE n LIKE t USING delta LOCATION '/x/n'", "EXTERNAL is not supported"),
    ],
)
def test_an_external_table_like_another_one_is_refused(text: str, why: str) -> None:
    with pytest.raises(errors.SqlSyntaxError, match=why):
        parsed(text)


def test_a_clone_of_a_version_says_where_it_lies() -> None:
    clone = parsed("CREATE TABLE n SHALLOW CLONE t VERSION AS OF 0 LOCATION '/x/n'")
    assert (clone.table.location, clone.source.version) == ("/x/n", "0")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE TABLE n CLONE t COMMENT 'x'", "COMMENT.*no clause of CLONE"),
        (
            "CREATE OR REPLACE TABLE n SHALLOW CLONE t TBLPROPERTIES (a = 1) PARTITIONED BY (a)",
            "PARTITIONED.*no clause",
        ),
        ("CREATE TABLE n CLONE t USING delta", "USING.*no clause"),
        ("CREATE TABLE n DEEP CLONE t OPTIONS (a = 1)", "OPTIONS.*no clause"),
        ("CREATE TABLE n LIKE t USING delta OPTIONS (a = 1)", "OPTIONS.*no clause of CREATE TABLE … LIKE"),
        ("CREATE TABLE n LIKE t USING delta CLUSTER BY (a)", "CLUSTER.*no clause"),
        ("CREATE OR REPLACE TABLE n LIKE t USING delta", "LIKE cannot replace a table"),
        ("REPLACE TABLE n LIKE t USING delta", "LIKE cannot replace a table"),
        ("CREATE TABLE n (a INT) COMMENT 'x' USING delta", "USING.*no clause"),
        ("CREATE TABLE n (a INT) USING delta TBLPROPERTIES ('a.b' = 1, a.b = 2)", "a.b is specified twice"),
        ("CREATE TABLE n LIKE t USING delta TBLPROPERTIES (a = 1, b = 2, a = 1)", "a is specified twice"),
        ("CREATE TABLE n (a INT) USING delta OPTIONS (a = 1, a = 2)", "a is specified twice"),
        ("ALTER TABLE t SET TBLPROPERTIES (a = 1, a = 1)", "a is specified twice"),
        ("CREATE VIEW n TBLPROPERTIES (a = 1, a = 1) AS SELECT * FROM t", "a is specified twice"),
    ],
)
def test_no_clause_is_taken_that_means_nothing(text: str, why: str) -> None:
    with pytest.raises(errors.SqlSyntaxError, match=f"(?s){why}"):
        parsed(text)


def test_clauses_of_a_table_like_another_one_stand_in_any_order() -> None:
    made = parsed("CREATE TABLE n LIKE t TBLPROPERTIES (a = 1) LOCATION '/x/n' USING delta")
    assert (made.table.location, made.properties, made.like.name) == ("/x/n", {"a": "1"}, ("t",))


@pytest.mark.parametrize("query", ["(SELECT a FROM t)", "AS (SELECT a FROM t)", "MAP a USING 'cat' FROM t"])
def test_a_table_is_made_of_any_query(query: str) -> None:
    assert parsed(f"CREATE TABLE n USING delta COMMENT 'x' {query}").query.text == query.removeprefix("AS ")


# -- what the grammar does not read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE n (a INT) USING delta FOO BAR",
        "CREATE TABLE n (a INT OOPS) USING delta",
        "CREATE TABLE n (a INT) USING delta CLUSTERED BY (a) INTO 4 BUCKETS",
        "CREATE TABLE IF NOT EXISTS n a INT USING delta",
        "CREATE TABLE IDENTIFIER('a' || 'b') (a INT) USING delta",
        "CREATE OR REPLACE EXTERNAL TABLE n (a INT) USING delta LOCATION '/x'",
        "CREATE TEMPORARY TABLE n (a INT) USING delta",
        "CREATE TEMPORARY VIEW n USING delta",
        "CREATE TEMPORARY VIEW n USING delta OPTIONS (path '/x', mergeSchema true)",
        "CREATE OR REPLACE TEMP VIEW n (a INT) USING DELTA OPTIONS (path '/x')",
        "INSERT OVERWRITE DIRECTORY '/x' USING delta SELECT 1 AS a",
        "INSERT OVERWRITE LOCAL DIRECTORY '/x' USING delta SELECT 1 AS a",
        "EXPLAIN CREATE TABLE n USING delta AS SELECT 1 AS a",
        "CREATE OR REPLACE TEMPORARY FUNCTION f() RETURNS INT RETURN SELECT max(a) FROM t",
        "FROM t INSERT INTO other SELECT a INSERT OVERWRITE TABLE db.t SELECT b",
        "WITH s AS (SELECT 1 AS a) FROM s INSERT INTO t SELECT a INSERT INTO other SELECT a",
        "CREATE TABLE IF NOT EXISTS n LIKE t USING parquet",
    ],
)
def test_what_would_be_a_delta_table_is_refused_where_it_is_not_read(text: str) -> None:
    with pytest.raises(errors.InputError):
        parsed(text)


@pytest.mark.parametrize(
    "text",
    [
        "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a",
        "MSCK REPAIR TABLE db.t",
        "LOAD DATA INPATH '/x' INTO TABLE t",
        "ALTER TABLE t RECOVER PARTITIONS",
        "ALTER TABLE t ADD PARTITION (a = 1)",
        "ALTER TABLE t ADD IF NOT EXISTS PARTITION (a = 1) LOCATION '/x'",
        "ALTER TABLE t DROP IF EXISTS PARTITION (a = 1)",
        "ALTER TABLE t PARTITION (a = 1) RENAME TO PARTITION (a = 2)",
    ],
)
def test_what_no_engine_does_to_a_delta_table_is_refused_as_such(text: str) -> None:
    with pytest.raises(errors.UnsupportedCommand) as refused:
        parsed(text)
    assert refused.value.getCondition() == "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TEMPORARY VIEW n USING csv OPTIONS (path '/x')",
        "CREATE EXTERNAL TABLE n (a INT) USING parquet",
        "CREATE TABLE IDENTIFIER('a' || 'b') (a INT) USING parquet",
        "CREATE FUNCTION f AS 'x.F' USING JAR '/x.jar'",
        "INSERT OVERWRITE DIRECTORY '/x' USING csv SELECT 1 AS a",
        "WITH s AS (SELECT 1 AS a) DELETE FROM other WHERE a IN (SELECT a FROM s)",
        "WITH s AS (SELECT 1 AS a) UPDATE other SET a = 1",
        "SELECT IDENTIFIER('a b') FROM other",
        "FROM other INSERT INTO others SELECT a",
        "EXPLAIN DELETE FROM other",
        "EXPLAIN EXTENDED SELECT 1",
        "COMMENT ON COLUMN other.a IS 'x'",
    ],
)
def test_what_is_no_delta_table_is_left_to_spark_as_it_stands(text: str) -> None:
    assert parsed(text) is None


@pytest.mark.parametrize("verb", ["delete", "update", "merge", "insert"])
def test_the_name_of_a_verb_behind_a_query_is_an_alias(verb: str) -> None:
    assert isinstance(parsed(f"WITH s AS (SELECT 1 AS a) SELECT count(*) {verb} FROM t"), v.Query)


@pytest.mark.parametrize(
    ("text", "mode", "change"),
    [
        ("EXPLAIN DELETE FROM t", "", row_values.DeleteRows),
        ("EXPLAIN FORMATTED UPDATE t SET a = 1", "FORMATTED", row_values.UpdateRows),
        ("explain extended truncate table t", "EXTENDED", row_values.TruncateTable),
        ("EXPLAIN COST MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", "COST", row_values.MergeRows),
        ("EXPLAIN CODEGEN INSERT INTO t VALUES (1)", "CODEGEN", row_values.InsertRows),
        ("EXPLAIN OPTIMIZE t ZORDER BY (a)", "", v.OptimizeTable),
    ],
)
def test_a_change_of_rows_is_explained(text: str, mode: str, change: type) -> None:
    explained = parsed(text)
    assert isinstance(explained, v.ExplainChange)
    assert (explained.mode, type(explained.change)) == (mode, change)


def test_with_behind_explain_belongs_to_the_query_of_the_change() -> None:
    insert = parsed("EXPLAIN WITH s AS (SELECT a FROM u) INSERT INTO t SELECT a FROM s").change
    assert insert.query.text == "WITH s AS (SELECT a FROM u) SELECT a FROM s"


def test_with_before_merge_belongs_to_its_source() -> None:
    merge = parsed("WITH s AS (SELECT a FROM u) MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE")
    assert isinstance(merge, row_values.MergeRows)
    assert (merge.table.location, merge.source_alias) == ("/t", "s")
    assert merge.source.text == "WITH s AS (SELECT a FROM u) SELECT * FROM s"
    (read,) = merge.source.references
    assert merge.source.text[read.start : read.stop] == "u"


# -- columns by more of a table's name than it was named with ----------------------------------------------------------


@pytest.mark.parametrize("whole", ["db.t", "cat.db.t", "`db`.T"])
def test_a_column_is_qualified_by_more_of_the_tables_name_than_the_statement_said(whole: str) -> None:
    assert parsed(f"DELETE FROM t WHERE t.a = 1 AND {whole}.b = 4").where.text.lower() == "t.a = 1 and t.b = 4"
    update = parsed(f"UPDATE t SET {whole}.a = {whole}.a + 1")
    ((path, value),) = update.values
    assert (path[-1], value.text.lower()) == ("a", "t.a + 1")
    assert path[:-1] in ((), ("t",), ("T",))
    assert parsed(f"SELECT {whole}.a FROM t").text.lower() == "select t.a from t"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x.t.a FROM t",
        "SELECT db.t.a FROM t JOIN other AS t",
        "SELECT db.t.a FROM t JOIN (SELECT 1 AS a) t",
    ],
)
def test_a_qualifier_that_may_be_anothers_stays_as_it_is(text: str) -> None:
    assert parsed(text).text == text


# -- table_changes -----------------------------------------------------------------------------------------------------


def test_a_bound_of_changes_is_no_query() -> None:
    with pytest.raises(errors.SqlSyntaxError, match="a constant, not a query"):
        parsed("SELECT * FROM table_changes('t', (SELECT 0))")


# -- converting --------------------------------------------------------------------------------------------------------


def test_a_name_and_a_path_are_told_apart_where_files_are_converted() -> None:
    assert parsed("CONVERT TO DELTA db.p NO STATISTICS PARTITIONED BY (a INT)") == v.ConvertName(("db", "p"))
    assert parsed("CONVERT TO DELTA parquet.`p`").identifier == "parquet.`p`"
    assert parsed("CONVERT TO DELTA db.t").identifier == "delta.`/t`"
