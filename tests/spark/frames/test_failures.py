"""What Spark says of a failure is told in its own sentence, with no word of what carries it to Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._protocol.merges import Clause
from anabranch._spark.frames.failures import reason_of, translate_errors
from anabranch._spark.merging.merge_clauses import text_of
from anabranch.errors import ExecutionFailed, InvalidCondition
from tests.support.cancelled import Hanging

pytestmark = pytest.mark.spark


def test_a_job_that_is_cancelled_says_so(spark: SparkSession, tmp_path: Path) -> None:
    hanging = Hanging(tmp_path)
    hangs = F.udf(hanging.function, "long")
    with hanging.cancelled(spark), pytest.raises(ExecutionFailed) as failed, translate_errors("the rows", "/t"):
        spark.range(1).select(hangs("id")).collect()
    assert "cancelled" in failed.value.reason
    assert "calling o" not in failed.value.reason
    assert "org.apache" not in failed.value.reason


def test_a_column_that_cannot_be_computed_is_shown_as_what_it_stands_for(spark: SparkSession, tmp_path: Path) -> None:
    anabranch.append(tmp_path, [{"id": 1}])
    table, fails = DeltaTable.forPath(spark, str(tmp_path)), F.raise_error(F.lit("no")).cast("long")
    with pytest.raises(ExecutionFailed) as in_update:
        table.update(set={"id": fails + F.col("id") * 0})
    assert in_update.value.facts["what"] == "id = +(CAST(raise_error('no') AS BIGINT), *(id, 0))"
    clause = Clause("matched", "update", F.expr("true"), {"id": fails})
    assert text_of(clause) == "WHEN MATCHED AND true THEN UPDATE id = CAST(raise_error('no') AS BIGINT)"


def test_a_column_that_is_bound_to_a_dataframe_is_refused_with_the_way_out(spark: SparkSession, tmp_path: Path) -> None:
    anabranch.append(tmp_path, [{"id": 1}])
    table = DeltaTable.forPath(spark, str(tmp_path))
    bound = table.toDF()["id"]
    for work in (lambda: table.update(set={"id": bound + 1}), lambda: table.delete(bound % 2 == 1)):
        with pytest.raises(InvalidCondition, match=r"bound to a DataFrame.*F\.col\('id'\)"):
            work()
    assert table.toDF().collect() == [(1,)]


def test_the_reason_of_a_function_that_fails_is_its_own_error() -> None:
    traceback = 'Traceback (most recent call last):\n  File "job.py", line 20, in fails\nValueError: no 0 here\n'
    on_connect = f"\n  An exception was thrown from the Python worker.\n[PYTHON_EXCEPTION] {traceback} SQLSTATE: 38000"
    assert reason_of(PythonException(traceback)) == "ValueError: no 0 here."
    assert reason_of(PythonException(on_connect)) == "ValueError: no 0 here."


@pytest.mark.parametrize("error", [DecodeError("Exceeded upb_DecodeOptions_MaxDepth"), RecursionError()])
def test_a_column_that_a_client_cannot_write_down_is_nested_too_deep(error: Exception) -> None:
    with (
        pytest.raises(InvalidCondition, match="nested deeper") as refused,
        translate_errors("not(" * 5000, "the table"),
    ):
        raise error
    assert len(str(refused.value)) < 1000


def test_an_error_of_anybody_else_stays_what_it_is() -> None:
    with pytest.raises(KeyError), translate_errors("id = 1", "the table"):
        raise KeyError("id")
