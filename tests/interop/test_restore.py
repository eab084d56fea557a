"""RESTORE beside real delta-spark: it reads what ours went back to, and ours goes back in its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import anabranch
from anabranch.commands.maintenance.restore import METRICS, Restore
from tests.support.delta_spark import DeltaSpark, why_absent
from tests.support.readers import deltalake_rows, duckdb_rows, same_rows
from tests.support.worlds import World, table_path

pytestmark = pytest.mark.skipif(bool(why_absent()), reason=why_absent())
ROWS = [{"id": i, "x": i * 10} for i in range(8)]


@pytest.fixture(scope="module")
def theirs() -> Iterator[DeltaSpark]:
    with DeltaSpark() as session:
        yield session


def assert_all_read(theirs: DeltaSpark, path: str) -> None:
    ours = World(path).rows()
    assert same_rows(theirs.rows(path), ours), "delta-spark reads other rows"
    assert same_rows(deltalake_rows(path), ours), "delta-rs reads other rows"
    assert same_rows(duckdb_rows(path), ours), "DuckDB reads other rows"
    assert anabranch.check(path, deep=True).is_clean


@pytest.mark.parametrize("feature", ["delta_enableRowTracking", "delta_enableInCommitTimestamps", None])
def test_delta_spark_reads_and_changes_what_we_restored_with_vectors(
    theirs: DeltaSpark, tmp_path: Path, feature: str | None
) -> None:
    world = World(table_path(tmp_path)).create(ROWS, **({} if feature is None else {feature: "true"}))
    world.delete("id = 1")
    world.delete("id IN (2, 3)")
    world.update("id = 4", x=444)
    Restore(world.path, 1).run()
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 4, 5, 6, 7]
    assert_all_read(theirs, world.path)
    theirs.sql(f"DELETE FROM delta.`{world.path}` WHERE id = 5", f"INSERT INTO delta.`{world.path}` VALUES (9, 9)")
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 4, 6, 7, 9]
    assert_all_read(theirs, world.path)
    theirs.sql(f"RESTORE TABLE delta.`{world.path}` TO VERSION AS OF 4")
    assert [row["id"] for row in world.rows()] == [0, 2, 3, 4, 5, 6, 7]
    Restore(world.path, 0).run()
    assert world.rows() == ROWS
    assert_all_read(theirs, world.path)


@pytest.mark.parametrize("properties", ["'delta.enableDeletionVectors' = 'true'", "'delta.enableRowTracking' = 'true'"])
def test_we_restore_a_table_of_delta_spark(theirs: DeltaSpark, tmp_path: Path, properties: str) -> None:
    path = str(tmp_path / "theirs")
    theirs.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, x BIGINT) USING delta TBLPROPERTIES ({properties})",
        f"INSERT INTO delta.`{path}` SELECT id, id * 10 FROM range(8)",
        f"DELETE FROM delta.`{path}` WHERE id = 1",
        f"DELETE FROM delta.`{path}` WHERE id = 2",
        f"ALTER TABLE delta.`{path}` ADD COLUMNS (y BIGINT)",
        f"INSERT INTO delta.`{path}` VALUES (50, 1, 1)",
    )
    Restore(path, 2).run()
    assert [row["id"] for row in World(path).rows()] == [0, 2, 3, 4, 5, 6, 7]
    assert list(World(path).rows()[0]) == ["id", "x"]
    assert_all_read(theirs, path)


def test_what_a_restore_says_is_what_delta_spark_says(theirs: DeltaSpark, tmp_path: Path) -> None:
    """The same RESTORE by both, on copies of one table: rows returned, operation, parameters, metrics, rows."""
    path, copy = table_path(tmp_path), table_path(tmp_path)
    said = []
    for each in (path, copy):
        world = World(each).create(ROWS)
        world.delete("id = 1")
        world.append({"id": 9, "x": 9})
    [row] = theirs.query(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0").to_pylist()
    done = Restore(copy, 0).run()
    for each in (path, copy):
        info = World(each).info()
        said.append((info["operation"], info["operationParameters"], info["operationMetrics"].keys()))
    assert list(row) == list(METRICS)
    assert row == done.row
    assert said[0] == said[1]
    assert World(path).rows() == World(copy).rows()


def test_both_write_the_same_manifests(theirs: DeltaSpark, tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "p": "a b/%="}, {"id": 2, "p": None}], partition_by=("p",))
    theirs.sql(f"GENERATE symlink_format_manifest FOR TABLE delta.`{world.path}`")
    expected = manifests(world)
    anabranch.generate(world.path)
    assert manifests(world) == expected


def manifests(world: World) -> dict[str, list[str]]:
    folder = Path(world.path, "_symlink_format_manifest")
    return {
        str(each.relative_to(folder)): [line.replace("file:///", "file:/") for line in each.read_text().splitlines()]
        for each in sorted(folder.rglob("manifest"))
    }
