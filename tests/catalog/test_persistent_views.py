"""Views that Spark's catalog keeps, of queries on Delta tables."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from tests.sql.test_names import Catalog, run
from tests.support.readers import deltalake_rows

__all__ = ["run"]
pytestmark = pytest.mark.spark


def filled(run: Catalog) -> Catalog:
    """A table t of ids 1 to 3, and a view v of those ids of t above 1."""
    run("CREATE TABLE {s}.t (id BIGINT, word STRING) USING delta")
    anabranch.append(run.path("t"), [{"id": i, "word": word} for i, word in enumerate("abc", 1)])
    run("CREATE VIEW {s}.v AS SELECT * FROM {s}.t WHERE id > 1")
    return run


@pytest.fixture
def views(run: Catalog) -> Iterator[Catalog]:
    """A table and a view that a test may change."""
    yield filled(run)
    run.spark.sql("USE spark_catalog.default")


@pytest.fixture(scope="module")
def lasting(spark: SparkSession) -> Iterator[Catalog]:
    anabranch.uninstall(spark)
    schema = f"l_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {schema}")
    yield filled(Catalog(spark, schema))
    spark.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.fixture
def shared(lasting: Catalog) -> Iterator[Catalog]:
    """The same, for tests that leave both as they are and take names of their own for what they make."""
    anabranch.uninstall(lasting.spark)
    yield lasting
    lasting.spark.sql("USE spark_catalog.default")


def test_a_view_shows_what_its_tables_hold_now_in_the_columns_that_it_had(views: Catalog) -> None:
    assert views.rows("SELECT v.id FROM {s}.v") == [(2,), (3,)]
    anabranch.append(views.path("t"), [{"id": 4, "word": "d"}])
    views("ALTER TABLE {s}.t ADD COLUMN more INT")
    assert views.rows("SELECT * FROM {s}.v WHERE v.word > 'b'") == [(3, "c"), (4, "d")]
    views("CREATE OR REPLACE VIEW {s}.v (a COMMENT 'of the row', b) COMMENT 'few' AS SELECT id, more FROM {s}.t")
    assert views.rows("SELECT a, b FROM {s}.v AS w WHERE w.a < 3") == [(1, None), (2, None)]
    described = {row["col_name"]: row["comment"] for row in views("DESCRIBE {s}.v").collect()}
    assert described == {"a": "of the row", "b": None}


def test_a_view_may_follow_its_query_in_its_columns_too(views: Catalog) -> None:
    views("CREATE VIEW {s}.whole WITH SCHEMA EVOLUTION COMMENT 'c' AS SELECT * FROM {s}.t WHERE id = 1")
    views("CREATE VIEW {s}.above WITH SCHEMA EVOLUTION AS SELECT * FROM {s}.whole")
    views("CREATE VIEW {s}.typed WITH SCHEMA TYPE EVOLUTION AS SELECT * FROM {s}.t WHERE id = 1")
    views("ALTER TABLE {s}.t ADD COLUMN more INT")
    each = "SELECT * FROM {s}.whole UNION ALL SELECT * FROM {s}.above UNION ALL SELECT *, 7 FROM {s}.typed"
    assert Counter(tuple(row) for row in views(each).collect()) == {(1, "a", None): 2, (1, "a", 7): 1}
    for refused in ("BINDING", "COMPENSATION"):
        with pytest.raises(errors.NotBuilt, match=f"WITH SCHEMA {refused}"):
            views(f"CREATE VIEW {{s}}.other WITH SCHEMA {refused} AS SELECT * FROM {{s}}.t")
    for wrong in ("(a) WITH SCHEMA EVOLUTION", "WITH SCHEMA", "WITH SCHEMA EVOLUTION WITH SCHEMA EVOLUTION"):
        with pytest.raises(errors.SqlSyntaxError):
            views(f"CREATE VIEW {{s}}.other {wrong} AS SELECT * FROM {{s}}.t")


def test_a_view_and_its_table_are_read_at_one_version_and_through_other_views(views: Catalog) -> None:
    views("CREATE VIEW {s}.w AS SELECT v.id, word AS t FROM {s}.v")
    views("CREATE TEMPORARY VIEW above_w AS SELECT t FROM {s}.w")
    each = "SELECT w.id, 'w' FROM {s}.w UNION ALL SELECT id, 't' FROM {s}.t UNION ALL SELECT 0, t FROM above_w"
    before = [(0, "b"), (0, "c"), (1, "t"), (2, "t"), (2, "w"), (3, "t"), (3, "w")]
    frame = views(each)
    views("DELETE FROM {s}.t WHERE id IN (SELECT id FROM {s}.v WHERE id = 3)")
    assert sorted(tuple(row) for row in frame.collect()) == before
    views("MERGE INTO {s}.t USING {s}.v ON t.id = v.id WHEN MATCHED THEN UPDATE SET word = upper(v.word)")
    assert deltalake_rows(str(views.path("t"))) == [{"id": 1, "word": "a"}, {"id": 2, "word": "B"}]
    views("CREATE TABLE {s}.made USING delta AS SELECT * FROM {s}.v")
    assert deltalake_rows(str(views.path("made"))) == [{"id": 2, "word": "B"}]
    views.spark.catalog.dropTempView("above_w")


def test_names_in_a_view_mean_what_they_meant_where_it_was_made(views: Catalog) -> None:
    views("USE {s}")
    views("CREATE TABLE p USING parquet AS SELECT id FROM VALUES (2L), (7L) AS n (id)")
    views(
        "CREATE VIEW pairs AS WITH c AS (SELECT id FROM p)"
        " SELECT t.id, p.id AS other FROM t JOIN p USING (id) JOIN c USING (id)"
    )
    views("CREATE VIEW by_path AS SELECT count(*) AS n FROM delta.`" + str(views.path("t")) + "` VERSION AS OF 1")
    views("USE default")
    views("CREATE TEMPORARY VIEW t AS SELECT 'wrong' AS id")
    views("CREATE TEMPORARY VIEW p AS SELECT 'wrong' AS id")
    try:
        both = "SELECT id, other FROM {s}.pairs UNION ALL SELECT 0, n FROM {s}.by_path"
        assert views.rows(both) == [(0, 3), (2, 2)]
    finally:
        views.spark.catalog.dropTempView("t")
        views.spark.catalog.dropTempView("p")
    views("ALTER TABLE {s}.t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    views("ALTER TABLE {s}.t DROP COLUMN word")
    with pytest.raises(errors.SqlAnalysisError, match=r"in the view spark_catalog\..*\.v: .*word"):
        views("SELECT id FROM {s}.v")
    views("DROP TABLE {s}.t")
    with pytest.raises(errors.UnknownTable):
        views("SELECT * FROM {s}.pairs")


def test_a_session_that_knows_no_delta_reads_no_row_of_it_and_an_installed_one_does(shared: Catalog) -> None:
    for text in ("SELECT * FROM {s}.v", "SELECT count(*) FROM {s}.v", "SELECT 1 FROM {s}.v WHERE id IS NOT NULL"):
        with pytest.raises(Exception, match="a view of Delta tables, which Spark alone cannot read"):
            shared.spark.sql(text.replace("{s}", shared.schema)).collect()
    anabranch.install(shared.spark)
    try:
        name = f"{shared.schema}.v"
        assert shared.spark.table(name).count() == 2
        assert shared.spark.read.table(name).count() == 2
        assert shared.spark.sql(f"SELECT max(id) FROM {name}").first()[0] == 3
        assert shared.spark.table(name).select("v.id").count() == 2
    finally:
        anabranch.uninstall(shared.spark)


def test_a_view_gets_another_query_and_keeps_its_comment_and_properties(shared: Catalog) -> None:
    shared("CREATE VIEW {s}.w (x) COMMENT 'it''s' TBLPROPERTIES ('team' = 'us') AS SELECT id FROM {s}.t")
    shared("ALTER VIEW {s}.w AS SELECT upper(word) AS said FROM {s}.t WHERE id = 2")
    assert shared.rows("SELECT said FROM {s}.w") == [("B",)]
    assert shared.spark.catalog.getTable(f"{shared.schema}.w").description == "it's"
    assert ("team", "us") in shared.rows("SHOW TBLPROPERTIES {s}.w")


def test_no_statement_about_views_takes_the_name_of_a_table_away(views: Catalog) -> None:
    """Nor where the name is whole, in IDENTIFIER, a parameter's, or hidden by a temporary view."""
    views("USE {s}")
    asked = (
        "DROP VIEW t",
        "DROP VIEW IF EXISTS spark_catalog.{s}.T",
        "DROP VIEW IDENTIFIER('{s}.t')",
        "ALTER VIEW t AS SELECT 5 AS five",
        "ALTER VIEW t RENAME TO u",
        "ALTER VIEW {s}.t SET TBLPROPERTIES ('a' = 'b')",
        "ALTER VIEW {s}.t UNSET TBLPROPERTIES ('anabranch.location')",
        "ALTER VIEW {s}.t WITH SCHEMA EVOLUTION",
    )
    anabranch.install(views.spark)
    try:
        for text in asked:
            for door in (views, lambda text: views.spark.sql(text.replace("{s}", views.schema))):
                with pytest.raises(errors.TableIsNoView, match=r"(?s)is a table.*\^"):
                    door(text)
        with pytest.raises(errors.TableIsNoView) as dropped:
            views("DROP VIEW IDENTIFIER(:name)", {"name": "t"})
        assert dropped.value.getCondition() == "WRONG_COMMAND_FOR_OBJECT_TYPE"
        views("CREATE TEMPORARY VIEW t AS SELECT 'passing' AS id")
        with pytest.raises(errors.NameTaken):
            views("CREATE OR REPLACE VIEW t AS SELECT 5 AS five")
        views("ALTER VIEW t AS SELECT 'still passing' AS id")
        views("DROP VIEW t")
        assert views.rows("SELECT id FROM t") == [(1,), (2,), (3,)]
    finally:
        views.spark.catalog.dropTempView("t")
        anabranch.uninstall(views.spark)


def test_a_view_shows_what_it_was_last_told_whichever_kind_of_query_it_had(views: Catalog) -> None:
    views("ALTER VIEW {s}.v SET TBLPROPERTIES ('token' = 'kept')")
    views("ALTER VIEW {s}.v AS SELECT 5 AS five")
    assert views.spark.table(f"{views.schema}.v").collect() == [(5,)]  # a view of Spark's own now
    assert {"token"} == {key for key, _ in views.rows("SHOW TBLPROPERTIES {s}.v")} & {"token", "anabranch.view"}
    views("ALTER VIEW {s}.v AS SELECT id FROM {s}.t WHERE id = 2")
    assert views.rows("SELECT * FROM {s}.v") == [(2,)]
    views("CREATE OR REPLACE VIEW {s}.v AS SELECT 6 AS six")
    assert views.rows("SELECT * FROM {s}.v") == [(6,)]
    views("CREATE OR REPLACE VIEW {s}.v AS SELECT word FROM {s}.t WHERE id = 3")
    views("ALTER VIEW {s}.v RENAME TO {s}.w")
    with pytest.raises(errors.InvalidOption, match="takes no parameters"):
        views("ALTER VIEW {s}.w AS SELECT :five AS five", {"five": 5})
    with pytest.raises(errors.NotBuilt):
        views("ALTER VIEW {s}.w WITH SCHEMA EVOLUTION")
    assert views.rows("SELECT * FROM {s}.w") == [("c",)]


def test_a_temporary_view_gets_another_query_and_hides_a_lasting_one_of_its_name(views: Catalog) -> None:
    views("USE {s}")
    views("CREATE TEMPORARY VIEW v AS SELECT 1 AS one")
    try:
        views("ALTER VIEW v AS SELECT max(id) AS most FROM {s}.t")
        anabranch.append(views.path("t"), [{"id": 9, "word": "i"}])
        assert views.rows("SELECT * FROM v") == [(9,)]
        views("ALTER VIEW v AS SELECT 2 AS two")
        assert views.rows("SELECT * FROM v") == [(2,)]
        views("DROP VIEW v")
    finally:
        views.spark.catalog.dropTempView("v")
    assert views.rows("SELECT id FROM v") == [(2,), (3,), (9,)]


@pytest.mark.parametrize(
    ("setting", "value", "shown", "read"),
    [
        ("spark.sql.ansi.doubleQuotedIdentifiers", "true", '"word"', "word"),
        ("spark.sql.ansi.enabled", "false", "CAST('7' AS INT)", 7),
    ],
)
def test_a_view_is_not_read_in_a_session_that_reads_its_text_in_another_way(
    shared: Catalog, setting: str, value: str, shown: str, read: object
) -> None:
    shared(f"CREATE OR REPLACE VIEW {{s}}.q AS SELECT id, {shown} AS w FROM {{s}}.t")
    assert shared.rows("SELECT w FROM {s}.q WHERE id = 1") == [(read,)]
    shared.spark.conf.set(setting, value)
    try:
        with pytest.raises(errors.InvalidOption, match=setting):
            shared("SELECT w FROM {s}.q WHERE id = 1")
    finally:
        shared.spark.conf.unset(setting)


def test_what_a_view_calls_or_reads_is_found_again_in_any_schema(shared: Catalog) -> None:
    """A WITH called as a table that it reads, files by their path, names that end alike, and functions."""
    shared("USE {s}")
    shared("CREATE FUNCTION plus(n BIGINT) RETURNS BIGINT RETURN n + 1")
    files = str(shared.path("t").parent / "files")
    Path(files).mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), f"{files}/rows.parquet")
    shared(f"CREATE TABLE numbers USING parquet LOCATION '{files}'")
    whole = "spark_catalog.{s}.plus(numbers.id)"
    shared(
        f"CREATE VIEW own AS WITH numbers AS (SELECT {whole} AS id FROM numbers)"
        " SELECT numbers.id FROM numbers JOIN t USING (id)"
    )
    shared(f"CREATE VIEW of_files AS SELECT f.id FROM parquet.`{files}` f JOIN t ON f.id = t.id")
    shared("CREATE VIEW both (one, two) AS SELECT {s}.v.id, o.id FROM {s}.v JOIN {s}.t AS o ON {s}.v.id = o.id")
    shared("CREATE VIEW exploded AS SELECT id, k, p FROM t LATERAL VIEW explode(map(1, 2)) e AS k, p")
    with pytest.raises(errors.InvalidOption, match="full name"):
        shared("CREATE VIEW x AS SELECT plus(id) FROM t")
    shared("USE default")
    each = (
        "SELECT 'own' AS view, id, 0 AS other FROM {s}.own UNION ALL SELECT 'files', id, 0 FROM {s}.of_files"
        " UNION ALL SELECT 'both', one, two FROM {s}.both UNION ALL SELECT 'exploded', id, p FROM {s}.exploded"
    )
    assert shared.rows(each) == [
        *(("both", 2, 2), ("both", 3, 3)),
        *(("exploded", 1, 2), ("exploded", 2, 2), ("exploded", 3, 2)),
        *(("files", 1, 0), ("files", 2, 0)),
        *(("own", 2, 0), ("own", 3, 0)),
    ]


def test_views_whose_names_end_alike_are_told_apart(shared: Catalog) -> None:
    other = f"{shared.schema}_2"
    shared(f"CREATE DATABASE {other}")
    try:
        shared(f"CREATE VIEW {other}.v AS SELECT id FROM {{s}}.t WHERE id < 3")
        both = f"SELECT {{s}}.v.id FROM {{s}}.v JOIN {other}.v ON {{s}}.v.id = {other}.v.id"
        assert shared.rows(both) == [(2,)]
    finally:
        shared(f"DROP DATABASE {other} CASCADE")


def test_a_view_whose_text_looks_like_a_secret_is_read_all_the_same(shared: Catalog) -> None:
    """Spark hides properties in which such a word stands from whoever asks for them."""
    shared("CREATE VIEW {s}.token_urls AS SELECT id AS password, 'https://x?token=' AS url FROM {s}.t")
    assert shared.rows("SELECT password FROM {s}.token_urls WHERE url LIKE '%token%'") == [(1,), (2,), (3,)]


def test_a_temporary_view_follows_the_views_that_it_reads(views: Catalog) -> None:
    views("CREATE TEMPORARY VIEW above (one, two) AS SELECT * FROM {s}.v")
    views("ALTER TABLE {s}.t ALTER COLUMN word FIRST")
    assert views.rows("SELECT one, two FROM above") == [(2, "b"), (3, "c")]
    views("CREATE OR REPLACE VIEW {s}.v AS SELECT id, word FROM {s}.t WHERE id = 1")
    assert views.rows("SELECT one, two FROM above") == [(1, "a")]
    views("DROP VIEW {s}.v")
    with pytest.raises(errors.UnknownTable):
        views("SELECT * FROM above")
    views.spark.catalog.dropTempView("above")


def test_a_view_that_cannot_be_read_can_be_looked_at_and_replaced(views: Catalog) -> None:
    views("CREATE VIEW {s}.w AS SELECT id FROM {s}.v")
    views("DROP TABLE {s}.t")
    assert [row["col_name"] for row in views("DESCRIBE {s}.w").collect()] == ["id"]
    with pytest.raises(errors.UnknownTable, match=r"`t`"):
        views("SELECT * FROM {s}.w")
    views("CREATE TABLE {s}.t (id BIGINT, word STRING) USING delta")
    assert views.rows("SELECT * FROM {s}.w") == []


def test_a_view_is_no_table(shared: Catalog) -> None:
    written = (
        "INSERT INTO {s}.v VALUES (1, 'a')",
        "DELETE FROM {s}.v WHERE id = 2",
        "UPDATE {s}.v SET id = 1",
        "MERGE INTO {s}.v USING {s}.t ON t.id = v.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE {s}.v",
    )
    for text in written:
        with pytest.raises(errors.ViewIsNoTable, match=r"(?s)\.`v` is a view.*\^"):
            shared(text)
    for change in ("ADD COLUMN x INT", "SET TBLPROPERTIES ('a' = 'b')", "RENAME TO {s}.w"):
        with pytest.raises(errors.ViewIsNoTable):
            shared(f"ALTER TABLE {{s}}.v {change}")
    for text in ("OPTIMIZE {s}.v", "DESCRIBE DETAIL {s}.v"):
        with pytest.raises(AnalysisException):
            shared(text)
    with pytest.raises(errors.SqlSyntaxError, match="a view has no versions"):
        shared("SELECT * FROM {s}.v VERSION AS OF 1")
    with pytest.raises(errors.UnknownTable):
        DeltaTable.forName(shared.spark, f"{shared.schema}.v")
    with pytest.raises(errors.NameTaken):
        shared("CREATE TABLE {s}.v (id INT) USING delta")
    assert shared.rows("SELECT count(*) FROM {s}.v") == [(2,)]


def test_what_a_view_cannot_be_is_refused_and_changes_nothing(shared: Catalog) -> None:
    shared("CREATE TABLE {s}.p (id BIGINT) USING parquet")
    shared.spark.range(1).createOrReplaceTempView("passing")
    query = "SELECT id FROM {s}.t"
    refused: list[tuple[str, type[Exception]]] = [
        (f"CREATE VIEW {{s}}.v AS {query}", errors.NameTaken),
        (f"CREATE OR REPLACE VIEW {{s}}.t AS {query}", errors.NameTaken),
        (f"CREATE OR REPLACE VIEW {{s}}.p AS {query}", errors.NameTaken),
        ("CREATE OR REPLACE VIEW {s}.t AS SELECT 1 AS id", errors.NameTaken),
        (f"CREATE VIEW no_schema.x AS {query}", errors.UnknownSchema),
        ("CREATE OR REPLACE VIEW {s}.v AS SELECT id FROM {s}.v", errors.RecursiveView),
        ("CREATE VIEW {s}.x AS SELECT t.id FROM {s}.t JOIN passing USING (id)", errors.TemporaryInView),
        (f"CREATE VIEW {{s}}.x (a, b) AS {query}", errors.InvalidOption),
        ("CREATE VIEW {s}.x AS SELECT nothing FROM {s}.t", errors.SqlAnalysisError),
        (f"CREATE VIEW {{s}}.x LOCATION '/x' AS {query}", errors.SqlSyntaxError),
        (f"ALTER VIEW {{s}}.x AS {query}", errors.UnknownTable),
        (f"ALTER VIEW {{s}}.t AS {query}", errors.TableIsNoView),
        ("ALTER VIEW {s}.v AS SELECT id FROM {s}.v", errors.RecursiveView),
    ]
    for text, error in refused:
        with pytest.raises(error):
            shared(text)
    with pytest.raises(errors.InvalidOption, match="takes no parameters"):
        shared("CREATE VIEW {s}.x AS SELECT id FROM {s}.t WHERE id = :id", {"id": 1})
    shared(f"CREATE VIEW IF NOT EXISTS {{s}}.v AS {query} WHERE id = 1")
    assert shared.rows("SELECT id FROM {s}.v") == [(2,), (3,)]
    assert not names_of(shared, "x")


def test_views_that_came_to_read_each_other_are_told_as_such(views: Catalog) -> None:
    views("CREATE VIEW {s}.a AS SELECT id FROM {s}.v")
    views("ALTER VIEW {s}.v RENAME TO {s}.b")
    views("CREATE VIEW {s}.v AS SELECT id FROM {s}.b")
    assert views.rows("SELECT id FROM {s}.a") == [(2,), (3,)]
    with pytest.raises(errors.RecursiveView):
        views("CREATE OR REPLACE VIEW {s}.b AS SELECT id FROM {s}.a")
    views("DROP VIEW {s}.b")
    views("ALTER VIEW {s}.a RENAME TO {s}.b")
    with pytest.raises(errors.RecursiveView):
        views("SELECT id FROM {s}.b")


def names_of(views: Catalog, name: str) -> bool:
    return bool(views.spark.catalog.tableExists(f"{views.schema}.{name}"))
