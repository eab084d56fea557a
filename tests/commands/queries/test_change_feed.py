"""Reading changes: what a feed says of real tables, between which versions, and when it is refused."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.log import forget
from anabranch._protocol.change_feed import COMMIT_VERSION, ENABLED
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.queries.change_feed import ReadChanges
from tests.support.feeds import applied, plain, record_changes, rows_of
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit, remove
from tests.support.worlds import World, table_path

ON = {ENABLED.replace(".", "_"): "true"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Six rows in two partitions, at version 0."""
    return World(table_path(tmp_path)).create([{"id": i, "g": i % 2} for i in range(6)], partition_by=("g",))


def ids(world: World, start: int, end: int | None = None) -> list[tuple[int, str, int]]:
    found = rows_of(ReadChanges(world.path, start, end).run())
    return sorted((row[COMMIT_VERSION], row["_change_type"], row["id"]) for row in found)


# -- what it says ------------------------------------------------------------------------------------------------------


def test_both_ends_are_included_and_the_end_may_lie_behind_the_newest_version(world: World) -> None:
    world.append({"id": 6, "g": 0})
    world.delete("id IN (1, 3)")
    world.append({"id": 7, "g": 1})
    record_changes(world.path)
    assert ids(world, 1, 2) == [(1, "insert", 6), (2, "delete", 1), (2, "delete", 3)]
    assert ids(world, 3) == ids(world, 3, 99) == [(3, "insert", 7)]
    feed = ReadChanges(world.path, "2", "2").run()
    assert [(each.version, each.timestamp) for each in feed.versions] == [(2, world.log.snapshot(2).timestamp)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whatever_was_done_its_changes_lead_from_each_version_to_the_next(world: World, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(12):
        some = ", ".join(str(dice.randrange(10)) for _ in range(3))
        verb = dice.choice(["append", "delete", "update", "merge", "restore", "optimize", "reorg", "overwrite"])
        match verb:
            case "append":
                world.append(*({"id": dice.randrange(10), "g": dice.randrange(2)} for _ in range(3)))
            case "delete":
                world.delete(f"id IN ({some})")
            case "update":
                world.update(f"id IN ({some})", id=dice.randrange(10), g=dice.randrange(2))
            case "merge":
                world.merge([{"id": each, "g": 1} for each in {dice.randrange(12), dice.randrange(12)}])
            case "restore" if world.version:
                world.restore(dice.randrange(world.version))
            case "optimize":
                world.optimize("id")
            case "reorg":
                world.reorg()
            case _ if dice.random() < 0.3:
                world.overwrite({"id": 1, "g": 0}, {"id": 1, "g": 0})
    record_changes(world.path)
    found = rows_of(ReadChanges(world.path, 0).run())
    assert found
    for version in range(world.version + 1):
        before = world.rows(version - 1) if version else []
        changes = [row for row in found if row[COMMIT_VERSION] == version]
        assert applied(before, changes) == Counter(map(plain, world.rows(version)))


def test_partition_values_that_a_remove_leaves_out_are_those_of_the_file(world: World) -> None:
    world.delete("g = 1")
    record_changes(world.path)
    commit = Path(world.path, commit_name(1))
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        for name in ("partitionValues", "extendedFileMetadata", "size"):
            action.get("remove", {}).pop(name, None)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    forget()
    found = rows_of(ReadChanges(world.path, 1).run())
    assert sorted((row["id"], row["g"], row["_change_type"]) for row in found) == [(i, 1, "delete") for i in (1, 3, 5)]


# -- when it begins and ends -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A version each at 1000, 2000 and 3000 milliseconds, with no rows to read."""
    table = tmp_path_factory.mktemp("timed")
    for version in range(3):
        heads = [PROTOCOL, metadata(**ON)] if version == 0 else []
        file = put_commit(table, version, info(), *heads, add(f"f{version}"))
        os.utime(file, ns=((version + 1) * 10**9,) * 2)
    return str(table)


def at(milliseconds: int) -> str:
    return f"1970-01-01 00:00:0{milliseconds / 1000}"


def versions(timed: str, start: int, end: int | None = None, beyond: bool = False) -> list[int]:
    ends = {} if end is None else {"end_timestamp": at(end)}
    feed = ReadChanges(timed, start_timestamp=at(start), beyond=beyond, **ends).run()
    return [each.version for each in feed.versions]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (500, None, [0, 1, 2]),
        (1000, 3000, [0, 1, 2]),
        (1001, 2999, [1]),
        (2000, 2000, [1]),
        (2001, 2999, []),
        (3000, None, [2]),
    ],
)
def test_timestamps_mean_the_versions_between_them(
    timed: str, start: int, end: int | None, expected: list[int]
) -> None:
    assert versions(timed, start, end) == expected


def test_timestamps_behind_the_newest_version_are_refused_unless_the_session_takes_them(timed: str) -> None:
    for start, end in ((3001, None), (1000, 3001)):
        with pytest.raises(errors.TimestampAfterLatestCommit):
            versions(timed, start, end)
    assert versions(timed, 3001, beyond=True) == []
    assert versions(timed, 2001, 9999, beyond=True) == [2]
    assert ReadChanges(timed, 7, beyond=True).run().versions == ()


def test_a_range_that_is_none_is_refused(timed: str) -> None:
    with pytest.raises(errors.NoChangeStart) as none:
        ReadChanges(timed, end=1).run()
    assert none.value.getCondition() == "DELTA_NO_START_FOR_CDC_READ"
    with pytest.raises(errors.InvalidChangeRange) as backwards:
        ReadChanges(timed, 2, 1).run()
    assert (backwards.value.facts["start"], backwards.value.facts["end"]) == (2, 1)
    with pytest.raises(errors.InvalidChangeRange):
        versions(timed, 3000, 1000)
    with pytest.raises(errors.VersionNotFound) as later:
        ReadChanges(timed, 3).run()
    assert later.value.facts["latest"] == 2
    with pytest.raises(errors.TimestampBeforeEarliestCommit):
        ReadChanges(timed, 0, end_timestamp=at(1)).run()
    for given in ({"start": "latest"}, {"start": -1}, {"start": 0, "start_timestamp": at(1)}, {"start": 0, "end": "x"}):
        with pytest.raises(errors.InvalidOption):
            ReadChanges(timed, **given).run()


# -- when it is refused ------------------------------------------------------------------------------------------------


def test_every_version_of_the_range_has_to_have_recorded_its_changes(tmp_path: Path) -> None:
    flags = [None, "true", None, "false", "true"]
    for version, flag in enumerate(flags):
        heads = [PROTOCOL] if version == 0 else []
        said = {} if flag is None else {"delta_enableChangeDataFeed": flag}
        heads += [metadata(**said)] if said or version == 0 else []
        put_commit(tmp_path, version, info(), *heads, add(f"f{version}"))
    assert [each.version for each in ReadChanges(str(tmp_path), 1, 2).run().versions] == [1, 2]
    assert [each.version for each in ReadChanges(str(tmp_path), 4).run().versions] == [4]
    for start, end, missing in ((0, 1, 0), (1, 4, 3), (3, 4, 3)):
        with pytest.raises(errors.ChangeDataNotRecorded) as error:
            ReadChanges(str(tmp_path), start, end).run()
        assert error.value.facts["version"] == missing
        assert error.value.getCondition() == "DELTA_MISSING_CHANGE_DATA"


def test_a_table_with_a_column_of_the_feeds_is_refused(tmp_path: Path) -> None:
    World(str(tmp_path / "t")).create([{"id": 1, "_Commit_Version": 2}])
    record_changes(str(tmp_path / "t"))
    with pytest.raises(errors.InvalidOption, match="_commit_version"):
        ReadChanges(str(tmp_path / "t"), 0).run()


def test_columns_may_come_but_not_go_within_the_range(tmp_path: Path) -> None:
    one, two = Field("id", "long"), Field("x", "long")
    shapes = [Struct((one,)), Struct((one, two)), Struct((two,)), Struct((two,))]
    for version, shape in enumerate(shapes):
        heads = [PROTOCOL] if version == 0 else []
        put_commit(tmp_path, version, info(), *heads, metadata(shape, **ON), add(f"f{version}"))
    with pytest.raises(errors.ChangeSchemaChanged) as error:
        ReadChanges(str(tmp_path), 0, 1).run()
    assert type(error.value) is errors.ChangeSchemaChanged
    assert (error.value.facts["version"], error.value.facts["read_version"]) == (1, 3)
    with pytest.raises(errors.ChangeSchemaDiffers) as differs:
        ReadChanges(str(tmp_path), 1, 1).run()
    assert differs.value.facts["reason"] == "id was dropped or renamed"
    assert [each.version for each in ReadChanges(str(tmp_path), 2).run().versions] == [2, 3]


def test_other_partition_columns_are_refused(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, info(), PROTOCOL, metadata(**ON), add("f0"))
    put_commit(tmp_path, 1, info(), metadata(partition_by=("x",), **ON), remove("f0"))
    with pytest.raises(errors.ChangeSchemaDiffers, match="partitioned by other columns"):
        ReadChanges(str(tmp_path), 0).run()


def test_versions_that_were_cleaned_up_are_no_start(world: World) -> None:
    for i in range(3):
        world.append({"id": 10 + i, "g": 0})
    record_changes(world.path)
    world.log.write_checkpoint(world.log.snapshot(2), now_ms=0)
    for version in (0, 1, 2):
        Path(world.path, commit_name(version)).unlink()
    forget()
    assert ids(world, 3) == [(3, "insert", 12)]
    for version in (1, 2):
        with pytest.raises(errors.VersionNotFound):
            ReadChanges(world.path, version).run()


def test_a_vector_that_a_vacuum_removed_is_missed_by_the_version_that_needs_it(world: World) -> None:
    world.delete("id = 1")
    world.delete("id = 3")
    record_changes(world.path)
    vector = min(Path(world.path).rglob("deletion_vector_*.bin"), key=lambda file: file.stat().st_mtime_ns)
    vector.unlink()
    forget()
    with pytest.raises(errors.ChangeFilesMissing) as error:
        ReadChanges(world.path, 0).run()
    assert error.value.facts["version"] == 1
    assert vector.name in error.value.facts["file"]
    assert error.value.getCondition() == "DELTA_CHANGE_DATA_FILE_NOT_FOUND"


def test_damaged_change_data_is_refused_by_the_commits_name(world: World) -> None:
    world.append({"id": 6, "g": 0})
    record_changes(world.path)
    commit = Path(world.path, commit_name(1))
    commit.write_text(commit.read_text() + '{"cdc":{"partitionValues":{}}}\n')
    forget()
    with pytest.raises(errors.CorruptLog, match=commit_name(1)):
        ReadChanges(world.path, 0).run()


# -- recording ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_table_of_ours_records_what_is_added_and_deleted(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": i, "g": 0} for i in range(4)], **ON)
    world.delete("id = 1")
    world.append({"id": 9, "g": 1})
    world.delete("g = 0")
    world.restore(0)
    assert ids(world, 1, 3) == [(1, "delete", 1), (2, "insert", 9), *((3, "delete", i) for i in (0, 2, 3))]
    assert ids(world, 4) == [(4, "delete", 9), *((4, "insert", i) for i in range(4))]
    world.assert_clean()
