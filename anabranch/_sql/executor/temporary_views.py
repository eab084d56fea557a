"""Views: temporary views of queries on Delta tables, which follow their tables.

Spark keeps a temporary view of a DataFrame as that is, at the versions that it reads. So a view is made anew, from its
own query, before a statement that names it is run. Guarantees: the statement and the views that it names read each
table at one version, unless another thread makes the same view of the session anew in between; a view that was replaced
or dropped by other means is left alone; no view comes to read itself. What is remembered holds no DataFrame and keeps
no session.
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
from anabranch._catalog.names import OURS, name_to_sql
from anabranch._expressions.dialect import Token, TokenizedText, tokenize, word
from anabranch._spark.columns.types import column, quote_identifier
from anabranch._spark.sessions.known_sessions import PerSession
from anabranch._spark.sessions.sql_text import exact_sql, verbatim
from anabranch._sql.executor.error_position import of_spark
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import Running, state_of
from anabranch._sql.grammar.cursor import Cursor, behind_with
from anabranch._sql.grammar.explain import MODES
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
    """A view as it was made: by a statement of ours, or by Spark's own over other views (None).

    Attributes:
        reads: the names in its query that are no Delta tables.
        names: the whole names of the Delta tables in its query, in order; None for one that is read by its path.
        output: the columns that this gave.
        print: by what the view can be told from another one of its name.
        level: where its rows are kept; None where they are not.
        state: which versions of its tables, and which views, it shows; None where that is not known, or Spark has let
            go of rows that were kept.
    """

    statement: CreateTempView | None
    reads: frozenset[Name]
    output: tuple[str, ...] = ()
    print: int = 0
    level: StorageLevel | None = None
    state: Hashable = None
    names: tuple[Name | None, ...] = ()


_views: PerSession[dict[Name, _View]] = hold("temporary views", "a session's own, as many as it has made")(PerSession())


def create(statement: CreateTempView, run: Running) -> DataFrame:
    """Make a temporary view that follows its tables; gives no rows.

    Raises:
        SqlSyntaxError, SqlAnalysisError: Spark cannot make sense of its query.
        AnalysisException: Spark's, where there is a view of the name already.
    """
    rows = run.query(statement.query)
    output = tuple(rows.columns)
    if statement.columns is not None:
        with of_spark(statement.query, run.spark):
            rows = rows.toDF(*statement.columns)
    name = _name(statement)
    _put(rows, statement, run.spark)
    tables = {tuple(part.lower() for part in each.table.name) for each in statement.query.references}
    reads = frozenset(_names(tokenize(statement.query.text)) - tables)
    with _views.lock:
        known = _views.setdefault(run.spark, {})
        known.pop(name, None)
        if name not in _closure(known, reads):  # else it would read itself when it is made anew
            whole = tuple(_whole(each, run.spark) for each in statement.query.references)
            known[name] = _View(statement, reads, output, _print(run.spark, name), names=whole)
    return run.nothing()


def keep(statement: CreateTempView, level: StorageLevel, run: Running) -> DataFrame:
    """Keep the rows of a view that was just made, for as long as its tables stay as they are; these rows."""
    name = _name(statement)
    with _views.lock:
        known = _views[run.spark]
        if name in known:
            known[name] = replace(known[name], level=level, state=_state(known, known[name], run, is_kept=True))
    return _read_view(run.spark, name).persist(level)


def renew(run: Running, source: TokenizedText) -> None:
    """Bring the views that a statement names to the newest versions of their tables.

    Raises:
        NotATable, SqlAnalysisError: a table of a view is gone, or has no longer what the view shows.
    """
    if (tokens := _naming(run.spark, source)) is not None:
        renew_views(run, _names(tokens))


def note(spark: SparkSession, source: TokenizedText) -> None:
    """Remember a view over other views that Spark has made by a statement of its own."""
    tokens = _naming(spark, source)
    made = None if tokens is None else _find_view_name(tokens)
    if tokens is None or made is None:
        return
    with _views.lock:
        known, reads = _views[spark], frozenset(_names(tokens))
        known.pop(made, None)
        if made not in _closure(known, reads) and reads & known.keys():
            known[made] = _View(None, reads)


def are_changed(spark: SparkSession, source: TokenizedText) -> bool:
    """Whether a statement would change rows of a temporary view over Delta tables, and so, perhaps, of a table."""
    found = find_change_target(source)
    return found is not None and is_ours(spark, found.name)


@dataclass(frozen=True)
class Changed:
    """The name of what a statement would change rows of, and where that stands."""

    name: Name
    span: Span


def find_change_target(source: TokenizedText) -> Changed | None:
    """What a statement would change rows of, whatever it is."""
    if not _MAY_CHANGE.search(source.text) or not source.is_readable:
        return None
    reader = Cursor(source.text, list(source.tokens))
    if reader.take("EXPLAIN"):
        _ = any(reader.take(each) for each in MODES)
    if reader.at("WITH"):
        reader.i = behind_with(reader.tokens, _VERBS) or 0
    if not any(reader.take(*words) for words in _CHANGES):
        return None
    reader.take("TABLE")
    start, name = reader.start, reader.path() if reader.is_name() else ()
    return Changed(name, (start, reader.stop)) if name else None


def is_ours(spark: SparkSession, name: Name) -> bool:
    """Whether a name is that of a temporary view of ours, or of Spark's over ours."""
    folded = tuple(part.lower() for part in name)
    view = _views.get(spark, {}).get(folded)
    return view is not None and (view.statement is None or _print(spark, folded) == view.print)


def table_behind_view(spark: SparkSession, name: Name) -> Location | None:
    """Where the Delta table lies of which a temporary view shows every column, under its name, and every row; None
    where it shows anything else.
    """
    folded = tuple(part.lower() for part in name)
    view = _views.get(spark, {}).get(folded)
    if view is None or view.statement is None or view.statement.columns is not None:
        return None
    location = _read_whole(_rebind_query(view, view.statement.query, Names(spark)))
    if location is None or _print(spark, folded) != view.print:
        return None
    return location if open_log(location).snapshot().schema.names == view.output else None


def _read_whole(query: Query) -> Location | None:
    """The table at its newest version of which a query reads every column and row."""
    if len(query.references) != 1:
        return None
    (read,) = query.references
    others = (read.table.version, read.table.timestamp, read.changes, read.view)
    before = [token.text.upper() for token in tokenize(query.text[: read.start])]
    is_whole = before == ["SELECT", "*", "FROM"] and not query.text[read.stop :].strip()
    return read.table.location if is_whole and all(each is None for each in others) else None


_EVOLVES = ("WITH", "SCHEMA", "EVOLUTION", "INTO")
_CHANGES = (
    ("DELETE", "FROM"),
    ("UPDATE",),
    ("MERGE", "INTO"),
    ("MERGE", *_EVOLVES),
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("INSERT", *_EVOLVES),
    ("TRUNCATE",),
)
"""With what a statement begins that changes rows, up to TABLE and the table's name."""
_VERBS = frozenset(words[0] for words in _CHANGES)
_MAY_CHANGE = re.compile(rf"\b(?:{'|'.join(sorted(_VERBS))})\b", re.IGNORECASE)


def _naming(spark: SparkSession, source: TokenizedText) -> list[Token] | None:
    """The words of a statement that may name one of the session's views; None where it does not."""
    known = _views.get(spark)
    lowered = source.text.lower()
    if not known or not any(name[-1].replace("`", "``") in lowered for name in list(known)):
        return None
    return source.tokens if source.is_readable else None


def renew_views(run: Running, names: Iterable[Name]) -> None:
    """As `renew`, for the views of these names."""
    known = _views.get(run.spark)
    if not known:
        return
    with _views.lock:
        for name in _in_order(known, names):
            view = known[name]
            if view.statement is None:
                continue
            if _print(run.spark, name) != view.print:
                del known[name]
                continue
            level = view.level if view.state is None or _is_kept(run.spark, name) else None
            state = _state(known, view, run, is_kept=level is not None)
            if state is not None and state == view.state and level == view.level:
                continue
            with _keeping_track(known, run.spark):
                _put(_rows(view, view.statement, run), replace(view.statement, replaces=True), run.spark)
            known[name] = replace(view, print=_print(run.spark, name), level=level, state=state)
            if level is not None:
                _read_view(run.spark, name).persist(level)


@contextmanager
def _keeping_track(known: dict[Name, _View], spark: SparkSession) -> Iterator[None]:
    """Remember which views are to be kept anew, since Spark has let go of their rows with a view that they read."""
    kept = [name for name, view in known.items() if view.level is not None and _is_kept(spark, name)]
    yield
    for name in kept:
        if not _is_kept(spark, name):
            known[name] = replace(known[name], state=None)


def _is_kept(spark: SparkSession, name: Name) -> bool:
    """Whether Spark still keeps the rows of a view."""
    try:
        level = _read_view(spark, name).storageLevel
    except AnalysisException:  # somebody has dropped it
        return False
    return level.useMemory or level.useDisk


def _state(known: dict[Name, _View], view: _View, run: Running, *, is_kept: bool) -> Hashable:
    """What a view shows, as far as it can change behind Spark's back; None where that cannot be said of one whose rows
    are not kept, since Spark may have another thing under some name by now.
    """
    assert view.statement is not None, "a view of Spark's own is never kept"
    views = tuple((name, known[name].print) for name in sorted(view.reads & known.keys()))
    versions = tuple(_versions(_rebind_query(view, view.statement.query, Names(run.spark)), run))
    if is_kept:
        return views, versions
    are_ours = all(name in known and known[name].statement is not None for name in view.reads)
    return (views, versions, tuple(run.engine.settings().items())) if are_ours else None


def _versions(query: Query, run: Running) -> Iterator[Hashable]:
    """The tables that a query reads, through lasting views too, each with its version."""
    for each in query.references:
        if each.view is None:
            yield state_of(run.snapshot(each.table))
        else:
            yield each.view.query.text
            yield from _versions(each.view.query, run)


def _rows(view: _View, statement: CreateTempView, run: Running) -> DataFrame:
    """The rows of a view now: the columns that it had when it was made, whatever came to its tables since."""
    query = _rebind_query(view, statement.query, Names(run.spark))
    rows = run.query(query)
    with of_spark(query, run.spark):
        if len(set(view.output)) == len(view.output):
            rows = rows.select(*map(column, view.output))
        found = rows.toDF(*(statement.columns or view.output))
        _ = found.schema
        return found


def _rebind_query(view: _View, query: Query, names: Names) -> Query:
    """A view's query with the tables and lasting views that its names mean now.

    Raises:
        UnknownTable: one is gone, or is no Delta table any more.
    """
    pairs = zip(query.references, view.names, strict=True)
    return replace(query, references=tuple(_now(each, whole, names) for each, whole in pairs))


def _now(reference: Reference, whole: Name | None, names: Names) -> Reference:
    if whole is None:
        return reference
    found = names.location(whole)
    if found is None:
        raise UnknownTable(name=name_to_sql(whole))
    if isinstance(found, View):
        return replace(reference, view=found)
    return replace(reference, view=None, table=replace(reference.table, location=found))


def _whole(reference: Reference, spark: SparkSession) -> Name | None:
    """The whole name of what is read; None where it is read by its path."""
    if reference.view is not None:
        return reference.view.name
    name = reference.table.name
    is_path = len(name) == 2 and name[0].lower() in OURS
    return None if is_path else entries.whole(spark, name)


def _put(rows: DataFrame, statement: CreateTempView, spark: SparkSession) -> None:
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


def _print(spark: SparkSession, name: Name) -> int:
    """By what a view that is there can be told from others; 0 where there is none."""
    if not entries.is_temporary(spark, name):  # a table of its name may be one that Spark cannot open
        return 0
    try:
        return _read_view(spark, name).semanticHash()
    except AnalysisException:
        return 0


def _read_view(spark: SparkSession, name: Name) -> DataFrame:
    return exact_sql(spark, f"TABLE {'.'.join(map(quote_identifier, name))}")


# -- names -------------------------------------------------------------------------------------------------------------


def _name(statement: CreateTempView) -> Name:
    name = statement.name.lower()
    return (_GLOBAL, name) if statement.is_global else (name,)


def _names(tokens: list[Token]) -> set[Name]:
    """The tables and views that are read, in small letters."""
    return {tuple(part.lower() for part in each.parts) for each in tables_read(tokens)}


def _find_view_name(tokens: list[Token]) -> Name | None:
    """The name of the temporary view that a statement makes."""
    said = [word(token) for token in tokens[:6]]
    if said[:1] != ["CREATE"] or "VIEW" not in said or not {"TEMP", "TEMPORARY"} & set(said):
        return None
    i = said.index("VIEW") + 1
    if i >= len(tokens):
        return None
    name = tokens[i].text.lower()
    return (_GLOBAL, name) if "GLOBAL" in said else (name,)


def _closure(known: dict[Name, _View], names: Iterable[Name]) -> set[Name]:
    """These names, and all that views among them read."""
    found: set[Name] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += known[name].reads if name in known else ()
    return found


def _in_order(known: dict[Name, _View], names: Iterable[Name]) -> Iterator[Name]:
    """The views among these names and below them, each behind those that it reads."""
    done: set[Name] = set()

    def visit(name: Name) -> Iterator[Name]:
        if name in known and name not in done:
            done.add(name)
            for each in sorted(known[name].reads):
                yield from visit(each)
            yield name

    for name in sorted(set(names)):
        yield from visit(name)
