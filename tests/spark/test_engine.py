"""The engine as commands see it, and sessions as users get them."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch._protocol.settings import MERGES_SCHEMA
from anabranch._spark.columns.types import parse_type, schema_of, spark_schema
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions import session
from anabranch._spark.writing import relocating
from anabranch._storage.store_settings import call_options
from anabranch.errors import InvalidCondition, InvalidOption, InvalidSchema, MissingJava, UnsupportedType
from tests.spark.tables import condition, numbered


@pytest.mark.spark
def test_the_engine_gives_rows_by_condition_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    files, engine = numbered(tmp_path, {"a.parquet": 5}, {"a.parquet": [0]}), SparkEngine(spark)
    assert engine.to_df(files).count() == 4
    rows = engine.to_df(files, condition("id > 2"), ["S"])
    assert [row.asDict() for row in rows.collect()] == [{"s": "3"}, {"s": "4"}]
    with pytest.raises(InvalidCondition):
        engine.to_df(files, condition("nope"))


@pytest.mark.spark
def test_the_engine_writes_arrow_tables_and_describes_them(spark: SparkSession, tmp_path: Path) -> None:
    engine, table = (
        SparkEngine(spark),
        pa.table({"id": pa.array([1], pa.uint8()), "d": pa.array(["x"]).dictionary_encode()}),
    )
    schema = Struct((Field("id", "short"), Field("d", "string")))
    assert engine.describe(table) == schema
    engine.write(table, schema, (), f"file://{tmp_path}", "job")
    assert [tuple(row) for row in spark.read.parquet(f"{tmp_path}/job").collect()] == [(1, "x")]


@pytest.mark.spark
def test_a_time_without_zone_comes_from_arrow_as_it_is(spark: SparkSession) -> None:
    import datetime as dt

    moment = dt.datetime(2024, 3, 31, 2, 30)
    rows = SparkEngine(spark).rows(
        pa.table({"n": pa.array([moment], pa.timestamp("ns")), "z": pa.array([moment], pa.timestamp("s", "UTC"))})
    )
    assert rows.dtypes == [("n", "timestamp_ntz"), ("z", "timestamp")]
    assert rows.selectExpr("cast(n as string)").first() == ("2024-03-31 02:30:00",)


@pytest.mark.spark
@pytest.mark.classic("Spark Connect has no job groups")
def test_what_is_laid_out_at_once_runs_under_the_settings_and_the_job_group_of_the_call(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition has a thread of its own: without the settings it could not reach a bucket that was opened by them,
    and without the group a cancelled command would go on.
    """
    table = pa.table({"v": [float("nan")] * 4, "p": ["a", "b"] * 2})  # left to Spark
    anabranch.append(tmp_path, table, partition_by=["p"], spark=spark)
    conf, said = {"fs.s3a.connection.timeout": "5000"}, list[tuple[str, dict[str, str], str | None]]()
    real = relocating.cluster

    def watched(*given_to_it: Any) -> None:
        group = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
        said.append((threading.current_thread().name, call_options(), group))
        real(*given_to_it)

    monkeypatch.setattr(relocating, "cluster", watched)
    spark.sparkContext.setJobGroup("nightly", "OPTIMIZE")
    try:
        DeltaTable.forPath(spark, str(tmp_path), conf).optimize().executeZOrderBy("v")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert [each[1:] for each in said] == [(conf, "nightly")] * 2
    assert threading.current_thread().name not in {name for name, _, _ in said}


@pytest.mark.spark
def test_the_engine_knows_what_values_depend_on(spark: SparkSession) -> None:
    assert SparkEngine(spark).settings() == {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.legacy.literal.pickMinimumPrecision": "true",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
    }
    assert SparkEngine(spark).user()


@pytest.mark.spark
def test_a_name_that_a_user_registered_is_not_sparks_own(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    spark.udf.register("anabranch_test_udf", lambda x: x)
    assert engine.are_builtin(["abs", "coalesce", "current_date"])
    assert not engine.are_builtin(["abs", "anabranch_test_udf"])
    assert not engine.are_builtin(["no_such_function"])


# -- types -------------------------------------------------------------------------------------------------------------

NESTED = T.StructType.fromJson(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {"comment": "key", "other": 1}},
            {
                "name": "l",
                "type": {"type": "array", "elementType": "decimal(5,2)", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "m",
                "type": {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True},
                "nullable": True,
                "metadata": {},
            },
        ],
    }
)


def test_sparks_schema_in_deltas_words() -> None:
    assert schema_of(NESTED) == Struct(
        (
            Field("id", "long", nullable=False, metadata={"comment": "key"}),
            Field("l", Array("decimal(5,2)", contains_null=False)),
            Field("m", Map("string", "date")),
        )
    )


def test_a_schema_to_read_with_has_no_not_null_in_it() -> None:
    loose = schema_of(spark_schema(schema_of(NESTED)))
    assert loose.fields[0] == Field("id", "long", metadata={"comment": "key"})
    assert loose.fields[1].type == Array("decimal(5,2)")


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        (T.CalendarIntervalType(), "c"),
        (T.ArrayType(T.CalendarIntervalType()), "c.element"),
        (T.StructType([T.StructField("x", T.CalendarIntervalType())]), "c.x"),
        (T.StringType("UNICODE"), "c"),
    ],
)
def test_a_type_that_delta_lacks_is_refused_by_its_columns_name(type_: T.DataType, column: str) -> None:
    with pytest.raises(UnsupportedType) as caught:
        schema_of(T.StructType([T.StructField("c", type_)]))
    assert caught.value.facts["column"] == column


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidSchema, match="duplicate column"):
        schema_of(T.StructType([T.StructField("a", T.LongType()), T.StructField("A", T.LongType())]))


@pytest.mark.spark
def test_a_type_by_its_sql_name(spark: SparkSession) -> None:
    assert parse_type("BIGINT") == T.LongType()
    with pytest.raises(InvalidOption):
        parse_type("BIGGISH")


def test_a_free_name_is_nobodys_in_any_case() -> None:
    assert free_name("a", ["b"]) == "a"
    assert free_name("a", ["A", "a_"]) == "a__"


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_missing_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingJava, match=r"none on PATH.*install"):
        session.check_java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingJava, match=f"JAVA_HOME is {tmp_path}"):
        session.check_java()


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is version 11"),
        ('java version "1.8.0_281"', "is version 1"),
        ("", "does not start"),
    ],
)
def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str, words: str) -> None:
    fake_java(tmp_path, printed)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingJava, match=words):
        session.check_java()


@pytest.mark.parametrize("printed", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "25" 2025-09-16'])
def test_a_newer_java_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str) -> None:
    fake_java(tmp_path, printed)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session.check_java() == str(tmp_path / "bin" / "java")


def fake_java(home: Path, printed: str) -> None:
    (home / "bin").mkdir()
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{printed}' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(("gigabytes", "expected"), [(0.5, "1g"), (3, "1g"), (8, "4g"), (64, "8g")])
def test_the_driver_gets_half_of_the_memory_within_bounds(gigabytes: float, expected: str) -> None:
    assert session.driver_memory(int(gigabytes * (1 << 30))) == expected


@pytest.mark.spark
def test_writes_add_columns_where_the_session_says_true_and_nothing_else(spark: SparkSession) -> None:
    assert not session.merges_schema(spark)
    try:
        for said, merges in (("yes", False), ("false", False), (" TRUE ", True)):
            spark.conf.set(MERGES_SCHEMA, said)
            assert session.merges_schema(spark) is merges
    finally:
        spark.conf.unset(MERGES_SCHEMA)


@pytest.mark.spark
def test_a_session_is_ready_for_anabranch(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert int(str(spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.parallelism"))) <= (os.cpu_count() or 1)
    assert os.environ["PYSPARK_PYTHON"]
    assert spark.range(3).select(F.udf(lambda i: i + 1, "long")("id")).count() == 3
    assert not session.has_own_delta(spark)
