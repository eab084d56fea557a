"""Void columns on Spark: every door reads them as NULL, and no file holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

import anabranch
from anabranch.commands.maintenance.check import check_table
from anabranch.errors import UnsupportedType
from tests.support.raw_logs import listing
from tests.support.worlds import table_path

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def installed(spark: Any) -> None:
    anabranch.install(spark)


def rows(spark: Any, path: str, select: str = "*") -> list[Any]:
    return [tuple(each) for each in anabranch.sql(spark, f"SELECT {select} FROM delta.`{path}` ORDER BY id").collect()]


def test_every_verb_reads_and_writes_a_table_with_voids(spark: Any, tmp_path: Path) -> None:
    """Also as the first column, which carries the checks of rules, and inside structs that are NULL."""
    path = table_path(tmp_path)
    sql = lambda text: anabranch.sql(spark, text.replace("TABLE_", f"delta.`{path}`"))  # noqa: E731
    sql(
        "CREATE TABLE TABLE_ USING delta AS "
        "SELECT NULL AS n, 1 AS id, named_struct('a', 1, 'v', NULL, 't', named_struct('w', NULL, 'b', 2)) AS s"
    )
    assert dict(spark.read.format("delta").load(path).dtypes)["s"] == "struct<a:int,v:void,t:struct<w:void,b:int>>"
    sql("ALTER TABLE TABLE_ ADD CONSTRAINT c CHECK (id > 0)")
    sql("INSERT INTO TABLE_ VALUES (NULL, 2, NULL), (NULL, 3, named_struct('a', 3, 'v', NULL, 't', NULL))")
    with pytest.raises(Exception, match="CHECK"):
        sql("INSERT INTO TABLE_ VALUES (NULL, -2, NULL)")
    sql("UPDATE TABLE_ SET s.a = 5, n = NULL WHERE id = 1 AND n IS NULL")
    sql("DELETE FROM TABLE_ WHERE id = 2 OR n IS NOT NULL")
    sql(
        "MERGE INTO TABLE_ t USING (SELECT NULL AS n, id, s FROM TABLE_ UNION ALL SELECT NULL, 4, NULL) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    sql("OPTIMIZE TABLE_")
    sql("ALTER TABLE TABLE_ SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    recorded = anabranch.history(path)[0]["version"]
    anabranch.append(path, [{"id": 6}])
    found = rows(spark, path)
    assert found == [
        (None, 1, (5, None, (None, 2))),
        (None, 3, (3, None, None)),
        (None, 4, None),
        (None, 6, None),
    ]
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", recorded).load(path)
    assert [tuple(each)[:4] for each in feed.collect()] == [(None, 6, None, "insert")]
    for file in anabranch.files(path)["path"].to_pylist():
        there = pq.read_metadata(f"{path}/{file}").schema
        assert {there.column(i).path for i in range(len(there))} == {"id", "s.a", "s.t.b"}
    assert check_table(path, deep=True).is_clean


@pytest.mark.exhaustive(
    "tests/spark/test_voids.py::test_every_verb_reads_and_writes_a_table_with_voids",
    "tests/spark/test_voids.py::test_void_columns_take_values_only_where_the_schema_may_change",
    "tests/commands/ddl/test_voids.py::test_a_table_is_created_with_a_void_column",
)
def test_a_void_is_declared_added_and_brought_by_a_merge(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    table = f"delta.`{path}`"
    anabranch.sql(spark, f"CREATE TABLE {table} (id INT, n VOID) USING delta")
    anabranch.sql(spark, f"INSERT INTO {table} VALUES (1, NULL)")
    anabranch.sql(spark, f"ALTER TABLE {table} ADD COLUMN m VOID")
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING (SELECT 2 AS id, NULL AS z) s ON t.id = s.id"
    anabranch.sql(spark, f"{merge} WHEN NOT MATCHED THEN INSERT *")
    assert rows(spark, path) == [(1, None, None, None), (2, None, None, None)]
    assert spark.read.format("delta").load(path).dtypes[1:] == [("n", "void"), ("m", "void"), ("z", "void")]


def test_void_columns_take_values_only_where_the_schema_may_change(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    table = f"delta.`{path}`"
    spark.sql("SELECT 1 AS id, NULL AS n, NULL AS m").write.format("delta").save(path)
    before = listing(path)
    refused = [f"UPDATE {table} SET n = 5", f"INSERT INTO {table} VALUES (2, 5, NULL)"]
    refused += [f"MERGE INTO {table} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 5"]
    for text in refused:
        with pytest.raises(AnalysisException, match="Column n"):
            anabranch.sql(spark, text)
    with pytest.raises(UnsupportedType):
        spark.sql("SELECT 1 AS id, array() AS n").write.format("delta").save(table_path(tmp_path))
    assert listing(path) == before
    anabranch.sql(spark, f"INSERT WITH SCHEMA EVOLUTION INTO {table} VALUES (2, 5, NULL)")
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING (SELECT 1 AS id, 6L AS n, 'x' AS m) s ON t.id = s.id"
    anabranch.sql(spark, f"{merge} WHEN MATCHED THEN UPDATE SET *")
    assert dict(spark.read.format("delta").load(path).dtypes) == {"id": "int", "n": "int", "m": "string"}
    assert rows(spark, path) == [(1, 6, "x"), (2, 5, None)]


@pytest.mark.exhaustive(
    "tests/spark/test_voids.py::test_every_verb_reads_and_writes_a_table_with_voids",
    "tests/commands/ddl/test_voids.py::test_mapped_columns_hold_no_voids_either",
)
def test_mapped_and_partitioned_tables_read_and_write_voids_too(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    new = spark.sql(
        "SELECT 1 AS id, named_struct('v', NULL, 'a', array(named_struct('x', 1))) AS s, 'p' AS p, NULL AS n"
    )
    new.write.format("delta").partitionBy("p").option("delta.columnMapping.mode", "name").save(path)
    anabranch.sql(spark, f"INSERT INTO delta.`{path}` SELECT id + 1, s, p, n FROM delta.`{path}`")
    found = (None, [(1,)])
    assert rows(spark, path) == [(1, found, "p", None), (2, found, "p", None)]
    assert check_table(path, deep=True).is_clean
