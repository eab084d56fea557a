"""What statements do to names: they make them, take them away and change them, and their tables get other columns.

A path is its table, and has no other name: what would take it away or change it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from anabranch._catalog import entries, named_tables
from anabranch._catalog.named_tables import Named
from anabranch._catalog.names import name_to_sql
from anabranch._catalog.view_entries import ddl
from anabranch._log.snapshot import Snapshot
from anabranch._spark.sessions.cached_rows import let_go
from anabranch._sql.executor.name_resolver import Names
from anabranch._sql.executor.running import Running
from anabranch._sql.grammar import row_values
from anabranch._sql.grammar import values as v
from anabranch._sql.grammar.parts import Statement, Table
from anabranch.commands.opening import open_log
from anabranch.errors import InvalidOption, NameTaken, UnknownTable


def run(
    statement: Statement, names: Names, run: Running, plain: Callable[[], DataFrame], *, reshapes: bool
) -> DataFrame:
    """Run a statement by ``plain``, and do to names what it says; ``reshapes`` as in `registry.Entry`.

    Raises:
        NameTaken, UnknownTable: a name is not free, or there is none to replace, or to drop.
        InvalidOption: it would take the name of a path away, or change it.
    """
    table = getattr(statement, "table", None)
    if table is None:
        found = plain()
        for each in statement.inserts if isinstance(statement, row_values.InsertEach) else ():
            _refresh(each.table, names, run)
        return found
    if isinstance(statement, v.CreateTable | v.CloneTable) and table.name in names.new:
        return _create_table(statement, names.new[table.name], run, plain)
    entry = names.entry(table.name)
    if isinstance(statement, v.DropTable):
        if entry is None:
            _refuse_drop(statement)
        else:
            named_tables.drop(run.spark, entry)
            let_go(run.spark, open_log(entry.location).table)
        return run.nothing()
    if isinstance(statement, v.RenameTable):
        if entry is None:
            reason = "a table that is named by its path has no other name."
            raise InvalidOption(option="RENAME TO", value=".".join(statement.name), reason=reason)
        named_tables.rename(run.spark, entry, statement.name)
        return run.nothing()
    found = plain()
    if reshapes:
        _refresh(table, names, run)
    return found


def _refresh(table: Table, names: Names, run: Running) -> None:
    """Let the catalog know the columns that a table has now."""
    if (entry := names.entry(table.name)) is not None:
        named_tables.refresh(run.spark, entry)


def _refuse_drop(statement: v.DropTable) -> None:
    """Refuse to drop a path: the table would be there as before. delta-spark says nothing, and does nothing.

    Raises:
        InvalidOption: the table is there. UnknownTable: it is not, and the statement does not say IF EXISTS.
    """
    table = statement.table
    if open_log(table.location).exists():
        reason = "a path is no name that could be dropped, and the files would stay: remove the folder, or DELETE rows."
        raise InvalidOption(option="DROP TABLE", value=name_to_sql(table.name), reason=reason)
    if not statement.if_exists:
        raise UnknownTable(name=name_to_sql(table.name))


def _create_table(
    statement: v.CreateTable | v.CloneTable, named: Named, run: Running, plain: Callable[[], DataFrame]
) -> DataFrame:
    if named.foreign or (named.entry is not None and not statement.replaces):
        if statement.if_not_exists:
            return run.nothing()
        raise NameTaken(name=name_to_sql(named.name), table=named.location)
    if named.entry is None and not statement.creates:
        raise UnknownTable(name=name_to_sql(named.name))
    there = None if named.managed or statement.replaces else open_log(named.location).newest()
    try:
        with named_tables.naming(run.spark, named):
            if there is None or not isinstance(statement, v.CreateTable) or statement.query or statement.like:
                return plain()
            _check_same(statement, there, named.location)
    except NameTaken:
        if not statement.if_not_exists or entries.find(run.spark, named.name) is None:
            raise  # else somebody else was faster
    return run.nothing()


def _check_same(statement: v.CreateTable, there: Snapshot, location: str) -> None:
    """Raise an error unless a table that is there already is as a CREATE TABLE … LOCATION says.

    Raises:
        InvalidOption: it is not.
    """
    said = [(field.name, ddl(field.type)) for field in statement.columns]
    known = [(field.name, ddl(field.type)) for field in there.schema]
    other: dict[str, tuple[Any, Any]] = {}
    if said and said != known:
        other["columns"] = _columns(said), _columns(known)
    if (said or statement.partitions) and (statement.partitions or ()) != there.partition_columns:
        other["PARTITIONED BY"] = statement.partitions or (), there.partition_columns
    if statement.clusters is not None and tuple(statement.clusters) != tuple(there.clustering_columns):
        other["CLUSTER BY"] = statement.clusters, there.clustering_columns
    configuration = there.metadata.configuration
    for key, value in statement.properties.items():
        if configuration.get(key) != value:
            other[key] = value, configuration.get(key)
    for option, (value, has) in other.items():
        kind = _KINDS.get(option, "properties do")
        reason = f"The specified {kind} not match the existing {kind.split()[0]} at {location}, {has}."
        raise InvalidOption(option=option, value=value, reason=reason)


_KINDS = {"columns": "schema does", "PARTITIONED BY": "partitioning does", "CLUSTER BY": "clustering columns do"}
"""What of a table each option says, with its verb."""


def _columns(pairs: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in pairs)
