"""ALTER TABLE: every change of what a table says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch.errors import InvalidOption
from anabranch.expressions.dialect import TokenType
from anabranch.protocol.properties import check_unreserved
from anabranch.protocol.rules.table_rules import DEFAULT, LENGTH
from anabranch.protocol.schema.keys import FOREIGN, PRIMARY
from anabranch.protocol.schema.types import Field
from anabranch.statements.grammar.column_definitions import column, data_type, declared
from anabranch.statements.grammar.constraints import check, free_name, key
from anabranch.statements.grammar.create_table import clustering, properties, property_key
from anabranch.statements.grammar.parts import Path, Table
from anabranch.statements.grammar.reader import Reader
from anabranch.statements.grammar.values import (
    AddedColumn,
    AddTableColumns,
    AddTableConstraint,
    AddTableKey,
    ChangeTableColumn,
    ChangeTableColumns,
    ClusterTableBy,
    DropTableColumns,
    DropTableConstraint,
    DropTableFeature,
    DropTableKey,
    RenameTable,
    RenameTableColumn,
    ReplaceTableColumns,
    SetTableProperties,
    Statement,
    SyncTableIdentity,
    UnsetTableProperties,
)
from anabranch.statements.grammar.views import alter_view


def alter(r: Reader) -> Statement | None:
    """What stands behind ALTER: ``TABLE t`` and one change, or ``VIEW v AS`` a query."""
    if r.take("VIEW"):
        return alter_view(r)
    if not r.take("TABLE"):
        return None
    table = r.table(writes=True)
    if table is None:
        return None
    for words, change in _CHANGES:
        if r.take(*words):
            statement = change(r, table)
            r.finish()
            return statement
    r.fail("this is no change that ALTER TABLE knows.")


# -- properties --------------------------------------------------------------------------------------------------------


def _set_properties(r: Reader, table: Table) -> Statement:
    return SetTableProperties(table, properties(r))


def _unset_properties(r: Reader, table: Table) -> Statement:
    if_exists = r.take("IF", "EXISTS")
    keys = r.wrapped(lambda: property_key(r))
    check_unreserved(keys)
    return UnsetTableProperties(table, keys, if_exists)


def _set_location(r: Reader, table: Table) -> Statement:
    value = r.string("a path")
    reason = (
        "what is named here is the table at its place, and not an entry that could point elsewhere; "
        "its files are moved with its folder."
    )
    raise InvalidOption(option="LOCATION", value=value, reason=reason)


def _rename(r: Reader, table: Table) -> Statement:
    return RenameTable(table, r.path("the new name"))


# -- columns -----------------------------------------------------------------------------------------------------------


def _add_columns(r: Reader, table: Table) -> Statement:
    if r.is_type(TokenType.L_PAREN):
        return AddTableColumns(table, r.wrapped(lambda: _added(r)))
    found = [_added(r)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        found.append(_added(r))
    return AddTableColumns(table, tuple(found))


def _added(r: Reader) -> AddedColumn:
    path = r.path("the name of a column")
    column = declared(r, path[-1])
    return AddedColumn(path, column.field, column.first, column.after)


def _drop_columns(r: Reader, table: Table) -> Statement:
    if_exists = r.take("IF", "EXISTS")
    if r.is_type(TokenType.L_PAREN):
        return DropTableColumns(table, r.wrapped(lambda: r.path("the name of a column")), if_exists)
    paths = [r.path("the name of a column")]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        paths.append(r.path("the name of a column"))
    return DropTableColumns(table, tuple(paths), if_exists)


def _rename_column(r: Reader, table: Table) -> Statement:
    path = r.path("the name of a column")
    r.expect("TO")
    return RenameTableColumn(table, path, r.name("the new name"))


def _alter_column(r: Reader, table: Table) -> Statement:
    r.take("COLUMN")
    first = _altered(r, table)
    if not r.is_type(TokenType.COMMA):
        return first
    found = [first]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        found.append(_altered(r, table))
    if not all(isinstance(each, ChangeTableColumn) for each in found):
        r.fail("SYNC IDENTITY stands alone.", r.i - 1)
    return ChangeTableColumns(table, tuple(each for each in found if isinstance(each, ChangeTableColumn)))


def _altered(r: Reader, table: Table) -> ChangeTableColumn | SyncTableIdentity:
    path = r.path("the name of a column")
    if r.take("SYNC", "IDENTITY"):
        return SyncTableIdentity(table, path)
    for words, change in _OF_COLUMN:
        if r.take(*words):
            return change(r, table, path)
    return _redeclared(r, table, path)


def _redeclared(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    """``CHANGE COLUMN old new type …``, where both names must be the same."""
    at = r.i
    name = r.name("TYPE, COMMENT, SET, DROP, FIRST or AFTER")
    if r.done:
        r.fail("TYPE, COMMENT, SET, DROP, FIRST or AFTER is expected here.", at)
    if name.lower() != path[-1].lower():
        r.fail("a column is given another name by RENAME COLUMN … TO.", at)
    found = declared(r, path[-1])
    facts = found.field.metadata
    return ChangeTableColumn(
        table,
        path,
        Field(path[-1], found.field.type, True, {key: facts[key] for key in (LENGTH,) if key in facts}),
        comment=facts.get("comment"),
        nullable=None if found.field.nullable else False,
        default=facts.get(DEFAULT),
        first=found.first,
        after=found.after,
    )


def _type(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    typed = data_type(r)
    metadata = {LENGTH: typed.name} if typed.has_length else {}
    return ChangeTableColumn(table, path, Field(path[-1], typed.type, True, metadata))


def _comment(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    return ChangeTableColumn(table, path, comment=r.string("a comment"))


def _not_null(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    return ChangeTableColumn(table, path, nullable=False)


def _null(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    return ChangeTableColumn(table, path, nullable=True)


def _default(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    return ChangeTableColumn(table, path, default=r.expression(comma=True, what="a value").text)


def _no_default(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    return ChangeTableColumn(table, path, default="")


def _first(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    return ChangeTableColumn(table, path, first=True)


def _after(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    return ChangeTableColumn(table, path, after=r.name("the name of a column"))


_OF_COLUMN: tuple[tuple[tuple[str, ...], Callable[[Reader, Table, Path], ChangeTableColumn]], ...] = (
    (("TYPE",), _type),
    (("COMMENT",), _comment),
    (("SET", "NOT", "NULL"), _not_null),
    (("DROP", "NOT", "NULL"), _null),
    (("SET", "DEFAULT"), _default),
    (("DROP", "DEFAULT"), _no_default),
    (("FIRST",), _first),
    (("AFTER",), _after),
)


# -- constraints, features, clustering ---------------------------------------------------------------------------------


def _add_constraint(r: Reader, table: Table) -> Statement:
    name = r.name("the name of a constraint")
    if not r.take("CHECK"):
        return AddTableKey(table, key(r, name, ()))
    condition = check(r)
    r.take("ENFORCED")
    return AddTableConstraint(table, name, condition)


def _add_key(r: Reader, table: Table) -> Statement:
    r.i -= 2
    found = key(r, "", ())
    kind = "pk" if found.kind == PRIMARY else "_".join((*found.columns, "fk"))
    return AddTableKey(table, replace(found, name=free_name(table, kind)))


def _drop_constraint(r: Reader, table: Table) -> Statement:
    if_exists = r.take("IF", "EXISTS")
    name = r.name("the name of a constraint")
    _ = r.take("RESTRICT") or r.take("CASCADE")
    return DropTableConstraint(table, name, if_exists)


def _drop_primary(r: Reader, table: Table) -> Statement:
    if_exists = r.take("IF", "EXISTS")
    _ = r.take("RESTRICT") or r.take("CASCADE")
    return DropTableKey(table, PRIMARY, (), if_exists)


def _drop_foreign(r: Reader, table: Table) -> Statement:
    if_exists = r.take("IF", "EXISTS")
    return DropTableKey(table, FOREIGN, r.wrapped(lambda: r.name("the name of a column")), if_exists)


def _drop_feature(r: Reader, table: Table) -> Statement:
    feature = r.string() if r.is_text() else r.name("the name of a feature")
    return DropTableFeature(table, feature, r.take("TRUNCATE", "HISTORY"))


def _cluster_by(r: Reader, table: Table) -> Statement:
    return ClusterTableBy(table, clustering(r))


def _replace_columns(r: Reader, table: Table) -> Statement:
    return ReplaceTableColumns(table, r.wrapped(lambda: column(r)))


_CHANGES: tuple[tuple[tuple[str, ...], Callable[[Reader, Table], Statement]], ...] = (
    (("SET", "TBLPROPERTIES"), _set_properties),
    (("UNSET", "TBLPROPERTIES"), _unset_properties),
    (("SET", "LOCATION"), _set_location),
    (("RENAME", "TO"), _rename),
    (("ADD", "CONSTRAINT"), _add_constraint),
    (("ADD", "PRIMARY", "KEY"), _add_key),
    (("ADD", "FOREIGN", "KEY"), _add_key),
    (("DROP", "CONSTRAINT"), _drop_constraint),
    (("DROP", "PRIMARY", "KEY"), _drop_primary),
    (("DROP", "FOREIGN", "KEY"), _drop_foreign),
    (("DROP", "FEATURE"), _drop_feature),
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("REPLACE", "COLUMNS"), _replace_columns),
    (("ALTER",), _alter_column),
    (("CHANGE",), _alter_column),
    (("CLUSTER", "BY"), _cluster_by),
)
