"""Writes timestamps as INT64 microseconds in every file, whatever the session's settings.

Knows how each version of Spark chooses between INT96, which has no statistics in the footer, and INT64. Guarantee: from
Spark 4.2 on no setting of the session is changed; before, one is set while a write runs, and restored.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import SparkSession

from anabranch._spark.sessions.setting_overrides import override_setting

SETTING = "spark.sql.parquet.outputTimestampType"
MICROS = "TIMESTAMP_MICROS"

OPTIONS = {SETTING: MICROS}
"""Options for the writer, which accepts them from Spark 4.2 on. The name without its prefix has no effect in any
version.
"""


def in_micros(spark: SparkSession) -> AbstractContextManager[None]:
    """Within the block, writes use INT64 timestamps, also before Spark 4.2 and while other threads write."""
    return nullcontext() if _option_counts(spark.version) else override_setting(spark, SETTING, MICROS)


def _option_counts(version: str) -> bool:
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (4, 2)
