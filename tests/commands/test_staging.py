"""Staging: what a transaction has written is known from who wrote it, else looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import Table
from anabranch._arrow.site import site_without_spark
from anabranch._arrow.writing import put_all
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.parquet_files import WrittenFile
from anabranch.commands import staging as staging_module
from anabranch.commands.opening import file_set, open_log
from anabranch.commands.staging import Staging

ROWS = [{"id": i, "x": i * 2, "part": i % 2} for i in range(20)]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    anabranch.append(str(tmp_path / "t"), ROWS, partition_by="part")
    return open_log(str(tmp_path / "t")).snapshot()


@pytest.fixture
def staging(snapshot: Snapshot) -> Iterator[Staging]:
    found = Staging(snapshot.store, "one")
    found.start()
    yield found
    found.discard()


def put(snapshot: Snapshot, staging: Staging, count: int) -> list[WrittenFile]:
    """Files of so many rows, one for each partition."""
    schema = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("part", pa.int64())])
    rows = pa.Table.from_pylist(ROWS[:count], schema=schema)
    return put_all(site_without_spark(snapshot.store), staging.folder, [rows], file_set(snapshot))


def test_what_a_writer_says_is_collected_without_a_look(
    snapshot: Snapshot, staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = put(snapshot, staging, 7)
    expected = staging.collect(snapshot.metadata).to_pylist()
    monkeypatch.setattr(staging_module, "read_footer", lambda *_: pytest.fail("it reads a footer"))
    staging.note(listed[:1])
    staging.note(listed[1:])
    told = staging.collect(snapshot.metadata).to_pylist()
    assert [{**row, "modificationTime": 0} for row in told] == [{**row, "modificationTime": 0} for row in expected]
    assert [row["partitionValues"] for row in told] == [[("part", "0")], [("part", "1")]]


def test_where_one_writer_does_not_say_what_it_wrote_all_is_looked_for(snapshot: Snapshot, staging: Staging) -> None:
    for written in (put(snapshot, staging, 1), put(snapshot, staging, 2)[:1]):
        staging.note(written)
    staging.note(None)
    assert len(staging.collect(snapshot.metadata)) == 3
    staging.note([])
    assert not len(staging.collect(snapshot.metadata)), "what was said before is not said again"


VERBS: Mapping[str, Any] = {
    "update": lambda table: table.update("id < 5", {"x": "x + 1"}),
    "delete": lambda table: table.delete("id < 5"),
    "merge": lambda table: (
        table.merge([{"id": 3, "x": 0, "part": 1}, {"id": 99, "x": 0, "part": 3}], "source.id = target.id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
    "overwrite": lambda table: table.overwrite(ROWS[:3], "id < 3"),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("properties", ["delta.enableChangeDataFeed", "delta.enableRowTracking", "no vectors"])
def test_no_change_without_spark_reads_back_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Any, properties: str
) -> None:
    given = {"delta.enableDeletionVectors": "false"} if properties == "no vectors" else {properties: "true"}
    anabranch.append(str(tmp_path / "t"), ROWS, properties=given)
    table: Table = anabranch.table(str(tmp_path / "t"))
    monkeypatch.setattr(staging_module, "read_footer", lambda *_: pytest.fail("it reads a footer"))
    verb(table)
    assert table.check(deep=True).is_clean
