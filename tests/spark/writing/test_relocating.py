"""Relocating: every row of every file that is written, by position, against where it must come from."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from anabranch._arrow.clustering import SAMPLE_ROWS, SAMPLE_ROWS_PER_OUTPUT, sampling_interval
from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.layout.curves import ORIGINS, Curve
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.rules.table_rules import Rules
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.writing.relocating import cluster, pack
from anabranch.errors import ExecutionFailed, UnknownColumn
from tests.spark.tables import file_row, file_set, numbered
from tests.support.sessions import setting
from tests.support.tiers import examples

pytestmark = pytest.mark.spark


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def adaptive(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from setting(spark, "spark.sql.adaptive.enabled", request.param)


@pytest.fixture
def split_small(spark: SparkSession) -> Iterator[str]:
    """Spark reads each file in many parts, in whatever order it likes."""
    yield from setting(spark, "spark.sql.files.maxPartitionBytes", "4096")


def files_in(root: Path, folder: str) -> list[Path]:
    return sorted((root / folder).rglob("*.parquet"))


def rows_in(file: Path) -> list[dict[str, Any]]:
    return pq.ParquetFile(file).read().to_pylist()


def number(file: Path) -> int:
    return int(file.name.removeprefix("part-")[:5])


def live_ids(files: FileSet, counts: Mapping[str, int]) -> list[int]:
    """The ids of `numbered` files' live rows, in the order in which the file set lists the files."""
    starts, start = {}, 0
    for name, count in counts.items():
        starts[name] = start
        start += count
    names = files.files["path"].to_pylist()
    return [starts[n] + i for n in names for i in range(counts[n]) if i not in files.vectors.get(n, BitMap64())]


def rewritten_in_groups(root: Path, rows: int) -> None:
    for file in root.glob("*.parquet"):
        pq.write_table(pq.ParquetFile(file).read(), file, row_group_size=rows)


MANY = examples(30_000, 6_000)
COUNTS = {"b.parquet": 10, "a.parquet": MANY, "d.parquet": 1, "c.parquet": 2_000, "e.parquet": 0}
DELETED = {"a.parquet": [*range(100, MANY // 3, 3), MANY - 1], "d.parquet": [0], "b.parquet": []}


@pytest.mark.parametrize("deleted", [{}, DELETED], ids=["whole files", "with vectors"])
@pytest.mark.usefixtures("split_small", "adaptive")
def test_packed_rows_lie_file_after_file_and_as_they_lay(
    spark: SparkSession, tmp_path: Path, deleted: Mapping[str, Sequence[int]]
) -> None:
    files = numbered(tmp_path, COUNTS, deleted)
    rewritten_in_groups(tmp_path, 500)
    pack(spark, files, "job")
    (file,) = files_in(tmp_path, "job")
    assert [row["id"] for row in rows_in(file)] == live_ids(files, COUNTS)
    assert all(row["s"] == str(row["id"]) for row in rows_in(file))


@pytest.mark.exhaustive(
    "tests/spark/writing/test_relocating.py::test_a_column_of_any_type_is_laid_out_in_its_own_order_nulls_first",
    "tests/spark/writing/test_arrow_clustering.py::test_arrow_makes_the_files_that_spark_makes",
)
@pytest.mark.parametrize("kind", ["zorder", "hilbert"])
@pytest.mark.usefixtures("split_small", "adaptive")
def test_clustered_rows_come_from_where_it_is_written_that_they_do(
    spark: SparkSession, tmp_path: Path, kind: Any
) -> None:
    files = points(tmp_path, deleted={"b.parquet": range(0, 3000, 7)})
    cluster(spark, files, Curve(("x", "n.y"), kind), 5, "job", "moves")
    assert_origins(files, tmp_path)
    assert all(1300 < len(rows_in(each)) < 1800 for each in files_in(tmp_path, "job"))


def points(root: Path, deleted: Mapping[str, Any]) -> FileSet:
    """Rows with a number each, and two values at random."""
    runtime, rows, start = random.Random(7), [], 0
    for name, count in {"b.parquet": 3000, "a.parquet": 5000, "c.parquet": 17}.items():
        ids = list(range(start, start + count))
        x = [None if runtime.random() < 0.05 else runtime.randrange(1000) for _ in ids]
        y = [None if runtime.random() < 0.05 else f"{runtime.randrange(10**6):06}" for _ in ids]
        nested = pa.array([{"y": each} for each in y])
        rows.append(file_row(root, name, pa.table({"id": ids, "x": pa.array(x, pa.int32()), "n": nested})))
        start += count
    schema = pa.schema({"id": pa.int64(), "x": pa.int32(), "n": pa.struct({"y": pa.string()})})
    return file_set(root, rows, schema, deleted=deleted)


def assert_origins(files: FileSet, root: Path) -> None:
    """Each row that was written is the one of its origin, and each live row was written once."""
    sources = [rows_in(root / path) for path in files.files["path"].to_pylist()]
    seen = set()
    outputs, moves = files_in(root, "job"), files_in(root, "moves")
    for output, origins in zip(outputs, moves, strict=True):
        assert number(output) == number(origins)
        assert [f.name for f in pq.read_schema(origins)] == ORIGINS.names
        assert pq.read_schema(origins).types == ORIGINS.types
        for row, origin in zip(rows_in(output), rows_in(origins), strict=True):
            assert row == sources[origin["source"]][origin["row"]]
            seen.add((origin["source"], origin["row"]))
    gone = [files.vectors.get(path, BitMap64()) for path in files.files["path"].to_pylist()]
    assert seen == {(i, j) for i, rows in enumerate(sources) for j in range(len(rows)) if j not in gone[i]}
    assert sum(len(rows_in(each)) for each in outputs) == len(seen)


def test_packed_rows_keep_their_ids_and_hold_no_partition_column(spark: SparkSession, tmp_path: Path) -> None:
    """The second file holds what its rows were known by before; those of the first go by the log."""
    schema = Struct((Field("id", "long", metadata=physical("c1")), Field("day", "date", metadata=physical("c2"))))
    tables = [
        pa.table({"c1": [1, 2, 3]}),
        pa.table({"c1": [4, 5], "hidden_id": [90, None], "hidden_version": pa.array([1, None], pa.int64())}),
    ]
    rows = [
        {**file_row(tmp_path, f"f{i}.parquet", table, {"c2": "2024-01-01"}), **known}
        for i, (table, known) in enumerate(
            zip(tables, [first_id(100, 5), first_id(200, 6)], strict=True),
        )
    ]
    files = file_set(tmp_path, rows, schema, ("day",), {"f0.parquet": [1]})
    pack(spark, replace(files, tracked=HiddenColumns("hidden_id", "hidden_version")), "job/c2=2024-01-01")
    (file,) = files_in(tmp_path, "job")
    assert rows_in(file) == [
        {"c1": 1, "hidden_id": 100, "hidden_version": 5},
        {"c1": 3, "hidden_id": 102, "hidden_version": 5},
        {"c1": 4, "hidden_id": 90, "hidden_version": 1},
        {"c1": 5, "hidden_id": 201, "hidden_version": 6},
    ]
    assert pq.read_schema(file).field("c1").metadata[b"PARQUET:field_id"] == b"1"
    pack(spark, replace(files, rules=Rules(materialised=True)), "both")
    (file,) = files_in(tmp_path, "both")
    assert rows_in(file) == [{"c1": i, "c2": dt.date(2024, 1, 1)} for i in (1, 3, 4, 5)]


def physical(name: str) -> dict[str, Any]:
    return {"delta.columnMapping.physicalName": name, "delta.columnMapping.id": int(name[1:])}


def first_id(number: int, version: int) -> dict[str, Any]:
    return {"baseRowId": number, "defaultRowCommitVersion": version}


def test_a_sessions_wish_for_small_files_does_not_split_what_is_packed(spark: SparkSession, tmp_path: Path) -> None:
    files = numbered(tmp_path, {"a.parquet": 50, "b.parquet": 50})
    for _ in setting(spark, "spark.sql.files.maxRecordsPerFile", "10"):
        pack(spark, files, "job")
    assert len(files_in(tmp_path, "job")) == 1


@pytest.mark.exhaustive(
    "tests/spark/writing/test_relocating.py::test_a_sessions_wish_for_small_files_does_not_split_what_is_packed",
    "tests/spark/writing/test_relocating.py::test_a_column_of_any_type_is_laid_out_in_its_own_order_nulls_first",
)
def test_a_sessions_wish_for_small_files_does_not_split_what_is_clustered(spark: SparkSession, tmp_path: Path) -> None:
    files = numbered(tmp_path, {"a.parquet": 50, "b.parquet": 50})
    for _ in setting(spark, "spark.sql.files.maxRecordsPerFile", "10"):
        cluster(spark, files, Curve(("s",), "zorder"), 1, "one", None)
    assert len(files_in(tmp_path, "one")) == 1
    assert [row["s"] for row in rows_in(files_in(tmp_path, "one")[0])] == sorted(str(i) for i in range(100))


def test_more_files_than_travel_in_a_plan_are_packed_in_order_too(spark: SparkSession, tmp_path: Path) -> None:
    counts = {f"{i:02}.parquet": 1 + i % 3 for i in reversed(range(70))}
    files = numbered(tmp_path, counts, {name: [0] for name in list(counts)[::2]})
    pack(spark, files, "job")
    assert [row["id"] for row in rows_in(files_in(tmp_path, "job")[0])] == live_ids(files, counts)


def test_a_row_that_cannot_be_read_stops_the_job(spark: SparkSession, tmp_path: Path) -> None:
    files = numbered(tmp_path, {"a.parquet": 50, "b.parquet": 50})
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ExecutionFailed):
        pack(spark, files, "job")
    assert not files_in(tmp_path, "job")


def test_a_curve_over_a_column_that_is_not_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnknownColumn):
        cluster(spark, numbered(tmp_path, {"a.parquet": 1}), Curve(("nope",), "zorder"), 1, "job", None)


NAN = float("nan")
VALUES: dict[str, pa.Array] = {
    "long": pa.array([3, None, -5, 2**62, 3]),
    "double": pa.array([NAN, 0.0, -0.0, None, float("-inf"), NAN, 1e300]),
    "decimal": pa.array([1, None, -7, 10**20], pa.decimal128(38, 2)),
    "string": pa.array(["b", "", None, "a" * 5000, "a" * 5000 + "b", "é", "\U0001f40b"]),
    "binary": pa.array([b"\xff", b"", None, b"\x00", b"\x7f"]),
    "boolean": pa.array([True, None, False, True]),
    "date": pa.array([0, None, -1_000_000, 2_900_000], pa.int32()).cast(pa.date32()),
    "timestamp": pa.array([0, None, -(10**16), 10**17], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([0, None, -(10**16), 10**17], pa.timestamp("us")),
    "null": pa.array([None, None, None], pa.int64()),
}


@pytest.mark.parametrize("type_", VALUES)
def test_a_column_of_any_type_is_laid_out_in_its_own_order_nulls_first(
    spark: SparkSession, tmp_path: Path, type_: str
) -> None:
    """By one column the rows are sorted by it, whichever file they go to."""
    cluster(spark, numbered_values(tmp_path, type_), Curve(("v",), "zorder"), 3, "job", "moves")
    ordered = spark.read.parquet(str(tmp_path / "a.parquet")).sort("v", "n").select("n")
    assert [n for each in files_in(tmp_path, "job") for n in numbers_in(each)] == [
        row["n"] for row in ordered.collect()
    ]
    assert_origin_numbers(tmp_path)


@pytest.mark.exhaustive(
    "tests/spark/writing/test_relocating.py::test_a_column_of_any_type_is_laid_out_in_its_own_order_nulls_first",
    "tests/spark/writing/test_arrow_clustering.py::test_arrow_makes_the_files_that_spark_makes",
)
@pytest.mark.parametrize("type_", VALUES)
def test_a_curve_over_a_column_of_any_type_is_the_same_twice(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    cluster(spark, numbered_values(tmp_path, type_), Curve(("v", "n"), "hilbert"), 3, "job", "moves")
    assert_origin_numbers(tmp_path)


def numbered_values(root: Path, type_: str) -> FileSet:
    """One file of values of a type in a column ``v``, each with its position in ``n``."""
    values = VALUES[type_].take(pa.array([i % len(VALUES[type_]) for i in range(40)]))
    table = pa.table({"v": values, "n": pa.array(range(40), pa.int64())})
    return file_set(root, [file_row(root, "a.parquet", table)], table.schema)


def assert_origin_numbers(root: Path) -> None:
    """Of one file, in whose column ``n`` each row has its position."""
    outputs, moves = files_in(root, "job"), files_in(root, "moves")
    assert [number(each) for each in outputs] == [number(each) for each in moves]
    assert [numbers_in(each) for each in outputs] == [[row["row"] for row in rows_in(each)] for each in moves]
    assert sorted(n for each in outputs for n in numbers_in(each)) == list(range(40))


def numbers_in(file: Path) -> list[int]:
    """Of the other column some values are none that Python knows."""
    return pq.ParquetFile(file).read(["n"])["n"].to_pylist()


def test_the_more_files_are_made_the_more_rows_are_looked_at(tmp_path: Path) -> None:
    row = file_row(tmp_path, "a.parquet", pa.table({"id": [1]}))
    rows = 30 * SAMPLE_ROWS
    files = file_set(tmp_path, [row | {"stats": json.dumps({"numRecords": rows})}], pa.schema({"id": pa.int64()}))
    as_many = SAMPLE_ROWS // SAMPLE_ROWS_PER_OUTPUT
    assert [sampling_interval(files, outputs) for outputs in (0, as_many, 2 * as_many, rows)] == [30, 15, 10, 1]
