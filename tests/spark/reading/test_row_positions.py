"""Rows by file and position, tested in Spark."""

from __future__ import annotations

import pytest
from pyroaring import BitMap64
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch._spark.reading import row_positions
from anabranch._spark.reading.row_positions import file_keys, is_marked


def test_names_whose_checksums_are_alike_keep_apart() -> None:
    keys, _ = file_keys(["plumless", "buckeroo"])  # both have the CRC-32 4ddb0c25
    assert keys.to_pylist() == ["plumless", "buckeroo"]


@pytest.mark.spark
@pytest.mark.parametrize("way", ["in the plan", "by a join"])
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("names", [["a", "b"], ["plumless", "buckeroo"]])
def test_marked_rows_are_those_of_the_bitmaps(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, way: str, ansi: str, names: list[str]
) -> None:
    monkeypatch.setattr(row_positions, "IN_PLAN_FILES", 64 if way == "in the plan" else 0)
    rows = [(name, i) for name in names for i in (0, 1, 63, 64, 127, 128, 5000, 2**33)]
    marks = {names[0]: BitMap64([0, 63, 64]), names[1]: BitMap64([127, 128])}
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame, marked = is_marked(spark, spark.createDataFrame(rows, "f string, i long"), "f", "i", marks)
        assert {(r["f"], r["i"]) for r in frame.filter(marked).collect()} == {
            (names[0], 0),
            (names[0], 63),
            (names[0], 64),
            (names[1], 127),
            (names[1], 128),
        }
        assert frame.filter(~marked).count() == len(rows) - 5
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.spark
@pytest.mark.parametrize("ways", [64, 0])
def test_a_row_of_an_unknown_file_stops_the_query(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, ways: int
) -> None:
    monkeypatch.setattr(row_positions, "IN_PLAN_FILES", ways)
    rows = spark.createDataFrame([("a", 0), ("stranger", 0)], "f string, i long")
    frame, marked = is_marked(spark, rows, "f", "i", {"a": BitMap64([5])})
    with pytest.raises(PySparkException, match="does not know the file stranger"):
        frame.filter(~marked).collect()
