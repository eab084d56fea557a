"""``anabranch.sql``: SQL text on Delta tables, in a session with nothing patched.

A door: it reads a statement (`anabranch._sql.reading`), runs the command that ``DeltaTable`` would run, and gives
the DataFrame that delta-spark gives. Guarantee: a statement that touches no Delta table is Spark's, byte for byte;
parameters are bound as values, and never become part of a text that they could change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog.entries import is_foreign, is_temporary
from anabranch._catalog.names import Name, name_to_sql, parts_of
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.error_pointer import excerpt
from anabranch._spark.columns.spark_tables import unlike_delta
from anabranch._spark.sessions.file_settings import speaking
from anabranch._spark.sessions.sql_text import cut, sql_from_parts, substitute_variables
from anabranch._sql import reading, registry
from anabranch._sql.executor import frame_views, temporary_views
from anabranch._sql.executor import names as on_names
from anabranch._sql.executor.computed_names import Asked, evaluate_computed_names, set_from
from anabranch._sql.executor.error_position import locate_errors_in
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import Running, check_quotes
from anabranch._sql.executor.temporary_views import table_behind_view
from anabranch._sql.grammar.parts import Query, Statement, View
from anabranch._sql.grammar.values import ExplainChange
from anabranch._sql.prefilter import glance, may_touch_delta
from anabranch.commands.opening import Location
from anabranch.errors import InvalidOption, SqlAnalysisError, SqlSyntaxError, UnknownTable, ViewIsNoTable
from anabranch.errors.inputs import check_session, check_text
from anabranch.errors.rows import statement as one_statement

Frames = Mapping[str, DataFrame] | None

_NO_ROWS = {
    "delta_condition": "INVALID_STATEMENT_FOR_EXECUTE_INTO",
    "state": "07501",
    "reason": "The INTO clause of EXECUTE IMMEDIATE takes the rows of a query, and the statement is none.",
}

__all__ = ["lasting_view", "sql"]


def sql(
    spark: SparkSession, text: str, args: Any = None, *, names: Names | None = None, frames: Frames = None
) -> DataFrame:
    """Run an SQL statement: on Delta tables, named by their paths (``delta.`/data/flights` ``) or by their names in the
    session's catalog, or any of Spark's.

    A query reads each Delta table at one version, whatever is committed meanwhile. A change of rows is one transaction,
    as by ``DeltaTable``.

    Args:
        spark: any session.
        text: one statement.
        args: the values of its parameters: a dict for ``:name``, a list for ``?``.
        names: which names are Delta tables; by default those of the session's catalog, and paths.
        frames: DataFrames by the names that the text gives them; there are temporary views of these names.

    Returns:
        a query's rows; of DELETE, UPDATE and MERGE the numbers of rows; of what shows a table what it shows; else no
        rows.

    Raises:
        LoneSurrogate: it, or the value of a parameter, is no text.
        SqlSyntaxError, SqlAnalysisError, UnknownTable: the statement is none that can be run; the message shows where.
        TransactionStatement: it begins or ends a transaction of several statements.
        AnabranchError: as the methods of ``DeltaTable``.

    Example:
        >>> anabranch.sql(spark, "DELETE FROM delta.`/data/flights` WHERE carrier = :c", {"c": "UA"}).show()
    """
    check_session("spark", spark)
    if not isinstance(text, str):
        raise InvalidOption(option="sqlQuery", value=type(text).__name__, reason="it takes the text of a statement.")
    _check_texts(args)
    with one_statement(), speaking(spark):
        return _ran(Running(spark, frames), text, args, names or Names(spark))


def _ran(run: Running, written: str, args: Any, names: Names) -> DataFrame:
    spark = run.spark

    def touches(text: str) -> bool:
        return may_touch_delta(text, names)

    said = evaluate_computed_names(
        spark,
        _substitute_variables(written, spark, names),
        args,
        touches,
        lambda each: _substitute_variables(each, spark, names),
    )
    source = TokenizedText(said.text)
    temporary_views.renew(run, source)
    if not (touches(said.text) or temporary_views.are_changed(spark, source)):
        return _plain(run, written, args, source)
    try:
        statement = _parse_statement(spark, said, source, names)
    except UnknownTable as error:
        name = parts_of(error.facts["name"])
        raise (unlike_delta(spark, name, excerpt=error.facts.get("excerpt")) if name else error) from None
    if statement is None:
        return _plain(run, written, args, source)
    check_quotes(spark, said.text)
    if isinstance(statement, Query):
        _check_rows_changed(spark, source)
    reshapes = not isinstance(statement, Query) and registry.entry_of(statement).reshapes
    with locate_errors_in(said.text):
        found = on_names.run(statement, names, run, lambda: registry.run(statement, run), reshapes=reshapes)
    if not isinstance(statement, ExplainChange):
        for name, location in names.frame_views.items():
            frame_views.follow(run, name, location)
    return found


def _parse_statement(spark: SparkSession, said: Asked, source: TokenizedText, names: Names) -> Statement | None:
    """What a statement asks of Delta tables; None where it is Spark's."""
    is_ours = glance(said.text).is_ours
    if is_ours:
        check_quotes(spark, said.text)
    try:
        with locate_errors_in(said.text):
            located = (names.location, names.place, names.catalog_location, names.makes)
            found = reading.statement(source, said.args, *located, lambda name: _find_view_table(spark, name, names))
    except SqlSyntaxError:
        if is_ours or source.is_readable:
            raise
        return None  # Spark may know words that are not known here
    if found is None or said.into is None:
        return found
    if not isinstance(found, Query):
        raise SqlAnalysisError(**_NO_ROWS)
    set_ = set_from(said)
    return _parse_statement(spark, set_, TokenizedText(set_.text), names)


def _find_view_table(spark: SparkSession, name: Name, names: Names) -> Location | None:
    """Where the table lies whose rows a temporary view shows as they are, however the view was made."""
    if temporary_views.is_ours(spark, name):
        return table_behind_view(spark, name)
    found = frame_views.table_of(spark, name)
    if found is not None:
        names.frame_views[name] = found
    return found


def _check_rows_changed(spark: SparkSession, source: TokenizedText) -> None:
    """Hold that a statement that Spark is to run changes no rows of a temporary view over Delta tables, of which Spark
    would say nothing that one can read.

    Raises:
        ViewIsNoTable: it does.
    """
    found = temporary_views.find_change_target(source)
    if found is not None and (temporary_views.is_ours(spark, found.name) or frame_views.is_of_frame(spark, found.name)):
        raise _no_table(source, found)


def _no_table(source: TokenizedText, changed: temporary_views.Changed) -> ViewIsNoTable:
    return ViewIsNoTable(name=name_to_sql(changed.name), excerpt=excerpt(source.text, *changed.span))


def lasting_view(spark: SparkSession, identifier: str, resolver: Names) -> DataFrame | None:
    """The rows of the lasting view of a name; None where it is no such view's."""
    name = parts_of(identifier) if isinstance(identifier, str) else None
    if name is None or is_foreign(spark, name):  # as who asked for a table of this name has just seen
        return None
    view = resolver.location(name)
    return Running(spark).view(view).alias(view.name[-1]) if isinstance(view, View) else None


def _plain(run: Running, written: str, args: Any, source: TokenizedText) -> DataFrame:
    """What Spark makes of a statement as the user wrote it; ``source`` is that with nothing left to be evaluated."""
    _check_rows_changed(run.spark, source)
    try:
        found = sql_from_parts(run.spark, cut(written, run.frames), args)
    except Exception as error:  # one that Spark did not expect, with frames of Java: as for views without a table
        if isinstance(error, PySparkException) and not str(error).startswith("[INTERNAL_ERROR]"):
            raise
        changed = temporary_views.find_change_target(source)
        if changed is None or not is_temporary(run.spark, changed.name):
            raise
        raise _no_table(source, changed) from None
    temporary_views.note(run.spark, source)
    return found


def _check_texts(value: Any) -> None:
    """Raise an error unless the texts among the values of parameters, inside of others too, can be written.

    Raises:
        LoneSurrogate: one cannot.
    """
    if isinstance(value, str):
        check_text("The value of a parameter", value)
    elif isinstance(value, Mapping):
        _check_texts([*value, *value.values()])
    elif isinstance(value, list | tuple | set):
        for each in value:
            _check_texts(each)


def _substitute_variables(text: str, spark: SparkSession, names: Names) -> str:
    """A statement as Spark reads it; as it is where nobody can say so, and it touches no table of ours.

    Raises:
        InvalidOption: nobody can say what ``${…}`` stands for in it.
    """
    try:
        return substitute_variables(text, spark)
    except InvalidOption:
        if may_touch_delta(text, names) or glance(text).is_computed:
            raise
        return text
