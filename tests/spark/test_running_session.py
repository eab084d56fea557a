"""Which session `anabranch.session` gives, where one runs already."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch._spark.sessions.session import build

pytestmark = pytest.mark.spark


def test_the_session_of_a_batch_that_is_over_is_not_taken_for_the_running_one(spark: SparkSession) -> None:
    """PySpark calls the session active that made the last frame; a batch's may say that a write was done before."""
    first, batch = SparkSession.builder.getOrCreate(), spark.newSession()
    batch.conf.set("spark.databricks.delta.write.txnAppId", "gold")
    try:
        batch.createDataFrame([(1,)], "id int")
        assert SparkSession.getActiveSession() is batch
        assert build() is first
        assert anabranch.session("another") is first
    finally:
        spark.createDataFrame([(1,)], "id int")
        anabranch.uninstall(first)


def test_settings_are_given_to_the_running_session(spark: SparkSession) -> None:
    first, name = SparkSession.builder.getOrCreate(), "spark.sql.shuffle.partitions"
    before = first.conf.get(name)
    try:
        assert build(conf={name: "3"}) is first
        assert first.conf.get(name) == "3"
    finally:
        first.conf.set(name, str(before))
