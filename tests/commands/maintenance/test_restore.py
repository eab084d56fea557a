"""RESTORE: the table is again what it was, and what must not go back does not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import errors
from anabranch._protocol.features.row_tracking import COMMIT_VERSION_COLUMN, DOMAIN, ROW_ID_COLUMN, highest, mark_of
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.rules.identity import identity_metadata, marks_of
from anabranch._protocol.schema.column_mapping import MAX_ID
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.clustering import ClusterBy
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.ddl.rename_and_drop_columns import DropColumns, RenameColumn
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.restore import METRICS, Restore, RestoreResult
from anabranch.testing import at_phase
from tests.support.patience import a_tick
from tests.support.worlds import World, assert_others_agree, table_path

HIDDEN = (ROW_ID_COLUMN, COMMIT_VERSION_COLUMN)
ROWS = [{"id": i, "x": i * 10} for i in range(6)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(table_path(tmp_path))
    yield made
    made.assert_clean()


@pytest.fixture
def with_losses(tmp_path: Path) -> Iterator[World]:
    """A table of which an old version is not whole, as the test made it: only the newest one is looked at."""
    made = World(table_path(tmp_path))
    yield made
    report = made.log.snapshot()
    assert anabranch.check(made.path, report.version, deep=True).is_clean
    assert_others_agree(made.path)


def restore(world: World, version: int, **more: Any) -> RestoreResult:
    return Restore(world.path, version, **more).run()


def data_file(world: World, version: int = 0, place: int = 0) -> Path:
    return Path(world.path, world.log.snapshot(version).files["path"][place].as_py())


@pytest.mark.slow
def test_rows_that_were_deleted_updated_and_added_are_as_they_were(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    world.update("id = 2", x=0)
    world.append({"id": 9, "x": 9})
    done = restore(world, 0)
    assert world.rows() == ROWS
    assert (done.version, done.committed and done.committed.version) == (0, 4)


@pytest.mark.slow
def test_an_old_vector_of_a_file_comes_back_as_a_remove_and_an_add_of_one_path(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    world.delete("id = 2")
    restore(world, 1)
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 4, 5]
    assert (
        world.log.snapshot().files["deletionVector"].to_pylist()
        == world.log.snapshot(1).files["deletionVector"].to_pylist()
    )
    commit = world.log.read(3)
    assert commit is not None
    assert commit.adds["path"].to_pylist() == commit.removes["path"].to_pylist()
    assert commit.adds["dataChange"].to_pylist() == [True]


@pytest.mark.slow
def test_a_restore_can_be_undone_by_a_restore(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    world.update("id = 2", x=0)
    before = world.rows()
    restore(world, 0)
    restore(world, 2)
    assert world.rows() == before


def test_the_history_says_what_was_done_in_deltas_words(world: World) -> None:
    world.create(ROWS).append({"id": 9, "x": 9})
    size = world.log.snapshot(0).files["size"][0].as_py()
    taken = world.log.snapshot(1).files["size"].to_pylist()
    done = restore(world, 0)
    info = world.info()
    assert (info["operation"], info["operationParameters"]) == ("RESTORE", {"version": 0, "timestamp": None})
    assert info["isBlindAppend"] is False
    assert info["operationMetrics"] == {
        "tableSizeAfterRestore": str(size),
        "numOfFilesAfterRestore": "1",
        "numRemovedFiles": "1",
        "numRestoredFiles": "0",
        "removedFilesSize": str(sum(taken) - size),
        "restoredFilesSize": "0",
    }
    assert list(done.row) == list(METRICS)
    assert done.row["num_removed_files"] == 1


def test_a_moment_stands_for_the_version_that_was_the_newest_then(world: World) -> None:
    world.create(ROWS)
    os.utime(Path(world.path, "_delta_log/00000000000000000000.json"), (1_700_000_000, 1_700_000_000))
    world.delete("id = 1")
    done = Restore(world.path, timestamp="2023-11-20").run()
    assert (done.version, len(world.rows())) == (0, 6)
    assert world.info()["operationParameters"] == {"version": None, "timestamp": "2023-11-20"}


def test_a_table_that_looks_like_the_version_already_gets_no_commit(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    restore(world, 0)
    done = restore(world, 0)
    assert (done.committed, world.version) == (None, 2)
    assert done.metrics["numOfFilesAfterRestore"] == 1


# -- what goes back with the rows --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_columns_constraints_and_properties_go_back(world: World) -> None:
    world.create(ROWS, team="harbour")
    AddColumns(world.path, [NewColumn(Field("gate", "string"))]).run()
    SetProperties(world.path, {"team": "river", "delta.checkpointInterval": "7"}).run()
    AddConstraint(world.path, "small", world.condition("id < 100")).run(world.engine)
    world.delete("id = 1")
    restore(world, 0)
    metadata = world.log.snapshot().metadata
    assert metadata == world.log.snapshot(0).metadata
    assert world.rows() == ROWS
    world.append({"id": 1000, "x": 0})


@pytest.mark.slow
def test_partitioning_goes_back(world: World) -> None:
    world.create(ROWS, partition_by=("x",))
    Replace(world.path, NewTable(Struct((Field("id", "long"),)))).run()
    world.append({"id": 9})
    restore(world, 0)
    assert world.log.snapshot().partition_columns == ("x",)
    assert world.rows() == ROWS


def test_names_of_columns_go_back_and_no_number_of_a_column_is_given_again(world: World) -> None:
    world.create(ROWS, **{"delta_columnMapping.mode": "name"})
    RenameColumn(world.path, ("x",), "y").run()
    AddColumns(world.path, [NewColumn(Field("z", "long"))]).run()
    highest_before = int(world.log.snapshot().metadata.configuration[MAX_ID])
    restore(world, 0)
    assert world.rows() == ROWS
    assert int(world.log.snapshot().metadata.configuration[MAX_ID]) == highest_before
    AddColumns(world.path, [NewColumn(Field("w", "long"))]).run()
    ids = [each.metadata["delta.columnMapping.id"] for each in world.log.snapshot().schema]
    assert max(ids) == highest_before + 1


def test_a_dropped_column_comes_back_with_its_values(world: World) -> None:
    world.create(ROWS, **{"delta_columnMapping.mode": "name"})
    DropColumns(world.path, (("x",),)).run()
    restore(world, 0)
    assert world.rows() == ROWS


def test_narrower_types_go_back(tmp_path: Path) -> None:
    world = World(table_path(tmp_path))  # delta-rs does not read such tables
    world.create([{"id": 1}], delta_enableTypeWidening="true")
    AddColumns(world.path, [NewColumn(Field("n", "integer"))]).run()
    ChangeColumn(world.path, ("n",), type="long").run()
    world.append({"id": 2, "n": 1 << 40})
    restore(world, 1)
    assert world.log.snapshot().schema.field("n").type == "integer"
    assert world.rows() == [{"id": 1, "n": None}]
    assert anabranch.check(world.path, deep=True).is_clean


def test_clustering_goes_back_and_so_does_its_absence(world: World) -> None:
    world.create(ROWS)
    ClusterBy(world.path, (("id",),)).run()
    restore(world, 0)
    assert world.log.snapshot().clustering_columns == ()
    restore(world, 1)
    assert world.log.snapshot().clustering_columns == (("id",),)


def test_the_protocol_is_never_lowered(world: World) -> None:
    world.create(ROWS, delta_enableDeletionVectors="false")
    SetProperties(world.path, {"delta.enableDeletionVectors": "true"}).run()
    world.delete("id = 1")
    restore(world, 0)
    assert "deletionVectors" in writer_features(world.log.snapshot().protocol)
    assert not world.log.snapshot().properties.vectors


@pytest.mark.slow
def test_a_feature_that_was_dropped_is_listed_again_where_old_files_need_it(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    DropFeature(world.path, "deletionVectors").run(world.engine)
    assert "deletionVectors" not in writer_features(world.log.snapshot().protocol)
    restore(world, 1)
    assert "deletionVectors" in writer_features(world.log.snapshot().protocol)
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_feature_that_only_old_files_need_is_listed_again(world: World) -> None:
    """Vectors were switched off when that version was made, and still there."""
    world.create(ROWS).delete("id = 1")
    SetProperties(world.path, {"delta.enableDeletionVectors": "false"}).run()
    DropFeature(world.path, "deletionVectors").run(world.engine)
    restore(world, 2)
    assert "deletionVectors" in writer_features(world.log.snapshot().protocol)
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 4, 5]


@pytest.mark.slow
def test_identity_values_that_were_given_are_not_given_again(world: World) -> None:
    number = Field("n", "long", metadata=identity_metadata(10, 5, explicit=False))
    Create(world.path, NewTable(Struct((Field("id", "long"), number)))).run()
    world.append({"id": 1})
    old = world.version
    world.append({"id": 2}, {"id": 3})
    SetProperties(world.path, {"team": "harbour"}).run()
    restore(world, old)
    assert marks_of(world.log.snapshot().schema) == {"n": 20}
    world.append({"id": 4})
    assert [row["n"] for row in world.rows()] == [10, 25]


@pytest.mark.slow
def test_where_only_identity_values_moved_the_metadata_is_not_written(world: World) -> None:
    number = Field("n", "long", metadata=identity_metadata(10, 5, explicit=False))
    Create(world.path, NewTable(Struct((Field("id", "long"), number)))).run()
    world.append({"id": 1})
    old = world.version
    world.append({"id": 2})
    restore(world, old)
    commit = world.log.read(world.version)
    assert commit is not None
    assert commit.head.metadata is None
    assert marks_of(world.log.snapshot().schema) == {"n": 15}


# -- row ids -----------------------------------------------------------------------------------------------------------


def mark(world: World, version: int | None = None) -> int:
    return mark_of(world.log.snapshot(version).state.domains[DOMAIN])


@pytest.mark.slow
def test_files_that_come_back_keep_their_row_ids_and_the_mark_stays(world: World) -> None:
    world.create(ROWS, delta_enableRowTracking="true")
    world.overwrite({"id": 7, "x": 7})
    restore(world, 0)
    then, now = (world.log.snapshot(v).files for v in (0, 2))
    assert now["baseRowId"].to_pylist() == then["baseRowId"].to_pylist()
    assert now["defaultRowCommitVersion"].to_pylist() == then["defaultRowCommitVersion"].to_pylist()
    assert mark(world) == mark(world, 1) == 6
    world.append({"id": 8, "x": 8})
    assert highest(world.log.snapshot().files) == mark(world) == 7


@pytest.mark.slow
def test_files_from_before_row_tracking_get_row_ids_when_they_come_back(world: World) -> None:
    world.create(ROWS).overwrite({"id": 7, "x": 7})
    SetProperties(world.path, {"delta.feature.rowTracking": "supported"}).run()
    world.append({"id": 8, "x": 8})
    before = mark(world)
    restore(world, 0)
    [base] = world.log.snapshot().files["baseRowId"].to_pylist()
    assert base == before + 1
    assert mark(world) == before + 6


@pytest.mark.slow
def test_a_live_file_whose_vector_goes_back_keeps_the_row_ids_that_it_got_since(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    SetProperties(world.path, {"delta.enableRowTracking": "true"}).run()
    [given] = world.log.snapshot().files["baseRowId"].to_pylist()
    restore(world, 0)
    assert world.log.snapshot().files["baseRowId"].to_pylist() == [given]


@pytest.mark.slow
def test_after_row_tracking_was_dropped_no_id_that_comes_back_is_given_again(world: World) -> None:
    world.create(ROWS, delta_enableRowTracking="true")
    DropFeature(world.path, "rowTracking").run(world.engine)
    restore(world, 0)
    world.append({"id": 8, "x": 8})
    first, second = sorted(world.log.snapshot().files["baseRowId"].to_pylist())
    assert first > 5
    assert second >= first + 6


@pytest.mark.slow
def test_files_that_come_back_after_row_tracking_was_dropped_have_ids_below_all_new_ones(world: World) -> None:
    world.create(ROWS, **{"delta_feature.rowTracking": "supported"})
    DropFeature(world.path, "rowTracking").run(world.engine)
    world.overwrite({"id": 7, "x": 7})
    SetProperties(world.path, {"delta.feature.rowTracking": "supported"}).run()
    restore(world, 0)
    world.append({"id": 8, "x": 8})
    assert sorted(world.log.snapshot().files["baseRowId"].to_pylist()) == [0, 6]
    assert mark(world) == 6


def given_anew(world: World, how: dict[str, str]) -> World:
    """Two files with row ids; then row tracking is dropped, the first file goes, and the other one gets ids anew."""
    world.create(ROWS, delta_enableRowTracking="true").append(*[{"id": i, "x": 0} for i in range(10, 16)])
    DropFeature(world.path, "rowTracking").run(world.engine)
    world.delete("id < 6")
    SetProperties(world.path, how).run()
    world.delete("id = 10")
    return world


def row_ids(world: World) -> list[int]:
    files = world.log.snapshot().files.to_pylist()
    return sorted(row["baseRowId"] + place for row in files for place in range(json.loads(row["stats"])["numRecords"]))


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"delta.enableRowTracking": "true"}, {"delta.feature.rowTracking": "supported"}])
def test_no_two_rows_have_one_id_where_row_tracking_was_dropped_and_began_anew(
    world: World, how: dict[str, str]
) -> None:
    given_anew(world, how)
    before = world.log.snapshot()
    restore(world, 1)
    now = world.log.snapshot()
    ids = row_ids(world)
    assert len(ids) == len(set(ids)) == 12
    assert max(ids) <= mark(world)
    kept = {row["path"]: row["baseRowId"] for row in before.files.to_pylist() if row["baseRowId"] is not None}
    assert kept.items() <= {row["path"]: row["baseRowId"] for row in now.files.to_pylist()}.items()


@pytest.mark.slow
def test_ids_that_files_hold_from_before_row_tracking_began_anew_are_read_no_more(world: World) -> None:
    given_anew(world, {"delta.enableRowTracking": "true"})
    before = world.log.snapshot().metadata.configuration
    restore(world, 1)
    now = world.log.snapshot().metadata.configuration
    assert {key: now[key] for key in HIDDEN} == {key: before[key] for key in HIDDEN}
    assert world.log.snapshot(1).metadata.configuration[HIDDEN[0]] != now[HIDDEN[0]]


@pytest.mark.slow
def test_hidden_columns_get_new_names_where_ids_were_given_anew_without_any(world: World) -> None:
    given_anew(world, {"delta.feature.rowTracking": "supported"})
    restore(world, 1)
    then, now = (world.log.snapshot(version).metadata.configuration for version in (1, None))
    assert all(now[key] != then[key] for key in HIDDEN)


def test_in_commit_timestamps_begin_again_where_they_were_switched_off(world: World) -> None:
    world.create(ROWS, delta_enableInCommitTimestamps="true")
    SetProperties(world.path, {"delta.enableInCommitTimestamps": "false"}).run()
    restore(world, 0)
    configuration = world.log.snapshot().metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert "inCommitTimestamp" in world.info()


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_a_missing_data_file_is_an_error_with_file_and_version_and_nothing_is_written(with_losses: World) -> None:
    with_losses.create(ROWS).overwrite({"id": 7, "x": 7})
    gone = data_file(with_losses)
    gone.unlink()
    with pytest.raises(errors.RestoreFilesMissing) as error:
        restore(with_losses, 0)
    assert (error.value.file, error.value.version, error.value.count) == (gone.name, 0, 1)
    assert with_losses.version == 1


@pytest.mark.slow
def test_a_missing_file_of_a_vector_is_an_error_too(with_losses: World) -> None:
    with_losses.create(ROWS).delete("id = 1")
    with_losses.delete("id = 2")
    [vector] = [name for name in os.listdir(with_losses.path) if name in _vector_name(with_losses, 1)]
    os.unlink(Path(with_losses.path, vector))
    with pytest.raises(errors.RestoreFilesMissing) as error:
        restore(with_losses, 1)
    assert error.value.file == vector
    assert with_losses.version == 2
    restore(with_losses, 0)  # that one needs no vector


def _vector_name(world: World, version: int) -> str:
    from anabranch._protocol.layout.deletion_vectors import Descriptor

    [row] = world.log.snapshot(version).files["deletionVector"].to_pylist()
    return Descriptor.from_row(row).name


def test_missing_files_are_done_without_where_that_is_asked_for(with_losses: World) -> None:
    with_losses.create(ROWS[:3], partition_by=("x",)).overwrite({"id": 7, "x": 7})
    first = data_file(with_losses)
    first.unlink()
    done = restore(with_losses, 0, ignore_missing=True)
    assert len(with_losses.rows()) == 2
    assert done.missing == (with_losses.log.snapshot(0).files["path"][0].as_py(),)
    assert done.metrics["numOfFilesAfterRestore"] == done.metrics["numRestoredFiles"] == 2


def test_a_file_that_a_store_has_missed_once_is_not_left_out(world: World, monkeypatch: Any) -> None:
    world.create(ROWS[:3], partition_by=("x",)).overwrite({"id": 7, "x": 7})
    missed = world.log.snapshot(0).files["path"].to_pylist()[:1]
    real = type(world.log.store).head

    def head(self: Any, name: str) -> Any:
        if name in missed:
            missed.remove(name)
            return None
        return real(self, name)

    monkeypatch.setattr(type(world.log.store), "head", head)
    with pytest.raises(errors.ConcurrentWriteException, match="there again"):
        restore(world, 0, ignore_missing=True)
    assert world.version == 1


def test_rows_whose_vector_is_lost_are_left_out_rather_than_brought_back_to_life(with_losses: World) -> None:
    with_losses.create(ROWS).delete("id = 1")
    with_losses.overwrite({"id": 7, "x": 7})
    os.unlink(Path(with_losses.path, _vector_name(with_losses, 1)))
    restore(with_losses, 1, ignore_missing=True)
    assert with_losses.rows() == []


def test_a_table_whose_newest_vector_is_lost_can_be_restored(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    lost = Path(world.path, _vector_name(world, 1))
    kept = lost.read_bytes()
    lost.unlink()
    restore(world, 0)
    assert world.rows() == ROWS
    lost.write_bytes(kept)  # for the check of the old version


def test_a_store_that_does_not_answer_never_makes_a_file_look_lost(world: World, monkeypatch: Any) -> None:
    world.create(ROWS).overwrite({"id": 7, "x": 7})
    store = type(world.log.store)
    real = store.head

    def refuse(self: Any, name: str) -> Any:
        if name.endswith(".parquet"):
            raise errors.StorePermissionDenied(name=name, root=self.url, reason="denied.")
        return real(self, name)

    monkeypatch.setattr(store, "head", refuse)
    for ignore in (True, False):
        with pytest.raises(errors.StorePermissionDenied):
            restore(world, 0, ignore_missing=ignore)
    monkeypatch.undo()
    assert world.version == 1


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_bad_versions_and_moments_are_refused_by_name(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    refused = [
        (Restore(world.path), errors.InvalidOption),
        (Restore(world.path, 0, "2024-01-31"), errors.AmbiguousTimeTravel),
        (Restore(world.path, 7), errors.VersionNotFound),
        (Restore(world.path, -1), errors.InvalidOption),
        (Restore(world.path, True), errors.InvalidOption),
        (Restore(world.path, timestamp="1999-01-01"), errors.TimestampBeforeEarliestCommit),
        (Restore(world.path, timestamp="2999-01-01"), errors.TimestampAfterLatestCommit),
        (Restore(world.path, timestamp="soon"), errors.InvalidTimestamp),
    ]
    for command, kind in refused:
        with pytest.raises(kind):
            command.run()
    assert world.version == 1


def test_a_version_that_the_table_is_now_needs_no_commit(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    restored = Restore(world.path, 1).run()
    assert (restored.version, restored.committed) == (1, None)
    assert world.version == 1


def test_a_path_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.NotATable):
        anabranch.restore(tmp_path / "none", version=0)


def test_a_version_of_another_table_is_refused(world: World) -> None:
    world.create(ROWS)
    metadata = world.log.snapshot().metadata.to_json()
    other = json.dumps({"metaData": {**metadata, "id": "another"}})
    world.log.put(1, f'{{"commitInfo": {{"operation": "REPLACE"}}}}\n{other}\n'.encode())
    with pytest.raises(errors.InvalidOption, match="another table"):
        restore(world, 0)


def test_rows_of_an_append_only_table_do_not_go(world: World) -> None:
    world.create(ROWS, delta_appendOnly="true").append({"id": 9, "x": 9})
    with pytest.raises(errors.AppendOnlyTable):
        restore(world, 0)


def test_the_function_needs_no_spark(world: World) -> None:
    world.create(ROWS).delete("id = 1")
    a_tick(10)
    assert anabranch.restore(world.path, version=0).metrics["numRestoredFiles"] == 1


# -- redo --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
@pytest.mark.parametrize("other", ["an update", "an append", "an update of new columns"])
def test_under_redo_a_restore_runs_again_behind_others(world: World, other: str, level: str) -> None:
    world.create(ROWS, anabranch_conflictResolution="redo", delta_isolationLevel=level)
    world.update("id = 1", x=5)
    if other == "an update of new columns":
        AddColumns(world.path, (NewColumn(Field("y", "long")),)).run()

    def write() -> None:
        world.append({"id": 9, "x": 9}) if other == "an append" else world.update("id = 2", x=7)

    with at_phase("staged", write):
        committed = restore(world, 0).committed
    is_before = other == "an append" and level == "WriteSerializable"
    assert world.rows() == [*ROWS, *([{"id": 9, "x": 9}] if is_before else [])]
    assert committed is not None
    assert committed.metrics.get("numRedoneRuns") == (None if is_before else 1)


def test_a_restore_is_refused_behind_a_change_of_the_columns_all_the_same(world: World) -> None:
    world.create(ROWS, anabranch_conflictResolution="redo")
    world.update("id = 1", x=5)
    added = AddColumns(world.path, (NewColumn(Field("y", "long")),))
    with pytest.raises(errors.MetadataChangedException), at_phase("staged", lambda: added.run()):
        restore(world, 0)
