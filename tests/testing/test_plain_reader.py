"""The plain reader gives the rows of a table, and refuses a log that contradicts itself or its files."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch._expressions import Context, condition
from anabranch._protocol.schema.types import from_arrow
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.delete import Delete
from anabranch.testing import ArrowEngine
from anabranch.testing.plain_reader import ContradictoryLog, plain_rows

Action = dict[str, Any]
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = pa.schema([(name, pa.int64()) for name in ("k", "p")])


def rows(*keys: int) -> pa.Table:
    return pa.Table.from_pylist([{"k": key, "p": key % 2} for key in keys], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two versions of appends, then one that marks rows 0 and 2 as deleted."""
    path = str(tmp_path / "table")
    Append(path, rows(0, 1, 2, 3, 4), ("p",), {"delta.enableDeletionVectors": "true"}).run()
    Append(path, rows(5)).run()
    where = condition("k < 3 AND p = 0", Context("t", from_arrow(SCHEMA), NOW, "UTC", lambda _: True))
    Delete(path, where).run(ArrowEngine())
    return tmp_path / "table"


def commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def changed(table: Path, version: int, change: Callable[[Action], Action | None]) -> None:
    """Change each action of a commit, or leave it out."""
    actions = [json.loads(line) for line in commit(table, version).read_text().splitlines()]
    kept = [new for action in actions if (new := change(action)) is not None]
    commit(table, version).write_text("\n".join(map(json.dumps, kept)))


def test_rows_are_those_that_no_vector_deletes_with_their_partitions(table: Path) -> None:
    assert sorted((row["k"], row["p"]) for row in plain_rows(table)) == [(1, 1), (3, 1), (4, 0), (5, 1)]


def vector_of(table: Path) -> Action:
    actions = [json.loads(line) for line in commit(table, 2).read_text().splitlines()]
    return next(each["add"]["deletionVector"] for each in actions if "add" in each)


def with_vector(table: Path, **facts: Any) -> None:
    def change(action: Action) -> Action:
        if "add" in action:
            action["add"]["deletionVector"].update(facts)
        return action

    changed(table, 2, change)


def without_removes(action: Action) -> Action | None:
    return None if "remove" in action else action


def with_more_rows(action: Action) -> Action:
    return {**action, "add": {**action["add"], "stats": '{"numRecords": 9}'}} if "add" in action else action


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda table: commit(table, 1).unlink(), "version 1 is missing"),
        (lambda table: changed(table, 2, without_removes), "which is live"),
        (lambda table: changed(table, 0, lambda action: None if "add" in action else action), "not live"),
        (lambda table: changed(table, 1, with_more_rows), "has 1 rows"),
        (lambda table: with_vector(table, cardinality=1), "another number of rows"),
        (lambda table: with_vector(table, sizeInBytes=vector_of(table)["sizeInBytes"] - 1), "another size"),
        (lambda table: next(table.rglob("*.parquet")).unlink(), r"\.parquet"),
    ],
    ids=["version", "added twice", "removed twice", "row count", "cardinality", "vector's size", "file"],
)
def test_a_contradiction_is_told(table: Path, damage: Callable[[Path], object], said: str) -> None:
    damage(table)
    with pytest.raises(ContradictoryLog, match=said):
        plain_rows(table)


def test_a_wrong_byte_in_a_vector_is_told(table: Path) -> None:
    (file,) = table.rglob("deletion_vector_*.bin")
    data = bytearray(file.read_bytes())
    data[vector_of(table)["offset"] + 20] ^= 1
    file.write_bytes(data)
    with pytest.raises(ContradictoryLog, match="checksum"):
        plain_rows(table)
