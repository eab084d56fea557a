"""Clones beside real delta-spark: it reads ours, and we read and change its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch._log.log import forget
from anabranch.commands.maintenance.clone import Clone
from tests.support.delta_spark import DeltaSpark
from tests.support.raw_logs import listing
from tests.support.readers import same_rows
from tests.support.worlds import World

pytestmark = pytest.mark.interop

VALUES = "VALUES (1, 'a b/%', 1.0D), (2, 'a b/%', 2.0D), (3, NULL, 3.0D), (4, 'é', 4.0D), (5, 'é', 5.0D)"


@pytest.fixture
def origin(tmp_path: Path) -> World:
    world = World(str(tmp_path / "an origin é 50%"))
    world.create([{"id": i, "day": f"d {i % 2}/%", "x": float(i)} for i in range(10)], partition_by=("day",))
    world.delete("id IN (3, 4)")
    return world


@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_delta_spark_reads_and_changes_our_clones(
    delta_spark: DeltaSpark, origin: World, tmp_path: Path, shallow: bool
) -> None:
    target, before = World(str(tmp_path / "the clone ü")), listing(origin.path)
    Clone(origin.path, target.path, shallow).run()
    assert same_rows(delta_spark.rows(target.path), origin.rows())
    target.delete("id = 0")
    delta_spark.sql(
        f"DELETE FROM delta.`{target.path}` WHERE id = 1",
        f"UPDATE delta.`{target.path}` SET x = -1.0 WHERE id = 2",
    )
    target.update("id = 5", x=-5.0)
    origin.append({"id": 50})
    assert same_rows(delta_spark.rows(target.path), target.rows())
    assert [(row["id"], row["x"]) for row in target.rows()][:2] == [(2, -1.0), (5, -5.0)]
    Clone(origin.path, target.path, shallow, replace=True).run()
    assert same_rows(delta_spark.rows(target.path), origin.rows())
    after = listing(origin.path)
    assert {name: after[name] for name in before} == before


def test_we_read_and_change_a_shallow_clone_of_delta_spark(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    source, target = World(str(tmp_path / "their origin é 50%")), World(str(tmp_path / "their clone"))
    delta_spark.sql(
        f"CREATE TABLE delta.`{source.path}` (id BIGINT, day STRING, x DOUBLE) USING delta PARTITIONED BY (day) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        f"INSERT INTO delta.`{source.path}` {VALUES}",
        f"DELETE FROM delta.`{source.path}` WHERE id = 1",
        f"CREATE TABLE delta.`{target.path}` SHALLOW CLONE delta.`{source.path}`",
    )
    before = listing(source.path)
    assert [row["id"] for row in target.rows()] == [2, 3, 4, 5]
    assert target.log.snapshot().files["path"].to_pylist()[0].startswith("file:/")
    target.delete("id = 2")
    target.update("id = 4", x=-4.0)
    target.append({"id": 6, "day": "new", "x": 6.0})
    forget()
    assert [(row["id"], row["x"]) for row in target.rows()] == [(3, 3.0), (4, -4.0), (5, 5.0), (6, 6.0)]
    assert same_rows(delta_spark.rows(target.path), target.rows())
    assert listing(source.path) == before
    third = World(str(tmp_path / "deep"))
    Clone(target.path, third.path).run()
    assert same_rows(delta_spark.rows(third.path), target.rows())
    third.assert_clean()
