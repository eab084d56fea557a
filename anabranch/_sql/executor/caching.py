"""CACHE TABLE and UNCACHE TABLE: keep a table's rows in Spark's memory.

Guarantee: a statement reads cached rows only if they are those of the version that it reads.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.sessions.cached_rows import CachedRows, cache_rows, level_of, release
from anabranch._sql.executor import temporary_views
from anabranch._sql.executor.running import StatementContext, state_of
from anabranch._sql.grammar.statement_values import CacheTable, UncacheTable
from anabranch._sql.grammar.view_values import CacheView
from anabranch.commands.opening import file_set, open_log


def cache(statement: CacheTable, run: StatementContext) -> DataFrame:
    """CACHE TABLE; returns no rows.

    Raises:
        InvalidOption: there is no such storage level. ExecutionFailed, MissingDataFile: the rows cannot be read.
    """
    snapshot, level = run.snapshot(statement.table), level_of(statement.level)
    rows = run.engine.to_df(file_set(snapshot))
    cache_rows(run.spark, snapshot.table, CachedRows(*state_of(snapshot), rows, level))
    if not statement.lazy:
        try:
            with translate_errors("CACHE TABLE", snapshot.table, snapshot.version):
                rows.count()
        except BaseException:
            release(run.spark, snapshot.table)
            raise
    return run.nothing()


def cache_view(statement: CacheView, run: StatementContext) -> DataFrame:
    """CACHE TABLE of a query: a temporary view whose rows are cached until one of its tables changes.

    Returns no rows. Drops the view if its rows cannot be read.

    Raises:
        SqlAnalysisError, AnalysisException: as `temporary_views.create`.
        InvalidOption: there is no such storage level. ExecutionFailed, MissingDataFile: the rows cannot be read.
    """
    level = level_of(statement.level)
    temporary_views.create(statement.view, run)
    try:
        rows = temporary_views.keep(statement.view, level, run)
        if not statement.lazy:
            with translate_errors("CACHE TABLE", statement.view.name):
                rows.count()
    except BaseException:
        run.spark.catalog.dropTempView(statement.view.name)
        raise
    return run.nothing()


def uncache(statement: UncacheTable, run: StatementContext) -> DataFrame:
    """UNCACHE TABLE; returns no rows, and does nothing if the table is not cached."""
    release(run.spark, open_log(statement.table.location).table)
    return run.nothing()
