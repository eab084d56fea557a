"""Changes of what a table says of itself: properties, columns, constraints, protocol, and REPLACE TABLE."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import DeltaTable, errors
from anabranch._protocol.actions import Protocol
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.column_mapping import FIELD_ID
from anabranch._protocol.schema.types import PHYSICAL_NAME, Array, Field, Struct, schema_json
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import (
    AddColumns,
    DropConstraint,
    NewColumn,
    SetProperties,
    UnsetProperties,
)
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport, UpgradeProtocol
from anabranch.commands.ddl.create import Replace
from anabranch.commands.dml.new_table import NewTable
from anabranch.testing import at_phase
from tests.support.raw_logs import metadata, put_commit
from tests.support.worlds import World, insert_all, table_path, update_all

ROWS = [{"id": i, "x": i * 10} for i in range(4)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(table_path(tmp_path)).create(ROWS)
    yield made
    made.assert_clean()


def said(world: World) -> tuple[str, dict[str, Any]]:
    """Operation and parameters of the newest commit."""
    return world.info()["operation"], dict(world.info()["operationParameters"])


def legacy(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")


# -- properties --------------------------------------------------------------------------------------------------------


def test_properties_are_set_beside_those_that_are(world: World) -> None:
    committed = SetProperties(world.path, {"delta.appendOnly": "true", "team": "flights"}).run()
    assert committed is not None
    assert committed.version == 1
    assert world.log.snapshot().metadata.configuration == {
        "delta.enableDeletionVectors": "true",
        "delta.appendOnly": "true",
        "team": "flights",
    }
    operation, parameters = said(world)
    assert operation == "SET TBLPROPERTIES"
    assert json.loads(parameters["properties"]) == {"delta.appendOnly": "true", "team": "flights"}
    assert world.info()["isBlindAppend"] is False
    with pytest.raises(errors.AppendOnlyTable):
        world.delete("id = 1")


def test_what_is_so_already_is_not_committed(world: World) -> None:
    assert SetProperties(world.path, {"delta.enableDeletionVectors": "true"}).run() is None
    assert UnsetProperties(world.path, ["team"], if_exists=True).run() is None
    assert AddFeatureSupport(world.path, "deletionVectors").run() is None
    assert UpgradeProtocol(world.path, 3, 7).run() is None
    assert DropConstraint(world.path, "none", if_exists=True).run() is None
    assert world.version == 0


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_property_leaves_the_schema_as_another_writer_spelled_it(tmp_path: Path, mode: str) -> None:
    named = {FIELD_ID: 1, PHYSICAL_NAME: "col-1"} if mode == "name" else {}
    spelled = json.dumps(json.loads(schema_json(Struct((Field("id", "long", metadata=named),)))), indent=1)
    action = metadata(**{"delta_columnMapping.mode": mode, "delta_columnMapping.maxColumnId": "1"})
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    put_commit(tmp_path, 0, protocol, {"metaData": {**action["metaData"], "schemaString": spelled}})
    SetProperties(str(tmp_path), {"team": "flights"}).run()
    assert World(str(tmp_path)).log.snapshot().metadata.schema_string == spelled


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.isolationLevel", "Snapshot"),
        ("delta.noSuchThing", "1"),
        ("delta.enableVariantShredding", "true"),
        ("delta.columnMapping.mode", "id"),
        ("delta.constraints.c", "id > 0"),
        ("delta.feature.deletionVectors", "yes"),
    ],
)
def test_a_property_that_is_none_or_is_not_honoured_is_refused(world: World, key: str, value: str) -> None:
    with pytest.raises(errors.InvalidProperty) as refused:
        SetProperties(world.path, {"team": "x", key: value}).run()
    assert refused.value.property == key
    assert world.version == 0


def test_deletion_vectors_are_switched_on_with_their_feature_in_one_commit(tmp_path: Path) -> None:
    world = legacy(tmp_path)
    assert world.log.snapshot().protocol == Protocol(1, 2)
    SetProperties(world.path, {"delta.enableDeletionVectors": "true"}).run()
    snapshot = world.log.snapshot()
    assert snapshot.version == 1
    both = frozenset({"deletionVectors"})
    assert snapshot.protocol == Protocol(3, 7, both, both | {"appendOnly", "invariants"})
    world.delete("id = 1")
    assert world.info()["operationMetrics"]["numDeletionVectorsAdded"] == "1"
    world.assert_clean()


def test_properties_have_their_defaults_again(world: World) -> None:
    SetProperties(world.path, {"delta.isolationLevel": "Serializable", "team": "x"}).run()
    UnsetProperties(world.path, ["delta.isolationLevel", "other"], if_exists=True).run()
    assert world.log.snapshot().properties.isolation_level == "WriteSerializable"
    assert said(world) == (
        "UNSET TBLPROPERTIES",
        {"properties": '["delta.isolationLevel","other"]', "ifExists": "true"},
    )
    with pytest.raises(errors.InvalidProperty, match="not set"):
        UnsetProperties(world.path, ["other"]).run()


# -- columns -----------------------------------------------------------------------------------------------------------


def test_columns_are_added_where_they_are_wanted_and_older_rows_have_null(world: World) -> None:
    inner = Struct((Field("a", "long"),))
    AddColumns(
        world.path, (NewColumn(Field("s", inner), after="ID"), NewColumn(Field("z", "string"), first=True))
    ).run()
    added = (
        NewColumn(Field("b", "date", metadata={"comment": "when"}), ("S",), first=True),
        NewColumn(Field("end", "long")),
    )
    AddColumns(world.path, added).run()
    assert world.log.snapshot().schema.names == ("z", "id", "s", "x", "end")
    world.append({"id": 9, "s": {"a": 1, "b": dt.date(2026, 1, 1)}, "end": 5})
    assert world.rows()[-1] == {"z": None, "id": 9, "s": {"b": dt.date(2026, 1, 1), "a": 1}, "x": None, "end": 5}
    assert world.rows()[0] == {"z": None, "id": 0, "s": None, "x": 0, "end": None}
    commit = world.log.read(2)
    assert commit is not None
    assert commit.head.info["operation"] == "ADD COLUMNS"
    shown = json.loads(commit.head.info["operationParameters"]["columns"])
    assert shown == [
        {
            "column": {"name": "S.b", "type": "date", "nullable": True, "metadata": {"comment": "when"}},
            "position": "FIRST",
        },
        {"column": {"name": "end", "type": "long", "nullable": True, "metadata": {}}},
    ]


def test_a_table_that_lists_a_wrong_name_of_a_feature_is_read_and_written_under_its_own(tmp_path: Path) -> None:
    """delta-kernel-rs #2557: ``timestampWithoutTimezone`` for ``timestampNtz``."""
    path = table_path(tmp_path)
    wrong = {name: ["timestampWithoutTimezone"] for name in ("readerFeatures", "writerFeatures")}
    schema = Struct((Field("id", "long"), Field("t", "timestamp_ntz")))
    put_commit(path, 0, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **wrong}}, metadata(schema))
    world, moment = World(path), dt.datetime(2026, 1, 31, 12)
    world.append({"id": 1, "t": moment})
    world.update("id = 1", id=2)
    assert world.rows() == [{"id": 2, "t": moment}]
    assert len(list(Path(path, "_delta_log").glob("*.json"))) == 3
    SetProperties(path, {"delta.enableDeletionVectors": "true"}).run()
    text = Path(path, "_delta_log", f"{3:020}.json").read_text()
    assert '"readerFeatures":["deletionVectors","timestampNtz"]' in text
    assert "timestampWithoutTimezone" not in text
    with pytest.raises(errors.UnsupportedFeature, match="timestampWithoutTimezone"):
        SetProperties(path, {"delta.feature.timestampWithoutTimezone": "supported"}).run()
    world.assert_clean()


def test_a_column_that_needs_a_feature_brings_it(world: World) -> None:
    AddColumns(world.path, (NewColumn(Field("t", "timestamp_ntz")),)).run()
    assert world.log.snapshot().protocol.reader_features == {"deletionVectors", "timestampNtz"}


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (NewColumn(Field("X", "long")), errors.InvalidOption),
        (NewColumn(Field("y", "long", nullable=False)), errors.InvalidOption),
        (NewColumn(Field("y", "long"), after="nothing"), errors.UnknownColumn),
        (NewColumn(Field("y", "long"), ("nothing",)), errors.UnknownColumn),
        (NewColumn(Field("y", "long"), ("x",)), errors.UnknownColumn),
        (NewColumn(Field("y", Array("geometry(4326)"))), errors.UnsupportedType),
        (NewColumn(Field("y", "long", metadata={"CURRENT_DEFAULT": "1"})), errors.InvalidOption),
        (NewColumn(Field("y", "long", metadata={"delta.generationExpression": "x"})), errors.InvalidOption),
        (NewColumn(Field("y", "long", metadata=identity_metadata(1, 1, explicit=False))), errors.InvalidOption),
    ],
    ids=str,
)
def test_a_column_that_cannot_be_added_is_refused(world: World, column: NewColumn, error: type[Exception]) -> None:
    with pytest.raises(error):
        AddColumns(world.path, (NewColumn(Field("fine", "long")), column)).run()
    with pytest.raises(errors.InvalidOption):
        AddColumns(world.path, ()).run()
    assert world.version == 0


# -- constraints -------------------------------------------------------------------------------------------------------


def test_a_constraint_is_added_with_its_feature_if_every_row_satisfies_it(world: World) -> None:
    world.delete("id = 3")
    AddConstraint(world.path, "Small", world.condition("x < 30")).run(world.engine)
    snapshot = world.log.snapshot()
    assert snapshot.metadata.configuration["delta.constraints.small"] == "x < 30"
    assert "checkConstraints" in (snapshot.protocol.writer_features or ())
    assert snapshot.protocol.reader_features == {"deletionVectors"}
    assert said(world) == ("ADD CONSTRAINT", {"name": "Small", "expr": "x < 30"})


def test_an_old_version_of_the_protocol_says_constraints_by_its_number(tmp_path: Path) -> None:
    world = legacy(tmp_path)
    AddConstraint(world.path, "small", world.condition("x < 40")).run(world.engine)
    assert world.log.snapshot().protocol == Protocol(1, 3)


@pytest.mark.parametrize(("where", "count"), [("x < 20", 2), ("y > 0", 4), ("x IS NOT NULL AND id <> 1", 1)])
def test_rows_that_do_not_satisfy_it_are_counted_null_is_not_true(world: World, where: str, count: int) -> None:
    AddColumns(world.path, (NewColumn(Field("y", "long")),)).run()
    with pytest.raises(errors.ConstraintNotMet) as refused:
        AddConstraint(world.path, "c", world.condition(where)).run(world.engine)
    assert (refused.value.count, refused.value.rows, refused.value.constraint) == (count, 4, "c")
    assert world.version == 1


def test_a_constraint_that_hangs_on_more_than_its_row_is_refused(world: World) -> None:
    for where in ("rand() < 0.5", "mine(x) > 1"):
        with pytest.raises(errors.InvalidCondition):
            AddConstraint(world.path, "c", world.condition(where)).run(world.engine)
    assert world.version == 0


def test_a_name_is_given_once_whatever_the_case_and_can_be_taken_back(world: World, tmp_path: Path) -> None:
    AddConstraint(world.path, "c", world.condition("x < 40")).run(world.engine)
    DropConstraint(world.path, "C").run()
    assert said(world) == ("DROP CONSTRAINT", {"name": "C", "expr": "x < 40", "existed": "true"})
    assert "delta.constraints.c" not in world.log.snapshot().metadata.configuration
    with pytest.raises(errors.InvalidOption, match="no constraint"):
        DropConstraint(world.path, "c").run()
    with pytest.raises(errors.InvalidOption, match="name"):
        AddConstraint(world.path, " ", world.condition("x < 40")).run(world.engine)
    with pytest.raises(errors.InvalidProperty, match="separate commands"):
        UnsetProperties(world.path, ["delta.constraints.c"]).run()


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
def test_a_row_that_came_meanwhile_was_not_checked(tmp_path: Path, level: str) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel=level)
    late = {"id": 9, "x": 90}
    for other in (lambda: world.append(late), lambda: world.merge([late])):
        with pytest.raises(errors.ConcurrentAppendException), at_phase("staged", other):
            AddConstraint(world.path, "small", world.condition("x < 200")).run(world.engine)
    assert world.version == 2


# -- the protocol ------------------------------------------------------------------------------------------------------


def test_versions_go_up_and_old_ones_are_written_out_as_features(tmp_path: Path) -> None:
    world = legacy(tmp_path)
    UpgradeProtocol(world.path, 1, 4).run()
    assert world.log.snapshot().protocol == Protocol(1, 4)
    UpgradeProtocol(world.path, 3, 7).run()
    named = frozenset({"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"})
    assert world.log.snapshot().protocol == Protocol(3, 7, frozenset(), named)
    operation, parameters = said(world)
    assert operation == "UPGRADE PROTOCOL"
    assert json.loads(parameters["newProtocol"])["minReaderVersion"] == 3
    world.append({"id": 9, "x": 1})
    world.assert_clean()


@pytest.mark.parametrize("versions", [(0, 7), (4, 7), (3, 8), (3, 6)])
def test_versions_never_go_down_nor_beyond_what_there_is(tmp_path: Path, versions: tuple[int, int]) -> None:
    world = legacy(tmp_path)
    with pytest.raises(errors.InvalidOption):
        UpgradeProtocol(world.path, *versions).run()
    assert world.version == 0


def test_lower_versions_leave_the_table_as_it_is(tmp_path: Path) -> None:
    world = legacy(tmp_path)
    assert UpgradeProtocol(world.path, 1, 1).run() is None
    assert world.version == 0


def test_the_second_reader_version_stands_for_column_mapping(tmp_path: Path) -> None:
    world = legacy(tmp_path)
    UpgradeProtocol(world.path, 2, 7).run()
    protocol = world.log.snapshot().protocol
    assert (protocol.min_reader, protocol.reader_features) == (2, None)
    assert protocol.writer_features == {"appendOnly", "invariants", "columnMapping"}


def test_a_feature_is_listed_by_name_and_shown_as_the_property_that_stands_for_it(tmp_path: Path) -> None:
    world = legacy(tmp_path)
    AddFeatureSupport(world.path, "DELETIONVECTORS").run()
    assert world.log.snapshot().protocol.reader_features == {"deletionVectors"}
    assert world.log.snapshot().metadata.configuration == {"delta.enableDeletionVectors": "false"}
    assert said(world) == ("SET TBLPROPERTIES", {"properties": '{"delta.feature.DELETIONVECTORS":"supported"}'})
    AddFeatureSupport(world.path, "domainMetadata").run()
    assert "domainMetadata" in (world.log.snapshot().protocol.writer_features or ())


@pytest.mark.parametrize("feature", ["catalogManaged", "noSuchFeature"])
def test_a_feature_that_is_not_held_here_is_refused_by_name(world: World, feature: str) -> None:
    with pytest.raises(errors.UnsupportedFeature) as refused:
        AddFeatureSupport(world.path, feature).run()
    assert refused.value.feature == feature
    assert world.version == 0


# -- REPLACE TABLE -----------------------------------------------------------------------------------------------------

OTHER = NewTable(Struct((Field("name", "string"), Field("day", "date"))), ("day",), {"delta.appendOnly": "false"})


def test_a_table_is_replaced_in_one_commit(world: World) -> None:
    before = world.log.snapshot()
    Replace(world.path, OTHER).run()
    after = world.log.snapshot()
    assert (after.version, after.schema.names, after.partition_columns) == (1, ("name", "day"), ("day",))
    assert (after.metadata.id, len(after.files)) == (before.metadata.id, 0)
    assert after.metadata.configuration == {"delta.enableDeletionVectors": "true", "delta.appendOnly": "false"}
    assert said(world)[0] == "REPLACE TABLE"
    assert world.rows() == []
    world.append({"name": "a", "day": dt.date(2026, 1, 1)})


def test_what_is_not_there_is_not_replaced_but_may_be_created(tmp_path: Path) -> None:
    world = World(table_path(tmp_path))
    with pytest.raises(errors.NotATable):
        Replace(world.path, OTHER).run()
    Replace(world.path, OTHER, or_create=True).run()
    Replace(world.path, NewTable(Struct((Field("z", "long"),))), or_create=True).run()
    assert (world.version, world.log.snapshot().schema.names) == (1, ("z",))
    assert world.info()["operation"] == "CREATE OR REPLACE TABLE"


def test_an_append_only_table_is_not_replaced(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_appendOnly="true")
    with pytest.raises(errors.AppendOnlyTable):
        Replace(world.path, OTHER).run()


def test_of_two_that_create_or_replace_one_table_the_second_fails(tmp_path: Path) -> None:
    world = World(table_path(tmp_path))
    again = Replace(world.path, OTHER, or_create=True)
    with pytest.raises(errors.ProtocolChangedException), at_phase("put", again.run):
        again.run()
    changed = Replace(world.path, NewTable(Struct((Field("z", "long"),))))
    with pytest.raises(errors.ProtocolChangedException, match="replaced by another"), at_phase("put", changed.run):
        Replace(world.path, NewTable(Struct((Field("q", "long"),)))).run()
    assert world.version == 1


# -- beside other writers ----------------------------------------------------------------------------------------------

METADATA: dict[str, Callable[[World], Any]] = {
    "set": lambda w: SetProperties(w.path, {"team": "x"}).run(),
    "unset": lambda w: UnsetProperties(w.path, ["delta.enableDeletionVectors"]).run(),
    "add columns": lambda w: AddColumns(w.path, (NewColumn(Field("y", "long")),)).run(),
    "drop constraint": lambda w: DropConstraint(w.path, "c").run(),
    "replace": lambda w: Replace(w.path, OTHER).run(),
}
PROTOCOL: dict[str, Callable[[World], Any]] = {
    "upgrade": lambda w: UpgradeProtocol(w.path, 3, 7).run(),
    "feature": lambda w: AddFeatureSupport(w.path, "domainMetadata").run(),
    "add constraint": lambda w: AddConstraint(w.path, "d", w.condition("id >= 0")).run(w.engine),
    "vectors on": lambda w: SetProperties(w.path, {"delta.enableDeletionVectors": "true"}).run(),
}
WRITERS: dict[str, Callable[[World], Any]] = {
    "append": lambda w: w.append({"id": 8, "x": 80}),
    "delete": lambda w: w.delete("id = 1"),
    "update": lambda w: w.update("id = 1", x=5),
    "merge": lambda w: w.merge([{"id": 8, "x": 80}], update_all("id", "x"), insert_all("id", "x")),
    "overwrite": lambda w: w.overwrite({"id": 8, "x": 80}),
}


def altered_world(tmp_path: Path, alteration: str) -> World:
    world = legacy(tmp_path) if alteration in PROTOCOL else World(table_path(tmp_path)).create(ROWS)
    if alteration == "drop constraint":
        AddConstraint(world.path, "c", world.condition("id >= 0")).run(world.engine)
    return world


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("alteration", [each for each in (METADATA | PROTOCOL) if each != "drop constraint"])
def test_every_writer_on_the_way_fails(tmp_path: Path, alteration: str, writer: str) -> None:
    world = altered_world(tmp_path, alteration)
    kind = errors.ProtocolChangedException if alteration in PROTOCOL else errors.MetadataChangedException
    with pytest.raises(kind), at_phase("staged", lambda: (METADATA | PROTOCOL)[alteration](world)):
        WRITERS[writer](world)
    assert world.version == 1


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("alteration", [each for each in (METADATA | PROTOCOL) if each != "drop constraint"])
def test_no_change_lands_behind_a_writer_that_it_has_not_seen(tmp_path: Path, alteration: str, writer: str) -> None:
    world = altered_world(tmp_path, alteration)
    with (
        pytest.raises(errors.DeltaConcurrentModificationException) as lost,
        at_phase("staged", lambda: WRITERS[writer](world)),
    ):
        (METADATA | PROTOCOL)[alteration](world)
    assert world.version == 1
    if alteration in ("upgrade", "feature"):
        assert type(lost.value) is errors.ProtocolChangedException
    if alteration in ("set", "add columns", "vectors on"):
        assert type(lost.value) is errors.MetadataChangedException


@pytest.mark.parametrize("second", METADATA)
def test_two_changes_of_the_metadata_conflict(tmp_path: Path, second: str) -> None:
    world = altered_world(tmp_path, second)
    before = world.version
    with (
        pytest.raises(errors.MetadataChangedException),
        at_phase("staged", lambda: SetProperties(world.path, {"other": "1"}).run()),
    ):
        METADATA[second](world)
    assert world.version == before + 1


# -- the doors ---------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_doors_on_spark(spark: Any, tmp_path: Path) -> None:
    session, path = anabranch.install(spark), str(tmp_path / "t")
    rows = session.range(3)
    rows.write.format("delta").option("delta.enableDeletionVectors", "false").save(path)
    table = DeltaTable.forPath(session, path)
    table.upgradeTableProtocol(1, 4)
    table.addFeatureSupport("deletionVectors")
    detail = table.detail().first()
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (3, 7)
    assert {"deletionVectors", "generatedColumns"} <= set(detail["tableFeatures"])
    with pytest.raises(errors.UnsupportedFeature, match="catalogManaged"):
        table.addFeatureSupport("catalogManaged")
    for wrong in (lambda: table.upgradeTableProtocol("3", 7), lambda: table.addFeatureSupport(1)):  # type: ignore[arg-type]
        with pytest.raises(errors.InvalidOption):
            wrong()
    builder = DeltaTable.replace(session).location(path).addColumn("name", "STRING").comment("new")
    assert builder.execute().toDF().columns == ["name"]
    DeltaTable.createOrReplace(session).location(path).addColumn("z", "INT").execute()
    assert session.read.format("delta").load(path).columns == ["z"]
    assert session.read.format("delta").option("versionAsOf", 0).load(path).count() == 3
    operations = [each["operation"] for each in anabranch.history(path)]
    assert operations[:4] == ["CREATE OR REPLACE TABLE", "REPLACE TABLE", "SET TBLPROPERTIES", "UPGRADE PROTOCOL"]
    with pytest.raises(errors.NotATable):
        DeltaTable.replace(session).location(str(tmp_path / "none")).addColumn("z", "INT").execute()


@pytest.mark.spark
def test_a_constraint_is_checked_by_spark(spark: Any, tmp_path: Path) -> None:
    from anabranch._spark.engine import SparkEngine
    from anabranch._sql.conditions import resolve_condition

    session, path = anabranch.install(spark), str(tmp_path / "t")
    anabranch.append(path, [{"id": i} for i in range(10)])
    engine, snapshot = SparkEngine(session), World(path).log.snapshot()
    with pytest.raises(errors.ConstraintNotMet) as refused:
        AddConstraint(path, "c", resolve_condition("id % 3 = 0 AND length(string(id)) = 1", snapshot, engine)).run(
            engine
        )
    assert (refused.value.count, refused.value.rows) == (6, 10)
    assert AddConstraint(path, "c", resolve_condition("id % 3 < 3", snapshot, engine)).run(engine) is not None


# -- the policy of checkpoints -----------------------------------------------------------------------------------------


def test_the_policy_v2_lists_its_feature_and_another_value_is_refused(tmp_path: Path) -> None:
    world = legacy(tmp_path)
    SetProperties(world.path, {"delta.checkpointPolicy": "v2"}).run()
    protocol = world.log.snapshot().protocol
    assert protocol.reader_features == {"v2Checkpoint"}
    assert "v2Checkpoint" in (protocol.writer_features or ())
    with pytest.raises(errors.InvalidProperty):
        SetProperties(world.path, {"delta.checkpointPolicy": "v3"}).run()
