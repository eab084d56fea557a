"""A checkpoint says what the commits before it said, to us and to others."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings

from anabranch import errors
from anabranch._log.checkpoint import Checkpoint, CheckpointHead
from anabranch._log.checkpoint_parts import checkpoints_in
from anabranch._log.checkpointing import State, checkpoint_bytes
from anabranch._log.commit_files import Raw
from anabranch._log.commits import parse_files
from anabranch._log.file_names import LAST_CHECKPOINT, checkpoint_name, commit_name, first_name
from anabranch._log.log import Log, forget
from anabranch._log.replay import replay
from anabranch._log.snapshot import Snapshot, load_snapshot
from anabranch._protocol.actions import (
    FILES,
    REMOVES,
    AppTransaction,
    DomainMetadata,
    Metadata,
    Protocol,
    files_table,
)
from anabranch._protocol.schema.types import Field, Struct, schema_json
from anabranch._storage import open_store
from anabranch._storage.contract import Store
from tests.log.histories import COLUMNS, Body, as_bodies, expected, replayed, spelled, without_stats_and_tags
from tests.support.raw_logs import SCHEMA, WITH_VECTORS, add, info, metadata, put_commit, remove
from tests.support.readers import deltalake_rows, same_rows
from tests.support.tiers import examples
from tests.support.worlds import World

DAY_MS = 86_400_000
VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 40, "cardinality": 2}
HEAD = CheckpointHead(
    Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors", "appendOnly"})),
    Metadata("id", schema_json(SCHEMA), ("x",), {"delta.appendOnly": "true", "a": ""}, "n", "d", 7),
    {"app": AppTransaction("app", 3, 9), "other": AppTransaction("other", 1)},
    {"d": DomainMetadata("d", '{"k":1}')},
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "t")


def written(store: Store, files: pa.Table, gone: pa.Table, head: CheckpointHead = HEAD) -> Checkpoint:
    store.put(checkpoint_name(3), checkpoint_bytes(State(3, head, files, gone))[0])
    return opened(store)


def opened(store: Store) -> Checkpoint:
    return Checkpoint(store, checkpoints_in(store.list_from(first_name(3)))[-1])


def newest(path: str | Path) -> Snapshot:
    """The newest snapshot of a table, with nothing remembered of it."""
    forget()
    return Log(open_store(path)).snapshot()


def from_commits_alone(path: str | Path) -> Snapshot:
    """The newest snapshot without any checkpoint."""
    for file in Path(path).glob("_delta_log/*checkpoint*"):
        file.unlink()
    return newest(path)


# -- there and back ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=examples(40, 8))
@given(spelled())
def test_files_and_tombstones_come_back(history: tuple[list[list[tuple[str, Body]]], list[Raw]]) -> None:
    commits, raws = history
    live, gone, _ = replay(*parse_files("t", raws, COLUMNS))
    checkpoint = written(open_store("memory://checkpoints"), live, gone)
    wanted_live, wanted_gone = replayed(commits)
    assert as_bodies(checkpoint.files()) == expected(wanted_live, FILES)
    assert as_bodies(checkpoint.tombstones()) == without_stats_and_tags(expected(wanted_gone, REMOVES))


def test_the_head_comes_back(store: Store) -> None:
    assert written(store, FILES.empty_table(), REMOVES.empty_table()).head() == HEAD


def test_a_head_of_the_least_kind_comes_back(store: Store) -> None:
    least = CheckpointHead(Protocol(1, 2), Metadata("id", schema_json(SCHEMA)), {}, {})
    checkpoint = written(store, FILES.empty_table(), REMOVES.empty_table(), least)
    assert checkpoint.head() == least
    assert len(checkpoint.files()) == len(checkpoint.tombstones()) == 0


def test_null_and_empty_partition_values_come_back(store: Store) -> None:
    files = files_table([{"path": "a", "partitionValues": {"x": None, "y": ""}, "size": 1, "tags": {"k": "v"}}])
    checkpoint = written(store, files, REMOVES.empty_table())
    assert checkpoint.files().equals(files)


def test_its_count_is_that_of_its_actions() -> None:
    _, actions = checkpoint_bytes(State(3, HEAD, files_table([{"path": "a", "size": 1}]), REMOVES.empty_table()))
    assert actions == 1 + 1 + 2 + 1 + 1  # protocol, metadata, two applications, a domain, a file


def test_the_head_is_read_without_a_file_action(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = written(store, files_table([{"path": "a", "size": 1}]), REMOVES.empty_table())
    asked: list[tuple[list[int], list[str]]] = []
    read = pq.ParquetFile.iter_batches

    def watched(self: pq.ParquetFile, size: int, row_groups: list[int], columns: list[str]) -> Any:
        asked.append((row_groups, columns))
        return read(self, size, row_groups=row_groups, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    assert checkpoint.head() == HEAD
    ((groups, columns),) = asked
    assert groups == [0], "the files stand in the second"
    assert not [name for name in columns if name.startswith(("add", "remove"))]


# -- on tables ---------------------------------------------------------------------------------------------------------


def history_by_hand(path: Path, *, removed_ms: int) -> None:
    put_commit(path, 0, info(), WITH_VECTORS, metadata(partition_by=("x",)))
    put_commit(path, 1, *(add(f"f{i}", partitionValues={"x": [None, "1"][i % 2]}, stats="{}") for i in range(4)))
    put_commit(path, 2, remove("f0", deletionTimestamp=removed_ms), {"txn": {"appId": "a", "version": 1}})
    put_commit(path, 3, remove("f1"), add("f1", partitionValues={"x": "1"}, deletionVector=VECTOR))
    put_commit(path, 4, {"domainMetadata": {"domain": "d", "configuration": "c", "removed": False}}, add("f9"))


def test_a_snapshot_from_a_checkpoint_is_that_from_the_commits(tmp_path: Path) -> None:
    history_by_hand(tmp_path, removed_ms=1000)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(3), now_ms=1000)
    checkpointed = newest(tmp_path)
    assert checkpointed.segment.checkpoint is not None
    files, gone, state = as_bodies(checkpointed.files), as_bodies(checkpointed.tombstones), checkpointed.state
    plain = from_commits_alone(tmp_path)
    assert plain.segment.checkpoint is None
    assert (as_bodies(plain.files), without_stats_and_tags(as_bodies(plain.tombstones))) == (files, gone)
    assert plain.state == state


def test_a_removed_domain_is_not_brought_back_by_a_checkpoint(tmp_path: Path) -> None:
    history_by_hand(tmp_path, removed_ms=1000)
    put_commit(tmp_path, 5, {"domainMetadata": {"domain": "d", "configuration": "", "removed": True}})
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(4), now_ms=1000)
    log.write_checkpoint(log.snapshot(5), now_ms=1000)
    assert newest(tmp_path).state.domains == {}
    assert log.snapshot(4).state.domains.keys() == {"d"}


@pytest.mark.parametrize(
    ("age_ms", "kept"), [(0, True), (7 * DAY_MS, True), (7 * DAY_MS + 1, False), (90 * DAY_MS, False)]
)
def test_tombstones_are_kept_for_their_retention(tmp_path: Path, age_ms: int, kept: bool) -> None:
    now_ms = 1_700_000_000_000
    history_by_hand(tmp_path, removed_ms=now_ms - age_ms)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=now_ms)
    assert ("f0" in newest(tmp_path).tombstones["path"].to_pylist()) is kept
    assert sorted(newest(tmp_path).files["path"].to_pylist()) == ["f1", "f2", "f3", "f9"]


def test_the_hint_names_the_checkpoint_and_a_second_writer_changes_nothing(tmp_path: Path) -> None:
    history_by_hand(tmp_path, removed_ms=0)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(4), now_ms=0)
    first = (tmp_path / checkpoint_name(4)).read_bytes()
    hint = json.loads((tmp_path / LAST_CHECKPOINT).read_text())
    assert (hint["version"], hint["sizeInBytes"], hint["numOfAddFiles"]) == (4, len(first), 4)
    assert hint["size"] == pq.read_metadata(io.BytesIO(first)).num_rows
    log.write_checkpoint(log.snapshot(4), now_ms=10**13)
    assert (tmp_path / checkpoint_name(4)).read_bytes() == first


@pytest.mark.slow
def test_commits_are_checkpointed_every_so_often(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 0, "x": 0}], **{"delta_checkpointInterval": "3"})
    for i in range(1, 8):
        world.append({"id": i, "x": i})
    names = sorted(file.name for file in Path(world.path).glob("_delta_log/*.parquet"))
    assert names == [checkpoint_name(version).rpartition("/")[2] for version in (3, 6)]
    forget()
    assert [row["id"] for row in world.rows()] == list(range(8))
    world.assert_clean()


@pytest.mark.slow
def test_a_table_whose_old_commits_are_gone_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 0, "x": 0}], **{"delta_checkpointInterval": "2"})
    for i in range(1, 4):
        world.append({"id": i, "x": i})
    for version in (0, 1, 2):
        (Path(world.path) / commit_name(version)).unlink()
    forget()
    world.update("id = 1", x=11)
    world.append({"id": 4, "x": 4})
    assert {row["id"]: row["x"] for row in world.rows()} == {0: 0, 1: 11, 2: 2, 3: 3, 4: 4}


def test_a_writer_whose_base_is_a_checkpoint_alone_commits(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 0, "x": 0}], **{"delta_checkpointInterval": "2"})
    world.append({"id": 1, "x": 1})
    world.append({"id": 2, "x": 2})
    for version in (0, 1, 2):
        (Path(world.path) / commit_name(version)).unlink()
    forget()
    assert world.append({"id": 3, "x": 3}) == 3
    world.delete("id = 0")
    assert [row["id"] for row in world.rows()] == [1, 2, 3]


# -- others' checkpoints -----------------------------------------------------------------------------------------------


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [None if i % 3 == 0 else f"a/{i % 3} é" for i in ids]})


@pytest.mark.slow
def test_a_checkpoint_of_deltalake_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, rows_of(*range(6)), partition_by=["p"], configuration={"delta.appendOnly": "false"})
    write_deltalake(path, rows_of(6, 7), mode="append")
    DeltaTable(path).delete("id = 1")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, rows_of(8), mode="append")
    checkpointed = newest(path)
    assert checkpointed.segment.checkpoint is not None
    files, gone, state = as_bodies(checkpointed.files), as_bodies(checkpointed.tombstones), checkpointed.state
    assert gone
    assert same_rows(World(path).rows(), deltalake_rows(path))
    plain = from_commits_alone(path)
    assert plain.state == state
    assert without_millis(as_bodies(plain.files)) == without_millis(files)
    assert as_bodies(plain.tombstones).keys() == gone.keys()


def without_millis(bodies: dict[Any, Any]) -> dict[Any, Any]:
    """deltalake's checkpoints may leave empty tags out."""
    return {key: {name: value for name, value in body.items() if value != {}} for key, body in bodies.items()}


def test_deltalake_reads_a_checkpoint_of_ours(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t"))
    rows = [{"id": i, "p": None if i % 3 == 0 else f"a/{i % 3} é"} for i in range(6)]
    world.create(rows, partition_by=("p",), **{"delta_checkpointInterval": "2"})
    world.delete("id = 1")
    world.delete("id = 2")
    for version in (0, 1, 2):
        (Path(world.path) / commit_name(version)).unlink()
    assert same_rows(deltalake_rows(world.path), [row for row in rows if row["id"] not in (1, 2)])


def test_nested_and_missing_columns_of_another_writers_checkpoint_are_taken_as_they_are(store: Store) -> None:
    """No tags, no vectors, further columns, keys as large strings, maps under other names."""
    text_map = pa.map_(pa.large_string(), pa.large_string())
    add_type = pa.struct(
        [
            ("path", pa.large_string()),
            ("partitionValues", text_map),
            ("size", pa.int32()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
            ("stats_parsed", pa.struct([("numRecords", pa.int64())])),
            ("deletionVector", pa.struct([("cardinality", pa.int64()), ("storageType", pa.string())])),
        ]
    )
    body = {"path": "a", "partitionValues": [("x", None)], "size": 5, "stats": "{}", "stats_parsed": {"numRecords": 1}}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    table = pa.table(
        {
            "add": pa.array([None, body], add_type),
            "protocol": pa.array([protocol, None]),
            "sidecar": pa.array([None, None], pa.struct([("path", pa.string())])),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    store.put(checkpoint_name(3), sink.getvalue())
    checkpoint = opened(store)
    (row,) = checkpoint.files().to_pylist()
    assert (row["path"], row["partitionValues"], row["size"], row["stats"]) == ("a", [("x", None)], 5, "{}")
    assert row["tags"] is row["deletionVector"] is None
    assert checkpoint.files().schema == FILES
    assert checkpoint.head().protocol == Protocol(1, 2)
    assert checkpoint.head().metadata is None
    assert checkpoint.tombstones().equals(REMOVES.empty_table())


# -- damage ------------------------------------------------------------------------------------------------------------


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-20],
    "garbage": lambda data: b"x" * len(data),
    "flipped in the files": lambda data: data[:4] + bytes(byte ^ 0xFF for byte in data[4:400]) + data[400:],
}


def damaged(path: Path, damage: str, name: str = checkpoint_name(4)) -> None:
    (path / name).write_bytes(DAMAGES[damage]((path / name).read_bytes()))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_by_where_the_commits_are_there(tmp_path: Path, damage: str) -> None:
    history_by_hand(tmp_path, removed_ms=0)
    log = Log(open_store(tmp_path))
    wanted = log.snapshot()
    files, gone, state = as_bodies(wanted.files), as_bodies(wanted.tombstones), wanted.state
    log.write_checkpoint(log.snapshot(4), now_ms=0)
    damaged(tmp_path, damage)
    found = newest(tmp_path)
    assert (as_bodies(found.files), as_bodies(found.tombstones), found.state) == (files, gone, state)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_by_for_an_older_one(tmp_path: Path, damage: str) -> None:
    history_by_hand(tmp_path, removed_ms=0)
    log = Log(open_store(tmp_path))
    files = as_bodies(log.snapshot().files)
    for version in (2, 4):
        log.write_checkpoint(log.snapshot(version), now_ms=0)
    damaged(tmp_path, damage)
    for version in (0, 1, 2):
        (tmp_path / commit_name(version)).unlink()
    assert as_bodies(newest(tmp_path).files) == files


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_without_a_way_around_it_is_refused_by_its_name(tmp_path: Path, damage: str) -> None:
    history_by_hand(tmp_path, removed_ms=0)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(4), now_ms=0)
    damaged(tmp_path, damage)
    (tmp_path / commit_name(0)).unlink()
    with pytest.raises(errors.CorruptLog) as refused:
        _ = newest(tmp_path).files
    assert refused.value.file == checkpoint_name(4)


def test_a_damaged_checkpoint_never_lets_an_older_version_pass_for_the_newest(tmp_path: Path) -> None:
    history_by_hand(tmp_path, removed_ms=0)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(4), now_ms=0)
    damaged(tmp_path, "cut")
    (tmp_path / commit_name(4)).unlink()
    with pytest.raises(errors.CorruptLog) as refused:
        newest(tmp_path)
    assert refused.value.file == checkpoint_name(4)


@pytest.mark.parametrize("missing", ["protocol", "metaData"])
def test_a_checkpoint_without_protocol_or_metadata_is_refused(tmp_path: Path, missing: str) -> None:
    data = checkpoint_bytes(State(4, HEAD, FILES.empty_table(), REMOVES.empty_table()))[0]
    table = pq.read_table(io.BytesIO(data)).drop_columns([missing])
    sink = io.BytesIO()
    pq.write_table(table, sink)
    open_store(tmp_path).put(checkpoint_name(4), sink.getvalue())
    with pytest.raises(errors.CorruptLog, match=missing):
        newest(tmp_path)


def test_a_checkpoint_with_a_damaged_schema_is_refused_by_its_name(tmp_path: Path) -> None:
    broken = CheckpointHead(Protocol(1, 2), Metadata("id", "{"), {}, {})
    data = checkpoint_bytes(State(4, broken, FILES.empty_table(), REMOVES.empty_table()))[0]
    open_store(tmp_path).put(checkpoint_name(4), data)
    with pytest.raises(errors.CorruptLog) as refused:
        newest(tmp_path)
    assert refused.value.file == checkpoint_name(4)


def test_a_schema_with_many_columns_comes_back(store: Store) -> None:
    wide = Struct(tuple(Field(f"c{i}", "long") for i in range(3000)))
    head = CheckpointHead(Protocol(1, 2), Metadata("id", schema_json(wide)), {}, {})
    found = written(store, FILES.empty_table(), REMOVES.empty_table(), head).head()
    assert found.metadata is not None
    assert found.metadata.schema == wide


def test_an_older_version_starts_from_the_checkpoint_before_it(tmp_path: Path) -> None:
    history_by_hand(tmp_path, removed_ms=0)
    log = Log(open_store(tmp_path))
    for version in (1, 3):
        log.write_checkpoint(log.snapshot(version), now_ms=0)
    snapshot = log.snapshot(2)
    assert snapshot.segment.checkpoint is not None
    assert snapshot.segment.checkpoint.name == checkpoint_name(1)
    assert sorted(load_snapshot(log.store, snapshot.segment).files["path"].to_pylist()) == ["f1", "f2", "f3"]
