"""Changes of rows by the name of a temporary view.

A change goes to the table that the view shows unchanged: all rows, all columns by name. Any other view of Delta tables
takes no change, and `ViewIsNoTable` is raised, since Spark's own error is unreadable or misleading. A view that SQL
created shows the change when it is next named (`anabranch._sql.executor.temporary_views`); one of a DataFrame becomes
such a view after the change (`follow`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch._catalog import entries
from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch._expressions.dialect import TokenizedText, tokenize
from anabranch._expressions.error_pointer import excerpt
from anabranch._spark.columns.types import quote_identifier
from anabranch._sql.executor import frame_views, temporary_views
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.executor.session_views import SessionView, ViewOverViews
from anabranch._sql.grammar.change_target import ChangeTarget, find_change_target
from anabranch._sql.grammar.parts import Query, Reference, Table
from anabranch._sql.grammar.view_values import CreateTempView
from anabranch.commands.opening import Location, open_log
from anabranch.errors import AnabranchError, ViewIsNoTable

_logger = logging.getLogger("anabranch")


@dataclass(frozen=True)
class ShownTable:
    """The table that a temporary view shows unchanged.

    Attributes:
        location: the table's.
        of_frame: whether the view is one of a DataFrame, which keeps the rows that it has.
    """

    location: Location
    of_frame: bool


def find_table(spark: SparkSession, name: Name) -> ShownTable | None:
    """Find the table that a temporary view shows unchanged, however it was created; None if it shows anything else."""
    view = temporary_views.find(spark, name)
    location = frame_views.table_of(spark, name) if view is None else _table_of_query(spark, view)
    return None if location is None else ShownTable(location, of_frame=view is None)


def find_view(spark: SparkSession, identifier: str) -> tuple[Name, str] | None:
    """Return the name of a temporary view, however it was created, and the table that it shows unchanged.

    Returns None if it is no view of Delta tables.

    Raises:
        ViewIsNoTable: it shows anything else of Delta tables.
    """
    name = parts_of(identifier) if isinstance(identifier, str) else None
    if name is None or not entries.is_temporary(spark, name):
        return None
    shown = find_table(spark, name)
    if shown is None and _shows_tables(spark, name):
        raise ViewIsNoTable(name=name_to_sql(name))
    return None if shown is None else (name, str(shown.location))


def changes_our_view(spark: SparkSession, source: TokenizedText) -> bool:
    """Whether a statement would change rows of a view that `temporary_views` knows."""
    target = find_change_target(source)
    return target is not None and temporary_views.find(spark, target.name) is not None


def check_target(spark: SparkSession, source: TokenizedText) -> None:
    """Check that a statement for Spark changes no rows of a temporary view over Delta tables.

    Raises:
        ViewIsNoTable: it changes such rows.
    """
    target = find_change_target(source)
    if target is not None and _shows_tables(spark, target.name):
        raise _view_error(source, target)


def find_cause(spark: SparkSession, source: TokenizedText) -> ViewIsNoTable | None:
    """Return the error of a statement that failed inside Spark, if it changes rows of any temporary view; else None."""
    target = find_change_target(source)
    if target is None or not entries.is_temporary(spark, target.name):
        return None
    return _view_error(source, target)


def follow(run: StatementContext, name: Name, location: str) -> None:
    """Make a view follow its table, as views created in SQL do, after a statement changed the table by the view's name.

    Does nothing if the view was replaced meanwhile. The change is already committed, so a failure is only logged.
    """
    text = f"SELECT * FROM delta.{quote_identifier(location)}"
    read = Reference(Table(location, ("delta", location)), len("SELECT * FROM "), len(text), takes_alias=True)
    is_global = len(name) > 1
    view = CreateTempView(name[-1], Query(text, (read,)), replaces=True, is_global=is_global)
    try:
        if frame_views.table_of(run.spark, name) == location:
            temporary_views.create(view, StatementContext(run.spark))
    except (AnabranchError, PySparkException) as error:
        _logger.warning("The view %s still shows its table as it was: %s", name[-1], type(error).__name__)


def _view_error(source: TokenizedText, target: ChangeTarget) -> ViewIsNoTable:
    return ViewIsNoTable(name=name_to_sql(target.name), excerpt=excerpt(source.text, *target.span))


def _shows_tables(spark: SparkSession, name: Name) -> bool:
    """Whether a temporary view reads Delta tables, however it was created."""
    return temporary_views.find(spark, name) is not None or frame_views.is_of_frame(spark, name)


def _table_of_query(spark: SparkSession, view: SessionView) -> Location | None:
    """Return the location of the table that the query of a view shows unchanged; None for any other query."""
    if isinstance(view, ViewOverViews) or view.statement.columns is not None:
        return None
    location = _whole_table_location(temporary_views.current_query(view, spark))
    is_whole = location is not None and open_log(location).snapshot().schema.names == view.output
    return location if is_whole else None


def _whole_table_location(query: Query) -> Location | None:
    """Return the location of the table whose newest version a query reads whole; None for any other query."""
    if len(query.references) != 1:
        return None
    (read,) = query.references
    details = (read.table.version, read.table.timestamp, read.changes, read.view)
    before = [token.text.upper() for token in tokenize(query.text[: read.start])]
    is_whole = before == ["SELECT", "*", "FROM"] and not query.text[read.stop :].strip()
    return read.table.location if is_whole and all(detail is None for detail in details) else None
