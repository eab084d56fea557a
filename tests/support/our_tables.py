"""Tables that we make, one for each feature of the protocol that we write; each has a column ``id``."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

import pyarrow as pa

import anabranch
from anabranch.commands.alter import AddColumns, AddConstraint, AddFeatureSupport, NewColumn, SetProperties
from anabranch.commands.create import Create
from anabranch.commands.drop_feature import DropFeature
from anabranch.commands.insert import NewTable
from anabranch.protocol.identity import identity_metadata
from anabranch.protocol.rules import DEFAULT, GENERATION
from anabranch.protocol.schema import Field, Struct
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
    anabranch.append(None, world.path, pa.table({"id": [1, 2], "at": pa.array([at, None], pa.timestamp("us"))}))


def _listed(feature: str) -> Callable[[World], None]:
    def make(world: World) -> None:
        world.create(ROWS)
        AddFeatureSupport(world.path, feature).run()
        world.delete("id = 3")

    return make


def _declared(*fields: Field) -> Callable[[World], None]:
    def make(world: World) -> None:
        Create(world.path, NewTable(Struct((Field("id", "long"), *fields)))).run()
        anabranch.append(None, world.path, [{"id": 1}, {"id": 2}])
        world.delete("id = 1")

    return make


def _generated(world: World) -> None:
    twice = Field("twice", "long", metadata={GENERATION: "id * 2"})
    Create(world.path, NewTable(Struct((Field("id", "long"), twice)))).run()


def _not_null(world: World) -> None:
    Create(world.path, NewTable(Struct((Field("id", "long", nullable=False),)))).run()
    anabranch.append(None, world.path, [{"id": 1}])


def _dropped(world: World) -> None:
    _vectors(world)
    DropFeature(world.path, "deletionVectors").run(world.engine)


def _codec(name: str) -> Callable[[World], None]:
    def make(world: World) -> None:
        world.create(ROWS, **{"delta_parquet.compression.codec": name})
        SetProperties(world.path, {"team": "harbour"}).run()

    return make


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
    "files compressed with zstd": _codec("zstd"),
    "files compressed with lz4_raw": _codec("lz4_raw"),
}
