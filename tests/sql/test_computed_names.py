"""Names and statements that a statement computes: IDENTIFIER(…), EXECUTE IMMEDIATE, and scripts of both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException

import anabranch
from anabranch import errors
from tests.sql.test_names import Catalog, run
from tests.support.tiers import few_of

__all__ = ["run"]
pytestmark = pytest.mark.spark
ROWS = [(1, "a"), (2, "b"), (3, "c")]


@pytest.fixture
def names(run: Catalog) -> Iterator[Catalog]:
    """A table vm of three rows in the current schema, in a session that is installed, and a view p of Spark's own."""
    run("CREATE TABLE {s}.vm (id BIGINT, word STRING) USING delta")
    for id_, word in ROWS:
        run.append("vm", id=id_, word=word)
    run("USE {s}")
    anabranch.install(run.spark)
    run.spark.sql("CREATE VIEW p AS SELECT 7 AS seven")
    run.spark.sql("DECLARE OR REPLACE VARIABLE called STRING = 'v' || 'm'")
    yield run
    anabranch.uninstall(run.spark)
    run.spark.sql("USE spark_catalog.default")


def there(names: Catalog) -> list[tuple[int, str]]:
    return names.held("vm")


TAKES_AWAY = [
    ("DROP VIEW IDENTIFIER('v' || 'm')", None, errors.TableIsNoView),
    ("DROP VIEW IF EXISTS IDENTIFIER(concat('v', 'm'))", None, errors.TableIsNoView),
    ("drop view identifier /* a name */ (:first || 'm')", {"first": "v"}, errors.TableIsNoView),
    ("DROP VIEW IDENTIFIER(? || ?)", ["v", "m"], errors.TableIsNoView),
    ("DROP VIEW IDENTIFIER(called)", None, errors.TableIsNoView),
    ("DROP VIEW IDENTIFIER(' vm/* a */ ')", None, errors.TableIsNoView),
    ("DROP VIEW IDENTIFIER(r'vm')", None, errors.TableIsNoView),
    ("DROP VIEW IDENTIFIER('\\u0076m')", None, errors.TableIsNoView),
    ("ALTER VIEW IDENTIFIER('v' || 'm') AS SELECT 9 AS id", None, errors.TableIsNoView),
    ("ALTER VIEW IDENTIFIER('v' || 'm') RENAME TO other", None, errors.TableIsNoView),
    ("ALTER VIEW IDENTIFIER('v' 'm') SET TBLPROPERTIES ('anabranch.location' = '/no')", None, errors.TableIsNoView),
    ("CREATE OR REPLACE VIEW IDENTIFIER('v' || 'm') AS SELECT 3 AS id", None, errors.NameTaken),
    ("EXECUTE IMMEDIATE 'DROP VIEW vm'", None, errors.TableIsNoView),
    ("EXECUTE IMMEDIATE 'DROP ' || 'VIEW ' || called", None, errors.TableIsNoView),
    ("EXECUTE IMMEDIATE :text", {"text": "ALTER VIEW vm AS SELECT 9 AS id"}, errors.TableIsNoView),
    ("EXECUTE IMMEDIATE 'DROP VIEW IDENTIFIER(:n)' USING called AS n", None, errors.TableIsNoView),
    ("EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''DROP VIEW vm'''", None, errors.TableIsNoView),
    ("EXECUTE IMMEDIATE 'DELETE FROM vm' INTO called", None, errors.SqlAnalysisError),
    ("BEGIN DROP VIEW vm; END", None, errors.TransactionStatement),
    ("BEGIN DROP VIEW IDENTIFIER('vm'); END", None, errors.TransactionStatement),
    ("BEGIN DROP VIEW IDENTIFIER('v' || 'm'); END", None, errors.NotBuilt),
    ("BEGIN EXECUTE IMMEDIATE 'DROP VIEW vm'; END", None, errors.TransactionStatement),
    ("BEGIN DECLARE x STRING DEFAULT 'vm'; EXECUTE IMMEDIATE 'DROP VIEW ' || x; END", None, errors.NotBuilt),
    ("BEGIN USE {s}; DROP VIEW IF EXISTS vm; END", None, errors.TransactionStatement),
    ("BEGIN IF 1 = 1 THEN DROP VIEW IDENTIFIER(called); END IF; END", None, errors.NotBuilt),
]


def test_no_computed_name_takes_a_table_s_name_away(names: Catalog) -> None:
    """By `anabranch.sql` and by ``spark.sql``."""
    for text, args, refused in few_of(TAKES_AWAY, 9):
        for door in (anabranch.sql, lambda spark, text, args: spark.sql(text, args)):
            if text.startswith("BEGIN USE"):
                names.spark.sql("USE spark_catalog.default")
            with pytest.raises(refused):
                door(names.spark, text.replace("{s}", names.schema), args)
            names.spark.sql(f"USE {names.schema}")
    assert there(names) == ROWS
    assert not names.spark.catalog.tableExists(f"{names.schema}.other")


def test_a_computed_name_that_spark_takes_for_no_constant_reaches_no_table(names: Catalog) -> None:
    for text in (
        "DROP VIEW IDENTIFIER((SELECT 'vm'))",
        "DROP VIEW IDENTIFIER(CAST(NULL AS STRING))",
        "DROP VIEW IDENTIFIER(1)",
    ):
        with pytest.raises(AnalysisException):
            names.spark.sql(text)
    with pytest.raises(PySparkException):
        names.spark.sql("DROP VIEW IDENTIFIER('no name')")
    assert there(names) == ROWS


def test_a_statement_with_a_computed_name_is_the_one_with_that_name(names: Catalog) -> None:
    sql = names.spark.sql
    assert names.rows("SELECT IDENTIFIER('wo' || 'rd') FROM IDENTIFIER(called) WHERE id = 1") == [("a",)]
    sql("INSERT INTO IDENTIFIER('v' || :rest) VALUES (:id, 'd')", {"rest": "m", "id": 4})
    sql("UPDATE IDENTIFIER(?) SET word = ? WHERE id = ?", ["vm", "dd", 4])
    assert names.rows("SELECT word FROM IDENTIFIER('v' || 'm') WHERE id = 4") == [("dd",)]
    sql("DELETE FROM IDENTIFIER('v' || 'm') WHERE id = 4")
    sql("CREATE TEMPORARY VIEW above AS SELECT max(id) AS most FROM IDENTIFIER(called)")
    sql("CREATE TABLE IDENTIFIER('ma' || 'de') USING delta AS SELECT * FROM above")
    assert names.rows("SELECT * FROM made") == [(3,)]
    sql("DROP TABLE IDENTIFIER('ma' || 'de')")
    assert not names.spark.catalog.tableExists(f"{names.schema}.made")
    names.spark.catalog.dropTempView("above")
    assert there(names) == ROWS


def test_execute_immediate_runs_statements_on_tables_of_ours(names: Catalog) -> None:
    sql = names.spark.sql
    sql("EXECUTE IMMEDIATE 'INSERT INTO vm VALUES (?, ?)' USING 4, 'd'")
    assert sql("EXECUTE IMMEDIATE 'UPDATE vm SET word = :w WHERE id = :n' USING (upper('e') AS w, 4 AS n)").collect()
    assert there(names)[-1] == (4, "E")
    sql("DECLARE OR REPLACE VARIABLE most BIGINT")
    sql("EXECUTE IMMEDIATE 'SELECT max(id) FROM vm; -- all' INTO most")
    assert sql("SELECT most").collect() == [(4,)]
    assert sql("EXECUTE IMMEDIATE 'DELETE FROM vm WHERE id = :most' USING most").collect() == [(1,)]
    assert there(names) == ROWS


def test_what_touches_no_table_of_ours_is_spark_s(names: Catalog) -> None:
    sql = names.spark.sql
    assert sql("EXECUTE IMMEDIATE 'SELECT :a + :b' USING 1 AS a, 2 b").collect() == [(3,)]
    assert sql("EXECUTE IMMEDIATE \"EXECUTE IMMEDIATE 'SELECT seven FROM p'\"").collect() == [(7,)]
    assert sql("SELECT IDENTIFIER('abs')(-1), IDENTIFIER('se' || 'ven') FROM IDENTIFIER('p')").collect() == [(1, 7)]
    assert sql("BEGIN DECLARE x STRING DEFAULT 'p'; SELECT * FROM IDENTIFIER(x); END").collect() == [(7,)]
    assert sql(
        "BEGIN EXECUTE IMMEDIATE 'DROP VIEW p'; CREATE VIEW p AS SELECT 8 AS eight; SELECT * FROM p; END"
    ).collect() == [(8,)]
    with pytest.raises(AnalysisException, match="NOT_A_CONSTANT_STRING"):
        sql("SELECT * FROM IDENTIFIER((SELECT 'p'))")


@pytest.mark.exhaustive(
    "tests/sql/grammar/test_computed_names.py::test_each_computed_name_is_found",
    "tests/sql/test_computed_names.py::test_what_touches_no_table_of_ours_is_spark_s",
)
def test_views_with_computed_names_and_a_table_called_so_are_spark_s(names: Catalog) -> None:
    sql = names.spark.sql
    sql("CREATE OR REPLACE VIEW IDENTIFIER('p' || 'p') AS SELECT 9 AS nine")
    assert sql("SELECT * FROM pp").collect() == [(9,)]
    sql("ALTER VIEW IDENTIFIER(:n) RENAME TO ppp", {"n": "pp"})
    sql("DROP VIEW IDENTIFIER('pp' || 'p')")
    sql("CREATE TABLE `identifier` (a INT, b INT) USING parquet")
    sql("INSERT INTO `identifier` (a, b) VALUES (1, 2)")
    assert sql("SELECT identifier.a FROM identifier").collect() == [(1,)]
    sql("DROP TABLE identifier")
