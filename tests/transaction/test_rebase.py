"""What is carried over stands on the winner's newest state: vectors only grow, and no path is ever alive twice."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.vectors import vectors_of
from anabranch.commands.maintenance.check import check
from anabranch.testing import at_phase
from tests.support.raw_logs import Action, info, put_commit, put_rows, remove
from tests.support.tiers import examples
from tests.support.worlds import World

ROWS = [{"id": i, "x": i} for i in range(8)]
LEVELS = ("WriteSerializable", "Serializable")


@pytest.fixture(params=LEVELS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(str(tmp_path / "t")).create(ROWS, delta_isolationLevel=request.param)


def only_file(world: World) -> dict[str, Any]:
    (row,) = world.log.snapshot().files.to_pylist()
    return {name: value for name, value in row.items() if value is not None} | {"partitionValues": {}}


def actions_of(world: World, version: int) -> list[tuple[str, dict[str, Any]]]:
    text = (Path(world.path) / commit_name(version)).read_text()
    return [item for line in text.splitlines() for item in json.loads(line).items()]


def deleted(world: World) -> dict[str, list[int]]:
    snapshot = world.log.snapshot()
    return {path: list(rows) for path, rows in vectors_of(snapshot.store, snapshot.files).items()}


def ids(world: World) -> list[int]:
    return [row["id"] for row in world.rows()]


# -- vectors -----------------------------------------------------------------------------------------------------------


def test_my_remove_ends_the_winners_add_and_my_vector_holds_both(world: World) -> None:
    path = only_file(world)["path"]
    with at_phase("staged", lambda: world.delete("id = 1")):
        world.delete("id = 2")
    winner, ours = actions_of(world, 1), actions_of(world, 2)
    (winners_add,) = [body for kind, body in winner if kind == "add"]
    (my_remove,) = [body for kind, body in ours if kind == "remove"]
    (my_add,) = [body for kind, body in ours if kind == "add"]
    assert my_remove["deletionVector"] == winners_add["deletionVector"]
    assert my_add["path"] == my_remove["path"] == path
    assert my_add["deletionVector"]["cardinality"] == 2
    assert deleted(world) == {path: [1, 2]}
    world.assert_clean()


def test_a_carried_over_add_stays_wide_and_keeps_the_physical_number_of_rows(world: World) -> None:
    with at_phase("staged", lambda: world.delete("id = 1")):
        world.delete("id = 2")
    stats = json.loads(only_file(world)["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (8, False)


def test_a_lost_vector_file_is_not_left_behind(world: World) -> None:
    with at_phase("put", lambda: world.delete("id = 1")):
        world.delete("id = 2")
    named = {
        body["deletionVector"]["pathOrInlineDv"] for v in (1, 2) for kind, body in actions_of(world, v) if kind == "add"
    }
    assert len(named) == 2
    assert sum(name.startswith("deletion_vector") for name in os.listdir(world.path)) == 2


@pytest.mark.slow
def test_it_is_carried_over_again_for_every_later_winner(world: World) -> None:
    winners = iter([1, 2, 3])

    def win() -> None:
        if (row := next(winners, None)) is not None:
            with at_phase("put", win) if row < 3 else nothing():
                world.delete(f"id = {row}")

    with at_phase("put", win):
        world.delete("id = 7")
    assert ids(world) == [0, 4, 5, 6]
    assert next(iter(deleted(world).values())) == [1, 2, 3, 7]
    world.assert_clean()


class nothing:  # noqa: N801
    """A block in which nothing is trapped."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_a_file_that_both_empty_together_is_removed_once(world: World) -> None:
    with at_phase("staged", lambda: world.delete("id < 4")):
        world.delete("id >= 4")
    kinds = [kind for kind, _ in actions_of(world, 2)]
    assert kinds == ["commitInfo", "remove"]
    assert actions_of(world, 2)[1][1]["deletionVector"]["cardinality"] == 4
    assert len(world.log.snapshot().files) == 0


# -- vectors that shrink -----------------------------------------------------------------------------------------------


def restore(world: World) -> None:
    """What RESTORE TO VERSION AS OF 0 writes: the file as it was, without its vector."""
    present = only_file(world)
    before = {name: value for name, value in present.items() if name != "deletionVector"}
    gone = {name: present[name] for name in ("partitionValues", "size", "deletionVector")}
    put_commit(
        world.path,
        world.version + 1,
        info(operation="RESTORE"),
        remove(present["path"], **gone),
        {"add": {**before, "dataChange": True}},
    )


def test_rows_that_a_winner_restored_are_not_deleted_again(world: World) -> None:
    """A union of vectors would take back what RESTORE has just brought."""
    world.delete("id = 1")
    with pytest.raises(errors.ConcurrentDeleteReadException) as refused, at_phase("staged", lambda: restore(world)):
        world.delete("id = 2")
    assert refused.value.rows == [1]
    assert refused.value.winner_operation == "RESTORE"
    assert ids(world) == list(range(8))
    world.assert_clean()


@pytest.mark.slow
def test_a_restore_stops_a_change_that_could_select_its_rows(world: World) -> None:
    """Ours touches another file; the row that came back may be one that it should have changed."""
    world.append({"id": 100, "x": 1})
    world.delete("id = 1")

    def restore_first() -> None:
        rows = {row["path"]: row for row in world.log.snapshot().files.to_pylist()}
        marked = next(row for row in rows.values() if row["deletionVector"] is not None)
        body = {name: value for name, value in marked.items() if value is not None} | {"partitionValues": {}}
        plain = {name: value for name, value in body.items() if name != "deletionVector"}
        gone = {name: body[name] for name in ("partitionValues", "size", "deletionVector")}
        put_commit(
            world.path,
            3,
            info(operation="RESTORE"),
            remove(body["path"], **gone),
            {"add": {**plain, "dataChange": True}},
        )

    with pytest.raises(errors.ConcurrentAppendException) as refused, at_phase("staged", restore_first):
        world.update("x = 1", x=11)
    assert refused.value.explanation == "rows were restored"
    assert 1 in ids(world)
    with at_phase("staged", lambda: world.delete("id = 5")):
        world.update("id = 100", x=0)
    world.assert_clean()


def test_a_winner_that_swaps_one_deleted_row_for_another_is_a_conflict(world: World) -> None:
    """Neither a growth nor a shrinking alone: row 1 came back, row 3 went."""
    world.delete("id = 1")

    def swap() -> None:
        restore(world)
        world.delete("id = 3")

    with pytest.raises(errors.ConcurrentDeleteReadException), at_phase("staged", swap):
        world.delete("id = 2")
    assert ids(world) == [0, 1, 2, 4, 5, 6, 7]


@pytest.mark.slow
def test_a_restore_that_was_undone_again_changes_nothing(world: World) -> None:
    world.delete("id = 1")

    def and_back() -> None:
        restore(world)
        world.delete("id = 1")

    with at_phase("staged", and_back):
        world.delete("id = 2")
    assert ids(world) == [0, 3, 4, 5, 6, 7]
    world.assert_clean()


# -- paths -------------------------------------------------------------------------------------------------------------


def test_statistics_that_a_winner_computed_anew_are_no_conflict_and_are_kept(world: World) -> None:
    """It adds the same logical file again, without a remove: no row came or went."""
    new = json.dumps({"numRecords": 8, "minValues": {"x": 0}, "maxValues": {"x": 7}, "nullCount": {"x": 0}})

    def analyze() -> None:
        put_commit(world.path, 1, info(), {"add": {**only_file(world), "stats": new, "dataChange": False}})

    with at_phase("staged", analyze):
        world.delete("id = 2")
    assert json.loads(only_file(world)["stats"]) == {**json.loads(new), "tightBounds": False}
    assert ids(world) == [0, 1, 3, 4, 5, 6, 7]
    world.assert_clean()


def test_a_file_that_a_winner_removed_without_naming_its_vector_is_gone(world: World) -> None:
    """A careless engine: ours is refused rather than placed on what may be gone."""
    world.delete("id = 1")
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: careless(world)):
        world.delete("id = 2")


def careless(world: World) -> None:
    put_commit(world.path, 2, info(), remove(only_file(world)["path"]))


def compacted(world: World) -> list[Action]:
    """What an OPTIMIZE by another engine writes: the same rows in another file, no data changed."""
    present = only_file(world)
    new = put_rows(world.path, "compacted.parquet", world.rows(), dataChange=False)
    return [info(operation="OPTIMIZE"), remove(present["path"], size=present["size"], dataChange=False), new]


def test_a_relocation_without_a_record_is_a_conflict(world: World) -> None:
    with (
        pytest.raises(errors.ConcurrentDeleteReadException),
        at_phase("staged", lambda: put_commit(world.path, 1, *compacted(world))),
    ):
        world.delete("id = 2")
    assert ids(world) == list(range(8))


def test_a_relocation_of_rows_that_mine_does_not_select_is_no_conflict(world: World) -> None:
    world.append({"id": 100, "x": 100})
    (big,) = [row for row in world.log.snapshot().files.to_pylist() if json.loads(row["stats"])["numRecords"] == 8]

    def optimize() -> None:
        stats = json.dumps({"numRecords": 8, "minValues": {"id": 0}, "maxValues": {"id": 7}})
        new = put_rows(world.path, "compacted.parquet", ROWS, dataChange=False, stats=stats)
        put_commit(world.path, 2, info(), remove(big["path"], size=big["size"], dataChange=False), new)

    with at_phase("staged", optimize):
        world.update("id = 100", x=0)
    assert {row["id"]: row["x"] for row in world.rows()} == {**{i: i for i in range(8)}, 100: 0}


# -- any interleaving --------------------------------------------------------------------------------------------------

changes = st.tuples(st.sampled_from(["delete", "update", "append"]), st.integers(0, 5), st.integers(0, 3))
schedules = st.lists(st.tuples(changes, st.sampled_from(["staged", "put", "checked"])), min_size=2, max_size=4)


def apply(world: World, change: tuple[str, int, int]) -> None:
    kind, low, width = change
    if kind == "delete":
        world.delete(f"id >= {low} AND id <= {low + width}")
    elif kind == "update":
        world.update(f"id >= {low} AND id <= {low + width}", x=lambda row: row["x"] + 100)
    else:
        world.append({"id": 20 + low, "x": width})


def nested(world: World, schedule: list[tuple[tuple[str, int, int], str]]) -> None:
    """Each runs inside the one before it, at its phase; what is refused is no matter here."""
    (change, phase), rest = schedule[0], schedule[1:]
    try:
        if rest:
            with at_phase(phase, lambda: nested(world, rest)):
                apply(world, change)
        else:
            apply(world, change)
    except errors.DeltaConcurrentModificationException:
        pass  # refused: as good as committed, here
    except AssertionError as unreached:
        if "no transaction in this block" not in str(unreached):
            raise


@pytest.mark.slow
@settings(max_examples=examples(30, 6))
@given(schedule=schedules, level=st.sampled_from(LEVELS))
def test_no_interleaving_leaves_a_path_twice_or_a_row_that_came_back(
    tmp_path_factory: pytest.TempPathFactory, schedule: Any, level: str
) -> None:
    world = World(str(tmp_path_factory.mktemp("w") / "t")).create(ROWS[:6], delta_isolationLevel=level)
    nested(world, schedule)
    known: dict[str, set[int]] = {}
    for version in range(world.version + 1):
        snapshot = world.log.snapshot(version)
        report = check(snapshot)
        assert report.is_clean, str(report)
        for path, rows in vectors_of(snapshot.store, snapshot.files).items():
            assert known.setdefault(path, set()) <= set(rows), "a deleted row came back"
            known[path] = set(rows)
        times = Counter((kind, body["path"]) for kind, body in actions_of(world, version) if kind in ("add", "remove"))
        assert set(times.values()) <= {1}, "a path stands twice in one commit"
