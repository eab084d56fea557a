"""Tells which function names refer to Spark's own functions."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_OWN = "org.apache.spark.sql.catalyst.expressions."


def are_builtin(spark: SparkSession, names: Iterable[str]) -> bool:
    """Whether each of these function names, in SQL text, refers to Spark's own function and not to a user's.

    Up to Spark 4.2 a registered function hides Spark's own of that name, and ``SHOW USER FUNCTIONS`` does not list it;
    the class behind the name shows which one it is. A Column that calls an unregistered Python function of the name is
    not recognised.
    """
    return all(_class_of(spark, name).startswith(_OWN) for name in names)


def _class_of(spark: SparkSession, name: str) -> str:
    try:
        return str(spark.catalog.getFunction(name).className)
    except PySparkException:  # there is no such function
        return ""
