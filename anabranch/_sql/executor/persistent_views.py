"""Persistent views: views in Spark's catalog of queries on Delta tables.

The catalog stores the query's text, the schema in which its names are resolved, and the columns of its result.
Guarantees: a name in a view means the same in every session, whatever its current schema and its temporary views are;
no view reads itself; a session without Anabranch reads no row of a view, as it reads none of a table.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from anabranch._catalog import entries, view_entries
from anabranch._catalog.entry import StoredView
from anabranch._catalog.entry_properties import VIEW
from anabranch._catalog.named_tables import check_place
from anabranch._catalog.table_names import Name, name_to_sql
from anabranch._expressions.dialect import Token, TokenType, tokenize
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.columns.types import declared_schema
from anabranch._spark.sessions.sql_text import exact_sql
from anabranch._sql.executor import temporary_views
from anabranch._sql.executor.error_position import of_spark
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar.parts import Query
from anabranch._sql.grammar.qualifiers import Edit, apply_edits
from anabranch._sql.grammar.tables_read import TableMention, tables_read
from anabranch._sql.grammar.view_values import AlterView, CreateTempView, CreateView
from anabranch.errors import InvalidOption, NameTaken, RecursiveView, TemporaryInView, UnknownTable

_INTERNAL_PROPERTIES = frozenset({VIEW, "transient_lastDdlTime"})


def create(statement: CreateView, run: StatementContext) -> DataFrame:
    """CREATE VIEW; returns no rows.

    Raises:
        NameTaken: a table has the name, or a view that is not to be replaced. UnknownSchema: there is no such schema.
        RecursiveView: it would read itself. TemporaryInView: it would read a temporary view.
        InvalidOption: it has parameters, calls a user's function by less than its full name, or has another number of
            columns than its query.
        SqlSyntaxError, SqlAnalysisError: Spark cannot parse or analyse its query.
    """
    spark, name = run.spark, entries.complete_name(run.spark, statement.name)
    if _is_existing(spark, name, statement):
        return run.nothing()
    if any(reference.view is not None and reference.view.reads(name) for reference in statement.query.references):
        raise RecursiveView(name=name_to_sql(name))
    _check_no_arguments(statement)
    text = _qualify_names(statement.query, statement.text, spark)
    rows = run.query(statement.query)
    schema = _view_schema(statement, rows)
    output, columns = ((), ()) if statement.evolves else (tuple(rows.columns), tuple(schema.names))
    view = StoredView(name, text, _current_schema(spark), output, columns, entries.rules_of(spark))
    _check_stored(view, schema, run)
    entries.forget()
    try:
        view_entries.record_view(
            spark, view, schema, statement.comment, statement.properties, replaces=statement.replaces
        )
    except AnalysisException:
        if statement.replaces or not entries.is_taken(spark, name):
            raise
        raise NameTaken(name=name_to_sql(name), table=name_to_sql(name)) from None  # by another session, meanwhile
    return run.nothing()


def alter(statement: AlterView, run: StatementContext) -> DataFrame:
    """ALTER VIEW … AS: replaces the query and the columns; keeps comment and properties. Returns no rows.

    Raises:
        UnknownTable: there is no such view. RecursiveView, TemporaryInView, InvalidOption, SqlSyntaxError,
        SqlAnalysisError: as for `create`.
    """
    spark, name = run.spark, entries.complete_name(run.spark, statement.name)
    if entries.is_temporary(spark, statement.name):
        is_global = len(statement.name) > 1
        temporary = CreateTempView(statement.name[-1], statement.query, None, True, is_global)
        return temporary_views.create(temporary, run)
    if not statement.query.references:
        return _convert_to_spark_view(statement, run)
    existing = entries.find_item(spark, name)
    if existing is None or not existing.is_view or entries.find(spark, name) is not None:
        raise UnknownTable(name=name_to_sql(name))
    properties = {
        key: value for key, value in view_entries.properties_of(spark, name).items() if key not in _INTERNAL_PROPERTIES
    }
    comment = entries.get_spark_table(spark, name).description
    replacement = CreateView(statement.name, statement.query, statement.text, None, True, False, comment, properties)
    return create(replacement, run)


def _check_no_arguments(statement: CreateView | AlterView) -> None:
    if statement.query.arguments:
        raise InvalidOption(option="args", value=statement.name[-1], reason="a persistent view takes no parameters.")


def _convert_to_spark_view(statement: AlterView, run: StatementContext) -> DataFrame:
    """Turn a view whose new query reads no Delta table into a view of Spark's.

    Between the two steps the view still shows its old rows.
    """
    _check_no_arguments(statement)
    with of_spark(statement.query, run.spark):
        exact_sql(run.spark, f"ALTER VIEW {name_to_sql(statement.name)} AS {statement.query.text}")
    entries.forget()
    view_entries.unmark_view(run.spark, statement.name)
    return run.nothing()


def _is_existing(spark: SparkSession, name: Name, statement: CreateView) -> bool:
    """Whether the name exists and the statement has IF NOT EXISTS.

    Raises:
        NameTaken, UnknownSchema, NoPlaceForNames: a view of this name cannot be created.
    """
    existing = entries.find_item(spark, name)
    if existing is None:
        check_place(spark, name)
        return False
    if statement.if_not_exists:
        return True
    if not existing.is_view or not statement.replaces or entries.find(spark, name) is not None:
        raise NameTaken(name=name_to_sql(name), table=name_to_sql(name))
    return False


def _current_schema(spark: SparkSession) -> Name:
    return spark.catalog.currentCatalog(), spark.catalog.currentDatabase()


def _view_schema(statement: CreateView, rows: DataFrame) -> Struct:
    """Return the view's columns: those of its query, with the names and comments of the statement."""
    query_columns = rows.columns
    view_columns = [(name, None) for name in query_columns] if statement.columns is None else list(statement.columns)
    if len(view_columns) != len(query_columns):
        reason = f"the query gives {len(query_columns)} columns, the view names {len(view_columns)}."
        raise InvalidOption(option="CREATE VIEW", value=statement.name[-1], reason=reason)
    schema = declared_schema(rows.toDF(*(name for name, _ in view_columns)).schema)
    fields = (
        Field(name, field.type, metadata={} if comment is None else {"comment": comment})
        for (name, comment), field in zip(view_columns, schema, strict=True)
    )
    return Struct(tuple(fields))


# -- names in its query ------------------------------------------------------------------------------------------------


def _qualify_names(query: Query, text: str, spark: SparkSession) -> str:
    """Write the names of other tables than ours in full; the rest of the query's text stays as it is.

    Raises:
        TemporaryInView: the query reads a temporary view. InvalidOption: it calls a user's function.
    """
    tokens = tokenize(text)
    _check_functions(tokens, spark)
    known_starts = {reference.table.span[0] - query.span[0] for reference in query.references}
    mentions = (mention for mention in tables_read(tokens) if not mention.asks_changes)
    edits = [
        edit for mention in mentions if (edit := _qualifying_edit(mention, tokens, known_starts, spark)) is not None
    ]
    return apply_edits(text, 0, len(text), sorted(edits))


def _qualifying_edit(
    mention: TableMention, tokens: list[Token], known_starts: set[int], spark: SparkSession
) -> Edit | None:
    """Return the edit that writes a name in full; None if it is full, or not in a catalog, like a file's."""
    start, stop = tokens[mention.first].start, tokens[mention.after - 1].end + 1
    existing = None if start in known_starts or len(mention.parts) > 2 else entries.find_item(spark, mention.parts)
    if existing is None:
        return None
    if existing.is_temporary:
        raise TemporaryInView(name=name_to_sql(mention.parts))
    return Edit(start, stop, name_to_sql(entries.complete_name(spark, mention.parts)))


def _check_functions(tokens: list[Token], spark: SparkSession) -> None:
    """Check that every function means the same in another session.

    Raises:
        InvalidOption: the query calls a user's function by less than its full name.
    """
    calls = {
        token.text.lower()
        for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False)
        if after.token_type == TokenType.L_PAREN and (before is None or before.token_type != TokenType.DOT)
    }
    users = {row[0].rpartition(".")[2].strip("`").lower() for row in exact_sql(spark, "SHOW USER FUNCTIONS").collect()}
    for name in sorted(calls & users):
        reason = (
            "a persistent view must call it by its full name, catalog.schema.function, "
            "and cannot call a temporary function."
        )
        raise InvalidOption(option="function", value=name, reason=reason)


def _check_stored(view: StoredView, schema: Struct, run: StatementContext) -> None:
    """Check that the view as it will be stored has the columns of its query.

    Raises:
        InvalidOption: it has others. UnknownTable, SqlSyntaxError, SqlAnalysisError: it cannot be read at all.
    """
    stored_schema = run.view(Names(run.spark).view(view)).schema
    if [(stored_field.name, stored_field.type) for stored_field in declared_schema(stored_schema)] != [
        (field.name, field.type) for field in schema
    ]:
        reason = "with full names, its query has other columns."
        raise InvalidOption(option="CREATE VIEW", value=name_to_sql(view.name), reason=reason)
