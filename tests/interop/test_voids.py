"""Tables with void columns, by turns: what real delta-spark writes of them we read, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch._log.log import forget
from anabranch.commands.ddl.change_column import ChangeColumn
from anabranch.commands.maintenance.check import check
from tests.support.delta_spark import DeltaSpark
from tests.support.readers import same_rows
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]

FIRST = {"n": None, "id": 1, "s": {"v": None, "a": 1}}
NESTED = "named_struct('v', NULL, 'a', {a})"


def assert_same(delta_spark: DeltaSpark, world: World, ids: set[int]) -> None:
    forget(world.log.table)
    ours = world.rows()
    assert {row["id"] for row in ours} == ids
    assert same_rows(delta_spark.rows(world.path), ours)
    assert check(world.log.snapshot(), deep=True).is_clean  # no other reader is asked: DuckDB's knows no void


def test_delta_spark_reads_and_changes_our_voids(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([FIRST, {"n": None, "id": 2, "s": None}])
    assert_same(delta_spark, world, {1, 2})
    table = f"delta.`{world.path}`"
    delta_spark.sql(
        f"INSERT INTO {table} VALUES (NULL, 3, {NESTED.format(a='3L')})",
        f"UPDATE {table} SET id = 20 WHERE id = 2 AND n IS NULL",
        f"OPTIMIZE {table}",
    )
    assert_same(delta_spark, world, {1, 20, 3})
    ChangeColumn(world.path, ("n",), type="string").run()
    world.append({"n": "x", "id": 4, "s": None})
    assert_same(delta_spark, world, {1, 20, 3, 4})


def test_we_read_and_change_voids_of_delta_spark(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = table_path(tmp_path)
    world, table = World(path), f"delta.`{path}`"
    delta_spark.sql(f"CREATE TABLE {table} USING delta AS SELECT NULL AS n, 1L AS id, {NESTED.format(a='1L')} AS s")
    assert_same(delta_spark, world, {1})
    world.append({"id": 2}, {"n": None, "id": 3, "s": {"v": None, "a": 3}})
    world.update("id = 2", id=20)
    world.delete("id = 1 AND n IS NULL")
    world.optimize()
    assert_same(delta_spark, world, {20, 3})
    delta_spark.sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE STRING", f"INSERT INTO {table} VALUES ('x', 4, NULL)")
    assert_same(delta_spark, world, {20, 3, 4})
