"""CREATE TABLE: one creates, the others are told."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anabranch import errors
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.dml.new_table import NewTable
from anabranch.testing import at_phase
from tests.support.raw_logs import listing
from tests.support.worlds import World

SCHEMA = Struct((Field("id", "long", nullable=False), Field("x", "long")))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "t"))


def create(world: World, *, if_not_exists: bool = False, **new: object) -> object:
    return Create(world.path, NewTable(SCHEMA, **new), if_not_exists).run()  # type: ignore[arg-type]


def test_a_table_is_created_empty_with_all_that_was_asked_for(world: World) -> None:
    create(world, partition_columns=("x",), properties={"owner": "me"}, name="n", description="d")
    snapshot = world.log.snapshot()
    assert (snapshot.version, snapshot.schema, snapshot.partition_columns) == (0, SCHEMA, ("x",))
    assert (snapshot.metadata.name, snapshot.metadata.description) == ("n", "d")
    assert snapshot.metadata.configuration == {"delta.enableDeletionVectors": "true", "owner": "me"}
    assert world.info()["operation"] == "CREATE TABLE"
    world.assert_clean()


def test_the_history_shows_how_a_new_table_is_laid_out(world: World) -> None:
    create(world, cluster_by=(("x",), ("id",)), properties={"owner": "me"})
    said = world.info()["operationParameters"]
    assert (said["clusterBy"], said["partitionBy"]) == ('["x","id"]', "[]")
    assert (json.loads(said["properties"])["owner"], said["isManaged"]) == ("me", "false")


def test_vectors_are_on_unless_the_properties_say_otherwise(world: World) -> None:
    create(world, properties={"delta.enableDeletionVectors": "false"})
    assert not world.log.snapshot().properties.vectors
    assert world.log.snapshot().protocol.min_reader == 1


def test_a_table_that_is_there_is_left_alone(world: World) -> None:
    create(world)
    before = listing(world.path)
    with pytest.raises(errors.TableAlreadyExists):
        create(world)
    assert create(world, if_not_exists=True) is None
    assert listing(world.path) == before


@pytest.mark.parametrize("name", ["part-0.parquet", "p=1/part-0.parquet"])
@pytest.mark.parametrize("statement", ["create", "if not exists", "create or replace"])
def test_no_table_is_made_where_files_of_somebody_else_lie(world: World, statement: str, name: str) -> None:
    """VACUUM of such a table would remove them."""
    file = Path(world.path, name)
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    new = NewTable(SCHEMA)
    is_replace, is_lenient = statement == "create or replace", statement == "if not exists"
    command = Replace(world.path, new, or_create=True) if is_replace else Create(world.path, new, is_lenient)
    with pytest.raises(errors.LocationNotEmpty) as refused:
        command.run()
    assert refused.value.facts["found"] == name
    assert listing(world.path) == {name: 1}


def test_a_folder_that_has_an_empty_log_only_may_become_a_table(world: World) -> None:
    Path(world.path, "_delta_log").mkdir(parents=True)
    Path(world.path, "_delta_log", "_commits").mkdir()
    create(world)
    assert world.version == 0


@pytest.mark.parametrize("if_not_exists", [True, False])
def test_the_loser_of_a_race_is_told(world: World, if_not_exists: bool) -> None:
    """The documented behaviour: several writers creating one table."""
    with pytest.raises(errors.ProtocolChangedException) as refused, at_phase("staged", lambda: create(world)):
        create(world, if_not_exists=if_not_exists)
    assert refused.value.retryable
    assert refused.value.winner_operation == "CREATE TABLE"
    assert world.version == 0


def test_of_many_who_create_at_once_one_wins(world: World) -> None:
    def attempt(_: int) -> str:
        try:
            create(world)
        except (errors.ProtocolChangedException, errors.TableAlreadyExists) as refused:
            return type(refused).__name__
        return "created"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(16)))
    assert outcomes.count("created") == 1
    assert world.version == 0


@pytest.mark.parametrize(
    "properties", [{"delta.typo": "1"}, {"delta.checkpointInterval": "0"}, {"delta.enableVariantShredding": "true"}]
)
def test_a_property_that_is_not_honoured_creates_nothing(world: World, properties: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidProperty):
        create(world, properties=properties)
    assert not Path(world.path).exists()


def test_not_null_is_kept_and_held(world: World) -> None:
    create(world)
    with pytest.raises(errors.NotNullViolated):
        world.append({"x": 1})
    world.append({"id": 1, "x": 1})
    with pytest.raises(errors.NotNullViolated):
        world.update("id = 1", id=None)
    assert world.rows() == [{"id": 1, "x": 1}]
    world.assert_clean()


def test_an_identity_column_cannot_partition_a_table(world: World) -> None:
    numbered = Struct((Field("id", "long", metadata=identity_metadata(1, 1, explicit=False)), Field("v", "long")))
    with pytest.raises(errors.InvalidOption, match="an identity column cannot partition"):
        Create(world.path, NewTable(numbered, ("id",))).run()
    assert not listing(world.path)
