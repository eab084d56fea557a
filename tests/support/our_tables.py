"""Tables that we make, one for each feature of the protocol that we write; each has a column ``id``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

import pyarrow as pa

import anabranch
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import AddColumns, NewColumn, SetProperties
from anabranch.commands.ddl.alter_protocol import AddFeatureSupport
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.ddl.create import Create
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.commands.ddl.rename_and_drop_columns import RenameColumn
from anabranch.commands.dml.new_table import NewTable
from tests.support.changes import ROWS
from tests.support.worlds import World

OFF = {"delta_enableDeletionVectors": "false"}


def _plain(world: World) -> None:
    world.create(ROWS, **OFF).update("id = 3", x=9.0)


def _partitions(world: World) -> None:
    world.create([*ROWS, {"id": 50, "day": "a b/%=", "x": 1.0}], partition_by=("day",), **OFF).delete("id = 3")


def _vectors(world: World) -> None:
    world.create(ROWS).delete("id IN (3, 4)")
    world.update("id = 5", x=9.0)


def _checkpoint(world: World) -> None:
    world.create(ROWS, delta_checkpointInterval="2").delete("id = 3")
    world.append({"id": 60, "day": None, "x": None})


def _more_columns(world: World) -> None:
    world.create(ROWS)
    AddColumns(world.path, [NewColumn(Field("gate", "string"), first=True)]).run()
    world.append({"id": 60, "day": "d", "x": 1.0, "gate": "A1"})


def _constraint(world: World) -> None:
    world.create(ROWS, **OFF)
    AddConstraint(world.path, "small", world.condition("id < 1000")).run(world.engine)
    world.delete("id = 3")


def _append_only(world: World) -> None:
    world.create(ROWS, delta_appendOnly="true")
    world.append({"id": 60, "day": "d", "x": 1.0})


def _ntz(world: World) -> None:
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 678901)
    anabranch.append(world.path, pa.table({"id": [1, 2], "at": pa.array([at, None], pa.timestamp("us"))}))


def _listed(feature: str) -> Callable[[World], None]:
    def make(world: World) -> None:
        world.create(ROWS)
        AddFeatureSupport(world.path, feature).run()
        world.delete("id = 3")

    return make


def _declared(*fields: Field) -> Callable[[World], None]:
    def make(world: World) -> None:
        Create(world.path, NewTable(Struct((Field("id", "long"), *fields)))).run()
        anabranch.append(world.path, [{"id": 1}, {"id": 2}])
        world.delete("id = 1")

    return make


def _generated(world: World) -> None:
    twice = Field("twice", "long", metadata={GENERATION: "id * 2"})
    Create(world.path, NewTable(Struct((Field("id", "long"), twice)))).run()


def _not_null(world: World) -> None:
    Create(world.path, NewTable(Struct((Field("id", "long", nullable=False),)))).run()
    anabranch.append(world.path, [{"id": 1}])


def _dropped(world: World) -> None:
    _vectors(world)
    DropFeature(world.path, "deletionVectors").run(world.engine)


def _codec(name: str) -> Callable[[World], None]:
    def make(world: World) -> None:
        world.create(ROWS, **{"delta_parquet.compression.codec": name})
        SetProperties(world.path, {"team": "harbour"}).run()

    return make


def _changed(also: Callable[[World], object] | None = None, **properties: str) -> Callable[[World], None]:
    """A table with these properties to which every verb is done."""

    def make(world: World) -> None:
        world.create(ROWS, **properties)
        if also is not None:
            also(world)
        world.update("id = 5", day="changed")
        world.delete("id = 3")
        world.merge([{"id": 4, "day": "merged"}, {"id": 70, "day": "new"}])
        world.append({"id": 71, "day": "last"})

    return make


def _renamed(world: World) -> None:
    RenameColumn(world.path, ("x",), "y z,=").run()


def _widened(world: World) -> None:
    AddColumns(world.path, [NewColumn(Field("small", "integer"))]).run()
    world.append({"id": 80, "day": "d", "small": 7})
    ChangeColumn(world.path, ("small",), type="long").run()


def _materialised(world: World) -> None:
    world.create(ROWS, partition_by=("day",), **{"delta_feature.materializePartitionColumns": "supported"})
    world.update("id = 5", day="changed")
    world.delete("id = 3")
    world.append({"id": 71, "day": "last"})


def _clustered(world: World) -> None:
    world.create(ROWS, cluster_by=("id",)).delete("id = 3")


def _both(world: World) -> None:
    _renamed(world)
    _widened(world)


MAPPED = {"delta_columnMapping.mode": "name"}
TRACKED = {"delta_enableRowTracking": "true"}
TIMED = {"delta_enableInCommitTimestamps": "true"}
V2 = {"delta_checkpointPolicy": "v2", "delta_checkpointInterval": "2"}
WIDER = {"delta_enableTypeWidening": "true"}

OURS: Mapping[str, Callable[[World], None]] = {
    "no feature": _plain,
    "partitions": _partitions,
    "`deletionVectors`": _vectors,
    "a checkpoint": _checkpoint,
    "columns that were added": _more_columns,
    "`checkConstraints`": _constraint,
    "`invariants`: NOT NULL": _not_null,
    "`appendOnly`": _append_only,
    "`timestampNtz`": _ntz,
    "`allowColumnDefaults`": _declared(Field("x", "long", metadata={DEFAULT: "5"})),
    "`identityColumns`": _declared(Field("n", "long", metadata=identity_metadata(10, 5, explicit=False))),
    "`generatedColumns`": _generated,
    "`domainMetadata`": _listed("domainMetadata"),
    "`vacuumProtocolCheck`": _listed("vacuumProtocolCheck"),
    "`checkpointProtection`: vectors were dropped": _dropped,
    "`columnMapping`": _changed(_renamed, **MAPPED),
    "`columnMapping` (id)": _changed(_renamed, **{"delta_columnMapping.mode": "id"}),
    "`rowTracking`": _changed(**TRACKED),
    "`inCommitTimestamp`": _changed(**TIMED),
    "`v2Checkpoint`": _changed(**V2),
    "`clustering`": _clustered,
    "`typeWidening`": _changed(_widened, **WIDER),
    "`materializePartitionColumns`": _materialised,
    "`icebergCompatV2`": _changed(delta_enableIcebergCompatV2="true", **OFF),
    "`icebergCompatV3`": _changed(delta_enableIcebergCompatV3="true"),
    "mapping, row tracking, timestamps, V2 and wider types at once": _changed(
        _both, **MAPPED, **TRACKED, **TIMED, **V2, **WIDER
    ),
    "files compressed with zstd": _codec("zstd"),
    "files compressed with lz4_raw": _codec("lz4_raw"),
}
