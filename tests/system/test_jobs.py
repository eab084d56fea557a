"""How many jobs of Spark a command on a tiny table costs: these are counted, since timings differ from day to day."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from tests.support.patience import PATIENCE
from tests.support.readers import deltalake_rows
from tests.support.spark_jobs import jobs
from tests.support.worlds import table_path

pytestmark = [pytest.mark.spark, pytest.mark.classic("a client is told of no jobs")]

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "name": ["n"] * 100, "v": [0.5] * 100})
ANOTHER = "import anabranch, sys; anabranch.append(sys.argv[1], [{'id': 1, 'name': 'x', 'v': 0.0}])"
TWO = pa.table({"id": pa.array([5, 1000], pa.int64()), "name": ["a", "b"], "v": [1.0, 2.0]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = table_path(tmp_path)
    anabranch.append(found, ROWS)
    return found


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with its doors."""
    anabranch.install(spark)
    yield spark
    anabranch.uninstall(spark)


def rows(path: str, *ids: int) -> list[tuple[Any, ...]]:
    """The rows with these ids, in this order."""
    found = {row["id"]: (row["id"], row["name"], row["v"]) for row in deltalake_rows(path)}
    return [found[each] for each in ids]


def matching(spark: SparkSession, path: str) -> Any:
    source = spark.createDataFrame(TWO).alias("s")
    return DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")


def merge(spark: SparkSession, path: str) -> Any:
    return matching(spark, path).whenMatchedUpdateAll()


def test_a_delete_by_a_condition_that_is_certain_is_no_job(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert jobs(spark, lambda: table.delete("id = 7")) == 0
    assert jobs(spark, lambda: table.delete("id = 8")) == 0, "also of a file that has deleted rows"
    assert jobs(spark, lambda: table.delete("id % 50 = 9 AND lower(name) LIKE 'n%'")) == 0
    assert len(deltalake_rows(path)) == 96


def test_rows_are_counted_by_the_log_where_it_says_how_many_they_are(session: SparkSession, path: str) -> None:
    DeltaTable.forPath(session, path).delete("id < 7")
    frame, text = session.read.format("delta").load(path), f"SELECT COUNT(*) AS n FROM delta.`{path}`"
    assert jobs(session, lambda: frame.select("id").alias("a").count()) == 0
    assert frame.count() == frame.where("id < 1000").count() == 93
    assert frame.where("id < 50").count() == 43
    assert jobs(session, lambda: anabranch.sql(session, text).collect()) == 0
    assert anabranch.sql(session, text).collect() == [(93,)]
    assert anabranch.sql(session, f"{text} VERSION AS OF 0").collect() == [(100,)]
    assert anabranch.sql(session, f"{text} WHERE v > 9").collect() == [(0,)]
    assert anabranch.sql(session, f"select count(1) from delta.`{path}` t").columns == ["count(1)"]


def test_of_a_statement_that_breaks_off_no_rows_are_counted(session: SparkSession, path: str) -> None:
    for rest in ("WHERE", "LIMIT", "CROSS", "5"):
        with pytest.raises(errors.SqlSyntaxError):
            anabranch.sql(session, f"SELECT count(*) FROM delta.`{path}` {rest}")


def test_rows_that_are_to_be_kept_are_read_to_be_counted(session: SparkSession, path: str) -> None:
    frame = session.read.format("delta").load(path).cache()
    assert jobs(session, frame.count) > 0
    assert frame.count() == 100
    frame.unpersist()


def test_a_number_of_rows_is_known_to_come_from_its_table(session: SparkSession, path: str) -> None:
    counted = anabranch.sql(session, f"SELECT COUNT(*) AS id FROM delta.`{path}`")
    subprocess.run([sys.executable, "-c", ANOTHER, path], check=True, timeout=PATIENCE)
    with pytest.raises(errors.ConcurrentAppendException):
        counted.selectExpr("id", "'sum' AS name", "0.0D AS v").write.format("delta").mode("append").save(path)


def test_a_delete_by_any_other_condition_is_one_job(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert jobs(spark, lambda: table.delete("shiftright(id % 50, 0) = 7")) == 1
    assert jobs(spark, lambda: table.delete("shiftright(id % 50, 0) = 8")) == 1, "also of a file that has deleted rows"
    assert len(deltalake_rows(path)) == 96


def test_an_update_whose_condition_and_values_are_certain_is_no_job(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert jobs(spark, lambda: table.update("id < 7", {"v": "v + 1", "name": "'x'"})) == 0
    assert jobs(spark, lambda: table.update("id = 3", {"v": "NULL"})) == 0, "also of rows in several files"
    assert jobs(spark, lambda: table.update("id % 50 = 4", {"v": "v + id", "name": "upper(name)"})) == 0
    assert rows(path, 2, 3, 4, 7) == [(2, "x", 1.5), (3, "x", None), (4, "X", 5.5), (7, "n", 0.5)]
    assert jobs(spark, lambda: table.update("id = '7'", {"v": "round(v * 1.01, 2)"})) == 0
    assert rows(path, 7) == [(7, "n", 0.51)]


def test_moments_against_texts_days_and_intervals_are_no_job(spark: SparkSession, path: str) -> None:
    moments = [dt.datetime(2024, 5, day, 12, tzinfo=dt.UTC) for day in (1, 2, 3)]
    data = pa.table({"id": [1, 2, 3], "at": moments, "day": [each.date() for each in moments]})
    anabranch.append(f"{path}-moments", data)
    table = DeltaTable.forPath(spark, f"{path}-moments")
    assert jobs(spark, lambda: table.delete("at >= '2024-05-03' AND day > current_date() - INTERVAL 9 YEARS")) == 0
    values = {"at": "at - INTERVAL 1 DAY", "day": "'2023-01-01'"}
    assert jobs(spark, lambda: table.update("at < DATE '2024-05-02' AND day - 1 < '2024-05-01'", values)) == 0
    assert [tuple(row.values()) for row in sorted(deltalake_rows(f"{path}-moments"), key=lambda row: row["id"])] == [
        (1, moments[0] - dt.timedelta(days=1), dt.date(2023, 1, 1)),
        (2, moments[1], moments[1].date()),
    ]


def test_moments_that_are_moved_by_units_are_no_job(spark: SparkSession, path: str) -> None:
    """Among them one before the first file's day, which the log alone rules out."""
    moments = [dt.datetime(2024, 5, day, 12, tzinfo=dt.UTC) for day in (1, 20)]
    for number, at in enumerate(moments):
        anabranch.append(f"{path}-units", pa.table({"id": [number], "at": [at], "due": [at]}))
    table = DeltaTable.forPath(spark, f"{path}-units")
    old = "at < DATEADD(DAY, -1, to_timestamp('20240511', 'yyyyMMdd'))"
    plan = anabranch.sql(spark, f"EXPLAIN DELETE FROM delta.`{path}-units` WHERE {old}").first()[0]
    assert "WHERE: computed without Spark" in plan
    assert "1 of 2 files" in plan
    values = {"due": "TIMESTAMPADD(MONTH, id, at)"}
    assert jobs(spark, lambda: table.update("DATEDIFF(HOUR, at, TIMESTAMP '2024-05-21 00:00:00') = 12", values)) == 0
    assert jobs(spark, lambda: table.delete(old)) == 0
    (row,) = deltalake_rows(f"{path}-units")
    assert row["due"] == dt.datetime(2024, 6, 20, 12, tzinfo=dt.UTC)
    assert jobs(spark, lambda: table.delete("at < TIMESTAMPADD(HOUR, -3, current_timestamp())")) == 0
    assert deltalake_rows(f"{path}-units") == []


def test_counts_since_the_epoch_are_no_job(spark: SparkSession, path: str) -> None:
    """In a zone whose clocks change too; and a decimal of many digits is multiplied by a double."""
    moments = [dt.datetime(2024, 5, day, 12, tzinfo=dt.UTC) for day in (1, 20)]
    kinds = {"seconds": pa.int64(), "at": pa.timestamp("us", "UTC"), "price": pa.decimal128(18, 2), "off": pa.float64()}
    for at in moments:
        row = {"seconds": int(at.timestamp()), "at": at, "price": Decimal("19.99"), "off": 0.5}
        anabranch.append(f"{path}-epoch", pa.Table.from_pylist([row], pa.schema(kinds)))
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    table = DeltaTable.forPath(spark, f"{path}-epoch")
    old = f"unix_seconds(at) < {int(moments[1].timestamp())}"
    plan = anabranch.sql(spark, f"EXPLAIN DELETE FROM delta.`{path}-epoch` WHERE {old}").first()[0]
    assert "WHERE: computed without Spark" in plan
    assert "1 of 2 files" in plan
    values = {"at": "timestamp_seconds(seconds + 60)", "seconds": "CAST(at AS BIGINT) + 1", "off": "price * off"}
    assert jobs(spark, lambda: table.update("timestamp_seconds(seconds) = at", values)) == 0
    assert jobs(spark, lambda: table.delete(old)) == 0
    spark.conf.set("spark.sql.session.timeZone", zone)
    (row,) = [each for each in deltalake_rows(f"{path}-epoch") if each["at"].day == 20]
    assert (row["at"] - moments[1], row["seconds"]) == (dt.timedelta(minutes=1), int(moments[1].timestamp()) + 1)
    assert row["off"] == 19.99 * 0.5


def test_a_change_of_a_partitioned_table_is_no_job_either(spark: SparkSession, tmp_path: Path) -> None:
    path, source = table_path(tmp_path), table_path(tmp_path)
    by_word = ROWS.append_column("p", pa.array(["it's", None, "b", "a/b"] * 25))
    anabranch.append(path, by_word, partition_by="p")
    anabranch.append(source, TWO.append_column("p", pa.array(["b", "new"])))
    assert jobs(spark, lambda: DeltaTable.forPath(spark, path).update("p = 'a/b' AND id < 9", {"v": "v * 2"})) == 0
    assert jobs(spark, lambda: DeltaTable.forPath(spark, path).update("id % 4 = 1", {"p": "upper(name)"})) == 0
    text = f"MERGE INTO delta.`{path}` t USING delta.`{source}` s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    assert jobs(spark, lambda: anabranch.sql(spark, f"{text} WHEN NOT MATCHED THEN INSERT *")) == 0
    found = {row["id"]: (row["p"], row["v"]) for row in deltalake_rows(path)}
    assert [found[each] for each in (3, 7, 11, 5, 9, 1000)] == [
        *[("a/b", 1.0), ("a/b", 1.0), ("a/b", 0.5)],
        *[("b", 1.0), ("N", 0.5), ("new", 2.0)],
    ]


def test_a_change_of_a_table_that_tracks_its_rows_is_no_job_and_keeps_their_ids(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    tracking, source = "'delta.enableRowTracking' = 'true'", table_path(tmp_path)
    anabranch.append(source, TWO)
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({tracking})")
    before = ids(spark, path)
    assert jobs(spark, lambda: DeltaTable.forPath(spark, path).update("id % 50 = 4", {"v": "v * 2"})) == 0
    text = f"MERGE INTO delta.`{path}` t USING delta.`{source}` s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    text = f"{text} WHEN NOT MATCHED BY SOURCE AND t.id IN (4, 6) THEN UPDATE SET v = 0"
    assert jobs(spark, lambda: anabranch.sql(spark, f"{text} WHEN NOT MATCHED THEN INSERT *")) == 0
    after, last = ids(spark, path), anabranch.history(path)[0]["version"]
    assert {row: after[row][0] for row in before} == {row: id_ for row, (id_, _) in before.items()}
    assert {row: version for row, (_, version) in after.items() if version >= last - 1} == {
        **dict.fromkeys((4, 5, 6, 1000), last),
        54: last - 1,
    }


def test_a_change_of_a_table_with_rules_is_no_job_either(spark: SparkSession, tmp_path: Path) -> None:
    path, source = table_path(tmp_path), table_path(tmp_path)
    builder = DeltaTable.create(spark).location(path).property("delta.constraints.positive", "v > 0")
    builder = builder.addColumn("id", "BIGINT", nullable=False).addColumn("name", "STRING").addColumn("v", "DOUBLE")
    builder.addColumn("big", "STRING", generatedAlwaysAs="upper(name)").execute()
    anabranch.append(path, ROWS, spark=spark)
    anabranch.append(source, TWO)
    table = DeltaTable.forPath(spark, path)
    assert jobs(spark, lambda: table.update("id = 7", {"name": "'x'", "v": "v * 2"})) == 0
    text = f"MERGE INTO delta.`{path}` t USING delta.`{source}` s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    text = f"{text} WHEN NOT MATCHED THEN INSERT (id, name, v) VALUES (s.id, s.name, s.v)"
    assert jobs(spark, lambda: anabranch.sql(spark, text)) == 0
    found = {row["id"]: (row["name"], row["v"], row["big"]) for row in deltalake_rows(path)}
    assert [found[each] for each in (5, 7, 1000)] == [("n", 1.0, "N"), ("x", 1.0, "X"), ("b", 2.0, "B")]
    with pytest.raises(errors.CheckConstraintViolated):
        table.update("id = 8", {"v": "v - 0.5"})
    with pytest.raises(errors.NotNullViolated):
        table.update("id = 8", {"id": "NULL"})
    with pytest.raises(errors.CheckConstraintViolated, match="big <=>"):
        table.update("id = 8", {"big": "'n'"})


def ids(spark: SparkSession, path: str) -> dict[int, tuple[int, int]]:
    """The id and the version of each row, by its number."""
    rows = anabranch.read(path, columns=["id"], row_ids=True, spark=spark).collect()
    return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}


def test_any_other_update_is_one_job(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert jobs(spark, lambda: table.update("id < 7", {"v": "nanvl((v + id) % 1000, 0)"})) == 1
    assert jobs(spark, lambda: table.update("id IN (3, 9) AND shiftright(id % 2, 0) = 1", {"name": "upper(name)"})) == 1
    assert rows(path, 3, 4, 9) == [(3, "N", 3.5), (4, "n", 4.5), (9, "N", 0.5)]


def test_an_update_that_has_to_be_recorded_is_no_job_or_one(spark: SparkSession, path: str) -> None:
    anabranch.sql(spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    table = DeltaTable.forPath(spark, path)
    assert jobs(spark, lambda: table.update("id < 2", {"v": "v + 1"})) == 0
    assert jobs(spark, lambda: table.update("id < 2", {"v": "nanvl(v % 1, 0)"})) == 1
    columns, found = ("id", "v", "_change_type", "_commit_version"), anabranch.changes(path, 2, spark=spark).collect()
    assert sorted(tuple(row[name] for name in columns) for row in found) == [
        (row, value, f"update_{kind}", version)
        for row in (0, 1)
        for value, kind, version in (
            (0.5, "postimage", 3),
            (0.5, "preimage", 2),
            (1.5, "postimage", 2),
            (1.5, "preimage", 3),
        )
    ]


def test_a_merge_of_two_rows_is_one_job(spark: SparkSession, path: str) -> None:
    assert jobs(spark, merge(spark, path).whenNotMatchedInsertAll().execute) == 1
    assert jobs(spark, merge(spark, path).whenNotMatchedInsertAll().execute) == 1, "also of rows in several files"
    assert rows(path, 5, 1000) == [(5, "a", 1.0), (1000, "b", 2.0)]


def test_a_merge_that_computes_what_it_writes_is_one_job_where_spark_is_not_asked(
    spark: SparkSession, path: str
) -> None:
    merges = matching(spark, path)
    assert jobs(spark, merges.whenNotMatchedInsert(values={"id": "s.id", "v": "s.v * 2"}).execute) == 1
    merges = matching(spark, path).whenMatchedUpdate("t.v < s.v", {"v": "t.v + s.v", "name": "upper(t.name)"})
    assert jobs(spark, merges.execute) == 1
    assert rows(path, 5, 1000) == [(5, "N", 1.5), (1000, None, 4.0)]
    merges = matching(spark, path).whenMatchedUpdate(set={"v": "nanvl(s.v % 2, 0)"})
    assert jobs(spark, merges.execute) == 2


def test_a_merge_of_a_small_table_is_no_job(spark: SparkSession, path: str, tmp_path: Path) -> None:
    source = table_path(tmp_path)
    anabranch.append(source, TWO)
    text = f"MERGE INTO delta.`{path}` t USING delta.`{source}` s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    assert jobs(spark, lambda: anabranch.sql(spark, f"{text} WHEN NOT MATCHED THEN INSERT *")) == 0
    assert rows(path, 5, 1000) == [(5, "a", 1.0), (1000, "b", 2.0)]


def test_a_count_costs_no_more_than_a_count_of_its_parquet_files(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 7")
    schema, file = table.toDF().schema, str(next(Path(path).glob("*.parquet")))
    plain = jobs(spark, lambda: spark.read.schema(schema).parquet(file).count())
    assert jobs(spark, lambda: table.toDF().count()) <= plain, "none where the session is installed: the log knows"


def test_an_insert_of_literals_is_no_job(spark: SparkSession, path: str) -> None:
    assert jobs(spark, lambda: anabranch.sql(spark, f"INSERT INTO delta.`{path}` VALUES (200, 'a', 1.5)")) == 0
    assert jobs(spark, lambda: anabranch.sql(spark, f"INSERT INTO delta.`{path}` (id) VALUES (201), (202)")) == 0
    assert rows(path, 200, 201, 202) == [(200, "a", 1.5), (201, None, None), (202, None, None)]
    wide = f"INSERT INTO delta.`{path}` VALUES (203, 'b', 10.25), (5000000000, 'c', 0.5)"
    assert jobs(spark, lambda: anabranch.sql(spark, wide)) == 0, "also of literals of several widths"
    assert rows(path, 203, 5000000000) == [(203, "b", 10.25), (5000000000, "c", 0.5)]


def test_an_insert_of_literals_into_partitions_that_keep_a_rule_is_no_job(spark: SparkSession, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    builder = DeltaTable.create(spark).location(path).property("delta.constraints.positive", "v > 0")
    builder = builder.addColumn("id", "BIGINT", nullable=False).addColumn("name", "STRING").addColumn("v", "DOUBLE")
    builder.partitionedBy("name").execute()
    assert (
        jobs(spark, lambda: anabranch.sql(spark, f"INSERT INTO delta.`{path}` VALUES (1, 'a', 1D), (2, NULL, 2D)")) == 0
    )
    assert rows(path, 1, 2) == [(1, "a", 1.0), (2, None, 2.0)]
    with pytest.raises(errors.CheckConstraintViolated):
        anabranch.sql(spark, f"INSERT INTO delta.`{path}` VALUES (3, 'a', -1D)")


def test_an_append_of_a_dataframe_is_one_job(spark: SparkSession, path: str) -> None:
    two = spark.createDataFrame(TWO)
    anabranch.install(spark)
    assert jobs(spark, lambda: two.write.format("delta").mode("append").save(path)) == 1
