"""Intervals: stored as the protocol's plain numbers, read back in each spelling, changed, and never skipped by."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.schema.intervals import DAY_SECOND, YEAR_MONTH
from anabranch._protocol.schema.types import Array, Field, Struct
from anabranch.commands.opening import open_log
from anabranch.errors import InvalidOption, InvalidProperty, SchemaMismatch, UnsupportedType
from tests.support.raw_logs import metadata, put_commit
from tests.support.worlds import table_path

pytestmark = pytest.mark.spark

ROWS = """SELECT id, make_ym_interval(1, CAST(id AS INT)) AS ym, make_dt_interval(CAST(id AS INT), 0, 0, -0.5) AS ds,
    array(make_ym_interval(0, 7)) AS yms, named_struct('d', INTERVAL '2' HOUR) AS s FROM range(4)"""
TYPES = {
    **{"id": "bigint", "ym": YEAR_MONTH, "ds": DAY_SECOND},
    **{"yms": f"array<{YEAR_MONTH}>", "s": f"struct<d:{DAY_SECOND}>"},
}


def months(number: int) -> str:
    sign, number = "-" if number < 0 else "", abs(number)
    return f"INTERVAL '{sign}{number // 12}-{number % 12}' YEAR TO MONTH"


def set_property(spark: Any, path: str, key: str, value: str) -> None:
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{key}' = '{value}')")


@pytest.fixture(autouse=True)
def installed(spark: Any) -> None:
    anabranch.install(spark)


@pytest.fixture(scope="module")
def written(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of which each test has a copy."""
    where = table_path(tmp_path_factory.mktemp("intervals"))
    anabranch.install(spark).sql(ROWS).coalesce(1).write.format("delta").save(where)
    return where


@pytest.fixture
def path(written: str, tmp_path: Path) -> str:
    return shutil.copytree(written, table_path(tmp_path))


def read(spark: Any, path: str, *values: str) -> list[tuple[Any, ...]]:
    """Values of each row by its id; as texts, since PySpark collects no months."""
    rows = spark.read.format("delta").load(path)
    shown = [f"CAST({value} AS STRING)" for value in values or ("ym",)]
    return sorted(tuple(row) for row in rows.selectExpr("id", *shown).collect())


def test_intervals_come_back_at_any_depth_under_their_canonical_names(spark: Any, path: str) -> None:
    assert dict(spark.read.format("delta").load(path).dtypes) == TYPES
    expected = [(i, months(12 + i), f"[{months(7)}]", "{INTERVAL '0 02:00:00' DAY TO SECOND}") for i in range(4)]
    assert read(spark, path, "ym", "yms", "s") == expected
    assert read(spark, path, "ds")[1] == (1, "INTERVAL '0 23:59:59.5' DAY TO SECOND")
    assert "interval" not in str(open_log(path).snapshot().protocol).lower()


def test_files_hold_plain_numbers_and_the_log_no_bounds_of_them(path: str) -> None:
    (file,) = Path(path).rglob("*.parquet")
    columns = pq.ParquetFile(file).schema
    kinds = {columns.column(i).path: columns.column(i) for i in range(len(columns))}
    assert (kinds["ym"].physical_type, kinds["ds"].physical_type) == ("INT32", "INT64")
    assert all(kinds[name].logical_type.type == "NONE" for name in ("ym", "ds", "s.d", "yms.list.element"))
    (stats,) = open_log(path).snapshot().files["stats"].to_pylist()
    assert json.loads(stats)["minValues"] == json.loads(stats)["maxValues"] | {"id": 0} == {"id": 0}
    assert json.loads(stats)["nullCount"].items() >= {"ym": 0, "ds": 0}.items()


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "rewritten"])
def test_rows_with_intervals_are_changed_deleted_and_merged(spark: Any, path: str, vectors: bool) -> None:
    table = DeltaTable.forPath(spark, path)
    if not vectors:
        set_property(spark, path, "delta.enableDeletionVectors", "false")
    table.update("ym = INTERVAL '1-2' YEAR TO MONTH", {"ym": "-ym", "ds": "INTERVAL '5' MINUTE"})
    table.update("id = 1", {"id": "11"})
    table.delete("ds < INTERVAL '0' SECOND")
    source = spark.sql("SELECT 3L AS id, INTERVAL '30' YEAR AS ym UNION ALL SELECT 9L, INTERVAL '90' YEAR")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"ym": "s.ym"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "ym": "s.ym"}).execute()
    assert read(spark, path) == [(2, months(-14)), (3, months(360)), (9, months(1080)), (11, months(13))]
    assert read(spark, path, "ds")[0] == (2, "INTERVAL '0 00:05:00' DAY TO SECOND")
    assert table.check().is_clean


def test_a_merge_by_intervals_finds_its_rows(spark: Any, path: str) -> None:
    source = spark.sql("SELECT INTERVAL '1-1' YEAR TO MONTH AS ym, INTERVAL '4-0' YEAR TO MONTH AS new")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.ym = s.ym")
    merge.whenMatchedUpdate(set={"ym": "s.new"}).whenNotMatchedBySourceDelete().execute()
    assert read(spark, path) == [(1, months(48))]


def test_changes_of_intervals_are_recorded_and_read(spark: Any, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    set_property(spark, path, "delta.enableChangeDataFeed", "true")
    table.update("id = 1", {"ym": "INTERVAL '100' MONTH"})
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
    rows = feed.selectExpr("_change_type", "CAST(ym AS STRING)").collect()
    expected = {("update_preimage", months(13)), ("update_postimage", months(100))}
    assert {tuple(row) for row in rows} == expected
    counted = anabranch.table(path, spark=spark).changes(start=2)
    assert sorted(counted["ym"].to_pylist()) == [13, 100]


# -- without Spark -----------------------------------------------------------------------------------------------------


def test_arrow_reads_and_changes_what_spark_wrote(spark: Any, path: str) -> None:
    table = anabranch.table(path)
    rows = table.to_arrow()
    assert (rows.schema.field("ym").type, rows.schema.field("ds").type) == (pa.int32(), pa.duration("us"))
    assert sorted(rows["ym"].to_pylist()) == [12, 13, 14, 15]
    assert rows["s"].to_pylist() == [{"d": dt.timedelta(hours=2)}] * 4
    table.update("id = 1", {"ym": "NULL", "id": "10"})
    table.delete("ds = s.d OR ym IS NULL AND id = 0")
    anabranch.append(path, [{"id": 5, "ym": -1, "ds": dt.timedelta(days=1), "yms": [2, None]}])
    assert read(spark, path, "ym", "yms")[-2:] == [
        (5, months(-1), f"[{months(2)}, null]"),
        (10, None, f"[{months(7)}]"),
    ]
    assert read(spark, path, "ds")[-2] == (5, "INTERVAL '1 00:00:00' DAY TO SECOND")


def test_a_handle_with_a_session_leaves_conditions_on_intervals_to_spark(spark: Any, path: str) -> None:
    table = anabranch.table(path, spark=spark)
    rows = table.to_arrow(["ym", "yms"], "ym > INTERVAL '1-2' YEAR TO MONTH")
    assert rows.to_pylist() == [{"ym": 15, "yms": [7]}]
    table.update("ym = INTERVAL '1-3' YEAR TO MONTH", {"ym": "ym * 2"})
    assert sorted(table.to_arrow(["ym"])["ym"].to_pylist()) == [12, 13, 14, 30]


# -- spellings ---------------------------------------------------------------------------------------------------------


def test_a_table_with_narrowed_types_is_read_and_its_next_schema_has_the_canonical_ones(spark: Any, path: str) -> None:
    (file,) = Path(path).rglob("*.parquet")
    names = [("ym", "interval year"), ("ds", "interval hour to minute"), ("yms", Array("interval month"))]
    schema = Struct((Field("id", "long"), *(Field(name, type_) for name, type_ in names)))
    shutil.rmtree(Path(path, "_delta_log"))
    add = {"path": file.relative_to(path).as_posix(), "partitionValues": {}, "size": file.stat().st_size}
    put_commit(path, 0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata(schema),
               {"add": {**add, "modificationTime": 0, "dataChange": True}})  # fmt: skip
    assert "interval hour to minute" in open_log(path).snapshot().metadata.schema_string
    assert dict(spark.read.format("delta").load(path).dtypes)["ym"] == YEAR_MONTH
    assert read(spark, path, "ym", "yms")[3] == (3, months(15), f"[{months(7)}]")
    DeltaTable.forPath(spark, path).update("ym = INTERVAL '15' MONTH", {"ds": "INTERVAL '1' SECOND"})
    assert read(spark, path, "ds")[3] == (3, "INTERVAL '0 00:00:01' DAY TO SECOND")
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMNS (x INTERVAL MINUTE)")
    text = open_log(path).snapshot().metadata.schema_string
    assert (text.count(YEAR_MONTH), text.count(DAY_SECOND), text.count("interval")) == (2, 2, 4)


def test_columns_are_declared_in_sql_and_rows_of_narrower_types_fit(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    anabranch.sql(
        spark,
        f"CREATE TABLE delta.`{path}` (id BIGINT, ym INTERVAL YEAR TO MONTH, ds INTERVAL DAY TO SECOND) USING delta",
    )
    anabranch.sql(
        spark, f"INSERT INTO delta.`{path}` VALUES (1, INTERVAL '2' YEAR, INTERVAL '3' HOUR), (2, NULL, NULL)"
    )
    spark.sql("SELECT 3L AS id, INTERVAL '5' MONTH AS ym").write.format("delta").mode("append").save(path)
    assert read(spark, path) == [(1, months(24)), (2, None), (3, months(5))]
    with pytest.raises(SchemaMismatch):
        spark.sql("SELECT 3L AS id, 5 AS ym").write.format("delta").mode("append").save(path)
    with pytest.raises(UnsupportedType, match="the type interval,"):
        anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ADD COLUMNS (x INTERVAL)")


def test_an_interval_column_keeps_its_type(spark: Any, path: str) -> None:
    set_property(spark, path, "delta.enableTypeWidening", "true")
    for type_ in ("BIGINT", "INTERVAL DAY TO SECOND", "STRING"):
        with pytest.raises(InvalidOption):
            anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN ym TYPE {type_}")
    with pytest.raises(InvalidOption):
        anabranch.sql(spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN id TYPE INTERVAL DAY TO SECOND")


# -- partitions and layout ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
def test_intervals_partition_a_table_by_their_literals(spark: Any, tmp_path: Path, few: bool) -> None:
    """RFC #7077, "Partition Value Serialization"."""
    path = table_path(tmp_path)
    rows = spark.sql(ROWS) if few else spark.sql(ROWS).repartition(2)
    rows.select("id", "ym", "ds").write.format("delta").partitionBy("ym", "ds").save(path)
    values = {
        tuple(sorted(dict(each).items())) for each in open_log(path).snapshot().files["partitionValues"].to_pylist()
    }
    assert (("ds", "INTERVAL '0 23:59:59.5' DAY TO SECOND"), ("ym", months(13))) in values
    expected = [(i, months(12 + i)) for i in range(4)]
    assert read(spark, path) == expected
    assert read(spark, path, "ds")[2][1] == "INTERVAL '1 23:59:59.5' DAY TO SECOND"
    assert sorted(anabranch.table(path).to_arrow()["ym"].to_pylist()) == [12, 13, 14, 15]
    anabranch.append(path, [{"id": 4, "ym": -1, "ds": dt.timedelta(seconds=-1)}, {"id": 5}])
    table = DeltaTable.forPath(spark, path)
    table.update("ym = INTERVAL '1-1' YEAR TO MONTH", {"ym": "INTERVAL '100' YEAR"})
    table.delete("ym < INTERVAL '0' MONTH")
    anabranch.table(path).update("id = 2", {"id": "20"})
    assert read(spark, path) == [(0, months(12)), (1, months(1200)), (3, months(15)), (5, None), (20, months(14))]
    assert table.check().is_clean


def test_a_narrow_literal_of_a_partition_is_read(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    anabranch.append(path, [{"id": 1, "ds": dt.timedelta(days=1)}], partition_by=["ds"])
    commit = Path(path, "_delta_log", f"{0:020}.json")
    commit.write_text(commit.read_text().replace("INTERVAL '1 00:00:00' DAY TO SECOND", "INTERVAL '24' HOUR"))
    for crc in commit.parent.glob("*.crc"):
        crc.unlink()
    assert read(spark, path, "ds") == [(1, "INTERVAL '1 00:00:00' DAY TO SECOND")]
    assert anabranch.table(path).to_arrow()["ds"].to_pylist() == [dt.timedelta(days=1)]


def test_files_with_intervals_are_packed_and_laid_out_by_other_columns_only(spark: Any, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    spark.sql(ROWS).write.format("delta").mode("append").save(path)
    table.optimize().executeCompaction()
    table.optimize().executeZOrderBy("id")
    assert read(spark, path) == sorted([(i, months(12 + i)) for i in range(4)] * 2)
    for column in ("ym", "ds"):
        with pytest.raises(InvalidOption):
            table.optimize().executeZOrderBy(column)
        with pytest.raises(InvalidOption):
            anabranch.sql(spark, f"ALTER TABLE delta.`{path}` CLUSTER BY ({column})")


def test_iceberg_compatible_tables_have_no_intervals(spark: Any, tmp_path: Path) -> None:
    for flag in ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"):
        with pytest.raises(InvalidProperty, match=DAY_SECOND):
            anabranch.append(table_path(tmp_path), [{"d": dt.timedelta(1)}], properties={flag: "true"})


# -- streams and the command line --------------------------------------------------------------------------------------


def test_a_stream_shows_intervals(spark: Any, path: str, tmp_path: Path) -> None:
    stream = spark.readStream.format("delta").load(path)
    assert dict(stream.dtypes) == TYPES
    sink = stream.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    sink.trigger(availableNow=True).start(str(tmp_path / "copy")).awaitTermination()
    assert read(spark, str(tmp_path / "copy"), "ym", "ds", "yms") == read(spark, path, "ym", "ds", "yms")


def test_parquet_with_intervals_becomes_a_table(spark: Any, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    spark.sql(ROWS).write.partitionBy("ym").parquet(path)
    DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "ym INTERVAL YEAR TO MONTH")
    assert dict(spark.read.format("delta").load(path).dtypes) == TYPES
    assert read(spark, path, "ym", "yms")[1] == (1, months(13), f"[{months(7)}]")
