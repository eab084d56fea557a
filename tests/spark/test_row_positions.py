"""Bitmaps to columns and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch.spark import row_positions
from anabranch.spark.row_positions import bitmap, file_keys, is_marked, rows_of, words_of

ROWS = st.sets(st.integers(0, 300_000), max_size=200)


@given(ROWS)
def test_words_hold_the_rows(rows: set[int]) -> None:
    words = words_of(BitMap64(rows))
    assert BitMap64(rows) == rows_of(np.arange(len(words)), words)


@given(ROWS)
def test_a_row_is_one_bit_of_one_word(rows: set[int]) -> None:
    words = words_of(BitMap64(rows)).view(np.uint64)
    assert all(int(words[row // 64]) >> (row % 64) & 1 for row in rows)
    assert sum(int(word).bit_count() for word in words) == len(rows)


@given(st.dictionaries(st.integers(0, 2**40), st.integers(-(2**63), 2**63 - 1).filter(bool), max_size=20))
def test_words_that_come_back_with_their_numbers_are_the_rows_they_were(words: dict[int, int]) -> None:
    numbers = sorted(words)
    rows = rows_of(np.array(numbers, np.int64), np.array([words[n] for n in numbers], np.int64))
    assert set(rows) == {64 * n + bit for n in numbers for bit in range(64) if words[n] >> bit & 1}


def test_a_bitmap_of_no_rows_is_empty() -> None:
    assert bitmap(np.zeros(0, np.int64)) == BitMap64()
    assert len(words_of(BitMap64())) == 0


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
