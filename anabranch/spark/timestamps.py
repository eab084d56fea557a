"""Timestamps: INT64 microseconds in every file, whatever the session says.

Knows how each version of Spark chooses between INT96, which has no statistics in the footer, and INT64. Guarantee: from
Spark 4.2 on no setting of the session is changed; before, one is set while a write runs, and restored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from anabranch.errors.process_state import PerObject, hold

SETTING = "spark.sql.parquet.outputTimestampType"
MICROS = "TIMESTAMP_MICROS"

OPTIONS = {SETTING: MICROS}
"""For the writer, which takes them from Spark 4.2 on. The name without its prefix has no effect in any version."""


@dataclass
class _Held:
    before: str
    writes: int = 0


_held: PerObject[SparkSession, _Held] = hold("timestamp settings", "they go when a write ends")(PerObject())


@contextmanager
def in_micros(spark: SparkSession) -> Iterator[None]:
    """Writes inside give INT64 timestamps, also before Spark 4.2, and also while other threads write."""
    if _option_counts(spark.version):
        yield
        return
    _hold(spark)
    try:
        yield
    finally:
        _release(spark)


def _option_counts(version: str) -> bool:
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (4, 2)


def _hold(spark: SparkSession) -> None:
    with _held.lock:
        held = _held.setdefault(spark, _Held(str(spark.conf.get(SETTING))))
        held.writes += 1
        spark.conf.set(SETTING, MICROS)


def _release(spark: SparkSession) -> None:
    """Only the last of several writes puts the setting back: Spark looks at it when a job starts."""
    with _held.lock:
        held = _held[spark]
        held.writes -= 1
        if held.writes == 0:
            del _held[spark]
            spark.conf.set(SETTING, held.before)
