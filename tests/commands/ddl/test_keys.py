"""PRIMARY KEY and FOREIGN KEY: kept in the table, shown, dropped, and never held against a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import errors
from anabranch._catalog.table_names import path_in
from anabranch._protocol.schema.keys import FOREIGN, PRIMARY, Key, keys_of
from anabranch._protocol.schema.types import Field, Struct
from anabranch._sql import reading
from anabranch._sql.executor import create_table
from anabranch.commands.ddl.alter import AddColumns, DropConstraint, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.create import Create
from anabranch.commands.ddl.keys import AddKey, DropKey
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.ddl.replace_columns import ReplaceColumns
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from tests.support.raw_logs import PROTOCOL, metadata, put_commit
from tests.support.worlds import World

SCHEMA = Struct((Field("id", "long", nullable=False), Field("a b", "long"), Field("x", "long")))
PK, FK = Key("Pk", PRIMARY, ("id",)), Key("fk", FOREIGN, ("a b", "x"), ("d", "y`z"), ("k", "l"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(str(tmp_path / "t"))
    Create(world.path, NewTable(SCHEMA, properties={"delta.columnMapping.mode": "name", "pk": "of the user"})).run()
    return world


def keys(world: World) -> list[Any]:
    return sorted(keys_of(world.log.snapshot().metadata.configuration))


def test_keys_are_kept_and_no_row_is_held_to_them(world: World) -> None:
    AddKey(world.path, PK).run()
    AddKey(world.path, FK).run()
    assert keys(world) == [("fk", FOREIGN, ("a b", "x")), ("pk", PRIMARY, ("id",))]
    known = world.log.snapshot().metadata.configuration
    assert known["anabranch.constraint.pk"] == "PRIMARY KEY (id)"
    assert known["anabranch.constraint.fk"] == "FOREIGN KEY (`a b`, x) REFERENCES d.`y``z` (k, l)"
    anabranch.append(world.path, [{"id": 1, "a b": 7, "x": 7}] * 2)
    assert len(world.rows()) == 2
    assert world.info(world.version - 1)["operation"] == "ADD CONSTRAINT"
    world.assert_clean()


@pytest.mark.parametrize(
    "key",
    [
        Key("other", PRIMARY, ("id",)),
        Key("PK", FOREIGN, ("id",), ("t",)),
        Key("n", FOREIGN, ("nowhere",), ("t",)),
        Key("", FOREIGN, ("x",), ("t",)),
    ],
)
def test_a_key_that_cannot_be_is_refused(world: World, key: Key) -> None:
    AddKey(world.path, PK).run()
    with pytest.raises(errors.InvalidOption):
        AddKey(world.path, key).run()
    assert world.version == 1


def test_a_primary_key_takes_columns_that_are_not_null(world: World) -> None:
    with pytest.raises(errors.InvalidOption, match="NOT NULL"):
        AddKey(world.path, Key("p", PRIMARY, ("x",))).run()


def test_keys_are_dropped_by_name_by_kind_and_by_columns(world: World) -> None:
    for drop in (DropConstraint(world.path, "PK"), DropKey(world.path, PRIMARY)):
        AddKey(world.path, PK).run()
        drop.run()
        assert keys(world) == []
    AddKey(world.path, FK).run()
    assert DropKey(world.path, FOREIGN, ("x",), if_exists=True).run() is None
    with pytest.raises(errors.InvalidOption):
        DropKey(world.path, FOREIGN, ("x",)).run()
    DropKey(world.path, FOREIGN, ("A B", "x")).run()
    assert keys(world) == []


def test_a_column_of_a_key_stays_as_it_is_called(world: World) -> None:
    AddKey(world.path, FK).run()
    for change in (RenameColumn(world.path, ("x",), "y"), DropColumns(world.path, (("a b",),))):
        with pytest.raises(errors.ColumnInUse, match="fk \\(FOREIGN KEY\\)"):
            change.run()


def test_an_overwrite_of_the_columns_takes_along_the_keys_that_the_new_ones_cannot_have(world: World) -> None:
    """A column that rows bring may be NULL, and nothing of a primary key may."""
    for key in (PK, FK, Key("of_x", FOREIGN, ("X",), ("t",))):
        AddKey(world.path, key).run()
    Write(world.path, pa.table({"id": [1], "a b": [1], "x": [1]}), "overwrite").run(world.engine)
    assert [name for name, _, _ in keys(world)] == ["fk", "of_x", "pk"]
    Write(world.path, pa.table({"id": [2], "x": [1]}), "overwrite", schema_change="overwrite").run(world.engine)
    assert keys(world) == [("of_x", FOREIGN, ("X",))]
    assert world.rows() == [{"id": 2, "x": 1}]
    assert world.log.snapshot().metadata.configuration["pk"] == "of the user"
    world.assert_clean()


def test_a_column_of_a_primary_key_stays_not_null(world: World) -> None:
    AddKey(world.path, PK).run()
    nullable = Struct(tuple(replace(field, nullable=True) for field in SCHEMA))
    changes = (ChangeColumn(world.path, ("id",), nullable=True), ReplaceColumns(world.path, nullable))
    for change in changes:
        with pytest.raises(errors.InvalidOption, match="primary key pk"):
            change.run()
    DropKey(world.path, PRIMARY).run()
    assert changes[0].run() is not None


def test_a_key_that_another_engine_has_broken_is_in_the_way_of_no_change(tmp_path: Path) -> None:
    """Another engine knows nothing of keys when it takes a column away, or its NOT NULL."""
    broken = {"anabranch.constraint.pk": "PRIMARY KEY (id, gone)"}
    put_commit(tmp_path, 0, PROTOCOL, metadata(**broken))
    AddColumns(tmp_path, (NewColumn(Field("new", "long")),)).run()
    DropKey(tmp_path, PRIMARY).run()
    assert World(str(tmp_path)).version == 2


def test_a_key_is_no_property_to_be_set(world: World) -> None:
    AddKey(world.path, PK).run()
    for change in (
        SetProperties(world.path, {"anabranch.constraint.q": "PRIMARY KEY (id)"}),
        UnsetProperties(world.path, ("anabranch.constraint.pk",)),
    ):
        with pytest.raises(errors.InvalidProperty):
            change.run()


# -- inside CREATE TABLE -----------------------------------------------------------------------------------------------


def created(path: str, columns: str) -> Any:
    return reading.statement(f"CREATE TABLE delta.`{path}` ({columns}) USING delta", None, path_in)


def test_constraints_inside_create_table(tmp_path: Path) -> None:
    path = str(tmp_path / "T")
    found = created(
        path,
        """id BIGINT CONSTRAINT p PRIMARY KEY, c INT DEFAULT 5 REFERENCES d.u NOT ENFORCED, `check` INT, constraint INT,
           CONSTRAINT Low CHECK (c < 9 AND `check` > 1) ENFORCED, CHECK (id > 0), CHECK (id > 1),
           FOREIGN KEY (c, `check`) REFERENCES w (a, b) MATCH FULL ON DELETE NO ACTION RELY""",
    )
    assert found.properties == {
        "anabranch.constraint.p": "PRIMARY KEY (id)",
        "anabranch.constraint.t_c_fk": "FOREIGN KEY (c) REFERENCES d.u",
        "delta.constraints.low": "c < 9 AND `check` > 1",
        "delta.constraints.t_chk": "id > 0",
        "delta.constraints.t_chk_2": "id > 1",
        "anabranch.constraint.t_c_check_fk": "FOREIGN KEY (c, check) REFERENCES w (a, b) RELY",
    }
    assert [(each.name, each.nullable) for each in found.columns] == [
        ("id", False),
        ("c", True),
        ("check", True),
        ("constraint", True),
    ]
    create_table.create_command(found, create_table.new_table(found)).run()
    with pytest.raises(errors.CheckConstraintViolated):
        anabranch.append(path, [{"id": 2, "c": 9, "check": 2, "constraint": 0}])
    anabranch.append(path, [{"id": 2, "c": 8, "check": 2, "constraint": 0}] * 2)
    assert anabranch.check(path, deep=True).is_clean


@pytest.mark.parametrize(
    "columns",
    [
        "id INT, PRIMARY KEY (id) ENFORCED",
        "id INT, FOREIGN KEY (id) REFERENCES t ON DELETE CASCADE",
        "id INT, FOREIGN KEY (id) REFERENCES t (a, b)",
        "id INT, CONSTRAINT c CHECK (id > 1), CONSTRAINT C CHECK (id > 2)",
        "id INT, CONSTRAINT c CHECK id > 1",
        "id INT PRIMARY KEY ()",
    ],
)
def test_a_constraint_that_is_none_is_refused(tmp_path: Path, columns: str) -> None:
    with pytest.raises(errors.SqlSyntaxError):
        created(str(tmp_path / "t"), columns)


def test_a_table_is_not_made_with_keys_that_it_cannot_have(tmp_path: Path) -> None:
    for columns in ("id INT, FOREIGN KEY (x) REFERENCES t", "id INT PRIMARY KEY, x INT PRIMARY KEY"):
        found = created(str(tmp_path / "t"), columns)
        with pytest.raises(errors.InvalidOption):
            create_table.create_command(found, create_table.new_table(found)).run()
    assert not (tmp_path / "t").exists()
