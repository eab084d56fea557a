"""Temporary views of queries on Delta tables, which follow their tables.

Spark keeps a temporary view of a DataFrame at the versions that the DataFrame reads. This module therefore recreates a
view from its query before a statement that names it runs. Guarantees: the statement and its views read a table at one
version, unless another thread recreates the same view of the session in between; a view that was replaced or dropped
by other means is left alone; no view reads itself. The remembered views hold no DataFrame and keep no session alive.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog import entries
from anabranch._catalog.table_names import OURS, name_to_sql
from anabranch._expressions.dialect import Token, TokenizedText, tokenize, word
from anabranch._spark.columns.types import column, quote_identifier
from anabranch._spark.sessions.known_sessions import PerSession
from anabranch._spark.sessions.sql_text import exact_sql, verbatim
from anabranch._sql.executor.error_position import of_spark
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import Running, state_of
from anabranch._sql.grammar.cursor import Cursor, behind_with
from anabranch._sql.grammar.explain_parser import MODES
from anabranch._sql.grammar.parts import Query, Reference, Span, View
from anabranch._sql.grammar.tables_read import tables_read
from anabranch._sql.grammar.view_values import CreateTempView
from anabranch.commands.opening import Location, open_log
from anabranch.errors import UnknownTable
from anabranch.errors.process_state import hold

Name = tuple[str, ...]
_GLOBAL = "global_temp"


@dataclass(frozen=True)
class _View:
    """A view as it was created.

    Attributes:
        statement: our statement that created it; None if Spark created it over other views.
        reads: the names in its query that are no Delta tables.
        output: the columns of its query.
        fingerprint: identifies the view among others of its name.
        level: the storage level of its cached rows; None if they are not cached.
        state: the versions of its tables and the views that it shows; None if unknown, or if Spark dropped the cache.
        names: the full names of the Delta tables in its query, in order; None for one that is read by its path.
    """

    statement: CreateTempView | None
    reads: frozenset[Name]
    output: tuple[str, ...] = ()
    fingerprint: int = 0
    level: StorageLevel | None = None
    state: Hashable = None
    names: tuple[Name | None, ...] = ()


_views: PerSession[dict[Name, _View]] = hold("temporary views", "a session's own, as many as it has made")(PerSession())


def create(statement: CreateTempView, run: Running) -> DataFrame:
    """Create a temporary view that follows its tables; returns no rows.

    Raises:
        SqlSyntaxError, SqlAnalysisError: Spark cannot parse or analyse its query.
        AnalysisException: Spark's: a view of this name exists.
    """
    rows = run.query(statement.query)
    output = tuple(rows.columns)
    if statement.columns is not None:
        with of_spark(statement.query, run.spark):
            rows = rows.toDF(*statement.columns)
    name = _view_name(statement)
    _register(rows, statement, run.spark)
    tables = {tuple(part.lower() for part in reference.table.name) for reference in statement.query.references}
    reads = frozenset(_names_read(tokenize(statement.query.text)) - tables)
    with _views.lock:
        session_views = _views.setdefault(run.spark, {})
        session_views.pop(name, None)
        if name not in _closure(session_views, reads):  # else it would read itself once it is recreated
            full_names = tuple(_full_name(reference, run.spark) for reference in statement.query.references)
            session_views[name] = _View(statement, reads, output, _fingerprint(run.spark, name), names=full_names)
    return run.nothing()


def keep(statement: CreateTempView, level: StorageLevel, run: Running) -> DataFrame:
    """Cache the rows of a view that was just created, until one of its tables changes; returns these rows."""
    name = _view_name(statement)
    with _views.lock:
        session_views = _views[run.spark]
        if name in session_views:
            session_views[name] = replace(
                session_views[name],
                level=level,
                state=_cache_state(session_views, session_views[name], run, is_cached=True),
            )
    return _read_view(run.spark, name).persist(level)


def renew(run: Running, source: TokenizedText) -> None:
    """Bring the views that a statement names to the newest versions of their tables.

    Raises:
        NotATable, SqlAnalysisError: a table of a view is gone, or lacks a column that the view shows.
    """
    if (tokens := _tokens_if_named(run.spark, source)) is not None:
        renew_views(run, _names_read(tokens))


def note(spark: SparkSession, source: TokenizedText) -> None:
    """Remember a view over other views that Spark created by a statement of its own."""
    tokens = _tokens_if_named(spark, source)
    view_name = None if tokens is None else _find_view_name(tokens)
    if tokens is None or view_name is None:
        return
    with _views.lock:
        session_views, reads = _views[spark], frozenset(_names_read(tokens))
        session_views.pop(view_name, None)
        if view_name not in _closure(session_views, reads) and reads & session_views.keys():
            session_views[view_name] = _View(None, reads)


def are_changed(spark: SparkSession, source: TokenizedText) -> bool:
    """Whether a statement would change rows of a temporary view over Delta tables."""
    target = find_change_target(source)
    return target is not None and is_ours(spark, target.name)


@dataclass(frozen=True)
class Changed:
    """The name of the table or view whose rows a statement would change, and its span."""

    name: Name
    span: Span


def find_change_target(source: TokenizedText) -> Changed | None:
    """Find the table or view whose rows a statement would change; None if it changes none."""
    if not _MAY_CHANGE.search(source.text) or not source.is_readable:
        return None
    reader = Cursor(source.text, list(source.tokens))
    if reader.take("EXPLAIN"):
        _ = any(reader.take(mode) for mode in MODES)
    if reader.at("WITH"):
        reader.i = behind_with(reader.tokens, _VERBS) or 0
    if not any(reader.take(*words) for words in _CHANGES):
        return None
    reader.take("TABLE")
    start, name = reader.start, reader.path() if reader.is_name() else ()
    return Changed(name, (start, reader.stop)) if name else None


def is_ours(spark: SparkSession, name: Name) -> bool:
    """Whether a name is a temporary view's that we created, or that Spark created over such views."""
    folded = tuple(part.lower() for part in name)
    view = _views.get(spark, {}).get(folded)
    return view is not None and (view.statement is None or _fingerprint(spark, folded) == view.fingerprint)


def table_behind_view(spark: SparkSession, name: Name) -> Location | None:
    """Return the location of the Delta table that a temporary view shows unchanged: all rows, all columns by name.

    Returns None if the view shows anything else.
    """
    folded = tuple(part.lower() for part in name)
    view = _views.get(spark, {}).get(folded)
    if view is None or view.statement is None or view.statement.columns is not None:
        return None
    location = _whole_table_location(_rebind_query(view, view.statement.query, Names(spark)))
    if location is None or _fingerprint(spark, folded) != view.fingerprint:
        return None
    return location if open_log(location).snapshot().schema.names == view.output else None


def _whole_table_location(query: Query) -> Location | None:
    """Return the location of the table whose newest version a query reads whole; None for any other query."""
    if len(query.references) != 1:
        return None
    (read,) = query.references
    details = (read.table.version, read.table.timestamp, read.changes, read.view)
    before = [token.text.upper() for token in tokenize(query.text[: read.start])]
    is_whole = before == ["SELECT", "*", "FROM"] and not query.text[read.stop :].strip()
    return read.table.location if is_whole and all(detail is None for detail in details) else None


_SCHEMA_EVOLUTION = ("WITH", "SCHEMA", "EVOLUTION", "INTO")
_CHANGES = (
    ("DELETE", "FROM"),
    ("UPDATE",),
    ("MERGE", "INTO"),
    ("MERGE", *_SCHEMA_EVOLUTION),
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("INSERT", *_SCHEMA_EVOLUTION),
    ("TRUNCATE",),
)
"""The first words of each statement that changes rows, up to TABLE and the table's name."""
_VERBS = frozenset(words[0] for words in _CHANGES)
_MAY_CHANGE = re.compile(rf"\b(?:{'|'.join(sorted(_VERBS))})\b", re.IGNORECASE)


def _tokens_if_named(spark: SparkSession, source: TokenizedText) -> list[Token] | None:
    """Return the tokens of a statement that may name one of the session's views; None if it names none."""
    session_views = _views.get(spark)
    lowered = source.text.lower()
    if not session_views or not any(name[-1].replace("`", "``") in lowered for name in list(session_views)):
        return None
    return source.tokens if source.is_readable else None


def renew_views(run: Running, names: Iterable[Name]) -> None:
    """As `renew`, for the views of these names."""
    session_views = _views.get(run.spark)
    if not session_views:
        return
    with _views.lock:
        for name in _dependencies_first(session_views, names):
            view = session_views[name]
            if view.statement is None:
                continue
            if _fingerprint(run.spark, name) != view.fingerprint:
                del session_views[name]
                continue
            level = view.level if view.state is None or _has_cached_rows(run.spark, name) else None
            state = _cache_state(session_views, view, run, is_cached=level is not None)
            if state is not None and state == view.state and level == view.level:
                continue
            with _track_lost_caches(session_views, run.spark):
                _register(_current_rows(view, view.statement, run), replace(view.statement, replaces=True), run.spark)
            session_views[name] = replace(view, fingerprint=_fingerprint(run.spark, name), level=level, state=state)
            if level is not None:
                _read_view(run.spark, name).persist(level)


@contextmanager
def _track_lost_caches(session_views: dict[Name, _View], spark: SparkSession) -> Iterator[None]:
    """Mark the views whose cached rows Spark drops within the block, with a view that they read."""
    cached = [name for name, view in session_views.items() if view.level is not None and _has_cached_rows(spark, name)]
    yield
    for name in cached:
        if not _has_cached_rows(spark, name):
            session_views[name] = replace(session_views[name], state=None)


def _has_cached_rows(spark: SparkSession, name: Name) -> bool:
    """Whether Spark still caches the rows of a view."""
    try:
        level = _read_view(spark, name).storageLevel
    except AnalysisException:  # the view was dropped
        return False
    return level.useMemory or level.useDisk


def _cache_state(session_views: dict[Name, _View], view: _View, run: Running, *, is_cached: bool) -> Hashable:
    """Return the versions and views that a view shows, as a key to notice changes that Spark does not see.

    Returns None for a view without cached rows that also reads other names: Spark may have replaced what they mean.
    """
    assert view.statement is not None, "a view of Spark's own is never kept"
    views = tuple((name, session_views[name].fingerprint) for name in sorted(view.reads & session_views.keys()))
    versions = tuple(_versions(_rebind_query(view, view.statement.query, Names(run.spark)), run))
    if is_cached:
        return views, versions
    are_ours = all(name in session_views and session_views[name].statement is not None for name in view.reads)
    return (views, versions, tuple(run.engine.settings().items())) if are_ours else None


def _versions(query: Query, run: Running) -> Iterator[Hashable]:
    """Yield the tables that a query reads, through persistent views too, with their versions."""
    for reference in query.references:
        if reference.view is None:
            yield state_of(run.snapshot(reference.table))
        else:
            yield reference.view.query.text
            yield from _versions(reference.view.query, run)


def _current_rows(view: _View, statement: CreateTempView, run: Running) -> DataFrame:
    """Return the current rows of a view, with the columns that it had when it was created."""
    query = _rebind_query(view, statement.query, Names(run.spark))
    rows = run.query(query)
    with of_spark(query, run.spark):
        if len(set(view.output)) == len(view.output):
            rows = rows.select(*map(column, view.output))
        frame = rows.toDF(*(statement.columns or view.output))
        _ = frame.schema
        return frame


def _rebind_query(view: _View, query: Query, names: Names) -> Query:
    """Resolve the names in a view's query to the tables and persistent views that they mean now.

    Raises:
        UnknownTable: a table is gone, or is no Delta table any more.
    """
    pairs = zip(query.references, view.names, strict=True)
    return replace(
        query, references=tuple(_rebind_reference(reference, full_name, names) for reference, full_name in pairs)
    )


def _rebind_reference(reference: Reference, full_name: Name | None, names: Names) -> Reference:
    if full_name is None:
        return reference
    current = names.location(full_name)
    if current is None:
        raise UnknownTable(name=name_to_sql(full_name))
    if isinstance(current, View):
        return replace(reference, view=current)
    return replace(reference, view=None, table=replace(reference.table, location=current))


def _full_name(reference: Reference, spark: SparkSession) -> Name | None:
    """Return the full name of the table or view that is read; None if it is read by its path."""
    if reference.view is not None:
        return reference.view.name
    name = reference.table.name
    is_path = len(name) == 2 and name[0].lower() in OURS
    return None if is_path else entries.complete_name(spark, name)


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
        return _read_view(spark, name).semanticHash()
    except AnalysisException:
        return 0


def _read_view(spark: SparkSession, name: Name) -> DataFrame:
    return exact_sql(spark, f"TABLE {'.'.join(map(quote_identifier, name))}")


# -- names -------------------------------------------------------------------------------------------------------------


def _view_name(statement: CreateTempView) -> Name:
    name = statement.name.lower()
    return (_GLOBAL, name) if statement.is_global else (name,)


def _names_read(tokens: list[Token]) -> set[Name]:
    """Return the names of the tables and views that are read, in lower case."""
    return {tuple(part.lower() for part in mention.parts) for mention in tables_read(tokens)}


def _find_view_name(tokens: list[Token]) -> Name | None:
    """Return the name of the temporary view that a statement creates; None if it creates none."""
    words = [word(token) for token in tokens[:6]]
    if words[:1] != ["CREATE"] or "VIEW" not in words or not {"TEMP", "TEMPORARY"} & set(words):
        return None
    i = words.index("VIEW") + 1
    if i >= len(tokens):
        return None
    name = tokens[i].text.lower()
    return (_GLOBAL, name) if "GLOBAL" in words else (name,)


def _closure(session_views: dict[Name, _View], names: Iterable[Name]) -> set[Name]:
    """Return these names and all that the views among them read, directly or through other views."""
    closure: set[Name] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in closure:
            closure.add(name)
            pending += session_views[name].reads if name in session_views else ()
    return closure


def _dependencies_first(session_views: dict[Name, _View], names: Iterable[Name]) -> Iterator[Name]:
    """Yield the views among these names and the views that they read, dependencies first."""
    done: set[Name] = set()

    def visit(name: Name) -> Iterator[Name]:
        if name in session_views and name not in done:
            done.add(name)
            for dependency in sorted(session_views[name].reads):
                yield from visit(dependency)
            yield name

    for name in sorted(set(names)):
        yield from visit(name)
