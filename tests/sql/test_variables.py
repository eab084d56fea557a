"""``${…}``: filled in once in what a user writes, as Spark does it, and never in what a table says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch._log.log import Log
from anabranch._storage.open import open_store
from anabranch.errors import InvalidOption
from tests.support.worlds import World

pytestmark = pytest.mark.spark

SECRET = "${test.value}"
EXACT = "$${no.such.setting}{test.value}"
"""As a user says the sign itself."""
MAPPED = "'delta.columnMapping.mode' = 'name'"


@pytest.fixture
def installed(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("test.value", "hidden")
    spark.conf.set("test.name", "it's ${test.value}")
    spark.conf.set("test.both", "'`")
    yield anabranch.install(spark)
    anabranch.uninstall(spark)
    for name in ("test.value", "test.name", "test.both", "spark.sql.variable.substitute"):
        spark.conf.unset(name)


def test_what_a_table_says_of_itself_is_never_filled_in(installed: SparkSession, tmp_path: Path) -> None:
    sql, table = installed.sql, f"delta.`{tmp_path}/t`"
    sql(
        f"CREATE TABLE {table} (`{EXACT}` STRING COMMENT '{EXACT}', d STRING DEFAULT '\\u0024{{test.value}}',"
        f" g STRING GENERATED ALWAYS AS (concat(d, '\\u0024{{test.value}}')), p STRING) USING delta PARTITIONED BY (p)"
        f" COMMENT '{EXACT}'"
        f" TBLPROPERTIES ('k' = '{EXACT}', {MAPPED}, 'delta.feature.allowColumnDefaults' = 'supported')"
    )
    sql(f"ALTER TABLE {table} ADD CONSTRAINT c CHECK (p = '\\u0024{{test.value}}')")
    sql(f"INSERT INTO {table} (`{EXACT}`, p) VALUES (:x, '{EXACT}')", {"x": SECRET})
    sql(f"INSERT INTO {table} (`{EXACT}`, p, d) VALUES ('a', ?, DEFAULT)", [SECRET])
    sql(f"UPDATE {table} SET d = DEFAULT, `{EXACT}` = 'b' WHERE `{EXACT}` = 'a' AND p = '{EXACT}'")
    assert [tuple(row.values()) for row in World(f"{tmp_path}/t").rows()] == [
        (SECRET, SECRET, SECRET + SECRET, SECRET),
        ("b", SECRET, SECRET + SECRET, SECRET),
    ]
    assert sql(f"SELECT * FROM {table} WHERE p = '{EXACT}' AND `{EXACT}` >= ''").count() == 2
    sql(f"CREATE TABLE filled_in USING delta LOCATION '{tmp_path}/t'")
    sql(f"CREATE VIEW filled_in_view AS SELECT '{EXACT}' AS x, `{EXACT}` FROM filled_in")
    try:
        column = installed.catalog.listColumns("filled_in")[0]
        assert (column.name, column.description) == (SECRET, SECRET)
        assert installed.catalog.getTable("filled_in").description == SECRET
        assert [row.x for row in sql("SELECT x FROM filled_in_view").collect()] == [SECRET, SECRET]
    finally:
        sql("DROP VIEW filled_in_view")
        sql("DROP TABLE filled_in")
    assert sql(f"DELETE FROM {table} WHERE `{EXACT}` = '{EXACT}'").first()[0] == 1
    DeltaTable.forPath(installed, f"{tmp_path}/t").delete(f"p = '{EXACT}'")
    metadata = Log(open_store(f"{tmp_path}/t")).snapshot().metadata
    assert "hidden" not in f"{metadata}"
    assert metadata.description == metadata.configuration["k"] == SECRET
    assert "hidden" not in "".join(each.read_text() for each in tmp_path.glob("t/_delta_log/*.json"))


def test_what_a_user_writes_is_filled_in_once_in_every_door(installed: SparkSession, tmp_path: Path) -> None:
    sql, path = installed.sql, f"{tmp_path}/hidden"
    table = f"delta.`{tmp_path}/{SECRET}`"
    sql(f"CREATE TABLE {table} (a STRING) USING delta COMMENT '{SECRET}' TBLPROPERTIES ('k' = '{SECRET}')")
    sql(f"INSERT INTO {table} VALUES ('{SECRET}'), (\"${{test.name}}\"), ('${{unknown}}'), ('${{env:NOBODY_X}}')")
    table_of = DeltaTable.forPath(installed, path)
    assert [row["a"] for row in World(path).rows()] == ["", "${env:NOBODY_X}", "hidden", "it's hidden"]
    detail = table_of.detail().first()
    assert (detail.description, detail.properties["k"]) == ("hidden", "hidden")
    assert sql(f"SELECT * FROM {table} WHERE a = '{SECRET}'").count() == 1
    assert anabranch.read(path, where=f"a = '{SECRET}'", spark=installed).count() == 1
    table_of.update(f"a = '{SECRET}'", {"a": f"concat('{SECRET}', '!')"})
    source = installed.sql("SELECT 'hidden!' AS b")
    merge = table_of.merge(source, f"a = concat('{SECRET}', '!') AND a = b")
    assert merge.whenMatchedUpdate(set={"a": f"'{SECRET}?'"}).execute().first()[0] == 1
    assert sql(f"DELETE FROM {table} WHERE a = '{SECRET}?'").first()[0] == 1
    with pytest.raises(InvalidOption, match=r"test\.both"):
        sql(f"SELECT '${{test.both}}' FROM {table}")


def test_nothing_is_filled_in_where_the_session_says_so(installed: SparkSession, tmp_path: Path) -> None:
    installed.conf.set("spark.sql.variable.substitute", "false")
    sql, table = installed.sql, f"delta.`{tmp_path}/t`"
    sql(f"CREATE TABLE {table} (`{SECRET}` STRING) USING delta TBLPROPERTIES ({MAPPED})")
    sql(f"INSERT INTO {table} VALUES ('{SECRET}')")
    assert sql(f"SELECT * FROM {table} WHERE `{SECRET}` = '{SECRET}'").count() == 1
    assert sql(f"DELETE FROM {table} WHERE `{SECRET}` = '{SECRET}'").first()[0] == 1
