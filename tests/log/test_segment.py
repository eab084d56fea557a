"""Which files make up a version: whatever hints say, never with a gap, and never a version that is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import errors
from anabranch._log.file_names import (
    LAST_CHECKPOINT,
    checkpoint_name,
    checkpoint_version,
    checksum_name,
    commit_name,
    commit_version,
    compacted_range,
    part_name,
)
from anabranch._log.last_checkpoint import canonical, checksum, hint_bytes, read_hint
from anabranch._log.segment import Segment, earliest_version, find_segment
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from tests.support.golden import kernel_table
from tests.support.tiers import examples

V2 = "_delta_log/{:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{}"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "t")


def fill(store: Store, commits: range | list[int], checkpoints: list[int] | None = None) -> None:
    for version in commits:
        store.put(commit_name(version), b"{}")
    for version in checkpoints or []:
        store.put(checkpoint_name(version), b"PAR1")


def hint(store: Store, text: str | bytes) -> None:
    store.put(LAST_CHECKPOINT, text if isinstance(text, bytes) else text.encode())


def versions(segment: Segment) -> tuple[int | None, list[int | None]]:
    checkpoint = checkpoint_version(segment.checkpoint.name) if segment.checkpoint else None
    return checkpoint, [commit_version(entry.name) for entry in segment.commits]


# -- what makes up a version -------------------------------------------------------------------------------------------


def test_without_a_checkpoint_every_commit_counts(store: Store) -> None:
    fill(store, range(3))
    segment = find_segment(store)
    assert (segment.version, versions(segment)) == (2, (None, [0, 1, 2]))
    assert segment.newest.name == commit_name(2)


def test_the_newest_checkpoint_at_or_before_the_version_counts(store: Store) -> None:
    fill(store, range(8), [2, 5])
    assert versions(find_segment(store)) == (5, [6, 7])
    assert versions(find_segment(store, 5)) == (5, [])
    assert versions(find_segment(store, 4)) == (2, [3, 4])
    assert versions(find_segment(store, 1)) == (None, [0, 1])


def test_a_checkpoint_alone_is_a_version(store: Store) -> None:
    fill(store, [], [7])
    segment = find_segment(store)
    assert (segment.version, versions(segment), segment.newest.name) == (7, (7, []), checkpoint_name(7))


def test_a_checkpoint_with_the_commits_after_it_is_enough(store: Store) -> None:
    fill(store, [8, 9], [7])
    assert versions(find_segment(store)) == (7, [8, 9])
    assert earliest_version(store) == 7


def test_other_files_in_the_log_say_nothing(store: Store) -> None:
    fill(store, range(2))
    for name in (
        "00000000000000000001.crc",
        "00000000000000000000.00000000000000000001.compacted.json",
        "00000000000000000007.json.tmp",
        "7.json",
        "000000000000000000007.json",
        "_commits/00000000000000000002.json",
        "00000000000000000009.checkpoint.parquet.crc",
        "notes.txt",
        "zzz",
    ):
        store.put(f"_delta_log/{name}", b"x")
    assert versions(find_segment(store)) == (None, [0, 1])


# -- the hint ----------------------------------------------------------------------------------------------------------

BROKEN_HINTS = [
    b"",
    b"{",
    b"[]",
    b"5",
    b"null",
    b'"x"',
    b"{}",
    b'{"version":null}',
    b'{"version":"x"}',
    b'{"version":1e999}',
    b'{"version":NaN}',
    b'{"version":[2]}',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"version":-3}',
    b'{"version":99999999999999999999999}',
]


@pytest.mark.parametrize("text", BROKEN_HINTS, ids=[str(text[:20]) for text in BROKEN_HINTS])
def test_a_broken_hint_does_no_harm(store: Store, text: bytes) -> None:
    fill(store, range(5), [2])
    hint(store, text)
    assert versions(find_segment(store)) == (2, [3, 4])
    assert versions(find_segment(store, 1)) == (None, [0, 1])


@pytest.mark.parametrize("version", [0, 1, 3, 4, 50])
def test_a_hint_to_a_checkpoint_that_is_not_there_does_no_harm(store: Store, version: int) -> None:
    fill(store, range(5), [2])
    hint(store, json.dumps({"version": version, "size": 1}))
    assert versions(find_segment(store)) == (2, [3, 4])


def test_a_stale_hint_does_not_hide_a_newer_checkpoint(store: Store) -> None:
    fill(store, range(9), [2, 6])
    hint(store, '{"version":2,"size":1}')
    assert versions(find_segment(store)) == (6, [7, 8])


def test_a_hint_spares_the_listing_of_what_is_before_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, range(9), [2, 6])
    hint(store, '{"version":6,"size":1}')
    starts: list[str] = []
    listing = type(store).list_from
    monkeypatch.setattr(type(store), "list_from", lambda self, start: starts.append(start) or listing(self, start))
    find_segment(store)
    assert starts == ["_delta_log/00000000000000000006"]


@settings(max_examples=examples(60, 12))
@given(
    newest=st.integers(0, 6),
    checkpoints=st.sets(st.integers(0, 6)),
    hinted=st.none() | st.integers(-1, 9),
    wanted=st.none() | st.integers(0, 6),
)
def test_the_hint_never_changes_the_answer(
    newest: int, checkpoints: set[int], hinted: int | None, wanted: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = open_store(f"memory://{tmp_path_factory.mktemp('t').name}")
    fill(store, range(newest + 1), sorted(each for each in checkpoints if each <= newest))
    wanted = None if wanted is None else min(wanted, newest)
    without = versions(find_segment(store, wanted))
    if hinted is not None:
        hint(store, json.dumps({"version": hinted}))
    assert versions(find_segment(store, wanted)) == without
    aim = newest if wanted is None else wanted
    base = max((each for each in checkpoints if each <= aim), default=None)
    assert without == (base, list(range(0 if base is None else base + 1, aim + 1)))


# -- what is missing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stray", [None, "_delta_log/zzz", "_delta_log/_last_checkpoint", "part-0.parquet"])
def test_a_folder_without_commits_is_no_table(store: Store, stray: str | None) -> None:
    if stray:
        store.put(stray, b"{}")
    with pytest.raises(errors.NotATable):
        find_segment(store)


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_a_gap_is_refused_with_the_name_of_the_file(store: Store, missing: int) -> None:
    fill(store, [version for version in range(5) if version != missing])
    with pytest.raises(errors.CorruptLog) as refused:
        find_segment(store)
    assert refused.value.file == commit_name(missing)


def test_a_gap_behind_a_checkpoint_is_refused(store: Store) -> None:
    fill(store, [0, 1, 2, 4, 5], [2])
    with pytest.raises(errors.CorruptLog) as refused:
        find_segment(store)
    assert refused.value.file == commit_name(3)


@pytest.mark.parametrize("checkpoints", [[], [0], [1], [2]])
def test_a_missing_version_is_never_passed_off_as_the_one_before(store: Store, checkpoints: list[int]) -> None:
    fill(store, [0, 1, 2, 4], checkpoints)
    with pytest.raises(errors.CorruptLog) as refused:
        find_segment(store, 3)
    assert refused.value.file == commit_name(3)


def test_a_version_before_a_gap_can_be_read(store: Store) -> None:
    fill(store, [0, 1, 2, 4])
    assert versions(find_segment(store, 2)) == (None, [0, 1, 2])


@pytest.mark.parametrize("version", [-1, 5, 10**19])
def test_a_version_that_does_not_exist_is_refused_with_those_that_do(store: Store, version: int) -> None:
    fill(store, range(5))
    with pytest.raises(errors.VersionNotFound) as refused:
        find_segment(store, version)
    assert (refused.value.version, refused.value.earliest, refused.value.latest) == (version, 0, 4)


def test_a_version_that_was_cleaned_up_is_refused(store: Store) -> None:
    fill(store, [5, 6, 7], [6])
    for version in (0, 4, 5):
        with pytest.raises(errors.VersionNotFound) as refused:
            find_segment(store, version)
        assert (refused.value.earliest, refused.value.latest) == (6, 7)


# -- checkpoints in parts, and under a UUID ----------------------------------------------------------------------------


def checkpoint_of(segment: Segment) -> list[str]:
    return [entry.name for entry in segment.checkpoint.files] if segment.checkpoint else []


@pytest.mark.parametrize("kind", ["parquet", "json"])
@pytest.mark.parametrize("commits", [[3, 4], [4], []])
def test_a_checkpoint_under_a_uuid_counts(store: Store, kind: str, commits: list[int]) -> None:
    fill(store, commits)
    name = V2.format(3, kind)
    store.put(name, b"PAR1")
    segment = find_segment(store)
    assert (segment.version, checkpoint_of(segment)) == (max([3, *commits]), [name])
    assert earliest_version(store) == 3


def test_all_parts_make_a_checkpoint(store: Store) -> None:
    fill(store, [4])
    parts = [part_name(3, part, 12) for part in range(1, 13)]
    for part in parts:
        store.put(part, b"PAR1")
    hint(store, '{"version":3,"size":2,"parts":12}')
    assert checkpoint_of(find_segment(store)) == parts
    assert versions(find_segment(store))[1] == [4]


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_checkpoint_that_lacks_a_part_is_none(store: Store, missing: int) -> None:
    fill(store, range(5), [1])
    for part in {1, 2, 3} - {missing}:
        store.put(part_name(3, part, 3), b"PAR1")
    hint(store, '{"version":3,"size":2,"parts":3}')
    assert versions(find_segment(store)) == (1, [2, 3, 4])


@pytest.mark.parametrize("missing", [1, 2, 3])
@pytest.mark.parametrize("commits", [[], [4]])
def test_where_the_commits_are_gone_the_missing_part_is_named(store: Store, missing: int, commits: list[int]) -> None:
    fill(store, commits)
    for part in {1, 2, 3} - {missing}:
        store.put(part_name(3, part, 3), b"PAR1")
    with pytest.raises(errors.CorruptLog) as refused:
        find_segment(store)
    assert refused.value.file == part_name(3, missing, 3)


def test_parts_of_two_checkpoints_of_one_version_are_not_mixed(store: Store) -> None:
    fill(store, range(5))
    for name in (part_name(3, 1, 2), part_name(3, 2, 3), part_name(3, 3, 3)):
        store.put(name, b"PAR1")
    assert versions(find_segment(store)) == (None, [0, 1, 2, 3, 4])


def test_of_several_checkpoints_of_one_version_the_classic_one_counts_and_another_if_that_is_broken(
    store: Store,
) -> None:
    fill(store, range(5), [3])
    rest = [V2.format(3, "parquet"), part_name(3, 1, 2)]
    for name in (*rest, part_name(3, 2, 2)):
        store.put(name, b"PAR1")
    order, broken = [], set[str]()
    while (segment := find_segment(store, None, broken)).checkpoint:
        order.append(segment.checkpoint.name)
        broken.add(segment.checkpoint.name)
    assert order == [checkpoint_name(3), *rest]
    assert versions(segment) == (None, [0, 1, 2, 3, 4])


# -- log compaction files ----------------------------------------------------------------------------------------------


def compact(store: Store, *ranges: tuple[int, int]) -> None:
    for first, last in ranges:
        store.put(f"_delta_log/{first:020d}.{last:020d}.compacted.json", b"{}")


def sum_up(store: Store, *versions: int) -> None:
    for version in versions:
        store.put(checksum_name(version), b"{}")


def way(segment: Segment) -> list[Any]:
    return [compacted_range(entry.name) or commit_version(entry.name) for entry in segment.entries_to_replay]


def test_a_compaction_stands_for_its_commits_but_the_newest_is_read_too(store: Store) -> None:
    fill(store, range(9))
    compact(store, (2, 4), (6, 8))
    sum_up(store, 3, 7, 8)
    assert way(find_segment(store)) == [0, 1, (2, 4), 5, (6, 8), 8]
    assert way(find_segment(store, 7)) == [0, 1, (2, 4), 5, 6, 7]
    assert way(find_segment(store, 3)) == [0, 1, 2, 3]
    assert way(find_segment(store).without_compacted()) == list(range(9))


def test_a_compaction_for_which_no_checksum_file_speaks_is_not_taken(store: Store) -> None:
    fill(store, range(9))
    compact(store, (2, 4))
    sum_up(store, 7)
    assert way(find_segment(store)) == list(range(9))
    assert way(find_segment(store, 7)) == [0, 1, (2, 4), 5, 6, 7]


def test_the_longest_of_the_compactions_that_begin_where_one_is_needed_counts(store: Store) -> None:
    fill(store, range(9))
    compact(store, (1, 2), (1, 4), (1, 20), (2, 7), (3, 3), (5, 6))
    sum_up(store, 8)
    assert way(find_segment(store)) == [0, (1, 4), (5, 6), 7, 8]


def test_a_compaction_before_the_checkpoint_is_not_read(store: Store) -> None:
    fill(store, range(9), [3])
    compact(store, (0, 6), (3, 6), (4, 6))
    sum_up(store, 8)
    assert way(find_segment(store)) == [(4, 6), 7, 8]


def test_a_compaction_bridges_no_gap(store: Store) -> None:
    fill(store, [0, 1, 2, 4, 5])
    compact(store, (2, 4))
    sum_up(store, 5)
    with pytest.raises(errors.CorruptLog) as refused:
        find_segment(store)
    assert refused.value.file == commit_name(3)


# -- the hint's checksum -----------------------------------------------------------------------------------------------


def test_the_protocols_own_example_of_a_checksum_comes_out() -> None:
    text = (
        '{"k0":"\'v 0\'", "checksum": "adsaskfljadfkjadfkj", '
        '"k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}'
    )
    assert canonical(json.loads(text)) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4",'
        '"k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )
    assert checksum(json.loads(text)) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize("changed", ['"version":6', '"version":2,"version":6', '"version":2'])
def test_a_hint_counts_only_with_the_checksum_that_it_states(store: Store, changed: str) -> None:
    fill(store, range(9), [2, 6])
    store.put(LAST_CHECKPOINT, hint_bytes({"version": 2, "size": 1}).replace(b'"version":2', changed.encode()))
    hint = read_hint(store)
    assert (hint and hint.version) == (2 if changed == '"version":2' else None)
    assert versions(find_segment(store)) == (6, [7, 8])


def test_a_hint_of_delta_spark_is_what_its_checksum_says() -> None:
    for table in ("v2-checkpoint-json", "v2-checkpoint-parquet", "multi-part-checkpoint", "only-checkpoint-files"):
        store = open_store(kernel_table(table))
        said = json.loads(store.get(LAST_CHECKPOINT))
        hint = read_hint(store)
        assert (hint and hint.version) == said["version"], table
        assert checksum(said) == said["checksum"], table
