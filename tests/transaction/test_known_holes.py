"""Holes that row-level proposals and clients elsewhere are known to have, one by one, by name.

`HELD` says for each hole which test, here or in another file, fails if it opens here; that those tests exist is tested.
What stands in this file are the parts that no other file has: MERGE among them, and what a store gets to see.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.vectors import vectors_of
from anabranch._protocol.merges import MergePlan
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.dml.merge import Merge
from anabranch.commands.maintenance.check import check
from anabranch.testing import DictStore, ObservedStore, at_phase, mounted
from anabranch.testing.faults import once, unanswered_put_error
from anabranch.testing.stores import Call
from tests.support.raw_logs import info, put_commit, put_rows, remove
from tests.support.worlds import World, insert_all, table_path, update_all

ROWS = [{"id": i, "x": i} for i in range(6)]
LEVELS = ("WriteSerializable", "Serializable")
TESTS = Path(__file__).resolve().parents[1]

HELD = {
    "MERGE NOT MATCHED, with the file dropped from what was read": [
        "transaction/test_merge.py::test_a_matched_row_that_goes_is_a_conflict_though_no_clause_touched_it",
        "transaction/test_known_holes.py::test_an_insert_only_merge_still_reads_the_file_in_which_its_keys_were_found",
    ],
    "a winner whose vector shrinks, and ours deletes the restored rows again": [
        "transaction/test_rebase.py::test_rows_that_a_winner_restored_are_not_deleted_again",
        "transaction/test_rebase.py::test_a_winner_that_swaps_one_deleted_row_for_another_is_a_conflict",
        "transaction/test_known_holes.py::test_a_merge_does_not_delete_again_what_a_winner_restored",
    ],
    "two vectors of one file both survive, as (path, dv1) and (path, dv2)": [
        "transaction/test_rebase.py::test_my_remove_ends_the_winners_add_and_my_vector_holds_both",
        "transaction/test_known_holes.py::test_of_two_merges_of_one_file_one_vector_survives_and_holds_both",
    ],
    "a lost reply is reported as a failure": [
        "transaction/test_commit.py::test_a_commit_that_landed_but_was_reported_lost_is_not_committed_twice",
        "laboratory/test_faults.py::test_a_lost_reply_is_no_failure_and_commits_once",
    ],
    "my own append counts as a conflict": [
        "transaction/test_known_holes.py::test_what_i_appended_myself_is_no_conflict_after_a_lost_reply",
    ],
    "my remove does not carry the winner's vector": [
        "transaction/test_rebase.py::test_my_remove_ends_the_winners_add_and_my_vector_holds_both",
        "transaction/test_rebase.py::test_a_file_that_both_empty_together_is_removed_once",
    ],
    "my remove still points at the add that the winner replaced": [
        "transaction/test_known_holes.py::test_each_remove_names_the_add_that_it_ends",
    ],
    "two live adds of one path": [
        "transaction/test_rebase.py::test_no_interleaving_leaves_a_path_twice_or_a_row_that_came_back",
        "commands/maintenance/test_check.py::test_a_path_that_is_live_twice_is_found",
        "transaction/test_known_holes.py::test_of_two_merges_of_one_file_one_vector_survives_and_holds_both",
    ],
    "what was carried over once is not carried over again for a later winner": [
        "transaction/test_rebase.py::test_it_is_carried_over_again_for_every_later_winner",
        "transaction/test_known_holes.py::test_a_merge_is_carried_over_again_for_every_later_winner",
        "transaction/test_known_holes.py::test_a_merge_withdraws_inserts_again_for_every_later_winner",
    ],
    "an error while deciding lets the commit through": [
        "commands/test_row_changes.py::test_a_condition_that_cannot_be_evaluated_on_a_winners_rows_is_a_conflict",
        "transaction/test_known_holes.py::test_a_merge_whose_condition_fails_on_a_winners_rows_is_refused",
    ],
    "a blind append reads an add": [
        "commands/dml/test_append.py::test_a_blind_append_reads_no_add",
        "commands/dml/test_append.py::test_a_blind_append_that_passes_winners_reads_no_add_of_theirs",
        "transaction/test_known_holes.py::test_a_blind_append_asks_the_store_for_nothing_but_newer_commits",
    ],
}


@pytest.mark.parametrize("hole", HELD)
def test_each_hole_is_held_by_tests_that_exist(hole: str) -> None:
    for held in HELD[hole]:
        file, _, name = held.partition("::")
        assert f"\ndef {name}(" in (TESTS / file).read_text(encoding="utf-8"), held


@pytest.fixture(params=LEVELS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(table_path(tmp_path)).create(ROWS, delta_isolationLevel=request.param)
    yield made
    made.assert_clean()


def xs(world: World) -> dict[int, int]:
    found = [(row["id"], row["x"]) for row in world.rows()]
    assert len(dict(found)) == len(found), "a key stands twice"
    return dict(found)


def actions_of(world: World, version: int, kind: str) -> list[dict[str, Any]]:
    text = (Path(world.path) / commit_name(version)).read_text(encoding="utf-8")
    return [body for line in text.splitlines() for name, body in json.loads(line).items() if name == kind]


def only_file(world: World) -> dict[str, Any]:
    (row,) = world.log.snapshot().files.to_pylist()
    return {name: value for name, value in row.items() if value is not None} | {"partitionValues": {}}


# -- MERGE NOT MATCHED, with the file dropped from what was read -------------------------------------------------------


def rewritten(world: World) -> None:
    """Another engine's change of row 1, by rewriting the file."""
    old = only_file(world)
    new = put_rows(world.path, "new.parquet", [{**row, "id": 10} if row["id"] == 1 else row for row in ROWS])
    put_commit(world.path, 1, info(operation="UPDATE"), remove(old["path"], size=old["size"]), new)


GOES: dict[str, Callable[[World], object]] = {
    "its row deleted": lambda world: world.delete("id = 1"),
    "its row moved to another key": lambda world: world.update("id = 1", id=10),
    "all rows deleted": lambda world: world.delete(),
    "all rows overwritten": lambda world: world.overwrite({"id": 77, "x": 7}),
    "its file rewritten by another engine": rewritten,
}


@pytest.mark.parametrize("goes", GOES)
def test_an_insert_only_merge_still_reads_the_file_in_which_its_keys_were_found(world: World, goes: str) -> None:
    """It marks nothing in that file, so a check of marks alone would let it through without key 1, which then fails."""
    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", lambda: GOES[goes](world)):
        world.merge([{"id": 1, "x": 100}, {"id": 9, "x": 9}], insert_all("id", "x"))
    assert 9 not in xs(world)
    world.merge([{"id": 1, "x": 100}, {"id": 9, "x": 9}], insert_all("id", "x"))
    assert {1, 9} <= set(xs(world))


# -- vectors -----------------------------------------------------------------------------------------------------------


def test_a_merge_does_not_delete_again_what_a_winner_restored(world: World) -> None:
    plain = only_file(world)
    world.delete("id = 1")

    def restore() -> None:
        gone = {name: only_file(world)[name] for name in ("partitionValues", "size", "deletionVector")}
        back = {"add": {**plain, "dataChange": True}}
        put_commit(world.path, 2, info(operation="RESTORE"), remove(plain["path"], **gone), back)

    with pytest.raises(errors.DeltaConcurrentModificationException), at_phase("staged", restore):
        world.merge([{"id": 2, "x": 22}, {"id": 9, "x": 9}])
    assert xs(world) == {i: i for i in range(6)}


@pytest.mark.slow
def test_of_two_merges_of_one_file_one_vector_survives_and_holds_both(world: World) -> None:
    path = only_file(world)["path"]
    with at_phase("staged", lambda: world.merge([{"id": 1, "x": 11}, {"id": 8, "x": 8}])):
        world.merge([{"id": 2, "x": 22}, {"id": 9, "x": 9}])
    snapshot = world.log.snapshot()
    assert Counter(snapshot.files["path"].to_pylist())[path] == 1
    assert list(vectors_of(snapshot.store, snapshot.files)[path]) == [1, 2]
    assert xs(world) == {0: 0, 1: 11, 2: 22, 3: 3, 4: 4, 5: 5, 8: 8, 9: 9}


@pytest.mark.slow
def test_each_remove_names_the_add_that_it_ends(world: World) -> None:
    """By path and vector, version by version: who replays the log by both must come to one live add of the path."""
    winners = iter([lambda: world.delete("id = 1"), lambda: world.merge([{"id": 2, "x": 22}])])
    with at_phase("staged", next(winners)), at_phase("put", next(winners)):
        world.update("id = 5", x=55)
    live: set[tuple[str, str | None]] = set()
    for version in range(world.version + 1):
        gone = {_named(body) for body in actions_of(world, version, "remove")}
        assert gone <= live, f"version {version} removes what is not there"
        live = (live - gone) | {_named(body) for body in actions_of(world, version, "add")}
        assert len({path for path, _ in live}) == len(live), f"a path lives twice at version {version}"
    assert xs(world) == {0: 0, 2: 22, 3: 3, 4: 4, 5: 55}


def _named(body: dict[str, Any]) -> tuple[str, str | None]:
    vector = body.get("deletionVector")
    return body["path"], json.dumps(vector, sort_keys=True) if vector else None


# -- every later winner ------------------------------------------------------------------------------------------------


@contextmanager
def losing(world: World, store: ObservedStore, winners: list[Callable[[], object]]) -> Iterator[None]:
    """Each put of what runs in this block comes too late by one of these."""
    left, wins = list(winners), False

    def before(call: Call) -> None:
        nonlocal wins
        if call.is_commit and left and not wins:
            wins = True
            left.pop(0)()
            wins = False

    store.before = before
    yield
    store.before = lambda call: None
    assert not left, "not all of them won"


@pytest.fixture
def watched() -> Iterator[tuple[World, ObservedStore]]:
    store = ObservedStore(DictStore(f"memory://holes/{uuid4()}"))
    with mounted(store) as location:
        world = World(location).create(ROWS)
        yield world, store
        assert check(world.log.snapshot(), deep=True).is_clean


@pytest.mark.slow
def test_a_merge_is_carried_over_again_for_every_later_winner(watched: tuple[World, ObservedStore]) -> None:
    world, store = watched

    def upsert(key: int) -> Callable[[], object]:
        return lambda: world.merge([{"id": key, "x": -1}, {"id": key + 20, "x": -1}])

    with losing(world, store, [upsert(1), upsert(2), upsert(3)]):
        world.merge([{"id": 5, "x": 55}, {"id": 9, "x": 9}])
    assert xs(world) == {0: 0, 1: -1, 2: -1, 3: -1, 4: 4, 5: 55, 9: 9, 21: -1, 22: -1, 23: -1}
    snapshot = world.log.snapshot()
    assert max(map(list, vectors_of(snapshot.store, snapshot.files).values())) == [1, 2, 3, 5]
    assert world.info()["tags"]["anabranch.carriedOver"] == "1,2,3"


def test_a_merge_withdraws_inserts_again_for_every_later_winner(watched: tuple[World, ObservedStore]) -> None:
    """Each brings one of its new keys by a blind append, and then ties that: all are updated, and none stands twice."""
    world, store = watched

    def tied(key: int, other: int) -> Callable[[], object]:
        return lambda: (world.append({"id": key, "x": 0}), world.update(f"id = {other}", x=-1))

    with losing(world, store, [tied(7, 1), tied(8, 2)]):
        world.merge([{"id": key, "x": key * 10} for key in (7, 8, 9)])
    assert xs(world) == {0: 0, 1: -1, 2: -1, 3: 3, 4: 4, 5: 5, 7: 70, 8: 80, 9: 90}
    metrics = world.info()["operationMetrics"]
    assert (metrics["numTargetRowsUpdated"], metrics["numTargetRowsInserted"]) == ("2", "1")


def test_a_merge_that_stood_behind_one_winner_is_refused_for_the_next_that_takes_its_row(
    watched: tuple[World, ObservedStore],
) -> None:
    """What was decided of one window is not decided for good."""
    world, store = watched
    harmless, harmful = lambda: world.delete("id = 0"), lambda: world.delete("id = 5")
    with pytest.raises(errors.ConcurrentDeleteReadException), losing(world, store, [harmless, harmful]):
        world.merge([{"id": 5, "x": 55}, {"id": 9, "x": 9}])
    assert xs(world) == {1: 1, 2: 2, 3: 3, 4: 4}


# -- my own commit, and errors -----------------------------------------------------------------------------------------

SELF_CONFLICTING: dict[str, Callable[[World], object]] = {
    "append": lambda world: world.append({"id": 9, "x": 1}),
    "update": lambda world: world.update("x >= 0", x=1),
    "merge": lambda world: world.merge([{"id": 1, "x": 1}, {"id": 9, "x": 1}]),
    "overwrite": lambda world: world.overwrite({"id": 9, "x": 1}),
    "delete": lambda world: world.delete("id = 1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", SELF_CONFLICTING)
def test_what_i_appended_myself_is_no_conflict_after_a_lost_reply(command: str) -> None:
    """The commit that is found in the way is ours: at Serializable each of these would conflict with itself."""
    store = ObservedStore(DictStore(f"memory://holes/{uuid4()}"))
    with mounted(store) as location:
        world = World(location).create(ROWS, delta_isolationLevel="Serializable")
        store.after = once(lambda call: call.is_commit, unanswered_put_error)
        SELF_CONFLICTING[command](world)
        assert world.version == 1
        assert check(world.log.snapshot(), deep=True).is_clean


def test_a_merge_whose_condition_fails_on_a_winners_rows_is_refused(world: World) -> None:
    def on(row: dict[str, Any], source: dict[str, Any]) -> bool:
        if row["x"] == 666:
            raise errors.ExecutionFailed(what="the condition", reason="it cannot be evaluated on this row.")
        return row["id"] == source["id"]

    rows = pa.table({"id": [1], "x": [11]})
    ours = Merge(world.path, rows, MergePlan(on, (update_all("x"),)), EVERY_ROW)
    with (
        pytest.raises(errors.DeltaConcurrentModificationException),
        at_phase("staged", lambda: world.update("id = 5", x=666)),
    ):
        ours.run(world.engine)
    assert xs(world)[1] == 1


# -- what a blind append asks of the store -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_blind_append_asks_the_store_for_nothing_but_newer_commits(watched: tuple[World, ObservedStore]) -> None:
    """No checkpoint, no commit and no vector is read; a cold start reads those too, for protocol and metadata only."""
    world, store = watched
    for i in range(12):  # a checkpoint is among them
        world.append({"id": 100 + i, "x": 0})
    world.delete("id = 1")
    newest = world.version
    _ = world.log.snapshot()
    before = len(store.calls)
    world.append({"id": 200, "x": 0})
    calls = store.calls[before:]
    assert [str(call.about) for call in calls if call.method in ("get", "read_range")] == []
    assert {call.method for call in calls} <= {"list_from", "head", "put", "put_if_absent", "put_hint"}
    assert all(str(call.about) >= commit_name(newest - 1)[:-5] for call in calls if call.method == "list_from")


def test_a_blind_append_that_passes_winners_reads_their_commits_and_no_file_of_theirs(
    watched: tuple[World, ObservedStore],
) -> None:
    world, store = watched
    _ = world.log.snapshot()
    before = len(store.calls)
    with at_phase("staged", lambda: (foreign(world, 1), foreign(world, 2))):
        Append(world.path, [{"id": 200, "x": 0}]).run()
    read = [str(call.about) for call in store.calls[before:] if call.method in ("get", "read_range")]
    assert set(read) <= {commit_name(0), commit_name(1), commit_name(2), checksum_name(2)}
    assert world.version == 3


def foreign(world: World, version: int) -> None:
    """A delete by another process, which leaves nothing in this one's memory."""
    gone = json.dumps({"remove": {"path": f"none-{version}", "dataChange": True, "deletionTimestamp": 0}})
    world.log.store.put_if_absent(commit_name(version), f'{{"commitInfo":{{"operation":"DELETE"}}}}\n{gone}\n'.encode())
