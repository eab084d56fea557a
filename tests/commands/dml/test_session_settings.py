"""What a session says of commits, as commands do it: without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch._protocol.schema.types import Field, Struct
from anabranch._protocol.session_settings import SessionSettings, apply_settings
from anabranch.commands.ddl.alter import DropConstraint, SetProperties, UnsetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.dml.write import Write
from anabranch.commands.maintenance.clone import Clone
from anabranch.errors import InvalidOption, InvalidProperty, NonPartitionColumn
from tests.support.worlds import World

SCHEMA = Struct((Field("id", "long"), Field("x", "long")))
ROWS = [{"id": i, "x": i % 2} for i in range(4)]
NIGHTLY = SessionSettings(app_id="nightly", txn_version="7")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "t")).create(ROWS, partition_by=("x",))


def write(world: World, *rows: dict[str, int], **said: Any) -> Any:
    command = Write(world.path, pa.Table.from_pylist(list(rows)), said.pop("mode", "append"), **said)
    return command.run(world.engine)


def saying(**defaults: str) -> SessionSettings:
    return SessionSettings(
        defaults=lambda: {f"delta.{key.replace('_', '.')}": value for key, value in defaults.items()}
    )


# -- user metadata -----------------------------------------------------------------------------------------------------


def test_every_commit_bears_what_the_session_says_of_it(world: World) -> None:
    with apply_settings(SessionSettings(user_metadata="run 7")):
        write(world, {"id": 9, "x": 1})
        world.delete("id = 0")
        world.update("id = 1", x=0)
        world.merge([{"id": 2, "x": 1}])
        SetProperties(world.path, {"team": "harbour"}).run()
        world.restore(2)
    after = world.append({"id": 10, "x": 0})
    said = [world.info(version).get("userMetadata") for version in range(1, after + 1)]
    assert said == ["run 7"] * (after - 1) + [None]


def test_what_a_write_says_of_its_commit_counts_more(world: World) -> None:
    with apply_settings(SessionSettings(user_metadata="run 7")):
        write(world, {"id": 9, "x": 1}, user_metadata="ours")
    assert world.info()["userMetadata"] == "ours"


# -- writes that are done once -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda world: write(world, {"id": 9, "x": 1}),
        lambda world: write(world, {"id": 9, "x": 1}, mode="overwrite"),
        lambda world: world.delete("id = 0"),
        lambda world: world.delete("id = 100"),
        lambda world: world.update("id = 1", x=1),
        lambda world: world.merge([{"id": 2, "x": 1}, {"id": 8, "x": 0}]),
        lambda world: world.update("id = 100", x=0),
    ],
    ids=["append", "overwrite", "delete", "delete nothing", "update", "merge", "update nothing"],
)
def test_a_write_of_a_numbered_application_is_done_once(world: World, change: Any) -> None:
    with apply_settings(NIGHTLY) as held:
        change(world)
        assert held.used_txn
        assert world.version == 1
        change(world)
    assert world.version == 1
    assert world.log.snapshot().state.app_transactions["nightly"].version == 7
    with apply_settings(SessionSettings(app_id="nightly", txn_version="8")):
        change(world)
    assert world.version == 2
    world.assert_clean()


def test_half_of_a_number_and_no_number_are_refused_and_nothing_is_written(world: World) -> None:
    for said in (
        SessionSettings(app_id="a"),
        SessionSettings(txn_version="1"),
        SessionSettings(app_id="a", txn_version="-1"),
    ):
        with apply_settings(said):
            for change in (lambda: world.delete("id = 0"), lambda: write(world, ROWS[0]), lambda: world.merge(ROWS)):
                with pytest.raises(InvalidOption, match=r"spark\.databricks\.delta\.write\.txn"):
                    change()
            SetProperties(world.path, {"a": str(said)}).run()  # numbers no rows
    assert {world.info(version)["operation"] for version in range(1, 4)} == {"SET TBLPROPERTIES"}
    assert world.version == 3


# -- defaults of new tables --------------------------------------------------------------------------------------------


def test_new_tables_have_the_properties_of_the_session_and_their_own_count_more(tmp_path: Path) -> None:
    said = saying(appendOnly="true", checkpointInterval="3")
    with apply_settings(said):
        Create(tmp_path / "a", NewTable(SCHEMA, properties={"delta.CHECKPOINTinterval": "7"})).run()
        write(World(str(tmp_path / "b")), *ROWS)
        Create(tmp_path / "c", NewTable(SCHEMA, properties={"delta.appendOnly": "false"})).run()
        Replace(tmp_path / "c", NewTable(SCHEMA)).run()
    for name, interval in (("a", 7), ("b", 3), ("c", 3)):
        properties = World(str(tmp_path / name)).log.snapshot().properties
        assert (properties.append_only, properties.checkpoint_interval) == (True, interval), name


def test_a_table_that_is_there_and_a_clone_take_no_defaults(world: World, tmp_path: Path) -> None:
    with apply_settings(saying(appendOnly="true")):
        write(world, {"id": 9, "x": 1})
        Clone(world.path, str(tmp_path / "copy")).run()
    assert not world.log.snapshot().properties.append_only
    assert not World(str(tmp_path / "copy")).log.snapshot().properties.append_only


def test_defaults_speak_of_the_protocol_unless_that_is_ignored(tmp_path: Path) -> None:
    with apply_settings(saying(feature_domainMetadata="supported")):
        Create(tmp_path / "a", NewTable(SCHEMA)).run()
        Create(tmp_path / "b", NewTable(SCHEMA, properties={"delta.ignoreProtocolDefaults": "true"})).run()
    found = [World(str(tmp_path / name)).log.snapshot().protocol.writer_features or () for name in "ab"]
    assert ["domainMetadata" in each for each in found] == [True, False]
    with apply_settings(saying(minReaderVersion="1", minWriterVersion="2")):
        Create(tmp_path / "c", NewTable(SCHEMA)).run()
    protocol = World(str(tmp_path / "c")).log.snapshot().protocol
    assert (protocol.min_reader, protocol.min_writer) == (1, 2)


def test_a_default_that_is_not_honoured_here_is_refused(tmp_path: Path) -> None:
    with apply_settings(saying(universalFormat_enabledFormats="iceberg")), pytest.raises(InvalidProperty):
        Create(tmp_path / "a", NewTable(SCHEMA)).run()
    assert not (tmp_path / "a").exists()


# -- replaceWhere, constraints, compaction -----------------------------------------------------------------------------


def test_replace_where_takes_partition_columns_only_where_the_session_says_so(world: World) -> None:
    with apply_settings(SessionSettings(replaces_by_data=False, checks_replaced=False)):
        with pytest.raises(NonPartitionColumn) as refused:
            write(world, {"id": 1, "x": 1}, mode="overwrite", replace_where=world.condition("id = 1"))
        assert refused.value.facts["column"] == "id"
        with pytest.raises(Exception, match="do not satisfy"):  # such a condition is always checked
            write(world, {"id": 1, "x": 0}, mode="overwrite", replace_where=world.condition("x = 1"))
        write(world, {"id": 1, "x": 1}, mode="overwrite", replace_where=world.condition("x = 1"))
    assert [row["id"] for row in world.rows()] == [0, 1, 2]


def test_a_table_that_is_yet_to_be_made_has_the_partition_columns_that_it_is_asked_for(world: World) -> None:
    new = World(f"{world.path}_new")
    by_x, by_id = world.condition("x = 1"), world.condition("id = 1")
    with apply_settings(SessionSettings(replaces_by_data=False)):
        for partition_by, where, column in (("x",), by_id, "id"), (None, by_x, "x"):
            with pytest.raises(NonPartitionColumn) as refused:
                write(new, {"id": 1, "x": 1}, mode="overwrite", replace_where=where, partition_by=partition_by)
            assert refused.value.facts["column"] == column
        write(new, {"id": 1, "x": 1}, mode="overwrite", replace_where=by_x, partition_by=("x",))
    assert new.rows() == [{"id": 1, "x": 1}]


def test_rows_beside_the_condition_are_written_where_the_session_checks_none(world: World) -> None:
    with apply_settings(SessionSettings(checks_replaced=False)):
        write(world, {"id": 70, "x": 0}, mode="overwrite", replace_where=world.condition("x = 1"))
    assert [row["id"] for row in world.rows()] == [0, 2, 70]


def test_a_constraint_that_is_missing_may_be_dropped_where_the_session_says_so(world: World) -> None:
    with pytest.raises(InvalidOption):
        DropConstraint(world.path, "nope").run()
    with apply_settings(SessionSettings(drops_missing=True)):
        assert DropConstraint(world.path, "nope").run() is None


def test_the_session_switches_automatic_compaction_on_and_off_whatever_the_table_says(tmp_path: Path) -> None:
    silent = World(str(tmp_path / "a")).create(ROWS)
    wishing = World(str(tmp_path / "b")).create(ROWS, **{"delta_autoOptimize.autoCompact": "true"})
    for world, said in (
        (silent, SessionSettings(compacts="true", compacts_from=2)),
        (wishing, SessionSettings(compacts="false")),
    ):
        with apply_settings(said):
            write(world, {"id": 9, "x": 1})
    assert (silent.info()["operation"], wishing.info()["operation"]) == ("OPTIMIZE", "WRITE")


# -- properties --------------------------------------------------------------------------------------------------------


def test_the_property_comment_is_the_description(world: World, tmp_path: Path) -> None:
    SetProperties(world.path, {"comment": "of the harbour", "team": "x"}).run()
    metadata = world.log.snapshot().metadata
    assert (metadata.description, "comment" in metadata.configuration) == ("of the harbour", False)
    UnsetProperties(world.path, ["comment"]).run()
    assert world.log.snapshot().metadata.description is None
    with pytest.raises(InvalidProperty):
        UnsetProperties(world.path, ["comment"]).run()
    Create(tmp_path / "a", NewTable(SCHEMA, properties={"comment": "c"})).run()
    assert World(str(tmp_path / "a")).log.snapshot().metadata.description == "c"
    Clone(world.path, str(tmp_path / "b"), properties={"comment": "d"}).run()
    assert World(str(tmp_path / "b")).log.snapshot().metadata.description == "d"


def test_names_of_known_properties_count_without_case(world: World) -> None:
    SetProperties(world.path, {"DELTA.appendONLY": "true"}).run()
    assert world.log.snapshot().properties.append_only
    UnsetProperties(world.path, ["delta.appendonly"]).run()
    assert not world.log.snapshot().properties.append_only


def test_removed_files_are_remembered_no_longer_than_the_log_is(world: World, tmp_path: Path) -> None:
    tombstones, log = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
    for wrong in (
        {log: "interval 1 days", tombstones: "interval 5 days"},
        {log: "interval 1 days"},
        {tombstones: "interval 31 days"},
    ):
        with pytest.raises(InvalidProperty, match="RetentionDuration"):
            SetProperties(world.path, wrong).run()
        with pytest.raises(InvalidProperty):
            Create(tmp_path / "never", NewTable(SCHEMA, properties=wrong)).run()
        with pytest.raises(InvalidProperty):
            Clone(world.path, str(tmp_path / "never"), properties=wrong).run()
    SetProperties(world.path, {log: "interval 60 days"}).run()
    SetProperties(world.path, {tombstones: "interval 60 days"}).run()
    assert not (tmp_path / "never").exists()
