"""Views of DataFrames: finds the table whose rows a temporary view of a DataFrame shows.

Spark knows no table behind such a view, so a change of its rows fails with an unreadable or misleading error.
Guarantee: a table is reported only if the view shows all rows and columns of the version that was the newest when it
was read; in doubt none is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog import entries
from anabranch._catalog.table_names import name_to_sql, parts_of
from anabranch._spark.columns.types import quote_identifier, spark_type
from anabranch._spark.frames.dataframe_source import find_whole_table, has_our_frame, printed_plan
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch._sql.executor import temporary_views
from anabranch._sql.executor.running import Running
from anabranch._sql.grammar.parts import Query, Reference, Table
from anabranch._sql.grammar.view_values import CreateTempView
from anabranch.commands.opening import open_log
from anabranch.errors import AnabranchError, ViewIsNoTable

Name = tuple[str, ...]
_logger = logging.getLogger("anabranch")


def table_of(spark: SparkSession, name: Name) -> str | None:
    """Return the URL of the table of which a temporary view of a DataFrame shows all rows; None if there is none."""
    if not entries.is_temporary(spark, name):
        return None
    try:
        return find_whole_table(_rows(spark, name), _table_id_and_types)
    except (AnabranchError, PySparkException):  # the table is gone, or a column has an unsupported type
        return None


def _rows(spark: SparkSession, name: Name) -> DataFrame:
    return exact_sql(spark, f"TABLE {'.'.join(map(quote_identifier, name))}")


def _table_id_and_types(root: str) -> tuple[str, Mapping[str, str]]:
    now = open_log(root).snapshot()
    return now.metadata.id, {field.name: spark_type(field.type).simpleString() for field in now.schema}


def is_of_frame(spark: SparkSession, name: Name) -> bool:
    """Whether a name is that of a temporary view that reads a DataFrame of a table's rows, directly or not."""
    if not entries.is_temporary(spark, name):
        return False
    try:
        return has_our_frame(printed_plan(_rows(spark, name)))
    except PySparkException:
        return False


def find_view(spark: SparkSession, identifier: str) -> tuple[Name, str] | None:
    """Return the name of a temporary view, however it was created, and the table that it shows unchanged.

    Returns None if it is no view of Delta tables.

    Raises:
        ViewIsNoTable: it shows anything else of Delta tables.
    """
    name = parts_of(identifier) if isinstance(identifier, str) else None
    if name is None or not entries.is_temporary(spark, name):
        return None
    is_ours = temporary_views.is_ours(spark, name)
    location = temporary_views.table_behind_view(spark, name) if is_ours else table_of(spark, name)
    if location is None and (is_ours or is_of_frame(spark, name)):
        raise ViewIsNoTable(name=name_to_sql(name))
    return None if location is None else (name, str(location))


def follow(run: Running, name: Name, location: str) -> None:
    """Make a view follow its table, as views created in SQL do, after a statement changed the table by the view's name.

    Does nothing if the view was replaced meanwhile. The change is already committed, so a failure is only logged.
    """
    text = f"SELECT * FROM delta.{quote_identifier(location)}"
    read = Reference(Table(location, ("delta", location)), len("SELECT * FROM "), len(text), takes_alias=True)
    is_global = len(name) > 1
    view = CreateTempView(name[-1], Query(text, (read,)), replaces=True, is_global=is_global)
    try:
        if table_of(run.spark, name) == location:
            temporary_views.create(view, Running(run.spark))
    except (AnabranchError, PySparkException) as error:
        _logger.warning("The view %s still shows its table as it was: %s", name[-1], type(error).__name__)
