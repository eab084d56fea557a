"""``anabranch.sql``: SQL text on Delta tables, in a session with nothing patched.

A door: it takes a statement apart (`anabranch.parsing.statements`), runs the command that ``DeltaTable`` would run, and
gives the DataFrame that delta-spark gives. Guarantee: a statement that touches no Delta table is Spark's, byte for
byte; parameters are bound as values, and never become part of a text that they could change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import InvalidOption, SqlAnalysisError, SqlSyntaxError
from anabranch.errors.inputs import check_text
from anabranch.errors.rows import statement as one_statement
from anabranch.parsing import statements as parsing
from anabranch.parsing.statements import values as v
from anabranch.parsing.statements.computed import may_be_computed
from anabranch.parsing.statements.parts import Query, View
from anabranch.spark.names import is_foreign, parts_of
from anabranch.spark.settings import honoured
from anabranch.spark.texts import cut, joined_sql, substituted
from anabranch.statements import lasting, rows, showing, tables, upkeep, views
from anabranch.statements.computed import Asked, asked, set_from
from anabranch.statements.failing import placed_in
from anabranch.statements.named import Names
from anabranch.statements.resolving import Paths, Resolver
from anabranch.statements.running import Running, check_quotes

Frames = Mapping[str, DataFrame] | None
_NO_ROWS = {
    "delta_condition": "INVALID_STATEMENT_FOR_EXECUTE_INTO",
    "state": "07501",
    "reason": "The INTO clause of EXECUTE IMMEDIATE takes the rows of a query, and the statement is none.",
}

__all__ = ["Names", "Paths", "Resolver", "lasting_view", "sql"]


def sql(
    spark: SparkSession, text: str, args: Any = None, *, names: Resolver | None = None, frames: Frames = None
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
    if not isinstance(text, str):
        raise InvalidOption(option="sqlQuery", value=type(text).__name__, reason="it takes the text of a statement.")
    _check_texts(args)
    with one_statement():
        return _ran(Running(spark, frames), text, args, names or Names(spark))


def _ran(run: Running, written: str, args: Any, resolver: Resolver) -> DataFrame:
    spark = run.spark

    def matters(text: str) -> bool:
        return parsing.may_matter(text) or resolver.may_matter(text)

    said = asked(spark, _filled(written, spark, resolver), args, matters, lambda each: _filled(each, spark, resolver))
    views.renew(run, said.text)
    if not matters(said.text):
        return _plain(run, written, args, said.text)
    statement = _understood(spark, said, resolver)
    if statement is None:
        return _plain(run, written, args, said.text)
    check_quotes(spark, said.text)
    with placed_in(said.text):
        return resolver.run(statement, run, lambda: _run(statement, run))


def _understood(spark: SparkSession, said: Asked, resolver: Resolver) -> v.Statement | None:
    """What a statement asks of Delta tables; None where it is Spark's."""
    if parsing.may_matter(said.text):
        check_quotes(spark, said.text)
    try:
        with placed_in(said.text):
            found = parsing.statement(said.text, said.args, resolver.location, resolver.place, resolver.kept)
    except SqlSyntaxError:
        if parsing.may_matter(said.text) or parsing.is_cut(said.text):
            raise
        return None  # Spark may know words that are not known here
    if found is None or said.into is None:
        return found
    if not isinstance(found, Query):
        raise SqlAnalysisError(**_NO_ROWS)
    return _understood(spark, set_from(said), resolver)


def lasting_view(spark: SparkSession, identifier: str, resolver: Names) -> DataFrame | None:
    """The rows of the lasting view of a name; None where it is no such view's."""
    name = parts_of(identifier) if isinstance(identifier, str) else None
    if name is None or is_foreign(spark, name):  # as who asked for a table of this name has just seen
        return None
    view = resolver.location(name)
    return Running(spark).view(view).alias(view.name[-1]) if isinstance(view, View) else None


def _plain(run: Running, written: str, args: Any, text: str) -> DataFrame:
    """What Spark makes of a statement as the user wrote it; ``text`` is that with nothing left to be evaluated."""
    found = joined_sql(run.spark, cut(written, run.frames), args)
    views.note(run.spark, text)
    return found


def _check_texts(value: Any) -> None:
    """Hold that the texts among the values of parameters, inside of others too, can be written.

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


def _filled(text: str, spark: SparkSession, resolver: Resolver) -> str:
    """A statement as Spark reads it; as it is where nobody can say so, and it touches no table of ours.

    Raises:
        InvalidOption: nobody can say what ``${…}`` stands for in it.
    """
    try:
        return substituted(text, spark)
    except InvalidOption:
        if parsing.may_matter(text) or resolver.may_matter(text) or may_be_computed(text):
            raise
        return text


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


_VERBS: dict[type, str] = {
    v.DeleteRows: "DELETE",
    v.TruncateTable: "DELETE",
    v.UpdateRows: "UPDATE",
    v.MergeRows: "MERGE",
    v.InsertRows: "INSERT",
    v.CreateTable: "CREATE",
    v.ConvertTable: "CONVERT",
    v.RestoreTable: "RESTORE",
    v.CloneTable: "CLONE",
    v.VacuumTable: "VACUUM",
    v.OptimizeTable: "OPTIMIZE",
    v.ReorgTable: "REORG",
    v.RepairTable: "FSCK",
    v.SyncTableIdentity: "SYNC IDENTITY",
}
"""What statements are called by which a session's settings may be refused; ALTER of those that are not here."""
_READS = (
    Query,
    v.CreateTempView,
    v.CreateView,
    v.AlterView,
    v.GenerateManifest,
    v.DescribeHistory,
    v.DescribeDetail,
    v.DescribeTable,
    v.ShowColumns,
    v.ShowProperties,
    v.ShowCreateTable,
)


def _run(statement: v.Statement, run: Running) -> DataFrame:
    if isinstance(statement, _READS):
        return _RUNS[type(statement)](statement, run)
    verb = _VERBS.get(type(statement), "ALTER")
    verb = "REPLACE" if isinstance(statement, v.CreateTable) and statement.replaces else verb
    with honoured(run.spark, verb):
        return _RUNS[type(statement)](statement, run)
