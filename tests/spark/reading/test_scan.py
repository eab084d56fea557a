"""Scanning: live rows only, the log's columns, and nothing extra to pay where nothing is deleted."""

from __future__ import annotations

import datetime as dt
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from anabranch._protocol.actions import files_table
from anabranch._protocol.layout.addresses import address_of
from anabranch._protocol.schema.types import Field, Struct, from_arrow
from anabranch._spark.reading import row_positions
from anabranch._spark.reading.scan import scan
from anabranch.errors import CorruptVector, MissingDataFile, UnknownColumn
from tests.spark.tables import file_row, file_set, numbered, one_file
from tests.support.drawing import SLOW
from tests.support.tiers import examples

pytestmark = pytest.mark.spark


def ids(rows: DataFrame) -> list[int]:
    return sorted(row["id"] for row in rows.select("id").collect())


@pytest.fixture(scope="module")
def three_files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return numbered(tmp_path_factory.mktemp("three"), {"a.parquet": 5, "b.parquet": 70, "c.parquet": 5})


def plan(rows: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    rows.explain()
    return capsys.readouterr().out


@settings(max_examples=examples(5, 2), suppress_health_check=[*SLOW, HealthCheck.function_scoped_fixture])
@given(deleted=st.tuples(*[st.sets(st.integers(0, n - 1)) for n in (5, 70, 5)]))
@pytest.mark.parametrize("in_plan", [64, 0])
def test_live_rows_are_all_rows_but_the_deleted(
    spark: SparkSession, three_files: Any, monkeypatch: pytest.MonkeyPatch, deleted: Any, in_plan: int
) -> None:
    monkeypatch.setattr(row_positions, "IN_PLAN_FILES", in_plan)
    vectors = {f"{name}.parquet": BitMap64(rows) for name, rows in zip("abc", deleted, strict=True)}
    gone = {start + row for start, rows in zip((0, 5, 75), deleted, strict=True) for row in rows}
    assert ids(scan(spark, replace(three_files, vectors=vectors))) == [i for i in range(80) if i not in gone]


def test_addresses_are_path_and_physical_position(spark: SparkSession, three_files: Any) -> None:
    files = replace(three_files, vectors={"b.parquet": BitMap64([0])})
    path, row = address_of(files.schema)
    found = {r["id"]: (r[path], r[row]) for r in scan(spark, files, ["id"], address=True).collect()}
    assert (found[0], found[6], found[75]) == (("a.parquet", 0), ("b.parquet", 1), ("c.parquet", 0))
    assert 5 not in found


def test_without_vectors_the_plan_is_that_of_a_plain_read(
    spark: SparkSession, three_files: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = plan(scan(spark, three_files), capsys)
    assert "FileScan parquet [id#" in text
    assert not any(word in text for word in ("Project", "Filter (", "Union", "Join", "_metadata", "row_index"))


def test_a_filter_reaches_parquet_in_both_branches(
    spark: SparkSession, three_files: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    files = replace(three_files, vectors={"b.parquet": BitMap64([0])})
    text = plan(scan(spark, files, ["id"]).filter("id = 7"), capsys)
    assert text.count("PushedFilters: [IsNotNull(id), EqualTo(id,7)]") == 2
    assert text.count("ReadSchema: struct<id:bigint") == 2
    assert "s:string" not in text


def test_no_files_give_no_rows_of_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    empty = file_set(tmp_path, [], pa.schema({"id": pa.int64(), "t": pa.timestamp("us")}))
    rows = scan(spark, empty)
    assert (rows.collect(), rows.dtypes) == ([], [("id", "bigint"), ("t", "timestamp_ntz")])
    assert scan(spark, empty, ["t"], address=True).columns == ["t", *address_of(empty.schema)]


def test_columns_come_in_the_order_asked_for_whatever_their_case(spark: SparkSession, three_files: Any) -> None:
    assert scan(spark, three_files, ["S", "id"]).columns == ["s", "id"]
    with pytest.raises(UnknownColumn):
        scan(spark, three_files, ["nope"])


def test_a_column_that_a_file_lacks_is_null(spark: SparkSession, tmp_path: Path) -> None:
    old = file_row(tmp_path, "old.parquet", pa.table({"id": pa.array([1], pa.int64())}))
    new = file_row(tmp_path, "new.parquet", pa.table({"id": pa.array([2, 3], pa.int64()), "x": ["a", "b"]}))
    schema = pa.schema({"x": pa.string(), "id": pa.int64()})
    files = file_set(tmp_path, [old, new], schema, deleted={"old.parquet": [5], "new.parquet": [1]})
    assert {tuple(row) for row in scan(spark, files).collect()} == {(None, 1), ("a", 2)}


def test_every_type_comes_back_as_it_was_written(spark: SparkSession, tmp_path: Path) -> None:
    noon = dt.datetime(2024, 3, 31, 2, 30, 0, 123456)
    values: dict[str, tuple[Any, pa.DataType]] = {
        "b": (True, pa.bool_()),
        "i8": (-8, pa.int8()),
        "i16": (-16, pa.int16()),
        "i32": (-32, pa.int32()),
        "f": (0.5, pa.float32()),
        "d": (0.25, pa.float64()),
        "dec": (Decimal("-1.50"), pa.decimal128(10, 2)),
        "day": (dt.date(1500, 1, 1), pa.date32()),
        "ntz": (noon, pa.timestamp("us")),
        "bin": (b"\x00\xff", pa.binary()),
        "list": ([1, None], pa.list_(pa.int64())),
        "map": ([("k", None)], pa.map_(pa.string(), pa.int32())),
        "struct": ({"x": 1, "y": {"z": "s"}}, pa.struct({"x": pa.int64(), "y": pa.struct({"z": pa.string()})})),
    }
    table = pa.table({name: pa.array([value, None], type_) for name, (value, type_) in values.items()})
    found, empty = scan(spark, one_file(tmp_path, table, deleted=[9])).collect()
    plain = found.asDict(recursive=True)
    assert plain | {"map": list(plain["map"].items())} == {name: value for name, (value, _) in values.items()}
    assert set(empty) == {None}


def test_a_timestamp_is_an_instant_and_one_without_zone_is_not(spark: SparkSession, tmp_path: Path) -> None:
    moment = dt.datetime(2024, 3, 31, 2, 30)
    columns = {"z": pa.array([moment], pa.timestamp("us", "UTC")), "n": pa.array([moment], pa.timestamp("us"))}
    files = one_file(tmp_path, pa.table(columns))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        (row,) = scan(spark, files).selectExpr("cast(z as string)", "cast(n as string)").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert tuple(row) == ("2024-03-30 22:30:00", "2024-03-31 02:30:00")


ODD = [
    "a.b",
    "c d",
    "e`f",
    "_metadata",
    "__anabranch_path",
    "__ANABRANCH_row",
    "__anabranch_file",
    "row_index",
    "é,;{}()",
]


@pytest.mark.parametrize("in_plan", [64, 0])
def test_columns_may_have_any_name_ours_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_plan: int
) -> None:
    monkeypatch.setattr(row_positions, "IN_PLAN_FILES", in_plan)
    table = pa.table({name: [f"{name}{i}" for i in range(3)] for name in [*ODD, "__anabranch_bits", "__anabranch_key"]})
    files = one_file(tmp_path, table, deleted=[1])
    assert scan(spark, files).columns == table.column_names
    found = scan(spark, files, address=True).orderBy("row_index").collect()
    assert [row[:-2] for row in map(tuple, found)] == [tuple(r.values()) for r in table.take([0, 2]).to_pylist()]
    assert [tuple(row)[-2:] for row in found] == [("a.parquet", 0), ("a.parquet", 2)]


def test_a_vector_that_was_not_loaded_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    row = file_row(tmp_path, "a.parquet", pa.table({"id": [1]}))
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 40, "cardinality": 1}
    files = file_set(tmp_path, [], pa.schema({"id": pa.int64()}))
    with pytest.raises(CorruptVector):
        scan(spark, replace(files, files=files_table([row | {"deletionVector": vector}])))


def test_a_missing_file_is_named_and_never_skipped(spark: SparkSession, three_files: Any, tmp_path: Path) -> None:
    files = numbered(tmp_path, {"here.parquet": 1, "gone [1].parquet": 1})
    lazy = scan(spark, files)
    (tmp_path / "gone [1].parquet").unlink()
    with pytest.raises(MissingDataFile) as caught:
        scan(spark, files)
    assert caught.value.facts["file"] == f"file:{tmp_path}/gone [1].parquet"
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match="gone"):
            lazy.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_a_scan_is_pinned_to_its_files(spark: SparkSession, tmp_path: Path) -> None:
    files = numbered(tmp_path, {"a.parquet": 2})
    rows = scan(spark, files)
    numbered(tmp_path, {"b.parquet": 2})
    assert rows.count() == 2


def test_files_may_lie_outside_the_table(spark: SparkSession, tmp_path: Path) -> None:
    other = tmp_path / "other é"
    row = file_row(other, "a.parquet", pa.table({"id": [1, 2]}), path=(other / "a.parquet").as_uri())
    inside = file_row(tmp_path / "t", "b.parquet", pa.table({"id": [3]}))
    files = file_set(tmp_path / "t", [row, inside], pa.schema({"id": pa.int64()}), deleted={row["path"]: [0]})
    found = {tuple(each) for each in scan(spark, files, address=True).collect()}
    assert found == {(2, row["path"], 1), (3, "b.parquet", 0)}


def test_nulls_may_stand_where_the_log_says_not_null(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1, None], pa.int64())})
    files = one_file(tmp_path, table)
    strict = replace(files, schema=Struct((Field("id", "long", nullable=False),)))
    assert scan(spark, strict).filter("id is null").count() == 1


def test_a_comment_stays_with_its_column(spark: SparkSession, tmp_path: Path) -> None:
    files = one_file(tmp_path, pa.table({"id": [1]}))
    schema = Struct((Field("id", "long", metadata={"comment": "key", "delta.identity.start": 1}),))
    assert scan(spark, replace(files, schema=schema)).schema["id"].metadata == {"comment": "key"}


def test_partitions_with_vectors_keep_the_order_of_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    one = pa.table({"id": pa.array([1, 2], pa.int64())})
    rows = [file_row(tmp_path, f"job-{p}/p={p}/a.parquet", one, {"p": p}) for p in "xy"]
    rows.append(file_row(tmp_path, "elsewhere.parquet", one, {"p": "z"}))
    schema = from_arrow(pa.schema({"p": pa.string(), "id": pa.int64()}))
    files = file_set(tmp_path, rows, schema, ("p",), {"job-x/p=x/a.parquet": [0]})
    expected = {("x", 2), ("y", 1), ("y", 2), ("z", 1), ("z", 2)}
    assert {tuple(row) for row in scan(spark, files).collect()} == expected
    agreeing = files.restrict_to({row["path"] for row in rows[:2]})
    assert {tuple(row) for row in scan(spark, agreeing).collect()} == expected - {("z", 1), ("z", 2)}
    shutil.rmtree(tmp_path / "job-x")
