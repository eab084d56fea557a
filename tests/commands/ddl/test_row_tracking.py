"""Row tracking: a new table, one that is there, one that a writer changes meanwhile, and what a check finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from anabranch import errors
from anabranch._log.log import forget
from anabranch._protocol.features.row_tracking import COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, tracking_columns
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties, UnsetProperties
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport
from anabranch.commands.ddl.create import Replace
from anabranch.commands.ddl.row_tracking import backfill, without_ids
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.check import check
from anabranch.testing import Row, at_phase
from tests.support.raw_logs import put_commit
from tests.support.row_ids import TrackedReader, wrong_ids
from tests.support.worlds import World, table_path

ON = {"delta.enableRowTracking": "true"}
COLUMNS = ("id", "x")
ROWS: list[Row] = [{"id": i, "x": i} for i in range(4)]


@pytest.fixture(params=["true", "false"], ids=["vectors", "files"])
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A table of two files without row tracking."""
    world = World(table_path(tmp_path)).create(ROWS[:2], delta_enableDeletionVectors=str(request.param))
    world.append(*ROWS[2:])
    return world


@pytest.fixture
def world(plain: World) -> World:
    """The same with row tracking from its first version on."""
    made = World(plain.path + "-tracked")
    made.create(ROWS[:2], delta_enableRowTracking="true", delta_enableDeletionVectors=vectors(plain))
    made.append(*ROWS[2:])
    return made


def vectors(world: World) -> str:
    return str(world.log.snapshot().properties.vectors).lower()


def ids(world: World, version: int | None = None) -> dict[int, tuple[int, int]]:
    """By the column ``id``: row id and commit version, read by other eyes."""
    reader = TrackedReader(world.log.store, columns=COLUMNS)
    rows = reader.versions()[world.version if version is None else version].rows
    return {each.row[0]: (each.id, each.version) for each in rows}  # type: ignore[attr-defined]


def assert_whole(world: World) -> None:
    assert wrong_ids(world.log.store, COLUMNS) == []
    world.assert_clean()


def operations(world: World) -> list[str]:
    return [str(world.info(version)["operation"]) for version in range(world.version + 1)]


# -- a table of its own ------------------------------------------------------------------------------------------------


def test_a_new_table_lists_the_feature_and_names_the_hidden_columns(world: World) -> None:
    snapshot = world.log.snapshot()
    assert snapshot.protocol.writer_features >= {"rowTracking", "domainMetadata"}  # type: ignore[operator]
    assert "rowTracking" not in (snapshot.protocol.reader_features or ())
    known = snapshot.metadata.configuration
    assert known[ROW_ID_COLUMN].startswith("_row-id-col-")
    assert known[COMMIT_VERSION_COLUMN].startswith("_row-commit-version-col-")
    assert json.loads(snapshot.state.domains["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 3}
    assert ids(world) == {0: (0, 0), 1: (1, 0), 2: (2, 1), 3: (3, 1)}


@pytest.mark.slow
def test_every_verb_keeps_the_ids_of_the_rows_that_it_keeps(world: World) -> None:
    world.update("id IN (0, 2)", x=20)
    assert ids(world) == {0: (0, 2), 1: (1, 0), 2: (2, 2), 3: (3, 1)}
    world.delete("id = 3")
    world.merge([{"id": 1, "x": 10}, {"id": 5, "x": 50}])
    found = ids(world)
    assert {k: found[k] for k in (0, 1, 2)} == {0: (0, 2), 1: (1, 4), 2: (2, 2)}
    assert (found[5][0] > 3, found[5][1]) == (True, 4)
    world.overwrite({"id": 1, "x": 11})
    assert ids(world)[1][0] > found[5][0]
    assert all(world.info(v)["tags"]["delta.rowTracking.preserved"] == "true" for v in range(world.version + 1))
    assert_whole(world)


@pytest.mark.slow
def test_ids_outlive_a_checkpoint(world: World) -> None:
    for value in range(12):
        world.update("id = 1", x=value)
    world.log.write_checkpoint(world.log.snapshot(), now_ms=0)
    before = ids(world)
    for version in range(world.version):
        world.log.store.delete(f"_delta_log/{version:020d}.json")
    forget(world.log.table)
    world.update("id = 2", x=-1)
    snapshot = world.log.snapshot()
    assert snapshot.files["baseRowId"].null_count == 0
    mark = json.loads(snapshot.state.domains["delta.rowTracking"].configuration)["rowIdHighWaterMark"]
    assert mark > max(id_ for id_, _ in before.values())
    assert check(snapshot).is_clean


# -- writers at once ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_writer_that_lost_takes_ids_above_the_winners(world: World) -> None:
    with at_phase("put", lambda: world.append({"id": 8, "x": 8}, {"id": 9, "x": 9})):
        world.append({"id": 7, "x": 7})
    assert {k: ids(world)[k] for k in (7, 8, 9)} == {8: (4, 2), 9: (5, 2), 7: (6, 3)}
    assert_whole(world)


@pytest.mark.slow
def test_an_append_to_a_tracked_table_is_still_blind(world: World) -> None:
    """At WriteSerializable a whole-table overwrite may stand before it, and keeps it."""
    with at_phase("put", lambda: world.append({"id": 8, "x": 8})):
        world.overwrite({"id": 7, "x": 7})
    assert [row["id"] for row in world.rows()] == [7, 8]
    assert_whole(world)


@pytest.mark.slow
def test_two_updates_of_one_file_keep_every_id(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableRowTracking="true")
    with at_phase("staged", lambda: world.update("id = 1", x=10)):
        world.update("id = 2", x=20)
    assert ids(world) == {0: (0, 0), 1: (1, 1), 2: (2, 2), 3: (3, 0)}
    assert_whole(world)


@pytest.mark.slow
@pytest.mark.parametrize("vectors_on", ["true", "false"])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_may_have_other_names_in_files(tmp_path: Path, mode: str, vectors_on: str) -> None:
    world = World(table_path(tmp_path))
    world.create(
        ROWS,
        delta_enableRowTracking="true",
        delta_enableDeletionVectors=vectors_on,
        **{"delta_columnMapping.mode": mode},
    )
    world.update("id = 1", x=10)
    world.merge([{"id": 1, "x": 11}, {"id": 7, "x": 7}])
    names = tuple(each.physical_name for each in world.log.snapshot().schema)
    assert names != COLUMNS
    reader = TrackedReader(world.log.store, columns=names)
    found = {row.row[0]: (row.id, row.version) for row in reader.versions()[-1].rows}  # type: ignore[attr-defined]
    assert {k: found[k] for k in range(4)} == {0: (0, 0), 1: (1, 2), 2: (2, 0), 3: (3, 0)}
    assert wrong_ids(world.log.store, names) == []
    assert check(world.log.snapshot(), deep=True).is_clean


# -- a table that is there ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_switching_it_on_gives_every_file_its_ids_first(plain: World) -> None:
    plain.update("id = 1", x=10)
    rows = plain.rows()
    SetProperties(plain.path, ON).run()
    assert operations(plain)[3:] == ["SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES"]
    assert plain.info(4)["operationParameters"] == {"batchId": "0"}
    assert plain.rows() == rows
    commit = plain.log.read(4)
    assert commit is not None
    assert not pc.any(commit.adds["dataChange"]).as_py()
    assert len(commit.removes) == 0
    found = ids(plain)
    assert len({id_ for id_, _ in found.values()}) == 4
    assert {version for _, version in found.values()} == {4}
    plain.update("id = 2", x=20)
    assert (ids(plain)[2], ids(plain)[0]) == ((found[2][0], 6), found[0])
    assert SetProperties(plain.path, ON).run() is None
    plain.assert_clean()


def test_a_table_of_old_protocol_versions_can_be_tracked(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    SetProperties(world.path, ON).run()
    protocol = world.log.snapshot().protocol
    assert (protocol.min_reader, protocol.min_writer, protocol.reader_features) == (1, 7, None)
    world.update("id = 1", x=10)
    assert ids(world) == {0: (0, 2), 1: (1, 4), 2: (2, 2), 3: (3, 2)}


def test_files_whose_rows_nobody_counted_are_counted(plain: World) -> None:
    (path, *_) = plain.log.snapshot().files["path"].to_pylist()
    row = plain.log.snapshot().files.to_pylist()[0]
    body = {"path": path, "partitionValues": {}, "size": row["size"], "modificationTime": 0, "dataChange": False}
    put_commit(plain.path, 2, {"add": body})
    SetProperties(plain.path, ON).run()
    assert len(ids(plain)) == 4
    assert check(plain.log.snapshot(), deep=True).is_clean


def test_a_writer_in_between_is_no_reason_to_give_up(plain: World) -> None:
    with at_phase("staged", lambda: plain.append({"id": 9, "x": 9})):
        SetProperties(plain.path, ON).run()
    assert tracking_columns(plain.log.snapshot().protocol, plain.log.snapshot().metadata) is not None
    assert len(ids(plain)) == 5
    plain.assert_clean()


def test_a_change_of_metadata_in_between_is_a_conflict(plain: World) -> None:
    with (
        at_phase("staged", lambda: SetProperties(plain.path, {"team": "harbour"}).run()),
        pytest.raises(errors.MetadataChangedException),
    ):
        SetProperties(plain.path, ON).run()


MEANWHILE: dict[str, Callable[[World], Any]] = {
    "a file goes": lambda world: world.delete("id < 2"),
    "rows are marked": lambda world: world.update("id = 1", x=10),
    "rows come": lambda world: world.append({"id": 9, "x": 9}),
    "everything goes": lambda world: world.overwrite({"id": 7, "x": 7}),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_a_backfill_names_only_what_is_there_as_it_is_there(plain: World, meanwhile: str) -> None:
    AddFeatureSupport(plain.path, "rowTracking").run()
    snapshot, log = plain.log.snapshot(), plain.log
    with at_phase("put", lambda: MEANWHILE[meanwhile](plain)):
        backfill(snapshot, without_ids(snapshot), 0, log)
    rows = plain.rows()
    assert len(without_ids(plain.log.snapshot())) == 0
    assert len({id_ for id_, _ in ids(plain).values()}) == len(rows)
    plain.assert_clean()


@pytest.mark.slow
def test_a_change_goes_on_behind_a_backfill(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    AddFeatureSupport(world.path, "rowTracking").run()
    snapshot = world.log.snapshot()

    def fill() -> None:
        backfill(snapshot, without_ids(snapshot), 0, world.log)

    with at_phase("staged", fill):
        world.update("id = 1", x=10)
    (first, second) = sorted(world.log.snapshot().files.to_pylist(), key=lambda file: file["baseRowId"])
    assert [(file["baseRowId"], file["defaultRowCommitVersion"]) for file in (first, second)] == [(0, 2), (4, 3)]
    removed = world.log.read(3).removes.to_pylist()  # type: ignore[union-attr]
    assert [file["baseRowId"] for file in removed] == [0]
    world.assert_clean()


def test_where_it_is_only_supported_new_files_get_ids_and_rows_keep_none(plain: World) -> None:
    AddFeatureSupport(plain.path, "rowTracking").run()
    plain.append({"id": 9, "x": 9})
    plain.update("id = 9", x=10)
    files = plain.log.snapshot().files.to_pylist()
    assert [file["baseRowId"] for file in files if file["defaultRowCommitVersion"] == 4]
    tags = [plain.info(version)["tags"]["delta.rowTracking.preserved"] for version in (3, 4)]
    assert tags == ["true", "false"]
    plain.assert_clean()


def test_a_re_marked_file_without_ids_gets_some(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    AddFeatureSupport(world.path, "rowTracking").run()
    world.delete("id = 1")
    (file,) = world.log.snapshot().files.to_pylist()
    assert (file["baseRowId"], file["defaultRowCommitVersion"]) == (0, 2)
    assert world.log.read(2).removes.to_pylist()[0]["baseRowId"] is None  # type: ignore[union-attr]
    world.delete("id = 2")
    assert world.log.snapshot().files.to_pylist()[0]["baseRowId"] == 0


# -- off, on and in between --------------------------------------------------------------------------------------------


def test_a_table_keeps_the_names_of_its_hidden_columns(world: World) -> None:
    before = tracking_columns(world.log.snapshot().protocol, world.log.snapshot().metadata)
    SetProperties(world.path, {"delta.enableRowTracking": "false"}).run()
    assert tracking_columns(world.log.snapshot().protocol, world.log.snapshot().metadata) is None
    world.update("id = 1", x=10)
    assert world.info()["tags"]["delta.rowTracking.preserved"] == "false"
    SetProperties(world.path, ON).run()
    snapshot = world.log.snapshot()
    assert tracking_columns(snapshot.protocol, snapshot.metadata) == before
    assert len({id_ for id_, _ in ids(world).values()}) == 4
    for key in (ROW_ID_COLUMN, COMMIT_VERSION_COLUMN):
        with pytest.raises(errors.InvalidProperty, match="keeps it"):
            UnsetProperties(world.path, [key]).run()
        with pytest.raises(errors.InvalidProperty):
            SetProperties(world.path, {key: "x"}).run()


def test_a_table_that_replaces_another_goes_on_counting(world: World) -> None:
    before = tracking_columns(world.log.snapshot().protocol, world.log.snapshot().metadata)
    Replace(world.path, NewTable(Struct((Field("id", "long"), Field("x", "long"))), (), ON)).run()
    world.append({"id": 1, "x": 1})
    snapshot = world.log.snapshot()
    assert tracking_columns(snapshot.protocol, snapshot.metadata) == before
    assert ids(world) == {1: (4, 3)}


@pytest.mark.slow
def test_while_it_is_suspended_nothing_is_numbered(plain: World) -> None:
    AddFeatureSupport(plain.path, "rowTracking").run()
    SetProperties(plain.path, {"delta.rowTrackingSuspended": "true"}).run()
    plain.append({"id": 9, "x": 9})
    snapshot = plain.log.snapshot()
    assert snapshot.files["baseRowId"].null_count == len(snapshot.files)
    assert "delta.rowTracking" not in snapshot.state.domains
    before = plain.version
    with pytest.raises(errors.InvalidProperty, match="Suspended"):
        SetProperties(plain.path, ON).run()
    with pytest.raises(errors.InvalidProperty, match="suspended"):
        SetProperties(plain.path, {**ON, "delta.rowTrackingSuspended": "false"}).run()  # files have no ids yet
    assert plain.version == before
    UnsetProperties(plain.path, ["delta.rowTrackingSuspended"]).run()
    SetProperties(plain.path, ON).run()
    with pytest.raises(errors.InvalidProperty, match="Suspended"):
        SetProperties(plain.path, {"delta.rowTrackingSuspended": "true"}).run()
    plain.assert_clean()


def test_no_column_takes_the_name_of_a_hidden_one(world: World) -> None:
    name = world.log.snapshot().metadata.configuration[ROW_ID_COLUMN]
    with pytest.raises(errors.InvalidOption, match="row tracking uses this name"):
        AddColumns(world.path, (NewColumn(Field(name.upper(), "long")),)).run()


def test_a_property_that_the_protocol_does_not_allow_binds_every_writer(plain: World) -> None:
    metadata = plain.log.snapshot().metadata.to_json()
    metadata["configuration"] = {**metadata["configuration"], **ON}
    put_commit(plain.path, 2, {"metaData": metadata})
    with pytest.raises(errors.UnsupportedFeature, match="rowTracking"):
        plain.append({"id": 9, "x": 9})
    assert len(plain.rows()) == 4


@pytest.mark.parametrize("configuration", ["", "[]", "{}", '{"rowIdHighWaterMark":"7"}', '{"rowIdHighWaterMark":1e30}'])
def test_a_mark_that_cannot_be_read_stops_every_writer(world: World, configuration: str) -> None:
    put_commit(world.path, 2, {"domainMetadata": {"domain": "delta.rowTracking", "configuration": configuration}})
    with pytest.raises(errors.CorruptLog, match="rowTracking"):
        world.append({"id": 9, "x": 9})
    assert world.version == 2


def test_when_the_numbers_are_used_up_nothing_is_written(world: World) -> None:
    last = json.dumps({"rowIdHighWaterMark": (1 << 63) - 2})
    put_commit(world.path, 2, {"domainMetadata": {"domain": "delta.rowTracking", "configuration": last}})
    with pytest.raises(errors.CorruptLog, match="not enough row ids are left"):
        world.append({"id": 8, "x": 8}, {"id": 9, "x": 9})
    assert world.version == 2


# -- what a check finds ------------------------------------------------------------------------------------------------


def broken(world: World, **change: Any) -> set[str]:
    """The rules that a check finds broken once the newest file's ``add`` says something else."""
    row = world.log.snapshot().files.to_pylist()[-1]
    body = {"path": row["path"], "partitionValues": {}, "size": row["size"], "modificationTime": 0, "dataChange": False}
    body |= {"stats": row["stats"], "baseRowId": row["baseRowId"], "defaultRowCommitVersion": 1}
    put_commit(world.path, 2, {"add": {key: value for key, value in {**body, **change}.items() if value is not None}})
    forget(world.log.table)
    return {finding.rule for finding in check(world.log.snapshot()).findings}


def test_a_check_finds_what_is_wrong_with_ids(world: World) -> None:
    assert check(world.log.snapshot(), deep=True).is_clean
    assert broken(world, baseRowId=None) == {"each file has its row ids"}


def test_a_check_finds_ranges_that_overlap(world: World) -> None:
    assert broken(world, baseRowId=1) == {"no two rows share an id"}


def test_a_check_finds_ids_above_the_mark(world: World) -> None:
    assert broken(world, baseRowId=3) == {"the mark of row ids is the highest"}


def test_a_deep_check_finds_two_rows_of_one_id(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableRowTracking="true")
    world.update("id = 1", x=10)  # the new image keeps the id 1, which the old row has too, but for its vector
    old = next(file for file in world.log.snapshot().files.to_pylist() if file["deletionVector"] is not None)
    kept = ("path", "size", "modificationTime", "stats", "baseRowId", "defaultRowCommitVersion")
    body = {**{key: old[key] for key in kept}, "partitionValues": {}, "dataChange": True}
    vector = {key: value for key, value in old["deletionVector"].items() if value is not None}
    gone = {"path": old["path"], "dataChange": True, "deletionTimestamp": 0, "deletionVector": vector}
    put_commit(world.path, 2, {"remove": gone}, {"add": body})
    forget(world.log.table)
    assert check(world.log.snapshot()).is_clean
    assert {found.rule for found in check(world.log.snapshot(), deep=True).findings} == {"no two rows share an id"}
