"""What Arrow could not do goes to Spark, but for what was cancelled."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from anabranch._spark.frames.fallback import try_first
from anabranch.errors import NotBuilt


def test_what_was_cancelled_is_not_left_to_spark() -> None:
    def cancelled() -> None:
        raise PySparkException("[SPARK_JOB_CANCELLED] Job 1 cancelled as part of cancellation of all jobs")

    with pytest.raises(PySparkException):
        try_first(cancelled)


def test_a_word_in_an_error_of_ours_cancels_nothing() -> None:
    def refused() -> None:
        raise NotBuilt(what="checking status <> 'cancelled'", instead="Interrupted.")

    assert try_first(refused) is None
