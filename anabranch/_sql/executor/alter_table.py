"""ALTER TABLE: a function for each change that creates its command from the statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from anabranch._protocol.conditions import Condition
from anabranch._protocol.predicates import Unknown
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Struct
from anabranch._sql.conditions import check_named, is_exact, is_there, with_session_case
from anabranch._sql.executor.running import StatementContext
from anabranch._sql.grammar import statement_values as v
from anabranch.commands.clustering import ClusterBy
from anabranch.commands.context import RunContext
from anabranch.commands.ddl import alter, keys, rename_and_drop_columns
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.change_column import ChangeColumn, ChangeColumns
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.ddl.replace_columns import ReplaceColumns
from anabranch.commands.ddl.sync_identity import SyncIdentity, not_an_identity


def changing(command: Callable[[Any], Any]) -> Callable[[Any, StatementContext], DataFrame]:
    """Return the executor of a change whose command depends on the statement alone; it returns no rows."""

    def change(statement: Any, run: StatementContext) -> DataFrame:
        _check_named(statement, run)
        if isinstance(statement, v.DropTableColumns) and statement.if_exists:
            schema = with_session_case(run.newest(statement.table).schema, run.engine)
            statement = replace(statement, paths=tuple(path for path in statement.paths if is_there(schema, path)))
            if not statement.paths:
                return run.nothing()
        command(statement).run(run.engine)
        return run.nothing()

    return change


def _check_named(statement: Any, run: StatementContext) -> None:
    if is_exact(run.engine):
        snapshot = run.newest(statement.table)
        check_named(snapshot.schema, statement.required_columns, snapshot.table, run.engine)


def add_constraint(statement: v.AddTableConstraint, run: StatementContext) -> DataFrame:
    """ADD CONSTRAINT … CHECK; returns no rows."""
    snapshot = run.newest(statement.table)
    text = statement.check.text
    where = Condition(text, Unknown(), row_local=True, expression=text)
    command = AddConstraint(statement.table.location, statement.name, where)
    command.run(run.engine, RunContext(at=snapshot))
    return run.nothing()


# -- commands ----------------------------------------------------------------------------------------------------------


def set_properties(statement: v.SetTableProperties) -> alter.SetProperties:
    """SET TBLPROPERTIES."""
    return alter.SetProperties(statement.table.location, statement.properties)


def unset_properties(statement: v.UnsetTableProperties) -> alter.UnsetProperties:
    """UNSET TBLPROPERTIES, always with IF EXISTS, as in delta-spark."""
    return alter.UnsetProperties(statement.table.location, statement.keys, if_exists=True)


def add_columns(statement: v.AddTableColumns) -> alter.AddColumns:
    """ADD COLUMNS."""
    added = (
        alter.NewColumn(column.field, column.path[:-1], column.first, column.after) for column in statement.columns
    )
    return alter.AddColumns(statement.table.location, tuple(added))


def drop_columns(statement: v.DropTableColumns) -> rename_and_drop_columns.DropColumns:
    """DROP COLUMNS."""
    return rename_and_drop_columns.DropColumns(statement.table.location, statement.paths)


def rename_column(statement: v.RenameTableColumn) -> rename_and_drop_columns.RenameColumn:
    """RENAME COLUMN."""
    return rename_and_drop_columns.RenameColumn(statement.table.location, statement.path, statement.name)


def change_column(statement: v.ChangeTableColumn) -> ChangeColumn:
    """ALTER COLUMN of one column."""
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


def change_columns(statement: v.ChangeTableColumns) -> ChangeColumns:
    """ALTER COLUMN of several columns."""
    return ChangeColumns(statement.table.location, tuple(map(change_column, statement.changes)))


def sync_identity(statement: v.SyncTableIdentity) -> SyncIdentity:
    """ALTER COLUMN … SYNC IDENTITY.

    Raises:
        InvalidOption: it names a struct field, which cannot be an identity column.
    """
    if len(statement.path) > 1:
        raise not_an_identity(".".join(statement.path))
    return SyncIdentity(statement.table.location, statement.path[0])


def replace_columns(statement: v.ReplaceTableColumns) -> ReplaceColumns:
    """REPLACE COLUMNS."""
    return ReplaceColumns(statement.table.location, Struct(statement.columns))


def drop_constraint(statement: v.DropTableConstraint) -> alter.DropConstraint:
    """DROP CONSTRAINT."""
    return alter.DropConstraint(statement.table.location, statement.name, statement.if_exists)


def add_key(statement: v.AddTableKey) -> keys.AddKey:
    """ADD PRIMARY KEY and ADD FOREIGN KEY."""
    return keys.AddKey(statement.table.location, statement.key)


def drop_key(statement: v.DropTableKey) -> keys.DropKey:
    """DROP PRIMARY KEY and DROP FOREIGN KEY."""
    return keys.DropKey(statement.table.location, statement.kind, statement.columns, statement.if_exists)


def drop_feature(statement: v.DropTableFeature) -> DropFeature:
    """DROP FEATURE."""
    return DropFeature(statement.table.location, statement.feature, statement.truncate_history)


def cluster_by(statement: v.ClusterTableBy) -> ClusterBy:
    """CLUSTER BY."""
    return ClusterBy(statement.table.location, statement.columns)
