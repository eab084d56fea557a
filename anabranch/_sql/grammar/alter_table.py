"""Parses ALTER TABLE and COMMENT ON: every change of a table's metadata.

A function of ALTER TABLE gets the table, and begins after the words of its change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch._expressions.dialect import TokenType
from anabranch._protocol.properties import check_unreserved
from anabranch._protocol.rules.table_rules import DEFAULT
from anabranch._protocol.schema.keys import FOREIGN, PRIMARY
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Field
from anabranch._sql.grammar.column_definitions import column, data_type, parse_column_definition
from anabranch._sql.grammar.constraints import check, free_name, key
from anabranch._sql.grammar.create_table import clustering, properties, property_key
from anabranch._sql.grammar.parts import Path, Statement, Table, View
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.statement_values import (
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
    SyncTableIdentity,
    UnsetTableProperties,
)
from anabranch.errors import InvalidOption, UnsupportedCommand

# -- properties --------------------------------------------------------------------------------------------------------


def set_properties(r: Reader, table: Table) -> Statement:
    """Parse ``SET TBLPROPERTIES (…)``."""
    return SetTableProperties(table, properties(r))


def comment_on_table(r: Reader) -> Statement | None:
    """Parse ``COMMENT ON TABLE t IS {'…' | NULL}``."""
    table = r.table(writes=True)
    return None if table is None else SetTableProperties(table, {"comment": _parse_comment(r)})


def comment_on_column(r: Reader) -> Statement | None:
    """Parse ``COMMENT ON COLUMN t.c IS {'…' | NULL}``; the table is the longest prefix that names a table."""
    start, path = r.start, r.path("the name of a column")
    for parts in range(len(path) - 1, 0, -1):
        location = r.find_location(path[:parts])
        if location is not None and not isinstance(location, View):
            table = Table(location, path[:parts], span=(start, r.stop))
            return ChangeTableColumn(table, path[parts:], comment=_parse_comment(r))
    return None


def _parse_comment(r: Reader) -> str:
    """Take IS and the text that ends the statement; NULL is the empty string."""
    r.expect("IS")
    text = "" if r.take("NULL") else r.string("a text or NULL")
    r.finish()
    return text


def unset_properties(r: Reader, table: Table) -> Statement:
    """Parse ``UNSET TBLPROPERTIES [IF EXISTS] (…)``."""
    if_exists = r.take("IF", "EXISTS")
    keys = r.take_list(lambda: property_key(r))
    check_unreserved(keys)
    return UnsetTableProperties(table, keys, if_exists)


def set_location(r: Reader, table: Table) -> Statement:
    """Refuse ``SET LOCATION``.

    Raises:
        InvalidOption: always.
    """
    value = r.string("a path")
    reason = (
        "Cannot change the location of a path based table: what is named is the table at its place, and no entry; "
        "its files are moved with its folder."
    )
    raise InvalidOption(option="LOCATION", value=value, reason=reason)


def rename(r: Reader, table: Table) -> Statement:
    """Parse ``RENAME TO name``."""
    return RenameTable(table, r.path("the new name"))


PARTITIONS = "A Delta table has the partitions of its rows: INSERT adds them, DELETE takes them away."


def partitions(r: Reader, table: Table) -> Statement:
    """Refuse ``ADD``, ``DROP``, ``RENAME`` and ``RECOVER`` of partitions.

    Raises:
        UnsupportedCommand: always.
    """
    raise UnsupportedCommand(statement="ALTER TABLE … PARTITION", instead=PARTITIONS)


# -- columns -----------------------------------------------------------------------------------------------------------


def add_columns(r: Reader, table: Table) -> Statement:
    """Parse ``ADD COLUMN[S] …``."""
    if r.is_type(TokenType.L_PAREN):
        return AddTableColumns(table, r.take_list(lambda: _parse_new_column(r)))
    columns = [_parse_new_column(r)]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        columns.append(_parse_new_column(r))
    return AddTableColumns(table, tuple(columns))


def _parse_new_column(r: Reader) -> AddedColumn:
    path = r.path("the name of a column")
    column = parse_column_definition(r, path[-1])
    return AddedColumn(path, column.field, column.first, column.after)


def drop_columns(r: Reader, table: Table) -> Statement:
    """Parse ``DROP COLUMN[S] [IF EXISTS] …``."""
    if_exists = r.take("IF", "EXISTS")
    if r.is_type(TokenType.L_PAREN):
        return DropTableColumns(table, r.take_list(lambda: r.path("the name of a column")), if_exists)
    paths = [r.path("the name of a column")]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        paths.append(r.path("the name of a column"))
    return DropTableColumns(table, tuple(paths), if_exists)


def rename_column(r: Reader, table: Table) -> Statement:
    """Parse ``RENAME COLUMN … TO name``."""
    path = r.path("the name of a column")
    r.expect("TO")
    return RenameTableColumn(table, path, r.name("the new name"))


def alter_column(r: Reader, table: Table) -> Statement:
    """Parse ``{ALTER | CHANGE} [COLUMN] …, …``."""
    first = _parse_alter_column(r, table)
    if not r.is_type(TokenType.COMMA):
        return first
    changes = [first]
    while r.is_type(TokenType.COMMA):
        r.i += 1
        changes.append(_parse_alter_column(r, table))
    if not all(isinstance(change, ChangeTableColumn) for change in changes):
        r.fail("SYNC IDENTITY cannot be combined with other changes.", r.i - 1)
    return ChangeTableColumns(table, tuple(change for change in changes if isinstance(change, ChangeTableColumn)))


def _parse_alter_column(r: Reader, table: Table) -> ChangeTableColumn | SyncTableIdentity:
    path = r.path("the name of a column")
    if r.take("SYNC", "IDENTITY"):
        return SyncTableIdentity(table, path)
    for words, change in _OF_COLUMN:
        if r.take(*words):
            return change(r, table, path)
    return _parse_change_column(r, table, path)


def _parse_change_column(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    """Parse ``CHANGE COLUMN old new type …``, where both names must be the same."""
    at = r.i
    name = r.name("TYPE, COMMENT, SET, DROP, FIRST or AFTER")
    if r.is_at_end:
        r.fail("TYPE, COMMENT, SET, DROP, FIRST or AFTER is expected here.", at)
    if name.lower() != path[-1].lower():
        r.fail("use RENAME COLUMN … TO to rename a column.", at)
    declared = parse_column_definition(r, path[-1])
    facts = declared.field.metadata
    return ChangeTableColumn(
        table,
        path,
        Field(path[-1], declared.field.type, True, {key: facts[key] for key in (LENGTH,) if key in facts}),
        comment=facts.get("comment"),
        nullable=None if declared.field.nullable else False,
        default=facts.get(DEFAULT),
        first=declared.first,
        after=declared.after,
    )


def _type(r: Reader, table: Table, path: Path) -> ChangeTableColumn:
    typed = data_type(r, path[-1])
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


def add_constraint(r: Reader, table: Table) -> Statement:
    """Parse ``ADD CONSTRAINT name {CHECK (…) | PRIMARY KEY … | FOREIGN KEY …}``."""
    name = r.name("the name of a constraint")
    if not r.take("CHECK"):
        return AddTableKey(table, key(r, name, ()))
    condition = check(r)
    r.take("ENFORCED")
    return AddTableConstraint(table, name, condition)


def add_key(r: Reader, table: Table) -> Statement:
    """Parse ``ADD {PRIMARY | FOREIGN} KEY …``."""
    r.i -= 2
    new_key = key(r, "", ())
    kind = "pk" if new_key.kind == PRIMARY else "_".join((*new_key.columns, "fk"))
    return AddTableKey(table, replace(new_key, name=free_name(table, kind)))


def drop_constraint(r: Reader, table: Table) -> Statement:
    """Parse ``DROP CONSTRAINT [IF EXISTS] name``."""
    if_exists = r.take("IF", "EXISTS")
    name = r.name("the name of a constraint")
    _ = r.take("RESTRICT") or r.take("CASCADE")
    return DropTableConstraint(table, name, if_exists)


def drop_primary(r: Reader, table: Table) -> Statement:
    """Parse ``DROP PRIMARY KEY [IF EXISTS]``."""
    if_exists = r.take("IF", "EXISTS")
    _ = r.take("RESTRICT") or r.take("CASCADE")
    return DropTableKey(table, PRIMARY, (), if_exists)


def drop_foreign(r: Reader, table: Table) -> Statement:
    """Parse ``DROP FOREIGN KEY [IF EXISTS] (…)``."""
    if_exists = r.take("IF", "EXISTS")
    return DropTableKey(table, FOREIGN, r.take_list(lambda: r.name("the name of a column")), if_exists)


def drop_feature(r: Reader, table: Table) -> Statement:
    """Parse ``DROP FEATURE name [TRUNCATE HISTORY]``."""
    feature = r.string() if r.is_text() else r.name("the name of a feature")
    return DropTableFeature(table, feature, r.take("TRUNCATE", "HISTORY"))


def cluster_by(r: Reader, table: Table) -> Statement:
    """Parse ``CLUSTER BY {(…) | NONE}``."""
    return ClusterTableBy(table, clustering(r))


def replace_columns(r: Reader, table: Table) -> Statement:
    """Parse ``REPLACE COLUMNS (…)``."""
    return ReplaceTableColumns(table, r.take_list(lambda: column(r)))
