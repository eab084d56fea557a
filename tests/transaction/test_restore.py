"""RESTORE against each other verb, at each phase, in both orders and at both levels; and against VACUUM."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch.commands.clustering import ClusterBy
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.maintenance.fsck import Fsck
from anabranch.commands.maintenance.restore import Restore
from anabranch.testing import at_phase
from anabranch.testing.arrow_engine import Row
from tests.support.worlds import World, table_path

LEVELS = ("WriteSerializable", "Serializable")
DIALS = ("row", "file")
PHASES = ("read", "staged", "put")
ROWS = [{"id": i, "x": i * 10} for i in range(4)]
DAY_MS = 86_400_000


def state(rows: list[Row]) -> dict[int, int]:
    assert len({row["id"] for row in rows}) == len(rows), "a row twice"
    return {row["id"]: row["x"] for row in rows}


THEN = state(ROWS)
NOW = {0: 0, 2: 222, 3: 30, 9: 90}
"""What the table holds when both begin: 1 deleted, 2 updated and 9 appended since version 0."""

State = dict[int, int]
Verb = tuple[Callable[[World], Any], Callable[[State], State]]

NOTHING_TO_DO = "delete of a row that only the old version has"

VERBS: dict[str, Verb] = {
    "append": (lambda w: w.append({"id": 50, "x": 50}), lambda s: {**s, 50: 50}),
    "delete": (lambda w: w.delete("id = 3"), lambda s: {k: v for k, v in s.items() if k != 3}),
    NOTHING_TO_DO: (
        lambda w: w.delete("id = 1"),
        lambda s: {k: v for k, v in s.items() if k != 1},
    ),
    "delete of everything": (lambda w: w.delete(), lambda s: {}),
    "update": (lambda w: w.update("id = 3", x=333), lambda s: {k: 333 if k == 3 else v for k, v in s.items()}),
    "update of every row": (lambda w: w.update(None, x=5), lambda s: dict.fromkeys(s, 5)),
    "merge": (
        lambda w: w.merge([{"id": 1, "x": 111}, {"id": 3, "x": 333}]),
        lambda s: {**s, 1: 111, 3: 333},
    ),
    "overwrite": (lambda w: w.overwrite({"id": 70, "x": 70}), lambda s: {70: 70}),
}


def begun(tmp_path: Path, level: str, dial: str, **properties: str) -> World:
    """A table at version 3, in which an old file has a vector and another one came."""
    given = {"delta_isolationLevel": level, "anabranch_conflictResolution": dial, **properties}
    world = World(table_path(tmp_path)).create(ROWS, **given)
    world.delete("id = 1")
    world.update("id = 2", x=222)
    world.append({"id": 9, "x": 90})
    assert state(world.rows()) == NOW
    return world


def back(world: World, version: int = 0) -> Any:
    return Restore(world.path, version).run()


def rebased_to(world: World, ours: Callable[[], Any], winner: Callable[[], Any], phase: str) -> str | None:
    """Run ours with the winner inside it; the condition of the conflict, None where ours committed."""
    try:
        with at_phase(phase, winner):
            ours()
    except errors.DeltaConcurrentModificationException as conflict:
        return conflict.getCondition()
    return None


@pytest.mark.slow
@pytest.mark.parametrize("dial", DIALS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_restore_stands_behind_a_blind_append_at_most(
    tmp_path: Path, phase: str, name: str, level: str, dial: str
) -> None:
    """What committed inside a RESTORE refuses it, but for a blind append at WriteSerializable, whose rows stay."""
    world = begun(tmp_path, level, dial)
    run, effect = VERBS[name]
    conflict = rebased_to(world, lambda: back(world), lambda: run(world), phase)
    if name == "append" and level == "WriteSerializable":
        assert conflict is None
        assert state(world.rows()) == effect(THEN)
    elif conflict is None:  # the verb found nothing to do, as a DELETE of a row that is not there
        assert effect(NOW) == NOW
        assert state(world.rows()) == THEN
    else:
        assert effect(NOW) != NOW
        assert state(world.rows()) == effect(NOW)
    world.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("dial", DIALS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("phase", "name"),
    [(phase, name) for phase in PHASES for name in VERBS if (phase, name) != ("put", NOTHING_TO_DO)],
)
def test_who_commits_behind_a_restore_did_as_if_it_had_seen_it(
    tmp_path: Path, phase: str, name: str, level: str, dial: str
) -> None:
    """Ours behind a RESTORE is refused, or gives what it gives when it is run on the restored table."""
    world = begun(tmp_path, level, dial)
    run, effect = VERBS[name]
    conflict = rebased_to(world, lambda: run(world), lambda: back(world), phase)
    if conflict is None:
        orders = [effect(THEN)] if effect(NOW) != NOW else [effect(THEN), THEN]  # nothing to do: it stands before
        assert state(world.rows()) in orders
    else:
        assert name != "append"
        assert state(world.rows()) == THEN
    world.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("phase", PHASES)
def test_who_changes_a_file_that_a_restore_would_leave_alone_refuses_it_too(
    tmp_path: Path, phase: str, level: str
) -> None:
    """The table is to be what it was, and that file would not be."""
    world = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel=level)
    world.append({"id": 9, "x": 90})
    conflict = rebased_to(world, lambda: back(world), lambda: world.delete("id = 1"), phase)
    assert conflict == "DELTA_CONCURRENT_DELETE_READ.EMPTY_READ_PREDICATES"
    back(world)
    assert state(world.rows()) == THEN


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("phase", PHASES)
def test_of_two_restores_at_once_one_is_refused(tmp_path: Path, phase: str, level: str) -> None:
    world = begun(tmp_path, level, "row")
    conflict = rebased_to(world, lambda: back(world, 0), lambda: back(world, 1), phase)
    assert conflict is not None
    assert state(world.rows()) == {k: v for k, v in THEN.items() if k != 1}
    world.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_change_of_metadata_fails_a_restore_and_a_restore_of_metadata_fails_everyone(
    tmp_path: Path, phase: str, level: str
) -> None:
    world = begun(tmp_path, level, "row")
    change = SetProperties(world.path, {"team": "harbour"})
    assert "METADATA_CHANGE" in (rebased_to(world, lambda: back(world), change.run, phase) or "")
    for run, _ in VERBS.values():
        SetProperties(world.path, {"team": str(world.version)}).run()
        done = rebased_to(world, lambda run=run: run(world), lambda: back(world), phase)  # type: ignore[misc]
        assert done is None or "METADATA_CHANGE" in done
        if done is None:  # nothing was to be done
            assert world.info()["operation"] == "RESTORE"
    world.assert_clean()


@pytest.mark.parametrize("level", LEVELS)
def test_where_metadata_goes_back_a_blind_append_of_the_newer_columns_refuses_it(tmp_path: Path, level: str) -> None:
    world = begun(tmp_path, level, "row")
    SetProperties(world.path, {"team": "harbour"}).run()
    assert rebased_to(world, lambda: back(world), lambda: world.append({"id": 50, "x": 5}), "staged") is not None


def test_another_clustering_refuses_a_restore_though_no_row_moved(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, cluster_by=("id",))
    world.delete("id = 1")
    conflict = rebased_to(world, lambda: back(world), ClusterBy(world.path, (("x",),)).run, "staged")
    assert conflict == "DELTA_CONCURRENT_WRITE.METADATA_CHANGE"


def test_a_restore_that_puts_after_several_winners_judges_them_all(tmp_path: Path) -> None:
    world = begun(tmp_path, "WriteSerializable", "row")

    def winners() -> None:
        world.append({"id": 50, "x": 50})
        world.update("id = 50", x=51)

    assert rebased_to(world, lambda: back(world), winners, "put") is not None
    assert state(world.rows()) == {**NOW, 50: 51}


# -- against VACUUM ----------------------------------------------------------------------------------------------------


def vacuum(world: World, operation: str, **parameters: Any) -> None:
    """A commit that says of a VACUUM what delta-spark says of its own."""
    info = {"timestamp": int(time.time() * 1000), "operation": operation, "operationParameters": parameters}
    said = {**info, "engineInfo": "other", "txnId": operation + str(world.version)}
    assert world.log.put(world.version + 1, (json.dumps({"commitInfo": said}) + "\n").encode())


def start(world: World, retention_ms: int | None) -> None:
    given = {} if retention_ms is None else {"specifiedRetentionMillis": retention_ms}
    vacuum(world, "VACUUM START", retentionCheckEnabled=False, **given)


def end(world: World) -> None:
    vacuum(world, "VACUUM END", status="COMPLETED")


@pytest.mark.parametrize("phase", [None, *PHASES])
@pytest.mark.parametrize("retention_ms", [0, None])
def test_a_vacuum_that_may_delete_what_comes_back_refuses_a_restore(
    tmp_path: Path, retention_ms: int | None, phase: str | None
) -> None:
    """Whether it began before the RESTORE or in it: the file is there, and may be gone a moment later."""
    world = begun(tmp_path, "WriteSerializable", "row")
    if phase is None:
        start(world, retention_ms)
        with pytest.raises(errors.ConcurrentWriteException) as refused:
            back(world)
        assert refused.value.winner_operation == "VACUUM START"
        assert refused.value.file in world.log.snapshot(0).files["path"].to_pylist()
        condition: str | None = refused.value.getCondition()
    else:
        condition = rebased_to(world, lambda: back(world), lambda: start(world, retention_ms), phase)
    assert condition == "DELTA_CONCURRENT_WRITE.VACUUM_UNDER_WAY"
    end(world)
    back(world)
    assert state(world.rows()) == THEN


@pytest.mark.parametrize("phase", PHASES)
def test_a_vacuum_whose_retention_spares_what_comes_back_is_not_in_its_way(tmp_path: Path, phase: str) -> None:
    world = begun(tmp_path, "Serializable", "row")
    assert rebased_to(world, lambda: back(world), lambda: start(world, 7 * DAY_MS), phase) is None
    assert state(world.rows()) == THEN


@pytest.mark.parametrize("phase", PHASES)
def test_what_a_vacuum_deleted_in_between_is_noticed_at_the_next_attempt(tmp_path: Path, phase: str) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    world.overwrite({"id": 9, "x": 90})

    def vacuumed() -> None:
        start(world, 0)
        for path in world.log.snapshot(0).files["path"].to_pylist():
            Path(world.path, path).unlink()
        end(world)

    with pytest.raises(errors.RestoreFilesMissing), at_phase(phase, vacuumed):
        back(world)
    assert state(world.rows()) == {9: 90}


def test_a_vacuum_does_not_disturb_a_restore_that_brings_no_file_back(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    world.append({"id": 9, "x": 90})
    start(world, 0)
    back(world)
    assert state(world.rows()) == THEN


def test_an_end_is_taken_for_that_of_the_mildest_vacuum(tmp_path: Path) -> None:
    world = begun(tmp_path, "WriteSerializable", "row")
    start(world, 0)
    start(world, 7 * DAY_MS)
    end(world)
    with pytest.raises(errors.ConcurrentWriteException, match="VACUUM_UNDER_WAY"):
        back(world)
    end(world)
    back(world)


# -- FSCK --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("phase", ["staged", "put"])
def test_a_repair_is_not_disturbed_by_rows_elsewhere(tmp_path: Path, phase: str, level: str) -> None:
    world = begun(tmp_path, level, "row")
    [lost] = _files_of_id(world, 9)
    Path(world.path, lost).unlink()
    repair = Fsck(world.path)
    assert rebased_to(world, repair.run, lambda: world.delete("id = 0"), phase) is None
    assert state(world.rows()) == {2: 222, 3: 30}


@pytest.mark.parametrize("phase", ["staged", "put"])
def test_a_file_that_comes_back_refuses_its_repair(tmp_path: Path, phase: str) -> None:
    world = begun(tmp_path, "WriteSerializable", "row")
    [lost] = _files_of_id(world, 9)
    path = Path(world.path, lost)
    kept = path.read_bytes()
    path.unlink()
    conflict = rebased_to(world, Fsck(world.path).run, lambda: path.write_bytes(kept), phase)
    if phase == "staged":
        assert conflict == "DELTA_CONCURRENT_WRITE.WITHOUT_HINT"
        assert state(world.rows()) == NOW
    else:  # right before the put nobody can know
        assert conflict is None
        back(world, 3)
        assert state(world.rows()) == NOW


@pytest.mark.parametrize("phase", ["staged", "put"])
def test_a_winner_that_removes_a_missing_file_refuses_its_repair(tmp_path: Path, phase: str) -> None:
    world = begun(tmp_path, "WriteSerializable", "row")
    [lost] = _files_of_id(world, 9)
    Path(world.path, lost).unlink()
    conflict = rebased_to(world, Fsck(world.path).run, lambda: back(world), phase)
    assert conflict == "DELTA_CONCURRENT_DELETE_DELETE.WITHOUT_HINT"
    assert state(world.rows()) == THEN


def _files_of_id(world: World, wanted: int) -> list[str]:
    files = world.log.snapshot().files.to_pylist()
    return [row["path"] for row in files if json.loads(row["stats"])["minValues"]["id"] == wanted]
