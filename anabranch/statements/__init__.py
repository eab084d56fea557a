"""``anabranch.sql``: SQL text on Delta tables, in a session with nothing patched.

A door: it takes a statement apart (`anabranch.parsing.statements`), runs the command that ``DeltaTable`` would run, and
gives the DataFrame that delta-spark gives. Guarantee: a statement that touches no Delta table is Spark's, byte for
byte; parameters are bound as values, and never become part of a text that they could change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import InvalidOption, SqlSyntaxError
from anabranch.parsing import statements as parsing
from anabranch.parsing.statements import values as v
from anabranch.parsing.statements.parts import Query, View
from anabranch.spark.names import is_foreign, parts_of
from anabranch.spark.session import plain_sql
from anabranch.statements import lasting, rows, showing, tables, upkeep, views
from anabranch.statements.failing import placed_in
from anabranch.statements.named import Names
from anabranch.statements.resolving import Paths, Resolver
from anabranch.statements.running import Running, check_quotes

__all__ = ["Names", "Paths", "Resolver", "lasting_view", "sql"]


def sql(spark: SparkSession, text: str, args: Any = None, *, names: Resolver | None = None) -> DataFrame:
    """Run an SQL statement: on Delta tables, named by their paths (``delta.`/data/flights` ``) or by their names in the
    session's catalog, or any of Spark's.

    A query reads each Delta table at one version, whatever is committed meanwhile. A change of rows is one transaction,
    as by ``DeltaTable``.

    Args:
        spark: any session.
        text: one statement.
        args: the values of its parameters: a dict for ``:name``, a list for ``?``.
        names: which names are Delta tables; by default those of the session's catalog, and paths.

    Returns:
        a query's rows; of DELETE, UPDATE and MERGE the numbers of rows; of what shows a table what it shows; else no
        rows.

    Raises:
        SqlSyntaxError, SqlAnalysisError, UnknownTable: the statement is none that can be run; the message shows where.
        TransactionStatement: it begins or ends a transaction of several statements.
        AnabranchError: as the methods of ``DeltaTable``.

    Example:
        >>> anabranch.sql(spark, "DELETE FROM delta.`/data/flights` WHERE carrier = :c", {"c": "UA"}).show()
    """
    if not isinstance(text, str):
        raise InvalidOption(option="sqlQuery", value=type(text).__name__, reason="it takes the text of a statement.")
    resolver, run = names or Names(spark), Running(spark)
    views.renew(run, text)
    if not (parsing.may_matter(text) or resolver.may_matter(text)):
        return _plain(spark, text, args)
    if parsing.may_matter(text):
        check_quotes(spark, text)
    try:
        with placed_in(text):
            statement = parsing.statement(text, args, resolver.location, resolver.place, resolver.kept)
    except SqlSyntaxError:
        if parsing.may_matter(text) or parsing.is_cut(text):
            raise
        statement = None  # Spark may know words that are not known here
    if statement is None:
        return _plain(spark, text, args)
    check_quotes(spark, text)
    with placed_in(text):
        return resolver.run(statement, run, lambda: _run(statement, run))


def lasting_view(spark: SparkSession, identifier: str, resolver: Names) -> DataFrame | None:
    """The rows of the lasting view of a name; None where it is no such view's."""
    name = parts_of(identifier) if isinstance(identifier, str) else None
    if name is None or is_foreign(spark, name):  # as who asked for a table of this name has just seen
        return None
    view = resolver.location(name)
    return Running(spark).view(view).alias(view.name[-1]) if isinstance(view, View) else None


def _plain(spark: SparkSession, text: str, args: Any) -> DataFrame:
    found = plain_sql(spark, text, args)
    views.note(spark, text)
    return found


_RUNS: dict[type, Callable[[Any, Running], DataFrame]] = {
    Query: lambda statement, run: run.query(statement),
    v.DeleteRows: rows.delete,
    v.TruncateTable: rows.truncate,
    v.UpdateRows: rows.update,
    v.MergeRows: rows.merge,
    v.InsertRows: rows.insert,
    v.CreateTable: tables.create,
    v.ConvertTable: tables.convert,
    v.CreateTempView: tables.view,
    v.CreateView: lasting.create,
    v.AlterView: lasting.alter,
    v.OptimizeTable: upkeep.optimize,
    v.ReorgTable: upkeep.reorg,
    v.VacuumTable: upkeep.vacuum,
    v.RestoreTable: upkeep.restore,
    v.CloneTable: upkeep.clone,
    v.GenerateManifest: upkeep.generate,
    v.RepairTable: upkeep.repair,
    **dict.fromkeys(
        (
            v.SetTableProperties,
            v.UnsetTableProperties,
            v.AddTableColumns,
            v.DropTableColumns,
            v.RenameTableColumn,
            v.ChangeTableColumn,
            v.ChangeTableColumns,
            v.SyncTableIdentity,
            v.ReplaceTableColumns,
            v.AddTableConstraint,
            v.DropTableConstraint,
            v.AddTableKey,
            v.DropTableKey,
            v.DropTableFeature,
            v.ClusterTableBy,
        ),
        tables.altered,
    ),
    v.DescribeHistory: showing.describe_history,
    v.DescribeDetail: showing.describe_detail,
    v.DescribeTable: showing.describe,
    v.ShowColumns: showing.show_columns,
    v.ShowProperties: showing.show_properties,
    v.ShowCreateTable: showing.show_create,
}


def _run(statement: v.Statement, run: Running) -> DataFrame:
    return _RUNS[type(statement)](statement, run)
