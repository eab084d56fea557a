"""Versions of commands that let go of rows and were redone on others, as other engines read them, and their feed."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import anabranch
from anabranch import Table
from anabranch.testing import at_phase
from tests.support.delta_spark import DeltaSpark
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import table_path

pytestmark = [pytest.mark.interop]

FEED = "delta.enableChangeDataFeed"
PROPERTIES = [{FEED: "true"}, {FEED: "true", "delta.enableRowTracking": "true"}, {FEED: "false"}]


def made(path: str, seed: int, properties: dict[str, str]) -> Table:
    """A table with ten changes of many rows, some rows of which another had changed or deleted meanwhile."""
    dice = random.Random(seed)
    rows = pa.table({"id": range(40), "n": [0] * 40, "half": [number % 2 for number in range(40)]})
    chosen = {"anabranch.conflictResolution": "redo", **properties}
    anabranch.append(path, rows, partition_by="half", properties=chosen)
    table, other = anabranch.table(path), anabranch.table(path)
    for _ in range(10):
        few = f"id IN ({dice.randrange(40)}, {dice.randrange(40)})"
        theirs = dice.choice(
            [partial(other.update, few, {"n": "n + 100"}), partial(other.delete, few), partial(other.append, rows[:1])]
        )
        low = dice.randrange(30)
        where = f"id BETWEEN {low} AND {low + 20}"
        with at_phase("staged", theirs):
            kind = dice.random()
            if kind < 0.5:
                table.update(where, {"n": "n + 1", "half": "1 - half"})
            elif kind < 0.85:
                upsert(table, range(low, low + 15))
            else:
                table.delete(f"{where} AND n > 2")
    assert any("numRedoneRows" in commit["operationMetrics"] for commit in table.history())
    return table


def upsert(table: Table, ids: range) -> None:
    source = pa.table({"id": ids, "n": [7] * len(ids), "half": [1] * len(ids)})
    builder = table.merge(source, "target.id = source.id").when_matched_update({"n": "target.n + source.n"})
    builder.when_not_matched_insert_all().execute()


@pytest.mark.parametrize("properties", PROPERTIES)
def test_delta_rs_and_duckdb_read_each_version(tmp_path: Path, properties: dict[str, str]) -> None:
    path = table_path(tmp_path)
    table = made(path, 1, properties)
    for version in range(len(table.history())):
        rows = table.to_arrow(version=version).to_pylist()
        assert same_rows(duckdb_rows(path, version), rows)
        assert same_rows(deltalake_rows(path, version), rows)


@pytest.mark.spark
@pytest.mark.parametrize("properties", PROPERTIES)
def test_delta_spark_reads_each_version_and_the_feed_of_each(
    delta_spark: DeltaSpark, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = table_path(tmp_path)
    table = made(path, 2, properties)
    for version in range(len(table.history())):
        found = delta_spark.query(f"SELECT * FROM delta.`{path}` VERSION AS OF {version}").to_pylist()
        assert same_rows(found, table.to_arrow(version=version).to_pylist())
        if properties[FEED] == "false":
            continue
        columns = "id, n, half, _change_type, _commit_version"
        feed = f"SELECT {columns} FROM table_changes_by_path('{path}', {version}, {version})"
        ours = table.changes(version, version).select([name.strip() for name in columns.split(",")])
        assert same_rows(delta_spark.query(feed).to_pylist(), ours.to_pylist())
