"""Tables with names: what the catalog keeps of them, and that Spark alone never reads one wrongly."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._catalog import entries
from anabranch._catalog.entry import Kind
from anabranch._catalog.table_names import parts_of
from tests.support.connect_session import ON_CONNECT

pytestmark = pytest.mark.spark
only_views = pytest.mark.parametrize("kind", [Kind.VIEW], indirect=True)
"""Those of tables have no columns."""


@pytest.fixture(autouse=True, params=[Kind.VIEW] if ON_CONNECT else list(Kind))
def kind(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Kind:
    """Spark alone, whatever other tests have made of the session; and entries of this kind."""
    anabranch.uninstall(spark)
    found: Kind = request.param
    if found is Kind.VIEW:
        monkeypatch.setattr(entries, "is_known", lambda spark: False)
    return found


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    """A name that nothing has, and that nothing has afterwards."""
    found = f"t_{uuid.uuid4().hex[:12]}"
    yield found
    removed(spark, found)


def removed(spark: SparkSession, name: str) -> None:
    entry = entries.find(spark, (name,))
    assert entry is None or entries.take(spark, entry)


def made(spark: SparkSession, name: str, *columns: tuple[str, str]) -> DeltaTable:
    builder = DeltaTable.create(spark).tableName(name).comment("it's a \\ table")
    for column, type_ in columns or (("id", "BIGINT"), ("s", "STRUCT<`a-b`: INT, m: MAP<STRING, ARRAY<DATE>>>")):
        builder = builder.addColumn(column, type_, comment=f"of {column}")
    return builder.execute()


def location(spark: SparkSession, name: str) -> str:
    found = entries.find(spark, (name,))
    assert found is not None
    return found.location


def raises_in_spark(spark: SparkSession, query: str) -> str:
    with pytest.raises(Exception, match=r"\S") as error:
        spark.sql(query).collect()
    return str(error.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {t}",
        "SELECT count(*) FROM {t}",
        "SELECT 1 FROM {t} LIMIT 1",
        "SELECT * FROM {t} WHERE id IS NULL",
        "SELECT * FROM {t} WHERE id IS NOT NULL",
        "SELECT * FROM {t} WHERE id = 1",
        "SELECT max(id) FROM {t} GROUP BY s",
        "SELECT r.id FROM range(3) r LEFT JOIN {t} USING (id) WHERE s IS NULL",
        "SELECT * FROM range(3) FULL JOIN {t} USING (id)",
        "SELECT * FROM range(3) WHERE id NOT IN (SELECT id FROM {t})",
        "SELECT * FROM range(3) r WHERE NOT EXISTS (SELECT 1 FROM {t} t WHERE t.id = r.id)",
        "SELECT id FROM range(3) EXCEPT SELECT id FROM {t}",
        "SELECT id FROM {t} UNION SELECT 1",
        "SELECT explode(array(id)) FROM {t}",
        "SELECT (SELECT max(id) FROM {t})",
    ],
)
def test_spark_alone_neither_reads_a_table_of_ours_nor_takes_it_for_empty(
    spark: SparkSession, name: str, kind: Kind, query: str
) -> None:
    """The columns of a view have to raise, too: CAST(NULL) in them lets the optimizer find that nothing is not NULL."""
    made(spark, name).merge(spark.range(3), "false").whenNotMatchedInsert(values={"id": "3"}).execute()
    why = "open it with anabranch.install(spark)" if kind is Kind.VIEW else "DATA_SOURCE_NOT_FOUND"
    assert why in raises_in_spark(spark, query.format(t=name))


@pytest.mark.parametrize("statement", ["INSERT INTO {t} VALUES (1, NULL)", "TRUNCATE TABLE {t}", "DELETE FROM {t}"])
def test_spark_alone_does_not_write_it_either(spark: SparkSession, name: str, statement: str) -> None:
    made(spark, name)
    raises_in_spark(spark, statement.format(t=name))
    assert len(anabranch.history(location(spark, name))) == 1


@only_views
def test_spark_shows_its_columns_and_comments(spark: SparkSession, name: str) -> None:
    made(spark, name)
    shown = {row["col_name"]: (row["data_type"], row["comment"]) for row in spark.sql(f"DESCRIBE {name}").collect()}
    assert shown == {
        "id": ("bigint", "of id"),
        "s": ("struct<a-b:int,m:map<string,array<date>>>", "of s"),
    }
    assert spark.catalog.getTable(name).description == "it's a \\ table"


@only_views
@pytest.mark.parametrize("type_", ["VARIANT", "DECIMAL(10,2)", "TIMESTAMP_NTZ", "BINARY", "VARCHAR(3)", "ARRAY<FLOAT>"])
def test_every_type_has_its_place_in_an_entry(spark: SparkSession, name: str, type_: str) -> None:
    made(spark, name, ("a`b", type_))
    assert [row["col_name"] for row in spark.sql(f"DESCRIBE {name}").collect()] == ["a`b"]


def test_a_managed_table_lies_where_spark_keeps_tables_and_an_external_one_where_it_is_told(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    made(spark, name)
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    assert location(spark, name) == f"{warehouse.rstrip('/')}/{name}"
    assert DeltaTable.forName(spark, f"`default`.{name}").toDF().columns == ["id", "s"]
    other = f"{name}_ext"
    DeltaTable.create(spark).tableName(other).location(str(tmp_path / "x")).addColumn("id", "INT").execute()
    assert location(spark, other).endswith("/x")
    assert DeltaTable.isDeltaTable(spark, other)
    removed(spark, other)
    assert not DeltaTable.isDeltaTable(spark, other)


def test_a_name_is_given_once(spark: SparkSession, name: str) -> None:
    made(spark, name)
    with pytest.raises(errors.NameTaken) as error:
        made(spark, name)
    assert (error.value.getCondition(), error.value.getSqlState()) == ("TABLE_OR_VIEW_ALREADY_EXISTS", "42P07")
    again = DeltaTable.createIfNotExists(spark).tableName(name).addColumn("other", "INT").execute()
    assert again.toDF().columns == ["id", "s"]


def test_what_is_not_ours_is_neither_found_nor_replaced(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (id INT) USING parquet")
    with pytest.raises(errors.UnknownTable):
        DeltaTable.forName(spark, name)
    with pytest.raises(errors.NameTaken):
        DeltaTable.createOrReplace(spark).tableName(name).addColumn("id", "INT").execute()
    assert not DeltaTable.isDeltaTable(spark, name)
    spark.sql(f"DROP TABLE {name}")


def test_replacing_a_table_lets_the_entry_say_its_new_columns(spark: SparkSession, name: str, kind: Kind) -> None:
    made(spark, name)
    with pytest.raises(errors.UnknownTable):
        DeltaTable.replace(spark).tableName(f"{name}_none").addColumn("id", "INT").execute()
    DeltaTable.createOrReplace(spark).tableName(name).addColumn("new", "DATE", comment="c").execute()
    describe = anabranch.sql if kind is Kind.TABLE else type(spark).sql
    assert [tuple(row) for row in describe(spark, f"DESCRIBE {name}").collect()] == [("new", "date", "c")]
    assert len(anabranch.history(location(spark, name))) == 2


def test_a_name_of_no_schema_is_refused_and_nothing_is_written(spark: SparkSession, name: str) -> None:
    with pytest.raises(errors.UnknownSchema) as error:
        made(spark, f"nowhere.{name}")
    assert error.value.getCondition() == "SCHEMA_NOT_FOUND"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("db.`a.b`", ("db", "a.b")),
        ("`a``b`.t", ("a`b", "t")),
        ("c.db.t", ("c", "db", "t")),
        ("", None),
        ("a.", None),
        ("`a", None),
        ("a b", None),
        ("`a`b", None),
    ],
)
def test_names_are_taken_apart_as_spark_does(text: str, parts: Any) -> None:
    assert parts_of(text) == parts
