"""Writing: what lies in the folder afterwards, read with other eyes than Spark's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.compression import DEFAULT_CODEC
from anabranch._protocol.partitions import HIVE_NULL, parse_hive_path, read_value
from anabranch._protocol.schema.types import Field, Struct, from_arrow
from anabranch._spark.sessions import settings
from anabranch._spark.writing.write import rewrite, update, write
from anabranch.errors import ExecutionFailed, InvalidCondition, SchemaMismatch
from tests.spark.tables import file_row, file_set, numbered, one_file
from tests.support.readers import deltalake_rows

pytestmark = pytest.mark.spark

ID_S = Struct((Field("id", "long"), Field("s", "string")))


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture(params=["true", "false"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    spark.conf.unset("spark.sql.ansi.enabled")


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def written(folder: Path) -> list[dict[str, Any]]:
    return [row for file in data_files(folder) for row in pq.ParquetFile(file).read().to_pylist()]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def test_rows_lie_in_parquet_files_and_nothing_else_does(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "ta ble%20[1]é"
    write(spark, spark.range(4).withColumn("s", F.lit("x")), ID_S, (), f"file://{root}", "job-1")
    assert in_order(written(root / "job-1")) == [{"id": i, "s": "x"} for i in range(4)]
    assert {file.suffix for file in (root / "job-1").iterdir()} == {".parquet", ".crc"}
    meta = pq.read_metadata(data_files(root / "job-1")[0])
    assert meta.row_group(0).column(0).compression == DEFAULT_CODEC.upper()


def test_two_jobs_in_two_folders_leave_each_other_alone(spark: SparkSession, tmp_path: Path) -> None:
    for folder in ("job-1", "job-2"):
        write(spark, spark.range(1), Struct((Field("id", "long"),)), (), f"file://{tmp_path}", folder)
    assert len(written(tmp_path)) == 2


def test_timestamps_are_int64_micros_whatever_the_session_says(spark: SparkSession, tmp_path: Path) -> None:
    setting = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "INT96")
    try:
        rows = spark.sql("select timestamp'2024-01-01 00:00:00' t, timestamp_ntz'2024-01-01 00:00:00' n")
        schema = Struct((Field("t", "timestamp"), Field("n", "timestamp_ntz")))
        write(spark, rows, schema, (), f"file://{tmp_path}", "job")
        assert spark.conf.get(setting) == "INT96"
    finally:
        spark.conf.set(setting, before)
    (file,) = data_files(tmp_path)
    columns = pq.ParquetFile(file).schema
    assert [columns.column(i).physical_type for i in (0, 1)] == ["INT64", "INT64"]
    assert pq.read_metadata(file).row_group(0).column(0).statistics.has_min_max


def test_columns_are_matched_by_name_and_missing_ones_are_null(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([("x", 1)], "S string, ID int")
    schema = Struct((*ID_S.fields, Field("more", "decimal(5,2)")))
    write(spark, rows, schema, (), f"file://{tmp_path}", "job")
    assert written(tmp_path) == [{"id": 1, "s": "x", "more": None}]
    assert from_arrow(pq.read_schema(data_files(tmp_path)[0])) == schema


@pytest.mark.parametrize(
    ("source", "column", "words"),
    [
        ("select 1L id, 'x' s, 2 extra", "extra", "not one of its columns"),
        ("select 'x' id", "id", "bigint.*string"),
        ("select 1.5D id", "id", "bigint.*double"),
        ("select 1L id, 2L ID", "ID", "two columns"),
        ("select 1L id, interval 1 day s", "s", "interval"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_the_columns_name(
    spark: SparkSession, tmp_path: Path, source: str, column: str, words: str
) -> None:
    from anabranch.errors import UnsupportedType

    with pytest.raises((SchemaMismatch, UnsupportedType), match=f"(?s){words}") as caught:
        write(spark, spark.sql(source), ID_S, (), f"file://{tmp_path}", "job")
    assert caught.value.facts["column"] == column
    assert not (tmp_path / "job").exists()


def test_a_not_null_column_may_not_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    schema = Struct((Field("id", "long"), Field("s", "string", nullable=False)))
    with pytest.raises(SchemaMismatch, match="NOT NULL"):
        write(spark, spark.range(1), schema, (), f"file://{tmp_path}", "job")


def test_a_bare_null_fits_every_column_and_nested_types_widen(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("select null id, array(named_struct('a', 1)) l, map('k', cast(1 as short)) m")
    target = "id long, l array<struct<A: long>>, m map<string, int>"
    from pyspark.sql.types import StructType

    from anabranch._spark.columns.types import schema_of

    write(spark, rows, schema_of(StructType.fromDDL(target)), (), f"file://{tmp_path}", "job")
    assert written(tmp_path) == [{"id": None, "l": [{"A": 1}], "m": [("k", 1)]}]


PARTITIONS: dict[str, list[Any]] = {
    "string": ["a b", "a/b=c%", "é", "{x}[y]", None],
    "integer": [-1, None],
    "long": [2**63 - 1],
    "boolean": [True, False],
    "double": [1.5, float("inf"), 1e-10],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-0.01")],
    "decimal(38,18)": [Decimal("0.000000000000000001")],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "binary": [b"abc", "é".encode()],
    "timestamp_ntz": [dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2024, 3, 31, 2, 30, 0, 5)],
}


@pytest.mark.parametrize("type_", PARTITIONS)
def test_folders_decode_to_the_values_that_the_log_must_say(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    schema = Struct((Field("p", type_), Field("id", "long")))
    from anabranch._spark.columns.types import spark_schema

    values = list(enumerate(PARTITIONS[type_]))
    rows = spark.createDataFrame([(value, i) for i, value in values], spark_schema(schema))
    write(spark, rows, schema, ("p",), f"file://{tmp_path}", "job")
    assert folder_values(tmp_path, type_) == dict(values)
    assert all(pq.read_schema(file).names == ["id"] for file in data_files(tmp_path))


def folder_values(root: Path, type_: str) -> dict[int, Any]:
    """The value that the folder of each row names, as the log's rules read it."""
    found = {}
    for file in data_files(root):
        text = parse_hive_path(str(file.relative_to(root)), ["p"])["p"]
        for row in pq.ParquetFile(file).read().to_pylist():
            found[row["id"]] = read_value(text, type_)
    return found


MICROS = [
    0,
    -1,
    1603584000123456,
    1603587600000000,
    1585443600000000,
    1711848600000000,
    -62135596800000000,
    253402300799999999,
]


def test_timestamp_folders_are_utc_in_every_zone_at_every_hour(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    schema = Struct((Field("p", "timestamp"), Field("id", "long")))
    rows = spark.createDataFrame(list(enumerate(MICROS)), "id long, m long").selectExpr("id", "timestamp_micros(m) p")
    write(spark, rows, schema, ("p",), f"file://{tmp_path}", "job")
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    expected = {i: epoch + dt.timedelta(microseconds=m) for i, m in enumerate(MICROS)}
    assert folder_values(tmp_path, "timestamp") == expected
    assert (tmp_path / "job" / "p=1969-12-31T23%3A59%3A59.999999Z").is_dir()


def test_a_binary_partition_value_that_is_no_text_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    schema = Struct((Field("p", "binary"), Field("id", "long")))
    with pytest.raises(ExecutionFailed, match="UTF-8"):
        write(spark, spark.sql("select X'FF' p, 1L id"), schema, ("p",), f"file://{tmp_path}", "job")


def test_a_partition_value_that_would_come_back_as_null_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    for kind in ("string", "binary"):
        schema, rows = (
            Struct((Field("p", kind), Field("id", "long"))),
            spark.sql(f"select cast('{HIVE_NULL}' as {kind}) p, 1L id"),
        )
        with pytest.raises(ExecutionFailed, match="stands for NULL"):
            write(spark, rows, schema, ("p",), f"file://{tmp_path}", "job")


def test_columns_with_odd_names_are_written_and_partitioned(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, "x", "y")], "`a.b` long, `c``d e` string, `p.q r` string")
    schema = Struct((Field("a.b", "long"), Field("c`d e", "string"), Field("p.q r", "string")))
    write(spark, rows, schema, ("p.q r",), f"file://{tmp_path}", "job")
    (file,) = data_files(tmp_path)
    assert parse_hive_path(str(file.relative_to(tmp_path)), ["p.q r"]) == {"p.q r": "y"}
    assert written(tmp_path) == [{"a.b": 1, "c`d e": "x"}]


# -- update and rewrite ------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Any:
    return numbered(tmp_path, {"a b.parquet": 5, "c.parquet": 5}, {"a%20b.parquet": [0]})


def test_update_writes_the_marked_rows_changed_and_no_others(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    marks = {"a%20b.parquet": BitMap64([1, 4]), "c.parquet": BitMap64([0])}
    update(spark, files, marks, {"id": "id + 100", "s": F.concat("s", F.lit("!"))}, "job")
    assert in_order(written(tmp_path / "job")) == [
        {"id": 101, "s": "1!"},
        {"id": 104, "s": "4!"},
        {"id": 105, "s": "5!"},
    ]


def test_assignments_see_the_old_row_all_at_once(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    update(spark, files, {"c.parquet": BitMap64([2])}, {"id": "cast(s as long) * 2", "s": "cast(id as string)"}, "job")
    assert written(tmp_path / "job") == [{"id": 14, "s": "7"}]


def test_rewrite_writes_every_live_row_the_marked_ones_changed(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    marks = {"a%20b.parquet": BitMap64([1]), "c.parquet": BitMap64([4])}
    rewrite(spark, files, marks, {"s": "'new'"}, "job")
    expected = [{"id": i, "s": "new" if i in (1, 9) else str(i)} for i in range(1, 10)]
    assert in_order(written(tmp_path / "job")) == expected


def test_rewrite_without_assignments_leaves_the_marked_rows_out(
    spark: SparkSession, files: Any, tmp_path: Path
) -> None:
    rewrite(spark, files, {"a%20b.parquet": BitMap64([1]), "c.parquet": BitMap64([4])}, None, "job")
    assert [row["id"] for row in in_order(written(tmp_path / "job"))] == [2, 3, 4, 5, 6, 7, 8]


def test_an_assignment_runs_on_marked_rows_only(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    rewrite(spark, files, {"c.parquet": BitMap64([4])}, {"id": "100 div (id - 6)"}, "job")
    assert sorted(row["id"] for row in written(tmp_path / "job")) == [1, 2, 3, 4, 5, 6, 7, 8, 33]


@pytest.mark.exhaustive("tests/spark/writing/test_write.py::test_a_random_value_is_evaluated_once")
def test_a_random_assignment_changes_exactly_the_marked_rows(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    update(spark, files, {"c.parquet": BitMap64([0, 1])}, {"s": "cast(rand() as string)"}, "job")
    assert sorted(row["id"] for row in written(tmp_path / "job")) == [5, 6]


def test_a_random_value_is_evaluated_once(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(2000), pa.int64()), "i": pa.array([0] * 2000, pa.int32())})
    files = one_file(tmp_path, table)
    halves = "if(rand(7) < 0.5, null, 5L)"  # needs a check that it fits: a second throw of the coin would fail it
    update(spark, files, {"a.parquet": BitMap64(range(2000))}, {"i": halves}, "job")
    rewrite(spark, files, {"a.parquet": BitMap64(range(1000))}, {"i": halves}, "job2")
    assert {row["i"] for row in written(tmp_path / "job")} == {None, 5}
    assert {row["i"] for row in written(tmp_path / "job2")} == {None, 5, 0}


@pytest.mark.parametrize("expression", ["sum(id)", "explode(array(1L, 2L))", "count(*) over ()"])
def test_an_assignment_is_about_one_row(spark: SparkSession, files: Any, expression: str) -> None:
    with pytest.raises(InvalidCondition):
        update(spark, files, {"c.parquet": BitMap64([0])}, {"id": expression}, "job")


@pytest.mark.parametrize("properties", [{}, {"delta.enableChangeDataFeed": "true"}], ids=["plain", "recorded"])
def test_an_update_without_spark_lists_the_settings_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]
) -> None:
    asked, real = list[str](), settings.exact_sql
    path = str(tmp_path / "t")
    anabranch.append(path, [{"id": 1, "s": "a"}], properties=properties)
    table = DeltaTable.forPath(spark, path)
    monkeypatch.setattr(settings, "exact_sql", lambda spark, text: asked.append(text) or real(spark, text))
    table.update("id = 1", {"s": "'x'"})
    assert deltalake_rows(path) == [{"id": 1, "s": "x"}]
    assert asked == ["SET"]


def test_an_update_may_move_rows_to_other_partitions(spark: SparkSession, tmp_path: Path) -> None:
    one = pa.table({"id": pa.array([1, 2], pa.int64())})
    rows = [file_row(tmp_path, f"p={p}/a.parquet", one, {"p": p}) for p in "xy"]
    files = file_set(tmp_path, rows, pa.schema({"p": pa.string(), "id": pa.int64()}), ("p",))
    update(spark, files, {"p=x/a.parquet": BitMap64([0]), "p=y/a.parquet": BitMap64([1])}, {"p": "upper(p)"}, "job")
    assert {unquote(str(f.parent.relative_to(tmp_path))) for f in data_files(tmp_path / "job")} == {
        "job/p=X",
        "job/p=Y",
    }
    rewrite(spark, files, {"p=x/a.parquet": BitMap64([0])}, {"id": "7"}, "job2")
    assert folder_values_of_strings(tmp_path / "job2") == {(7, "x"), (2, "x"), (1, "y"), (2, "y")}


def folder_values_of_strings(root: Path) -> set[tuple[int, str | None]]:
    return {
        (row["id"], parse_hive_path(str(file.relative_to(root)), ["p"])["p"])
        for file in data_files(root)
        for row in pq.ParquetFile(file).read().to_pylist()
    }


TYPES = pa.table(
    {
        "i": pa.array([1], pa.int32()),
        "d": pa.array([1.0], pa.float64()),
        "m": pa.array([Decimal("1.00")], pa.decimal128(5, 2)),
        "s": ["a"],
        "t": pa.array([dt.date(2024, 1, 1)], pa.date32()),
        "l": pa.array([[1]], pa.list_(pa.int64())),
    }
)


@pytest.mark.parametrize(
    ("column", "expression", "value"),
    [
        ("i", "2", 2),
        ("i", "2L", 2),
        ("i", "'7'", 7),
        ("i", "null", None),
        ("i", "cast(null as bigint)", None),
        ("d", "3", 3.0),
        ("d", "2.5", 2.5),
        ("m", "2", Decimal("2.00")),
        ("m", "2.5D", Decimal("2.50")),
        ("s", "12", "12"),
        ("s", "date'2024-02-03'", "2024-02-03"),
        ("t", "'2024-02-03'", dt.date(2024, 2, 3)),
        ("t", "timestamp'2024-02-03 10:00:00'", dt.date(2024, 2, 3)),
        ("l", "array(1, 2)", [1, 2]),
        ("l", "array('3', null, 2.0)", [3, None, 2]),
        ("i", "i + 1", 2),
    ],
)
def test_a_value_that_fits_its_column_is_stored(
    spark: SparkSession, tmp_path: Path, column: str, expression: str, value: Any
) -> None:
    update(spark, one_file(tmp_path, TYPES), {"a.parquet": BitMap64([0])}, {column: expression}, "job")
    assert written(tmp_path / "job") == [TYPES.to_pylist()[0] | {column: value}]


@pytest.mark.parametrize(
    ("column", "expression"), [("i", "3000000000L"), ("m", "1000"), ("i", "'x'"), ("t", "'soon'"), ("l", "array('x')")]
)
def test_a_value_that_does_not_fit_is_an_error_and_never_null(
    spark: SparkSession, tmp_path: Path, ansi: str, column: str, expression: str
) -> None:
    with pytest.raises(ExecutionFailed, match=f"does not fit the column {column}"):
        update(spark, one_file(tmp_path, TYPES), {"a.parquet": BitMap64([0])}, {column: expression}, "job")
    assert data_files(tmp_path / "job") == []


@pytest.mark.parametrize(
    ("path", "expression"), [("i", "date'2024-01-01'"), ("l", "1"), ("l.element", "array(true)"), ("t", "1")]
)
def test_a_type_that_can_never_fit_is_refused(spark: SparkSession, tmp_path: Path, path: str, expression: str) -> None:
    column = path.partition(".")[0]
    with pytest.raises(SchemaMismatch) as caught:
        update(spark, one_file(tmp_path, TYPES), {"a.parquet": BitMap64([0])}, {column: expression}, "job")
    assert caught.value.facts["column"] == path


def test_an_assignment_that_spark_cannot_read_is_refused(spark: SparkSession, files: Any) -> None:
    with pytest.raises(InvalidCondition, match="s = nope"):
        update(spark, files, {"c.parquet": BitMap64([0])}, {"s": "nope"}, "job")


def test_an_assignment_that_fails_on_a_row_leaves_no_files(spark: SparkSession, files: Any, tmp_path: Path) -> None:
    with pytest.raises(ExecutionFailed, match="DIVIDE_BY_ZERO"):
        update(spark, files, {"c.parquet": BitMap64([0])}, {"id": "1 div (id - 5)"}, "job")
    assert data_files(tmp_path / "job") == []


def test_marks_may_lie_past_what_a_join_of_many_files_needs(
    spark: SparkSession, files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch._spark.reading.row_positions.IN_PLAN_FILES", 0)
    rewrite(spark, replace(files), {"c.parquet": BitMap64([4])}, {"s": "'new'"}, "job")
    assert {row["s"] for row in written(tmp_path / "job")} == {"new", *map(str, range(1, 9))}


def test_a_nan_that_arrow_wrote_is_found_by_sparks_own_filters(spark: SparkSession, tmp_path: Path) -> None:
    """A filter that goes down to the files skips row groups by the footer's bounds, of which Arrow leaves NaN out."""
    path = str(tmp_path / "t")
    anabranch.append(path, pa.table({"id": [1, 2], "x": [1.0, float("nan")]}))
    assert [row.id for row in spark.read.parquet(path).where("x > 5").collect()] == [2]
