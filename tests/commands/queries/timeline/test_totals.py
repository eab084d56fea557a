"""The figures of each version: they are those of its snapshot, and say what its commit did."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch._log.file_names import commit_name
from anabranch._log.log import forget
from anabranch._log.snapshot import Snapshot
from anabranch.commands.opening import live_rows, open_log
from anabranch.commands.queries.timeline.entries import Entry, Totals
from anabranch.commands.queries.timeline.read import timeline
from anabranch.errors import CorruptLog, InvalidOption, NotATable
from tests.support.raw_logs import PROTOCOL, WITH_VECTORS, Action, add, info, metadata, put_commit, remove
from tests.support.tiers import examples
from tests.support.worlds import World, table_path

ids = st.integers(0, 12)
steps = st.one_of(
    st.tuples(st.just("append"), ids),
    st.tuples(st.just("update"), ids),
    st.tuples(st.just("delete"), ids),
    st.tuples(st.just("optimize"), ids),
    st.tuples(st.just("reorg"), ids),
    st.tuples(st.just("overwrite"), ids),
    st.tuples(st.just("restore"), ids),
)


def play(world: World, step: str, number: int) -> None:
    if step == "append":
        world.append(*({"id": number + each, "x": each} for each in range(3)))
    elif step == "update":
        world.update(f"id >= {number}", x=number)
    elif step == "delete":
        world.delete(f"id = {number}")
    elif step == "overwrite":
        world.overwrite({"id": number, "x": 0})
    elif step == "restore":
        world.restore(number % (world.version + 1))
    else:
        world.optimize() if step == "optimize" else world.reorg()


def totals_of(snapshot: Snapshot, small_below: int) -> Totals:
    """The figures of a snapshot, from its files."""
    files = snapshot.files
    deleted = pc.sum(pc.struct_field(files["deletionVector"], "cardinality")).as_py() or 0
    small = sum(size < small_below for size in files["size"].to_pylist())
    return Totals(len(files), pc.sum(files["size"]).as_py() or 0, live_rows(files), deleted, small)


def entry(table: Path | str, version: int = -1) -> Entry:
    return timeline(table).entries[version]


@pytest.mark.slow
@settings(max_examples=examples(25, 5))
@given(st.lists(steps, max_size=8))
def test_the_totals_after_each_version_are_those_of_its_snapshot(
    tmp_path_factory: pytest.TempPathFactory, played: list[tuple[str, int]]
) -> None:
    world = World(table_path(tmp_path_factory.mktemp("t")))
    world.create([{"id": each, "x": 0} for each in range(10)], delta_targetFileSize="2000")
    for step, number in played:
        play(world, step, number)
    found = timeline(world.path)
    assert [each.version for each in found.entries] == list(range(world.version + 1))
    for each in found.entries:
        assert each.totals == totals_of(world.log.snapshot(each.version), found.small_below)


@pytest.mark.parametrize("last", [1, 3, 7])
def test_the_last_versions_have_the_same_figures_as_in_the_whole(tmp_path: Path, last: int) -> None:
    world = World(table_path(tmp_path)).create([{"id": each, "x": 0} for each in range(10)])
    for number in range(6):
        play(world, ("append", "update", "delete")[number % 3], number)
    whole, some = timeline(world.path), timeline(world.path, last)
    assert some.entries == whole.entries[-last:]
    assert some.older == len(whole.entries) - last


@pytest.mark.slow
def test_where_the_first_commits_were_cleaned_up_the_totals_begin_at_the_checkpoint(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 0}], delta_checkpointInterval="4")
    for number in range(9):
        play(world, "append", number)
    for version in (0, 1, 2):
        os.remove(Path(world.path, commit_name(version)))
    forget()
    found = timeline(world.path)
    assert [each.version for each in found.entries] == list(range(3, 10))
    assert [each.totals is None for each in found.entries] == [True] + [False] * 6
    assert [each.is_checkpoint for each in found.entries] == [False, True, False, False, False, True, False]
    for each in found.entries[1:]:
        assert each.totals == totals_of(world.log.snapshot(each.version), found.small_below)


def test_a_table_whose_commits_were_all_cleaned_up_has_no_entry(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 0}], delta_checkpointInterval="2")
    for number in range(2):
        play(world, "append", number)
    for version in (0, 1, 2):
        os.remove(Path(world.path, commit_name(version)))
    forget()
    found = timeline(world.path)
    assert (found.newest, found.entries) == (2, ())


def test_a_delete_marks_rows_and_removes_no_file(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": each, "x": 0} for each in range(10)])
    world.delete("id < 2")
    world.delete("id = 2")
    did = entry(world.path).did
    assert (did.rows_marked, did.files_added, did.files_removed, did.rows_removed) == (1, 0, 0, 0)
    assert [(each.what, each.rows) for each in did.files] == [("marked", 1)]
    assert entry(world.path).kind == "change"


def test_an_optimize_moves_rows_and_adds_none(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 0}])
    world.append({"id": 2, "x": 0}, {"id": 3, "x": 0})
    world.optimize()
    did = entry(world.path).did
    assert entry(world.path).kind == "move"
    assert (did.rows_moved, did.rows_added, did.rows_removed) == (3, 0, 0)
    assert (did.files_added, did.files_removed) == (1, 2)


def test_what_no_file_says_is_unknown(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, info(), PROTOCOL, metadata(), add("a"), add("b", stats='{"numRecords":3}'))
    put_commit(tmp_path, 1, info(), remove("a"), remove("gone"))
    first, second = timeline(tmp_path).entries
    assert first.totals == Totals(2, 2, None, 0, 2)
    assert first.did.rows_added is None
    assert second.totals == Totals(1, 1, 3, 0, 1)
    assert (second.did.rows_removed, second.did.bytes_removed) == (None, None)


def test_a_file_that_is_stated_again_is_not_new(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, info(), PROTOCOL, metadata(), add("a", stats='{"numRecords":3}'))
    put_commit(tmp_path, 1, info(), add("a", stats='{"numRecords":3}', dataChange=False))
    second = entry(tmp_path)
    assert (second.did.files_added, second.did.rows_added) == (0, 0)
    assert second.totals == Totals(1, 1, 3, 0, 1)


def test_lines_in_an_unusual_form_are_read_as_snapshots_read_them(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 2, "offset": 1}
    put_commit(tmp_path, 0, WITH_VECTORS, metadata(), ' {"add" : ' + json.dumps(add("a", size=7)["add"]) + "}")
    put_commit(
        tmp_path,
        1,
        remove("a"),
        json.dumps(add("a", size=7, stats='{"x":1,"numRecords": 5}', deletionVector=vector), indent=None),
    )
    assert entry(tmp_path).totals == Totals(1, 7, 3, 2, 1)
    assert entry(tmp_path).did.rows_marked == 2


def test_a_file_action_that_is_none_is_refused_with_the_file(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, PROTOCOL, metadata())
    put_commit(tmp_path, 1, add("a", size="much"))
    with pytest.raises(CorruptLog):
        timeline(tmp_path)


@pytest.mark.parametrize("action", [{"add": "a"}, {"add": {"path": ["a"], "size": 1}}])
def test_so_is_one_before_a_checkpoint_which_no_snapshot_looks_at(tmp_path: Path, action: Action) -> None:
    put_commit(tmp_path, 0, PROTOCOL, metadata())
    for version in (1, 2):
        put_commit(tmp_path, version, info(), add(f"f{version}"))
    log = open_log(str(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    (tmp_path / commit_name(1)).unlink()
    put_commit(tmp_path, 1, info(), action)
    forget()
    assert len(log.snapshot().files) == 2
    with pytest.raises(CorruptLog) as refused:
        timeline(tmp_path)
    assert refused.value.file == commit_name(1)


@pytest.mark.parametrize("last", [0, -1, True, 1.5])
def test_how_many_is_a_whole_number_from_1(tmp_path: Path, last: int) -> None:
    with pytest.raises(InvalidOption):
        timeline(tmp_path, last)


def test_where_there_is_no_table_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotATable):
        timeline(tmp_path)
