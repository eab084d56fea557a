"""Parquet tables of Spark's, by their names and paths, where a statement would make a Delta table of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors

pytestmark = pytest.mark.spark


# -- converting --------------------------------------------------------------------------------------------------------


def test_the_way_that_is_named_makes_a_delta_table_of_an_external_one(
    spark: SparkSession, run: Any, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE p (id BIGINT, q INT) USING parquet PARTITIONED BY (q) LOCATION '{tmp_path}/p'")
    spark.sql("INSERT INTO p VALUES (1, 2), (2, 3)")
    with pytest.raises(errors.NameNotConverted) as refused:
        run("CONVERT TO DELTA p")
    assert run("SELECT * FROM p") == [(1, 2), (2, 3)]
    instead = str(refused.value.facts["instead"])
    for pattern in (r"CONVERT TO DELTA .*?\)", r"DROP TABLE [^,]*", r"CREATE TABLE .*'"):
        (step,) = re.findall(pattern, instead)
        run(step)
    assert run("SELECT * FROM p") == [(1, 2), (2, 3)]
    assert run("DELETE FROM p WHERE id = 1") == [(1,)]


def test_of_a_managed_table_a_copy_is_advised_since_a_drop_removes_its_files(spark: SparkSession, run: Any) -> None:
    spark.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    with pytest.raises(errors.NameNotConverted, match="DROP TABLE would remove the files"):
        run("CONVERT TO DELTA p")
    with pytest.raises(errors.NameNotConverted):
        DeltaTable.convertToDelta(spark, "p")
    assert run("SELECT * FROM p") == [(1,)]


def test_a_name_of_a_delta_table_is_converted_already(spark: SparkSession, run: Any, schema: str) -> None:
    run("CREATE TABLE t (id INT) USING delta")
    assert run("CONVERT TO DELTA t") == []
    assert DeltaTable.convertToDelta(spark, f"{schema}.t").toDF().columns == ["id"]
    assert len(run("DESCRIBE HISTORY t")) == 1


def test_a_name_of_anything_else_is_refused_as_what_it_is(spark: SparkSession, run: Any) -> None:
    spark.sql("CREATE TABLE c (id INT) USING csv")
    spark.sql("CREATE VIEW v AS SELECT 1 AS id")
    with pytest.raises(errors.InvalidOption, match="csv"):
        run("CONVERT TO DELTA c")
    for name in ("v", "nothing"):
        with pytest.raises(errors.UnknownTable, match=name):
            run(f"CONVERT TO DELTA {name}")


# -- cloning -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_a_parquet_table_is_cloned_by_its_name(spark: SparkSession, run: Any, kind: str) -> None:
    spark.sql("CREATE TABLE p (id BIGINT, q INT) USING parquet PARTITIONED BY (q)")
    spark.sql("INSERT INTO p VALUES (1, 2), (2, 3), (3, NULL)")
    run(f"CREATE TABLE t {kind} CLONE p TBLPROPERTIES ('team' = 'a')")
    assert run("SELECT * FROM t WHERE q IS NOT NULL") == [(1, 2), (2, 3)]
    assert run("DELETE FROM t WHERE q = 2 OR q IS NULL") == [(2,)]
    assert len(run("SELECT * FROM p")) == 3


@pytest.mark.exhaustive(
    "tests/commands/maintenance/test_clone_of_parquet.py::test_the_clone_has_the_rows_of_the_files",
    "tests/sql/test_parquet_tables.py::test_a_parquet_table_is_cloned_by_its_name",
)
@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_parquet_files_are_cloned_by_their_path(spark: SparkSession, run: Any, tmp_path: Path, kind: str) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/files")
    ((size, files, _, copied, _, _),) = run(f"CREATE OR REPLACE TABLE u {kind} CLONE parquet.`{tmp_path}/files`")
    assert size > 0
    assert copied == (0 if kind == "SHALLOW" else files)
    assert run("SELECT * FROM u") == [(0,), (1,), (2,)]


def test_partitions_that_the_catalog_does_not_count_are_told(spark: SparkSession, run: Any, schema: str) -> None:
    spark.sql("CREATE TABLE p (id BIGINT, q INT) USING parquet PARTITIONED BY (q)")
    spark.sql("INSERT INTO p VALUES (1, 2), (2, 3)")
    folder = anabranch.sql(spark, "DESCRIBE DETAIL p").first().location
    spark.range(1).write.parquet(f"{folder}/q=4")
    with pytest.raises(errors.CloneRefused, match="q=4 is in the folder only"):
        run("CREATE TABLE t SHALLOW CLONE p")
    spark.sql("MSCK REPAIR TABLE p")
    run("CREATE TABLE t SHALLOW CLONE p")
    assert len(run("SELECT * FROM t")) == len(run("SELECT * FROM p")) == 3


def test_what_has_no_parquet_files_is_not_cloned(spark: SparkSession, run: Any, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE c (id INT) USING csv")
    spark.sql("CREATE VIEW v AS SELECT 1 AS id")
    for name, kind in (("c", "csv"), ("v", "a view")):
        with pytest.raises(errors.UnsupportedCloneSource, match=kind):
            run(f"CREATE TABLE t SHALLOW CLONE {name}")
    with pytest.raises(errors.UnknownTable, match="nothing"):
        run("CREATE TABLE t SHALLOW CLONE nothing")
    with pytest.raises(errors.EmptyDirectory):
        run(f"CREATE TABLE t CLONE parquet.`{tmp_path}/nothing`")
    with pytest.raises(errors.SqlSyntaxError):
        run("CREATE TABLE t SHALLOW CLONE p VERSION AS OF 1")
    assert [name for _, name, is_temporary in run("SHOW TABLES") if not is_temporary] == ["c", "v"]
