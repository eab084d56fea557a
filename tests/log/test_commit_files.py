"""A long commit file is read by ranges: the same lines, few bytes at a time, and never a mixture of two files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import anabranch
from anabranch import errors
from anabranch._log import commit_files
from anabranch._log.commit_files import LongFile, Raw, read_commit
from anabranch._log.commits import parse_commit, parse_files, parse_head
from anabranch._log.file_names import commit_name
from anabranch._log.log import forget
from anabranch._protocol.actions import FILES
from anabranch._storage import open_store
from anabranch.commands.opening import open_log
from anabranch.testing.stores import Call, DictStore, ObservedStore
from tests.log.histories import COLUMNS, Body, as_bodies, expected, replayed, spelled
from tests.support.raw_logs import PROTOCOL, Action, add, info, metadata, put_commit, remove, text_of
from tests.support.tiers import examples

NAME = commit_name(3)


def long_file(data: bytes, watch: Callable[[Call], None] = lambda call: None) -> LongFile:
    store = DictStore("memory://t")
    store.put(NAME, data)
    entry = store.head(NAME)
    assert entry is not None
    return LongFile(ObservedStore(store, before=watch), entry)


def in_ranges_of(patch: pytest.MonkeyPatch, size: int) -> None:
    for name in ("NEAR_BYTES", "FAR_BYTES"):
        patch.setattr(commit_files, name, size)


@pytest.fixture
def every_file_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_files, "LONG_BYTES", 0)
    in_ranges_of(monkeypatch, 100)


# -- what is given out -------------------------------------------------------------------------------------------------


@settings(max_examples=examples(200, 20))
@given(st.lists(st.binary(max_size=12), min_size=1, max_size=12).map(b"\n".join).filter(bool), st.integers(1, 9))
@example(b"\n\n\n", 1)
@example(b"one line without an end", 2)
def test_the_parts_are_whole_lines_and_together_the_file(data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        in_ranges_of(patch, size)
        parts = list(long_file(data).parts())
    assert b"".join(parts) == data
    assert all(part.endswith(b"\n") for part in parts[:-1])
    assert all(parts)


def test_no_more_than_a_range_is_asked_for_at_once_and_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Call] = []
    file = long_file(b"0123456\n" * 100, asked.append)
    in_ranges_of(monkeypatch, 64)
    assert b"".join(file.parts()) == b"0123456\n" * 100
    assert [call.method for call in asked] == ["read_range"] * 13 + ["head"]


def test_a_file_of_a_few_bytes_is_one_range_wherever_it_is(tmp_path: Path) -> None:
    data, near = b"0123456\n" * 2, open_store(tmp_path)
    near.put(NAME, data)
    entry = near.head(NAME)
    assert entry is not None
    for file in (long_file(data), LongFile(near, entry)):
        assert list(file.parts()) == [data]


@pytest.mark.slow
@settings(max_examples=examples(40, 8))
@given(spelled())
def test_histories_read_by_ranges_are_those_read_whole(history: tuple[list[list[tuple[str, Body]]], list[Raw]]) -> None:
    commits, raws = history
    with pytest.MonkeyPatch.context() as patch:
        in_ranges_of(patch, 50)
        long = [Raw(raw.version, long_file(raw.data)) for raw in raws if isinstance(raw.data, bytes)]
        assert [parse_head("t", raw) for raw in long] == [parse_head("t", raw) for raw in raws]
        assert parse_files("t", long, COLUMNS)[0].equals(parse_files("t", raws, COLUMNS)[0])
        for raw, commit in zip(long, commits, strict=True):
            assert as_bodies(parse_commit("t", raw, COLUMNS).adds) == expected(replayed([commit])[0], FILES)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n \n" * 50])
def test_a_long_file_without_an_action_is_refused(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    in_ranges_of(monkeypatch, 20)
    with pytest.raises(errors.CorruptLog, match="empty"):
        parse_head("t", Raw(3, long_file(data) if data else data))


@pytest.mark.slow
def test_a_long_file_that_is_cut_anywhere_inside_a_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = text_of(info(), add("a"), remove("b")).encode()
    ends = {number + 1 for number, byte in enumerate(data) if byte == ord("\n")}
    ends |= {end - 1 for end in ends}
    for size in (7, 1000):
        in_ranges_of(monkeypatch, size)
        for cut in set(range(1, len(data))) - ends:
            with pytest.raises(errors.CorruptLog):
                parse_head("t", Raw(3, long_file(data[:cut])))


def test_a_line_that_is_cut_off_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    in_ranges_of(monkeypatch, 50)
    data = text_of(add("a"), add("b"), '{"add":{"path":', add("c")).encode()
    with pytest.raises(errors.CorruptLog, match="line 3"):
        parse_files("t", [Raw(3, long_file(data))], ())


@pytest.mark.parametrize("becomes", [None, b"", b"01234567\n" * 99, b"x1234567\n" * 100, b"01234567\n" * 101])
@pytest.mark.parametrize("at", [0, 3, 9])
def test_a_file_that_is_replaced_while_it_is_read_is_an_error(
    becomes: bytes | None, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_ranges_of(monkeypatch, 90)
    store, calls = DictStore("memory://t"), iter(range(100))

    def replace(call: Call) -> None:
        if next(calls) == at:
            store.delete(NAME) if becomes is None else store.put(NAME, becomes)

    store.put(NAME, b"01234567\n" * 100)
    entry = store.head(NAME)
    assert entry is not None
    with pytest.raises(errors.CorruptLog) as refused:
        list(LongFile(ObservedStore(store, before=replace), entry).parts())
    assert refused.value.file == NAME


# -- whole tables ------------------------------------------------------------------------------------------------------

COMMITS: list[list[Action]] = [
    [info(), PROTOCOL, metadata(partition_by=("x",)), *(add(f"f{i}", partitionValues={"x": str(i)}) for i in range(9))],
    [info(), remove("f3"), {"txn": {"appId": "a", "version": 4}}],
    [info(), metadata(), *(remove(f"f{i}") for i in range(9)), add("whole"), {"cdc": {"path": "c"}}],
]


@pytest.mark.usefixtures("every_file_is_long")
def test_a_table_is_opened_and_followed_by_ranges(tmp_path: Path) -> None:
    found = []
    for version, actions in enumerate(COMMITS):
        put_commit(tmp_path, version, *actions)
        snapshot = open_log(str(tmp_path)).snapshot()
        found.append(sorted(snapshot.files["path"].to_pylist()))
        assert isinstance(read_commit(snapshot.store, snapshot.segment.newest).data, LongFile)
    forget()
    anew = open_log(str(tmp_path)).snapshot()
    assert anew.files["path"].to_pylist() == ["whole"]
    assert found == [[f"f{i}" for i in range(9)], [f"f{i}" for i in range(9) if i != 3], ["whole"]]
    assert anew.state.app_transactions["a"].version == 4
    assert [row["version"] for row in anabranch.history(tmp_path)] == [2, 1, 0]


@pytest.mark.usefixtures("every_file_is_long")
def test_files_keep_their_partition_values_where_the_partitioning_changes_behind_them(tmp_path: Path) -> None:
    put_commit(tmp_path, 0, *COMMITS[2][:1], PROTOCOL, metadata(), add("whole"))
    _ = open_log(str(tmp_path)).snapshot().files
    put_commit(
        tmp_path, 1, info(), add("new", partitionValues={"x": "7"}), remove("whole"), metadata(partition_by=("x",))
    )
    files = open_log(str(tmp_path)).snapshot().files
    assert files.select(["path", "partitionValues"]).to_pylist() == [{"path": "new", "partitionValues": [("x", "7")]}]


@pytest.mark.usefixtures("every_file_is_long")
def test_a_checkpoint_in_json_is_read_by_ranges(tmp_path: Path) -> None:
    protocol = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint"],
        }
    }
    adds = [add(f"f{i}") for i in range(5)]
    put_commit(tmp_path, 0, info(), protocol, metadata())
    put_commit(tmp_path, 1, info(), *adds)
    name = f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    text = text_of({"checkpointMetadata": {"version": 1}}, protocol, metadata(), *adds)
    (tmp_path / "_delta_log" / name).write_text(text, encoding="utf-8")
    (tmp_path / commit_name(0)).unlink()
    assert sorted(open_log(str(tmp_path)).snapshot().files["path"].to_pylist()) == [f"f{i}" for i in range(5)]
