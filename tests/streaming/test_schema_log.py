"""A stream with a log of schemas: rows from before a change of columns keep the columns from before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import errors
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from anabranch.protocol.schema.types import Field
from anabranch.streaming.schema_log import Known, SchemaLog
from tests.support.streams import Stream
from tests.support.worlds import World, table_path


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two rows, at version 0."""
    return World(table_path(tmp_path)).create([{"id": 0}, {"id": 1}])


def add_column(world: World, name: str) -> None:
    AddColumns(world.path, (NewColumn(Field(name, "string")),)).run()


def test_rows_from_before_each_change_have_the_columns_from_before_it(world: World, tmp_path: Path) -> None:
    stream = Stream(world.path, schemas=str(tmp_path / "schemas"))
    assert stream.ids() == [0, 1]
    world.append({"id": 2})
    add_column(world, "a")
    world.append({"id": 3, "a": "x"})
    add_column(world, "b")
    world.append({"id": 4, "a": "x", "b": "y"})
    found = []
    for _ in range(3):
        stream.start()
        found.append(stream.batch())
        if len(found) < 3:
            with pytest.raises(errors.StreamMetadataChanged):
                stream.batch()
    assert found == [[{"id": 2}], [{"id": 3, "a": "x"}], [{"id": 4, "a": "x", "b": "y"}]]


def test_a_stream_that_begins_at_an_older_version_begins_with_its_columns(world: World, tmp_path: Path) -> None:
    add_column(world, "a")
    stream = Stream(world.path, schemas=str(tmp_path / "schemas"), start=0)
    assert sorted(stream.batch(), key=str) == [{"id": 0}, {"id": 1}]
    with pytest.raises(errors.StreamMetadataChanged, match="version 1"):
        stream.batch()


def test_a_change_is_noted_once_and_only_behind_the_rows_before_it(world: World, tmp_path: Path) -> None:
    log = SchemaLog(str(tmp_path / "schemas"), world.log.snapshot().metadata.id)
    stream = Stream(world.path, schemas=str(tmp_path / "schemas"))
    stream.batch()
    world.append({"id": 2})
    add_column(world, "a")
    before = log.newest()
    assert before is not None
    assert before.version == 0
    stream.source.latest(stream.at)  # plans the row before the change, which is not yet shown
    assert log.newest() == before
    assert stream.batch() == [{"id": 2}]
    for _ in range(2):
        with pytest.raises(errors.StreamMetadataChanged):
            stream.batch()
    after = log.newest()
    assert after is not None
    assert (after.version, after.metadata.schema.names) == (2, ("id", "a"))
    log.note(Known(before.metadata, 1))
    assert log.newest() == after


def test_a_damaged_log_of_schemas_is_refused(world: World, tmp_path: Path) -> None:
    Stream(world.path, schemas=str(tmp_path / "schemas"))
    [file] = (tmp_path / "schemas").rglob("*.json")
    file.write_text("{}")
    with pytest.raises(errors.InvalidStreamOffset, match="schemas"):
        Stream(world.path, schemas=str(tmp_path / "schemas"))
