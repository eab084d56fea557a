"""The table of statements: the first words of each, the function that parses it, and the one that runs it.

A new statement needs an entry here, a class in `anabranch._sql.grammar.statement_values`, and its two functions.
Guarantee: nothing else lists statements; everything that depends on the kind of a statement is a field of its entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from anabranch._spark.sessions.settings import honour_settings
from anabranch._sql.executor import (
    alter_table,
    caching,
    create_table,
    explain_statement,
    maintenance_statements,
    persistent_views,
    row_statements,
    show,
    temporary_views,
)
from anabranch._sql.executor.alter_table import changing
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar import alter_table as alter_grammar
from anabranch._sql.grammar import create_table as create_grammar
from anabranch._sql.grammar import explain_parser as explain_grammar
from anabranch._sql.grammar import maintenance_parser as maintenance_grammar
from anabranch._sql.grammar import row_parser as row_grammar
from anabranch._sql.grammar import row_values, view_values
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.grammar import views as view_grammar
from anabranch._sql.grammar.parts import Query, Statement
from anabranch._transaction.open_transaction import open_transaction
from anabranch.commands.rerunning import rerun_statement
from anabranch.errors import NotInTransaction

_TABLE = " … "
_COLUMN = "ALTER|CHANGE [COLUMN]"


@dataclass(frozen=True)
class Entry:
    """One statement.

    Attributes:
        words: its first words: ``[…]`` is optional, ``A|B`` is one of two, and ``…`` is the name of a table.
        grammar: parses the rest of the statement; with ``…`` in ``words`` it gets the table as well.
        value: the class that ``grammar`` returns; None if it always refuses. A function may return several classes.
        run: runs the value; None if the statement only changes a name (`anabranch._sql.executor.name_statements`).
        verb: the statement's name for settings that may refuse it; None if it changes no table.
        only_delta: whether Spark has no such statement, so that it must name a Delta table.
        reshapes: whether it may change the table's columns.
        command: creates the command of a change that does not depend on the table's state.
    """

    words: str
    grammar: Callable[..., Statement | None]
    value: type[Statement] | None
    run: Callable[[Any, StatementContext], DataFrame] | None
    verb: str | None = None
    only_delta: bool = False
    reshapes: bool = False
    command: Callable[[Any], Any] | None = None

    @property
    def of_table(self) -> tuple[str, str]:
        """The words before a table's name, and those after it."""
        before, _, after = self.words.partition(_TABLE)
        return before, after

    @property
    def first(self) -> frozenset[str]:
        """The words that may come first."""
        return frozenset(self.words.split()[0].split("|"))


def _alter(
    words: str,
    grammar: Callable[..., Statement],
    value: type[Statement],
    command: Callable[[Any], Any],
    *,
    reshapes: bool = False,
    verb: str = "ALTER",
) -> Entry:
    """Return the entry of an ALTER TABLE whose command depends on the statement alone."""
    return Entry(f"ALTER TABLE … {words}", grammar, value, changing(command), verb, reshapes=reshapes, command=command)


ENTRIES = (
    Entry("DELETE", row_grammar.delete, row_values.DeleteRows, row_statements.delete, "DELETE"),
    Entry("TRUNCATE TABLE", row_grammar.truncate, row_values.TruncateTable, row_statements.truncate, "DELETE"),
    Entry("UPDATE", row_grammar.update, row_values.UpdateRows, row_statements.update, "UPDATE"),
    Entry("MERGE", row_grammar.merge, row_values.MergeRows, row_statements.merge, "MERGE", reshapes=True),
    Entry("INSERT", row_grammar.insert, row_values.InsertRows, row_statements.insert, "INSERT", reshapes=True),
    Entry("FROM", row_grammar.inserts, row_values.MultiInsert, row_statements.insert_each, "INSERT", reshapes=True),
    Entry("EXPLAIN", explain_grammar.explain, v.ExplainChange, explain_statement.explain),
    Entry("CREATE [OR REPLACE] TABLE", create_grammar.create_table, v.CreateTable, create_table.create, "CREATE"),
    Entry("CREATE EXTERNAL TABLE", create_grammar.create_table, v.CreateTable, create_table.create, "CREATE"),
    Entry("REPLACE TABLE", create_grammar.create_table, v.CreateTable, create_table.create, "CREATE"),
    Entry(
        "CREATE [OR REPLACE] TABLE", create_grammar.create_table, v.CloneTable, maintenance_statements.clone, "CLONE"
    ),
    Entry("CREATE [OR REPLACE] VIEW", create_grammar.create_view, view_values.CreateView, persistent_views.create),
    Entry(
        "CREATE [OR REPLACE] [GLOBAL] TEMPORARY|TEMP VIEW",
        create_grammar.create_temporary_view,
        view_values.CreateTempView,
        temporary_views.create,
    ),
    Entry("ALTER VIEW", view_grammar.alter_view, view_values.AlterView, persistent_views.alter),
    Entry("DROP VIEW", view_grammar.drop_view, None, None),
    Entry("DROP TABLE", create_grammar.drop_table, v.DropTable, None),
    Entry("CONVERT", create_grammar.convert, v.ConvertTable, create_table.convert, "CONVERT", only_delta=True),
    Entry("CONVERT", create_grammar.convert, v.ConvertName, create_table.convert_name, "CONVERT", only_delta=True),
    _alter(
        "SET TBLPROPERTIES",
        alter_grammar.set_properties,
        v.SetTableProperties,
        alter_table.set_properties,
        reshapes=True,
    ),
    _alter("UNSET TBLPROPERTIES", alter_grammar.unset_properties, v.UnsetTableProperties, alter_table.unset_properties),
    Entry("ALTER TABLE … SET LOCATION", alter_grammar.set_location, None, None),
    Entry("ALTER TABLE … RECOVER PARTITIONS", alter_grammar.partitions, None, None),
    Entry("ALTER TABLE … ADD|DROP PARTITION", alter_grammar.partitions, None, None),
    Entry("ALTER TABLE … ADD IF NOT EXISTS PARTITION", alter_grammar.partitions, None, None),
    Entry("ALTER TABLE … DROP IF EXISTS PARTITION", alter_grammar.partitions, None, None),
    Entry("ALTER TABLE … PARTITION", alter_grammar.partitions, None, None),
    Entry("ALTER TABLE … RENAME TO", alter_grammar.rename, v.RenameTable, None),
    Entry(
        "ALTER TABLE … ADD CONSTRAINT",
        alter_grammar.add_constraint,
        v.AddTableConstraint,
        alter_table.add_constraint,
        "ALTER",
    ),
    _alter("ADD CONSTRAINT", alter_grammar.add_constraint, v.AddTableKey, alter_table.add_key),
    _alter("ADD PRIMARY KEY", alter_grammar.add_key, v.AddTableKey, alter_table.add_key),
    _alter("ADD FOREIGN KEY", alter_grammar.add_key, v.AddTableKey, alter_table.add_key),
    _alter("DROP CONSTRAINT", alter_grammar.drop_constraint, v.DropTableConstraint, alter_table.drop_constraint),
    _alter("DROP PRIMARY KEY", alter_grammar.drop_primary, v.DropTableKey, alter_table.drop_key),
    _alter("DROP FOREIGN KEY", alter_grammar.drop_foreign, v.DropTableKey, alter_table.drop_key),
    _alter("DROP FEATURE", alter_grammar.drop_feature, v.DropTableFeature, alter_table.drop_feature),
    _alter("ADD COLUMNS|COLUMN", alter_grammar.add_columns, v.AddTableColumns, alter_table.add_columns, reshapes=True),
    _alter(
        "DROP COLUMNS|COLUMN", alter_grammar.drop_columns, v.DropTableColumns, alter_table.drop_columns, reshapes=True
    ),
    _alter("RENAME COLUMN", alter_grammar.rename_column, v.RenameTableColumn, alter_table.rename_column, reshapes=True),
    _alter(
        "REPLACE COLUMNS",
        alter_grammar.replace_columns,
        v.ReplaceTableColumns,
        alter_table.replace_columns,
        reshapes=True,
    ),
    _alter(_COLUMN, alter_grammar.alter_column, v.ChangeTableColumn, alter_table.change_column, reshapes=True),
    _alter(_COLUMN, alter_grammar.alter_column, v.ChangeTableColumns, alter_table.change_columns, reshapes=True),
    _alter(_COLUMN, alter_grammar.alter_column, v.SyncTableIdentity, alter_table.sync_identity, verb="SYNC IDENTITY"),
    _alter("CLUSTER BY", alter_grammar.cluster_by, v.ClusterTableBy, alter_table.cluster_by),
    Entry(
        "COMMENT ON TABLE",
        alter_grammar.comment_on_table,
        v.SetTableProperties,
        changing(alter_table.set_properties),
        "ALTER",
        reshapes=True,
        command=alter_table.set_properties,
    ),
    Entry(
        "COMMENT ON COLUMN",
        alter_grammar.comment_on_column,
        v.ChangeTableColumn,
        changing(alter_table.change_column),
        "ALTER",
        reshapes=True,
        command=alter_table.change_column,
    ),
    Entry("DESCRIBE|DESC HISTORY", maintenance_grammar.describe_history, v.DescribeHistory, show.describe_history),
    Entry("DESCRIBE|DESC DETAIL", maintenance_grammar.describe_detail, v.DescribeDetail, show.describe_detail),
    Entry("DESCRIBE|DESC DETAIL", maintenance_grammar.describe_detail, v.DescribeOther, show.describe_other),
    Entry("DESCRIBE|DESC", maintenance_grammar.describe, v.DescribeTable, show.describe),
    Entry("SHOW COLUMNS", maintenance_grammar.show_columns, v.ShowColumns, show.show_columns),
    Entry("SHOW PARTITIONS", maintenance_grammar.show_partitions, v.ShowPartitions, show.show_partitions),
    Entry("SHOW TBLPROPERTIES", maintenance_grammar.show_properties, v.ShowProperties, show.show_properties),
    Entry("SHOW CREATE TABLE", maintenance_grammar.show_create, v.ShowCreateTable, show.show_create),
    Entry("REFRESH TABLE", maintenance_grammar.refresh, v.RefreshTable, show.refresh),
    Entry("CACHE [LAZY] TABLE", maintenance_grammar.cache, v.CacheTable, caching.cache),
    Entry("CACHE [LAZY] TABLE", maintenance_grammar.cache, view_values.CacheView, caching.cache_view),
    Entry("UNCACHE TABLE", maintenance_grammar.uncache, v.UncacheTable, caching.uncache),
    Entry(
        "OPTIMIZE",
        maintenance_grammar.optimize,
        v.OptimizeTable,
        maintenance_statements.optimize,
        "OPTIMIZE",
        only_delta=True,
    ),
    Entry("REORG", maintenance_grammar.reorg, v.ReorgTable, maintenance_statements.reorg, "REORG", only_delta=True),
    Entry(
        "VACUUM", maintenance_grammar.vacuum, v.VacuumTable, maintenance_statements.vacuum, "VACUUM", only_delta=True
    ),
    Entry(
        "RESTORE",
        maintenance_grammar.restore,
        v.RestoreTable,
        maintenance_statements.restore,
        "RESTORE",
        only_delta=True,
        reshapes=True,
    ),
    Entry(
        "GENERATE", maintenance_grammar.generate, v.GenerateManifest, maintenance_statements.generate, only_delta=True
    ),
    Entry("FSCK", maintenance_grammar.repair, v.RepairTable, maintenance_statements.repair, "FSCK", only_delta=True),
)
"""All statements; of several with the same first words, those with more words come first."""

DELTA_ONLY = frozenset(word for entry in ENTRIES if entry.only_delta for word in entry.first)
"""The first words of statements that only Delta has."""

_BY_VALUE = {entry.value: entry for entry in ENTRIES if entry.value is not None}
_BY_FIRST: dict[str, list[Entry]] = {}
for _entry in ENTRIES:
    for _word in _entry.first:
        _BY_FIRST.setdefault(_word, []).append(_entry)


def beginning_with(word: str) -> list[Entry]:
    """Return the entries of statements that begin with a word."""
    return _BY_FIRST.get(word, [])


def entry_of(statement: Statement) -> Entry:
    """Return the entry of a parsed statement."""
    return _BY_VALUE[type(statement)]


Redoable = (
    row_values.DeleteRows
    | row_values.InsertRows
    | row_values.MergeRows
    | row_values.TruncateTable
    | row_values.UpdateRows
)
"""Statements that are one transaction on the rows of one table."""

_RunsAgain = Redoable | v.CreateTable
"""Statements that run again from their text, which reads what is newest by then."""


_Shown = (
    v.DescribeHistory
    | v.DescribeDetail
    | v.DescribeOther
    | v.DescribeTable
    | v.ExplainChange
    | v.ShowColumns
    | v.ShowCreateTable
    | v.ShowPartitions
    | v.ShowProperties
)
"""Statements that only show something of a table."""


def check_inside(statement: Statement) -> None:
    """Check that a statement may stand inside this thread's open transaction, if there is one. Raises NotInTransaction:
    it may not, since it changes more than the rows of one table.
    """
    if open_transaction() is None or isinstance(statement, Query | Redoable | _Shown):
        return
    entry = entry_of(statement)
    what = entry.verb or entry.words.partition(" ")[0]
    reason = "a transaction of several statements takes queries, INSERT, UPDATE, DELETE and MERGE, and nothing else."
    raise NotInTransaction(what=what, table="", reason=reason)


def run(statement: Statement, on: StatementContext) -> DataFrame:
    """Run a statement in its session; a change of a table honours the session's settings."""
    if isinstance(statement, Query):
        result = on.aggregate(statement)
        return on.query(statement) if result is None else result
    entry = entry_of(statement)
    assert entry.run is not None, "statements that only change a name run in anabranch._sql.executor.name_statements"
    if entry.verb is None:
        return entry.run(statement, on)
    replaces = isinstance(statement, v.CreateTable) and statement.replaces
    with honour_settings(on.spark, "REPLACE" if replaces else entry.verb):
        if not isinstance(statement, _RunsAgain) or on.frames:  # frames hold the rows of their own versions
            return entry.run(statement, on)
        return _run_again(entry.run, statement, on)


def _run_again(
    run_once: Callable[[Any, StatementContext], DataFrame], statement: _RunsAgain, on: StatementContext
) -> DataFrame:
    """Run a statement; a further run reads what is newest by then."""
    return rerun_statement(
        lambda: run_once(statement, on),
        lambda: run_once(statement, on.anew()),
        lambda: on.anew().newest(statement.table),
        on.engine.settings,
        reads_others=not _reads_its_table_only(statement),
    )


def _reads_its_table_only(statement: _RunsAgain) -> bool:
    """Whether a statement has no query."""
    if isinstance(statement, row_values.InsertRows):
        return bool(statement.values)
    return isinstance(statement, row_values.DeleteRows | row_values.TruncateTable | row_values.UpdateRows)
