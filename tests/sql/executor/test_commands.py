"""SQL and the methods of ``DeltaTable`` make one and the same command; no JVM is needed to see that."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch._catalog.table_names import path_in
from anabranch._expressions import Context, condition
from anabranch._protocol.schema.keys import FOREIGN, PRIMARY, Key
from anabranch._protocol.schema.types import Field, Struct
from anabranch._sql import reading as parsing
from anabranch._sql.executor import create_table, row_statements
from anabranch._sql.registry import entry_of
from anabranch.commands.clustering import ClusterBy
from anabranch.commands.ddl.alter import AddColumns, DropConstraint, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.change_column import ChangeColumn, ChangeColumns
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.ddl.keys import AddKey, DropKey
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.ddl.replace_columns import ReplaceColumns
from anabranch.commands.ddl.sync_identity import SyncIdentity
from anabranch.commands.dml.delete import EVERY_ROW, Delete
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.opening import open_log


@pytest.fixture
def path(tmp_path: Path) -> str:
    anabranch.append(tmp_path / "t", [{"id": 1, "s": "x"}])
    return str(tmp_path / "t")


def parsed(text: str, path: str, args: Any = None) -> Any:
    return parsing.statement(text.replace("@T", f"delta.`{path}`"), args, path_in)


def command_of(statement: Any) -> Any:
    make = entry_of(statement).command
    assert make is not None
    return make(statement)


def context(path: str) -> Context:
    snapshot = open_log(path).snapshot()
    now = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return Context(snapshot.table, snapshot.schema, now, "UTC", lambda names: True)


@pytest.mark.parametrize(
    ("where", "args", "same"),
    [
        ("id > 3 AND s = 'x'", None, "id > 3 AND s = 'x'"),
        ("t.id > 3", None, "id > 3"),
        ("id = :id", {"id": 7}, "id = 7"),
        ("id = ? AND s = ?", [7, "y"], "id = 7 AND s = 'y'"),
        ("day < current_date() OR id = 1", None, "day < current_date() OR id = 1"),
    ],
)
def test_a_delete_in_sql_is_the_delete_of_the_table(path: str, where: str, args: Any, same: str) -> None:
    found = parsed(f"DELETE FROM @T AS t WHERE {where}", path, args)
    command = row_statements.delete_command(found, found.where.text, context(path))
    assert command == Delete(path, condition(same, context(path), queries=True))


def test_a_delete_without_a_condition_is_of_every_row(path: str) -> None:
    assert row_statements.delete_command(parsed("DELETE FROM @T", path), "", context(path)) == Delete(path, EVERY_ROW)


def test_a_condition_with_a_subquery_keeps_its_words_and_knows_the_tables_name(path: str) -> None:
    found = parsed("DELETE FROM @T AS t WHERE EXISTS (SELECT 1 FROM x WHERE x.id = t.id)", path)
    where = row_statements.delete_command(found, found.where.text, context(path)).where
    assert where.asks
    assert not where.row_local
    assert where.alias == "t"
    assert where.text == "EXISTS (SELECT 1 FROM x WHERE x.id = t.id)"


def test_a_table_that_is_created(path: str) -> None:
    text = "@T (id BIGINT NOT NULL, p DATE) PARTITIONED BY (p) TBLPROPERTIES ('a' = 'b') COMMENT 'c'"
    schema = Struct((Field("id", "long", False), Field("p", "date")))
    new = NewTable(schema, ("p",), {"a": "b"}, None, "c", ())
    for words, command in (
        ("CREATE TABLE", Create(path, new)),
        ("CREATE TABLE IF NOT EXISTS", Create(path, new, if_not_exists=True)),
        ("REPLACE TABLE", Replace(path, new)),
        ("CREATE OR REPLACE TABLE", Replace(path, new, or_create=True)),
    ):
        found = parsed(f"{words} {text}", path)
        assert create_table.create_command(found, create_table.new_table(found)) == command


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ("SET TBLPROPERTIES ('a' = 'b')", lambda t: SetProperties(t, {"a": "b"})),
        ("UNSET TBLPROPERTIES IF EXISTS ('a')", lambda t: UnsetProperties(t, ("a",), True)),
        ("UNSET TBLPROPERTIES ('a')", lambda t: UnsetProperties(t, ("a",), True)),
        (
            "ADD COLUMN n.x INT COMMENT 'y' FIRST",
            lambda t: AddColumns(t, (NewColumn(Field("x", "integer", True, {"comment": "y"}), ("n",), True, None),)),
        ),
        ("DROP COLUMNS (a, n.x)", lambda t: DropColumns(t, (("a",), ("n", "x")))),
        ("RENAME COLUMN n.x TO y", lambda t: RenameColumn(t, ("n", "x"), "y")),
        ("ALTER COLUMN a TYPE BIGINT", lambda t: ChangeColumn(t, ("a",), type="long")),
        ("ALTER COLUMN a SET NOT NULL", lambda t: ChangeColumn(t, ("a",), nullable=False)),
        ("ALTER COLUMN a DROP DEFAULT", lambda t: ChangeColumn(t, ("a",), default="")),
        ("ALTER COLUMN a AFTER b", lambda t: ChangeColumn(t, ("a",), after="b")),
        ("DROP CONSTRAINT IF EXISTS c", lambda t: DropConstraint(t, "c", True)),
        ("DROP PRIMARY KEY IF EXISTS CASCADE", lambda t: DropKey(t, PRIMARY, (), True)),
        ("DROP FOREIGN KEY (a, b)", lambda t: DropKey(t, FOREIGN, ("a", "b"))),
        ("ADD CONSTRAINT k PRIMARY KEY (a, b) RELY", lambda t: AddKey(t, Key("k", PRIMARY, ("a", "b"), relied=True))),
        (
            "ADD FOREIGN KEY (a) REFERENCES d.`x y` (b) NOT ENFORCED",
            lambda t: AddKey(t, Key(f"{Path(t).name}_a_fk", FOREIGN, ("a",), ("d", "x y"), ("b",))),
        ),
        ("DROP FEATURE deletionVectors TRUNCATE HISTORY", lambda t: DropFeature(t, "deletionVectors", True)),
        (
            "ALTER COLUMN a TYPE BIGINT, n.x COMMENT 'y', b SET DEFAULT coalesce(1, 2), c FIRST",
            lambda t: ChangeColumns(
                t,
                (
                    ChangeColumn(t, ("a",), type="long"),
                    ChangeColumn(t, ("n", "x"), comment="y"),
                    ChangeColumn(t, ("b",), default="coalesce(1, 2)"),
                    ChangeColumn(t, ("c",), first=True),
                ),
            ),
        ),
        ("ALTER COLUMN a SYNC IDENTITY", lambda t: SyncIdentity(t, "a")),
        (
            "REPLACE COLUMNS (b STRING COMMENT 'x', a BIGINT NOT NULL)",
            lambda t: ReplaceColumns(
                t, Struct((Field("b", "string", True, {"comment": "x"}), Field("a", "long", False)))
            ),
        ),
        ("CLUSTER BY (a, n.x)", lambda t: ClusterBy(t, (("a",), ("n", "x")))),
        ("CLUSTER BY NONE", lambda t: ClusterBy(t, ())),
    ],
)
def test_a_change_of_a_table(path: str, change: str, command: Any) -> None:
    assert command_of(parsed(f"ALTER TABLE @T {change}", path)) == command(path)
