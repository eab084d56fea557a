"""Which version was the newest at a moment, by the files' times and by what commits say themselves."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.history import history
from anabranch._log.log import Log
from anabranch._log.version_timestamps import timeline, version_at
from anabranch._protocol.actions import Metadata
from anabranch._protocol.in_commit_timestamps import ENABLED
from anabranch._storage import open_store
from anabranch.testing import ObservedStore
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit

ON = {"delta_enableInCommitTimestamps": "true"}


def since(version: int, timestamp: int) -> dict[str, str]:
    kind = "delta_inCommitTimestampEnablement"
    return {**ON, f"{kind}Version": str(version), f"{kind}Timestamp": str(timestamp)}


def write_at(table: Path, version: int, modified_ms: int, *actions: Any) -> None:
    file = put_commit(table, version, *actions)
    os.utime(file, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))


def table_of(folder: Path, modified: list[int], stated: Mapping[int, int] = {}, **properties: str) -> Log:
    """A table whose commits were written and say so at these times; metadata again where the first one says it."""
    first = min(stated, default=0)
    for version, moment in enumerate(modified):
        said = {"inCommitTimestamp": stated[version]} if version in stated else {}
        heads = [PROTOCOL, metadata()] if version == 0 else []
        heads = [PROTOCOL, metadata(**properties)] if version == first and properties else heads
        write_at(folder, version, moment, info(**said), *heads, add(f"f{version}"))
    return Log(open_store(folder))


@pytest.fixture
def mixed(tmp_path: Path) -> Log:
    """Three commits without a time of their own, then three with: the files' times say other things."""
    stated = {3: 400, 4: 500, 5: 600}
    return table_of(tmp_path, [100, 200, 300, 9_000, 9_001, 1], stated, **since(3, 400))


@pytest.mark.parametrize(("moment", "version"), [(100, 0), (199, 0), (200, 1), (299, 1), (300, 2)])
def test_by_the_files_times_the_newest_at_or_before_counts(tmp_path: Path, moment: int, version: int) -> None:
    assert version_at(table_of(tmp_path, [100, 200, 300]), moment) == version


def test_times_that_do_not_grow_are_made_to(tmp_path: Path) -> None:
    log = table_of(tmp_path, [500, 500, 100, 502, 900])  # 500, 501, 502, 503, 900
    assert [version_at(log, moment) for moment in (500, 501, 502, 503, 899, 900)] == [0, 1, 2, 3, 3, 4]


@pytest.mark.slow
def test_every_version_is_found_by_the_time_that_the_history_shows(tmp_path: Path) -> None:
    dice = random.Random(7)
    log = table_of(tmp_path, [dice.randrange(1000) for _ in range(60)])
    for entry in history(log, metadata=log.snapshot().metadata):
        assert version_at(log, entry.timestamp) == entry.version


def test_before_the_first_and_after_the_last_is_refused_with_what_there_is(tmp_path: Path) -> None:
    log = table_of(tmp_path, [100, 200, 300])
    with pytest.raises(errors.TimestampBeforeEarliestCommit) as early:
        version_at(log, 99)
    with pytest.raises(errors.TimestampAfterLatestCommit) as late:
        version_at(log, 301)
    for refused in (early.value, late.value):
        assert (refused.earliest_version, refused.earliest_ms) == (0, 100)
        assert (refused.latest_version, refused.latest_ms) == (2, 300)
        assert "1970-01-01 00:00:00.100 UTC" in str(refused)
        assert "1970-01-01 00:00:00.300 UTC" in str(refused)


@pytest.mark.parametrize(
    ("moment", "version"),
    [(100, 0), (250, 1), (300, 2), (399, 2), (400, 3), (450, 3), (500, 4), (599, 4), (600, 5)],
)
def test_from_the_boundary_on_commits_say_it_themselves(mixed: Log, moment: int, version: int) -> None:
    assert version_at(mixed, moment) == version
    shown = {entry.version: entry.timestamp for entry in history(mixed, metadata=mixed.snapshot().metadata)}
    assert shown == {0: 100, 1: 200, 2: 300, 3: 400, 4: 500, 5: 600}


def test_beyond_the_commits_own_times_is_refused_whatever_the_files_say(mixed: Log) -> None:
    with pytest.raises(errors.TimestampAfterLatestCommit) as refused:
        version_at(mixed, 9_000)
    assert refused.value.latest_ms == 600
    with pytest.raises(errors.TimestampBeforeEarliestCommit):
        version_at(mixed, 99)


def test_a_table_that_had_them_from_the_beginning_needs_no_boundary(tmp_path: Path) -> None:
    log = table_of(tmp_path, [9, 8, 7], {0: 100, 1: 200, 2: 300}, **ON)
    assert [version_at(log, moment) for moment in (100, 250, 300)] == [0, 1, 2]
    with pytest.raises(errors.TimestampBeforeEarliestCommit):
        version_at(log, 50)


def test_a_stray_timestamp_counts_nothing_where_the_table_promises_none(tmp_path: Path) -> None:
    log = table_of(tmp_path, [100, 200], {1: 5})
    assert [version_at(log, moment) for moment in (150, 200)] == [0, 1]


def test_a_promise_that_a_commit_does_not_keep_is_refused_by_the_files_name(tmp_path: Path) -> None:
    log = table_of(tmp_path, [1, 2, 3], {0: 100, 2: 300}, **ON)
    with pytest.raises(errors.CorruptLog) as refused:
        version_at(log, 200)
    assert refused.value.file == commit_name(1)


@pytest.mark.parametrize("said", ["abc", "200", [200], {"ms": 200}, True, 200.5, 10**30], ids=repr)
def test_a_time_that_is_no_number_is_refused_by_the_names_of_the_file_and_the_field(tmp_path: Path, said: Any) -> None:
    log = table_of(tmp_path, [1, 2, 3], {0: 100, 1: said, 2: 300}, **ON)
    with pytest.raises(errors.CorruptLog) as refused:
        timeline(log.store, Metadata("id", "", configuration={ENABLED: "true"})).timestamp(1)
    assert refused.value.file == commit_name(1)
    assert "an action is not whole (inCommitTimestamp is no whole number of 64 bits)" in refused.value.message


def test_the_commit_info_is_found_though_it_is_not_first_or_very_long(tmp_path: Path) -> None:
    write_at(tmp_path, 0, 1, info(inCommitTimestamp=100), PROTOCOL, metadata(**ON))
    write_at(tmp_path, 1, 2, add("a"), info(inCommitTimestamp=200))
    write_at(tmp_path, 2, 3, info(notes="x" * 40_000, inCommitTimestamp=300))
    log = Log(open_store(tmp_path))
    assert [version_at(log, moment) for moment in (100, 200, 300)] == [0, 1, 2]


@pytest.mark.slow
def test_few_commits_are_read_of_many(tmp_path: Path) -> None:
    count = 500
    table_of(tmp_path, [1] * count, {v: 1000 + 10 * v for v in range(count)}, **ON)
    seen = ObservedStore(open_store(tmp_path))
    Log(seen).snapshot()
    seen.calls.clear()
    assert version_at(Log(seen), 1000 + 10 * 123 + 5) == 123
    reads = [call for call in seen.calls if call.method in ("get", "read_range")]
    assert 0 < len(reads) <= 12
    table_of(tmp_path / "by_files", list(range(count)))
    seen = ObservedStore(open_store(tmp_path / "by_files"))
    Log(seen).snapshot()
    seen.calls.clear()
    assert version_at(Log(seen), 123) == 123
    assert not [call for call in seen.calls if call.method in ("get", "read_range")]


def test_versions_that_cannot_be_rebuilt_do_not_count(tmp_path: Path) -> None:
    log = table_of(tmp_path, [100, 200, 300, 400])
    log.write_checkpoint(log.snapshot(2), now_ms=0)
    (tmp_path / commit_name(0)).unlink()
    assert version_at(Log(open_store(tmp_path)), 300) == 2
    with pytest.raises(errors.TimestampBeforeEarliestCommit) as refused:
        version_at(Log(open_store(tmp_path)), 250)
    assert (refused.value.earliest_version, refused.value.earliest_ms) == (2, 300)


def test_a_table_of_a_checkpoint_alone_has_one_version(tmp_path: Path) -> None:
    log = table_of(tmp_path, [100, 200])
    log.write_checkpoint(log.snapshot(), now_ms=0)
    for version in (0, 1):
        (tmp_path / commit_name(version)).unlink()
    checkpoint = next((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    os.utime(checkpoint, ns=(500_000_000, 500_000_000))
    assert version_at(Log(open_store(tmp_path)), 500) == 1


def test_there_is_no_moment_without_a_table(tmp_path: Path) -> None:
    with pytest.raises(errors.NotATable):
        version_at(Log(open_store(tmp_path)), 5)
