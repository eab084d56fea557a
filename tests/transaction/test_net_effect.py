"""The net effect of a run of commits is the difference between the snapshots before and after it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from anabranch._log.commit_files import Raw
from anabranch._log.commits import Commit, parse_commit, parse_files
from anabranch._log.replay import replay
from anabranch._protocol.actions import FILES
from anabranch._transaction.net_effect import NO_EFFECT, growth, net_effect
from tests.log.histories import as_bodies
from tests.support.raw_logs import Action, add, info, remove, text_of
from tests.support.tiers import examples

PATHS = ("a", "b", "c", "d")
State = dict[str, int | None]
"""path -> its vector, which is only a number here, or None"""


def vector(number: int | None) -> dict[str, Any]:
    if number is None:
        return {}
    where = {"storageType": "u", "pathOrInlineDv": f"v{number}", "offset": 1, "sizeInBytes": 40, "cardinality": number}
    return {"deletionVector": where}


@st.composite
def commit_on(draw: st.DrawFn, state: State) -> list[Action]:
    """A commit as a writer makes it: at most one add and one remove of a path, and no path twice alive."""
    blind, actions = draw(st.booleans()), []
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=3)):
        stats = {"stats": draw(st.sampled_from(["1", "2"]))}
        if path not in state:
            state[path] = draw(st.none() | st.integers(1, 3))
            actions.append(add(path, **stats, **vector(state[path])))
        elif not blind:
            old = state.pop(path)
            actions.append(remove(path, **vector(old)))
            if draw(st.booleans()):
                state[path] = draw(st.sampled_from([each for each in (None, 1, 2, 3) if each != old]))
                actions.append(add(path, **stats, **vector(state[path])))
    return [info(isBlindAppend=blind), *draw(st.permutations(actions))]


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[list[Action]], list[list[Action]]]:
    """Commits before, and the run."""
    state: State = {}
    before = [draw(commit_on(state)) for _ in range(draw(st.integers(0, 3)))]
    return before, [draw(commit_on(state)) for _ in range(draw(st.integers(0, 4)))]


def raws(commits: list[list[Action]], first: int = 0) -> list[Raw]:
    return [Raw(version, text_of(*actions).encode()) for version, actions in enumerate(commits, start=first)]


def parsed(commits: list[list[Action]], first: int = 0) -> list[Commit]:
    return [parse_commit("t", raw, ()) for raw in raws(commits, first)]


def live(commits: list[list[Action]]) -> dict[str, dict[str, Any]]:
    files, _, _ = replay(*parse_files("t", raws(commits), ()))
    found = {row["path"]: row for row in as_bodies(files).values()}
    assert len(found) == len(files), "the history itself has a path twice"
    return {path: dict(row) for path, row in found.items()}


def bodies(files: pa.Table) -> dict[str, dict[str, Any]]:
    assert files.schema == FILES
    return {row["path"]: dict(row) for row in as_bodies(files).values()}


@pytest.mark.slow
@settings(max_examples=examples(150, 20))
@given(runs())
def test_it_is_the_difference_of_two_snapshots(histories: tuple[list[list[Action]], list[list[Action]]]) -> None:
    before, run = histories
    net = net_effect(parsed(run, first=len(before)))
    old, new = live(before), live(before + run)
    blind, seeing = bodies(net.blind.files), bodies(net.seeing.files)
    assert blind.keys().isdisjoint(seeing)
    assert {**blind, **seeing} == {path: row for path, row in new.items() if path not in old}
    for path, row in old.items():
        if path not in net.changed:
            assert new.get(path) == row
    for path, change in net.changed.items():
        assert change.before["deletionVector"] == old[path].get("deletionVector")
        assert (change.after is None) == (path not in new)
        if change.after is not None:
            assert change.after["deletionVector"] == new[path].get("deletionVector")
            assert change.after["stats"] == new[path]["stats"]
    assert net.is_nothing == (not net.changed and not blind and not seeing)


@pytest.mark.slow
@settings(max_examples=examples(60, 12))
@given(runs())
def test_a_winner_is_named_for_every_file(histories: tuple[list[list[Action]], list[list[Action]]]) -> None:
    before, run = histories
    commits = parsed(run, first=len(before))
    net = net_effect(commits)
    said = {
        commit.version: {body["path"] for action in actions[1:] for body in action.values()}
        for commit, actions in zip(commits, run, strict=True)
    }
    for path, change in net.changed.items():
        assert [winner.version for winner in change.winners] == [v for v, paths in said.items() if path in paths]
    for added in (net.blind, net.seeing):
        assert sorted(added.winners) == sorted(added.files["path"].to_pylist())
        assert all(path in said[winner.version] for path, winner in added.winners.items())


def test_no_commits_have_no_effect() -> None:
    assert net_effect([]).is_nothing
    assert NO_EFFECT.is_nothing


def test_what_came_and_went_inside_the_run_has_no_effect() -> None:
    assert net_effect(parsed([[add("a")], [remove("a")]])).is_nothing


def test_a_file_of_a_blind_append_that_a_later_winner_marked_stays_the_blind_ones() -> None:
    """Its rows are still rows that came blindly; the marks of the later winner stand in its vector."""
    run = [[info(isBlindAppend=True), add("a")], [info(), remove("a"), add("a", **vector(2))]]
    net = net_effect(parsed(run))
    assert net.seeing.files.num_rows == 0
    (row,) = net.blind.files.to_pylist()
    assert row["deletionVector"]["cardinality"] == 2
    assert net.blind.winners["a"].version == 0


def test_a_file_that_was_removed_and_restored_is_changed_back() -> None:
    net = net_effect(parsed([[remove("a", **vector(1))], [add("a", **vector(1))]]))
    change = net.changed["a"]
    assert change.after is not None
    assert change.before["deletionVector"] == change.after["deletionVector"]
    assert [winner.version for winner in change.winners] == [0, 1]


def test_an_old_file_that_is_added_again_without_a_remove_counts_as_new() -> None:
    """As when statistics are added later: nothing says that its rows are the old ones, so they are looked at."""
    net = net_effect(parsed([[info(), add("a", dataChange=False)]]))
    assert net.seeing.files["path"].to_pylist() == ["a"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_order_of_remove_and_add_in_a_commit_does_not_matter(order: tuple[int, int]) -> None:
    actions = [remove("a"), add("a", **vector(1))]
    net = net_effect(parsed([[actions[i] for i in order]]))
    assert net.changed["a"].after is not None


@given(st.sets(st.integers(0, 2**40)), st.sets(st.integers(0, 2**40)))
def test_growth_tells_gained_positions_from_lost_ones(before: set[int], after: set[int]) -> None:
    gained, lost = growth(BitMap64(before), BitMap64(after))
    assert (set(gained), set(lost)) == (after - before, before - after)
