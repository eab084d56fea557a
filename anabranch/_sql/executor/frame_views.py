"""Views of DataFrames: which table's rows a temporary view shows that was made of a DataFrame.

Spark knows no table behind such a view, so a change of its rows fails with Java's words, or names what it is not.
Guarantee: a table is named only where the view shows every row and every column of it, as the version that was the
newest when it was read had them; what is in doubt is no table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog import entries
from anabranch._catalog.names import name_to_sql, parts_of
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
    """The URL of the table whose rows a temporary view of a DataFrame shows, all of them."""
    if not entries.is_temporary(spark, name):
        return None
    try:
        return find_whole_table(_rows(spark, name), _table_id_and_types)
    except (AnabranchError, PySparkException):  # the table is gone, or its columns are not read here
        return None


def _rows(spark: SparkSession, name: Name) -> DataFrame:
    return exact_sql(spark, f"TABLE {'.'.join(map(quote_identifier, name))}")


def _table_id_and_types(root: str) -> tuple[str, Mapping[str, str]]:
    now = open_log(root).snapshot()
    return now.metadata.id, {each.name: spark_type(each.type).simpleString() for each in now.schema}


def is_of_frame(spark: SparkSession, name: Name) -> bool:
    """Whether a name is that of a temporary view that reads, somehow, a DataFrame of a table's rows."""
    if not entries.is_temporary(spark, name):
        return False
    try:
        return has_our_frame(printed_plan(_rows(spark, name)))
    except PySparkException:
        return False


def find_view(spark: SparkSession, identifier: str) -> tuple[Name, str] | None:
    """The name of a temporary view, however it was made, and the table whose rows it shows as they are; None where it
    is no view of Delta tables.

    Raises:
        ViewIsNoTable: it shows anything else of them.
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
    """Let a view whose table was changed by its name show that from now on, as one that was created in SQL does, unless
    it has become another view meanwhile. What was changed is committed: a failure is logged.
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
