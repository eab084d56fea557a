"""DROP FEATURE: what goes, is guarded, is refused; protocols are those that delta-spark 4.4 was seen to write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._log.file_names import commit_name, part_name
from anabranch._log.log import Log, forget
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Protocol
from anabranch._transaction.retry import Runtime
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import DropConstraint, SetProperties, UnsetProperties
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.create import Replace
from anabranch.commands.ddl.drop_feature import DropFeature, truncate
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.errors import (
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
    FeatureNotDropped,
    InvalidProperty,
)
from anabranch.testing import at_phase
from tests.support.patience import a_tick
from tests.support.raw_logs import info, put_commit
from tests.support.worlds import World, table_path

ROWS = [{"id": i, "day": f"d{i % 3}"} for i in range(9)]
GUARDED = Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "checkpointProtection"}))
HOUR = 3_600


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(table_path(tmp_path)).create(ROWS, partition_by=("day",), delta_enableDeletionVectors="true")
    made.delete("id IN (0, 4)")
    made.update("id = 5", id=50)
    return made


def drop(world: World, feature: str, *, truncate: bool = False) -> Any:
    return DropFeature(world.path, feature, truncate).run(world.engine)


def refused(world: World, feature: str, *, truncate: bool = False) -> FeatureNotDropped:
    with pytest.raises(FeatureNotDropped) as caught:
        drop(world, feature, truncate=truncate)
    assert feature in str(caught.value)
    return caught.value


def age(world: World, hours: float) -> None:
    """Let all files of the log be this much older."""
    for file in Path(world.path, "_delta_log").iterdir():
        then = file.stat().st_mtime - hours * HOUR
        os.utime(file, (then, then))
    forget()


def operations(world: World) -> list[str]:
    return [str(world.info(version).get("operation")) for version in range(world.version + 1)]


def commits(world: World) -> list[int]:
    return sorted(int(f.name[:20]) for f in Path(world.path, "_delta_log").glob("*.json"))


# -- deletion vectors --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_deletion_vectors_go_with_their_files_and_history_is_guarded(world: World) -> None:
    before, version = world.rows(), world.version
    drop(world, "deletionVectors")
    snapshot = world.log.snapshot()
    assert operations(world)[version + 1 :] == ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE"]
    assert snapshot.protocol == GUARDED
    assert snapshot.files["deletionVector"].null_count == len(snapshot.files)
    assert snapshot.metadata.configuration == {"delta.requireCheckpointProtectionBeforeVersion": str(snapshot.version)}
    assert world.rows() == before
    assert Path(world.path, f"_delta_log/{snapshot.version - 1:020d}.checkpoint.parquet").exists()
    world.update("id = 50", id=5)
    world.assert_clean()
    assert world.rows(version) == before, "history stays readable"


@pytest.mark.slow
def test_a_purge_says_that_no_data_changed(world: World) -> None:
    drop(world, "deletionVectors")
    [reorg] = [v for v in range(world.version + 1) if world.info(v).get("operation") == "REORG"]
    lines = Path(world.path, f"_delta_log/{reorg:020d}.json").read_text().splitlines()
    changes = [body["dataChange"] for line in lines for kind, body in json.loads(line).items() if kind != "commitInfo"]
    assert changes
    assert not any(changes)


def test_vectors_without_any_use_go_without_a_purge(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    AddFeatureSupport(world.path, "deletionVectors").run()
    drop(world, "deletionVectors")
    assert operations(world)[2:] == ["DROP FEATURE"]
    assert world.log.snapshot().metadata.configuration["delta.enableDeletionVectors"] == "false"


@pytest.mark.slow
def test_a_row_that_is_deleted_during_the_purge_is_not_brought_back(world: World) -> None:
    SetProperties(world.path, {"delta.enableDeletionVectors": "false"}).run()
    expected = (ConcurrentDeleteReadException, ConcurrentDeleteDeleteException)
    with pytest.raises(expected), at_phase("staged", lambda: world.delete("id = 3")):
        drop(world, "deletionVectors")
    assert 3 not in {row["id"] for row in world.rows()}
    drop(world, "deletionVectors")
    assert 3 not in {row["id"] for row in world.rows()}
    world.assert_clean()


@pytest.mark.slow
def test_an_append_during_the_purge_stays(world: World) -> None:
    SetProperties(world.path, {"delta.enableDeletionVectors": "false"}).run()
    with at_phase("staged", lambda: world.append({"id": 77, "day": "d9"})):
        drop(world, "deletionVectors")
    assert 77 in {row["id"] for row in world.rows()}
    world.assert_clean()


# -- beside other writers ----------------------------------------------------------------------------------------------


def test_a_drop_fails_where_somebody_writes_meanwhile(world: World) -> None:
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()
    with (
        pytest.raises(DeltaConcurrentModificationException),
        at_phase("staged", lambda: world.append({"id": 77, "day": "d9"})),
    ):
        drop(world, "vacuumProtocolCheck")
    assert "vacuumProtocolCheck" in (world.log.snapshot().protocol.writer_features or ())


@pytest.mark.slow
def test_the_last_commit_stands_directly_behind_the_version_that_it_guards(world: World) -> None:
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()
    said = {"txn": {"appId": "a", "version": 1}}
    with (
        pytest.raises(DeltaConcurrentModificationException),
        at_phase("staged", lambda: put_commit(world.path, world.version + 1, info(), said)),
    ):
        drop(world, "vacuumProtocolCheck")
    version = drop(world, "vacuumProtocolCheck").version
    known = world.log.snapshot().metadata.configuration
    assert known["delta.requireCheckpointProtectionBeforeVersion"] == str(version)


@pytest.mark.slow
def test_a_write_fails_where_a_feature_is_dropped_meanwhile(world: World) -> None:
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()
    with (
        pytest.raises(DeltaConcurrentModificationException, match="PROTOCOL_CHANGED"),
        at_phase("staged", lambda: drop(world, "vacuumProtocolCheck")),
    ):
        world.update("id = 8", id=80)
    assert 80 not in {row["id"] for row in world.rows()}


# -- history -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_history_that_needs_the_feature_is_cut_off_once_it_is_old(world: World) -> None:
    waits = refused(world, "deletionVectors", truncate=True)
    assert waits.getCondition() == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    assert world.log.snapshot().protocol.min_reader == 3

    age(world, 23)
    early = refused(world, "deletionVectors", truncate=True)
    assert early.getCondition() == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    assert commits(world)[0] == 0

    age(world, 2)
    world.append({"id": 9, "day": "d0"})
    before = world.rows()
    drop(world, "deletionVectors", truncate=True)
    assert world.log.snapshot().protocol == Protocol(1, 2)
    assert commits(world)[0] > 3
    forget()
    assert world.rows() == before
    world.update("id = 9", id=90)
    assert len(world.rows()) == len(before)


def test_a_feature_that_leaves_no_trace_is_dropped_at_once_with_history(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()
    drop(world, "vacuumProtocolCheck", truncate=True)
    assert world.log.snapshot().protocol == Protocol(1, 2)
    assert commits(world) == [0, 1, 2]


@pytest.mark.slow
def test_the_guard_of_history_goes_with_the_history_that_it_guards(world: World) -> None:
    drop(world, "deletionVectors")
    still = refused(world, "checkpointProtection")
    assert still.getCondition().endswith("CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION")
    early = refused(world, "checkpointProtection", truncate=True)
    assert early.getCondition() == "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    age(world, 25)
    before = world.rows()
    drop(world, "checkpointProtection", truncate=True)
    assert world.log.snapshot().protocol == Protocol(1, 2)
    assert world.log.snapshot().metadata.configuration == {}
    assert world.rows() == before


@pytest.mark.slow
def test_history_stays_guarded_where_the_table_is_replaced_or_a_property_unset(world: World) -> None:
    drop(world, "deletionVectors")
    guard = {"delta.requireCheckpointProtectionBeforeVersion": str(world.version)}
    Replace(
        world.path, NewTable(world.log.snapshot().schema, properties={"delta.enableDeletionVectors": "false"})
    ).run()
    with pytest.raises(InvalidProperty, match="requireCheckpointProtection"):
        UnsetProperties(world.path, list(guard)).run()
    known = world.log.snapshot().metadata.configuration
    assert known == {**guard, "delta.enableDeletionVectors": "false"}


@pytest.mark.slow
def test_guarded_history_is_not_cut_off_in_parts(world: World) -> None:
    drop(world, "deletionVectors")
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()
    guarded = world.version
    log = Path(world.path, "_delta_log")
    young = log / f"{guarded - 2:020d}.json"
    age(world, 25)
    os.utime(young)
    drop(world, "vacuumProtocolCheck", truncate=True)
    assert commits(world)[0] == 0
    world.assert_clean()


@pytest.mark.slow
def test_history_is_not_cut_off_at_a_checkpoint_that_is_not_whole(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()
    for i in range(2, 6):
        world.append({"id": 10 * i, "day": "d0"})
    Path(world.path, part_name(3, 1, 2)).write_bytes(b"PAR1")
    history = [world.rows(version) for version in range(6)]
    age(world, 25)
    os.utime(Path(world.path, commit_name(4)))
    drop(world, "vacuumProtocolCheck", truncate=True)
    assert [world.rows(version) for version in (4, 5)] == history[4:]


def test_no_retention_is_so_short_that_a_put_under_way_could_follow_what_is_cut_off(tmp_path: Path) -> None:
    retention = {"delta_dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false", **retention)
    AddFeatureSupport(world.path, "vacuumProtocolCheck").run()

    def others() -> None:
        world.append({"id": 10, "day": "d0"})
        world.append({"id": 11, "day": "d0"})
        truncate(world.log, checkpointed(world), now_ms=Runtime().now_ms())

    with at_phase("put", others):
        version = world.append({"id": 12, "day": "d0"})
    forget()
    assert version == world.version
    assert {10, 11, 12} <= {row["id"] for row in world.rows()}


def checkpointed(world: World) -> Snapshot:
    snapshot = world.log.snapshot()
    world.log.write_checkpoint(snapshot, now_ms=Runtime().now_ms())
    return snapshot


# -- writer features ---------------------------------------------------------------------------------------------------


def test_a_feature_that_binds_writers_only_goes_at_once(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    AddFeatureSupport(world.path, "domainMetadata").run()
    assert world.log.snapshot().protocol.min_writer == 7
    drop(world, "domainMetadata")
    assert world.log.snapshot().protocol == Protocol(1, 2)
    assert operations(world)[-1] == "DROP FEATURE"
    assert world.info()["operationParameters"] == {"featureName": "domainMetadata", "truncateHistory": "false"}


def test_domains_are_removed_before_their_feature(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    AddFeatureSupport(world.path, "domainMetadata").run()
    put_commit(world.path, 2, {"domainMetadata": {"domain": "team", "configuration": "{}", "removed": False}})
    drop(world, "domainMetadata")
    assert dict(world.log.snapshot().state.domains) == {}
    assert world.log.snapshot().protocol == Protocol(1, 2)


def test_a_domain_that_comes_back_meanwhile_keeps_the_feature(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    AddFeatureSupport(world.path, "domainMetadata").run()
    said = {"domain": "team", "configuration": "{}", "removed": False}
    put_commit(world.path, 2, {"domainMetadata": said})
    with at_phase("committed", lambda: put_commit(world.path, 4, {"domainMetadata": {**said, "domain": "late"}})):
        error = refused(world, "domainMetadata")
    assert error.getCondition() == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    assert "domainMetadata" in (world.log.snapshot().protocol.writer_features or ())
    drop(world, "domainMetadata")
    assert world.log.snapshot().protocol == Protocol(1, 2)


def test_an_old_version_is_written_out_without_the_feature_that_goes(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_minReaderVersion="1", delta_minWriterVersion="4")
    drop(world, "checkConstraints")
    left = frozenset({"appendOnly", "invariants", "generatedColumns", "changeDataFeed"})
    assert world.log.snapshot().protocol == Protocol(1, 7, None, left)


def test_constraints_are_dropped_before_their_feature(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    AddConstraint(world.path, "small", world.condition("id < 100")).run(world.engine)
    assert world.log.snapshot().protocol == Protocol(1, 3)
    error = refused(world, "checkConstraints")
    assert error.getCondition() == "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"
    assert "small" in str(error)
    DropConstraint(world.path, "small").run()
    drop(world, "CheckConstraints")
    assert world.log.snapshot().protocol == Protocol(1, 2)


def test_coordinated_commits_without_a_coordinator_are_dropped(tmp_path: Path) -> None:
    name = "coordinatedCommits-preview"
    world = World(table_path(tmp_path)).create(ROWS, **{f"delta_feature.{name}": "supported"})
    assert {name, "inCommitTimestamp"} <= (world.log.snapshot().protocol.writer_features or frozenset())
    drop(world, name)
    assert name not in (world.log.snapshot().protocol.writer_features or frozenset())


# -- what stands in the way --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "rule"),
    [
        ("appendOnly", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("checkConstraints", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("typeWidening", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("nonsense", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("delta.enableDeletionVectors", "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"),
    ],
)
def test_what_cannot_be_dropped_is_refused_by_deltas_own_rule(world: World, feature: str, rule: str) -> None:
    version = world.version
    assert refused(world, feature).getCondition() == rule
    assert world.version == version


def test_history_goes_only_for_a_feature_that_it_needs(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_minWriterVersion="4")
    error = refused(world, "checkConstraints", truncate=True)
    assert error.getCondition() == "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"


def test_a_feature_that_another_one_needs_goes_after_it(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableRowTracking="true")
    error = refused(world, "domainMetadata")
    assert error.getCondition() == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
    assert "rowTracking" in str(error)


@pytest.mark.parametrize("feature", ["clustering", "icebergCompatV1", "icebergCompatV2", "icebergCompatV3"])
def test_what_delta_spark_does_not_let_go_stays(tmp_path: Path, feature: str) -> None:
    properties = {} if feature == "clustering" else {f"delta_enableI{feature[1:]}": "true"}
    world = World(table_path(tmp_path)).create(
        ROWS, cluster_by=("id",) if feature == "clustering" else (), **properties
    )
    assert refused(world, feature).getCondition() == "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"


# -- in-commit timestamps ----------------------------------------------------------------------------------------------


def test_the_history_tells_a_property_that_is_unset_from_one_that_gets_another_value(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableInCommitTimestamps="true")
    drop(world, "inCommitTimestamp")
    assert operations(world)[1:] == ["UNSET TBLPROPERTIES", "DROP FEATURE"]
    properties = '["delta.enableInCommitTimestamps"]'
    assert world.info(1)["operationParameters"] == {"properties": properties, "ifExists": "true"}


@pytest.mark.slow
def test_in_commit_timestamps_go_with_all_that_a_table_remembers_of_them(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    SetProperties(world.path, {"delta.enableInCommitTimestamps": "true"}).run()
    assert "delta.inCommitTimestampEnablementVersion" in world.log.snapshot().metadata.configuration
    drop(world, "inCommitTimestamp")
    snapshot = world.log.snapshot()
    assert operations(world)[2:] == ["UNSET TBLPROPERTIES", "DROP FEATURE"]
    assert snapshot.protocol == Protocol(1, 2)
    assert set(snapshot.metadata.configuration) == {"delta.enableDeletionVectors"}
    assert "inCommitTimestamp" not in world.info()
    world.append({"id": 99, "day": "d0"})
    world.assert_clean()


# -- V2 checkpoints ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_after_v2_checkpoints_the_newest_is_a_classic_one_and_history_is_guarded(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(
        ROWS, delta_enableDeletionVectors="false", delta_checkpointPolicy="v2", delta_checkpointInterval="1"
    )
    world.append({"id": 99, "day": "d0"})
    log = Path(world.path, "_delta_log")
    assert list(log.glob("*.checkpoint.*.parquet")), "the table had V2 checkpoints"
    before = world.rows()
    drop(world, "v2Checkpoint")
    snapshot = world.log.snapshot()
    assert snapshot.protocol == GUARDED
    assert snapshot.metadata.configuration["delta.checkpointPolicy"] == "classic"
    hint = json.loads((log / "_last_checkpoint").read_text())
    assert hint["version"] == snapshot.version
    assert "v2Checkpoint" not in hint
    assert (log / f"{snapshot.version:020d}.checkpoint.parquet").exists()
    forget()
    assert world.rows() == before
    assert world.rows(1) == before
    world.assert_clean()


def test_a_drop_stands_though_no_checkpoint_can_be_written_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false", delta_checkpointPolicy="v2")
    whole = Log.write_checkpoint

    def fails(log: Log, snapshot: Snapshot, *, now_ms: int, new_id: Any = uuid4) -> None:
        if "v2Checkpoint" not in (snapshot.protocol.reader_features or ()):
            raise OSError("the disk is full")
        whole(log, snapshot, now_ms=now_ms, new_id=new_id)

    monkeypatch.setattr(Log, "write_checkpoint", fails)
    drop(world, "v2Checkpoint")
    assert world.log.snapshot().protocol == GUARDED
    assert len(world.rows()) == len(ROWS)


# -- row tracking ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_row_tracking_goes_with_ids_names_and_the_mark(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableRowTracking="true")
    world.update("id = 5", id=50)
    world.delete("id = 1")
    before, version = world.rows(), world.version
    drop(world, "rowTracking")
    snapshot = world.log.snapshot()
    assert operations(world)[version + 1 :] == ["SET TBLPROPERTIES", "ROW TRACKING UNBACKFILL", "DROP FEATURE"]
    assert "rowTracking" not in (snapshot.protocol.writer_features or ())
    assert "domainMetadata" in (snapshot.protocol.writer_features or ())
    assert snapshot.files["baseRowId"].null_count == len(snapshot.files)
    assert snapshot.files["defaultRowCommitVersion"].null_count == len(snapshot.files)
    assert dict(snapshot.state.domains) == {}
    assert not [key for key in snapshot.metadata.configuration if "owTracking" in key]
    assert world.rows() == before
    world.append({"id": 99, "day": "d0"})
    SetProperties(world.path, {"delta.enableRowTracking": "true"}).run()
    world.update("id = 99", id=100)
    world.assert_clean()


@pytest.mark.slow
def test_no_row_comes_back_that_is_deleted_while_row_ids_are_forgotten(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableRowTracking="true")
    off = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    SetProperties(world.path, off).run()
    with (
        pytest.raises(DeltaConcurrentModificationException),
        at_phase("staged", lambda: world.delete("id = 3")),
    ):
        drop(world, "rowTracking")
    assert 3 not in {row["id"] for row in world.rows()}
    drop(world, "rowTracking")
    assert 3 not in {row["id"] for row in world.rows()}
    world.assert_clean()


# -- type widening -----------------------------------------------------------------------------------------------------

SMALL = pa.schema([("id", pa.int32()), ("s", pa.struct([("a", pa.int16())])), ("p", pa.int32())])


@pytest.fixture
def widened(tmp_path: Path) -> World:
    """A table with files of the old types, one of the new, and deleted rows."""
    world = World(table_path(tmp_path))
    named = {"delta.enableTypeWidening": "true"}
    rows = [{"id": i, "s": {"a": i}, "p": i % 2} for i in range(6)]
    Append(world.path, pa.Table.from_pylist(rows, schema=SMALL), ("p",), named).run()
    world.delete("id = 1")
    ChangeColumn(world.path, ("id",), type="long").run(world.engine)
    ChangeColumn(world.path, ("s", "a"), type="integer").run(world.engine)
    ChangeColumn(world.path, ("p",), type="long").run(world.engine)
    wide = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int32())])), ("p", pa.int64())])
    Append(world.path, pa.Table.from_pylist([{"id": 1 << 40, "s": {"a": 1 << 20}, "p": 1}], schema=wide)).run()
    return world


@pytest.mark.slow
def test_type_widening_goes_with_the_files_of_older_types(widened: World) -> None:
    before, version = widened.rows(), widened.version
    first, newest = (set(widened.log.snapshot(v).files["path"].to_pylist()) for v in (version - 1, version))
    drop(widened, "typeWidening")
    snapshot = widened.log.snapshot()
    steps = ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE", "DROP FEATURE"]
    assert operations(widened)[version + 1 :] == steps
    assert "typeChanges" not in snapshot.metadata.schema_string
    assert "typeWidening" not in (snapshot.protocol.writer_features or ())
    assert "checkpointProtection" in (snapshot.protocol.writer_features or ())
    assert widened.rows() == before
    for path in snapshot.files["path"].to_pylist():
        there = pq.read_schema(f"{widened.path}/{path}")
        assert (there.field("id").type, there.field("s").type.field("a").type) == (pa.int64(), pa.int32())
    assert newest - first <= set(snapshot.files["path"].to_pylist()), "a file that fits stays as it is"
    assert widened.rows(version) == before
    widened.assert_clean()


@pytest.mark.slow
def test_a_row_that_is_deleted_while_types_are_rewritten_is_not_brought_back(widened: World) -> None:
    SetProperties(widened.path, {"delta.enableTypeWidening": "false"}).run()
    with (
        pytest.raises(DeltaConcurrentModificationException),
        at_phase("staged", lambda: widened.delete("id = 4")),
    ):
        drop(widened, "typeWidening")
    drop(widened, "typeWidening")
    assert 4 not in {row["id"] for row in widened.rows()}
    widened.assert_clean()


# -- column mapping ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["name", "id"])
def renamed(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A table whose columns, members and partition column have other names in files."""
    rows = [{"id": i, "s": {"a": i}, "p": i % 2} for i in range(6)]
    named = {"delta_columnMapping.mode": request.param, "delta_enableRowTracking": "true"}
    world = World(table_path(tmp_path)).create(rows, partition_by=("p",), **named)
    for path, name in ((("id",), "key"), (("s", "a"), "b"), (("p",), "part")):
        RenameColumn(world.path, path, name).run()
    world.delete("key = 1")
    world.update("key = 2", part=7)
    return world


@pytest.mark.slow
def test_column_mapping_goes_with_all_files_and_names(renamed: World) -> None:
    before, version = renamed.rows(), renamed.version
    drop(renamed, "columnMapping")
    snapshot = renamed.log.snapshot()
    assert operations(renamed)[version + 1 :] == ["REMOVE COLUMN MAPPING", "DROP FEATURE"]
    assert "columnMapping" not in snapshot.metadata.schema_string
    assert not [key for key in snapshot.metadata.configuration if "columnMapping" in key]
    assert "columnMapping" not in (snapshot.protocol.writer_features or ())
    assert renamed.rows() == before
    for file in snapshot.files.to_pylist():
        there = pq.read_schema(f"{renamed.path}/{file['path']}")
        assert there.names[:2] == ["key", "s"]
        assert there.field("s").type.field(0).name == "b"
        assert [key for key, _ in file["partitionValues"]] == ["part"]
        assert set(json.loads(file["stats"])["minValues"]) == {"key", "s"}
    lines = Path(renamed.path, f"_delta_log/{version + 1:020d}.json").read_text().splitlines()
    assert '"dataChange":true' not in "".join(lines)
    renamed.append({"key": 9, "s": {"b": 9}, "part": 7})
    renamed.update("key = 3", part=8)
    assert renamed.rows(version) == before
    renamed.assert_clean()


@pytest.mark.slow
def test_whatever_is_written_while_names_change_stands_in_the_way(renamed: World) -> None:
    version = renamed.version
    with (
        pytest.raises(DeltaConcurrentModificationException),
        at_phase("staged", lambda: renamed.append({"key": 9, "s": {"b": 9}, "part": 7})),
    ):
        drop(renamed, "columnMapping")
    assert renamed.version == version + 1
    drop(renamed, "columnMapping")
    assert 9 in {row["key"] for row in renamed.rows()}
    renamed.assert_clean()


@pytest.mark.slow
def test_a_table_stays_clustered_by_the_same_columns_under_their_own_names(tmp_path: Path) -> None:
    named = {"delta_columnMapping.mode": "name"}
    world = World(table_path(tmp_path)).create(ROWS, cluster_by=("id",), **named)
    RenameColumn(world.path, ("id",), "key").run()
    drop(world, "columnMapping")
    assert world.log.snapshot().clustering_columns == (("key",),)
    world.assert_clean()


def test_names_that_files_cannot_have_keep_the_mapping(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"a b": 1}], **{"delta_columnMapping.mode": "name"})
    error = refused(world, "columnMapping")
    assert error.getCondition() == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
    assert "'a b'" in str(error)
    assert world.version == 0


def test_iceberg_compatibility_keeps_the_mapping(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableIcebergCompatV2="true")
    assert refused(world, "columnMapping").getCondition() == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_row_ids_are_forgotten_beside_a_vacuum_and_no_row_is_there_twice(tmp_path: Path, vectors: str) -> None:
    rows = [{"id": i} for i in range(4)]
    properties = {"delta_enableRowTracking": "true", "delta_enableDeletionVectors": vectors}
    world = World(str(tmp_path / "t")).create(rows, **properties)
    switched_off = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    SetProperties(world.path, switched_off).run()
    a_tick()
    vacuum = Vacuum(world.path, 0, check_retention=False, dead_after_seconds=0)  # it spares no job
    with at_phase("staged", vacuum.run):
        DropFeature(world.path, "rowTracking").run(world.engine)
    assert world.rows() == rows
    world.assert_clean()
