"""INT64 timestamps on old versions of Spark too, with the session left as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from anabranch._spark.sessions.timestamps import MICROS, SETTING, in_micros


@pytest.fixture
def int96(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, "INT96")
    yield spark
    spark.conf.set(SETTING, str(before))


def is_of(version: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the session say that Spark is of this version."""
    monkeypatch.setitem(vars(spark), "version", version)  # where PySpark keeps it


@pytest.mark.spark
@pytest.mark.parametrize("version", ["4.2.0", "5.0.0.dev1"])
def test_new_versions_leave_the_session_alone(
    version: str, int96: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_of(version, int96, monkeypatch)
    with in_micros(int96):
        assert int96.conf.get(SETTING) == "INT96"


@pytest.mark.spark
@pytest.mark.parametrize("version", ["4.0.5", "4.1.4"])
def test_old_versions_get_the_setting_while_any_write_runs(
    version: str, int96: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_of(version, int96, monkeypatch)
    first, second = in_micros(int96), in_micros(int96)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert int96.conf.get(SETTING) == MICROS
    second.__exit__(None, None, None)
    assert int96.conf.get(SETTING) == "INT96"


@pytest.mark.spark
def test_a_write_that_fails_puts_the_setting_back(int96: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    is_of("4.1.4", int96, monkeypatch)
    with pytest.raises(InterruptedError), in_micros(int96):
        raise InterruptedError
    assert int96.conf.get(SETTING) == "INT96"
