"""Types that no table can have here: refused by name, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.schema.types import Array, Field, Map, Struct, check_storable
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from tests.support.raw_logs import PROTOCOL, listing, metadata, put_commit, put_rows
from tests.support.worlds import World, table_path

STRANGE = ["interval month to day", "INTERVAL YEAR", "geometry(4326)", "geography(4326)", "time(6)"]


def table_with(tmp_path: Path, strange: str) -> World:
    """A table that another engine made, with one such column."""
    world = World(table_path(tmp_path))
    schema = Struct((Field("id", "long"), Field("s", Struct((Field("odd", strange),)))))
    put_commit(world.path, 0, PROTOCOL, metadata(schema), put_rows(world.path, "a.parquet", [{"id": 1}]))
    return world


@pytest.mark.parametrize("strange", STRANGE)
def test_rows_are_not_appended_beside_a_type_that_is_none_here(tmp_path: Path, strange: str) -> None:
    world = table_with(tmp_path, strange)
    before = listing(world.path)
    with pytest.raises(errors.UnsupportedType) as refused:
        world.append({"id": 2})
    assert refused.value.type == strange
    assert listing(world.path) == before
    assert len(anabranch.files(world.path)) == 1


@pytest.mark.parametrize("strange", STRANGE)
def test_no_column_of_such_a_type_is_added(tmp_path: Path, strange: str) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1}])
    for kind in (strange, Array(strange), Map("string", strange), Struct((Field("m", strange),))):
        with pytest.raises(errors.UnsupportedType) as refused:
            AddColumns(world.path, [NewColumn(Field("c", kind))]).run()
        assert refused.value.type == strange
    assert world.version == 0


def test_variants_and_plain_types_can_be_stored_at_any_depth() -> None:
    check_storable(Struct((Field("v", Array(Map("string", "variant"))), Field("d", "decimal(38,10)"))), "c")


def test_a_user_defined_type_is_no_type_here(tmp_path: Path) -> None:
    udt = {"type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT", "sqlType": "string"}
    fields = [{"name": "v", "type": udt, "nullable": True, "metadata": {}}]
    made = metadata()
    body = {**made["metaData"], "schemaString": json.dumps({"type": "struct", "fields": fields})}
    path = table_path(tmp_path)
    put_commit(path, 0, PROTOCOL, {"metaData": body})
    with pytest.raises(errors.AnabranchError, match="udt"):
        anabranch.append(path, [{"v": 1}])
