"""The source of a stream: which rows each batch has, and when it stops."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log import commit_files
from anabranch._log.file_names import commit_name
from anabranch._log.log import forget
from anabranch._protocol.change_feed import COMMIT_VERSION
from anabranch._protocol.schema.types import Field
from anabranch._streaming.offsets import Offset, Position
from anabranch._streaming.reading import LATEST, Limits, Tolerance
from anabranch.commands.ddl.alter import AddColumns, NewColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.write import Write
from anabranch.commands.opening import open_log
from anabranch.testing.stores import Call, ObservedStore
from tests.support.feeds import applied, plain, record_changes
from tests.support.streams import ALL, Stream
from tests.support.worlds import World, table_path


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Six rows in two partitions, at version 0."""
    return World(table_path(tmp_path)).create([{"id": i, "g": i % 2} for i in range(6)], partition_by=("g",))


def add_column(world: World) -> None:
    AddColumns(world.path, (NewColumn(Field("name", "string")),)).run()


def test_a_stream_shows_the_rows_that_are_there_and_then_those_that_are_added(world: World) -> None:
    world.append({"id": 6, "g": 0})
    stream = Stream(world.path)
    assert stream.ids() == [0, 1, 2, 3, 4, 5, 6]
    assert stream.ids() == []
    world.append({"id": 7, "g": 1})
    world.append({"id": 8, "g": 1})
    assert stream.ids() == [7, 8]


def test_deleted_rows_that_were_there_before_are_not_shown(world: World) -> None:
    world.delete("id IN (1, 4)")
    assert Stream(world.path).ids() == [0, 2, 3, 5]


def test_a_batch_is_the_same_when_another_process_does_it_again(world: World) -> None:
    world.append({"id": 6, "g": 0})
    stream = Stream(world.path)
    for _ in range(3):
        rows = stream.batch(Limits(1, None))
        world.append({"id": 50, "g": 0})
        assert stream.again() == rows != []


@pytest.mark.parametrize(("limits", "batches"), [(Limits(1, None), 4), (Limits(2, None), 2), (Limits(None, 1), 4)])
def test_a_batch_takes_files_until_a_limit_is_reached(world: World, limits: Limits, batches: int) -> None:
    world.append({"id": 6, "g": 0})
    stream = Stream(world.path)
    world.append({"id": 7, "g": 0})
    found = [stream.ids(limits) for _ in range(batches)]
    assert all(found)
    assert sorted(each for batch in found for each in batch) == list(range(8))
    assert stream.ids(limits) == []


def test_a_stream_begins_where_it_is_told(world: World) -> None:
    world.append({"id": 6, "g": 0})
    world.append({"id": 7, "g": 0})
    assert Stream(world.path, start=2).ids() == [7]
    assert Stream(world.path, start=0).ids() == list(range(8))
    later = Stream(world.path, start=LATEST)
    assert later.ids() == []
    world.append({"id": 8, "g": 0})
    assert later.ids() == [8]
    moment = open_log(world.path).snapshot(2).timestamp
    assert Stream(world.path, start_timestamp=moment).ids() == [7, 8]
    with pytest.raises(errors.VersionNotFound, match="to version 9"):
        Stream(world.path, start=9).batch()
    with pytest.raises(errors.TimestampAfterLatestCommit):
        Stream(world.path, start_timestamp=moment + 10**9).batch()


@pytest.mark.parametrize("look", [1, 2, 3, 4])
def test_a_table_made_again_while_a_batch_is_planned_ends_the_stream(world: World, look: int) -> None:
    """The other table has commits of the same versions; it comes before one of the looks at the log."""
    looks = itertools.count(1)

    def replaced(call: Call) -> None:
        if call.method == "list_from" and next(looks) == look:
            shutil.rmtree(world.path)
            world.create([{"id": 100}]).append({"id": 101})

    stream = Stream(world.path)
    stream.batch()
    world.append({"id": 7, "g": 1})
    forget()
    stream.source.log.store = ObservedStore(stream.source.log.store, before=replaced)
    with pytest.raises((errors.StreamTableReplaced, errors.CorruptLog)):
        stream.batch()


def test_rows_that_are_only_moved_are_not_shown_again(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    world.append({"id": 6, "g": 0})
    world.optimize()
    world.append({"id": 7, "g": 0})
    assert stream.ids() == [6, 7]


def test_a_stream_moves_on_over_commits_that_add_nothing(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    world.append({"id": 6, "g": 0})
    world.optimize()
    assert stream.ids() == [6]
    world.delete("id = 77")
    world.optimize()
    assert stream.batch() == []
    assert stream.at.position is not None
    assert stream.at.position.version == world.version + 1


def test_a_stream_of_an_empty_table_waits_for_rows(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1}])
    world.delete()
    stream = Stream(world.path)
    assert [stream.batch(), stream.again(), stream.start().batch()] == [[], [], []]
    world.append({"id": 2})
    assert stream.ids() == [2]


def test_a_stream_that_waits_for_new_rows_never_ends_before_what_is_there(world: World) -> None:
    stream = Stream(world.path)
    stream.source.stop_at_newest()
    world.append({"id": 6, "g": 0})
    assert stream.ids() == [0, 1, 2, 3, 4, 5]
    assert stream.ids() == []
    assert stream.start().ids() == [6]


def test_rows_that_are_there_come_at_once_where_none_may_be_late(world: World) -> None:
    world.append({"id": 6, "g": 0})
    stream = Stream(world.path, at_once=True)
    world.append({"id": 7, "g": 0})
    assert len(stream.ids(Limits(1, None))) == 8
    world.append({"id": 8, "g": 0})
    world.append({"id": 9, "g": 0})
    assert stream.ids(Limits(1, None)) == [8]


# -- commits that delete or change rows --------------------------------------------------------------------------------


def deleting(world: World) -> None:
    world.delete("g = 0")


def changing(world: World) -> None:
    world.update("id = 1", g=7)


def marking(world: World) -> None:
    world.delete("id = 1")


@pytest.mark.parametrize(
    ("change", "lets", "shown"),
    [
        (deleting, {}, "StreamDeletes"),
        (deleting, {"deletes": True}, []),
        (deleting, {"changes": True}, []),
        (deleting, {"change_commits": True}, []),
        (marking, {}, "StreamChanges"),
        (marking, {"deletes": True}, []),
        (marking, {"changes": True}, []),
        (marking, {"change_commits": True}, []),
        (changing, {}, "StreamChanges"),
        (changing, {"deletes": True}, "StreamChanges"),
        (changing, {"changes": True}, [1]),
        (changing, {"change_commits": True}, []),
    ],
)
def test_a_commit_that_deletes_or_changes_rows_stops_a_stream_unless_an_option_lets_it(
    world: World, change: Any, lets: dict[str, bool], shown: Any
) -> None:
    stream = Stream(world.path, tolerance=Tolerance(**lets))
    stream.batch()
    world.append({"id": 6, "g": 0})
    change(world)
    world.append({"id": 7, "g": 0})
    if isinstance(shown, list):
        assert stream.ids() == sorted([6, *shown, 7])
        return
    assert stream.ids() == [6]  # what came before is shown first
    with pytest.raises(getattr(errors, shown), match="version 2"):
        stream.batch()


def test_what_was_there_is_shown_before_a_stream_stops(world: World) -> None:
    world.append({"id": 6, "g": 0})
    stream = Stream(world.path)
    shown = stream.ids(Limits(1, None))
    marking(world)
    shown += stream.ids()
    assert sorted(shown) == list(range(7))
    with pytest.raises(errors.StreamChanges):
        stream.batch()


def test_a_stream_that_has_shown_nothing_yet_stops_as_well(world: World) -> None:
    world.append({"id": 6, "g": 0})
    world.optimize()
    deleting(world)
    with pytest.raises(errors.StreamDeletes):
        Stream(world.path, start=2).batch()


# -- metadata ----------------------------------------------------------------------------------------------------------


def test_a_stream_stops_at_a_change_of_metadata_and_goes_on_when_it_is_started_again(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    world.append({"id": 6, "g": 0})
    add_column(world)
    world.append({"id": 7, "g": 0, "name": "n"})
    assert stream.ids() == [6]
    with pytest.raises(errors.StreamMetadataChanged, match="columns added: name") as error:
        stream.batch()
    assert error.value.facts["version"] == 2
    rows = stream.start().batch()
    assert rows == [{"id": 7, "g": 0, "name": "n"}]


def test_rows_from_before_a_change_of_columns_are_read_with_the_new_ones(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    world.append({"id": 6, "g": 0})
    add_column(world)
    assert stream.start().batch() == [{"id": 6, "g": 0, "name": None}]


def test_where_columns_changed_beyond_reading_the_error_names_a_version_at_which_to_begin_anew(world: World) -> None:
    rows = pa.table({"id": [9], "g": ["text"]})
    Write(world.path, rows, "overwrite", ("id",), schema_change="overwrite").run(world.engine)
    world.append({"id": 10, "g": "more"})
    allowed = {"tolerance": Tolerance(changes=True)}
    with pytest.raises(errors.StreamSchemaIncompatible) as error:
        Stream(world.path, start=0, **allowed).batch()
    assert Stream(world.path, start=error.value.facts["version"], **allowed).ids() == [10]


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_a_table_that_was_made_again_is_not_taken_for_the_one_before(world: World, tmp_path: Path) -> None:
    stream = Stream(world.path)
    stream.batch()
    for file in Path(world.path, "_delta_log").glob("*"):
        file.unlink()
    forget()
    World(world.path).create([{"id": 1, "g": 1}])
    with pytest.raises(errors.StreamTableReplaced):
        stream.batch()
    with pytest.raises(errors.StreamTableReplaced):
        stream.start()


def test_versions_that_were_cleaned_up_are_left_out_only_where_an_option_lets_it(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    world.append({"id": 6, "g": 0})
    world.append({"id": 7, "g": 0})
    clean_up(world, 0, 1)
    with pytest.raises(errors.StreamVersionsLost) as error:
        stream.start().batch()
    assert (error.value.facts["version"], error.value.facts["earliest"]) == (1, 2)
    assert stream.start(tolerance=Tolerance(lost_versions=True)).ids() == [7]


def test_versions_in_the_middle_that_are_gone_are_left_out_only_where_an_option_lets_it(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    for number in range(6, 11):
        world.append({"id": number, "g": 0})
    clean_up(world, 2, 4)
    with pytest.raises(errors.StreamVersionsLost) as error:
        stream.start().batch()
    assert (error.value.facts["version"], error.value.facts["earliest"]) == (2, 3)
    assert stream.start(tolerance=Tolerance(lost_versions=True)).ids() == [6, 8, 10]


def test_a_commit_that_is_damaged_is_never_left_out(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    for number in range(6, 9):
        world.append({"id": number, "g": 0})
    clean_up(world)
    Path(world.path, commit_name(2)).write_text("{")
    with pytest.raises(errors.CorruptLog):
        stream.start(tolerance=Tolerance(lost_versions=True)).batch()


def clean_up(world: World, *versions: int) -> None:
    """Remove commits, for which a checkpoint of the newest version stands."""
    log = open_log(world.path)
    log.write_checkpoint(log.snapshot(), now_ms=0)
    for version in versions:
        Path(world.path, commit_name(version)).unlink()
    forget()


def test_what_cannot_be_shown_stops_a_stream_behind_versions_that_were_cleaned_up(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    world.append({"id": 6, "g": 0})
    deleting(world)
    clean_up(world, 0, 1)
    with pytest.raises(errors.StreamDeletes):
        stream.start(tolerance=Tolerance(lost_versions=True)).batch()


def test_however_many_versions_were_cleaned_up_they_are_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anabranch._streaming.source.COMMITS_AT_ONCE", 2)
    stream = Stream(world.path)
    stream.batch()
    for number in range(6, 12):
        world.append({"id": number, "g": 0})
    clean_up(world, *range(6))
    assert stream.start(tolerance=Tolerance(lost_versions=True)).ids() == [11]


def test_the_version_at_which_a_stream_began_may_be_cleaned_up(world: World) -> None:
    world.append({"id": 6, "g": 0})
    stream = Stream(world.path)
    assert stream.batch(Limits(1, None))
    for number in (7, 8):
        world.append({"id": number, "g": 0})
    clean_up(world, *range(3))
    with pytest.raises(errors.StreamVersionsLost):
        stream.start().batch()
    assert stream.start(tolerance=Tolerance(lost_versions=True)).ids() == [8]


def put_back(world: World, backup: World) -> None:
    """The log of a copy takes the table's place, each of its files with a time and a number of its own."""
    shutil.rmtree(Path(world.path, "_delta_log"))
    shutil.copytree(Path(backup.path, "_delta_log"), Path(world.path, "_delta_log"), copy_function=shutil.copyfile)
    forget()


@pytest.mark.parametrize("limits", [ALL, Limits(1, None)])
def test_a_table_that_was_put_back_is_refused_once_it_has_grown_again(
    world: World, tmp_path: Path, limits: Limits
) -> None:
    """A stream would pass over what is committed until it reaches the version where the stream was."""
    backup = world.copy(tmp_path)
    stream = Stream(world.path)
    for number in (6, 7):
        world.append({"id": number, "g": 0})
    while stream.batch(limits):
        pass
    put_back(world, backup)
    with pytest.raises(errors.InvalidStreamOffset, match="up to 0 only"):
        stream.start().batch()
    for number in (8, 9, 10):
        world.append({"id": number, "g": 0})
    with pytest.raises(errors.InvalidStreamOffset, match="an older table was put back"):
        stream.start().batch()


def test_a_copy_that_is_put_back_as_it_was_goes_on(world: World, tmp_path: Path) -> None:
    world.append({"id": 6, "g": 0})
    stream = Stream(world.path)
    assert stream.ids() == [*range(7)]
    put_back(world, world.copy(tmp_path))
    world.append({"id": 7, "g": 0})
    assert stream.ids() == [7]
    assert stream.start().ids() == []


def test_commits_that_were_read_ahead_and_are_others_by_now_are_read_again(world: World, tmp_path: Path) -> None:
    backup = world.copy(tmp_path)
    stream = Stream(world.path)
    assert len(stream.ids()) == 6
    for number in (6, 7, 8):
        world.append({"id": number, "g": 0})
    stream.source.latest(stream.at, ALL)
    put_back(world, backup)
    for number in (16, 17, 18):
        world.append({"id": number, "g": 0})
    assert stream.ids() == [16, 17, 18]


def test_an_offset_without_a_mark_of_its_commit_is_taken(world: World) -> None:
    """As delta-spark writes it, and as this did before."""
    stream = Stream(world.path)
    stream.batch()
    stream.ends.append(json.dumps({key: each for key, each in json.loads(stream.ends[-1]).items() if key != "commit"}))
    world.append({"id": 6, "g": 0})
    assert stream.start().ids() == [6]


def of_delta_spark(stream: Stream, version: int, index: int = -1) -> str:
    """An offset behind a file of a commit, or before its first, as delta-spark writes it."""
    at = {"reservoirVersion": version, "index": index, "isStartingVersion": False}
    return json.dumps({"sourceVersion": 1, "reservoirId": stream.source.metadata.id, **at})


@pytest.mark.parametrize(
    ("begins", "index", "shown"),
    [
        ({}, -1, [*range(8)]),  # all of version 1, and no commit behind it
        ({}, 0, [*range(8), 8]),
        ({"start": 1}, -1, [6, 7]),
        ({"start": 1}, 0, [6, 7, 8]),
        ({"start_timestamp": 0}, -1, [*range(8)]),
    ],
)
def test_a_first_batch_that_delta_spark_planned_and_did_not_do_is_done(
    world: World, begins: dict[str, Any], index: int, shown: list[int]
) -> None:
    """Its offsets do not say where the first batch began."""
    world.append({"id": 6, "g": 0}, {"id": 7, "g": 0})
    world.append({"id": 8, "g": 0})
    stream = Stream(world.path, **begins)
    stream.ends.append(of_delta_spark(stream, 2, index))
    rows = stream.again()
    assert sorted(row["id"] for row in rows) == shown
    assert sorted([row["id"] for row in rows] + stream.start().ids()) == sorted({*shown, 8})


@pytest.mark.parametrize(("begins", "version"), [({"start": LATEST}, 1), ({"start": 2}, 1), ({}, 0)])
def test_a_first_batch_whose_beginning_nothing_says_is_refused(
    world: World, begins: dict[str, Any], version: int
) -> None:
    world.append({"id": 6, "g": 0})
    world.append({"id": 7, "g": 0})
    stream = Stream(world.path, **begins)
    stream.ends.append(of_delta_spark(stream, version))
    with pytest.raises(errors.InvalidStreamOffset):
        stream.again()


DEEP = json.loads('{"x":' * 900 + "{}" + "}" * 900)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"reservoirVersion": -1},
        {"reservoirVersion": -1, "isStartingVersion": True, "index": 2},
        {"reservoirVersion": 0, "isStartingVersion": True, "index": 10**9},
        {"reservoirVersion": 1, "isStartingVersion": True},
        {"began": {"reservoirVersion": -1, "index": -1, "isStartingVersion": True}},
        {"sourceVersion": 9},
        {"reservoirVersion": "0"},
        {"reservoirVersion": 77},
        {"index": None},
        {"isStartingVersion": 1},
        {"began": {"reservoirVersion": 1}},
        {"sourceVersion": [1]},
        {"commit": 1},
        {"commit": "another"},
        {"reservoirId": ["x"] * 10_000},
        {"reservoirVersion": 10**400},
        {"reservoirVersion": float("nan")},
        {"index": -(10**30)},
        {"began": "x" * 1_000_000, "also": {"x" * 1_000_000: 1}},
        {"began": DEEP},
        {"commit": "x" * 1_000_000},
        {"reservoirVersion": 77, "commit": "x" * 1_000_000},
    ],
)
def test_an_offset_that_is_damaged_or_ahead_of_the_table_is_refused(world: World, said: dict[str, Any]) -> None:
    stream = Stream(world.path)
    stream.batch()
    good = json.loads(stream.ends[-1])
    stream.ends.append(json.dumps({**good, **said} if said else {}))
    with pytest.raises(errors.InvalidStreamOffset) as refused:
        stream.start().batch()
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("field", ["sourceVersion", "reservoirId", "reservoirVersion", "began", "commit"])
def test_a_part_of_an_offset_without_an_end_is_refused(field: str) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    said = {**Offset("a-table", Position(1)).to_json(), field: deep}
    with pytest.raises(errors.InvalidStreamOffset):
        Offset.from_json(said, "file:///t", "a-table")


def test_an_offset_of_a_table_with_a_long_name_is_told_in_few_words(world: World) -> None:
    stream = Stream(world.path)
    stream.batch()
    stream.ends.append(json.dumps({**json.loads(stream.ends[-1]), "reservoirId": "x" * 1_000_000}))
    with pytest.raises(errors.StreamTableReplaced) as refused:
        stream.start().batch()
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("text", ["null", "[]", "7", '"x"', "true", "NaN", "[[1]]", '{"sourceVersion": 1}'])
def test_what_is_no_offset_at_all_is_refused(world: World, text: str) -> None:
    stream = Stream(world.path)
    stream.ends.append(text)
    with pytest.raises(errors.InvalidStreamOffset):
        stream.start()


@pytest.mark.parametrize("feed", [False, True])
def test_an_offset_behind_the_last_file_of_a_commit_is_refused_and_skips_no_row(world: World, feed: bool) -> None:
    record_changes(world.path)
    stream = Stream(world.path, feed=feed)
    stream.batch()
    newest = world.append({"id": 6, "g": 0})
    said = {**json.loads(stream.ends[-1]), "reservoirVersion": newest, "index": 1}
    del said["began"], said["commit"]
    stream.ends.append(json.dumps(said))
    with pytest.raises(errors.InvalidStreamOffset, match=r"the last file of version \d is 0"):
        stream.start().batch()
    with pytest.raises(errors.InvalidStreamOffset, match=r"the last file of version \d is 0"):
        stream.again()


# -- feeds -------------------------------------------------------------------------------------------------------------


def test_a_feed_shows_what_is_there_as_inserts_and_then_each_change(world: World) -> None:
    record_changes(world.path)
    stream = Stream(world.path, feed=True)
    first = stream.batch()
    assert {(row["_change_type"], row[COMMIT_VERSION]) for row in first} == {("insert", 0)}
    assert sorted(row["id"] for row in first) == [0, 1, 2, 3, 4, 5]
    world.delete("id = 1")
    world.append({"id": 6, "g": 0})
    found = [(row[COMMIT_VERSION], row["_change_type"], row["id"]) for row in stream.batch()]
    assert sorted(found) == [(1, "delete", 1), (2, "insert", 6)]


def test_a_feed_that_is_not_recorded_stops_the_stream(world: World) -> None:
    for begins in ({"start": 0}, {}):
        with pytest.raises(errors.ChangeDataNotRecorded):
            Stream(world.path, feed=True, **begins).batch()


@pytest.mark.parametrize("begins", [{"start": 3}, {"start_timestamp": 1 << 42}])
def test_a_feed_waits_for_what_is_yet_to_come_where_it_may_begin_there(world: World, begins: dict[str, Any]) -> None:
    record_changes(world.path)
    with pytest.raises((errors.VersionNotFound, errors.TimestampAfterLatestCommit)):
        Stream(world.path, feed=True, **begins).batch()
    stream = Stream(world.path, feed=True, beyond=True, **begins)
    assert stream.batch() == []
    newest = open_log(world.path).snapshot().version
    for number in range(newest + 1, 4):
        world.append({"id": number, "g": 0})
    assert {row[COMMIT_VERSION] for row in stream.batch()} == ({3} if "start" in begins else set(range(newest + 1, 4)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_whatever_was_done_the_batches_of_a_feed_lead_to_the_newest_version(world: World, seed: int) -> None:
    dice = random.Random(seed)
    record_changes(world.path)
    stream = Stream(world.path, feed=True)
    rows: list[dict[str, Any]] = []
    for _ in range(15):
        some = ", ".join(str(dice.randrange(10)) for _ in range(3))
        match dice.choice(["append", "delete", "update", "restore", "optimize", "read", "restart", "again"]):
            case "append":
                world.append(*({"id": dice.randrange(10), "g": dice.randrange(2)} for _ in range(3)))
            case "delete":
                world.delete(f"id IN ({some})")
            case "update":
                world.update(f"id IN ({some})", g=dice.randrange(2))
            case "restore":
                if world.version:
                    world.restore(dice.randrange(world.version))
            case "optimize":
                world.optimize()
            case "read":
                rows += stream.batch(dice.choice([ALL, Limits(1, None)]))
            case "restart":
                stream.start()
            case "again":
                if stream.ends:
                    assert Counter(map(plain, stream.again())) == Counter(map(plain, stream.again()))
                    stream.start()
    while found := stream.batch(Limits(2, None)):
        rows += found
    assert applied([], rows) == Counter(map(plain, world.rows()))


# -- a table that is divided by other columns than before --------------------------------------------------------------

DIVIDED = [{"id": 0, "p": "a", "q": "x"}, {"id": 1, "p": "b", "q": None}, {"id": 2, "p": None, "q": "z"}]


@pytest.fixture
def divided(tmp_path: Path) -> World:
    """Three rows in two versions, divided by ``p``."""
    rows = [
        pa.Table.from_pylist(each, pa.schema([("id", pa.int64()), ("p", "string"), ("q", "string")]))
        for each in (DIVIDED[:1], DIVIDED[1:])
    ]
    world = World(table_path(tmp_path))
    for each in rows:
        Append(world.path, each, ("p",), {"delta.enableChangeDataFeed": "true"}).run()
    return world


def divide(world: World, *by: str) -> None:
    """Replace all by one row, divided by other columns."""
    rows = pa.Table.from_pylist([{"id": 9, "p": "y", "q": "y"}])
    Write(world.path, rows, "overwrite", schema_change="overwrite", partition_by=by or None).run(world.engine)


@pytest.mark.parametrize("by", [("q",), ("p", "q"), ("q", "p"), ()], ids="/".join)
@pytest.mark.parametrize("start", [0, 1])
def test_rows_from_before_the_table_was_divided_by_other_columns_lose_no_value(
    divided: World, start: int, by: tuple[str, ...]
) -> None:
    divide(divided, *by)
    stream = Stream(divided.path, start=start, tolerance=Tolerance(changes=True))
    found = sorted(stream.batch(), key=lambda row: row["id"])
    assert found == [*DIVIDED[start:], {"id": 9, "p": "y", "q": "y"}]


def test_rows_from_before_the_noted_partitioning_lose_no_value(divided: World, tmp_path: Path) -> None:
    """Of a second stream with a log of schemas, which has come less far."""
    divide(divided, "q")
    how: dict[str, Any] = {"schemas": str(tmp_path / "schemas"), "tolerance": Tolerance(changes=True)}
    Stream(divided.path, **how).batch()
    found = Stream(divided.path, start=1, **how).batch()
    assert sorted(found, key=lambda row: row["id"])[:2] == DIVIDED[1:]


def test_a_long_commit_from_before_the_table_was_divided_by_other_columns_loses_no_value(
    divided: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    divide(divided, "q")
    monkeypatch.setattr(commit_files, "LONG_BYTES", 0)
    forget()
    stream = Stream(divided.path, start=1, tolerance=Tolerance(changes=True))
    assert sorted(stream.batch(), key=lambda row: row["id"])[:2] == DIVIDED[1:]


@pytest.mark.parametrize("start", [0, 1])
def test_a_feed_from_before_the_table_was_divided_by_other_columns_is_refused(divided: World, start: int) -> None:
    divide(divided, "q")
    with pytest.raises(errors.StreamSchemaIncompatible, match="partitioned by other columns"):
        Stream(divided.path, start=start, feed=True).batch()
