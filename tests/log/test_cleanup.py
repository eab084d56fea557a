"""The log is cleaned up behind its retention, and never so that a version inside it is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from anabranch import errors
from anabranch._log import checkpointing
from anabranch._log.cleanup import DAY_MS, clean_up
from anabranch._log.file_names import (
    checkpoint_name,
    checkpoint_version,
    checksum_name,
    commit_name,
    commit_version,
    part_name,
)
from anabranch._log.log import Log, forget
from anabranch._log.snapshot import Snapshot
from anabranch._storage import open_store
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.dml.append import Append
from anabranch.testing import at_phase
from anabranch.testing.stores import Call, ObservedStore
from tests.log.histories import as_bodies
from tests.support.raw_logs import PROTOCOL, WITH_VECTORS, Action, add, info, metadata, put_commit, remove
from tests.support.tiers import examples
from tests.support.worlds import World

HOUR_MS = DAY_MS // 24
START_MS = 20_000 * DAY_MS + 6 * HOUR_MS
"""Version 0 was committed at six in the morning of a day; each later one a day later."""


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def set_time(path: Path, name: str, ms: int) -> None:
    os.utime(path / name, ns=(ms * 1_000_000, ms * 1_000_000))


def day(version: int) -> int:
    return START_MS + version * DAY_MS


def table(
    path: Path,
    versions: int = 10,
    checkpoints: tuple[int, ...] = (2, 5, 8),
    protocol: Action = WITH_VECTORS,
    **properties: str,
) -> Log:
    """One file more for each version, a day apart; the retention is two days unless it is given."""
    made = _like.setdefault(repr((versions, checkpoints, protocol, properties, checkpointing.SIDECAR_ACTIONS)), {})
    if not made:
        written(path, versions, checkpoints, protocol, **properties)
        for file in filter(Path.is_file, path.rglob("*")):
            made[file.relative_to(path)] = (file.read_bytes(), file.stat().st_mtime_ns)
    for name, (data, time_ns) in made.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
        os.utime(path / name, ns=(time_ns, time_ns))
    return Log(open_store(path))


_like: dict[str, dict[Path, tuple[bytes, int]]] = {}
"""The files of tables that were made before, with their times."""


def written(path: Path, versions: int, checkpoints: tuple[int, ...], protocol: Action, **properties: str) -> None:
    settings = {"delta_logRetentionDuration": "interval 2 days", **properties}
    put_commit(path, 0, info(inCommitTimestamp=day(0)), protocol, metadata(**settings))
    for version in range(1, versions):
        gone = [remove(f"f{version - 3}", deletionTimestamp=day(version))] if version > 3 else []
        put_commit(path, version, info(inCommitTimestamp=day(version)), add(f"f{version}"), *gone)
    log = Log(open_store(path))
    for version in checkpoints:
        log.write_checkpoint(log.snapshot(version), now_ms=day(version))
    for file in (path / "_delta_log").iterdir():
        version_ = commit_version(f"_delta_log/{file.name}")
        version_ = checkpoint_version(f"_delta_log/{file.name}") if version_ is None else version_
        if version_ is not None:
            set_time(path, f"_delta_log/{file.name}", day(version_))
    forget()


def cleaned(log: Log, now_ms: int) -> list[str]:
    forget()
    return clean_up(log.snapshot(), now_ms=now_ms)


def commits(path: Path) -> list[int]:
    names = (f"_delta_log/{file.name}" for file in (path / "_delta_log").iterdir())
    return sorted(v for name in names if (v := commit_version(name)) is not None)


def checkpoints(path: Path) -> list[int]:
    names = (f"_delta_log/{file.name}" for file in (path / "_delta_log").iterdir())
    return sorted(v for name in names if (v := checkpoint_version(name)) is not None)


def readable(log: Log, versions: range) -> dict[int, Any]:
    forget()
    found = {}
    for version in versions:
        snapshot = log.snapshot(version)
        found[version] = (snapshot.state, as_bodies(snapshot.files))
    return found


# -- what goes and what stays ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_before_the_newest_checkpoint_older_than_the_retention_goes(tmp_path: Path) -> None:
    log = table(tmp_path)
    wanted = readable(log, range(5, 10))
    removed = cleaned(log, day(9))  # what is of day 7 and later stays, and what that is rebuilt from
    assert commits(tmp_path) == [5, 6, 7, 8, 9]
    assert checkpoints(tmp_path) == [5, 8]
    assert set(removed) == {*map(commit_name, range(5)), checkpoint_name(2), checksum_name(2)}
    assert readable(log, range(5, 10)) == wanted
    with pytest.raises(errors.VersionNotFound) as refused:
        log.snapshot(4)
    assert (refused.value.earliest, refused.value.latest) == (5, 9)


@pytest.mark.slow
def test_the_cut_is_at_midnight(tmp_path: Path) -> None:
    log = table(tmp_path)
    # version 8 is of day 8, six o'clock: it expires at the midnight that follows, two days later
    assert cleaned(log, day(10) + 17 * HOUR_MS) != []
    assert commits(tmp_path)[0] == 5
    assert cleaned(log, day(10) + 18 * HOUR_MS) != []
    assert commits(tmp_path)[0] == 8


def test_nothing_goes_without_a_checkpoint_that_is_old_enough(tmp_path: Path) -> None:
    log = table(tmp_path, checkpoints=(8,))
    assert cleaned(log, day(9)) == []
    assert commits(tmp_path) == list(range(10))


@pytest.mark.slow
def test_nothing_goes_where_the_table_says_so(tmp_path: Path) -> None:
    log = table(tmp_path, delta_enableExpiredLogCleanup="false")
    assert cleaned(log, day(90)) == []


@pytest.mark.slow
def test_by_default_thirty_days_are_kept(tmp_path: Path) -> None:
    log = table(tmp_path, delta_logRetentionDuration="interval 30 days")
    for days in (30, 38):  # the newest commit is always from just now
        set_time(tmp_path, commit_name(9), day(days))
        forget()
        assert bool(cleaned(log, day(days))) is (days == 38)


@pytest.mark.slow
def test_nothing_younger_than_an_hour_goes_whatever_the_retention(tmp_path: Path) -> None:
    log = table(tmp_path, delta_logRetentionDuration="interval 0 days")
    midnight = (day(9) // DAY_MS) * DAY_MS
    for version in range(10):
        set_time(tmp_path, commit_name(version), midnight - (10 - version) * 60_000)
    assert cleaned(log, midnight + 1) == []
    assert cleaned(log, midnight + HOUR_MS) != []


@pytest.mark.slow
def test_checksums_compactions_parts_and_v2_checkpoints_go_too(tmp_path: Path) -> None:
    log = table(tmp_path)
    stray = [checksum_name(4), part_name(3, 1, 2), part_name(4, 2, 2), f"_delta_log/{4:020d}.{6:020d}.compacted.json"]
    v2 = f"_delta_log/{4:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    young = [checksum_name(5), f"_delta_log/{6:020d}.{7:020d}.compacted.json", "_delta_log/notes.txt", "part-0.parquet"]
    for name in (*stray, v2, *young):
        log.store.put(name, b"{}")
    removed = cleaned(log, day(9))
    assert {*stray, v2} <= set(removed)
    assert not set(young) & set(removed)
    assert all((tmp_path / name).exists() for name in young)


@pytest.mark.slow
def test_a_clock_that_went_back_makes_no_version_older_than_those_before_it(tmp_path: Path) -> None:
    log = table(tmp_path)
    set_time(tmp_path, commit_name(1), day(9))
    assert cleaned(log, day(9)) == []


@pytest.mark.slow
def test_in_commit_timestamps_count_where_the_table_has_them(tmp_path: Path) -> None:
    """The files bear old times, as a copied table's might; the versions are younger."""
    log = table(tmp_path, delta_enableInCommitTimestamps="true")
    assert log.snapshot().timestamp == day(9)
    for version in range(9):  # the newest one was put just now
        set_time(tmp_path, commit_name(version), day(0))
    cleaned(log, day(9))
    assert commits(tmp_path)[0] == 5


@pytest.mark.slow
def test_versions_before_in_commit_timestamps_go_by_their_files(tmp_path: Path) -> None:
    log = table(tmp_path, delta_enableInCommitTimestamps="true", **{"delta_inCommitTimestampEnablementVersion": "4"})
    for version in range(4):
        set_time(tmp_path, commit_name(version), day(-9))
    cleaned(log, day(6) - 7 * HOUR_MS)
    assert commits(tmp_path)[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("before", "first"), [("5", 5), ("6", 0), ("9", 0), ("?", 0)])
def test_protected_checkpoints_go_in_one_go_or_not_at_all(tmp_path: Path, before: str, first: int) -> None:
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["checkpointProtection"]}}
    log = table(tmp_path, protocol=protocol, delta_requireCheckpointProtectionBeforeVersion=before)
    cleaned(log, day(9))
    assert commits(tmp_path)[0] == first


@pytest.mark.slow
def test_the_log_is_looked_through_once_a_day(tmp_path: Path) -> None:
    log = table(tmp_path)
    snapshot = log.snapshot()
    assert clean_up(snapshot, now_ms=day(9))
    log.store.put(commit_name(4), b"{}")
    set_time(tmp_path, commit_name(4), day(4))
    assert clean_up(snapshot, now_ms=day(9) + HOUR_MS) == []
    assert clean_up(snapshot, now_ms=day(10)) == [commit_name(4)]


# -- doubt -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_read_to_its_end_is_not_relied_upon(tmp_path: Path) -> None:
    log = table(tmp_path)
    data = bytearray((tmp_path / checkpoint_name(5)).read_bytes())
    data[4:200] = bytes(196)
    (tmp_path / checkpoint_name(5)).write_bytes(data)
    set_time(tmp_path, checkpoint_name(5), day(5))
    cleaned(log, day(9))
    assert commits(tmp_path)[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("column", ["add.path", "remove.path"])
def test_a_checkpoint_of_which_one_column_cannot_be_read_is_not_relied_upon(tmp_path: Path, column: str) -> None:
    log, path = table(tmp_path), tmp_path / checkpoint_name(5)
    data, footer = bytearray(path.read_bytes()), pq.read_metadata(path)
    for group in map(footer.row_group, range(footer.num_row_groups)):
        (chunk,) = [each for each in map(group.column, range(group.num_columns)) if each.path_in_schema == column]
        first, length = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
        data[first : first + length] = bytes(length)
    path.write_bytes(data)
    set_time(tmp_path, checkpoint_name(5), day(5))
    cleaned(log, day(9))
    assert commits(tmp_path)[0] == 2


@pytest.mark.slow
def test_a_log_with_a_gap_is_left_alone(tmp_path: Path) -> None:
    log = table(tmp_path)
    snapshot = log.snapshot()
    (tmp_path / commit_name(6)).unlink()
    with pytest.raises(errors.CorruptLog):
        clean_up(snapshot, now_ms=day(9))
    assert commits(tmp_path) == [0, 1, 2, 3, 4, 5, 7, 8, 9]


# -- sidecars ----------------------------------------------------------------------------------------------------------


def v2_table(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Log, list[str]]:
    monkeypatch.setattr(checkpointing, "SIDECAR_ACTIONS", 1)
    protocol = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint"],
        }
    }
    log = table(path, protocol=protocol, delta_checkpointPolicy="v2")
    names = sidecars(log)
    for name in names:
        set_time(path, name, day(0))
    return log, names


def sidecars(log: Log) -> list[str]:
    return [entry.name for entry in log.store.list_from("_delta_log/_sidecars/")]


@pytest.mark.slow
def test_sidecars_go_with_their_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, names = v2_table(tmp_path, monkeypatch)
    wanted = readable(log, range(5, 10))
    removed = cleaned(log, day(9))
    assert checkpoints(tmp_path) == [5, 8]
    assert set(names) - set(removed) == set(sidecars(log))
    assert set(names) & set(removed)
    assert readable(log, range(5, 10)) == wanted


@pytest.mark.slow
def test_young_sidecars_stay_since_their_checkpoint_may_still_come(tmp_path: Path) -> None:
    log = table(tmp_path)
    for name, ms in (("old", day(7)), ("young", day(8)), ("new", day(9))):
        log.store.put(f"_delta_log/_sidecars/{name}.parquet", b"x")
        set_time(tmp_path, f"_delta_log/_sidecars/{name}.parquet", ms)
    cleaned(log, day(9))
    assert [Path(name).stem for name in sidecars(log)] == ["new", "young"]


@pytest.mark.slow
def test_sidecars_stay_where_a_checkpoint_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, names = v2_table(tmp_path, monkeypatch)
    log.store.put(f"_delta_log/{9:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", b"{")
    snapshot = log.snapshot(8)
    forget()
    clean_up(snapshot, now_ms=day(9))
    assert sidecars(log) == names


# -- interleavings -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_after_a_crash_at_any_deletion_every_kept_version_can_be_read_and_the_next_clean_up_ends_it(
    tmp_path: Path,
) -> None:
    wanted: dict[int, Any] = {}
    for crash in range(1, 8, examples(1, 3)):
        path = tmp_path / str(crash)
        log = table(path)
        wanted = wanted or {v: files for v, (_, files) in readable(log, range(5, 10)).items()}
        deletions: list[str] = []

        def before(call: Call, seen: list[str] = deletions, at: int = crash) -> Exception | None:
            if call.method == "delete":
                seen.append(str(call.about))
            return KeyboardInterrupt() if len(seen) == at and call.method == "delete" else None

        broken = Log(ObservedStore(log.store, before))
        forget()
        snapshot = broken.snapshot()
        try:
            clean_up(snapshot, now_ms=day(9))
        except KeyboardInterrupt:
            assert len(deletions) == crash
        left = commits(path)
        assert left == list(range(left[0], 10))
        assert {v: files for v, (_, files) in readable(log, range(5, 10)).items()} == wanted
        cleaned(log, day(9))
        assert commits(path) == [5, 6, 7, 8, 9]


@pytest.mark.slow
def test_two_cleaners_at_once_leave_what_one_leaves(tmp_path: Path) -> None:
    log = table(tmp_path)
    snapshot = log.snapshot()
    inside: list[bool] = []

    def before(call: Call) -> Exception | None:
        if call.method == "delete" and len(inside) < 3:
            inside.append(True)
            forget()
            clean_up(log.snapshot(), now_ms=day(9 + len(inside)))
        return None

    clean_up(snapshot.through(ObservedStore(log.store, before)), now_ms=day(9))
    assert commits(tmp_path) == [8, 9]
    assert checkpoints(tmp_path) == [8]
    assert sorted(row["path"] for row in log.snapshot().files.to_pylist()) == ["f7", "f8", "f9"]


def pinned(log: Log, version: int) -> Snapshot:
    forget()
    return log.snapshot(version)


@pytest.mark.slow
@pytest.mark.parametrize("version", [5, 6, 7, 9])
def test_a_pinned_reader_of_a_kept_version_goes_on_by_another_way(tmp_path: Path, version: int) -> None:
    log = table(tmp_path, checkpoints=(2, 5))
    wanted = readable(log, range(version, version + 1))[version][1]
    reader = pinned(log, version)
    hidden = (tmp_path / checkpoint_name(5)).read_bytes()
    (tmp_path / checkpoint_name(5)).unlink()
    reader = pinned(log, version)  # it was opened before there was that checkpoint
    assert reader.segment.checkpoint is not None
    assert reader.segment.checkpoint.version == 2
    (tmp_path / checkpoint_name(5)).write_bytes(hidden)
    assert cleaned(log, day(9))
    assert as_bodies(reader.files) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 2, 4])
def test_a_pinned_reader_of_a_version_that_is_gone_is_told_so(tmp_path: Path, version: int) -> None:
    log = table(tmp_path)
    reader = pinned(log, version)
    assert cleaned(log, day(9))
    with pytest.raises(errors.VersionCleanedUp) as refused:
        _ = reader.files
    assert (refused.value.version, refused.value.earliest, refused.value.latest) == (version, 5, 9)
    assert refused.value.retryable


def aged(path: str, days: int) -> None:
    """As if everything in the log were this many days older."""
    for file in (Path(path) / "_delta_log").iterdir():
        old = file.stat().st_mtime_ns - days * DAY_MS * 1_000_000
        os.utime(file, ns=(old, old))


def world_with_short_memory(path: Path) -> World:
    properties = {
        "delta_checkpointInterval": "3",
        "delta_logRetentionDuration": "interval 1 day",
        "delta_deletedFileRetentionDuration": "interval 1 day",
    }
    return World(str(path / "t")).create([{"id": 0, "x": 0}], **properties)


@pytest.mark.slow
def test_a_commit_that_writes_a_checkpoint_cleans_up_behind_it(tmp_path: Path) -> None:
    world = world_with_short_memory(tmp_path)
    for i in range(1, 5):
        world.append({"id": i, "x": i})
    aged(world.path, 9)
    forget()
    world.append({"id": 5, "x": 5})
    assert commits(Path(world.path)) == [0, 1, 2, 3, 4, 5]
    world.append({"id": 6, "x": 6})
    assert commits(Path(world.path)) == [3, 4, 5, 6]
    forget()
    assert [row["id"] for row in world.rows()] == list(range(7))
    world.log.snapshot(3)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["append", "delete"])
def test_a_transaction_whose_log_is_cleaned_up_beneath_it_is_told_so_and_changes_nothing(
    tmp_path: Path, command: str
) -> None:
    world = world_with_short_memory(tmp_path)
    world.append({"id": 1, "x": 1})

    def others() -> None:
        for i in range(2, 5):
            world.append({"id": i, "x": i})
        aged(world.path, 9)
        forget()
        for i in range(5, 7):
            world.append({"id": i, "x": i})
        assert commits(Path(world.path)) == [3, 4, 5, 6]

    run = {"append": lambda: world.append({"id": 99, "x": 0}), "delete": lambda: world.delete("id = 0")}[command]
    with pytest.raises(errors.VersionCleanedUp) as refused, at_phase("staged", others):
        run()
    assert refused.value.retryable
    assert [row["id"] for row in world.rows()] == list(range(7))
    run()
    forget()
    world.log.snapshot()


@pytest.mark.slow
def test_a_put_that_comes_after_its_version_was_taken_and_cleaned_up_is_no_commit(tmp_path: Path) -> None:
    """A writer that was stopped between its look and its put, as a machine that sleeps is."""
    world = world_with_short_memory(tmp_path)
    world.append({"id": 1, "x": 1})
    clock = {"ms": 0}
    runtime = Runtime(now_ms=lambda: 1_700_000_000_000 + clock["ms"])

    def others() -> None:
        for i in range(2, 5):
            world.append({"id": i, "x": i})
        aged(world.path, 9)
        forget()
        for i in range(5, 7):
            world.append({"id": i, "x": i})
        clock["ms"] = 9 * DAY_MS

    with pytest.raises(errors.VersionCleanedUp) as refused, at_phase("put", others):
        Append(world.path, [{"id": 99, "x": 0}]).run(context=RunContext(runtime=runtime))
    assert refused.value.version == 2
    forget()
    assert [row["id"] for row in world.rows()] == list(range(7))


def test_a_slow_put_that_is_in_time_is_a_commit(tmp_path: Path) -> None:
    world = world_with_short_memory(tmp_path)
    clock = {"ms": 0}
    runtime = Runtime(now_ms=lambda: 1_700_000_000_000 + clock["ms"])
    with at_phase("put", lambda: clock.update(ms=9 * DAY_MS)):
        Append(world.path, [{"id": 1, "x": 1}]).run(context=RunContext(runtime=runtime))
    assert [row["id"] for row in world.rows()] == [0, 1]


@pytest.mark.slow
def test_an_old_table_without_features_is_cleaned_up_as_well(tmp_path: Path) -> None:
    log = table(tmp_path, protocol=PROTOCOL)
    assert cleaned(log, day(9))
