"""Column mapping on Spark: every verb on tables whose files have names of their own, in both modes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._log.log import forget
from anabranch._spark.columns.types import column
from anabranch.commands.ddl.alter import UnsetProperties
from anabranch.commands.opening import open_log
from anabranch.errors import ExecutionFailed, NotBuilt
from tests.support.golden import kernel_table
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World, table_path
from tests.test_golden import bag

pytestmark = pytest.mark.spark

COLUMNS = (
    "id bigint, `p q` bigint, `s,;{}` struct<`a.b`: bigint, l: array<struct<c: bigint>>>, "
    "m map<string, struct<v: array<bigint>>>, x double, ts timestamp"
)


KERNEL = (
    "table-with-columnmapping-mode-id",
    "table-with-columnmapping-mode-name",
    "dv-with-columnmapping",
    "data-reader-timestamp_ntz-id-mode",
    "data-reader-timestamp_ntz-name-mode",
    "data-skipping-basic-stats-all-types-columnmapping-id",
    "data-skipping-basic-stats-all-types-columnmapping-name",
)


def rows(spark: SparkSession, count: int = 12) -> DataFrame:
    return spark.range(count).selectExpr(
        "id",
        "id % 3 AS `p q`",
        "named_struct('a.b', id, 'l', array(named_struct('c', id))) AS `s,;{}`",
        "map('k', named_struct('v', array(id))) AS m",
        "CAST(id AS DOUBLE) AS x",
        "timestamp_millis(id) AS ts",
    )


@pytest.fixture(params=["name", "id", "name, partitioned", "id, partitioned"])
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[DeltaTable]:
    anabranch.install(spark)
    path, (mode, *partitioned) = table_path(tmp_path), request.param.split(", ")
    builder = DeltaTable.create(spark).location(path).addColumns(spark.createDataFrame([], COLUMNS).schema)
    builder = builder.property("delta.columnMapping.mode", mode)
    (builder.partitionedBy("p q") if partitioned else builder).execute()
    rows(spark).write.format("delta").mode("append").save(path)
    found = DeltaTable.forPath(spark, path)
    yield found
    report = found.check(deep=True)
    assert report.is_clean, str(report)
    assert_others_agree(path)


def path_of(table: DeltaTable) -> str:
    return open_log(table.detail().first()["location"]).table.removeprefix("file://")


def assert_others_agree(path: str) -> None:
    """delta-rs reads the same; DuckDB takes partition columns of mapped tables for NULL unless they come first."""
    plain = [{k: v for k, v in row.items() if k not in ("m", "ts")} for row in World(path).rows()]
    of_delta_rs = [{k: v for k, v in row.items() if k not in ("m", "ts")} for row in deltalake_rows(path)]
    assert same_rows(of_delta_rs, plain)
    hidden = {"m", "ts", *open_log(path).snapshot().partition_columns}
    of_duckdb = [{k: v for k, v in row.items() if k not in hidden} for row in duckdb_rows(path)]
    assert same_rows(of_duckdb, [{k: v for k, v in row.items() if k not in hidden} for row in plain])


def by_id(frame: DataFrame) -> dict[int, dict[str, Any]]:
    return {row["id"]: row.asDict(recursive=True) for row in frame.collect()}


def row_of(i: int) -> dict[str, Any]:
    """A row of ``rows``, as Python sees it."""
    struct, when = {"a.b": i, "l": [{"c": i}]}, dt.datetime.fromtimestamp(i / 1000)
    return {"id": i, "p q": i % 3, "s,;{}": struct, "m": {"k": {"v": [i]}}, "x": float(i), "ts": when}


def text_of(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


def test_rows_come_back_and_files_have_names_and_numbers_of_their_own(spark: SparkSession, table: DeltaTable) -> None:
    assert text_of(table.toDF()) == text_of(rows(spark))
    path, snapshot = path_of(table), open_log(path_of(table)).snapshot()
    file = anabranch.files(path)["path"][0].as_py()
    field = pq.read_schema(f"{path}/{file}").field(snapshot.schema.field("s,;{}").physical_name)
    assert [field.metadata[b"PARQUET:field_id"], field.name[:4]] == [b"3", "col-"]
    assert {inner.name[:4] for inner in field.type} == {"col-"}
    assert [row["c"] for row in table.toDF().where("id = 3").select("`s,;{}`.l.c").collect()] == [[3]]


def test_rows_are_changed_by_every_verb(spark: SparkSession, table: DeltaTable) -> None:
    table.update("id = 3", {"x": "x + 100", "`s,;{}`.`a.b`": "77"})
    table.delete("id IN (4, 5) AND `p q` >= 0")
    news = rows(spark, 20).where("id IN (6, 18)").withColumn("x", F.lit(-1.0))
    merge = table.alias("t").merge(news.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    plain = {i: row_of(i) for i in range(20)}
    expected = {i: plain[i] for i in (0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 18)}
    expected[3] |= {"x": 103.0, "s,;{}": {**plain[3]["s,;{}"], "a.b": 77}}
    for i in (6, 18):
        expected[i]["x"] = -1.0
    assert by_id(table.toDF()) == expected


@pytest.mark.exhaustive(
    "tests/protocol/schema/test_column_mapping.py::test_new_columns_get_what_none_had_and_old_ones_keep_theirs",
    "tests/api/dataframe/test_evolution.py::test_stars_add_columns_members_and_elements_on_spark",
    "tests/api/dataframe/test_column_mapping.py::test_rows_are_changed_by_every_verb",
)
def test_columns_are_added_by_writes_and_merges(spark: SparkSession, table: DeltaTable) -> None:
    path, last = path_of(table), open_log(path_of(table)).snapshot().metadata.configuration
    more = rows(spark, 1).withColumn("new", F.lit("q"))
    more.write.format("delta").mode("append").option("mergeSchema", True).save(path)
    news = spark.createDataFrame([(30, 0, (5,))], "id bigint, `p q` bigint, extra struct<e: int>")
    merge = table.alias("t").merge(news.alias("s"), "t.id = s.id")
    merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    (row,) = table.toDF().where("id = 30").collect()
    assert (row["extra"]["e"], row["new"], row["x"]) == (5, None, None)
    after = open_log(path).snapshot()
    key = "delta.columnMapping.maxColumnId"
    assert int(after.metadata.configuration[key]) == int(last[key]) + 3
    assert after.schema.field("new").physical_name.startswith("col-")


@pytest.mark.exhaustive(
    "tests/commands/test_change_recorder.py::test_replace_where_shows_what_it_replaced",
    "tests/commands/dml/test_write_options.py::test_replace_where_on_spark",
    "tests/api/dataframe/test_column_mapping.py::test_rows_are_changed_by_every_verb",
)
def test_rows_are_replaced(spark: SparkSession, table: DeltaTable) -> None:
    path, kept = path_of(table), rows(spark).where("`p q` != 1")
    one = rows(spark).where("id = 1")
    one.write.format("delta").mode("overwrite").option("replaceWhere", "`p q` = 1").save(path)
    assert text_of(table.toDF()) == text_of(kept.unionAll(one))
    if open_log(path).snapshot().partition_columns:
        two = rows(spark).where("id = 2")
        two.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
        assert text_of(table.toDF()) == text_of(kept.where("`p q` = 0").unionAll(one).unionAll(two))


def test_a_schema_that_is_replaced_keeps_the_names_of_what_stays(spark: SparkSession, tmp_path: Path) -> None:
    anabranch.install(spark)
    path = table_path(tmp_path)
    anabranch.append(path, [{"id": 1, "x": "a"}], properties={"delta.columnMapping.mode": "name"})
    before = open_log(path).snapshot().schema
    new = spark.createDataFrame([(7, 2.5)], "id bigint, x double")
    new.write.format("delta").mode("overwrite").option("overwriteSchema", True).save(path)
    after = open_log(path).snapshot()
    assert after.schema.field("id").metadata == before.field("id").metadata
    assert after.schema.field("x").physical_name != before.field("x").physical_name
    assert after.metadata.configuration["delta.columnMapping.maxColumnId"] == "3"
    assert [tuple(row) for row in anabranch.read(path, spark=spark).collect()] == [(7, 2.5)]
    assert [row["x"] for row in anabranch.read(path, version=0, spark=spark).collect()] == ["a"]


def test_mode_id_finds_columns_by_number_whatever_files_call_them(spark: SparkSession, tmp_path: Path) -> None:
    anabranch.install(spark)
    path = table_path(tmp_path)
    properties = {"delta.columnMapping.mode": "id"}
    anabranch.append(path, [{"id": 1, "s": {"a": 10}, "x": 1.5}], properties=properties)
    anabranch.append(path, [{"id": 2, "s": {"a": 20}, "x": 2.5}])
    foreign(path, 1)
    table = DeltaTable.forPath(spark, path)
    assert [tuple(row) for row in table.toDF().where("id > 1").collect()] == [(2, (20,), 2.5)]
    table.update("x = 2.5", {"s.a": "s.a + 1"})
    assert sorted(tuple(row) for row in table.toDF().collect()) == [(1, (10,), 1.5), (2, (21,), 2.5)]
    assert table.check(deep=True).is_clean


@pytest.mark.parametrize("name", KERNEL)
def test_a_table_of_another_writer_is_read_as_expected(spark: SparkSession, name: str) -> None:
    path = kernel_table(name)
    found = anabranch.read(path, spark=spark)
    assert bag(found) == bag(spark.read.parquet(str(path.parent / "expected")).select(*map(column, found.columns)))
    assert anabranch.check(path, deep=True).is_clean


def foreign(path: str, version: int) -> None:
    """Give the columns of the file of a version other names, in another order, as a converted table's file has them:
    the name of one is the physical name of another.
    """
    log = open_log(path)
    commit = log.read(version)
    assert commit is not None
    file = Path(path) / commit.adds["path"][0].as_py()
    found = pq.read_table(file)
    names = found.column_names
    swapped = [field.with_name(name) for field, name in zip(found.schema, [names[2], "s", names[0]], strict=True)]
    other = pa.Table.from_arrays(found.columns, schema=pa.schema(swapped)).select([2, 1, 0])
    pq.write_table(other, file)
    line = next((Path(path) / "_delta_log").glob(f"*{version}.json"))
    line.write_text(line.read_text().replace(f'"size":{commit.adds["size"][0]}', f'"size":{file.stat().st_size}'))
    for checksum in (Path(path) / "_delta_log").glob("*.crc"):
        checksum.unlink()
    forget(log.table)


def test_files_without_numbers_are_never_committed_in_mode_id(spark: SparkSession, tmp_path: Path) -> None:
    anabranch.install(spark)
    path = table_path(tmp_path)
    anabranch.append(path, [{"id": 1}], properties={"delta.columnMapping.mode": "id"})
    spark.conf.set("spark.sql.parquet.fieldId.write.enabled", "false")
    try:
        with pytest.raises(ExecutionFailed, match="fieldId"):
            spark.range(3).write.format("delta").mode("append").save(path)
    finally:
        spark.conf.unset("spark.sql.parquet.fieldId.write.enabled")
    assert anabranch.read(path, spark=spark).count() == 1


def of_compatible(spark: SparkSession) -> DataFrame:
    return spark.range(6).selectExpr(
        "id", "CAST(IF(id = 5, NULL, id % 2) AS INT) AS p", "named_struct('a', 'x') AS s", "timestamp_millis(id) AS ts"
    )


def compatible(spark: SparkSession, path: str, version: int) -> DeltaTable:
    """A partitioned table that Iceberg can read, with rows that Spark wrote."""
    anabranch.install(spark)
    rows = of_compatible(spark)
    builder = DeltaTable.create(spark).location(path).addColumns(rows.schema)
    table = builder.partitionedBy("p").property(f"delta.enableIcebergCompatV{version}", "true").execute()
    rows.write.format("delta").mode("append").save(path)
    return table


def assert_files_hold_partition(path: str, value: int) -> None:
    snapshot = open_log(path).snapshot()
    files = anabranch.files(path, where=f"p = {value}")["path"].to_pylist()
    assert files
    for file in files:
        inside = pq.read_table(f"{path}/{file}")
        assert inside.column_names[-1] == snapshot.schema.field("p").physical_name
        assert set(inside.column(-1).to_pylist()) == {value}


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_a_compatible_table_hold_their_partition(spark: SparkSession, tmp_path: Path, version: int) -> None:
    path = table_path(tmp_path)
    table = compatible(spark, path, version)
    table.update("id = 1", {"s.a": "'y'"})
    expected = [(0, 0, "x"), (1, 1, "y"), (2, 0, "x"), (3, 1, "x"), (4, 0, "x"), (5, None, "x")]
    assert sorted((row["id"], row["p"], row["s"]["a"]) for row in deltalake_rows(path)) == expected
    assert_files_hold_partition(path, 1)
    assert table.check(deep=True).is_clean
    assert_others_agree(path)


@pytest.mark.exhaustive(
    "tests/commands/ddl/test_iceberg.py::test_a_new_table_has_what_the_flag_asks_for_and_every_file_holds_its_partition",
    "tests/api/dataframe/test_column_mapping.py::test_files_of_a_compatible_table_hold_their_partition",
    "tests/api/dataframe/test_column_mapping.py::test_rows_are_changed_by_every_verb",
)
@pytest.mark.parametrize("version", [1, 2])
def test_files_that_a_merge_writes_hold_their_partition_too(spark: SparkSession, tmp_path: Path, version: int) -> None:
    path = table_path(tmp_path)
    table, news = compatible(spark, path, version), of_compatible(spark)
    table.update("id = 1", {"s.a": "'y'"})
    more = news.where("id > 3").withColumn("id", F.col("id") + 2)
    table.alias("t").merge(more.alias("s"), "t.id = s.id").whenMatchedDelete().whenNotMatchedInsertAll().execute()
    found = sorted((row["id"], row["p"], row["s"]["a"]) for row in deltalake_rows(path))
    changed = [(1, 1, "y"), (6, 0, "x"), (7, None, "x")]
    assert found == sorted([(0, 0, "x"), (2, 0, "x"), (3, 1, "x"), (4, 0, "x"), (5, None, "x"), *changed])
    assert_files_hold_partition(path, 1)
    assert table.check(deep=True).is_clean
    assert_others_agree(path)


def test_arrays_of_a_compatible_table_are_appended_by_arrow_only(spark: SparkSession, tmp_path: Path) -> None:
    anabranch.install(spark)
    path = table_path(tmp_path)
    anabranch.append(path, [{"id": 1, "l": [1]}], properties={"delta.enableIcebergCompatV2": "true"})
    with pytest.raises(NotBuilt, match="Arrow rows"):
        spark.sql("SELECT 2L AS id, array(2L) AS l").write.format("delta").mode("append").save(path)
    anabranch.append(path, [{"id": 2, "l": [2]}])
    UnsetProperties(path, ["delta.enableIcebergCompatV2"]).run()
    spark.sql("SELECT 3L AS id, array(3L) AS l").write.format("delta").mode("append").save(path)
    assert sorted(tuple(row) for row in anabranch.read(path, spark=spark).collect()) == [(1, [1]), (2, [2]), (3, [3])]
