"""Temporary views of queries on Delta tables, which follow their tables.

Spark keeps a temporary view of a DataFrame at the versions that the DataFrame reads. So `create` remembers the view's
query (`anabranch._sql.executor.session_views`), and `renew` recreates the view from it before a statement that names
it runs, unless it would show the same. Guarantees: the statement and its views read a table at one version, unless
another thread recreates the same view of the session in between; a view that was replaced or dropped by other means is
left alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog import entries
from anabranch._catalog.table_names import OURS, Name, name_to_sql
from anabranch._expressions.dialect import TokenizedText, tokenize
from anabranch._spark.columns.types import column, quote_identifier
from anabranch._spark.sessions.sql_text import verbatim
from anabranch._sql.executor.error_position import of_spark
from anabranch._sql.executor.frame_views import rows_of
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import StatementContext, state_of
from anabranch._sql.executor.session_views import (
    SESSION_VIEWS,
    SessionView,
    SessionViews,
    TableView,
    ViewOverViews,
    ViewState,
    dependencies_first,
    find_new_view,
    fold_case,
    names_read,
    tokens_if_named,
    view_name,
    would_read_itself,
)
from anabranch._sql.grammar.parts import Query, Reference, View
from anabranch._sql.grammar.view_values import CreateTempView
from anabranch.errors import UnknownTable


def create(statement: CreateTempView, run: StatementContext) -> DataFrame:
    """Create a temporary view that follows its tables; returns no rows.

    A view that reads a view of its own name is created, but stays as it is.

    Raises:
        SqlSyntaxError, SqlAnalysisError: Spark cannot parse or analyse its query.
        AnalysisException: Spark's: a view of this name exists.
    """
    rows = run.query(statement.query)
    output = tuple(rows.columns)
    if statement.columns is not None:
        with of_spark(statement.query, run.spark):
            rows = rows.toDF(*statement.columns)
    _register(rows, statement, run.spark)
    _remember(statement, output, run.spark)
    return run.nothing()


def keep(statement: CreateTempView, level: StorageLevel, run: StatementContext) -> DataFrame:
    """Cache the rows of a view that was just created, until one of its tables changes; returns these rows."""
    name = view_name(statement)
    with SESSION_VIEWS.lock:
        views = SESSION_VIEWS[run.spark]
        view = views.get(name)
        if isinstance(view, TableView):
            state = _current_state(views, view, current_query(view, run.spark), run, is_cached=True)
            views[name] = replace(view, level=level, state=state)
    return rows_of(run.spark, name).persist(level)


def renew(run: StatementContext, source: TokenizedText) -> None:
    """Bring the views that a statement names to the newest versions of their tables.

    Raises:
        NotATable, SqlAnalysisError: a table of a view is gone, or lacks a column that the view shows.
    """
    views = SESSION_VIEWS.get(run.spark, {})
    tokens = tokens_if_named(views, source)
    if not tokens:
        return
    names = names_read(tokens)
    with SESSION_VIEWS.lock:
        for name in dependencies_first(views, names):
            view = views[name]
            if isinstance(view, TableView):
                _renew_view(views, name, view, run)


def note(spark: SparkSession, source: TokenizedText) -> None:
    """Remember a view over views here if Spark has just created one by a statement of its own."""
    views = SESSION_VIEWS.get(spark, {})
    tokens = tokens_if_named(views, source)
    name = find_new_view(tokens)
    if name is None:
        return
    reads = names_read(tokens)
    with SESSION_VIEWS.lock:
        views.pop(name, None)
        if not would_read_itself(views, name, reads) and reads & views.keys():
            views[name] = ViewOverViews(reads)


def find(spark: SparkSession, name: Name) -> SessionView | None:
    """Return what is remembered of a view; None if it is not ours, or was replaced or dropped by other means."""
    folded = fold_case(name)
    view = SESSION_VIEWS.get(spark, {}).get(folded)
    is_current = not isinstance(view, TableView) or _fingerprint(spark, folded) == view.fingerprint
    return view if is_current else None


def current_query(view: TableView, spark: SparkSession) -> Query:
    """Return a view's query, with the tables and persistent views that the names in it mean now.

    Raises:
        UnknownTable: a table is gone, or is no Delta table any more.
    """
    query, names = view.statement.query, Names(spark)
    pairs = zip(query.references, view.tables, strict=True)
    return replace(query, references=tuple(_rebind(reference, full_name, names) for reference, full_name in pairs))


# -- remembering -------------------------------------------------------------------------------------------------------


def _remember(statement: CreateTempView, output: tuple[str, ...], spark: SparkSession) -> None:
    """Remember a view that was just created, unless it would read itself once it is recreated."""
    name, references = view_name(statement), statement.query.references
    reads = names_read(tokenize(statement.query.text)) - {fold_case(reference.table.name) for reference in references}
    with SESSION_VIEWS.lock:
        views = SESSION_VIEWS.setdefault(spark, {})
        views.pop(name, None)
        if not would_read_itself(views, name, reads):
            tables = tuple(_full_name(reference, spark) for reference in references)
            views[name] = TableView(statement, tables, reads, output, _fingerprint(spark, name))


def _full_name(reference: Reference, spark: SparkSession) -> Name | None:
    """Return the full name of the table or view that is read; None if it is read by its path."""
    if reference.view is not None:
        return reference.view.name
    name = reference.table.name
    is_path = len(name) == 2 and name[0].lower() in OURS
    return None if is_path else entries.complete_name(spark, name)


def _rebind(reference: Reference, full_name: Name | None, names: Names) -> Reference:
    if full_name is None:
        return reference
    current = names.location(full_name)
    if current is None:
        raise UnknownTable(name=name_to_sql(full_name))
    if isinstance(current, View):
        return replace(reference, view=current)
    return replace(reference, view=None, table=replace(reference.table, location=current))


# -- renewing ----------------------------------------------------------------------------------------------------------


def _renew_view(views: SessionViews, name: Name, view: TableView, run: StatementContext) -> None:
    """Recreate a view unless it would show the same; forget it if it was replaced or dropped by other means."""
    if _fingerprint(run.spark, name) != view.fingerprint:
        del views[name]
        return
    is_uncached = view.state is not None and not _has_cached_rows(run.spark, name)  # by the user
    level = None if is_uncached else view.level
    query = current_query(view, run.spark)
    state = _current_state(views, view, query, run, is_cached=level is not None)
    if state is not None and state == view.state and level == view.level:
        return
    _recreate(views, view, query, run)
    views[name] = replace(view, fingerprint=_fingerprint(run.spark, name), level=level, state=state)
    if level is not None:
        rows_of(run.spark, name).persist(level)


def _recreate(views: SessionViews, view: TableView, query: Query, run: StatementContext) -> None:
    """Recreate a view; notes which views lose their cached rows, since Spark drops those of views that read it."""
    cached = {
        name: other
        for name, other in views.items()
        if isinstance(other, TableView) and other.level is not None and _has_cached_rows(run.spark, name)
    }
    _register(_current_rows(view, query, run), replace(view.statement, replaces=True), run.spark)
    for name, other in cached.items():
        if not _has_cached_rows(run.spark, name):
            views[name] = replace(other, state=None)


def _current_rows(view: TableView, query: Query, run: StatementContext) -> DataFrame:
    """Return the current rows of a view, with the columns that it had when it was created."""
    rows = run.query(query)
    with of_spark(query, run.spark):
        if len(set(view.output)) == len(view.output):
            rows = rows.select(*map(column, view.output))
        rows = rows.toDF(*(view.statement.columns or view.output))
        _ = rows.schema  # else Spark Connect analyses it later
        return rows


def _current_state(
    views: SessionViews, view: TableView, query: Query, run: StatementContext, *, is_cached: bool
) -> ViewState | None:
    """Return what a view shows once it is recreated from its current query.

    Returns None for a view without cached rows that also reads other names: Spark may have replaced what they mean.
    """
    below = tuple((name, views[name].fingerprint) for name in sorted(view.reads & views.keys()))
    versions = tuple(_versions(query, run))
    if is_cached:
        return ViewState(below, versions)
    are_ours = all(isinstance(views.get(name), TableView) for name in view.reads)
    return ViewState(below, versions, tuple(run.engine.settings().items())) if are_ours else None


def _versions(query: Query, run: StatementContext) -> Iterator[Hashable]:
    """Yield the tables that a query reads, through persistent views too, with their versions."""
    for reference in query.references:
        if reference.view is None:
            yield state_of(run.snapshot(reference.table))
        else:
            yield reference.view.query.text
            yield from _versions(reference.view.query, run)


# -- views in Spark ----------------------------------------------------------------------------------------------------


def _register(rows: DataFrame, statement: CreateTempView, spark: SparkSession) -> None:
    name = verbatim(quote_identifier(statement.name), spark)
    match statement.replaces, statement.is_global:
        case True, True:
            rows.createOrReplaceGlobalTempView(name)
        case True, False:
            rows.createOrReplaceTempView(name)
        case False, True:
            rows.createGlobalTempView(name)
        case _:
            rows.createTempView(name)


def _fingerprint(spark: SparkSession, name: Name) -> int:
    """Return a hash that identifies a temporary view among others of its name; 0 if there is none."""
    if not entries.is_temporary(spark, name):  # Spark may be unable to open a table of this name
        return 0
    try:
        return rows_of(spark, name).semanticHash()
    except AnalysisException:
        return 0


def _has_cached_rows(spark: SparkSession, name: Name) -> bool:
    """Whether Spark still caches the rows of a view."""
    try:
        level = rows_of(spark, name).storageLevel
    except AnalysisException:  # the view was dropped
        return False
    return level.useMemory or level.useDisk
