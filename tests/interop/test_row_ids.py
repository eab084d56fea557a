"""Row ids by turns: what we number, delta-spark shows and keeps, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch._log.log import forget
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.maintenance.check import check
from anabranch.errors import DeltaConcurrentModificationException
from anabranch.testing import at_phase
from tests.support.delta_spark import DeltaSpark
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.row_ids import TrackedReader, wrong_ids
from tests.support.worlds import World, table_path

pytestmark = [pytest.mark.interop, pytest.mark.spark]

COLUMNS = ("id", "x")
ROWS = [{"id": i, "x": i} for i in range(6)]
Ids = dict[int, tuple[int, int]]


def ours(world: World) -> Ids:
    reader = TrackedReader(world.log.store, columns=COLUMNS)
    return {row.row[0]: (row.id, row.version) for row in reader.versions()[-1].rows}  # type: ignore[attr-defined]


def theirs(delta_spark: DeltaSpark, world: World) -> Ids:
    asked = "SELECT id, _metadata.row_id AS r, _metadata.row_commit_version AS v"
    found = delta_spark.query(f"{asked} FROM delta.`{world.path}`")
    return {row["id"]: (row["r"], row["v"]) for row in found.to_pylist()}


def assert_agreed(delta_spark: DeltaSpark, world: World) -> None:
    forget(world.log.table)
    assert theirs(delta_spark, world) == ours(world)
    report = check(world.log.snapshot(), deep=True)
    assert report.is_clean, str(report)
    assert same_rows(deltalake_rows(world.path), world.rows())
    assert same_rows(duckdb_rows(world.path), world.rows())


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_table_of_ours_is_changed_by_turns(delta_spark: DeltaSpark, tmp_path: Path, vectors: str) -> None:
    world = World(table_path(tmp_path))
    world.create(ROWS[:4], delta_enableRowTracking="true", delta_enableDeletionVectors=vectors)
    world.append(*ROWS[4:])
    world.update("id = 1", x=10)
    assert_agreed(delta_spark, world)
    table = f"delta.`{world.path}`"
    delta_spark.sql(f"UPDATE {table} SET x = 20 WHERE id IN (1, 2)", f"INSERT INTO {table} VALUES (7, 7)")
    assert_agreed(delta_spark, world)
    world.merge([{"id": 2, "x": 22}, {"id": 8, "x": 8}])
    world.delete("id = 7")
    assert_agreed(delta_spark, world)
    delta_spark.sql(f"OPTIMIZE {table}")
    world.update("id = 3", x=30)
    world.append({"id": 9, "x": 9})
    assert_agreed(delta_spark, world)
    assert wrong_ids(world.log.store, COLUMNS) == []


def test_a_table_of_theirs_is_changed_by_turns(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = World(table_path(tmp_path))
    table = f"delta.`{world.path}`"
    properties = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true')"
    delta_spark.sql(f"CREATE TABLE {table} (id BIGINT, x BIGINT) USING delta {properties}")
    delta_spark.sql(f"INSERT INTO {table} VALUES (0, 0), (1, 1), (2, 2)")
    world.append({"id": 3, "x": 3})
    world.update("id IN (0, 3)", x=30)
    assert_agreed(delta_spark, world)
    delta_spark.sql(f"DELETE FROM {table} WHERE id = 1", f"UPDATE {table} SET x = x + 1 WHERE id >= 2")
    world.merge([{"id": 2, "x": 22}, {"id": 8, "x": 8}])
    assert_agreed(delta_spark, world)
    assert wrong_ids(world.log.store, COLUMNS) == []


def test_a_table_that_we_filled_up_is_one_that_they_know(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS[:3])
    world.append(*ROWS[3:])
    world.delete("id = 1")
    SetProperties(world.path, {"delta.enableRowTracking": "true"}).run()
    assert_agreed(delta_spark, world)
    before = ours(world)
    delta_spark.sql(f"UPDATE delta.`{world.path}` SET x = 20 WHERE id = 2")
    assert {key: row_id for key, (row_id, _) in theirs(delta_spark, world).items()} == {
        key: row_id for key, (row_id, _) in before.items()
    }
    assert_agreed(delta_spark, world)


def test_a_table_that_they_filled_up_is_one_that_we_know(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS[:3])
    world.append(*ROWS[3:])
    delta_spark.sql(f"ALTER TABLE delta.`{world.path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    forget(world.log.table)
    world.update("id = 2", x=20)
    world.append({"id": 9, "x": 9})
    assert_agreed(delta_spark, world)


@pytest.mark.parametrize("by", ["", " ZORDER BY (x)"], ids=["compaction", "zorder"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_changes_of_ours_follow_their_compaction(
    delta_spark: DeltaSpark, tmp_path: Path, by: str, partitioned: bool
) -> None:
    world = World(table_path(tmp_path))
    rows = [{"id": i, "x": 9 - i, "p": i % 2} for i in range(10)]
    world.create(rows[:5], partition_by=("p",) if partitioned else (), delta_enableRowTracking="true")
    world.append(*rows[5:])
    world.update("id = 3", x=33)
    world.delete("id = 4")

    def meanwhile() -> None:
        delta_spark.sql(f"OPTIMIZE delta.`{world.path}`{by}")
        forget(world.log.table)

    with at_phase("staged", meanwhile):
        world.update("id IN (2, 3, 7)", x=70)
    with at_phase("staged", meanwhile):
        world.delete("id IN (0, 9)")
    world.append({"id": 20, "x": 0, "p": 0})
    with at_phase("put", meanwhile):
        world.merge([{"id": 1, "x": 10, "p": 1}, {"id": 21, "x": 21, "p": 1}])
    found = {row["id"]: row["x"] for row in world.rows()}
    assert found == {1: 10, 2: 70, 3: 70, 5: 4, 6: 3, 7: 70, 8: 1, 20: 0, 21: 21}
    operations = [world.info(version)["operation"] for version in range(world.version + 1)]
    assert operations.count("OPTIMIZE") >= 2
    assert_agreed(delta_spark, world)
    assert wrong_ids(world.log.store, ("id", "x", "p")) == []


def test_without_row_ids_nothing_of_their_compaction_says_where_rows_went(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    world = World(table_path(tmp_path)).create(ROWS[:3])
    world.append(*ROWS[3:])
    with (
        pytest.raises(DeltaConcurrentModificationException),
        at_phase("staged", lambda: delta_spark.sql(f"OPTIMIZE delta.`{world.path}`")),
    ):
        world.delete("id = 1")
    commit = world.log.read(world.version)
    assert commit is not None
    tags = [tags for files in (commit.adds, commit.removes) for tags in files["tags"].to_pylist()]
    assert not any(name.lower().startswith("compact") for each in tags for name, _ in each or ())
