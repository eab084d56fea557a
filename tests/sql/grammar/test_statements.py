"""Statements become values that say what is asked; what names no Delta table becomes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from anabranch import errors
from anabranch._catalog.table_names import path_in
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch._sql import reading as parsing
from anabranch._sql.grammar import row_values as rv
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.prefilter import TextFacts, text_facts
from tests.support.growth import times_more

T = v.Table("/t", ("delta", "/t"))


def parsed(text: str, args: Any = None) -> Any:
    return parsing.statement(text.replace("@T", "delta.`/t`").replace("@S", "delta.`/s`"), args, path_in)


def expression(text: str) -> v.Expression:
    return v.Expression(text)


# -- what is not Delta's -----------------------------------------------------------------------------------------------

NOT_OURS = [
    "SELECT 1",
    "select * from delta_sharing",
    "SELECT delta.`/t` FROM (SELECT named_struct('/t', 1) AS delta)",
    "SELECT 'FROM delta.`/t`'",
    "SELECT 1 -- FROM delta.`/t`",
    "SELECT /* FROM delta.`/t` */ 1",
    "DELETE FROM names WHERE id = 1",
    "DELETE FORM names -- delta",
    "CREATE TABLE delta_like (id INT) USING parquet",
    "DESCRIBE HISTORY",
    "SHOW TABLES IN delta",
    "CREATE TABLE x USING delta AS SELECT 1",
    "ALTER TABLE x SET TBLPROPERTIES ('delta.a' = 'b')",
    "UPDATE x SET delta = 1",
    "BEGIN SELECT 1; END",
    "SELECT extract(YEAR FROM delta.`/t`) FROM (SELECT named_struct('/t', DATE'2020-01-01') AS delta)",
    "SELECT a IS DISTINCT FROM delta.`/t` FROM x",
    "SELECT * FROM delta.`events`",
    "DELETE FROM delta.events WHERE id = 1",
    "",
    "-- nothing",
]


@pytest.mark.parametrize("text", NOT_OURS)
def test_a_statement_that_names_no_delta_table_is_left_to_spark(text: str) -> None:
    assert parsed(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM `DELTA` . `/t`",
        "-- first\nVACUUM x",
        "  /* x */ commit",
        "Optimize x",
        "begin; select 1",
        "SELECT * FROM table_changes('x', 1)",
    ],
)
def test_the_first_look_misses_nothing(text: str) -> None:
    assert text_facts(text).is_ours


@pytest.mark.parametrize("text", ["SELECT start_date, delta FROM x", "SELECT `a` FROM commits", "SELECT 'VACUUM x'"])
def test_the_first_look_spares_what_is_plainly_sparks(text: str) -> None:
    assert not text_facts(text).is_ours


def test_the_look_at_other_statements_grows_no_faster_than_their_text() -> None:
    """Each statement of an installed session is looked at, Spark's own too. Ten times the columns take ten times the
    work, where they took a hundred times if each word were held against each.
    """

    def look(columns: int) -> None:
        text = "SELECT " + ", ".join(f"column_{i} + {i}" for i in range(columns)) + " FROM somewhere WHERE x = 'y'"
        seen = TextFacts(text)
        assert not seen.is_ours
        assert seen.tables == {("somewhere",)}

    assert times_more(lambda: look(400), lambda: look(4000)) < 40


# -- rows --------------------------------------------------------------------------------------------------------------

ROWS = [
    ("DELETE FROM @T", rv.DeleteRows(T)),
    (
        "delete from ANABRANCH.`/t` where id = 1;",
        rv.DeleteRows(v.Table("/t", ("ANABRANCH", "/t")), expression("id = 1")),
    ),
    (
        "DELETE FROM @T AS x WHERE x.id > 1 /* all */ AND s = 'WHERE'",
        rv.DeleteRows(v.Table("/t", ("delta", "/t"), alias="x"), expression("x.id > 1 /* all */ AND s = 'WHERE'")),
    ),
    (
        "UPDATE @T SET a = CASE WHEN b THEN 1 ELSE f(x, y) END, c.d = DEFAULT, `e f` = 'a,b' WHERE g IN (1, 2)",
        rv.UpdateRows(
            T,
            (
                (("a",), expression("CASE WHEN b THEN 1 ELSE f(x, y) END")),
                (("c", "d"), None),
                (("e f",), expression("'a,b'")),
            ),
            expression("g IN (1, 2)"),
        ),
    ),
    (
        "INSERT INTO @T (a, b) SELECT 1, 2",
        rv.InsertRows(T, v.Query("SELECT 1, 2"), columns=("a", "b")),
    ),
    (
        "INSERT INTO TABLE @T VALUES (1), (2)",
        rv.InsertRows(T, v.Query("VALUES (1), (2)"), values=((expression("1"),), (expression("2"),))),
    ),
    ("INSERT INTO TABLE @T VALUES (1) UNION SELECT 2", rv.InsertRows(T, v.Query("VALUES (1) UNION SELECT 2"))),
    ("INSERT INTO @T BY NAME SELECT 1 AS a", rv.InsertRows(T, v.Query("SELECT 1 AS a"), by_name=True)),
    ("INSERT INTO @T (SELECT 1)", rv.InsertRows(T, v.Query("(SELECT 1)"))),
    ("INSERT INTO @T TABLE x", rv.InsertRows(T, v.Query("TABLE x"))),
    (
        "WITH a AS (SELECT 1) INSERT INTO @T SELECT * FROM a",
        rv.InsertRows(T, v.Query("WITH a AS (SELECT 1) SELECT * FROM a")),
    ),
    ("INSERT OVERWRITE @T SELECT 1", rv.InsertRows(T, v.Query("SELECT 1"), overwrites=True)),
    (
        "INSERT OVERWRITE TABLE @T PARTITION (p = 'x', q) SELECT 1",
        rv.InsertRows(T, v.Query("SELECT 1"), overwrites=True, partition=(("p", "'x'"), ("q", None))),
    ),
    (
        "INSERT INTO @T REPLACE WHERE d > 1 SELECT 1",
        rv.InsertRows(T, v.Query("SELECT 1"), overwrites=True, where=expression("d > 1")),
    ),
    (
        "INSERT INTO @T AS t REPLACE WHERE t.d > 1 (SELECT 1)",
        rv.InsertRows(replace(T, alias="t"), v.Query("(SELECT 1)"), overwrites=True, where=expression("t.d > 1")),
    ),
    (
        "INSERT INTO TABLE @T REPLACE USING (a, `b c`) SELECT 1",
        rv.InsertRows(T, v.Query("SELECT 1"), overwrites=True, using=("a", "b c")),
    ),
    (
        "INSERT INTO @T BY NAME REPLACE USING (a) TABLE s",
        rv.InsertRows(T, v.Query("TABLE s"), overwrites=True, by_name=True, using=("a",)),
    ),
    (
        "INSERT INTO @T t REPLACE ON t.a <=> s.a AND t.b IN (1, 2) (SELECT 1 AS a) AS s",
        rv.InsertRows(
            replace(T, alias="t"),
            v.Query("(SELECT 1 AS a)"),
            overwrites=True,
            on=expression("t.a <=> s.a AND t.b IN (1, 2)"),
            rows_alias="s",
        ),
    ),
    (
        "INSERT INTO @T AS t (a) REPLACE ON f(t.a) = CASE WHEN z THEN 1 END SELECT 1 AS z FROM s",
        rv.InsertRows(
            replace(T, alias="t"),
            v.Query("SELECT 1 AS z FROM s"),
            overwrites=True,
            columns=("a",),
            on=expression("f(t.a) = CASE WHEN z THEN 1 END"),
        ),
    ),
    (
        "WITH w AS (SELECT 1 AS a) INSERT INTO @T AS t REPLACE ON t.a = s.a ((SELECT * FROM w)) s",
        rv.InsertRows(
            replace(T, alias="t"),
            v.Query("WITH w AS (SELECT 1 AS a) ((SELECT * FROM w))"),
            overwrites=True,
            on=expression("t.a = s.a"),
            rows_alias="s",
        ),
    ),
    ("INSERT WITH SCHEMA EVOLUTION INTO @T SELECT 1", rv.InsertRows(T, v.Query("SELECT 1"), evolves=True)),
    (
        "INSERT INTO @T VALUES (1, DEFAULT), (DEFAULT, f(2, 3))",
        rv.InsertRows(T, v.Query(""), values=((expression("1"), None), (None, expression("f(2, 3)")))),
    ),
    (
        "MERGE INTO @T t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        rv.MergeRows(
            v.Table("/t", ("delta", "/t"), alias="t"),
            v.Query("SELECT * FROM s"),
            "s",
            expression("t.id = s.id"),
            (rv.MergeClause("matched", "delete"),),
        ),
    ),
    (
        """MERGE WITH SCHEMA EVOLUTION INTO @T USING (SELECT 1 AS id) AS s ON id = CASE WHEN true THEN s.id END
           WHEN MATCHED AND s.id > 1 THEN UPDATE SET *
           WHEN MATCHED THEN UPDATE SET a = s.a, b = DEFAULT
           WHEN NOT MATCHED BY TARGET THEN INSERT *
           WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1, DEFAULT)
           WHEN NOT MATCHED BY SOURCE AND x THEN UPDATE SET a = 1
           WHEN NOT MATCHED BY SOURCE THEN DELETE""",
        rv.MergeRows(
            T,
            v.Query("SELECT * FROM (SELECT 1 AS id) AS s"),
            "s",
            expression("id = CASE WHEN true THEN s.id END"),
            (
                rv.MergeClause("matched", "update", expression("s.id > 1"), None),
                rv.MergeClause("matched", "update", None, ((("a",), expression("s.a")), (("b",), None))),
                rv.MergeClause("not matched", "insert", None, None),
                rv.MergeClause("not matched", "insert", None, ((("a",), expression("1")), (("b",), None))),
                rv.MergeClause("not matched by source", "update", expression("x"), ((("a",), expression("1")),)),
                rv.MergeClause("not matched by source", "delete"),
            ),
            True,
        ),
    ),
    (
        "MERGE INTO @T USING VALUES (1, 'a'), (2, 'b') AS s(id, x) ON true WHEN MATCHED THEN DELETE",
        rv.MergeRows(
            T,
            v.Query("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS s(id, x)"),
            "s",
            expression("true"),
            (rv.MergeClause("matched", "delete"),),
        ),
    ),
]


@pytest.mark.parametrize(("text", "value"), ROWS)
def test_statements_on_rows(text: str, value: v.Statement) -> None:
    assert parsed(text) == value


# -- tables ------------------------------------------------------------------------------------------------------------

NESTED = Struct((Field("x", Array("integer")), Field("y", Map("string", "decimal(10,2)"), False, {"comment": "of y"})))

TABLES = [
    (
        """CREATE TABLE @T (id BIGINT NOT NULL COMMENT 'it''s',
             s STRUCT<x: ARRAY<INT>, y MAP<STRING, DECIMAL(10, 2)> NOT NULL COMMENT 'of y'>) USING DELTA""",
        v.CreateTable(T, (Field("id", "long", False, {"comment": "it's"}), Field("s", NESTED))),
    ),
    (
        """CREATE TABLE IF NOT EXISTS @T
             (a INT DEFAULT 1 + 2 COMMENT 'x', b VARCHAR(3), c INT GENERATED ALWAYS AS (a * (2 + 1)))""",
        v.CreateTable(
            T,
            (
                Field("a", "integer", True, {"CURRENT_DEFAULT": "1 + 2", "comment": "x"}),
                Field("b", "string", True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
                Field("c", "integer", True, {"delta.generationExpression": "a * (2 + 1)"}),
            ),
            if_not_exists=True,
        ),
    ),
    (
        "CREATE TABLE @T (i BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY -2))",
        v.CreateTable(
            T,
            (
                Field(
                    "i",
                    "long",
                    True,
                    {"delta.identity.start": 5, "delta.identity.step": -2, "delta.identity.allowExplicitInsert": True},
                ),
            ),
        ),
    ),
    (
        """CREATE OR REPLACE TABLE @T (a INT, p DATE) PARTITIONED BY (p)
             TBLPROPERTIES ('k' = 'v', n.m = 1, b = true) COMMENT 'c' LOCATION '/t'""",
        v.CreateTable(
            T,
            (Field("a", "integer"), Field("p", "date")),
            replaces=True,
            partitions=("p",),
            properties={"k": "v", "n.m": "1", "b": "true"},
            comment="c",
        ),
    ),
    (
        "CREATE TABLE @T (a INT) PARTITIONED BY (p STRING)",
        v.CreateTable(T, (Field("a", "integer"), Field("p", "string")), partitions=("p",)),
    ),
    (
        "REPLACE TABLE @T CLUSTER BY (a, s.b) AS SELECT 1 AS a",
        v.CreateTable(T, replaces=True, creates=False, clusters=(("a",), ("s", "b")), query=v.Query("SELECT 1 AS a")),
    ),
    ("CREATE TABLE @T LIKE @S", v.CreateTable(T, like=v.Table("/s", ("delta", "/s")))),
    ("CREATE TABLE @T LIKE a.b", v.CreateTable(T, like=v.Query("SELECT * FROM a.b"), like_name=("a", "b"))),
    ("CREATE TABLE @T SHALLOW CLONE @S VERSION AS OF 3", v.CloneTable(T, v.Table("/s", ("delta", "/s"), "3"), True)),
    (
        "CREATE OR REPLACE TABLE @T CLONE @S TBLPROPERTIES ('a' = 'b')",
        v.CloneTable(T, v.Table("/s", ("delta", "/s")), replaces=True, properties={"a": "b"}),
    ),
    (
        "CONVERT TO DELTA parquet.`/p` PARTITIONED BY (d DATE, h INT)",
        v.ConvertTable("parquet.`/p`", (Field("d", "date"), Field("h", "integer"))),
    ),
    ("CREATE OR REPLACE TEMP VIEW x (a) AS SELECT id FROM range(1) WHERE 1 IN (SELECT 1)", None),
    ("ALTER TABLE @T SET TBLPROPERTIES ('a' = 'b', c.d = 'e')", v.SetTableProperties(T, {"a": "b", "c.d": "e"})),
    ("ALTER TABLE @T UNSET TBLPROPERTIES IF EXISTS ('a', b.c)", v.UnsetTableProperties(T, ("a", "b.c"), True)),
    (
        "ALTER TABLE @T ADD COLUMNS (a INT COMMENT 'x' FIRST, b.c STRING AFTER d)",
        v.AddTableColumns(
            T,
            (
                v.AddedColumn(("a",), Field("a", "integer", True, {"comment": "x"}), first=True),
                v.AddedColumn(("b", "c"), Field("c", "string"), after="d"),
            ),
        ),
    ),
    ("ALTER TABLE @T ADD COLUMN n VOID", v.AddTableColumns(T, (v.AddedColumn(("n",), Field("n", "void")),))),
    ("ALTER TABLE @T DROP COLUMN a.b", v.DropTableColumns(T, (("a", "b"),))),
    ("ALTER TABLE @T DROP COLUMNS IF EXISTS (a, `b c`)", v.DropTableColumns(T, (("a",), ("b c",)), True)),
    ("ALTER TABLE @T RENAME COLUMN a.b TO c", v.RenameTableColumn(T, ("a", "b"), "c")),
    ("ALTER TABLE @T ALTER COLUMN a TYPE BIGINT", v.ChangeTableColumn(T, ("a",), Field("a", "long"))),
    ("ALTER TABLE @T ALTER COLUMN a COMMENT 'x'", v.ChangeTableColumn(T, ("a",), comment="x")),
    ("ALTER TABLE @T ALTER a SET NOT NULL", v.ChangeTableColumn(T, ("a",), nullable=False)),
    ("ALTER TABLE @T ALTER COLUMN a DROP NOT NULL", v.ChangeTableColumn(T, ("a",), nullable=True)),
    ("ALTER TABLE @T ALTER COLUMN a SET DEFAULT 1 + 1", v.ChangeTableColumn(T, ("a",), default="1 + 1")),
    ("ALTER TABLE @T ALTER COLUMN a DROP DEFAULT", v.ChangeTableColumn(T, ("a",), default="")),
    ("ALTER TABLE @T CHANGE COLUMN a FIRST", v.ChangeTableColumn(T, ("a",), first=True)),
    (
        "ALTER TABLE @T CHANGE COLUMN a a BIGINT COMMENT 'x' AFTER b",
        v.ChangeTableColumn(T, ("a",), Field("a", "long"), comment="x", after="b"),
    ),
    (
        "ALTER TABLE @T ADD CONSTRAINT c CHECK (a > 0 AND (b < 1))",
        v.AddTableConstraint(T, "c", expression("a > 0 AND (b < 1)")),
    ),
    ("ALTER TABLE @T DROP CONSTRAINT IF EXISTS c", v.DropTableConstraint(T, "c", True)),
    ("ALTER TABLE @T DROP FEATURE deletionVectors TRUNCATE HISTORY", v.DropTableFeature(T, "deletionVectors", True)),
    ("ALTER TABLE @T CLUSTER BY (a, b.c)", v.ClusterTableBy(T, (("a",), ("b", "c")))),
    ("ALTER TABLE @T CLUSTER BY NONE", v.ClusterTableBy(T, ())),
]


@pytest.mark.parametrize(("text", "value"), TABLES)
def test_statements_on_tables(text: str, value: v.Statement | None) -> None:
    assert parsed(text) == value


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("DELETE FROM @T WHERE a IN (SELECT b FROM x)", "a IN ( WITH x AS (SELECT 1 AS b) ( SELECT b FROM x ) )"),
        (
            "DELETE FROM @T WHERE NOT (a = 1 AND EXISTS (WITH y AS (TABLE x) SELECT * FROM y))",
            "NOT (a = 1 AND EXISTS ( WITH x AS (SELECT 1 AS b) ( WITH y AS (TABLE x) SELECT * FROM y ) ))",
        ),
        ("DELETE FROM @T WHERE (map(a, 1)[2]) = 1", "(map(a, 1)[2]) = 1"),
    ],
)
def test_a_with_before_a_delete_goes_into_its_subqueries(text: str, moved: str) -> None:
    assert parsed(f"WITH x AS (SELECT 1 AS b) {text}").where.text == moved


def test_a_with_before_an_update_goes_into_each_subquery_with_its_parameters() -> None:
    found = parsed("WITH x AS (SELECT :b AS b) UPDATE @T SET a = 2 WHERE a IN (TABLE x) OR b IN (TABLE x)", {"b": 7})
    once = "( WITH x AS (SELECT 7 AS b) ( TABLE x ) )"
    assert (found.table, found.where.text) == (T, f"a IN {once} OR b IN {once}")
    by_place = parsed("WITH x AS (SELECT ? AS b) UPDATE @T SET a = ? WHERE a IN (TABLE x) OR b IN (TABLE x)", [7, 8])
    assert (by_place.values[0][1].text, by_place.where.text) == ("8", found.where.text)


def test_a_with_before_from_and_inserts_belongs_to_each() -> None:
    found = parsed("WITH s AS (SELECT 1 AS a) FROM s INSERT INTO @T SELECT a INSERT OVERWRITE @S SELECT a WHERE a > 1")
    queries = [insert.query.text for insert in found.inserts]
    head = "WITH s AS (SELECT 1 AS a) FROM s"
    assert queries == [f"{head} SELECT a", f"{head} SELECT a WHERE a > 1"]
    assert parsed("WITH s AS (SELECT 1 AS a) FROM s SELECT a") is None


def test_a_with_before_a_change_of_no_delta_table_is_left_to_spark() -> None:
    assert parsed("WITH x AS (SELECT 1 AS b) DELETE FROM names WHERE a IN (TABLE x)") is None


# -- showing and upkeep ------------------------------------------------------------------------------------------------

OTHERS = [
    ("DESCRIBE HISTORY @T LIMIT 3", v.DescribeHistory(T, 3)),
    ("DESC HISTORY @T", v.DescribeHistory(T)),
    ("DESCRIBE DETAIL @T", v.DescribeDetail(T)),
    ("DESCRIBE @T", v.DescribeTable(T)),
    ("DESCRIBE TABLE EXTENDED @T", v.DescribeTable(T, True)),
    ("DESCRIBE FORMATTED @T a", v.DescribeTable(T, True, ("a",))),
    ("SHOW COLUMNS IN @T", v.ShowColumns(T)),
    ("REFRESH TABLE @T", v.RefreshTable(T)),
    ("COMMENT ON TABLE @T IS 'it''s'", v.SetTableProperties(T, {"comment": "it's"})),
    ("COMMENT ON TABLE @T IS NULL", v.SetTableProperties(T, {"comment": ""})),
    ("COMMENT ON COLUMN @T.s.x IS 'words'", v.ChangeTableColumn(T, ("s", "x"), comment="words")),
    ("DESCRIBE HISTORY '/t' LIMIT 1", v.DescribeHistory(v.Table("/t", ("/t",)), 1)),
    ("DESC DETAIL '/' 't'", v.DescribeDetail(v.Table("/t", ("/t",)))),
    ('VACUUM "/t" DRY RUN', v.VacuumTable(v.Table("/t", ("/t",)), None, True, None)),
    ("OPTIMIZE '/t'", v.OptimizeTable(v.Table("/t", ("/t",)), None, ())),
    ("SHOW PARTITIONS @T", v.ShowPartitions(T)),
    ("SHOW PARTITIONS @T PARTITION (a = 1, b)", v.ShowPartitions(T, (("a", "1"), ("b", None)))),
    ("SHOW TBLPROPERTIES @T ('a.b')", v.ShowProperties(T, "a.b")),
    ("SHOW CREATE TABLE @T", v.ShowCreateTable(T)),
    ("OPTIMIZE @T", v.OptimizeTable(T)),
    ("OPTIMIZE @T FULL", v.OptimizeTable(T, full=True)),
    (
        "OPTIMIZE @T WHERE d >= '2020' ZORDER BY (a, b.c)",
        v.OptimizeTable(T, expression("d >= '2020'"), (("a",), ("b", "c"))),
    ),
    ("OPTIMIZE @T ZORDER BY a, b", v.OptimizeTable(T, zorder=(("a",), ("b",)))),
    ("REORG TABLE @T APPLY (PURGE)", v.ReorgTable(T)),
    ("REORG TABLE @T WHERE d = 1 APPLY (PURGE)", v.ReorgTable(T, expression("d = 1"))),
    ("REORG TABLE @T APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 3))", v.ReorgTable(T, iceberg_version=3)),
    ("REORG TABLE @T APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", v.ReorgTable(T, iceberg_version=2)),
    ("VACUUM @T", v.VacuumTable(T)),
    ("VACUUM @T RETAIN 168.5 HOURS DRY RUN", v.VacuumTable(T, 168.5, True)),
    ("VACUUM @T LITE", v.VacuumTable(T, lite=True)),
    ("VACUUM @T FULL RETAIN 0 HOURS", v.VacuumTable(T, 0.0, lite=False)),
    ("RESTORE TABLE @T TO VERSION AS OF 3", v.RestoreTable(v.Table("/t", ("delta", "/t"), "3"))),
    ("RESTORE @T TIMESTAMP AS OF '2020-01-01'", v.RestoreTable(v.Table("/t", ("delta", "/t"), None, "'2020-01-01'"))),
    ("GENERATE symlink_format_manifest FOR TABLE @T", v.GenerateManifest(T, "symlink_format_manifest")),
    ("FSCK REPAIR TABLE @T DRY RUN", v.RepairTable(T, True)),
]


@pytest.mark.parametrize(("text", "value"), OTHERS)
def test_statements_that_show_a_table_or_keep_it_in_shape(text: str, value: v.Statement) -> None:
    assert parsed(text) == value


# -- refusals ----------------------------------------------------------------------------------------------------------

WRONG = [
    ("DELETE FORM @T", "FORM"),
    ("DELETE FROM @T WHERE", ""),
    ("DELETE FROM @T WHERE (a", ""),
    ("DELETE FROM @T SET a = 1", "SET"),
    ("UPDATE @T WHERE a = 1 SET b = 2", "WHERE"),
    ("UPDATE @T SET a", ""),
    ("UPDATE @T SET a = WHERE b", "WHERE"),
    ("UPDATE @T VERSION AS OF 3 SET a = 1", "3"),
    ("MERGE INTO @T USING s WHEN MATCHED THEN DELETE", "WHEN"),
    ("MERGE INTO @T USING s ON a = b", ""),
    ("MERGE INTO @T USING s ON a = b WHEN MATCHED THEN INSERT *", "INSERT"),
    ("MERGE INTO @T USING s ON a = b WHEN NOT MATCHED THEN DELETE", "DELETE"),
    ("MERGE INTO @T USING s ON a = b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", "("),
    ("MERGE INTO @T USING s ON a = b WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", "*"),
    ("INSERT @T SELECT 1", "delta"),
    ("INSERT INTO @T", ""),
    ("INSERT INTO @T REPLACE USING () SELECT 1", ")"),
    ("INSERT INTO @T REPLACE USING (a)", ""),
    ("INSERT INTO @T REPLACE ON SELECT 1", "SELECT"),
    ("INSERT INTO @T REPLACE IF a SELECT 1", "IF"),
    ("INSERT INTO @T (a) REPLACE USING (a) SELECT 1", "REPLACE"),
    ("INSERT INTO @T PARTITION (p = 1) REPLACE ON a SELECT 1", "REPLACE"),
    ("INSERT OVERWRITE @T REPLACE ON a SELECT 1", "REPLACE"),
    ("INSERT INTO @T REPLACE ON a = col1 VALUES (1, DEFAULT)", "REPLACE"),
    ("CREATE TABLE @T (a FOO)", "FOO"),
    ("CREATE TABLE @T (a INT) USING parquet", "parquet"),
    ("CREATE TABLE @T (a INT COMMENT 'x' COMMENT 'y')", "COMMENT"),
    ("CREATE TABLE @T (a INT) COMMENT 'x' COMMENT 'y'", "COMMENT"),
    ("CREATE TABLE @T (a DECIMAL(50, 2))", ")"),
    ("ALTER TABLE @T FROB x", "FROB"),
    ("ALTER TABLE @T ALTER COLUMN a", ""),
    ("OPTIMIZE @T ZORDER a", "ZORDER"),
    ("VACUUM @T RETAIN HOURS", "HOURS"),
    ("VACUUM @T DRY RUN DRY RUN", "DRY"),
    ("RESTORE TABLE @T", ""),
    ("SHOW TBLPROPERTIES @T (a, b)", ","),
    ("CREATE TABLE @T (a VARCHAR(1, 2))", ","),
    ("REORG TABLE @T APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2, 3))", ","),
    ("DESCRIBE HISTORY @T LIMIT x", "x"),
    ("SELECT * FROM @T; SELECT 1", ";"),
    ("DELETE FROM @T; DELETE FROM @T", ";"),
    ("SELECT * FROM @T WHERE s = 'open", ""),
]


@pytest.mark.parametrize(("text", "word"), WRONG)
def test_a_wrong_statement_shows_the_word(text: str, word: str) -> None:
    with pytest.raises(errors.SqlSyntaxError) as error:
        parsed(text)
    assert error.value.getCondition() == "PARSE_SYNTAX_ERROR"
    head, line, carets = error.value.excerpt.splitlines()
    assert head.startswith("== SQL (line 1, position ")
    first = carets.index("^")
    if word:
        assert line[first : first + len(word)] == word
        assert carets.strip() == "^" * len(word)


@pytest.mark.parametrize(
    "text",
    [
        "COMMIT",
        "ROLLBACK;",
        "BEGIN",
        "BEGIN TRANSACTION",
        "START TRANSACTION",
        "BEGIN DELETE FROM @T; END",
        "BEGIN ATOMIC",
    ],
)
def test_transactions_of_several_statements_are_refused_with_the_reason(text: str) -> None:
    with pytest.raises(errors.TransactionStatement) as error:
        parsed(text)
    assert "MERGE combines" in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE @T VERSION AS OF 1",
        "ALTER TABLE @T VERSION AS OF 1 SET TBLPROPERTIES ('a' = '1')",
        "VACUUM @T VERSION AS OF 3",
        "OPTIMIZE @T VERSION AS OF 3",
        "REORG TABLE @T VERSION AS OF 3 APPLY (PURGE)",
        "FSCK REPAIR TABLE @T VERSION AS OF 1",
        "COMMENT ON TABLE @T VERSION AS OF 1 IS 'x'",
        "GENERATE symlink_format_manifest FOR TABLE @T TIMESTAMP AS OF '2020-01-01'",
        "UNCACHE TABLE @T VERSION AS OF 1",
        "DELETE FROM @T VERSION AS OF 1",
        "INSERT INTO @T TIMESTAMP AS OF '2020-01-01' VALUES (1)",
    ],
)
def test_what_is_about_the_newest_version_takes_no_other(text: str) -> None:
    with pytest.raises(errors.SqlSyntaxError):
        parsed(text)


@pytest.mark.parametrize(
    "text", ["OPTIMIZE x", "VACUUM a.b", "RESTORE TABLE x TO VERSION AS OF 1", "REORG TABLE x APPLY (PURGE)"]
)
def test_what_only_delta_has_needs_a_delta_table(text: str) -> None:
    with pytest.raises(errors.UnknownTable) as error:
        parsed(text)
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE TABLE @T PARTITION (a = 1)",
        "CREATE VIEW x WITH SCHEMA BINDING AS SELECT * FROM @T",
    ],
)
def test_what_is_not_built_is_refused_by_name(text: str) -> None:
    with pytest.raises(errors.NotBuilt):
        parsed(text)


def test_a_location_cannot_be_set() -> None:
    with pytest.raises(errors.InvalidOption, match="its files are moved with its folder"):
        parsed("ALTER TABLE @T SET LOCATION '/elsewhere'")


@pytest.mark.parametrize("text", ["CREATE TABLE @T (a INT) CLUSTER BY AUTO", "ALTER TABLE @T CLUSTER BY AUTO"])
def test_nobody_chooses_columns_to_cluster_by(text: str) -> None:
    with pytest.raises(errors.InvalidOption, match="there is none here: name the columns"):
        parsed(text)


def test_another_location_than_the_name_says_is_refused() -> None:
    with pytest.raises(errors.InvalidOption):
        parsed("CREATE TABLE @T (a INT) LOCATION '/other'")


def test_a_syntax_error_is_one_for_pyspark_too() -> None:
    pyspark = pytest.importorskip("pyspark.errors")
    assert issubclass(errors.SqlSyntaxError, pyspark.ParseException)
    assert issubclass(errors.SqlSyntaxError, errors.InputError)


@pytest.mark.parametrize(
    ("clause", "option"),
    [
        ("PARTITIONED BY (days(a))", "PARTITIONED BY"),
        ("CLUSTERED BY (a) INTO 4 BUCKETS", "CLUSTERED BY"),
        ("CLUSTERED BY (a) SORTED BY (a) INTO 4 BUCKETS", "CLUSTERED BY"),
        ("SKEWED BY (a) ON (1)", "SKEWED BY"),
        ("ROW FORMAT DELIMITED", "ROW FORMAT"),
        ("STORED AS PARQUET", "STORED AS"),
        ("DEFAULT COLLATION UNICODE", "DEFAULT COLLATION"),
        ("OPTIONS (path '/x') LOCATION '/t'", "LOCATION"),
    ],
)
def test_a_clause_of_sparks_that_no_delta_table_has_is_refused_by_its_name(clause: str, option: str) -> None:
    with pytest.raises(errors.InvalidOption) as refused:
        parsed(f"CREATE TABLE @T (a INT) USING delta {clause}")
    assert refused.value.facts["option"] == option


@pytest.mark.parametrize("key", ["provider", "location", "owner", "external", "is_managed_location"])
def test_a_property_that_spark_keeps_for_itself_is_refused(key: str) -> None:
    for text in (
        f"CREATE TABLE @T (a INT) TBLPROPERTIES ('{key}' = 'x')",
        f"ALTER TABLE @T SET TBLPROPERTIES ('{key}' = 'x')",
        f"ALTER TABLE @T UNSET TBLPROPERTIES ('{key}')",
    ):
        with pytest.raises(errors.InvalidProperty):
            parsed(text)


def test_options_are_read_and_the_path_among_them_is_the_location() -> None:
    found = parsed("CREATE TABLE @T (a INT) USING delta OPTIONS (PATH = '/t', 'delta.appendOnly' 'true')")
    assert isinstance(found, v.CreateTable)
    assert found.options == {"delta.appendOnly": "true"}


# -- what is too deep --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array<", "map<int, ", "struct<a: "])
@pytest.mark.parametrize("statement", ["CREATE TABLE @T (a {})", "ALTER TABLE @T ADD COLUMN a {}"])
@pytest.mark.parametrize("levels", [101, 500, 5000])
def test_a_type_without_end_is_refused(kind: str, statement: str, levels: int) -> None:
    with pytest.raises(errors.InvalidSchema, match="100 levels"):
        parsed(statement.format(f"{kind * levels}int{'>' * levels}"))
