"""INT64 timestamps on old versions of Spark too, with the session left as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from anabranch.spark import timestamps
from anabranch.spark.timestamps import MICROS, SETTING, in_micros


@pytest.fixture
def int96(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, "INT96")
    yield spark
    spark.conf.set(SETTING, str(before))


@pytest.mark.parametrize(
    ("version", "counts"), [("4.0.5", False), ("4.1.4", False), ("4.2.0", True), ("5.0.0.dev1", True)]
)
def test_the_writers_option_counts_since_4_2(version: str, counts: bool) -> None:
    assert timestamps._option_counts(version) is counts


@pytest.mark.spark
def test_new_versions_leave_the_session_alone(int96: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamps, "_option_counts", lambda version: True)
    with in_micros(int96):
        assert int96.conf.get(SETTING) == "INT96"


@pytest.mark.spark
def test_old_versions_get_the_setting_while_any_write_runs(
    int96: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timestamps, "_option_counts", lambda version: False)
    first, second = in_micros(int96), in_micros(int96)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert int96.conf.get(SETTING) == MICROS
    second.__exit__(None, None, None)
    assert int96.conf.get(SETTING) == "INT96"


@pytest.mark.spark
def test_a_write_that_fails_puts_the_setting_back(int96: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamps, "_option_counts", lambda version: False)
    with pytest.raises(InterruptedError), in_micros(int96):
        raise InterruptedError
    assert int96.conf.get(SETTING) == "INT96"
