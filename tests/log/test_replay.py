"""Columnar replay gives what a plain replay, action by action, gives."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from anabranch._log.commit_files import Raw
from anabranch._log.commits import parse_commit, parse_files
from anabranch._log.replay import apply_actions, keys, replay, without
from anabranch._protocol.actions import FILES, REMOVES, empty_files
from tests.log.histories import COLUMNS, Body, as_bodies, expected, replayed, spelled
from tests.support.raw_logs import Action, add, remove, text_of
from tests.support.tiers import examples

History = tuple[list[list[tuple[str, Body]]], list[Raw]]
VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 40, "cardinality": 2}


def live_after(*commits: list[Action]) -> list[str]:
    raws = [Raw(version, text_of(*actions).encode()) for version, actions in enumerate(commits)]
    live, _, _ = replay(*parse_files("t", raws, ()))
    return sorted(live["path"].to_pylist())


@pytest.mark.slow
@settings(max_examples=examples(120, 15))
@given(spelled())
def test_the_end_state_is_that_of_a_plain_replay(history: History) -> None:
    commits, raws = history
    live, gone, touched = replay(*parse_files("t", raws, COLUMNS))
    wanted_live, wanted_gone = replayed(commits)
    assert as_bodies(live) == expected(wanted_live, FILES)
    assert as_bodies(gone) == expected(wanted_gone, REMOVES)
    assert set(touched.to_pylist()) == set(keys(live).to_pylist()) | set(keys(gone).to_pylist())


@pytest.mark.slow
@settings(max_examples=examples(60, 12))
@given(spelled())
def test_commit_by_commit_gives_what_all_at_once_gives(history: History) -> None:
    commits, raws = history
    files = empty_files()
    for number, raw in enumerate(raws, start=1):
        files, _ = apply_actions(files, *parse_files("t", [raw], COLUMNS))
        assert as_bodies(files) == expected(replayed(commits[:number])[0], FILES)


@pytest.mark.slow
@settings(max_examples=examples(60, 12))
@given(spelled())
def test_a_commit_read_alone_holds_its_own_actions(history: History) -> None:
    commits, raws = history
    for commit, raw in zip(commits, raws, strict=True):
        found = parse_commit("t", raw, COLUMNS)
        wanted_adds, wanted_removes = replayed([commit])
        assert as_bodies(found.adds) == expected(wanted_adds, FILES)
        assert as_bodies(found.removes) == expected(wanted_removes, REMOVES)


@pytest.mark.slow
@settings(max_examples=examples(40, 8))
@given(spelled())
def test_what_was_touched_is_taken_from_a_checkpoints_files(history: History) -> None:
    """A later run replaces whatever the base said of the same logical file, and nothing else."""
    commits, raws = history
    middle = len(raws) // 2
    base, _, _ = replay(*parse_files("t", raws[:middle], COLUMNS))
    live, _, touched = replay(*parse_files("t", raws[middle:], COLUMNS))
    whole = pa.concat_tables([without(base, touched), live])
    assert as_bodies(whole) == expected(replayed(commits)[0], FILES)


def test_a_path_that_comes_back_is_live_once() -> None:
    assert live_after([add("a")], [remove("a")], [add("a")]) == ["a"]


def test_a_file_that_gets_a_vector_is_another_logical_file() -> None:
    assert live_after([add("a")], [remove("a"), add("a", deletionVector=VECTOR)]) == ["a"]


def test_a_remove_without_the_vector_does_not_end_a_file_that_has_one() -> None:
    """PROTOCOL.md, "Action Reconciliation": the key is path *and* vector."""
    assert live_after([add("a", deletionVector=VECTOR)], [remove("a")]) == ["a"]
    assert live_after([add("a", deletionVector=VECTOR)], [remove("a", deletionVector=VECTOR)]) == []


def test_vectors_in_one_file_at_different_places_differ() -> None:
    other = {**VECTOR, "offset": 50}
    assert live_after([add("a", deletionVector=VECTOR)], [remove("a", deletionVector=other)]) == ["a"]


def test_an_add_of_a_live_file_replaces_what_was_said_of_it() -> None:
    raws = [Raw(0, text_of(add("a")).encode()), Raw(1, text_of(add("a", stats="new", size=7)).encode())]
    live, _, _ = replay(*parse_files("t", raws, ()))
    assert live.select(["stats", "size"]).to_pylist() == [{"stats": "new", "size": 7}]


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_said_changes_nothing(count: int) -> None:
    files, _, _ = replay(*parse_files("t", [Raw(0, text_of(add("a"), add("b")).encode())], ()))
    nothing = parse_files("t", [Raw(1, b'{"commitInfo":{}}\n')] * count, ())
    assert apply_actions(files, *nothing) == (files, None)
