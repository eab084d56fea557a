"""A commit's own time grows with the version, and a table says where such times begin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.in_commit_timestamps import (
    ENABLED,
    SINCE_TIMESTAMP,
    SINCE_VERSION,
    Boundary,
    boundary,
    with_boundary,
)
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.ddl.alter import SetProperties, UnsetProperties
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.identity_values import reserve
from anabranch.commands.dml.new_table import NewTable
from anabranch.errors import InvalidProperty, ProtocolChangedException
from anabranch.testing import at_phase
from tests.support.worlds import World, table_path

ON = {ENABLED: "true"}
ROW = [{"id": 1}]


def at(milliseconds: int) -> Runtime:
    return Runtime(now_ms=lambda: milliseconds)


def stamp_of(world: World, version: int) -> Any:
    return world.info(version).get("inCommitTimestamp")


def kept(snapshot: Snapshot) -> dict[str, str]:
    return {
        key: value for key, value in snapshot.metadata.configuration.items() if "InCommit" in key or "inCommit" in key
    }


@pytest.fixture
def dated(tmp_path: Path) -> World:
    """A table with in-commit timestamps from its first commit, which was made at 1000."""
    world = World(table_path(tmp_path))
    Append(world.path, ROW, properties=ON).run(context=RunContext(runtime=at(1000)))
    return world


@pytest.fixture
def plain(tmp_path: Path) -> World:
    return World(table_path(tmp_path)).create(ROW)


def test_a_new_table_has_them_from_the_beginning_and_says_no_boundary(dated: World) -> None:
    snapshot = dated.log.snapshot()
    assert (stamp_of(dated, 0), snapshot.timestamp) == (1000, 1000)
    assert kept(snapshot) == ON
    assert "inCommitTimestamp" in writer_features(snapshot.protocol)
    assert "inCommitTimestamp" not in (snapshot.protocol.reader_features or ())


def test_the_commit_info_is_the_first_action_and_says_it(dated: World) -> None:
    Append(dated.path, ROW).run(context=RunContext(runtime=at(2000)))
    for version in (0, 1):
        first = (Path(dated.path) / f"_delta_log/{version:020d}.json").read_text().splitlines()[0]
        assert first.startswith('{"commitInfo":')
        assert f'"inCommitTimestamp":{1000 * (version + 1)}' in first


@pytest.mark.parametrize(("now", "stamp"), [(5000, 5000), (1001, 1001), (1000, 1001), (3, 1001)])
def test_it_grows_by_a_millisecond_at_least_whatever_the_clock_shows(dated: World, now: int, stamp: int) -> None:
    Append(dated.path, ROW).run(context=RunContext(runtime=at(now)))
    assert stamp_of(dated, 1) == stamp
    dated.assert_clean()


def test_it_is_made_anew_where_another_commit_came_first(dated: World) -> None:
    with at_phase("put", lambda: Append(dated.path, ROW).run(context=RunContext(runtime=at(9000)))):
        Append(dated.path, ROW).run(context=RunContext(runtime=at(2000)))
    assert [stamp_of(dated, version) for version in (0, 1, 2)] == [1000, 9000, 9001]


def test_a_change_that_is_carried_over_is_later_than_what_it_was_carried_over(dated: World) -> None:
    with at_phase(
        "put", lambda: [Append(dated.path, [{"id": 7}]).run(context=RunContext(runtime=at(t))) for t in (8000, 9000)]
    ):
        dated.delete("id = 1")
    assert stamp_of(dated, 3) > stamp_of(dated, 2) > stamp_of(dated, 1)


def test_enabling_adds_the_feature_and_says_from_where(plain: World) -> None:
    before = plain.log.snapshot()
    assert "inCommitTimestamp" not in writer_features(before.protocol)
    SetProperties(plain.path, ON).run(context=RunContext(runtime=at(before.timestamp + 50)))
    after = plain.log.snapshot()
    assert stamp_of(plain, 1) == before.timestamp + 50
    assert kept(after) == {**ON, SINCE_VERSION: "1", SINCE_TIMESTAMP: str(before.timestamp + 50)}
    assert "inCommitTimestamp" in writer_features(after.protocol)
    plain.assert_clean()


def test_the_first_one_is_later_than_the_file_of_the_commit_before(plain: World) -> None:
    before = plain.log.snapshot()
    SetProperties(plain.path, ON).run(context=RunContext(runtime=at(5)))
    assert stamp_of(plain, 1) == before.timestamp + 1


def test_the_boundary_moves_with_the_commit_that_sets_it(tmp_path: Path) -> None:
    """Only a reservation of identity values lets a change of metadata pass behind it."""
    path, number = table_path(tmp_path), identity_metadata(1, 1, explicit=False)
    Create(path, NewTable(Struct((Field("id", "long"), Field("n", "long", metadata=number))))).run()
    world = World(path)
    with at_phase("put", lambda: reserve(world.log, ["n"], 5, "w", Runtime())):
        SetProperties(path, ON).run()
    assert world.version == 2
    assert kept(world.log.snapshot()) == {**ON, SINCE_VERSION: "2", SINCE_TIMESTAMP: str(stamp_of(world, 2))}
    assert stamp_of(world, 1) is None


def test_a_writer_that_has_not_seen_it_enabled_does_not_commit(plain: World) -> None:
    with at_phase("put", lambda: SetProperties(plain.path, ON).run()), pytest.raises(ProtocolChangedException):
        plain.append({"id": 2})


def test_later_changes_of_properties_keep_the_boundary(plain: World) -> None:
    SetProperties(plain.path, ON).run()
    said = kept(plain.log.snapshot())
    SetProperties(plain.path, {"team": "harbour"}).run()
    UnsetProperties(plain.path, (SINCE_VERSION, "team")).run()
    assert kept(plain.log.snapshot()) == said


def test_a_replaced_table_keeps_the_boundary_where_it_goes_on(plain: World) -> None:
    SetProperties(plain.path, ON).run()
    said = kept(plain.log.snapshot())
    Replace(plain.path, NewTable(Struct((Field("id", "long"),)), properties=ON)).run()
    assert kept(plain.log.snapshot()) == said


@pytest.mark.parametrize(
    "disable",
    [lambda path: SetProperties(path, {ENABLED: "false"}).run(), lambda path: UnsetProperties(path, (ENABLED,)).run()],
)
def test_disabling_forgets_the_boundary_and_enabling_again_sets_a_new_one(plain: World, disable: Any) -> None:
    SetProperties(plain.path, ON).run()
    disable(plain.path)
    assert stamp_of(plain, 2) is None
    assert set(kept(plain.log.snapshot())) <= {ENABLED}
    plain.append({"id": 2})
    assert stamp_of(plain, 3) is None
    SetProperties(plain.path, ON).run()
    assert kept(plain.log.snapshot())[SINCE_VERSION] == "4"
    plain.assert_clean()


@pytest.mark.parametrize("key", [SINCE_VERSION, SINCE_TIMESTAMP])
def test_nobody_sets_the_boundary_by_hand(plain: World, key: str) -> None:
    with pytest.raises(InvalidProperty, match="no user sets it"):
        SetProperties(plain.path, {key: "1"}).run()


def test_a_boundary_that_is_not_whole_is_refused(plain: World) -> None:
    metadata = plain.log.snapshot().metadata
    for wrong in ({SINCE_VERSION: "3"}, {SINCE_VERSION: "3", SINCE_TIMESTAMP: "soon"}):
        with pytest.raises(InvalidProperty, match="CommitTimestampEnablement"):
            boundary(replace(metadata, configuration={**ON, **wrong}))
    whole = replace(metadata, configuration={**ON, SINCE_VERSION: "3", SINCE_TIMESTAMP: "77"})
    assert boundary(whole) == Boundary(3, 77)
    assert with_boundary(whole, whole, version=9, timestamp=99) is whole
    assert boundary(metadata) is None


def test_what_another_engine_left_of_a_boundary_stays_while_there_is_none(plain: World) -> None:
    """Else a reservation of identity values would change more than its marks."""
    left = replace(plain.log.snapshot().metadata, configuration={SINCE_VERSION: "3", SINCE_TIMESTAMP: "77"})
    assert with_boundary(left, left, version=9, timestamp=None) is left
    began = with_boundary(replace(left, configuration={**left.configuration, **ON}), left, version=9, timestamp=99)
    assert boundary(began) == Boundary(9, 99)
