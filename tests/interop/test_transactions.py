"""Versions that transactions of several statements made, as other engines read them, and the feed of each."""

from __future__ import annotations

import random
from contextlib import ExitStack
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

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])


def take_turn(table: Table, dice: random.Random) -> None:
    """One statement, whatever there is."""
    low, kind = dice.randrange(12), dice.choice(["append", "update", "delete", "merge", "replace"])
    rows = pa.table({"id": [low, low + 20], "n": [1, 2], "s": ["a", None]}, SCHEMA)
    if kind == "append":
        table.append(rows)
    elif kind == "update":
        table.update(f"id BETWEEN {low} AND {low + 2}", {"n": "n + 1", "s": "concat(s, 'x')"})
    elif kind == "delete":
        table.delete(f"id = {low}")
    elif kind == "merge":
        table.merge(rows, "source.id = target.id").when_matched_update_all().when_not_matched_insert_all().execute()
    else:
        table.overwrite(rows, f"id IN ({low}, {low + 20})")


def made(path: str, seed: int, **properties: str) -> Table:
    """A table whose versions are transactions of up to five statements, some carried over a winner."""
    dice = random.Random(seed)
    chosen = {"delta.enableChangeDataFeed": "true", "anabranch.conflictResolution": "redo", **properties}
    rows = pa.table({"id": range(12), "n": [0] * 12, "s": ["s"] * 12}, SCHEMA)
    anabranch.append(path, rows, properties=chosen)
    table = anabranch.table(path)
    for number in range(6):
        with ExitStack() as around:
            if number % 2:
                around.enter_context(at_phase("staged", partial(table.update, f"id = {number}", {"n": "n + 100"})))
            around.enter_context(anabranch.transaction(path))
            table.append(rows.slice(number, 1))  # so that there is something to commit
            for _ in range(dice.randrange(5)):
                take_turn(table, dice)
    return table


PROPERTIES = [{}, {"delta.enableDeletionVectors": "false"}, {"delta.enableRowTracking": "true"}]


@pytest.mark.parametrize("properties", PROPERTIES)
def test_delta_rs_and_duckdb_read_each_version(tmp_path: Path, properties: dict[str, str]) -> None:
    path = table_path(tmp_path)
    table = made(path, 1, **properties)
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
    table = made(path, 2, **properties)
    for version in range(len(table.history())):
        found = delta_spark.query(f"SELECT * FROM delta.`{path}` VERSION AS OF {version}").to_pylist()
        assert same_rows(found, table.to_arrow(version=version).to_pylist())
        columns = "id, n, s, _change_type, _commit_version"
        feed = f"SELECT {columns} FROM table_changes_by_path('{path}', {version}, {version})"
        ours = table.changes(version, version).select([name.strip() for name in columns.split(",")])
        assert same_rows(delta_spark.query(feed).to_pylist(), ours.to_pylist())
