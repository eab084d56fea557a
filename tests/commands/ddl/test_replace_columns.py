"""REPLACE COLUMNS on tables: what rows show afterwards, what stands in the way, and who else writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Create
from anabranch.commands.ddl.replace_columns import ReplaceColumns
from anabranch.commands.dml.new_table import NewTable
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

A, B, P = Field("a", "integer"), Field("b", "string"), Field("p", "integer")
ROWS = [{"a": 1, "b": "x", "p": 0}, {"a": 2, "b": None, "p": 1}]


def made(folder: Path, **properties: str) -> World:
    path = table_path(folder)
    Create(path, NewTable(Struct((A, B, P)), ("p",), properties)).run()
    world = World(path)
    world.append(*ROWS)
    return world


def test_columns_are_put_in_order_and_added(tmp_path: Path) -> None:
    world = made(tmp_path)
    text = Field("B", "string", metadata={"comment": "a text"})
    ReplaceColumns(world.path, Struct((text, P, A, Field("new", "date")))).run()
    assert world.log.snapshot().schema.names == ("b", "p", "a", "new")
    assert world.rows() == [{**row, "new": None} for row in ROWS]
    assert world.info()["operation"] == "REPLACE COLUMNS"
    assert [each["name"] for each in json.loads(world.info()["operationParameters"]["columns"])] == [
        "B",
        "p",
        "a",
        "new",
    ]
    assert ReplaceColumns(world.path, Struct((text, P, A, Field("new", "date")))).run() is None
    world.append({"a": 3, "b": "z", "p": 0, "new": None})
    world.assert_clean()


def test_a_column_goes_where_columns_are_mapped_and_nothing_of_it_comes_back(tmp_path: Path) -> None:
    world = made(tmp_path)
    with pytest.raises(errors.InvalidProperty):
        ReplaceColumns(world.path, Struct((A, P))).run()
    mode = {"delta.columnMapping.mode": "name", "delta.dataSkippingStatsColumns": "a,b"}
    SetProperties(world.path, mode).run()
    ReplaceColumns(world.path, Struct((P, A))).run()
    assert world.log.snapshot().metadata.configuration["delta.dataSkippingStatsColumns"] == "a"
    ReplaceColumns(world.path, Struct((P, A, B))).run()
    assert world.rows() == [{"p": 0, "a": 1, "b": None}, {"p": 1, "a": 2, "b": None}]
    world.assert_clean()


def test_a_type_becomes_wider_only_where_the_table_widens(tmp_path: Path) -> None:
    world, wide = made(tmp_path), Struct((Field("a", "long"), B, P))
    with pytest.raises(errors.InvalidOption, match="enableTypeWidening"):
        ReplaceColumns(world.path, wide).run()
    SetProperties(world.path, {"delta.enableTypeWidening": "true"}).run()
    ReplaceColumns(world.path, wide).run()
    world.append({"a": 1 << 40, "b": "z", "p": 0})
    assert sorted(row["a"] for row in world.rows()) == [1, 2, 1 << 40]
    assert anabranch.check(world.path, deep=True).is_clean  # delta-rs does not know wider types


def test_what_stands_in_the_way_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    world = made(tmp_path, **{"delta.columnMapping.mode": "name"})
    before = world.version
    with pytest.raises(errors.ColumnInUse, match="partitioning"):
        ReplaceColumns(world.path, Struct((A, B))).run()
    with pytest.raises(errors.UnsupportedType):
        ReplaceColumns(world.path, Struct((A, B, P, Field("v", "time(6)")))).run()
    with pytest.raises(errors.InvalidOption, match="rename"):
        ReplaceColumns(world.path, Struct((A, Field("c", "string"), P))).run()
    numbered = table_path(tmp_path)
    number = Field("n", "long", metadata=identity_metadata(1, 1, explicit=False))
    Create(numbered, NewTable(Struct((A, number)))).run()
    with pytest.raises(errors.InvalidOption, match="with IDENTITY columns"):
        ReplaceColumns(numbered, Struct((number, A))).run()
    assert world.version == before


def test_a_writer_that_has_not_seen_the_new_columns_fails(tmp_path: Path) -> None:
    world = made(tmp_path)
    command = ReplaceColumns(world.path, Struct((B, A, P)))
    with pytest.raises(errors.MetadataChangedException), at_phase("staged", lambda: command.run()):
        world.append(ROWS[0])
    world.assert_clean()
