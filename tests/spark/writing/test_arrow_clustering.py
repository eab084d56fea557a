"""Clustering by Arrow: the files that Spark makes along the same curve, and the same record of where rows came from."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch._arrow import clustering, orders, packing
from anabranch._arrow import places as arrow_places
from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.layout.curves import ORIGINS, Curve
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.rules.table_rules import Rules
from anabranch._protocol.schema.types import Field, Struct, to_arrow
from anabranch._spark.writing.arrow_clustering import try_cluster
from anabranch._spark.writing.relocating import cluster
from tests.spark.tables import file_row, file_set, numbered
from tests.spark.writing.test_arrow_packing import (
    PLAIN,
    assert_alike,
    assert_read_alike,
    files_in,
    keep_out,
    left_in,
    some,
    value_of,
)
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark


def any_rows(root: Path, runtime: random.Random) -> FileSet:
    """Files with a column of each type and a struct, of which the oldest lacks the last columns; some are deleted."""
    inside = Struct((Field("n", "long"), Field("t", "string")))
    fields = [*(Field(f"c{i}", kind) for i, kind in enumerate(PLAIN)), Field("s", inside)]
    rows, deleted = [], {}
    for number in range(3):
        there = fields if number else fields[:12]
        count = runtime.choice([1, 200, 900])
        data = {each.name: some(runtime, lambda k=each.type: value_of(runtime, k), count) for each in there}
        name = f"f{number}.parquet"
        rows.append(file_row(root, name, pa.table(data, to_arrow(Struct(tuple(there))))))
        deleted[name] = runtime.sample(range(count), count // runtime.choice([1, 3, 10]) if number else 0)
    return file_set(root, rows, Struct(tuple(fields)), deleted=deleted)


@pytest.mark.parametrize("seed", range(10))
def test_arrow_makes_the_files_that_spark_makes(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Along one column or more of any type, of all rows or of a sample: files, numbers, order and origins."""
    runtime = random.Random(seed)
    files = any_rows(tmp_path, runtime)
    if runtime.random() < 0.3:
        keep_out(monkeypatch)
    monkeypatch.setattr(clustering, "SAMPLE_ROWS", runtime.choice([100, 1 << 16]))
    monkeypatch.setattr(clustering, "SAMPLE_ROWS_PER_OUTPUT", 1)
    names = [*(f"c{i}" for i in range(len(PLAIN))), "s.n", "s.t"]
    curve = Curve(tuple(runtime.sample(names, runtime.choice([1, 2, 4]))), runtime.choice(["zorder", "hilbert"]))
    outputs = runtime.choice([1, 3, 8])
    cluster(spark, files, curve, outputs, "native", "native_moves")
    assert try_cluster(spark, files, curve, outputs, "arrow", "arrow_moves")
    theirs = {number(each): each for each in files_in(tmp_path, "native") if pq.read_metadata(each).num_rows}
    ours = {number(each): each for each in files_in(tmp_path, "arrow")}
    assert ours.keys() == theirs.keys()
    for which, file in ours.items():
        assert_alike(file, theirs[which], files)
        origins = [origins_of(tmp_path / f"{side}_moves", which) for side in ("arrow", "native")]
        assert origins[0].equals(origins[1])
    for which in few_of(sorted(ours), 1):
        assert_read_alike(spark, ours[which], theirs[which])
    assert {path.parent.name for path in left_in(tmp_path, "arrow")} == {"arrow"}


def number(file: Path) -> int:
    return int(file.name.removeprefix("part-")[:5])


def origins_of(folder: Path, which: int) -> pa.Table:
    [file] = folder.glob(f"part-{which:05d}-*.parquet")
    return pq.read_table(file).select(ORIGINS.names).cast(pa.schema([each.with_nullable(True) for each in ORIGINS]))


def test_more_rows_than_may_be_in_memory_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = any_rows(tmp_path, random.Random(1))
    for limit in ("MOST_BYTES", "MOST_FILE_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(clustering, limit, 100)
            assert not try_cluster(spark, files, Curve(("c1",), "zorder"), 2, "job", "moves")
    assert not left_in(tmp_path, "job")
    assert not left_in(tmp_path, "moves")


@pytest.mark.parametrize("small", [True, False], ids=["here", "on executors"])
def test_what_is_not_alike_is_left_to_spark_whole(
    spark: SparkSession, tmp_path: Path, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        keep_out(monkeypatch)
    table = pa.table({"v": [1.0, float("nan")]})
    files = file_set(tmp_path, [file_row(tmp_path, "a.parquet", table)], table.schema)
    assert not try_cluster(spark, files, Curve(("v",), "zorder"), 1, "job", None)
    assert not try_cluster(spark, files, Curve(("w",), "zorder"), 1, "job", None)
    assert not left_in(tmp_path, "job")


def test_files_that_may_have_few_rows_only_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    files = replace(numbered(tmp_path, {"a.parquet": 9}), rules=Rules(most_rows=4))
    assert not try_cluster(spark, files, Curve(("id",), "zorder"), 1, "job", None)
    assert not left_in(tmp_path, "job")


def test_an_attempt_that_fails_at_its_second_file_leaves_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, real, done = any_rows(tmp_path, random.Random(2)), orders.write_batches, []

    def failing(path: str, task: Any, batches: Any) -> int:
        if done:
            raise OSError("no space left")
        done.append(path)
        return real(path, task, batches)

    monkeypatch.setattr(orders, "write_batches", failing)
    assert not try_cluster(spark, files, Curve(("c1",), "zorder"), 3, "job", "moves")
    assert done
    assert not left_in(tmp_path, "job")
    assert not left_in(tmp_path, "moves")


def test_what_cannot_be_taken_over_whole_is_not_taken_over(tmp_path: Path) -> None:
    """As where an executor has another disk than the driver."""
    (tmp_path / "here").write_bytes(b"rows")
    wanted = {str(tmp_path / "here"): str(tmp_path / "a"), str(tmp_path / "elsewhere"): str(tmp_path / "b")}
    assert not packing.rename_all(wanted)
    assert not [*tmp_path.iterdir()]


def test_numbers_are_hashed_as_by_spark(spark: SparkSession) -> None:
    numbers = [0, 1, -1, 2**63 - 1, -(2**63), 1 << 40, 123456789]
    rows = spark.createDataFrame([(each,) for each in numbers], "n long").select(F.xxhash64("n").alias("h")).collect()
    assert arrow_places.xxhash64(np.array(numbers, np.int64)).tolist() == [row["h"] for row in rows]


def test_ids_of_rows_go_with_them(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"v": [3, 1, 2]})
    row = {**file_row(tmp_path, "a.parquet", table), "baseRowId": 10, "defaultRowCommitVersion": 4}
    files = replace(file_set(tmp_path, [row], table.schema), tracked=HiddenColumns("hidden_id", "hidden_version"))
    assert try_cluster(spark, files, Curve(("v",), "zorder"), 1, "job", None)
    [file] = files_in(tmp_path, "job")
    assert pq.ParquetFile(file).read().to_pydict() == {
        "v": [1, 2, 3],
        "hidden_id": [11, 12, 10],
        "hidden_version": [4, 4, 4],
    }
