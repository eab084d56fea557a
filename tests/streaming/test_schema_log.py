"""A stream with a log of schemas: rows from before a change of columns keep the columns from before it."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.log import forget
from anabranch._log.size_limits import LARGEST_HINT_BYTES
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch._streaming.offsets import Offset, Position
from anabranch._streaming.reading import Limits, Tolerance
from anabranch._streaming.schema_log import SchemaLog, StreamColumns
from anabranch._streaming.source import Source
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.create import Create
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.testing.stores import Call, ObservedStore
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
    log.note(StreamColumns(before.metadata, 1))
    assert log.newest() == after


def test_a_damaged_log_of_schemas_is_refused(world: World, tmp_path: Path) -> None:
    Stream(world.path, schemas=str(tmp_path / "schemas")).batch()
    [file] = (tmp_path / "schemas").rglob("*.json")
    file.write_text("{}")
    with pytest.raises(errors.InvalidStreamOffset, match="schemas"):
        Stream(world.path, schemas=str(tmp_path / "schemas"))


HOSTILE: dict[str, Callable[[dict[str, Any]], str | bytes]] = {
    "deep": lambda said: "[" * 100_000,
    "cut off": lambda said: json.dumps(said)[:-20],
    "no text": lambda said: b"\xff\xfe",
    "nothing": lambda said: b"",
    "a list": lambda said: json.dumps([said]),
    "infinite": lambda said: json.dumps({**said, "version": float("inf")}),
    "no number": lambda said: json.dumps({**said, "version": float("nan")}),
    "a text": lambda said: json.dumps({**said, "version": "0"}),
    "a flag": lambda said: json.dumps({**said, "version": True}),
    "before all": lambda said: json.dumps({**said, "version": -1}),
    "behind all": lambda said: json.dumps({**said, "version": 10**18}),
    "a long number": lambda said: json.dumps(said).replace('"version": 0', '"version": ' + "9" * 5000),
    "no metadata": lambda said: json.dumps({**said, "metaData": None}),
    "another table's": lambda said: json.dumps({**said, "metaData": {**said["metaData"], "id": "another"}}),
    "a schema that is none": lambda said: json.dumps({**said, "metaData": {**said["metaData"], "schemaString": "{"}}),
    "types without end": lambda said: json.dumps(
        {**said, "metaData": {**said["metaData"], "schemaString": '{"type":"struct","fields":[' * 50_000}}
    ),
    "other columns": lambda said: json.dumps(said).replace('\\"id\\"', '\\"no\\"'),
    "too large": lambda said: json.dumps(said) + " " * (LARGEST_HINT_BYTES + 1),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_whatever_stands_in_a_log_of_schemas_is_read_or_refused(world: World, tmp_path: Path, how: str) -> None:
    Stream(world.path, schemas=str(tmp_path / "schemas")).batch()
    [file] = (tmp_path / "schemas").rglob("*.json")
    found = HOSTILE[how](json.loads(file.read_text()))
    file.write_bytes(found if isinstance(found, bytes) else found.encode())
    with pytest.raises(errors.InvalidStreamOffset, match="of its schemas") as refused:
        Stream(world.path, schemas=str(tmp_path / "schemas")).ids()
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "a link to nothing"])
def test_what_is_no_file_is_no_schema(world: World, tmp_path: Path, kind: str) -> None:
    Stream(world.path, schemas=str(tmp_path / "schemas")).batch()
    [file] = (tmp_path / "schemas").rglob("*.json")
    other = file.with_name(f"{1:020}.json")
    if kind == "pipe":
        os.mkfifo(other)
    elif kind == "folder":
        other.mkdir()
    else:
        other.symlink_to({"device": "/dev/zero"}.get(kind, "nowhere"))
    assert Stream(world.path, schemas=str(tmp_path / "schemas")).ids() == [0, 1]


def changed_twice(world: World, schemas: Path) -> Stream:
    """A stream that has met two changes of columns."""
    stream = Stream(world.path, schemas=str(schemas))
    stream.batch()
    for name in ("a", "b"):
        add_column(world, name)
        world.append({"id": 7, name: "x"})
        with pytest.raises(errors.StreamMetadataChanged):
            stream.batch()
        assert stream.start().batch()
    return stream


@pytest.mark.parametrize("lost", [1, 2, 3])
@pytest.mark.parametrize("start", [None, 0])
def test_a_stream_whose_schemas_are_lost_keeps_no_column_back(
    world: World, tmp_path: Path, lost: int, start: int | None
) -> None:
    """The newest of them, or all: it goes on with those of the version at which it stands."""
    stream = changed_twice(world, tmp_path / "schemas")
    for file in sorted((tmp_path / "schemas").rglob("*.json"))[-lost:]:
        file.unlink()
    world.append({"id": 8, "a": "y", "b": "y"})
    try:
        found = stream.start(start=start).batch()
    except errors.StreamMetadataChanged:
        found = stream.start().batch()
    assert found == [{"id": 8, "a": "y", "b": "y"}]


def test_a_batch_that_is_done_again_without_its_schema_keeps_no_column_back(world: World, tmp_path: Path) -> None:
    stream = changed_twice(world, tmp_path / "schemas")
    world.append({"id": 8, "a": "y", "b": "y"})
    stream.batch()
    max((tmp_path / "schemas").rglob("*.json")).unlink()
    with pytest.raises(errors.StreamMetadataChanged):
        stream.again()
    assert stream.again() == [{"id": 8, "a": "y", "b": "y"}]


def test_columns_that_changed_in_versions_that_are_left_out_are_met_behind_them(world: World, tmp_path: Path) -> None:
    how = {"schemas": str(tmp_path / "schemas"), "tolerance": Tolerance(lost_versions=True)}
    stream = Stream(world.path, **how)
    stream.batch()
    world.append({"id": 2})
    add_column(world, "a")
    newest = world.append({"id": 3, "a": "x"})
    log = world.log
    log.write_checkpoint(log.snapshot(newest - 1), now_ms=0)
    for version in range(newest):
        (Path(world.path) / commit_name(version)).unlink()
    forget()
    with pytest.raises(errors.StreamMetadataChanged):
        stream.start().batch()
    assert stream.start().batch() == [{"id": 3, "a": "x"}]


def test_a_log_of_schemas_with_a_gap_takes_more(world: World, tmp_path: Path) -> None:
    changed_twice(world, tmp_path / "schemas")
    min((tmp_path / "schemas").rglob("*.json")).unlink()
    log = SchemaLog(str(tmp_path / "schemas"), world.log.snapshot().metadata.id)
    known = StreamColumns(world.log.snapshot().metadata, 99)
    log.note(known)
    assert log.newest() == known


def test_a_log_of_schemas_whose_numbers_are_used_up_is_refused(world: World, tmp_path: Path) -> None:
    """A name with one digit more would be found by nobody, and the stream would look for what it has noted for ever."""
    Stream(world.path, schemas=str(tmp_path / "schemas")).batch()
    [file] = (tmp_path / "schemas").rglob("*.json")
    file.rename(file.with_name("9" * 20 + ".json"))
    log = SchemaLog(str(tmp_path / "schemas"), world.log.snapshot().metadata.id)
    with pytest.raises(errors.InvalidStreamOffset, match="the highest number"):
        log.note(StreamColumns(world.log.snapshot().metadata, 99))
    assert len(list((tmp_path / "schemas").rglob("*"))) == 2


# -- a log that is empty -----------------------------------------------------------------------------------------------


@pytest.fixture
def mapped(tmp_path: Path) -> World:
    """Rows with a column that can be dropped or renamed, in two files of version 1."""
    world = World(table_path(tmp_path)).create([{"id": 0, "v": "a"}], **{"delta_columnMapping.mode": "name"})
    world.append({"id": 1, "v": "b"})
    return world


def drop(world: World) -> None:
    DropColumns(world.path, [("v",)]).run()


def rename(world: World) -> None:
    RenameColumn(world.path, ("v",), "w").run()


CHANGES = {"dropped": (drop, {}), "renamed": (rename, {"w": "c"})}


@pytest.mark.parametrize("how", CHANGES)
def test_a_log_that_is_begun_inside_a_snapshot_has_the_columns_of_the_snapshot(
    mapped: World, tmp_path: Path, how: str
) -> None:
    change, values = CHANGES[how]
    stream = Stream(mapped.path)
    assert stream.batch(Limits(1, None)) == [{"id": 0, "v": "a"}]
    change(mapped)
    mapped.append({"id": 2, **values})
    with pytest.raises(errors.StreamMetadataChanged):
        stream.start(schemas=str(tmp_path / "schemas")).batch()
    assert stream.start().batch() == [{"id": 1, "v": "b"}]
    with pytest.raises(errors.StreamMetadataChanged):
        stream.batch()
    assert stream.start().batch() == [{"id": 2, **values}]


@pytest.mark.parametrize("how", CHANGES)
def test_a_log_that_is_begun_at_a_time_has_the_columns_of_that_time(mapped: World, tmp_path: Path, how: str) -> None:
    change, values = CHANGES[how]
    change(mapped)
    mapped.append({"id": 2, **values})
    stream = Stream(mapped.path, schemas=str(tmp_path / "schemas"), start_timestamp=0)
    with pytest.raises(errors.StreamMetadataChanged):
        stream.batch()
    found = sorted(stream.start().batch(), key=str)
    assert found == [{"id": 0, "v": "a"}, {"id": 1, "v": "b"}]
    with pytest.raises(errors.StreamMetadataChanged):
        stream.batch()
    assert stream.start().batch() == [{"id": 2, **values}]


def test_columns_that_came_and_went_before_a_log_was_begun_are_met(world: World, tmp_path: Path) -> None:
    stream = Stream(world.path, tolerance=Tolerance(changes=True))
    stream.batch()
    world.append({"id": 2})
    add_column(world, "a")
    world.append({"id": 3, "a": "x"})
    world.restore(0)
    assert stream.start(schemas=str(tmp_path / "schemas")).batch() == [{"id": 2}]
    with pytest.raises(errors.StreamMetadataChanged):
        stream.batch()
    assert stream.start().batch() == [{"id": 3, "a": "x"}]


def test_a_stream_that_was_made_before_its_log_was_begun_is_made_anew(mapped: World, tmp_path: Path) -> None:
    stream = Stream(mapped.path)
    stream.batch(Limits(1, None))
    drop(mapped)
    read = stream.start(schemas=str(tmp_path / "schemas")).source.read
    for _ in range(2):
        with pytest.raises(errors.StreamMetadataChanged, match="columns added: v"):
            Source(read).latest(stream.at)
    assert stream.start().batch() == [{"id": 1, "v": "b"}]


def planned(world: World, tmp_path: Path) -> Stream:
    """A stream whose first batch, from the snapshot of version 1 to the newest version, was planned without a log."""
    stream = Stream(world.path, schemas=str(tmp_path / "schemas"))
    end = Position(world.version + 1)
    stream.ends.append(json.dumps(Offset(stream.source.metadata.id, end, Position(1, in_snapshot=True)).to_json()))
    return stream


def test_a_batch_that_was_planned_before_has_the_columns_that_keep_all_others(mapped: World, tmp_path: Path) -> None:
    add_column(mapped, "a")
    mapped.append({"id": 2, "v": "c", "a": "x"})
    stream = planned(mapped, tmp_path)
    add_column(mapped, "b")
    with pytest.raises(errors.StreamMetadataChanged):
        stream.start().again()
    found = [(row["id"], row["v"], row["a"]) for row in stream.again()]
    assert sorted(found) == [(0, "a", None), (1, "b", None), (2, "c", "x")]


@pytest.mark.parametrize("how", CHANGES)
def test_a_batch_that_was_planned_before_is_refused_where_a_column_is_lost(
    mapped: World, tmp_path: Path, how: str
) -> None:
    change, values = CHANGES[how]
    change(mapped)
    mapped.append({"id": 2, **values})
    stream = planned(mapped, tmp_path)
    for _ in range(2):
        with pytest.raises(errors.StreamSchemaIncompatible, match="v was dropped or renamed, and schemaTracking"):
            stream.again()
    stream.asked.pop("schemas")
    assert len(stream.again()) == 3


def test_a_batch_that_was_planned_before_has_the_wider_type_of_a_column(tmp_path: Path) -> None:
    world = World(table_path(tmp_path))
    for number in (0, 1):
        rows = pa.table({"id": [number], "v": pa.array([number], pa.int32())})
        Append(world.path, rows, None, {} if number else {"delta.enableTypeWidening": "true"}).run()
    ChangeColumn(world.path, ("v",), type="long").run()
    world.append({"id": 2, "v": 1 << 40})
    assert sorted(row["v"] for row in planned(world, tmp_path).again()) == [0, 1, 1 << 40]


def test_a_batch_that_was_planned_before_is_refused_where_a_column_has_another_type(
    world: World, tmp_path: Path
) -> None:
    world.append({"id": 2})
    Write(world.path, pa.table({"id": ["a"]}), "overwrite", schema_change="overwrite").run(world.engine)
    stream = planned(world, tmp_path)
    stream.asked["tolerance"] = Tolerance(changes=True)
    for _ in range(2):
        with pytest.raises(errors.StreamSchemaIncompatible):
            stream.again()


def test_a_stream_behind_another_one_with_its_log_loses_no_column(mapped: World, tmp_path: Path) -> None:
    ahead, behind = (Stream(mapped.path, schemas=str(tmp_path / "schemas")) for _ in range(2))
    ahead.batch()
    behind.batch(Limits(1, None))
    drop(mapped)
    with pytest.raises(errors.StreamMetadataChanged):
        ahead.batch()
    with pytest.raises(errors.StreamSchemaIncompatible, match="v was dropped or renamed, and schemaTracking"):
        behind.start().batch()
    behind.at = Offset(behind.source.metadata.id, Position(0))
    with pytest.raises(errors.StreamSchemaIncompatible):
        behind.batch()
    behind.at = Offset(behind.source.metadata.id, Position(1, 0))  # there is no row before the change
    assert behind.batch() == []


@pytest.mark.slow
def test_columns_of_before_a_noted_change_are_followed_from_commit_to_commit(mapped: World, tmp_path: Path) -> None:
    for number in range(2, 6):
        mapped.append({"id": number, "v": "c"})
        mapped.optimize()
    SetProperties(mapped.path, {"a.property": "x"}).run()
    Stream(mapped.path, schemas=str(tmp_path / "schemas")).batch()
    stream, calls = Stream(mapped.path, schemas=str(tmp_path / "schemas"), start=1), list[Call]()
    stream.source.log.store = ObservedStore(stream.source.log.store, before=calls.append)
    found = [stream.ids(Limits(1, None)) for _ in range(5)]
    assert found == [[number] for number in range(1, 6)]
    read = Counter(call.about for call in calls if call.method == "get")
    assert max(read.values()) <= 3, read.most_common(3)


def test_columns_that_went_before_there_were_rows_are_no_loss(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 0, "v": "a"}], **{"delta_columnMapping.mode": "name"})
    world.delete()
    drop(world)
    stream = Stream(world.path, schemas=str(tmp_path / "schemas"), start=1, tolerance=Tolerance(changes=True))
    with pytest.raises(errors.StreamMetadataChanged):
        stream.batch()
    world.append({"id": 2})
    assert stream.start().batch() == [{"id": 2}]


@pytest.fixture
def numbered(tmp_path: Path) -> World:
    """Two rows in two versions, each of which moved the mark of an identity column."""
    world = World(table_path(tmp_path))
    number = Field("n", "long", metadata=identity_metadata(1, 1, explicit=False))
    Create(world.path, NewTable(Struct((Field("id", "long"), number)))).run()
    world.append({"id": 0})
    world.append({"id": 1})
    return world


def test_marks_of_identity_columns_behind_those_of_the_stream_are_no_change(numbered: World, tmp_path: Path) -> None:
    """The log is begun on a checkpoint, so with an older version than that of the columns, or at a time."""
    stream = Stream(numbered.path)
    assert stream.ids() == [0, 1]
    for number in range(2, 5):
        numbered.append({"id": number})
    stream.start(schemas=str(tmp_path / "schemas"))
    assert stream.ids(Limits(1, None)) + stream.ids() == [2, 3, 4]
    assert Stream(numbered.path, schemas=str(tmp_path / "more"), start_timestamp=0).ids() == [0, 1, 2, 3, 4]


def test_marks_of_identity_columns_before_those_of_the_stream_are_no_change(numbered: World, tmp_path: Path) -> None:
    """The table has moved on before the log is begun."""
    stream = Stream(numbered.path, schemas=str(tmp_path / "schemas"))
    numbered.append({"id": 2})
    assert stream.ids() == [0, 1, 2]
    numbered.append({"id": 3})
    assert stream.start().ids() == [3]
