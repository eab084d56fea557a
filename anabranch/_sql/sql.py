"""``anabranch.sql``: runs SQL text on Delta tables, in an unpatched session.

Parses a statement (`anabranch._sql.reading`), runs the command that ``DeltaTable`` would run, and returns the DataFrame
that delta-spark returns. Guarantee: a statement that touches no Delta table reaches Spark byte for byte; parameters are
bound as values and cannot change the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog.entries import is_foreign
from anabranch._catalog.table_names import Name, parts_of
from anabranch._expressions.dialect import TokenizedText
from anabranch._spark.columns.spark_tables import not_delta_error
from anabranch._spark.sessions.file_settings import use_session_settings
from anabranch._spark.sessions.sql_text import split_at_frames, sql_from_parts, substitute_variables
from anabranch._sql import reading, registry
from anabranch._sql.executor import name_statements as on_names
from anabranch._sql.executor import temporary_views, transaction_statements, view_changes
from anabranch._sql.executor.computed_names import EvaluatedStatement, evaluate_computed_names, set_from
from anabranch._sql.executor.error_position import locate_errors_in
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import StatementContext, check_quotes
from anabranch._sql.grammar.parts import Query, Statement, View
from anabranch._sql.grammar.statement_values import ExplainChange
from anabranch._sql.grammar.transactions import transaction_text
from anabranch._sql.prefilter import may_touch_delta, text_facts
from anabranch.commands.opening import Location
from anabranch.errors import InvalidOption, SqlAnalysisError, SqlSyntaxError, UnknownTable
from anabranch.errors.inputs import check_session, check_text
from anabranch.errors.rows import statement as one_statement

Frames = Mapping[str, DataFrame] | None

_NO_ROWS = {
    "delta_condition": "INVALID_STATEMENT_FOR_EXECUTE_INTO",
    "state": "07501",
    "reason": "The INTO clause of EXECUTE IMMEDIATE takes the rows of a query, and the statement is none.",
}

__all__ = ["persistent_view", "sql"]


def sql(
    spark: SparkSession, text: str, args: Any = None, *, names: Names | None = None, frames: Frames = None
) -> DataFrame:
    """Run an SQL statement, on Delta tables or any other.

    A statement names a Delta table by its path (``delta.`/data/flights` ``) or by its name in the session's catalog. A
    query reads each Delta table at one version, whatever is committed meanwhile. A change of rows is one transaction,
    as with ``DeltaTable``.

    Args:
        spark: any session.
        text: one statement, or a block of statements that are one transaction, BEGIN ATOMIC … END.
        args: the values of its parameters: a dict for ``:name``, a list for ``?``.
        names: resolves names to Delta tables; by default those of the session's catalog, and paths.
        frames: DataFrames by their names in the text; temporary views of these names exist.

    Returns:
        the rows of a query or of a statement such as SHOW and DESCRIBE; the numbers of rows of DELETE, UPDATE and
        MERGE; else no rows.

    Raises:
        LoneSurrogate: the text, or a string parameter, is not valid Unicode.
        SqlSyntaxError, SqlAnalysisError, UnknownTable: the statement cannot be run; the message shows where.
        NotInTransaction: it begins or ends a transaction where it cannot, or cannot be part of the open one.
        TransactionStatement: it begins a transaction in another spelling than Databricks'.
        AnabranchError: as the methods of ``DeltaTable``.

    Example:
        >>> anabranch.sql(spark, "DELETE FROM delta.`/data/flights` WHERE carrier = :c", {"c": "UA"}).show()
    """
    check_session("spark", spark)
    if not isinstance(text, str):
        raise InvalidOption(option="sqlQuery", value=type(text).__name__, reason="it takes the text of a statement.")
    _check_texts(args)
    with one_statement(), use_session_settings(spark):
        context = StatementContext(spark, frames)
        with locate_errors_in(text):
            of_transaction = transaction_text(text)
            if of_transaction is not None:
                run_inside = partial(sql, spark, names=names)
                return transaction_statements.run(of_transaction, args, context, run_inside)
        return _run(context, text, args, names or Names(spark))


def _run(run: StatementContext, written: str, args: Any, names: Names) -> DataFrame:
    spark = run.spark

    def touches(text: str) -> bool:
        return may_touch_delta(text, names)

    request = evaluate_computed_names(
        spark,
        _substitute_variables(written, spark, names),
        args,
        touches,
        lambda statement_text: _substitute_variables(statement_text, spark, names),
    )
    source = TokenizedText(request.text)
    temporary_views.renew(run, source)
    if not (touches(request.text) or view_changes.changes_our_view(spark, source)):
        return _run_in_spark(run, written, args, source)
    try:
        statement = _parse_statement(spark, request, source, names)
    except UnknownTable as error:
        name = parts_of(error.facts["name"])
        raise (not_delta_error(spark, name, excerpt=error.facts.get("excerpt")) if name else error) from None
    if statement is None:
        return _run_in_spark(run, written, args, source)
    check_quotes(spark, request.text)
    registry.check_inside(statement)
    if isinstance(statement, Query):
        view_changes.check_target(spark, source)
    reshapes = not isinstance(statement, Query) and registry.entry_of(statement).reshapes
    with locate_errors_in(request.text):
        rows = on_names.run(statement, names, run, lambda: registry.run(statement, run), reshapes=reshapes)
    if not isinstance(statement, ExplainChange):
        for name, location in names.frame_views.items():
            view_changes.follow(run, name, location)
    return rows


def _parse_statement(
    spark: SparkSession, request: EvaluatedStatement, source: TokenizedText, names: Names
) -> Statement | None:
    """Parse a statement; None if it is Spark's."""
    is_ours = text_facts(request.text).is_ours
    if is_ours:
        check_quotes(spark, request.text)
    try:
        with locate_errors_in(request.text):
            located = (names.location, names.place, names.catalog_location, names.makes)
            parsed = reading.statement(
                source, request.args, *located, lambda name: _find_view_table(spark, name, names)
            )
    except SqlSyntaxError:
        if is_ours or source.is_readable:
            raise
        return None  # Spark may know syntax that our tokenizer does not
    if parsed is None or request.into is None:
        return parsed
    if not isinstance(parsed, Query):
        raise SqlAnalysisError(**_NO_ROWS)
    set_ = set_from(request)
    return _parse_statement(spark, set_, TokenizedText(set_.text), names)


def _find_view_table(spark: SparkSession, name: Name, names: Names) -> Location | None:
    """Return the location of the table that a temporary view shows unchanged, however the view was created."""
    shown = view_changes.find_table(spark, name)
    if shown is None:
        return None
    if shown.of_frame:
        names.frame_views[name] = str(shown.location)
    return shown.location


def persistent_view(spark: SparkSession, identifier: str, resolver: Names) -> DataFrame | None:
    """Return the rows of the persistent view of this name; None if there is no such view."""
    name = parts_of(identifier) if isinstance(identifier, str) else None
    if name is None or is_foreign(spark, name):  # the caller has just looked it up
        return None
    view = resolver.location(name)
    return StatementContext(spark).view(view).alias(view.name[-1]) if isinstance(view, View) else None


def _run_in_spark(run: StatementContext, written: str, args: Any, source: TokenizedText) -> DataFrame:
    """Run a statement in Spark as the user wrote it; ``source`` is the statement with computed parts evaluated."""
    view_changes.check_target(run.spark, source)
    try:
        rows = sql_from_parts(run.spark, split_at_frames(written, run.frames), args)
    except Exception as error:  # an internal error of Spark, as for a change of a view without a table
        if isinstance(error, PySparkException) and not str(error).startswith("[INTERNAL_ERROR]"):
            raise
        if (cause := view_changes.find_cause(run.spark, source)) is None:
            raise
        raise cause from None
    temporary_views.note(run.spark, source)
    return rows


def _check_texts(value: Any) -> None:
    """Check the strings among the values of parameters, nested ones too.

    Raises:
        LoneSurrogate: a string is not valid Unicode.
    """
    if isinstance(value, str):
        check_text("The value of a parameter", value)
    elif isinstance(value, Mapping):
        _check_texts([*value, *value.values()])
    elif isinstance(value, list | tuple | set):
        for item in value:
            _check_texts(item)


def _substitute_variables(text: str, spark: SparkSession, names: Names) -> str:
    """Substitute ``${…}`` as Spark does. A statement that touches no table of ours stays unchanged if that fails.

    Raises:
        InvalidOption: the value of a variable cannot be determined.
    """
    try:
        return substitute_variables(text, spark)
    except InvalidOption:
        if may_touch_delta(text, names) or text_facts(text).is_computed:
            raise
        return text
