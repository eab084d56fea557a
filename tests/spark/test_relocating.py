"""Relocating: every row of every file that is written, by position, against where it must come from."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from anabranch.protocol.curves import ORIGINS, Curve
from anabranch.protocol.filesets import FileSet
from anabranch.spark.relocating import cluster, pack
from tests.spark.tables import file_row, file_set, numbered

pytestmark = pytest.mark.spark


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def adaptive(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from setting(spark, "spark.sql.adaptive.enabled", request.param)


def setting(spark: SparkSession, key: str, value: str) -> Iterator[str]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    yield value
    spark.conf.set(key, before)


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


COUNTS = {"b.parquet": 10, "a.parquet": 30_000, "d.parquet": 1, "c.parquet": 2_000, "e.parquet": 0}
DELETED = {"a.parquet": [*range(100, 9000, 3), 29_999], "d.parquet": [0], "b.parquet": []}


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
    chance, rows, start = random.Random(7), [], 0
    for name, count in {"b.parquet": 3000, "a.parquet": 5000, "c.parquet": 17}.items():
        ids = list(range(start, start + count))
        x = [None if chance.random() < 0.05 else chance.randrange(1000) for _ in ids]
        y = [None if chance.random() < 0.05 else f"{chance.randrange(10**6):06}" for _ in ids]
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
