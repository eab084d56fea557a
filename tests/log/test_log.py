"""The shared snapshot is what a cold load gives, at every version, whatever happens to the table in between."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import errors
from anabranch._log import log as log_module
from anabranch._log.commits import Commit
from anabranch._log.file_names import checksum_name, commit_name
from anabranch._log.log import Log, forget, remember
from anabranch._log.positions import LogPosition
from anabranch._log.segment import find_segment
from anabranch._log.snapshot import Snapshot, load_snapshot
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from anabranch.commands.dml.append import Append
from anabranch.errors.process_state import STATE
from anabranch.testing import at_phase
from anabranch.testing.stores import Call, ObservedStore
from tests.log.histories import as_bodies, commits, without_stats_and_tags
from tests.support.patience import PATIENCE
from tests.support.raw_logs import PROTOCOL, SCHEMA, WITH_VECTORS, add, info, metadata, put_commit, remove, text_of
from tests.support.tiers import examples
from tests.support.worlds import World


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "t"))


def picture(snapshot: Snapshot) -> tuple[Any, ...]:
    """All that a snapshot says."""
    gone = without_stats_and_tags(as_bodies(snapshot.tombstones))  # a checkpoint does not keep them
    return snapshot.version, snapshot.state, as_bodies(snapshot.files), gone


def cold(store: Store, version: int | None = None) -> Snapshot:
    return load_snapshot(store, find_segment(store, version))


def test_a_checkpoint_whose_commit_was_taken_away_is_read_by_who_knows_the_version_before(world: World) -> None:
    world.create([{"id": 0}], delta_checkpointInterval="2").append({"id": 1})
    assert world.version == 1
    with STATE.as_another_process():
        world.append({"id": 2})
    for name in (commit_name(2), checksum_name(2)):
        Path(world.path, name).unlink()
    assert (world.version, [row["id"] for row in world.rows()]) == (2, [0, 1, 2])
    assert world.append({"id": 3}) == 3
    with STATE.as_another_process():
        assert [row["id"] for row in world.rows()] == [0, 1, 2, 3]


# -- shared and cold ---------------------------------------------------------------------------------------------------

heads = st.lists(
    st.sampled_from(
        [
            metadata(SCHEMA, ("p", "q")),
            metadata(SCHEMA, ("p", "q"), delta_appendOnly="true"),
            WITH_VECTORS,
            {"txn": {"appId": "a", "version": 1}},
            {"txn": {"appId": "a", "version": 2, "lastUpdated": 5}},
            {"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}},
            {"domainMetadata": {"domain": "d", "configuration": "2", "removed": True}},
            info(operation="X"),
        ]
    ),
    max_size=2,
    unique_by=lambda action: next(iter(action)),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.tuples(commits, heads)),
        st.tuples(st.sampled_from(["refresh", "files", "checkpoint", "other handle", "forget", "older"]), st.none()),
    ),
    min_size=3,
    max_size=16,
)


@pytest.mark.slow
@settings(max_examples=examples(60, 6))
@given(steps)
def test_refreshing_gives_what_a_cold_load_gives(script: list[tuple[str, Any]]) -> None:
    store = open_store(f"memory://{uuid4().hex}")
    log, version = Log(store), 0
    store.put(commit_name(0), text_of(info(), PROTOCOL, metadata(SCHEMA, ("p", "q"))).encode())
    for step, argument in script:
        if step == "commit":
            version += 1
            actions, head = argument
            lines = [*head, *({kind: body} for kind, body in actions)]
            store.put(commit_name(version), text_of(*lines).encode())
        elif step == "files":
            _ = log.snapshot().files
        elif step == "checkpoint":
            log.write_checkpoint(log.snapshot(), now_ms=0)
        elif step == "other handle":
            log = Log(open_store(store.url))
        elif step == "forget":
            forget(store.url)
        elif step == "older":
            assert picture(log.snapshot(version // 2)) == picture(cold(store, version // 2))
        assert log.snapshot().version == version
    assert picture(log.snapshot()) == picture(cold(store))


@pytest.mark.parametrize("checkpoint", [True, False])
def test_an_in_commit_timestamp_is_that_of_the_version_with_a_checkpoint_and_without(
    world: World, checkpoint: bool
) -> None:
    put_commit(world.path, 0, info(inCommitTimestamp=5), PROTOCOL, metadata(delta_enableInCommitTimestamps="true"))
    put_commit(world.path, 1, info(inCommitTimestamp=77), add("a"))
    assert world.log.snapshot().timestamp == 77
    if checkpoint:
        world.log.write_checkpoint(world.log.snapshot(), now_ms=0)
    assert cold(world.log.store).timestamp == 77


def test_a_refresh_reads_only_what_is_new(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create([{"id": 0, "x": 0}])
    for i in range(1, 5):
        world.append({"id": i, "x": i})
    known = world.log.snapshot()
    read = Counting(known.store)
    world.append({"id": 5, "x": 5})
    assert Log(read).snapshot().version == 5
    assert read.names == [commit_name(5)]
    assert Log(read).snapshot().version == 5
    assert read.names == [commit_name(5)]


def test_each_handle_reads_through_its_own_store(world: World) -> None:
    """The first handle's credentials may have expired, or see what the second may not."""
    world.create([{"id": 0, "x": 0}])
    first, second = Counting(open_store(world.path)), Counting(open_store(world.path))
    Log(first).snapshot()
    put_commit(world.path, 1, info(), add("a", partitionValues={}))
    already = list(first.names)
    snapshot = Log(second).snapshot()
    assert snapshot.files.num_rows == 2
    assert snapshot.store is second
    assert first.names == already
    assert commit_name(1) in second.names


def test_a_handle_keeps_the_files_that_another_has_read(world: World) -> None:
    world.create([{"id": 0, "x": 0}])
    _ = world.log.snapshot().files
    read = Counting(open_store(world.path))
    assert Log(read).snapshot().files.num_rows == 1
    assert read.names == []


class Counting:
    """A store that notes what is read whole."""

    def __init__(self, store: Store) -> None:
        self._store, self.names = store, list[str]()

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        self.names.append(name)
        return self._store.get(name, etag=etag)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


# -- a table made again under the same path ----------------------------------------------------------------------------


def make_again(world: World, versions: int = 1, *, x: int = 100) -> None:
    shutil.rmtree(world.path)
    world.create([{"id": x, "x": x}])
    for i in range(1, versions):
        world.append({"id": x + i, "x": x})


def test_of_many_tables_no_more_is_remembered_than_so_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MOST_FILES", 10)
    forget()
    known = {}
    for name in ("a", "b", "c", "d"):
        put_commit(tmp_path / name, 0, PROTOCOL, metadata(), *(add(f"{i}") for i in range(4)))
        known[name] = Log(open_store(str(tmp_path / name))).snapshot()
        _ = known[name].files
    for name in ("b", "c", "d"):
        assert Log(open_store(str(tmp_path / name))).snapshot().files is known[name].files
    again = Log(open_store(str(tmp_path / "a"))).snapshot()
    assert again.files is not known["a"].files
    assert again.files.equals(known["a"].files)


@pytest.mark.parametrize("versions", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("files", [True, False])
def test_a_table_made_again_is_noticed_by_the_next_look(world: World, versions: int, files: bool) -> None:
    """With fewer, as many, or more versions than the old one had."""
    world.create([{"id": i, "x": i} for i in range(3)])
    for i in range(3):
        world.append({"id": i, "x": i})
    assert world.log.snapshot().version == 3
    if files:
        assert len(world.rows()) == 6
    make_again(world, versions)
    assert world.log.snapshot().version == versions - 1
    assert [row["id"] for row in world.rows()] == list(range(100, 100 + versions))


def pad(world: World) -> None:
    """Make the first commit as long as any other: how long it took is a number of one digit or of more."""
    commit = Path(world.path, commit_name(0))
    text = commit.read_text(encoding="utf-8")
    commit.write_text(text.replace("{", "{" + " " * (4000 - len(text)), 1), encoding="utf-8")


def test_a_table_made_again_is_noticed_though_its_files_have_the_same_sizes(world: World) -> None:
    world.create([{"id": 1, "x": 1}])
    pad(world)
    before = world.log.snapshot().segment.newest
    shutil.rmtree(world.path)
    world.create([{"id": 2, "x": 1}])
    pad(world)
    assert [row["id"] for row in world.rows()] == [2]
    assert world.log.snapshot().segment.newest.size == before.size


@pytest.mark.parametrize("versions", [1, 3, 4, 6])
@pytest.mark.parametrize("read", [1, 2, 3])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_made_again_while_its_commits_are_read_is_never_mixed_with_the_old_one(
    world: World, versions: int, read: int, is_known: bool
) -> None:
    """The listing is the old table's; before one of its commits is read, another table stands there."""
    world.create([{"id": 0, "x": 0}])
    known = world.log.snapshot()
    for i in range(3):
        world.append({"id": i, "x": i})
    forget()
    if is_known:
        remember(known)
    gets: list[Call] = []

    def replaced(call: Call) -> None:
        if call.method == "get" and str(call.about).endswith(".json"):
            gets.append(call)
            if len(gets) == read:
                make_again(world, versions)

    found = Log(ObservedStore(open_store(world.path), before=replaced)).snapshot()
    assert len(gets) > read
    assert found.version < versions
    assert found.metadata.id != known.metadata.id
    forget()
    assert picture(found) == picture(world.log.snapshot(found.version))
    assert world.version == versions - 1


@pytest.mark.parametrize("commits_stay", [True, False])
def test_a_table_made_again_while_its_checkpoint_is_read_is_never_mixed_with_the_old_one(
    world: World, commits_stay: bool
) -> None:
    """Both have a checkpoint of the same version and name, which is the newest file where the commits are gone."""

    def make(x: int) -> None:
        shutil.rmtree(world.path, ignore_errors=True)
        world.create([{"id": x, "x": x}], delta_checkpointInterval="2")
        for _ in range(2):
            world.append({"id": x, "x": x})
        for version in range(0 if commits_stay else 3):
            Path(world.path, commit_name(version)).unlink()
        forget()

    make(1)
    before = world.log.snapshot().metadata.id
    forget()
    won = iter([True])

    def replaced(call: Call) -> None:
        if call.method == "get" and str(call.about).endswith(".parquet") and next(won, False):
            make(100)

    found = Log(ObservedStore(open_store(world.path), before=replaced)).snapshot()
    assert found.metadata.id != before
    forget()
    assert found.identity == world.log.snapshot().identity
    assert [row["id"] for row in world.rows()] == [100, 100, 100]


def test_a_table_that_was_deleted_is_no_table(world: World) -> None:
    world.create([{"id": 1, "x": 1}])
    shutil.rmtree(world.path)
    with pytest.raises(errors.NotATable):
        world.log.snapshot()
    assert not world.log.exists()
    assert world.log.newest() is None


@pytest.mark.parametrize("versions", [1, 2, 3, 5])
@pytest.mark.parametrize("command", ["append", "update", "delete", "overwrite"])
def test_a_table_made_again_in_the_middle_of_a_transaction_is_left_alone(
    world: World, versions: int, command: str
) -> None:
    world.create([{"id": i, "x": i} for i in range(3)])
    world.append({"id": 7, "x": 7})
    world.append({"id": 8, "x": 8})
    with pytest.raises(errors.ProtocolChangedException), at_phase("staged", lambda: make_again(world, versions)):
        run(world, command)
    assert world.version == versions - 1
    assert [row["id"] for row in world.rows()] == list(range(100, 100 + versions))
    world.assert_clean()


@pytest.mark.parametrize("is_known_by_checkpoint", [True, False])
@pytest.mark.parametrize("command", ["append", "delete"])
def test_a_table_made_again_is_told_by_its_id_where_the_commits_of_both_were_cleaned_up(
    world: World, command: str, is_known_by_checkpoint: bool
) -> None:
    def make(x: int, versions: int, kept: int) -> None:
        """A table whose checkpoint is its newest version, without commits before a version."""
        shutil.rmtree(world.path, ignore_errors=True)
        world.create([{"id": x, "x": x}], delta_checkpointInterval=str(versions - 1))
        for _ in range(1, versions):
            world.append({"id": x, "x": x})
        for version in range(kept):
            Path(world.path, commit_name(version)).unlink()

    make(1, 3, 3 if is_known_by_checkpoint else 2)
    forget()
    with pytest.raises(errors.ProtocolChangedException), at_phase("staged", lambda: make(100, 6, 3)):
        run(world, command)
    assert [row["id"] for row in world.rows()] == [100] * 6


@pytest.mark.parametrize("command", ["append", "update", "delete", "overwrite"])
def test_a_table_deleted_in_the_middle_of_a_transaction_stays_deleted(world: World, command: str) -> None:
    world.create([{"id": i, "x": i} for i in range(3)])
    with pytest.raises(errors.ProtocolChangedException), at_phase("staged", lambda: shutil.rmtree(world.path)):
        run(world, command)
    assert not world.log.exists()


def run(world: World, command: str) -> None:
    commands: Mapping[str, Any] = {
        "append": lambda: world.append({"id": 9, "x": 9}),
        "update": lambda: world.update("id = 1", x=11),
        "delete": lambda: world.delete("id = 1"),
        "overwrite": lambda: world.overwrite({"id": 5, "x": 5}),
    }
    commands[command]()


def test_a_pinned_snapshot_never_mixes_two_tables(world: World) -> None:
    """Its files were not read yet when the table was made again: better an error than the other table's files."""
    world.create([{"id": 1, "x": 1}])
    pinned = world.log.snapshot()
    assert not pinned.files_are_loaded
    make_again(world)
    with pytest.raises(errors.CorruptLog, match="made again"):
        _ = pinned.files
    with pytest.raises(errors.CorruptLog, match="made again"):
        _ = pinned.tombstones


def test_a_pinned_snapshot_whose_files_were_read_goes_on(world: World) -> None:
    world.create([{"id": 1, "x": 1}])
    pinned = world.log.snapshot()
    before = pinned.files
    world.append({"id": 2, "x": 2})
    make_again(world)
    assert pinned.files is before


@pytest.mark.slow
def test_a_pinned_snapshot_reads_its_files_while_the_table_goes_on(world: World) -> None:
    world.create([{"id": 1, "x": 1}], **{"delta_checkpointInterval": "1"})
    pinned = world.log.snapshot()
    for i in range(3):
        world.append({"id": i, "x": i})
    world.delete("id = 1")
    assert pinned.files.num_rows == 1


# -- commits after a version -------------------------------------------------------------------------------------------


def test_the_commits_after_a_version_are_all_and_in_order(world: World) -> None:
    world.create([{"id": 0, "x": 0}])
    base = world.log.snapshot()
    for i in range(1, 13):
        world.append({"id": i, "x": i})
    assert seen(world, LogPosition.snapshot(base)) == list(range(1, 13))
    third = world.log.read(3)
    assert third is not None
    assert seen(world, LogPosition.commit(third, base.metadata.id)) == list(range(4, 13))
    assert seen(world, LogPosition.nothing()) == list(range(13))


def seen(world: World, known: LogPosition) -> list[int]:
    found = world.log.commits_after(known)
    assert found is not None
    return [commit.version for commit in found]


def test_a_gap_among_the_commits_after_a_version_is_refused(world: World) -> None:
    world.create([{"id": 0, "x": 0}])
    base = world.log.snapshot()
    for i in range(1, 4):
        world.append({"id": i, "x": i})
    (Path(world.path) / commit_name(2)).unlink()
    with pytest.raises(errors.CorruptLog) as refused:
        world.log.commits_after(LogPosition.snapshot(base))
    assert refused.value.file == commit_name(2)


def test_before_there_is_a_table_there_are_no_commits(world: World) -> None:
    assert seen(world, LogPosition.nothing()) == []
    assert world.log.read(0) is None


def test_a_put_says_whose_version_it_is(world: World) -> None:
    world.create([{"id": 0, "x": 0}])
    assert world.log.put(0, b"{}") is False
    assert world.log.put(1, text_of(info(txnId="me")).encode()) is True
    found = world.log.read(1)
    assert isinstance(found, Commit)
    assert found.txn_id == "me"


def test_partition_columns_that_a_commit_changes_are_followed(world: World) -> None:
    put_commit(world.path, 0, PROTOCOL, metadata(SCHEMA, ("x",)), add("a", partitionValues={"x": "1"}))
    assert world.log.snapshot().files["partitionValues"].to_pylist() == [[("x", "1")]]
    put_commit(world.path, 1, metadata(SCHEMA, ("id",)), remove("a"), add("b", partitionValues={"id": "2"}))
    shared = world.log.snapshot()
    assert shared.partition_columns == ("id",)
    assert dict(shared.files["partitionValues"].to_pylist()[0])["id"] == "2"
    assert picture(shared) == picture(cold(shared.store))


# -- threads -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_threads_that_append_and_read_at_once_see_every_acknowledged_row(world: World) -> None:
    world.create([{"id": -1, "x": 0}], **{"delta_checkpointInterval": "7"})
    acknowledged: list[int] = []
    problems: list[str] = []

    def write(writer: int) -> None:
        for i in range(6):
            acknowledged.append(Append(world.path, [{"id": writer * 100 + i, "x": writer}]).run().version)

    def read(_: int) -> None:
        for _ in range(10):
            floor = max(acknowledged, default=0)
            snapshot = world.log.snapshot()
            if snapshot.version < floor or snapshot.files.num_rows != snapshot.version + 1:
                problems.append(f"{snapshot.version} with {snapshot.files.num_rows} files, {floor} acknowledged")

    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(write, i) for i in range(4)] + [pool.submit(read, i) for i in range(2)]
        assert [future.result(PATIENCE) for future in done] == [None] * 6
    assert problems == []
    assert sorted(acknowledged) == list(range(1, 25))
    assert picture(world.log.snapshot()) == picture(cold(world.log.store))
    assert len(world.rows()) == 25


def test_a_slow_handle_that_remembers_an_older_snapshot_hides_nothing(world: World) -> None:
    """It listed the log, was held up, and notes what it found after another handle noted something newer."""
    world.create([{"id": 0, "x": 0}])

    class Slow(Counting):
        is_held_up = True

        def list_from(self, start: str) -> Any:
            found = self._store.list_from(start)
            if self.is_held_up:
                self.is_held_up = False
                world.append({"id": 1, "x": 1})
                assert world.log.snapshot().version == 1
            return found

    assert Log(Slow(open_store(world.path))).snapshot().version == 0
    assert world.log.snapshot().version == 1
