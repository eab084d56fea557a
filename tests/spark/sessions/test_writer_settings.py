"""Whether Arrow may write what the session's own writer would."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from anabranch._spark.sessions.writer_settings import are_plain, may_be_plain

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("setting", "value"), [("parquet.page.size", "1048576"), ("spark.sql.parquet.writeLegacyFormat", "true")]
)
def test_of_a_session_that_was_not_plain_it_is_asked_before_rows_are_computed(
    spark: SparkSession, setting: str, value: str
) -> None:
    assert are_plain(spark)
    spark.conf.set(setting, value)
    try:
        assert may_be_plain(spark)  # nobody has asked since
        assert not are_plain(spark)
        assert not may_be_plain(spark)
    finally:
        spark.conf.unset(setting)
    assert may_be_plain(spark)
    assert are_plain(spark)
