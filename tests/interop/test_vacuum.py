"""VACUUM by turns: what one removes and writes down, the other reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch._log.log import forget
from anabranch.commands.maintenance.check import check
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.commands.maintenance.vacuum_candidates import last_version
from tests.support.delta_spark import DeltaSpark
from tests.support.patience import a_tick
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]

ROWS = [{"id": i, "x": i, "p": i % 2} for i in range(8)]
UNCHECKED = "SET spark.databricks.delta.retentionDurationCheck.enabled = false"


def assert_agreed(delta_spark: DeltaSpark, world: World) -> None:
    forget(world.log.table)
    ours = world.rows()
    assert same_rows(delta_spark.query(f"SELECT * FROM delta.`{world.path}`").to_pylist(), ours)
    assert same_rows(deltalake_rows(world.path), ours)
    assert same_rows(duckdb_rows(world.path), ours)
    report = check(world.log.snapshot(), deep=True)
    assert report.is_clean, str(report)


def changed(world: World) -> World:
    world.delete("id = 7")
    world.update("id = 1", x=10)
    world.update("id = 1", x=11)
    a_tick(10)
    return world


def test_what_ours_leaves_theirs_reads_and_shows_in_its_history(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = changed(World(table_path(tmp_path)).create(ROWS, partition_by=("p",)))
    done = Vacuum(world.path, 0, check_retention=False).run()
    assert done.files
    assert_agreed(delta_spark, world)
    shown = delta_spark.query(f"DESCRIBE HISTORY delta.`{world.path}` LIMIT 2").to_pylist()
    assert [row["operation"] for row in shown] == ["VACUUM END", "VACUUM START"]
    assert dict(shown[0]["operationParameters"]) == {"status": "COMPLETED"}
    assert dict(shown[0]["operationMetrics"])["numDeletedFiles"] == str(len(done.files))
    assert dict(shown[1]["operationParameters"])["specifiedRetentionMillis"] == "0"


def test_theirs_and_ours_take_turns_full_and_lite(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = changed(World(table_path(tmp_path)).create(ROWS, partition_by=("p",)))
    table = f"delta.`{world.path}`"
    Vacuum(world.path, 0, check_retention=False).run()
    known = last_version(world.log.store)
    world.update("id = 2", x=20)
    delta_spark.sql(UNCHECKED, f"UPDATE {table} SET x = 30 WHERE id = 3", f"DELETE FROM {table} WHERE id = 4")
    a_tick(10)
    delta_spark.sql(f"VACUUM {table} LITE RETAIN 0 HOURS")
    assert (last_version(world.log.store) or 0) > (known or 0)
    assert_agreed(delta_spark, world)
    world.update("id = 5", x=50)
    a_tick(10)
    Vacuum(world.path, 0, lite=True, check_retention=False).run()
    assert_agreed(delta_spark, world)
    delta_spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    assert_agreed(delta_spark, world)
    assert not [
        f for f in Vacuum(world.path, 0, dry_run=True, check_retention=False).run().files if f.name.endswith("t")
    ]
