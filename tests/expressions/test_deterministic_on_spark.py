"""The functions that keep a condition row-local are functions of Spark that it does not call non-deterministic."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from anabranch._expressions import DETERMINISTIC

pytestmark = pytest.mark.spark

OF_THE_GRAMMAR = {"timestampadd", "timestampdiff", "try_cast"}
"""They look like calls, and are none."""
ROWS_OR_TIME = {
    *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id", "aes_encrypt"),
    *("spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length", "current_user"),
    *("java_method", "reflect", "try_reflect", "raise_error", "assert_true", "count", "sum", "max", "first", "rank"),
    *("row_number", "lag", "explode", "posexplode", "inline", "stack", "window", "session_window", "localtimestamp"),
}
"""Functions that see more than the values of a row, or that Spark may leave out or move."""


def test_each_is_a_function_of_spark_that_gives_the_same_for_the_same_values(spark: SparkSession) -> None:
    known = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert DETERMINISTIC - known == OF_THE_GRAMMAR
    shown = {
        name: "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
        for name in sorted(DETERMINISTIC & known)
    }
    assert [name for name, text in shown.items() if "deterministic" in text.lower()] == []
    of_groups = ("expressions.aggregate.", "expressions.Window", "Generator")
    assert [name for name, text in shown.items() if any(each in text for each in of_groups)] == []


def test_none_sees_more_than_the_values_of_its_row() -> None:
    assert not DETERMINISTIC & ROWS_OR_TIME
