"""Views of DataFrames: finds the table whose rows a temporary view of a DataFrame shows, by its plan.

Guarantee: a table is reported only if the view shows all rows and columns of the version that was the newest when it
was read; in doubt none is.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog import entries
from anabranch._catalog.table_names import Name, name_to_sql
from anabranch._spark.columns.types import spark_type
from anabranch._spark.frames.dataframe_source import find_whole_table, has_our_frame, printed_plan
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError


def table_of(spark: SparkSession, name: Name) -> str | None:
    """Return the URL of the table of which a temporary view of a DataFrame shows all rows; None if there is none."""
    if not entries.is_temporary(spark, name):
        return None
    try:
        return find_whole_table(rows_of(spark, name), _table_id_and_types)
    except (AnabranchError, PySparkException):  # the table is gone, or a column has an unsupported type
        return None


def is_of_frame(spark: SparkSession, name: Name) -> bool:
    """Whether a name is that of a temporary view that reads a DataFrame of a table's rows, directly or not."""
    if not entries.is_temporary(spark, name):
        return False
    try:
        return has_our_frame(printed_plan(rows_of(spark, name)))
    except PySparkException:
        return False


def rows_of(spark: SparkSession, name: Name) -> DataFrame:
    """Return the rows of a temporary view as Spark reads it, however it was created."""
    return exact_sql(spark, f"TABLE {name_to_sql(name)}")


def _table_id_and_types(root: str) -> tuple[str, Mapping[str, str]]:
    now = open_log(root).snapshot()
    return now.metadata.id, {field.name: spark_type(field.type).simpleString() for field in now.schema}
