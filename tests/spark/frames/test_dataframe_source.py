"""Which version of a table a DataFrame comes from is found through all that is done to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch._log.positions import SOME_VERSION, LogPosition, SourceVersions
from anabranch._spark.frames.dataframe_source import source_versions
from anabranch._transaction.own_commits import another_program
from anabranch.commands.opening import open_log
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of
from tests.support.worlds import table_path

pytestmark = pytest.mark.spark


@pytest.fixture
def path(tmp_path: Path) -> str:
    location = table_path(tmp_path)
    anabranch.append(location, [{"id": i, "x": i * 10} for i in range(4)])
    anabranch.append(location, [{"id": 9, "x": 90}])
    return location


@pytest.fixture(autouse=True)
def installed(spark: SparkSession) -> None:
    anabranch.install(spark)


def read(rows: DataFrame, path: str) -> int | None:
    snapshot = open_log(path).snapshot()
    found = source_versions(rows, snapshot.table, snapshot.metadata.id)
    return None if found is None else found.oldest


SHAPES: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "a handle": lambda spark, path: DeltaTable.forPath(spark, path).toDF(),
    "a reader": lambda spark, path: spark.read.format("delta").load(path),
    "a query with a condition": lambda spark, path: anabranch.read(path, where="id > 2", spark=spark),
    "an aggregate under another name": lambda spark, path: (
        anabranch.read(path, spark=spark).alias("s").groupBy("id").agg(F.sum("x").alias("x"))
    ),
    "a join": lambda spark, path: spark.range(5).join(anabranch.read(path, spark=spark), "id"),
    "a cached frame": lambda spark, path: anabranch.read(path, spark=spark).cache(),
    "a view": lambda spark, path: view(spark, anabranch.read(path, spark=spark)),
    "a subquery": lambda spark, path: subquery(spark, anabranch.read(path, spark=spark)),
}


def view(spark: SparkSession, rows: DataFrame) -> DataFrame:
    rows.createOrReplaceTempView("origin_of_rows")
    return spark.table("origin_of_rows")


def subquery(spark: SparkSession, rows: DataFrame) -> DataFrame:
    rows.createOrReplaceTempView("origin_of_rows")
    return spark.sql("SELECT id, (SELECT max(x) FROM origin_of_rows) AS x FROM range(3)")


@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_version_is_found_in(spark: SparkSession, path: str, shape: str) -> None:
    rows = SHAPES[shape](spark, path)
    anabranch.append(path, [{"id": 10, "x": 100}])
    assert read(rows, path) == 1


def test_each_version_is_found_with_the_mark_of_its_commit(spark: SparkSession, path: str) -> None:
    first = anabranch.read(path, spark=spark)
    anabranch.append(path, [{"id": 10, "x": 100}])
    rows = first.union(anabranch.read(path, spark=spark)).localCheckpoint()
    snapshot = open_log(path).snapshot()
    found = source_versions(rows, snapshot.table, snapshot.metadata.id)
    marks = {version: LogPosition.snapshot(open_log(path).snapshot(version)).mark for version in (1, 2)}
    assert found == SourceVersions(1, frozenset(marks.items()))


HIDES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a checkpoint": lambda rows: rows.checkpoint(),
    "one that is yet to be made": lambda rows: rows.localCheckpoint(eager=False),
    "one of another": lambda rows: rows.localCheckpoint().where("id > 0").localCheckpoint().cache(),
    "one in a view": lambda rows: view(rows.sparkSession, rows.localCheckpoint()),
}


@pytest.mark.classic("a folder for checkpoints is set on the driver")
@pytest.mark.parametrize("how", list(HIDES))
def test_what_hides_its_plan_still_says_which_version_it_reads(
    spark: SparkSession, path: str, tmp_path: Path, how: str
) -> None:
    spark.sparkContext.setCheckpointDir(str(tmp_path / "checkpoints"))
    hide, raw = HIDES[how], spark.read.parquet(files_of(path))
    found = {shape: hide(SHAPES[shape](spark, path)) for shape in few_of([*SHAPES], 3)}
    asked = hide(anabranch.read(path, version=0, spark=spark).select("id", "x"))
    anabranch.append(path, [{"id": 10, "x": 100}])
    assert {shape: read(rows, path) for shape, rows in found.items()} == dict.fromkeys(found, 1)
    assert read(asked, path) is None
    assert read(hide(spark.range(3)), path) is None
    subquery_of_files = spark.sql(f"SELECT (SELECT max(id) FROM parquet.`{files_of(path)}`) AS id")
    for rows in few_of([asked.union(raw), raw, subquery_of_files], 2):
        with pytest.raises(errors.UnknownSourceVersion):
            read(hide(rows), path)


@pytest.mark.parametrize(
    "setting",
    [("spark.sql.maxPlanStringLength", "200"), ("spark.sql.redaction.string.regex", "anabranch_[0-9a-f]{16}")],
    ids=["cut", "masked"],
)
def test_a_plan_that_the_session_cuts_or_masks_is_no_plan_without_a_read(
    spark: SparkSession, path: str, setting: tuple[str, str]
) -> None:
    rows = subquery(spark, anabranch.read(path, spark=spark))
    sessions = (spark, SparkSession.getActiveSession() or spark)  # Spark explains by the settings of the active one
    for session in sessions:
        session.conf.set(*setting)
    try:
        with pytest.raises(errors.UnknownSourceVersion):
            read(rows, path)
        hidden = rows.localCheckpoint()
    finally:
        for session in sessions:
            session.conf.unset(setting[0])
    with pytest.raises(errors.UnknownSourceVersion):
        read(hidden, path)
    assert read(rows, path) == 1


def test_of_several_versions_the_oldest_counts(spark: SparkSession, path: str) -> None:
    older = anabranch.read(path, spark=spark)
    anabranch.append(path, [{"id": 10, "x": 100}])
    assert read(anabranch.read(path, spark=spark).union(older), path) == 1


ASKED: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "a number": lambda spark, path: anabranch.read(path, version=0, spark=spark),
    "a moment": lambda spark, path: anabranch.read(
        path, timestamp=anabranch.history(path)[0]["timestamp"], spark=spark
    ),
    "a reader": lambda spark, path: spark.read.format("delta").option("versionAsOf", 0).load(path),
    "a path": lambda spark, path: spark.read.format("delta").load(f"{path}@v0"),
    "a query": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 0"),
    "a subquery": lambda spark, path: subquery(spark, anabranch.read(path, version=0, spark=spark)),
    "a cached frame": lambda spark, path: anabranch.read(path, version=0, spark=spark).cache(),
    "a join with files": lambda spark, path: anabranch.read(path, version=0, spark=spark).join(
        files_beside(spark, path), "id", "left"
    ),
}


def files_beside(spark: SparkSession, path: str) -> DataFrame:
    spark.range(3).write.mode("overwrite").parquet(f"{path}_beside")
    return spark.read.parquet(f"{path}_beside")


@pytest.mark.parametrize("way", list(ASKED))
def test_a_version_that_was_asked_for_is_the_same_whatever_is_committed(
    spark: SparkSession, path: str, way: str
) -> None:
    rows = ASKED[way](spark, path)
    assert read(rows, path) is None
    assert read(rows.union(anabranch.read(path, spark=spark)), path) == 1
    DeltaTable.forPath(spark, path).delete("id < 3")
    rows.select("id", "x").write.format("delta").mode("append").save(path)
    assert anabranch.history(path)[0]["isBlindAppend"] is True


def test_files_of_the_table_beside_a_version_that_was_asked_for_are_of_no_known_version(
    spark: SparkSession, path: str
) -> None:
    asked = anabranch.read(path, version=0, spark=spark)
    with pytest.raises(errors.UnknownSourceVersion):
        read(asked.union(spark.read.parquet(path)), path)


@pytest.mark.parametrize("width", [2, 30])
def test_a_scan_that_may_be_of_the_tables_own_files_is_not_excused_by_a_version_that_was_asked_for(
    spark: SparkSession, tmp_path: Path, width: int
) -> None:
    """Spark prints 25 columns of a scan, and none of one that only counts."""
    path = table_path(tmp_path)
    anabranch.append(path, [{"id": 1, **{f"c{i}": i for i in range(width)}}])
    asked, raw = anabranch.read(path, version=0, spark=spark), spark.read.parquet(files_of(path))
    counted = asked.crossJoin(raw.groupBy().count())
    for rows in ([asked.union(raw)] if width > 2 else []) + [counted]:
        with pytest.raises(errors.UnknownSourceVersion):
            read(rows, path)
    assert read(asked, path) is None


@pytest.mark.exhaustive(
    "tests/spark/frames/test_dataframe_source.py::test_a_version_that_was_asked_for_is_the_same_whatever_is_committed",
)
def test_rows_are_brought_back_from_an_older_version(spark: SparkSession, path: str) -> None:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 2")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}` VERSION AS OF 0 WHERE id = 0")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT * FROM delta.`{path}` VERSION AS OF 1) s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"UPDATE delta.`{path}` SET x = -1 WHERE id NOT IN (SELECT id FROM delta.`{path}` VERSION AS OF 0)")
    assert sorted(anabranch.read(path, spark=spark).collect()) == [(0, 0), (1, 10), (2, 20), (3, 30), (9, -1)]
    spark.sql(f"INSERT OVERWRITE delta.`{path}` SELECT * FROM delta.`{path}` VERSION AS OF 0")
    assert anabranch.read(path, spark=spark).count() == 4


def test_other_rows_come_from_nowhere(spark: SparkSession, path: str, tmp_path: Path) -> None:
    other = table_path(tmp_path)
    anabranch.append(other, [{"id": 1, "x": 1}])
    collected = spark.createDataFrame(anabranch.read(path, spark=spark).collect(), "id long, x long")
    for rows in (spark.range(3), anabranch.read(other, spark=spark), collected):
        assert read(rows, path) is None


def test_files_read_past_the_log_are_of_no_known_version(spark: SparkSession, path: str) -> None:
    raw = spark.read.parquet(path)
    with pytest.raises(errors.UnknownSourceVersion):
        raw.write.format("delta").mode("append").save(path)
    raw.write.format("delta").mode("append").option("readsTarget", "true").save(path)
    assert len(deltalake_rows(path)) == 10


def test_an_overwrite_by_what_was_read_keeps_what_it_read(spark: SparkSession, path: str) -> None:
    rows = anabranch.read(path, spark=spark).filter("id > 1").withColumn("x", F.col("x") + 1)
    rows.write.format("delta").mode("overwrite").save(path)
    assert deltalake_rows(path) == [{"id": 2, "x": 21}, {"id": 3, "x": 31}, {"id": 9, "x": 91}]


def test_an_overwrite_of_an_older_version_is_a_conflict(spark: SparkSession, path: str) -> None:
    rows = anabranch.read(path, spark=spark)
    with another_program():
        DeltaTable.forPath(spark, path).delete("id = 0")
    with pytest.raises(errors.ConcurrentDeleteReadException) as error:
        rows.write.format("delta").mode("overwrite").save(path)
    assert error.value.facts["sub_condition"] in ("WHOLE_TABLE_READ", "EMPTY_READ_PREDICATES")


def test_a_merge_of_a_table_with_itself(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    source = table.toDF().filter("id < 2").withColumn("x", F.col("x") + 5).alias("s")
    table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().execute()
    assert deltalake_rows(path)[:2] == [{"id": 0, "x": 5}, {"id": 1, "x": 15}]
    with another_program():
        table.update("id = 9", {"x": "92"})
    with pytest.raises(errors.ConcurrentAppendException):  # the source is of a version before
        table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().execute()


def test_a_merge_whose_source_hides_its_origin_can_say_it(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    total = table.toDF().agg(F.sum("x")).first()[0]
    source = spark.createDataFrame(pa.table({"id": [100], "x": [total]})).alias("s")
    with another_program():
        table.delete("id = 9")
    with pytest.raises(errors.ConcurrentDeleteReadException):
        table.alias("t").merge(source, "t.id = s.id", reads_target=1).whenNotMatchedInsertAll().execute()
    table.alias("t").merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert len(deltalake_rows(path)) == 5


def test_a_table_is_known_by_whatever_name_its_folder_has(spark: SparkSession, path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    by_link = spark.read.format("delta").load(str(tmp_path / "link"))
    assert read(by_link, path) == 1
    with pytest.raises(errors.UnknownSourceVersion):
        read(spark.read.parquet(str(tmp_path / "link")), path)


def test_a_table_that_was_made_again_is_another_one(spark: SparkSession, path: str) -> None:
    rows = anabranch.read(path, spark=spark).cache()
    rows.count()
    shutil.rmtree(path)
    rows.write.format("delta").save(path)
    assert len(deltalake_rows(path)) == 5


def test_a_plan_that_spark_did_not_tell_is_no_plan_without_a_read(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = anabranch.read(path, spark=spark)
    monkeypatch.setattr("anabranch._spark.frames.dataframe_source.printed_plan", lambda rows: "")
    with pytest.raises(errors.UnknownSourceVersion):
        read(rows, path)


def test_a_frame_is_not_taken_for_rows_at_hand(spark: SparkSession, path: str) -> None:
    with pytest.raises(errors.InvalidOption, match=r"df\.write"):
        anabranch.append(path, anabranch.read(path, spark=spark), spark=spark)


def files_of(path: str) -> str:
    """The folder of a table's data files, as Spark reads it by itself."""
    return str(next(iter(sorted(Path(path.removeprefix("file://")).rglob("*.parquet")))).parent)


HIDING: dict[str, str] = {
    "a scalar subquery": "SELECT (SELECT max(id) FROM parquet.`@`) AS id, 1 AS x",
    "a condition": "SELECT id, 1 AS x FROM range(9) WHERE id IN (SELECT id FROM parquet.`@`)",
    "a CTE in a subquery": "WITH c AS (SELECT * FROM parquet.`@`) SELECT (SELECT count(*) FROM c) AS id, 1 AS x",
    "a view in a subquery": "SELECT (SELECT max(id) FROM raw_view) AS id, 1 AS x",
    "a cached frame": "SELECT id, 1 AS x FROM raw_cached",
    "bytes": "SELECT (SELECT count(*) FROM binaryFile.`@`) AS id, 1 AS x",
    "texts": "SELECT (SELECT count(*) FROM text.`@`) AS id, 1 AS x",
    "the log": "SELECT (SELECT count(*) FROM json.`@/_delta_log/*.json`) AS id, 1 AS x",
    "beside rows of ours": "SELECT id, (SELECT max(id) FROM parquet.`@`) AS x FROM delta.`@`",
}


def test_files_of_the_table_are_found_where_spark_does_not_name_them(spark: SparkSession, path: str) -> None:
    raw = spark.read.parquet(files_of(path))
    raw.createOrReplaceTempView("raw_view")
    raw.cache().createOrReplaceTempView("raw_cached")
    try:
        for how, text in few_of([*HIDING.items()], 5):
            rows = spark.sql(text.replace("@", path.removeprefix("file://")))
            with pytest.raises(errors.UnknownSourceVersion):
                pytest.fail(f"{how}: {read(rows, path)}")
    finally:
        raw.unpersist()


def test_what_may_be_the_tables_counts_as_read_and_what_cannot_be_does_not(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    other, elsewhere = table_path(tmp_path), str(tmp_path / "elsewhere")
    anabranch.append(other, [{"id": 1, "x": 1}])
    anabranch.append(other, [{"id": 2, "x": 1}])
    for folder in (elsewhere, f"{elsewhere}2"):
        Path(folder).mkdir()
        pq.write_table(pa.table({"id": [0, 1]}), f"{folder}/a.parquet")
    spark.read.parquet(elsewhere, files_of(path)).createOrReplaceTempView("raw_view")
    may = "SELECT (SELECT max(id) FROM raw_view) AS id"
    assert read(spark.sql(may), path) == SOME_VERSION
    with pytest.raises(errors.UnknownSourceVersion):  # a scan that shows no column may be either
        read(spark.sql(f"{may} FROM delta.`{path}` VERSION AS OF 0"), path)
    assert read(spark.sql(f"{may} FROM delta.`{path}`"), path) == 1
    for text in (
        f"SELECT (SELECT max(id) FROM parquet.`{elsewhere}`) AS id",
        f"SELECT (SELECT max(x) FROM delta.`{other}`) AS id FROM parquet.`{elsewhere}`",
        f"SELECT id FROM parquet.`{elsewhere}*` WHERE id IN (SELECT id FROM parquet.`{elsewhere}`)",
    ):
        assert read(spark.sql(text), path) is None
