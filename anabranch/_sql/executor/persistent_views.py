"""Lasting views: views in Spark's catalog of queries on Delta tables.

The catalog keeps the query's text, the schema in which it names tables, and the columns that it gave. Guarantees: a
name in a view means the same in every session, whatever its current schema is and whichever temporary views it has; no
view comes to read itself; a session that does not know Anabranch reads no row of a view, as it reads none of a table.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog import entries, view_entries
from anabranch._catalog.entry import StoredView
from anabranch._catalog.named_tables import check_place
from anabranch._catalog.names import Name, name_to_sql
from anabranch._catalog.properties import VIEW
from anabranch._expressions.dialect import Token, TokenType, tokenize
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.columns.types import declared_schema
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch._sql.executor import temporary_views
from anabranch._sql.executor.error_position import of_spark
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import Running
from anabranch._sql.grammar.parts import Query
from anabranch._sql.grammar.qualifiers import Edit, apply_edits
from anabranch._sql.grammar.tables_read import Found, tables_read
from anabranch._sql.grammar.view_values import AlterView, CreateTempView, CreateView
from anabranch.errors import InvalidOption, NameTaken, RecursiveView, TemporaryInView, UnknownTable

_NOT_KEPT = frozenset({VIEW, "transient_lastDdlTime"})


def create(statement: CreateView, run: Running) -> DataFrame:
    """CREATE VIEW; gives no rows.

    Raises:
        NameTaken: it is the name of a table, or of a view that is not to be replaced. UnknownSchema: there is none.
        RecursiveView: it would read itself. TemporaryInView: it would read a temporary view.
        InvalidOption: it has parameters, calls a function that is not Spark's own by less than its whole name, or has
        another number of columns than its query.
        SqlSyntaxError, SqlAnalysisError: Spark cannot make sense of its query.
    """
    spark, name = run.spark, entries.whole(run.spark, statement.name)
    if _is_there(spark, name, statement):
        return run.nothing()
    if any(each.view is not None and each.view.reads(name) for each in statement.query.references):
        raise RecursiveView(name=name_to_sql(name))
    _check_no_arguments(statement)
    text = _lasting(statement.query, statement.text, spark)
    rows = run.query(statement.query)
    schema = _view_schema(statement, rows)
    output, columns = ((), ()) if statement.evolves else (tuple(rows.columns), tuple(schema.names))
    view = StoredView(name, text, _current(spark), output, columns, entries.rules_of(spark))
    _check_lasts(view, schema, run)
    entries.forget()
    try:
        view_entries.record_view(
            spark, view, schema, statement.comment, statement.properties, replaces=statement.replaces
        )
    except AnalysisException:
        if statement.replaces or not entries.is_taken(spark, name):
            raise
        raise NameTaken(name=name_to_sql(name), table=name_to_sql(name)) from None  # by somebody else, meanwhile
    return run.nothing()


def alter(statement: AlterView, run: Running) -> DataFrame:
    """ALTER VIEW … AS: another query, and its columns; the comment and the properties stay. Gives no rows.

    Raises:
        UnknownTable: there is no such view. RecursiveView, TemporaryInView, InvalidOption, SqlSyntaxError,
        SqlAnalysisError: as for `create`.
    """
    spark, name = run.spark, entries.whole(run.spark, statement.name)
    if entries.is_temporary(spark, statement.name):
        is_global = len(statement.name) > 1
        temporary = CreateTempView(statement.name[-1], statement.query, None, True, is_global)
        return temporary_views.create(temporary, run)
    if not statement.query.references:
        return _convert_to_spark_view(statement, run)
    there = entries.see(spark, name)
    if there is None or not there.is_view or entries.find(spark, name) is not None:
        raise UnknownTable(name=name_to_sql(name))
    kept = {key: value for key, value in view_entries.properties_of(spark, name).items() if key not in _NOT_KEPT}
    comment = entries.get_spark_table(spark, name).description
    made = CreateView(statement.name, statement.query, statement.text, None, True, False, comment, kept)
    return create(made, run)


def _check_no_arguments(statement: CreateView | AlterView) -> None:
    if statement.query.arguments:
        raise InvalidOption(option="args", value=statement.name[-1], reason="a lasting view takes no parameters.")


def _convert_to_spark_view(statement: AlterView, run: Running) -> DataFrame:
    """A view of ours whose query reads no Delta table any more, as a view of Spark's own. Between the two steps it
    still shows what it did before.
    """
    _check_no_arguments(statement)
    with of_spark(statement.query, run.spark):
        exact_sql(run.spark, f"ALTER VIEW {name_to_sql(statement.name)} AS {statement.query.text}")
    entries.forget()
    view_entries.unmark_view(run.spark, statement.name)
    return run.nothing()


def _is_there(spark: SparkSession, name: Name, statement: CreateView) -> bool:
    """Whether there is one already, and that is fine.

    Raises:
        NameTaken, UnknownSchema, NoPlaceForNames: there can be none of this name.
    """
    there = entries.see(spark, name)
    if there is None:
        check_place(spark, name)
        return False
    if statement.if_not_exists:
        return True
    if not there.is_view or not statement.replaces or entries.find(spark, name) is not None:
        raise NameTaken(name=name_to_sql(name), table=name_to_sql(name))
    return False


def _current(spark: SparkSession) -> Name:
    return spark.catalog.currentCatalog(), spark.catalog.currentDatabase()


def _view_schema(statement: CreateView, rows: DataFrame) -> Struct:
    """The view's columns: those of its query, under the names and with the comments that the statement gives them."""
    given = rows.columns
    said = [(name, None) for name in given] if statement.columns is None else list(statement.columns)
    if len(said) != len(given):
        reason = f"the query gives {len(given)} columns, the view names {len(said)}."
        raise InvalidOption(option="CREATE VIEW", value=statement.name[-1], reason=reason)
    schema = declared_schema(rows.toDF(*(name for name, _ in said)).schema)
    fields = (
        Field(name, field.type, metadata={} if comment is None else {"comment": comment})
        for (name, comment), field in zip(said, schema, strict=True)
    )
    return Struct(tuple(fields))


# -- names in its query ------------------------------------------------------------------------------------------------


def _lasting(query: Query, text: str, spark: SparkSession) -> str:
    """The query's text, as it was written, in which what is no Delta table of ours has its whole name.

    Raises:
        TemporaryInView: that is a temporary view. InvalidOption: it calls a function that is not Spark's own.
    """
    tokens = tokenize(text)
    _check_functions(tokens, spark)
    known = {each.table.span[0] - query.span[0] for each in query.references}
    found = (each for each in tables_read(tokens) if not each.asks_changes)
    edits = [edit for each in found if (edit := _edit(each, tokens, known, spark)) is not None]
    return apply_edits(text, 0, len(text), sorted(edits))


def _edit(found: Found, tokens: list[Token], known: set[int], spark: SparkSession) -> Edit | None:
    """What makes a name whole; None where it is whole, or no name in a catalog, as that of a file is not."""
    start, stop = tokens[found.first].start, tokens[found.after - 1].end + 1
    there = None if start in known or len(found.parts) > 2 else entries.see(spark, found.parts)
    if there is None:
        return None
    if there.is_temporary:
        raise TemporaryInView(name=name_to_sql(found.parts))
    return Edit(start, stop, name_to_sql(entries.whole(spark, found.parts)))


def _check_functions(tokens: list[Token], spark: SparkSession) -> None:
    """Raise an error where a function is called that another session could find elsewhere, or not at all.

    Raises:
        InvalidOption: one is.
    """
    called = {
        token.text.lower()
        for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False)
        if after.token_type == TokenType.L_PAREN and (before is None or before.token_type != TokenType.DOT)
    }
    users = {row[0].rpartition(".")[2].strip("`").lower() for row in exact_sql(spark, "SHOW USER FUNCTIONS").collect()}
    for name in sorted(called & users):
        reason = "a lasting view calls it by its whole name, catalog.schema.function; a temporary one it cannot call."
        raise InvalidOption(option="function", value=name, reason=reason)


def _check_lasts(view: StoredView, schema: Struct, run: Running) -> None:
    """Raise an error unless the view, as it will be kept, reads as its query does.

    Raises:
        InvalidOption: it does not. UnknownTable, SqlSyntaxError, SqlAnalysisError: it cannot be read at all.
    """
    shown = run.view(Names(run.spark).view(view)).schema
    if [(each.name, each.type) for each in declared_schema(shown)] != [(each.name, each.type) for each in schema]:
        reason = "read back by whole names, its query has other columns."
        raise InvalidOption(option="CREATE VIEW", value=name_to_sql(view.name), reason=reason)
