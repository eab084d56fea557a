"""The doors on real Spark: DeltaTable, format("delta"), builders, and what they refuse."""

from __future__ import annotations

import datetime as dt
import shutil
from contextlib import nullcontext
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable, errors
from anabranch._spark.sessions.session import is_connect
from anabranch.testing import at_phase
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of
from tests.support.worlds import World, assert_others_agree

pytestmark = pytest.mark.spark

LEVELS = ("WriteSerializable", "Serializable")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def sql(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


@pytest.fixture(autouse=True)
def every_table_is_left_clean_and_readable_by_others(tmp_path: Path) -> Any:
    yield
    table = tmp_path / "table"
    if not (table / "_delta_log").is_dir():
        return
    report = anabranch.check(table, deep=True)
    assert report.is_clean, str(report)
    assert_others_agree(str(table))


def make(spark: SparkSession, path: str, partition_by: str | None = None, **properties: str) -> DeltaTable:
    rows = [{"id": i, "x": i * 10, "y": i * 10, "p": "ab"[i % 2]} for i in range(6)]
    named = {key.replace("_", ".", 1): value for key, value in properties.items()}
    anabranch.append(path, rows, partition_by=(partition_by,) if partition_by else (), properties=named)
    return DeltaTable.forPath(spark, path)


def values(path: str) -> dict[int, tuple[int, int]]:
    return {row["id"]: (row["x"], row["y"]) for row in deltalake_rows(path)}


def test_write_read_append_and_overwrite(sql: SparkSession, path: str) -> None:
    first = sql.range(3).coalesce(1).withColumn("s", F.lit("a"))
    first.write.format("delta").save(path)
    with pytest.raises(errors.TableAlreadyExists):
        first.write.format("delta").save(path)
    first.write.format("delta").mode("ignore").save(path)
    first.write.format("anabranch").mode("append").save(path)
    assert len(deltalake_rows(path)) == 6
    sql.range(1).withColumn("s", F.lit("b")).write.mode("overwrite").format("delta").save(path)
    assert [row["s"] for row in sql.read.format("delta").load(path).collect()] == ["b"]
    assert len(sql.read.format("delta").option("versionAsOf", 1).load(path).inputFiles()) == 2
    assert len(sql.read.option("versionAsOf", 0).format("delta").load(path).inputFiles()) == 1
    assert len(sql.read.format("delta").load(f"{path}@v0").inputFiles()) == 1


def test_other_formats_go_to_spark_untouched(sql: SparkSession, tmp_path: Path) -> None:
    files = str(tmp_path / "j")
    sql.range(3).write.format("json").mode("append").save(files)
    assert sql.read.format("json").option("multiLine", False).load(files).count() == 3
    assert sql.read.schema("id long").json(files).columns == ["id"]


def test_every_type_survives_a_round_trip(sql: SparkSession, path: str) -> None:
    row = Row(
        b=True,
        i8=1,
        i16=2,
        i32=3,
        i64=4,
        f=1.5,
        d=float("nan"),
        dec=Decimal("12345678901234567890.12"),
        s="é'\"\\ \n",
        bin=bytearray(b"\x00\xff"),
        day=dt.date(1582, 10, 4),
        ts=dt.datetime(2020, 1, 1, 12, 0, 0, 123456),
        ntz=dt.datetime(2020, 1, 1, 12, 0, 0, 654321),
        arr=[1, None],
        m={"k": 1.5},
        st=Row(a=1, b=None),
    )
    ddl = (
        "b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, dec decimal(22,2), s string, "
        "bin binary, day date, ts timestamp, ntz timestamp_ntz, arr array<int>, m map<string,double>, "
        "st struct<a:int,b:string>"
    )
    frame = sql.createDataFrame([row, Row(**dict.fromkeys(row.asDict()))], ddl)
    frame.write.format("delta").save(path)
    assert repr(sorted(map(repr, sql.read.format("delta").load(path).collect()))) == repr(
        sorted(map(repr, frame.collect()))
    )


def test_the_folder_of_a_partition_is_read_as_such(sql: SparkSession, path: str) -> None:
    rows = [dict(zip(("id", "s", "n"), row, strict=True)) for row in [(1, "a/b", 1), (2, "a/b", 2), (3, None, 1)]]
    World(path).create(rows, partition_by=("s", "n"))
    load = sql.read.format("delta").load
    folders = ("s=a%2Fb", "s=a%2Fb/n=2/", "S=__HIVE_DEFAULT_PARTITION__", "n=7")
    found = [load(f"{path}/{folder}").select(F.lit(folder).alias("folder"), "id") for folder in folders]
    assert sorted(map(tuple, reduce(DataFrame.unionAll, found).collect())) == [
        ("S=__HIVE_DEFAULT_PARTITION__", 3),
        *(("s=a%2Fb", 1), ("s=a%2Fb", 2)),
        ("s=a%2Fb/n=2/", 2),
    ]
    with pytest.raises(errors.InvalidOption, match="partitioned by s, n"):
        load(f"{path}/id=1")
    with pytest.raises(errors.NotATable):
        load(f"{path}_none/s=1")


def test_update_and_delete_with_text_and_columns(sql: SparkSession, path: str) -> None:
    table = make(sql, path)
    table.update("id = 1", {"x": "x + y", "y": F.lit(7)})
    table.update(F.col("id") == 2, {"x": F.col("x") * 2})
    table.delete(F.col("id") > 4)
    table.delete("id = 0")
    assert values(path) == {1: (20, 7), 2: (40, 20), 3: (30, 30), 4: (40, 40)}
    history = table.history().collect()
    assert [row["operation"] for row in history] == ["DELETE", "DELETE", "UPDATE", "UPDATE", "WRITE"]
    assert history[0]["operationMetrics"]["numDeletedRows"] == "1"
    assert history[2]["operationMetrics"]["numUpdatedRows"] == "1"
    assert table.history(2).select("version").collect() == [Row(version=4), Row(version=3)]


def test_history_and_detail_have_the_columns_and_types_of_delta_spark(sql: SparkSession, path: str) -> None:
    table = make(sql, path)
    job = "struct<jobId:string,jobName:string,jobRunId:string,runId:string,jobOwnerId:string,triggerType:string>"
    texts, names = "map<string,string>", "array<string>"
    assert [(field.name, field.dataType.simpleString()) for field in table.history().schema] == [
        *[("version", "bigint"), ("timestamp", "timestamp"), ("userId", "string"), ("userName", "string")],
        *[("operation", "string"), ("operationParameters", texts), ("job", job)],
        *[("notebook", "struct<notebookId:string>"), ("clusterId", "string"), ("readVersion", "bigint")],
        *[("isolationLevel", "string"), ("isBlindAppend", "boolean"), ("operationMetrics", texts)],
        *[("userMetadata", "string"), ("engineInfo", "string")],
    ]
    assert [(field.name, field.dataType.simpleString()) for field in table.detail().schema] == [
        *[("format", "string"), ("id", "string"), ("name", "string"), ("description", "string")],
        *[("location", "string"), ("createdAt", "timestamp"), ("lastModified", "timestamp")],
        *[("partitionColumns", names), ("clusteringColumns", names), ("numFiles", "bigint")],
        *[("sizeInBytes", "bigint"), ("properties", texts), ("minReaderVersion", "int")],
        *[("minWriterVersion", "int"), ("tableFeatures", names)],
    ]


@pytest.mark.exhaustive(
    "tests/api/dataframe/test_reading_and_writing.py::test_update_and_delete_with_text_and_columns",
    "tests/spark/writing/test_write.py::test_an_update_may_move_rows_to_other_partitions",
    "tests/spark/writing/test_write.py::test_rewrite_writes_every_live_row_the_marked_ones_changed",
)
@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("partition_by", [None, "p"])
def test_changes_with_and_without_vectors_and_partitions(
    sql: SparkSession, path: str, vectors: str, partition_by: str | None
) -> None:
    table = make(sql, path, partition_by, delta_enableDeletionVectors=vectors)
    table.update("id = 1 OR p = 'a' AND id = 4", {"x": "-x"})
    table.delete("id = 2")
    table.update("id = 5", {"p": "'c'"})
    assert values(path) == {0: (0, 0), 1: (-10, 10), 3: (30, 30), 4: (-40, 40), 5: (50, 50)}
    assert [row["id"] for row in table.toDF().filter("p = 'c'").collect()] == [5]
    assert any(anabranch.files(path)["vector"].to_pylist()) == (vectors == "true")


@pytest.mark.parametrize("level", LEVELS)
def test_different_rows_of_one_file_commute_and_both_land(sql: SparkSession, path: str, level: str) -> None:
    table = make(sql, path, delta_isolationLevel=level)
    with at_phase("staged", lambda: table.delete("id = 1")):
        table.update("id = 2", {"x": "222"})
    with at_phase("staged", lambda: table.update("id = 3", {"x": "333"})):
        table.delete("id = 4")
    assert values(path) == {0: (0, 0), 2: (222, 20), 3: (333, 30), 5: (50, 50)}


@pytest.mark.exhaustive(
    "tests/transaction/test_row_level.py::test_two_deletes_of_one_row_conflict_as_delete_delete",
    "tests/transaction/test_row_level.py::test_changes_of_one_row_conflict_as_delete_read",
    "tests/api/dataframe/test_reading_and_writing.py::test_different_rows_of_one_file_commute_and_both_land",
)
@pytest.mark.parametrize("level", LEVELS)
def test_the_same_row_gives_the_documented_exception(sql: SparkSession, path: str, level: str) -> None:
    table = make(sql, path, delta_isolationLevel=level)
    with pytest.raises(errors.ConcurrentDeleteDeleteException), at_phase("staged", lambda: table.delete("id = 1")):
        table.delete("id = 1")
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: table.update("id = 2", {"x": "1"})),
    ):
        table.update("id = 2", {"y": "1"})


@pytest.mark.exhaustive(
    "tests/transaction/test_row_level.py::test_a_blind_append_of_a_matching_row_does_not_stop_an_update_at_write_serializable",
    "tests/transaction/test_row_level.py::test_a_blind_append_of_a_matching_row_stops_an_update_at_serializable",
)
@pytest.mark.parametrize("level", LEVELS)
def test_a_blind_append_of_a_matching_row(sql: SparkSession, path: str, level: str) -> None:
    table = make(sql, path, delta_isolationLevel=level)

    def attempt() -> None:
        with at_phase("staged", lambda: anabranch.append(path, [{"id": 1, "x": 5, "y": 5, "p": "b"}], spark=sql)):
            table.update("id = 1", {"x": "111"})

    if level == "Serializable":
        with pytest.raises(errors.ConcurrentAppendException):
            attempt()
    else:
        attempt()
        assert sorted(row["x"] for row in table.toDF().filter("id = 1").collect()) == [5, 111]


@pytest.mark.exhaustive("tests/transaction/test_row_level.py::test_write_skew_is_refused")
@pytest.mark.parametrize("level", LEVELS)
def test_write_skew_is_refused(sql: SparkSession, path: str, level: str) -> None:
    table = make(sql, path, delta_isolationLevel=level)
    sql.createDataFrame([(1, 20, 0, "a"), (2, 0, 20, "a")], "id long, x long, y long, p string").coalesce(
        1
    ).write.format("delta").mode("overwrite").save(path)
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: table.update("y > 10", {"x": "15"})),
    ):
        table.update("x > 10", {"y": "15"})


@pytest.mark.exhaustive(
    "tests/transaction/test_row_level.py::test_a_row_moved_into_my_condition_is_refused",
    "tests/transaction/test_row_level.py::test_a_row_moved_out_of_my_condition_is_accepted_when_i_did_not_mark_it",
)
@pytest.mark.parametrize("level", LEVELS)
def test_rows_moved_into_my_condition_are_refused_and_rows_moved_out_accepted(
    sql: SparkSession, path: str, level: str
) -> None:
    table = make(sql, path, delta_isolationLevel=level)
    with (
        pytest.raises(errors.ConcurrentAppendException),
        at_phase("staged", lambda: table.update("id = 5", {"x": "10"})),
    ):
        table.update("x = 10", {"y": "1"})
    with at_phase("staged", lambda: table.update("id = 4", {"x": "999"})):
        table.update("x <= 20", {"y": "1"})
    assert values(path)[4] == (999, 40)


def test_a_redo_on_rows_of_a_blind_append(sql: SparkSession, path: str) -> None:
    table = make(sql, path)

    def winners() -> None:
        anabranch.append(path, [{"id": 1, "x": 5, "y": 5, "p": "b"}], spark=sql)
        table.update("id = 4", {"x": "444"})

    with at_phase("staged", winners):
        table.update("id = 1", {"x": "111"})
    assert [row["x"] for row in deltalake_rows(path) if row["id"] == 1] == [111, 111]


@pytest.mark.exhaustive(
    "tests/transaction/test_row_level.py::test_three_writers_on_one_file_all_land",
    "tests/api/dataframe/test_reading_and_writing.py::test_different_rows_of_one_file_commute_and_both_land",
)
def test_three_writers_on_one_file_all_land(sql: SparkSession, path: str) -> None:
    table = make(sql, path)

    def second() -> None:
        with at_phase("staged", lambda: table.update("id = 3", {"x": "333"})):
            table.delete("id = 2")

    with at_phase("staged", second):
        table.update("id = 1", {"x": "111"})
    assert values(path) == {0: (0, 0), 1: (111, 10), 3: (333, 30), 4: (40, 40), 5: (50, 50)}


def test_file_mode_refuses_what_row_mode_accepts(sql: SparkSession, path: str) -> None:
    table = make(sql, path, anabranch_conflictResolution="file")
    with pytest.raises(errors.ConcurrentDeleteReadException), at_phase("staged", lambda: table.delete("id = 1")):
        table.delete("id = 2")


@pytest.mark.exhaustive(
    "tests/transaction/test_file_level.py::test_explicit_partition_predicates_avoid_the_conflict",
    "tests/api/dataframe/test_reading_and_writing.py::test_file_mode_refuses_what_row_mode_accepts",
)
def test_file_mode_accepts_disjoint_partitions(sql: SparkSession, path: str) -> None:
    table = make(sql, path, "p", anabranch_conflictResolution="file")
    with at_phase("staged", lambda: table.delete("p = 'a' AND id = 2")):
        table.update("p = 'b' AND id = 3", {"x": "33"})
    assert values(path)[3] == (33, 30)


def test_a_condition_that_hangs_on_more_than_its_row_goes_by_file_rules(sql: SparkSession, path: str) -> None:
    table = make(sql, path)
    with (
        pytest.raises(errors.DeltaConcurrentModificationException) as refused,
        at_phase("staged", lambda: table.update("id = 1", {"x": "1"})),
    ):
        table.update("id = 2 AND current_user() <> ''", {"x": "2"})
    assert refused.value.sub_condition == "PREDICATES_NEED_REWRITE"


def test_a_function_is_trusted_only_while_it_is_sparks_own(sql: SparkSession, path: str) -> None:
    """Up to Spark 4.2 a registered function goes before Spark's own of that name: then nothing is row-local."""
    own = anabranch.install(sql.newSession())  # Spark 4.0 drops no function with the name of one of its own
    table = make(own, path)
    own.udf.register("abs", lambda value: value, "long")
    is_shadowed = own.range(1).select(F.expr("abs(id - 5L)")).first()[0] != 5
    expected = pytest.raises(errors.DeltaConcurrentModificationException) if is_shadowed else nullcontext()
    with expected, at_phase("staged", lambda: table.update("id = 1", {"x": "1"})):
        table.delete("abs(id) = 2")


def test_a_dataframe_is_pinned_to_its_version(sql: SparkSession, path: str) -> None:
    table = make(sql, path)
    pinned = table.toDF()
    table.delete("id < 3")
    assert (pinned.count(), len(deltalake_rows(path))) == (6, 3)


def test_read_skips_files_and_filters_rows(sql: SparkSession, path: str) -> None:
    make(sql, path, "p")
    frame = anabranch.read(path, where="p = 'a' AND id >= 2", columns=["x"], spark=sql)
    assert sorted(row["x"] for row in frame.collect()) == [20, 40]
    assert len(frame.inputFiles()) == 1


def test_detail_and_is_delta_table(sql: SparkSession, path: str, tmp_path: Path) -> None:
    table = make(sql, path, "p")
    (row,) = table.detail().collect()
    assert (row["format"], row["partitionColumns"], row["numFiles"]) == ("delta", ["p"], 2)
    assert DeltaTable.isDeltaTable(sql, path)
    assert not DeltaTable.isDeltaTable(sql, str(tmp_path))


def test_a_builder_creates_a_table_with_not_null_and_comments(sql: SparkSession, path: str) -> None:
    builder = DeltaTable.create(sql).location(path).comment("people").property("delta.appendOnly", "true")
    table = builder.addColumn("id", "BIGINT", nullable=False).addColumn("name", "STRING", comment="full name").execute()
    with pytest.raises(errors.NotNullViolated):
        sql.sql("SELECT CAST(NULL AS BIGINT) AS id, 'x' AS name").write.format("delta").mode("append").save(path)
    anabranch.append(path, [{"id": 1, "name": "x"}])
    with pytest.raises(errors.AppendOnlyTable):
        table.delete()
    with pytest.raises(errors.TableAlreadyExists):
        builder.execute()
    assert DeltaTable.createIfNotExists(sql).location(path).addColumn("id", "INT").execute().toDF().columns == [
        *("id", "name")
    ]
    assert table.toDF().schema["name"].metadata["comment"] == "full name"


BAD = {
    "unknown column": (lambda t: t.delete("nope = 1"), errors.InvalidCondition),
    "no boolean": (lambda t: t.delete("id + 1"), errors.InvalidCondition),
    "does not parse": (lambda t: t.delete("id = = 1"), errors.InvalidCondition),
    "wrong type": (lambda t: t.update("id = 1", {"x": "'abc'"}), errors.AnabranchError),
    "unknown assignment": (lambda t: t.update("id = 1", {"nope": "1"}), errors.UnknownColumn),
    "subquery in a value": (lambda t: t.update("id = 1", {"x": "(SELECT 1)"}), errors.NotBuilt),
    "subquery of nothing": (lambda t: t.delete("id IN (SELECT a FROM nowhere)"), errors.InvalidCondition),
    "not a condition": (lambda t: t.delete(5), errors.InvalidOption),
    "no assignments": (lambda t: t.update("id = 1", {}), errors.InvalidOption),
    "fails on a row": (lambda t: t.delete("1 / (id - id) > 0"), errors.ExecutionFailed),
    "merge": (lambda t: t.merge(None, "a = b"), errors.InvalidOption),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_input_gives_one_typed_error_and_writes_nothing(sql: SparkSession, path: str, case: Any) -> None:
    table = make(sql, path)
    run, expected = case
    with pytest.raises(expected) as refused:
        run(table)
    assert "at org.apache" not in str(refused.value)
    assert len(table.history().collect()) == 1
    assert not list(Path(path).glob("job-*/_started_*"))


def test_bad_writes_are_refused_before_anything_is_visible(sql: SparkSession, path: str, tmp_path: Path) -> None:
    table = make(sql, path)
    with pytest.raises(errors.SchemaMismatch, match="extra"):
        sql.createDataFrame([(1, 2)], "id long, extra long").write.format("delta").mode("append").save(path)
    with pytest.raises(errors.SchemaMismatch, match="bigint"):
        sql.createDataFrame([("a",)], "id string").write.format("delta").mode("append").save(path)
    with pytest.raises(errors.InvalidOption):
        sql.range(1).write.format("delta").mode("append").partitionBy("id").save(path)
    with pytest.raises(errors.InvalidOption, match="OPTIMIZE and REORG"):
        sql.range(1).write.format("delta").mode("append").option("dataChange", False).save(path)
    with pytest.raises(errors.InvalidProperty):
        sql.range(1).write.format("delta").option("delta.noSuchThing", "1").save(str(tmp_path / "other"))
    with pytest.raises(errors.NotATable):
        DeltaTable.forPath(sql, str(tmp_path / "nothing"))
    with pytest.raises(errors.VersionNotFound):
        sql.read.format("delta").option("versionAsOf", 9).load(path)
    assert len(table.history().collect()) == 1


def test_a_surplus_column_is_told_the_options_that_its_mode_takes(sql: SparkSession, path: str) -> None:
    make(sql, path, "p")
    more = sql.createDataFrame([(1, 1, 1, "a", 5)], "id long, x long, y long, p string, more int")
    adds, replaces = "mergeSchema = true adds it", "overwriteSchema = true replaces the table's columns"

    def refused(mode: str, **options: str) -> str:
        with pytest.raises(errors.SchemaMismatch) as mismatch:
            more.write.format("delta").mode(mode).options(**options).save(path)
        return mismatch.value.message

    overwritten = refused("overwrite")
    assert adds in overwritten
    assert replaces in overwritten
    keeping = {"replaceWhere": "p = 'a'"}, {"partitionOverwriteMode": "dynamic"}
    for message in (refused("append"), *(refused("overwrite", **options) for options in keeping)):
        assert adds in message
        assert replaces not in message
        assert message.endswith("The table has id, x, y, p, the rows have id, x, y, p, more.")
    more.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    assert sql.read.format("delta").load(path).columns[-1] == "more"


def test_a_folder_that_cannot_be_written_gives_a_typed_error_and_the_session_goes_on(
    sql: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(errors.StoreError):
        sql.range(1).write.format("delta").save(str(tmp_path / "file" / "table"))
    with pytest.raises(errors.StoreError):
        anabranch.append(str(tmp_path / "file" / "table"), [{"id": 1}], spark=sql)
    assert sql.range(1).count() == 1


def test_a_table_that_another_engine_corrupted_is_refused_by_the_files_name(
    sql: SparkSession, path: str, tmp_path: Path
) -> None:
    make(sql, path)
    broken = tmp_path / "broken"
    shutil.copytree(path, broken)
    (broken / "_delta_log" / "00000000000000000001.json").write_text("")
    with pytest.raises(errors.CorruptLog, match=r"00000000000000000001\.json"):
        DeltaTable.forPath(sql, str(broken))
    with pytest.raises(errors.CorruptLog):
        anabranch.append(str(broken), [{"id": 1, "x": 1, "y": 1, "p": "a"}], spark=sql)


def test_rows_that_were_read_from_the_table_are_found_wherever_they_hide(sql: SparkSession, path: str) -> None:
    """A subquery names no input file, and a cached frame neither; both would be taken for constants."""
    table = make(sql, path)
    table.toDF().createOrReplaceTempView("own")
    subquery = sql.sql("SELECT 9L AS id, (SELECT sum(x) FROM own) AS x, 0L AS y, 'a' AS p")
    cached = table.toDF().cache()
    try:
        hidden = [subquery, cached, cached.filter("id > 1").withColumn("x", F.lit(1).cast("long"))]
        for n, rows in enumerate(few_of(hidden, 2)):
            changed = at_phase("staged", lambda n=n: World(path).update("id = 1", x=100 + n))
            with pytest.raises(errors.ConcurrentAppendException), changed:
                rows.write.format("delta").mode("append").save(path)
    finally:
        cached.unpersist()
        sql.catalog.dropTempView("own")


def test_what_an_update_sets_may_depend_on_its_own_row_only(sql: SparkSession, path: str) -> None:
    table = make(sql, path)
    table.toDF().createOrReplaceTempView("own")
    try:
        for value in (
            "(SELECT sum(x) FROM own)",
            "sum(x) OVER (PARTITION BY p)",
            F.sum("x").over(Window.partitionBy("p")),
        ):
            is_unread = is_connect(sql) and not isinstance(value, str)  # there a Column shows no window
            with pytest.raises(errors.InvalidCondition if is_unread else errors.NotBuilt):
                table.update("id = 1", {"x": value})
    finally:
        sql.catalog.dropTempView("own")


def test_not_like_keeps_the_files_that_hold_its_rows(sql: SparkSession, path: str) -> None:
    make(sql, path, "p")
    assert anabranch.read(path, where="p NOT LIKE 'a%'", spark=sql).count() == 3
    DeltaTable.forPath(sql, path).delete("p NOT LIKE 'a%'")
    assert {row["p"] for row in deltalake_rows(path)} == {"a"}


@pytest.mark.exhaustive(
    "tests/commands/dml/test_insert.py::test_a_creation_that_lost_its_race_is_told_unless_it_only_appends",
)
def test_several_writers_of_one_empty_path(sql: SparkSession, path: str) -> None:
    rows = sql.range(2)
    with (
        pytest.raises(errors.ProtocolChangedException),
        at_phase("staged", lambda: sql.range(1).write.format("delta").save(path)),
    ):
        rows.write.format("delta").save(path)
    assert sql.read.format("delta").load(path).count() == 1


@pytest.mark.exhaustive(
    "tests/commands/dml/test_insert.py::test_a_bulk_append_that_lost_the_race_to_create_lands_in_a_new_folder",
)
def test_an_append_that_loses_the_creation_race_lands(sql: SparkSession, path: str) -> None:
    with at_phase("staged", lambda: sql.range(1).write.format("delta").save(path)):
        sql.range(2).write.format("delta").mode("append").save(path)
    assert sql.read.format("delta").load(path).count() == 3


def test_a_writer_that_writes_again_has_the_same_options(sql: SparkSession, path: str) -> None:
    make(sql, path)
    rows = sql.sql("SELECT 1L AS id, 7L AS x, 7L AS y, 'b' AS p")
    writer = (
        rows.write.format("delta").mode("overwrite").option("replaceWhere", "id = 1").option("userMetadata", "mine")
    )
    for _ in range(2):
        writer.save(path)
    writer.insertInto(f"delta.`{path}`", overwrite=True)
    writer.saveAsTable(f"delta.`{path}`")
    assert values(path) == {id: (7, 7) if id == 1 else (id * 10, id * 10) for id in range(6)}
    assert [each["userMetadata"] for each in anabranch.history(path, 4)] == ["mine"] * 4
