"""Checkpoints in parts, under a UUID, with sidecars, with typed statistics: ours and others', whole and damaged."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import errors
from anabranch._log import checkpointing
from anabranch._log.checkpoint import Checkpoint
from anabranch._log.checkpoint_parts import checkpoints_in, missing_part
from anabranch._log.file_names import (
    LAST_CHECKPOINT,
    checkpoint_name,
    checksum_name,
    commit_name,
    first_name,
    part_name,
)
from anabranch._log.log import Log, forget
from anabranch._log.snapshot import Snapshot
from anabranch._log.typed_stats import partition_maps, stats_texts
from anabranch._protocol.actions import FILES, REMOVES
from anabranch._storage import open_store
from anabranch._storage.contract import Entry
from tests.log.histories import as_bodies, without_stats_and_tags
from tests.support.golden import kernel_table
from tests.support.raw_logs import add, info, metadata, put_commit, remove
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World

V2_PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint", "deletionVectors"],
        "writerFeatures": ["v2Checkpoint", "deletionVectors", "appendOnly", "invariants"],
    }
}
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 40, "cardinality": 2}
Picture = tuple[Any, ...]


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> None:
    forget()


def newest(path: Path, version: int | None = None) -> Snapshot:
    forget()
    return Log(open_store(path)).snapshot(version)


def picture(snapshot: Snapshot) -> Picture:
    gone = without_stats_and_tags(as_bodies(snapshot.tombstones))
    return snapshot.version, snapshot.state, as_bodies(snapshot.files), gone


def history(path: Path, **properties: str) -> Picture:
    """Four versions with all kinds of actions; what the last of them is."""
    put_commit(path, 0, info(), V2_PROTOCOL, metadata(partition_by=("x",), **properties))
    put_commit(path, 1, *(add(f"f{i}", partitionValues={"x": [None, "1"][i % 2]}, stats="{}") for i in range(6)))
    put_commit(path, 2, remove("f0"), remove("f2"), {"txn": {"appId": "a", "version": 1}})
    domain = {"domainMetadata": {"domain": "d", "configuration": "c", "removed": False}}
    put_commit(path, 3, remove("f1"), add("f1", partitionValues={"x": "1"}, deletionVector=VECTOR), domain)
    return picture(newest(path))


def checkpointed(path: Path, monkeypatch: pytest.MonkeyPatch, *, sidecar_actions: int | None) -> str:
    """Write a V2 checkpoint of the newest version, and remove every commit but its own; the checkpoint's name."""
    if sidecar_actions:
        monkeypatch.setattr(checkpointing, "SIDECAR_ACTIONS", sidecar_actions)
    log = Log(open_store(path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    only_commit_of(path, 3)
    return checkpoints_in(log.store.list_from(first_name(0)))[-1].name


def only_commit_of(path: Path, version: int) -> None:
    for older in range(version):
        (path / commit_name(older)).unlink(missing_ok=True)


def sidecars(path: Path) -> list[Path]:
    return sorted(path.glob("_delta_log/_sidecars/*.parquet"))


# -- written by others -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "v2-checkpoint-json",
        "v2-checkpoint-parquet",
        "multi-part-checkpoint",
        "only-checkpoint-files",
        "corrupted-last-checkpoint-kernel",
        "basic-with-inserts-deletes-checkpoint",
        "dv-partitioned-with-checkpoint",
    ],
)
def test_a_golden_table_has_by_its_checkpoint_the_files_that_it_has_by_its_commits(name: str, tmp_path: Path) -> None:
    table = kernel_table(name)
    by_checkpoint = newest(table)
    assert by_checkpoint.segment.checkpoint is not None
    copied = tmp_path / "_delta_log"
    copied.mkdir()
    for commit in table.glob("_delta_log/*.json"):
        if ".checkpoint." not in commit.name:
            (copied / commit.name).write_bytes(commit.read_bytes())
    by_commits = newest(tmp_path)
    assert by_commits.segment.checkpoint is None
    assert by_checkpoint.state.protocol == by_commits.state.protocol
    assert by_checkpoint.state.metadata == by_commits.state.metadata
    assert plain(by_checkpoint) == plain(by_commits)
    assert len(by_checkpoint.files) > 0


def plain(snapshot: Snapshot) -> dict[Any, Any]:
    """The live files; checkpoints of delta-spark spell statistics anew, and keep empty tags out."""
    bodies = as_bodies(snapshot.files)
    return {
        key: {n: json.loads(v) if n == "stats" else v for n, v in body.items() if v not in (None, {})}
        for key, body in bodies.items()
    }


# -- written by us -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sidecar_actions", [None, 1, 3])
def test_a_v2_checkpoint_says_what_the_commits_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sidecar_actions: int | None
) -> None:
    wanted = history(tmp_path, delta_checkpointPolicy="v2")
    name = checkpointed(tmp_path, monkeypatch, sidecar_actions=sidecar_actions)
    assert len(sidecars(tmp_path)) == {None: 0, 1: 7, 3: 3}[sidecar_actions]
    found = newest(tmp_path)
    assert found.segment.checkpoint is not None
    assert found.segment.checkpoint.name == name
    assert picture(found) == wanted


def test_each_v2_checkpoint_has_a_name_of_its_own(tmp_path: Path) -> None:
    history(tmp_path, delta_checkpointPolicy="v2")
    log = Log(open_store(tmp_path))
    for _ in range(2):
        log.write_checkpoint(log.snapshot(), now_ms=0)
    found = checkpoints_in(log.store.list_from(first_name(0)))
    assert len({each.name for each in found}) == 2
    assert not (tmp_path / checkpoint_name(3)).exists()


def test_the_hint_names_the_v2_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history(tmp_path, delta_checkpointPolicy="v2")
    name = checkpointed(tmp_path, monkeypatch, sidecar_actions=2)
    said = json.loads((tmp_path / LAST_CHECKPOINT).read_text())
    assert said["v2Checkpoint"]["path"] == Path(name).name
    assert said["v2Checkpoint"]["sizeInBytes"] == (tmp_path / name).stat().st_size
    assert (said["version"], said["numOfAddFiles"]) == (3, 4)


@pytest.mark.parametrize("policy", [None, "classic"])
def test_without_the_policy_checkpoints_stay_classic(tmp_path: Path, policy: str | None) -> None:
    history(tmp_path, **({"delta_checkpointPolicy": policy} if policy else {}))
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    assert (tmp_path / checkpoint_name(3)).exists()


@pytest.mark.interop
@pytest.mark.parametrize("sidecar_actions", [None, 2])
def test_others_read_a_table_of_which_only_a_v2_checkpoint_of_ours_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sidecar_actions: int | None
) -> None:
    if sidecar_actions:
        monkeypatch.setattr(checkpointing, "SIDECAR_ACTIONS", sidecar_actions)
    world = World(str(tmp_path / "t"))
    rows = [{"id": i, "p": None if i % 3 == 0 else f"a/{i % 3} é"} for i in range(9)]
    world.create(rows, partition_by=("p",), delta_checkpointPolicy="v2", delta_checkpointInterval="3")
    for i in (1, 3, 4):
        world.delete(f"id = {i}")
    assert "v2Checkpoint" in (world.log.snapshot().protocol.reader_features or ())
    only_commit_of(Path(world.path), 3)
    assert bool(sidecars(Path(world.path))) is bool(sidecar_actions)
    wanted = [row for row in rows if row["id"] not in (1, 3, 4)]
    forget()
    assert same_rows(world.rows(), wanted)
    assert same_rows(deltalake_rows(world.path), wanted)
    assert same_rows(duckdb_rows(world.path), wanted)


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", [True, False], ids=["missing", "cut"])
def test_a_damaged_sidecar_is_named_or_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    wanted = history(tmp_path, delta_checkpointPolicy="v2")
    commits = {version: (tmp_path / commit_name(version)).read_bytes() for version in range(3)}
    checkpointed(tmp_path, monkeypatch, sidecar_actions=2)
    hurt = sidecars(tmp_path)[0]
    if gone:
        hurt.unlink()
    else:
        hurt.write_bytes(hurt.read_bytes()[:-7])
    with pytest.raises(errors.CorruptLog) as refused:
        picture(newest(tmp_path))
    assert refused.value.file == f"_delta_log/_sidecars/{hurt.name}"
    for version, data in commits.items():
        (tmp_path / commit_name(version)).write_bytes(data)
    assert picture(newest(tmp_path)) == wanted


def test_a_snapshot_that_was_opened_before_its_checkpoint_broke_takes_another_way(tmp_path: Path) -> None:
    wanted = history(tmp_path)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    opened = newest(tmp_path)
    assert opened.segment.checkpoint is not None
    (tmp_path / checkpoint_name(3)).write_bytes(b"PAR1")
    assert picture(opened) == wanted


def test_a_checkpoint_of_another_version_does_not_pass_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(tmp_path, delta_checkpointPolicy="v2")
    name = checkpointed(tmp_path, monkeypatch, sidecar_actions=None)
    put_commit(tmp_path, 4, add("late"))
    only_commit_of(tmp_path, 4)
    (tmp_path / name).rename(tmp_path / name.replace("3.checkpoint", "4.checkpoint"))
    with pytest.raises(errors.CorruptLog, match="checkpointMetadata"):
        picture(newest(tmp_path))


def test_a_checkpoint_under_an_id_that_does_not_say_its_version_is_refused(tmp_path: Path) -> None:
    file = in_json(tmp_path, history(tmp_path, delta_checkpointPolicy="v2"))
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(errors.CorruptLog, match=r"checkpointMetadata has the versions \[\]"):
        picture(newest(tmp_path))


def test_a_path_of_a_sidecar_never_leaves_the_folder_of_sidecars(tmp_path: Path) -> None:
    wanted = history(tmp_path, delta_checkpointPolicy="v2")
    in_json(tmp_path, wanted, path="file:///etc/../elsewhere/side%20car.parquet")
    with pytest.raises(errors.CorruptLog) as refused:
        picture(newest(tmp_path))
    assert refused.value.file == "_delta_log/_sidecars/side car.parquet"


@pytest.mark.parametrize("wrong", ["f1", "two protocols", "no version", "{"])
def test_a_damaged_checkpoint_in_json_is_refused_by_its_name(tmp_path: Path, wrong: str) -> None:
    wanted = history(tmp_path, delta_checkpointPolicy="v2")
    file = in_json(tmp_path, wanted)
    lines = file.read_text().splitlines()
    changed = {
        "f1": [*lines[:-1], lines[-1][:-5]],
        "two protocols": [*lines, lines[1]],
        "no version": lines[1:],
        "{": [*lines[:3], "{", *lines[3:]],
    }[wrong]
    file.write_text("\n".join(changed))
    with pytest.raises(errors.CorruptLog) as refused:
        picture(newest(tmp_path))
    assert refused.value.file == str(file.relative_to(tmp_path))


def in_json(table: Path, wanted: Picture, **sidecar: str) -> Path:
    """A V2 checkpoint of version 3 in JSON with its files, or with a sidecar, and no commit before its own."""
    _, state, files, gone = wanted
    lines = [{"checkpointMetadata": {"version": 3}}, {"protocol": state.protocol.to_json()}]
    lines += [{"metaData": state.metadata.to_json()}]
    lines += [{"txn": each.to_json()} for each in state.app_transactions.values()]
    lines += [{"domainMetadata": each.to_json()} for each in state.domains.values()]
    if sidecar:
        lines += [{"sidecar": {"sizeInBytes": 1, "modificationTime": 0, **sidecar}}]
    else:
        lines += [{"remove": {**each, "dataChange": False}} for each in gone.values()]
        lines += [{"add": {**each, "dataChange": False}} for each in files.values()]
    file = table / f"_delta_log/{3:020d}.checkpoint.{UUID}.json"
    file.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines))
    only_commit_of(table, 3)
    return file


def test_a_checkpoint_in_json_that_holds_its_files_itself_is_read(tmp_path: Path) -> None:
    wanted = history(tmp_path, delta_checkpointPolicy="v2")
    in_json(tmp_path, wanted)
    assert picture(newest(tmp_path)) == wanted


@pytest.mark.slow
def test_a_checkpoint_in_parts_is_read_wherever_each_action_stands(tmp_path: Path) -> None:
    wanted = history(tmp_path)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    whole = pq.read_table(tmp_path / checkpoint_name(3))
    (tmp_path / checkpoint_name(3)).unlink()
    only_commit_of(tmp_path, 3)
    for part in range(3):
        rows = [row for row in range(len(whole)) if row % 3 == part]
        pq.write_table(whole.take(rows), tmp_path / part_name(3, part + 1, 3))
    assert picture(newest(tmp_path)) == wanted


def test_a_large_checkpoint_is_read_by_ranges_and_only_as_far_as_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = history(tmp_path)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    only_commit_of(tmp_path, 3)
    monkeypatch.setattr("anabranch._log.parquet.READ_WHOLE_BYTES", 0)
    fetched: list[str] = []
    get = type(log.store).get
    monkeypatch.setattr(
        type(log.store), "get", lambda self, name, **tag: fetched.append(name) or get(self, name, **tag)
    )
    assert picture(newest(tmp_path)) == wanted
    assert checkpoint_name(3) not in fetched


def test_a_checkpoint_that_is_put_anew_while_its_ranges_are_read_is_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-spark overwrites classic checkpoints; what is read then is the new one as a whole."""
    wanted = history(tmp_path)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    only_commit_of(tmp_path, 3)
    monkeypatch.setattr("anabranch._log.parquet.READ_WHOLE_BYTES", 0)
    opened = newest(tmp_path)
    found = opened.segment.checkpoint
    assert found is not None
    checkpoint = Checkpoint(opened.store, found)
    checkpoint.head()
    table = pq.read_table(tmp_path / checkpoint_name(3))
    pq.write_table(table.take(list(reversed(range(len(table))))), tmp_path / checkpoint_name(3), compression="none")
    assert as_bodies(checkpoint.files()) == wanted[2]


# -- typed statistics --------------------------------------------------------------------------------------------------

UTC = dt.UTC
BOUNDS = pa.struct(
    [
        ("i", pa.int8()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("c", pa.decimal128(12, 3)),
        ("f", pa.float64()),
        ("e", pa.float32()),
        ('s"\\', pa.string()),
        ("b", pa.bool_()),
        ("g", pa.struct([("a", pa.int64())])),
        ("raw", pa.binary()),
    ]
)
TYPED = pa.struct([("numRecords", pa.int64()), ("tightBounds", pa.bool_()), ("minValues", BOUNDS)])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"i": -5}, '{"i":-5}'),
        ({"d": dt.date(1, 2, 3)}, '{"d":"0001-02-03"}'),
        ({"t": dt.datetime(2020, 1, 2, 3, 4, 5, 678, UTC)}, '{"t":"2020-01-02T03:04:05.000678Z"}'),
        ({"n": dt.datetime(1960, 1, 2, 3, 4, 5)}, '{"n":"1960-01-02T03:04:05.000000"}'),
        ({"c": Decimal("-1.10")}, '{"c":-1.100}'),
        ({"f": 0.1, "e": 0.1}, '{"f":0.1,"e":0.1}'),
        ({"f": float("nan"), "e": float("inf")}, '{"f":"NaN","e":"Infinity"}'),
        ({'s"\\': 'a"\\\n é'}, '{"s\\"\\\\":"a\\"\\\\\\n é"}'),
        ({"b": False, "g": {"a": None}}, '{"b":false,"g":{}}'),
        ({"raw": b"x"}, "{}"),
        ({}, "{}"),
        (None, None),
    ],
)
def test_typed_statistics_become_the_text_that_they_were_made_of(value: Any, text: str | None) -> None:
    parsed = pa.array([None, {"numRecords": 3, "tightBounds": True, "minValues": value}], TYPED)
    bounds = "" if text is None else f',"minValues":{text}'
    assert stats_texts(parsed).to_pylist() == [None, f'{{"numRecords":3,"tightBounds":true{bounds}}}']
    json.loads(stats_texts(parsed)[1].as_py())


def test_typed_partition_values_become_texts() -> None:
    type_ = pa.struct([("d", pa.date32()), ("s", pa.string()), ("t", pa.timestamp("us", "UTC"))])
    rows = [{"d": dt.date(2020, 1, 31), "s": None, "t": dt.datetime(2020, 1, 1, tzinfo=UTC)}, None]
    wanted = [("d", "2020-01-31"), ("s", None), ("t", "2020-01-01T00:00:00.000000Z")]
    assert partition_maps(pa.array(rows, type_)).to_pylist() == [wanted, None]


@pytest.mark.parametrize("has_text", ["never", "sometimes"])
def test_a_checkpoint_with_typed_statistics_only_gives_their_text(tmp_path: Path, has_text: str) -> None:
    history(tmp_path)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    only_commit_of(tmp_path, 3)
    table = pq.read_table(tmp_path / checkpoint_name(3))
    actions = table["add"].to_pylist()
    for i, action in enumerate(each for each in actions if each):
        action["stats_parsed"] = {"numRecords": i, "minValues": {"i": i}}
        action["stats"] = '{"numRecords":7}' if has_text == "sometimes" and i == 0 else None
    fields = [f for f in table["add"].type if f.name != "stats" or has_text == "sometimes"]
    typed = pa.array(actions, pa.struct([*fields, ("stats_parsed", TYPED)]))
    sink = io.BytesIO()
    pq.write_table(table.set_column(table.column_names.index("add"), "add", typed), sink)
    (tmp_path / checkpoint_name(3)).write_bytes(sink.getvalue())
    first = '{"numRecords":7}' if has_text == "sometimes" else '{"numRecords":0,"minValues":{"i":0}}'
    rest = [f'{{"numRecords":{i},"minValues":{{"i":{i}}}}}' for i in (1, 2, 3)]
    assert newest(tmp_path).files["stats"].to_pylist() == [first, *rest]


def test_a_field_with_a_garbled_name_does_not_pass_for_one_that_is_absent(tmp_path: Path) -> None:
    """A file without its vector would bring deleted rows back."""
    history(tmp_path)
    log = Log(open_store(tmp_path))
    log.write_checkpoint(log.snapshot(), now_ms=0)
    only_commit_of(tmp_path, 3)
    table = pq.read_table(tmp_path / checkpoint_name(3))
    fields = [f.with_name(f.name.replace("deletionVector", "deletionVectos")) for f in table["add"].type]
    chunk = table["add"].combine_chunks()
    garbled = pa.StructArray.from_arrays(chunk.flatten(), fields=fields, mask=chunk.is_null())
    pq.write_table(table.set_column(table.column_names.index("add"), "add", garbled), tmp_path / checkpoint_name(3))
    with pytest.raises(errors.CorruptLog) as refused:
        picture(newest(tmp_path))
    assert refused.value.file == checkpoint_name(3)


# -- log compaction files ----------------------------------------------------------------------------------------------


def with_compaction(path: Path) -> tuple[Picture, Path]:
    """A table with a compaction of all its changes; what its commits say, and the file."""
    history(path)
    newest_commit = (path / commit_name(3)).read_bytes()
    actions = [remove("f0"), remove("f2"), remove("f1"), {"txn": {"appId": "a", "version": 1}}]
    actions += [add(f"f{i}", partitionValues={"x": [None, "1"][i % 2]}, stats="{}") for i in (3, 4, 5)]
    actions += [add("f1", partitionValues={"x": "1"}, deletionVector=VECTOR)]
    actions += [{"domainMetadata": {"domain": "d", "configuration": "c", "removed": False}}]
    file = put_commit(path, 3, *actions).rename(path / f"_delta_log/{1:020d}.{3:020d}.compacted.json")
    (path / commit_name(3)).write_bytes(newest_commit)
    aside = file.rename(path / "aside")
    opened = newest(path)
    wanted = picture(opened)
    (path / checksum_name(3)).write_bytes(opened.checksum().to_json())
    return wanted, aside.rename(file)


def test_a_compaction_gives_what_its_commits_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, file = with_compaction(tmp_path)
    read: list[str] = []
    get = type(open_store(tmp_path)).get
    monkeypatch.setattr(
        type(open_store(tmp_path)), "get", lambda self, name, **tag: read.append(name) or get(self, name, **tag)
    )
    found = picture(newest(tmp_path))
    assert found[:3] == wanted[:3]
    assert found[3].keys() >= wanted[3].keys()
    assert f"_delta_log/{file.name}" in read
    assert commit_name(2) not in read


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "garbled", "cut in a file"])
def test_a_broken_compaction_is_passed_by(tmp_path: Path, damage: str) -> None:
    wanted, file = with_compaction(tmp_path)
    data = file.read_bytes()
    opened = newest(tmp_path)
    assert opened.segment.entries_to_replay != opened.segment.commits
    if damage == "gone":
        file.unlink()
    else:
        half = data.replace(b'"path":"f4"', b'"path":4')
        changed = {"empty": b"", "cut": data[:-9], "garbled": b"\xff" + data, "cut in a file": half}
        file.write_bytes(changed[damage])
    assert picture(opened) == wanted
    assert picture(newest(tmp_path)) == wanted


def test_schemas_stay_what_snapshots_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history(tmp_path, delta_checkpointPolicy="v2")
    checkpointed(tmp_path, monkeypatch, sidecar_actions=2)
    found = newest(tmp_path)
    assert found.files.schema == FILES
    assert found.tombstones.schema == REMOVES


def test_a_checkpoint_of_a_later_version_does_not_pass_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(tmp_path, delta_checkpointPolicy="v2")
    name = checkpointed(tmp_path, monkeypatch, sidecar_actions=None)
    (tmp_path / name).rename(tmp_path / name.replace("3.checkpoint", "2.checkpoint"))
    with pytest.raises(errors.CorruptLog, match="checkpointMetadata"):
        picture(Log(open_store(tmp_path)).snapshot(2))


def test_a_part_of_two_that_is_missing_is_named() -> None:
    there = [Entry(part_name(3, 2, 2), 1, 0, None), Entry(part_name(4, 1, 2), 1, 0, None)]
    assert missing_part(there, 0, 3) == part_name(3, 1, 2)
    assert missing_part(there, 4, 9) == part_name(4, 2, 2)
    assert missing_part(there, 5, 9) is None
