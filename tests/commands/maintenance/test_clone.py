"""A table becomes another one, which names its files or copies them; neither ever notices what becomes of the other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest

import anabranch
from anabranch import errors
from anabranch._log.file_locations import locate_in_store
from anabranch._log.log import forget
from anabranch._log.vectors import vector_of
from anabranch._protocol.actions import AppTransaction
from anabranch._protocol.layout.paths import is_absolute
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.schema.types import Field, Struct
from anabranch._storage import open_store
from anabranch._storage.open import mounted
from anabranch._transaction.commit import CommitResult
from anabranch.commands.ddl.add_constraint import AddConstraint
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Create
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.idempotence import application
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.clone import Clone
from anabranch.commands.opening import open_log
from anabranch.testing import DictStore, ObservedStore, at_phase
from tests.support.changes import ROWS
from tests.support.golden import DAT, KERNEL, MISSING
from tests.support.our_tables import OURS
from tests.support.raw_logs import PROTOCOL, info, listing, metadata, put_commit, put_rows
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World, assert_others_agree

both = pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A table with partitions, several files, and rows deleted in two of them."""
    world = World(str(tmp_path_factory.mktemp("made") / "t"))
    world.create([{"id": i, "day": f"d {i % 2}/%", "x": float(i)} for i in range(10)], partition_by=("day",))
    world.append({"id": 10, "day": None, "x": 1.0})
    world.delete("id IN (3, 4)")
    return world


@pytest.fixture
def origin(made: World, tmp_path: Path) -> World:
    """A copy of it at a path that is hard to spell."""
    return World(shutil.copytree(made.path, str(tmp_path / "an origin é 50%")))


@pytest.fixture
def target(tmp_path: Path) -> World:
    return World(str(tmp_path / "the clone ü #1"))


def clone(origin: World, target: World, shallow: bool, **more: Any) -> CommitResult:
    return Clone(origin.path, target.path, shallow, **more).run()


def metrics(world: World) -> dict[str, int]:
    return {name: int(value) for name, value in world.info()["operationMetrics"].items()}


def files(world: World) -> list[dict[str, Any]]:
    return list(world.log.snapshot().files.to_pylist())


def assert_sound(world: World) -> None:
    """At every version; other engines are asked where they can read files outside a table's folder."""
    for version in range(world.version + 1):
        report = check(world.log.snapshot(version), deep=True)
        assert report.is_clean, str(report)


# -- what comes out ----------------------------------------------------------------------------------------------------


@both
def test_a_clone_has_the_rows_of_its_source(origin: World, target: World, shallow: bool) -> None:
    before = listing(origin.path)
    assert clone(origin, target, shallow).version == 0
    assert target.rows() == origin.rows()
    assert listing(origin.path) == before
    assert_sound(target)


def test_a_shallow_clone_holds_nothing_but_a_log(origin: World, target: World) -> None:
    clone(origin, target, True)
    assert all(name.startswith("_delta_log/") for name in listing(target.path))
    assert all(is_absolute(row["path"]) for row in files(target))


@pytest.mark.slow
def test_a_deep_clone_needs_its_source_no_more(origin: World, target: World) -> None:
    import shutil

    expected = origin.rows()
    clone(origin, target, False)
    shutil.rmtree(origin.path)
    forget()
    assert target.rows() == expected
    target.assert_clean()


@pytest.mark.slow
@both
@pytest.mark.parametrize("feature", OURS)
def test_a_table_of_any_feature_is_cloned(tmp_path: Path, feature: str, shallow: bool) -> None:
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    OURS[feature](origin)
    clone(origin, target, shallow)
    assert same_rows(target.rows(), origin.rows())
    old, new = origin.log.snapshot(), target.log.snapshot()
    assert (new.schema, new.partition_columns) == (old.schema, old.partition_columns)
    assert (new.protocol, new.clustering_columns) == (old.protocol, old.clustering_columns)
    assert new.metadata.id != old.metadata.id
    anabranch.append(target.path, [{"id": 900}]) if "generated" not in feature else None
    target.delete("id = 5") if "append" not in feature else None
    assert_sound(target)


@both
def test_the_commit_says_what_was_done(origin: World, target: World, shallow: bool) -> None:
    clone(origin, target, shallow, properties={"owner": "me"})
    info, size = target.info(0), sum(row["size"] for row in files(origin))
    assert (info["operation"], info["isBlindAppend"]) == ("CLONE", False)
    assert info["operationParameters"] == {
        "source": f"delta.`file://{origin.path}`",
        "sourceVersion": str(origin.version),
        "isShallow": str(shallow).lower(),
        "properties": '{"owner":"me"}',
    }
    assert metrics(target) == {
        "sourceTableSize": size,
        "sourceNumOfFiles": 3,
        "numRemovedFiles": 0,
        "numCopiedFiles": 0 if shallow else 3,
        "removedFilesSize": 0,
        "copiedFilesSize": 0 if shallow else size,
    }


@both
def test_an_older_version_or_a_moment_is_cloned(origin: World, tmp_path: Path, shallow: bool) -> None:
    at = [origin.log.snapshot(version).timestamp for version in range(3)]
    assert at[0] < at[1] < at[2]
    moment = f"{at[1] // 1000}"
    for name, when in (("v", {"version": 1}), ("p", {})):
        target = World(str(tmp_path / name))
        source = origin.path if when else f"{origin.path}@v1"
        Clone(source, target.path, shallow, **when).run()
        assert target.rows() == origin.rows(1)
        assert target.info()["operationParameters"]["sourceVersion"] == "1"
    assert moment
    with pytest.raises(errors.VersionNotFound):
        Clone(origin.path, str(tmp_path / "x"), shallow, version=9).run()
    with pytest.raises(errors.TimestampBeforeEarliestCommit):
        Clone(origin.path, str(tmp_path / "x"), shallow, timestamp="2001-01-01").run()
    assert not (tmp_path / "x").exists()


@both
def test_properties_of_the_source_stay_and_those_asked_for_count_more(
    origin: World, target: World, shallow: bool
) -> None:
    SetProperties(origin.path, {"team": "a", "delta.isolationLevel": "Serializable"}).run()
    clone(origin, target, shallow, properties={"team": "b", "delta.appendOnly": "true"})
    known = target.log.snapshot().metadata.configuration
    assert known["delta.isolationLevel"] == "Serializable"
    assert (known["team"], known["delta.appendOnly"]) == ("b", "true")
    assert origin.log.snapshot().metadata.configuration["team"] == "a"


def test_what_speaks_of_the_source_s_own_versions_is_left_there(tmp_path: Path) -> None:
    origin, target = World(str(tmp_path / "o")).create(ROWS), World(str(tmp_path / "t"))
    SetProperties(origin.path, {"delta.enableInCommitTimestamps": "true"}).run()
    assert "delta.inCommitTimestampEnablementVersion" in origin.log.snapshot().metadata.configuration
    clone(origin, target, True)
    assert "delta.inCommitTimestampEnablementVersion" not in target.log.snapshot().metadata.configuration
    assert target.info()["inCommitTimestamp"]
    assert_sound(target)


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"delta.constraints.c": "id > 100"}, errors.InvalidProperty),
        ({"delta.columnMapping.mode": "name"}, errors.InvalidProperty),
        ({"delta.enableIcebergCompatV2": "true"}, errors.InvalidProperty),
        ({"delta.appendOnly": "maybe"}, errors.InvalidProperty),
        ({"delta.feature.nosuch": "supported"}, errors.UnsupportedFeature),
    ],
)
@both
def test_properties_that_the_files_do_not_keep_are_refused(
    origin: World, target: World, shallow: bool, properties: dict[str, str], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        clone(origin, target, shallow, properties=properties)
    assert not target.log.exists()
    assert listing(target.path) == {}


def test_a_deep_clone_knows_how_far_applications_have_written(tmp_path: Path) -> None:
    """So that a stream may go on there where it left the source."""
    origin = World(str(tmp_path / "o")).create(ROWS)
    Append(origin.path, [{"id": 100}], txn=application("a stream", 7)).run()
    for shallow, known in ((False, {"a stream": 7}), (True, {})):
        target = World(str(tmp_path / f"t{shallow}"))
        clone(origin, target, shallow)
        apps: dict[str, AppTransaction] = dict(target.log.snapshot().state.app_transactions)
        assert {name: each.version for name, each in apps.items()} == known


@pytest.mark.slow
@both
def test_rows_keep_their_ids(tmp_path: Path, shallow: bool) -> None:
    """Moved rows bring theirs along in hidden columns, so that new ones for the others could be the same."""
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    origin.create(ROWS, delta_enableRowTracking="true").update("id = 3", x=9.0)
    origin.append({"id": 50})
    clone(origin, target, shallow)
    assert [row["baseRowId"] for row in files(target)] == [row["baseRowId"] for row in files(origin)]
    target.append({"id": 51})
    target.update("id < 3", x=8.0)
    assert_sound(target)
    ids = [row["baseRowId"] for row in files(target)]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
@both
def test_rows_of_a_source_without_ids_get_some_where_the_clone_is_to_track_them(
    origin: World, target: World, shallow: bool
) -> None:
    clone(origin, target, shallow, properties={"delta.enableRowTracking": "true"})
    assert None not in [row["baseRowId"] for row in files(target)]
    target.update("id = 1", x=8.0)
    assert_sound(target)


@both
def test_identity_values_go_on_behind_those_of_the_source(tmp_path: Path, shallow: bool) -> None:
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    numbered = Field("n", "long", metadata=identity_metadata(10, 5, explicit=False))
    Create(origin.path, NewTable(Struct((Field("id", "long"), numbered)))).run()
    origin.append({"id": 1}, {"id": 2})
    clone(origin, target, shallow)
    target.append({"id": 3})
    assert sorted(row["n"] for row in target.rows())[:2] == [10, 15]
    assert sorted(row["n"] for row in target.rows())[2] > 15


# -- two tables --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@both
def test_what_becomes_of_the_clone_does_not_touch_the_source(origin: World, target: World, shallow: bool) -> None:
    clone(origin, target, shallow)
    before, rows = listing(origin.path), origin.rows()
    target.delete("id = 0")
    target.update("id = 1", x=-1.0)
    target.merge([{"id": 2, "x": -2.0}, {"id": 20, "day": "new", "x": 0.0}])
    target.append({"id": 21})
    expected = [
        (1, -1.0),
        (2, -2.0),
        (5, 5.0),
        (6, 6.0),
        (7, 7.0),
        (8, 8.0),
        (9, 9.0),
        (10, 1.0),
        (20, 0.0),
        (21, None),
    ]
    assert [(row["id"], row["x"]) for row in target.rows()] == expected
    assert_sound(target)
    target.delete()
    assert target.rows() == []
    assert_sound(target)
    assert (listing(origin.path), origin.rows()) == (before, rows)


def test_marks_of_a_shallow_clone_lie_in_its_own_folder(origin: World, target: World) -> None:
    clone(origin, target, True)
    target.delete("id IN (0, 1)")
    kinds = {row["deletionVector"]["storageType"] for row in files(target) if row["deletionVector"]}
    assert kinds == {"u"}
    assert [name for name in listing(target.path) if name.endswith(".bin")]


@pytest.mark.slow
def test_without_vectors_a_shallow_clone_rewrites_into_its_own_folder(origin: World, target: World) -> None:
    clone(origin, target, True, properties={"delta.enableDeletionVectors": "false"})
    before = listing(origin.path)
    target.delete("id = 0")
    assert 0 not in [row["id"] for row in target.rows()]
    assert_sound(target)
    assert listing(origin.path) == before


@pytest.mark.slow
@both
def test_what_becomes_of_the_source_does_not_reach_the_clone(origin: World, target: World, shallow: bool) -> None:
    clone(origin, target, shallow)
    rows = target.rows()
    origin.delete("id < 5")
    origin.update("id = 6", x=-1.0)
    origin.overwrite({"id": 1, "day": None, "x": 1.0})
    forget()
    assert target.rows() == rows


@pytest.mark.slow
@both
def test_a_clone_of_a_clone_has_the_same_rows(origin: World, target: World, tmp_path: Path, shallow: bool) -> None:
    """A path that is absolute already stays as it is, wherever the table lies that says it."""
    clone(origin, target, True)
    target.delete("id = 0")
    target.append({"id": 30})
    third = World(str(tmp_path / "third"))
    clone(target, third, shallow)
    assert third.rows() == target.rows()
    assert_sound(third)
    inside = [row["path"] for row in files(third) if target.path in unquote(row["path"])]
    assert len(inside) == (1 if shallow else 0)


@pytest.mark.slow
@both
def test_a_clone_onto_its_own_origin_is_that_table_again(origin: World, target: World, shallow: bool) -> None:
    """Files that lie in the table's own folder are named as such: nobody else keeps them alive."""
    clone(origin, target, True)
    target.append({"id": 30})
    expected = target.rows()
    clone(target, origin, shallow, replace=True)
    assert origin.rows() == expected
    assert_sound(origin)
    inside = [row["path"] for row in files(origin) if origin.path in unquote(row["path"])]
    assert inside == []


# -- again -------------------------------------------------------------------------------------------------------------


@both
def test_a_second_clone_of_the_same_version_copies_nothing(origin: World, target: World, shallow: bool) -> None:
    clone(origin, target, shallow)
    before, live = listing(target.path), files(target)
    clone(origin, target, shallow, replace=True)
    found = metrics(target)
    assert (found["numCopiedFiles"], found["numRemovedFiles"]) == (0, 0)
    assert files(target) == live
    assert {name for name in set(listing(target.path)) - set(before) if not name.startswith("_delta_log")} == set()


@pytest.mark.slow
@both
def test_a_later_clone_brings_what_is_new_and_takes_away_what_is_gone(
    origin: World, target: World, shallow: bool
) -> None:
    clone(origin, target, shallow)
    origin.append({"id": 40, "day": "later", "x": 4.0})
    origin.delete("day IS NULL")
    clone(origin, target, shallow, replace=True)
    assert target.rows() == origin.rows()
    found = metrics(target)
    assert (found["numCopiedFiles"], found["numRemovedFiles"]) == (0 if shallow else 1, 1)
    assert target.rows(0) == origin.rows(2)
    assert_sound(target)


@pytest.mark.slow
@both
def test_marks_of_the_source_come_without_their_files(origin: World, target: World, shallow: bool) -> None:
    clone(origin, target, shallow)
    origin.delete("id = 6")
    clone(origin, target, shallow, replace=True)
    assert target.rows() == origin.rows()
    assert metrics(target)["numCopiedFiles"] == 0
    assert_sound(target)


@pytest.mark.slow
def test_ids_that_the_source_gave_its_rows_since_come_with_the_next_deep_clone(origin: World, target: World) -> None:
    """The files are the same, and what the log says of them is not."""
    clone(origin, target, False)
    SetProperties(origin.path, {"delta.enableRowTracking": "true"}).run()
    clone(origin, target, False, replace=True)
    given = {row["size"]: row["baseRowId"] for row in files(origin)}
    assert {row["size"]: row["baseRowId"] for row in files(target)} == given
    assert target.rows() == origin.rows()
    target.update("id = 7", x=-1.0)
    assert_sound(target)


def test_a_shallow_clone_whose_files_got_ids_since_is_to_be_made_elsewhere(origin: World, target: World) -> None:
    """One commit may not remove and add one file with one vector."""
    clone(origin, target, True)
    SetProperties(origin.path, {"delta.enableRowTracking": "true"}).run()
    with pytest.raises(errors.CloneRefused, match="first row id"):
        clone(origin, target, True, replace=True)
    assert target.version == 0


def test_files_that_get_ids_in_a_clone_tell_the_version_that_gave_them(origin: World, target: World) -> None:
    target.create([{"id": 1}])
    target.append({"id": 2})
    clone(origin, target, True, replace=True, properties={"delta.enableRowTracking": "true"})
    assert {row["defaultRowCommitVersion"] for row in files(target)} == {target.version} == {2}


@both
def test_files_of_a_clone_behind_a_winner_tell_the_version_at_which_it_stands(
    origin: World, target: World, shallow: bool
) -> None:
    target.create([{"id": 1}], delta_enableRowTracking="true")
    SetProperties(origin.path, {"delta.enableRowTracking": "true"}).run()
    start = info(operation="VACUUM START", operationParameters={"defaultRetentionMillis": 7 * 86_400_000})
    with at_phase("staged", lambda: put_commit(target.path, 1, start)):
        assert clone(origin, target, shallow, replace=True).version == 2
    assert {row["defaultRowCommitVersion"] for row in files(target)} == {2}
    assert [row["baseRowId"] for row in files(target)] == [row["baseRowId"] for row in files(origin)]


@pytest.mark.slow
@both
def test_ids_that_a_clone_gave_meet_none_that_the_source_gives_later(tmp_path: Path, shallow: bool) -> None:
    """Files of a source that lists row tracking, and has not enabled it, may have ids or not."""
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    origin.create([{"id": 1}])
    SetProperties(origin.path, {"delta.feature.rowTracking": "supported"}).run()
    clone(origin, target, shallow)
    origin.append({"id": 2})
    clone(origin, target, shallow, replace=True)
    ids = [row["baseRowId"] for row in files(target)]
    assert len(set(ids)) == len(ids) == 2


@pytest.mark.slow
@both
def test_a_clone_without_rows_gives_no_id_of_its_source_again(tmp_path: Path, shallow: bool) -> None:
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    origin.create([{"id": 1}], delta_enableRowTracking="true").delete()
    clone(origin, target, shallow)
    target.append({"id": 2})
    assert [row["baseRowId"] for row in files(target)] == [1]


@pytest.mark.slow
@both
def test_a_clone_that_gives_no_ids_for_now_gives_none_of_its_source_later(tmp_path: Path, shallow: bool) -> None:
    """Moved rows have theirs in the files, which say it as soon as the clone tracks its rows."""
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    origin.create(ROWS, delta_enableRowTracking="true").update("id = 3", x=9.0)
    off = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    clone(origin, target, shallow, properties=off)
    assert [row["baseRowId"] for row in files(target)] == [None] * len(files(target))
    SetProperties(target.path, {"delta.rowTrackingSuspended": "false"}).run()
    SetProperties(target.path, {"delta.enableRowTracking": "true"}).run()
    assert min(row["baseRowId"] for row in files(target)) > max(row["baseRowId"] for row in files(origin))
    assert_sound(target)


@both
def test_ids_that_only_the_clone_has_stay_with_the_next(origin: World, target: World, shallow: bool) -> None:
    more = {"properties": {"delta.enableRowTracking": "true"}}
    clone(origin, target, shallow, **more)
    before = files(target)
    clone(origin, target, shallow, replace=True, **more)
    assert files(target) == before
    assert_sound(target)


@pytest.mark.slow
@both
@pytest.mark.parametrize("lists_it", [False, True])
def test_files_that_a_clone_keeps_get_ids_once_it_is_to_track_rows(
    origin: World, target: World, shallow: bool, lists_it: bool
) -> None:
    clone(origin, target, shallow)
    kept = {row["path"] for row in files(target)}
    if lists_it:
        SetProperties(origin.path, {"delta.feature.rowTracking": "supported"}).run()
        origin.append({"id": 90})
    clone(origin, target, shallow, replace=True, properties={"delta.enableRowTracking": "true"})
    assert kept <= {row["path"] for row in files(target)}
    ids = [row["baseRowId"] for row in files(target)]
    assert None not in ids
    assert len(set(ids)) == len(ids) == len(kept) + lists_it
    assert {row["defaultRowCommitVersion"] for row in files(target)} == {1}
    assert_sound(target)


@pytest.mark.slow
def test_files_that_a_clone_keeps_are_counted_for_their_ids(origin: World, target: World) -> None:
    clone(origin, target, False)
    without_stats(target)
    clone(origin, target, False, replace=True, properties={"delta.enableRowTracking": "true"})
    report = check(target.log.snapshot(), deep=True)
    assert report.is_clean, str(report)


def without_stats(world: World) -> None:
    """What its first version says of files says nothing of their rows."""
    log = Path(world.path, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    log.write_text("".join(json.dumps(each) + "\n" for each in actions))
    for other in log.parent.glob("*.crc"):
        other.unlink()
    forget()


@pytest.mark.slow
@both
def test_changes_of_the_clone_are_undone_by_the_next(origin: World, target: World, shallow: bool) -> None:
    clone(origin, target, shallow)
    target.delete("id IN (0, 3, 5)")
    target.update("id = 7", x=-1.0)
    target.append({"id": 41})
    clone(origin, target, shallow, replace=True)
    assert target.rows() == origin.rows()
    assert metrics(target)["numCopiedFiles"] == 0
    assert_sound(target)


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_one_kind_of_clone_takes_the_place_of_the_other(origin: World, target: World, first: bool) -> None:
    clone(origin, target, first)
    clone(origin, target, not first, replace=True)
    assert target.rows() == origin.rows()
    assert metrics(target)["numRemovedFiles"] == 3
    assert {is_absolute(row["path"]) for row in files(target)} == {not first}
    assert_sound(target)


@both
def test_any_table_may_be_replaced_and_stays_who_it_is(origin: World, target: World, shallow: bool) -> None:
    target.create([{"other": 1}], cluster_by=("other",))
    before = target.log.snapshot()
    clone(origin, target, shallow, replace=True)
    after = target.log.snapshot()
    assert target.rows() == origin.rows()
    assert (after.metadata.id, after.version) == (before.metadata.id, 1)
    assert after.clustering_columns == ()
    assert (after.protocol.writer_features or frozenset()) >= (before.protocol.writer_features or frozenset())
    assert target.rows(0) == [{"other": 1}]


def test_a_file_that_was_made_anew_at_the_same_path_is_another_one(tmp_path: Path) -> None:
    import shutil

    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    put_commit(origin.path, 0, PROTOCOL, metadata(), put_rows(origin.path, "a.parquet", [{"id": 1, "x": 1}]))
    shallow = World(str(tmp_path / "s"))
    clone(origin, target, False)
    clone(origin, shallow, True)
    shutil.rmtree(origin.path)
    forget()
    made_anew = put_rows(origin.path, "a.parquet", [{"id": 2, "x": 1}], modificationTime=1)
    put_commit(origin.path, 0, PROTOCOL, metadata(), made_anew)
    with pytest.raises(errors.CloneRefused):
        clone(origin, shallow, True, replace=True)
    clone(origin, target, False, replace=True)
    assert target.rows() == [{"id": 2, "x": 1}]


def test_a_copy_is_as_old_as_its_own_file(tmp_path: Path) -> None:
    """A VACUUM goes by the file's time, whatever the clock of the source's writer said."""
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    put_commit(
        origin.path, 0, PROTOCOL, metadata(), put_rows(origin.path, "a.parquet", [{"id": 1}], modificationTime=1)
    )
    clone(origin, target, False)
    [file] = files(target)
    assert file["modificationTime"] == open_store(target.path).head(file["path"]).modified_ms


# -- refused -----------------------------------------------------------------------------------------------------------


@both
def test_a_table_that_is_there_is_left_alone(origin: World, target: World, shallow: bool) -> None:
    target.create([{"id": 1}])
    before = listing(target.path)
    with pytest.raises(errors.TableAlreadyExists):
        clone(origin, target, shallow)
    assert listing(target.path) == before


@both
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("where", [".", "inside", "inside/deeper", "..", "../x/.."])
def test_neither_table_may_lie_in_the_other_s_folder(origin: World, shallow: bool, where: str, replace: bool) -> None:
    before = listing(origin.path)
    with pytest.raises(errors.CloneRefused):
        Clone(origin.path, f"{origin.path}/{where}", shallow, replace=replace).run()
    assert listing(origin.path) == before


def test_a_link_does_not_hide_that_two_paths_are_one_folder(origin: World, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(origin.path)
    with pytest.raises(errors.CloneRefused, match="one folder"):
        Clone(origin.path, str(tmp_path / "link"), False, replace=True).run()


def test_a_path_that_only_begins_alike_is_another_folder(origin: World) -> None:
    target = World(f"{origin.path} 2")
    clone(origin, target, True)
    assert target.rows() == origin.rows()


@both
def test_an_append_only_table_is_not_replaced(origin: World, target: World, shallow: bool) -> None:
    target.create([{"id": 1}], delta_appendOnly="true")
    with pytest.raises(errors.AppendOnlyTable):
        clone(origin, target, shallow, replace=True)
    assert target.rows() == [{"id": 1}]


@both
def test_a_table_of_another_column_mapping_is_not_replaced(origin: World, target: World, shallow: bool) -> None:
    target.create([{"id": 1}], **{"delta_columnMapping.mode": "name"})
    with pytest.raises(errors.CloneRefused, match="column mapping"):
        clone(origin, target, shallow, replace=True)
    assert [name for name in listing(target.path) if name.startswith("job-")] == []


def test_a_source_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.NotATable):
        Clone(str(tmp_path / "none"), str(tmp_path / "t"), True).run()
    assert not (tmp_path / "t").exists()


# -- files that vanish -------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("phase", ["read", "staged"])
def test_a_source_file_that_vanishes_is_named_and_nothing_is_committed(
    origin: World, target: World, shallow: bool, phase: str
) -> None:
    """As by a VACUUM that keeps nothing; once it is copied, a deep clone does not mind."""
    row = files(origin)[0]

    def vanish() -> None:
        store = open_store(origin.path)
        for name in listing(origin.path):
            if name.endswith(".parquet"):
                store.delete(name)

    if phase == "staged" and not shallow:
        expected = origin.rows()
        with at_phase(phase, vanish):
            clone(origin, target, shallow)
        assert target.rows() == expected
        return
    with pytest.raises(errors.MissingDataFile) as refused, at_phase(phase, vanish):
        clone(origin, target, shallow)
    assert refused.value.version == origin.version
    assert row["path"].rpartition("/")[0] or refused.value.file
    assert not target.log.exists()
    assert [name for name in listing(target.path) if name.endswith((".parquet", ".bin"))] == []


@both
def test_a_vector_of_the_source_that_vanishes_stops_the_clone(origin: World, target: World, shallow: bool) -> None:
    store = open_store(origin.path)
    for name in listing(origin.path):
        if name.endswith(".bin"):
            store.delete(name)
    forget()
    with pytest.raises((errors.MissingDataFile, errors.CorruptVector)):
        clone(origin, target, shallow)
    assert not target.log.exists()


@both
def test_a_source_file_of_another_size_stops_the_clone(origin: World, target: World, shallow: bool) -> None:
    name = next(name for name in listing(origin.path) if name.endswith(".parquet"))
    with (Path(origin.path) / name).open("ab") as file:
        file.write(b"x")
    with pytest.raises(errors.MissingDataFile, match=r"has \d+ bytes"):
        clone(origin, target, shallow)
    assert not target.log.exists()


# -- others at work ----------------------------------------------------------------------------------------------------


@both
def test_the_source_is_pinned_to_one_version(origin: World, target: World, shallow: bool) -> None:
    expected = origin.rows()

    def change() -> None:
        origin.delete("id < 8")
        origin.append({"id": 60})

    with at_phase("read", change):
        clone(origin, target, shallow)
    assert target.rows() == expected


@both
def test_of_two_clones_onto_one_path_one_is_told(origin: World, target: World, shallow: bool) -> None:
    with pytest.raises(errors.ProtocolChangedException), at_phase("staged", lambda: clone(origin, target, shallow)):
        clone(origin, target, shallow)
    assert target.version == 0
    assert target.rows() == origin.rows()
    jobs = {name.split("/")[0] for name in listing(target.path) if name.startswith("job-")}
    assert len(jobs) == (0 if shallow else 1)


@both
def test_of_two_clones_in_the_place_of_one_table_one_is_told(origin: World, target: World, shallow: bool) -> None:
    target.create([{"id": 1}])

    def other() -> None:
        clone(origin, target, shallow, replace=True)

    with pytest.raises(errors.ProtocolChangedException), at_phase("staged", other):
        clone(origin, target, shallow, replace=True)
    assert target.version == 1


@both
@pytest.mark.parametrize("verb", ["append", "delete", "set"])
def test_whoever_writes_the_target_meanwhile_stands_in_the_way(
    origin: World, target: World, shallow: bool, verb: str
) -> None:
    target.create([{"id": 1}, {"id": 2}])
    others = {
        "append": lambda: target.append({"id": 3}),
        "delete": lambda: target.delete("id = 1"),
        "set": lambda: SetProperties(target.path, {"a": "b"}).run(),
    }
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", others[verb]):
        clone(origin, target, shallow, replace=True)
    assert target.version == 1
    assert "job-" not in "".join(listing(target.path)) or not shallow


@pytest.mark.slow
@both
def test_a_commit_that_touches_nothing_stands_in_nobody_s_way(origin: World, target: World, shallow: bool) -> None:
    """As the marks in the history that a VACUUM begins and ends."""
    target.create([{"id": 1}])
    said = {"defaultRetentionMillis": 7 * 86_400_000}
    start = info(operation="VACUUM START", operationParameters=said)
    with at_phase("staged", lambda: put_commit(target.path, 1, start)):
        assert clone(origin, target, shallow, replace=True).version == 2
    assert target.rows() == origin.rows()
    assert_sound(target)


@pytest.mark.slow
def test_every_call_of_the_target_s_store_may_fail_and_nothing_is_half_done(origin: World) -> None:
    """The n-th call fails, for n = 1, 2, 3 …: either the whole clone is there, or no table is."""
    expected = origin.rows()
    for number in range(1, 200):
        inner = DictStore("memory://clones/t")

        def decide(call: Any, number: int = number) -> Exception | None:
            return errors.StoreError(name="x", root="y", reason="it fails.") if call.number == number else None

        store = ObservedStore(inner, before=decide)
        with mounted(store) as location:
            try:
                Clone(origin.path, location, False).run()
            except errors.AnabranchError:
                store.before = lambda call: None
                assert not World(location).log.exists(), f"call {number}"
                forget(location)
                continue
            finally:
                store.before = lambda call: None
            assert World(location).rows() == expected
            forget(location)
            if len(store.calls) < number:
                return
    raise AssertionError("it never came to its end")


# -- other stores ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@both
def test_a_clone_in_memory_of_a_table_on_disk(origin: World, shallow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_ALLOWED_STORES", "file:///")
    target = World(f"memory://{uuid4()}/t")
    clone(origin, target, shallow)
    assert target.rows() == origin.rows()
    target.delete("id = 0")
    back = World(f"{origin.path} back")
    clone(target, back, False)
    assert back.rows() == target.rows()
    assert_sound(back)


def test_vectors_of_a_deep_clone_are_its_own(origin: World, target: World) -> None:
    clone(origin, target, False)
    store = target.log.snapshot().store
    marked = [row for row in files(target) if row["deletionVector"] is not None]
    assert sorted(len(vector_of(store, row)) for row in marked) == [1, 1]
    assert all(row["deletionVector"]["pathOrInlineDv"].startswith("job-") for row in marked)


@pytest.mark.slow
def test_other_readers_read_a_deep_clone_and_what_they_say_of_a_shallow_one(origin: World, target: World) -> None:
    """The page on CLONE says so of these versions: when one of them learns it, the page is to follow."""
    clone(origin, target, True)
    with pytest.raises(Exception, match="No such file"):
        duckdb_rows(target.path)
    assert same_rows(deltalake_rows(target.path), origin.rows())
    clone(origin, target, False, replace=True)
    assert_others_agree(target.path)


def test_constraints_are_held_in_the_clone(tmp_path: Path) -> None:
    origin, target = World(str(tmp_path / "o")).create(ROWS), World(str(tmp_path / "t"))
    AddConstraint(origin.path, "small", origin.condition("id < 1000")).run(origin.engine)
    clone(origin, target, False)
    with pytest.raises(errors.CheckConstraintViolated):
        anabranch.append(target.path, [{"id": 2_000}])


# -- tables of other engines -------------------------------------------------------------------------------------------

GOLDEN = [path for folder in (DAT, KERNEL) for path in (sorted(folder.iterdir()) if folder.is_dir() else [])]


@both
@pytest.mark.parametrize("name", [f"{path.parent.name}/{path.name}" for path in GOLDEN] or [""])
def test_a_clone_of_a_golden_table_has_its_files_its_vectors_and_its_flaws(
    tmp_path: Path, name: str, shallow: bool
) -> None:
    """Those that we may not write are refused, and leave nothing."""
    if not name:
        pytest.skip(MISSING)
    source, target = str(DAT.parent / name / "delta"), str(tmp_path / "t")
    try:
        anabranch.clone(source, target, shallow=shallow)
    except errors.UnsupportedFeature:
        assert not Path(target, "_delta_log").exists()
        return
    assert files_of(target) == files_of(source)
    wrong = [str(each.problem) for each in anabranch.check(source).findings]
    assert [str(each.problem) for each in anabranch.check(target).findings] == wrong


def files_of(table: str) -> list[tuple[bytes, Any, Any, list[int]]]:
    """Of each file its bytes, its partition values, its statistics and what its vector hides."""
    snapshot = open_log(table).snapshot()
    found = []
    for row in snapshot.files.to_pylist():
        store, file = locate_in_store(open_store(table), row["path"])
        hidden = vector_of(open_store(table), row).to_array().tolist()
        found.append((store.get(file), row["partitionValues"], row["stats"], hidden))
    return sorted(found, key=repr)


def test_a_file_that_comes_back_by_a_shallow_clone_is_none_that_a_vacuum_may_delete(tmp_path: Path) -> None:
    origin, copy = World(str(tmp_path / "origin")).create([{"id": 1}]), World(str(tmp_path / "copy"))
    origin.append({"id": 2})
    Clone(origin.path, copy.path, shallow=True).run()
    origin.delete("id = 1")

    def clone_back() -> None:
        with pytest.raises(errors.ConcurrentWriteException, match="VACUUM_UNDER_WAY"):
            Clone(copy.path, origin.path, shallow=True, replace=True).run()

    with at_phase("committed", clone_back):
        origin.vacuum(0)
    assert origin.rows() == [{"id": 2}]


@both
def test_a_clone_of_mapped_columns_takes_properties_of_its_own(tmp_path: Path, shallow: bool) -> None:
    origin, target = World(str(tmp_path / "o")), World(str(tmp_path / "t"))
    origin.create(ROWS, **{"delta_columnMapping.mode": "name"})
    clone(origin, target, shallow, properties={"delta.columnMapping.mode": "name", "owner": "harbour"})
    assert target.log.snapshot().metadata.configuration["owner"] == "harbour"
    assert target.rows() == origin.rows()
