"""History: the newest commits first, from what they say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch import errors
from anabranch._log.file_names import commit_name
from anabranch._log.history import history
from anabranch._log.log import Log
from anabranch._protocol.actions import Metadata
from anabranch._storage import open_store
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit


@pytest.fixture
def log(tmp_path: Path) -> Log:
    put_commit(tmp_path, 0, info(operation="CREATE"), PROTOCOL, metadata())
    put_commit(tmp_path, 1, info(operation="WRITE", inCommitTimestamp=1234), add("a"))
    put_commit(tmp_path, 2, add("b"))
    return Log(open_store(tmp_path))


def test_the_newest_come_first(log: Log) -> None:
    assert [(entry.version, entry.info.get("operation")) for entry in history(log)] == [
        (2, None),
        (1, "WRITE"),
        (0, "CREATE"),
    ]


@pytest.mark.parametrize(("limit", "versions"), [(None, [2, 1, 0]), (2, [2, 1]), (9, [2, 1, 0]), (0, [])])
def test_a_limit_keeps_the_newest(log: Log, limit: int | None, versions: list[int]) -> None:
    assert [entry.version for entry in history(log, limit)] == versions


def test_the_commits_own_timestamp_counts_where_the_table_promises_one(log: Log, tmp_path: Path) -> None:
    written = [(tmp_path / commit_name(version)).stat().st_mtime_ns // 1_000_000 for version in range(3)]
    grown = max(written[0] + 1, written[1]), max(written[0] + 2, written[1] + 1, written[2])
    assert [entry.timestamp for entry in history(log)] == [grown[1], grown[0], written[0]]
    promised = Metadata("id", "", configuration={"delta.enableInCommitTimestamps": "true"})
    assert [entry.timestamp for entry in history(log, metadata=promised)] == [grown[1], 1234, written[0]]


def test_commits_that_were_cleaned_up_are_gone(log: Log, tmp_path: Path) -> None:
    (tmp_path / commit_name(0)).unlink()
    assert [entry.version for entry in history(log)] == [2, 1]


def test_a_damaged_commit_is_named_when_it_is_reached(log: Log, tmp_path: Path) -> None:
    put_commit(tmp_path, 1, "garbage")
    entries = history(log)
    assert next(entries).version == 2
    with pytest.raises(errors.CorruptLog) as refused:
        next(entries)
    assert refused.value.file == commit_name(1)


def test_commits_are_read_one_by_one_as_they_are_asked_for(log: Log, tmp_path: Path) -> None:
    put_commit(tmp_path, 0, "garbage")
    assert next(history(log)).version == 2


def test_no_table_has_no_history(tmp_path: Path) -> None:
    assert list(history(Log(open_store(tmp_path / "nothing")))) == []
