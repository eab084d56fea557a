"""Tables: CREATE, REPLACE, LIKE, CONVERT, and every change of ALTER TABLE, as commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from anabranch.commands.clustering import ClusterBy
from anabranch.commands.context import RunContext
from anabranch.commands.ddl import alter, keys, rename_and_drop_columns
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.change_column import ChangeColumn, ChangeColumns
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.ddl.replace_columns import ReplaceColumns
from anabranch.commands.ddl.sync_identity import SyncIdentity
from anabranch.commands.dml.new_table import NewTable, check_columns
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.convert import Convert, parquet_path
from anabranch.commands.opening import open_log
from anabranch.commands.options import Options
from anabranch.errors import InvalidOption, UnknownColumn
from anabranch.protocol.options import WRITE
from anabranch.protocol.predicates import Condition, Unknown
from anabranch.protocol.rules.table_rules import LENGTH
from anabranch.protocol.schema.column_mapping import IN_COLUMNS, without_keys
from anabranch.protocol.schema.editing import field_at
from anabranch.protocol.schema.types import Struct
from anabranch.spark.types import declared
from anabranch.statements.conditions import as_named, check_named, check_rules, is_exact
from anabranch.statements.executor import temporary_views
from anabranch.statements.executor.running import Running
from anabranch.statements.grammar import values as v
from anabranch.statements.grammar.parts import Path, Query, Table
from anabranch.statements.grammar.values import CreateTable, CreateTempView

_OF_THE_TABLE_ALONE = ("delta.columnMapping.maxColumnId", "delta.rowTracking.materialized")
"""Properties that one table has, and no other that is made like it."""


def create(statement: CreateTable, run: Running) -> DataFrame:
    """CREATE TABLE and REPLACE TABLE, with columns, AS a query, or LIKE another table; gives no rows."""
    statement = _with_options(statement)
    if statement.query is not None:
        return _as_query(statement, statement.query, run)
    new = new_table(statement) if statement.like is None else _like(statement, run)
    location = statement.table.location
    schema = new.schema
    assert isinstance(schema, Struct)
    check_columns(schema, new.partition_columns or ())
    check_rules(schema, new.properties, location, run.engine)
    create_command(statement, new).run()
    return run.nothing()


def _with_options(statement: CreateTable) -> CreateTable:
    """With the table properties among its OPTIONS as properties; the others are judged as those of a write.

    Raises:
        InvalidOption, NotBuilt: one asks for what is not done here.
    """
    if not statement.options:
        return statement
    options = Options()
    for name, value in statement.options.items():
        options.put(name, value)
    found = options.properties()
    options.finish(WRITE)
    return replace(statement, properties={**found, **statement.properties}, options={})


def new_table(statement: CreateTable) -> NewTable:
    """The table that is declared."""
    return NewTable(
        Struct(statement.columns),
        statement.partitions or (),
        statement.properties,
        None,
        statement.comment,
        statement.clusters or (),
    )


def create_command(statement: CreateTable, new: NewTable) -> Create | Replace:
    """The command, as the builder of ``DeltaTable`` makes it."""
    if statement.replaces:
        return Replace(statement.table.location, new, or_create=statement.creates)
    return Create(statement.table.location, new, if_not_exists=statement.if_not_exists)


def _as_query(statement: CreateTable, query: Query, run: Running) -> DataFrame:
    rows = run.query(query)
    write = Write(
        statement.table.location,
        rows,
        "overwrite" if statement.replaces else "ignore" if statement.if_not_exists else "error",
        statement.partitions,
        dict(statement.properties),
        cluster_by=statement.clusters,
        description=statement.comment,
        replaces=statement.replaces,
        creates=statement.creates,
    )
    if statement.replaces and not statement.creates:
        open_log(statement.table.location).snapshot()
    write.run(run.engine)
    return run.nothing()


def _like(statement: CreateTable, run: Running) -> NewTable:
    """A table with another's columns; one of Delta's gives its layout and properties, too."""
    if isinstance(statement.like, Query):
        schema = declared(run.query(statement.like).schema)
        return replace(new_table(statement), schema=schema)
    assert isinstance(statement.like, Table)
    snapshot = run.snapshot(statement.like)
    known = snapshot.metadata.configuration
    kept = {key: value for key, value in known.items() if not key.startswith(_OF_THE_TABLE_ALONE)}
    return NewTable(
        without_keys(snapshot.schema, IN_COLUMNS),
        snapshot.partition_columns,
        {**kept, **statement.properties},
        None,
        statement.comment if statement.comment is not None else snapshot.metadata.description,
        snapshot.clustering_columns,
    )


def convert(statement: v.ConvertTable, run: Running) -> DataFrame:
    """CONVERT TO DELTA; gives no rows."""
    form, path = parquet_path(statement.identifier)
    if form == "parquet":
        convert_command(statement, path).run()
    return run.nothing()


def convert_command(statement: v.ConvertTable, path: str) -> Convert:
    """The command, as ``DeltaTable.convertToDelta`` makes it."""
    return Convert(path, partition_columns(statement), statistics=statement.collects_statistics)


def partition_columns(statement: v.ConvertTable) -> Struct:
    """The columns that folders stand for."""
    return Struct(tuple(replace(field, nullable=True) for field in statement.partitions or ()))


def view(statement: CreateTempView, run: Running) -> DataFrame:
    """CREATE TEMPORARY VIEW, which follows its tables; gives no rows."""
    temporary_views.create(statement, run)
    return run.nothing()


# -- ALTER TABLE -------------------------------------------------------------------------------------------------------


def altered(statement: Any, run: Running) -> DataFrame:
    """ALTER TABLE; gives no rows."""
    if is_exact(run.engine):
        snapshot = run.snapshot(statement.table)
        check_named(snapshot.schema, _named(statement), snapshot.table, run.engine)
    if isinstance(statement, v.DropTableColumns) and statement.if_exists:
        statement = _of_those_there(statement, run)
    if isinstance(statement, v.AddTableConstraint):
        snapshot = run.snapshot(statement.table)
        text = statement.check.text
        where = Condition(text, Unknown(), row_local=True, expression=text)
        command = AddConstraint(statement.table.location, statement.name, where)
        command.run(run.engine, RunContext(at=snapshot))
    elif not isinstance(statement, v.DropTableColumns) or statement.paths:
        _run(alteration(statement), run)
    return run.nothing()


def _named(statement: Any) -> Iterator[Path]:
    """The columns, and members of structs, that are to be there already."""
    match statement:
        case v.DropTableColumns():
            yield from () if statement.if_exists else statement.paths
        case v.RenameTableColumn() | v.SyncTableIdentity():
            yield statement.path
        case v.ChangeTableColumn():
            yield statement.path
            if statement.after:
                yield (*statement.path[:-1], statement.after)
        case v.ChangeTableColumns():
            for each in statement.changes:
                yield from _named(each)
        case v.ClusterTableBy():
            yield from statement.columns
        case v.AddTableColumns():
            yield from ((*added.path[:-1], added.after) for added in statement.columns if added.after)


def _run(command: Any, run: Running) -> None:
    if isinstance(command, ChangeColumn | ChangeColumns | DropFeature | SyncIdentity):
        command.run(run.engine)
    else:
        command.run()


def alteration(statement: Any) -> Any:
    """The command of a change that needs no look at the table first."""
    table = statement.table.location
    match statement:
        case v.SetTableProperties():
            return alter.SetProperties(table, statement.properties)
        case v.UnsetTableProperties():
            # As with delta-spark, which takes every UNSET TBLPROPERTIES as if it said IF EXISTS.
            return alter.UnsetProperties(table, statement.keys, if_exists=True)
        case v.AddTableColumns():
            return alter.AddColumns(table, tuple(_new_column(each) for each in statement.columns))
        case v.DropTableColumns():
            return rename_and_drop_columns.DropColumns(table, statement.paths)
        case v.RenameTableColumn():
            return rename_and_drop_columns.RenameColumn(table, statement.path, statement.name)
        case v.ChangeTableColumn():
            return _change(statement)
        case v.ChangeTableColumns():
            return ChangeColumns(table, tuple(map(_change, statement.changes)))
        case v.SyncTableIdentity():
            return SyncIdentity(table, _top_level(statement.path))
        case v.ReplaceTableColumns():
            return ReplaceColumns(table, Struct(statement.columns))
        case v.DropTableConstraint():
            return alter.DropConstraint(table, statement.name, statement.if_exists)
        case v.AddTableKey():
            return keys.AddKey(table, statement.key)
        case v.DropTableKey():
            return keys.DropKey(table, statement.kind, statement.columns, statement.if_exists)
        case v.DropTableFeature():
            return DropFeature(table, statement.feature, statement.truncate_history)
        case v.ClusterTableBy():
            return ClusterBy(table, statement.columns)
    raise AssertionError(f"{type(statement).__name__} is no change of a table")


def _top_level(path: Path) -> str:
    """The column.

    Raises:
        InvalidOption: it is a member of a struct, which no table numbers.
    """
    if len(path) > 1:
        raise InvalidOption(option="SYNC IDENTITY", value=".".join(path), reason="it is no identity column.")
    return path[0]


def _new_column(added: v.AddedColumn) -> alter.NewColumn:
    return alter.NewColumn(added.field, added.path[:-1], added.first, added.after)


def _change(statement: v.ChangeTableColumn) -> ChangeColumn:
    return ChangeColumn(
        statement.table.location,
        statement.path,
        type=None if statement.field is None else statement.field.type,
        comment=statement.comment,
        nullable=statement.nullable,
        default=statement.default,
        first=statement.first,
        after=statement.after,
        length=None if statement.field is None else statement.field.metadata.get(LENGTH),
    )


def _of_those_there(statement: v.DropTableColumns, run: Running) -> v.DropTableColumns:
    schema = as_named(run.snapshot(statement.table).schema, run.engine)
    return replace(statement, paths=tuple(path for path in statement.paths if _is_there(schema, path)))


def _is_there(schema: Struct, path: tuple[str, ...]) -> bool:
    try:
        return field_at(schema, path) is not None
    except UnknownColumn:
        return False
