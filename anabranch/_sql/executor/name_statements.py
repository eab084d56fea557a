"""Applies statements to the catalog: creates, drops and renames the names of tables, and refreshes their columns.

A path has no entry in the catalog: a statement that would drop or rename it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from anabranch._catalog import entries, named_tables
from anabranch._catalog.named_tables import NamedTable
from anabranch._catalog.table_names import name_to_sql
from anabranch._catalog.view_entries import ddl
from anabranch._log.snapshot import Snapshot
from anabranch._spark.sessions.cached_rows import release
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar import row_values
from anabranch._sql.grammar import statement_values as v
from anabranch._sql.grammar.parts import Statement, Table
from anabranch.commands.opening import open_log
from anabranch.errors import InvalidOption, NameTaken, UnknownTable


def run(
    statement: Statement, names: Names, run: StatementContext, plain: Callable[[], DataFrame], *, reshapes: bool
) -> DataFrame:
    """Run a statement by ``plain``, and apply it to the catalog; ``reshapes`` is as in `registry.Entry`.

    Raises:
        NameTaken, UnknownTable: a name is taken, or there is no table to replace or drop.
        InvalidOption: it would drop or rename a path.
    """
    table = getattr(statement, "table", None)
    if table is None:
        rows = plain()
        for insert in statement.inserts if isinstance(statement, row_values.MultiInsert) else ():
            _refresh(insert.table, names, run)
        return rows
    if isinstance(statement, v.CreateTable | v.CloneTable) and table.name in names.new:
        return _create_table(statement, names.new[table.name], run, plain)
    entry = names.entry(table.name)
    if isinstance(statement, v.DropTable):
        if entry is None:
            _refuse_drop(statement)
        else:
            named_tables.drop(run.spark, entry)
            release(run.spark, open_log(entry.location).table)
        return run.nothing()
    if isinstance(statement, v.RenameTable):
        if entry is None:
            reason = "a table that is named by its path has no name to change."
            raise InvalidOption(option="RENAME TO", value=".".join(statement.name), reason=reason)
        named_tables.rename(run.spark, entry, statement.name)
        return run.nothing()
    rows = plain()
    if reshapes:
        _refresh(table, names, run)
    return rows


def _refresh(table: Table, names: Names, run: StatementContext) -> None:
    """Update the columns of a table in the catalog."""
    if (entry := names.entry(table.name)) is not None:
        named_tables.refresh(run.spark, entry)


def _refuse_drop(statement: v.DropTable) -> None:
    """Refuse to drop a path, which would leave the table as it is. delta-spark silently does nothing.

    Raises:
        InvalidOption: the table exists. UnknownTable: it does not, and the statement has no IF EXISTS.
    """
    table = statement.table
    if open_log(table.location).exists():
        reason = "a path has no name to drop, and the files would stay: remove the folder, or DELETE rows."
        raise InvalidOption(option="DROP TABLE", value=name_to_sql(table.name), reason=reason)
    if not statement.if_exists:
        raise UnknownTable(name=name_to_sql(table.name))


def _create_table(
    statement: v.CreateTable | v.CloneTable, target: NamedTable, run: StatementContext, plain: Callable[[], DataFrame]
) -> DataFrame:
    if target.foreign or (target.entry is not None and not statement.replaces):
        if statement.if_not_exists:
            return run.nothing()
        raise NameTaken(name=name_to_sql(target.name), table=target.location)
    if target.entry is None and not statement.creates:
        raise UnknownTable(name=name_to_sql(target.name))
    existing = None if target.managed or statement.replaces else open_log(target.location).newest()
    try:
        with named_tables.register_name(run.spark, target):
            if existing is None or not isinstance(statement, v.CreateTable) or statement.query or statement.like:
                return plain()
            _check_same(statement, existing, target.location)
    except NameTaken:
        if not statement.if_not_exists or entries.find(run.spark, target.name) is None:
            raise  # else another session created it first
    return run.nothing()


def _check_same(statement: v.CreateTable, existing: Snapshot, location: str) -> None:
    """Check that an existing table matches a CREATE TABLE … LOCATION.

    Raises:
        InvalidOption: it does not.
    """
    specified = [(field.name, ddl(field.type)) for field in statement.columns]
    present = [(field.name, ddl(field.type)) for field in existing.schema]
    other: dict[str, tuple[Any, Any]] = {}
    if specified and specified != present:
        other["columns"] = _columns(specified), _columns(present)
    if (specified or statement.partitions) and (statement.partitions or ()) != existing.partition_columns:
        other["PARTITIONED BY"] = statement.partitions or (), existing.partition_columns
    if statement.clusters is not None and tuple(statement.clusters) != tuple(existing.clustering_columns):
        other["CLUSTER BY"] = statement.clusters, existing.clustering_columns
    configuration = existing.metadata.configuration
    for key, value in statement.properties.items():
        if configuration.get(key) != value:
            other[key] = value, configuration.get(key)
    for option, (value, has) in other.items():
        kind = _KINDS.get(option, "properties do")
        reason = f"The specified {kind} not match the existing {kind.split()[0]} at {location}, {has}."
        raise InvalidOption(option=option, value=value, reason=reason)


_KINDS = {"columns": "schema does", "PARTITIONED BY": "partitioning does", "CLUSTER BY": "clustering columns do"}
"""The subject and verb of the message about each option."""


def _columns(pairs: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in pairs)
