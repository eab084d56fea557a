"""Partition columns inside data files: who asks for them, which files have them, and whose values are read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch._protocol.layout.paths import decode
from anabranch._protocol.materialised_partitions import ENABLED, FEATURE, WRITTEN
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.drop_feature import DropFeature
from anabranch.errors import NeedsSpark
from anabranch.errors.process_state import forget
from tests.support.worlds import World, table_path

ROWS = [{"p": i % 2, "id": i, "x": i * 10} for i in range(4)]
FEED = "delta.enableChangeDataFeed"
LISTED = f"delta.feature.{FEATURE}"


def made(tmp_path: Path, **properties: str) -> World:
    named = {key.replace(".", "_", 1): value for key, value in properties.items()}
    return World(table_path(tmp_path)).create(ROWS, partition_by=("p",), **named)


def columns_of_files(world: World) -> list[list[str]]:
    """The columns of each live file."""
    paths = world.log.snapshot().files["path"].to_pylist()
    return [pq.read_schema(f"{world.path}/{decode(path)}").names for path in paths]


def features(world: World) -> frozenset[str]:
    return frozenset(world.log.snapshot().protocol.writer_features or ())


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("asked", [{LISTED: "supported"}, {LISTED: "supported", WRITTEN: "false"}, {WRITTEN: "true"}])
def test_every_verb_writes_the_partition_columns_into_files_where_the_table_asks_for_them(
    tmp_path: Path, asked: dict[str, str], vectors: str
) -> None:
    world = made(tmp_path, **asked, **{FEED: "true", "delta.enableDeletionVectors": vectors})
    assert (FEATURE in features(world)) == (LISTED in asked)
    world.update("id = 1", x=11)
    anabranch.table(world.path).update("id = 2", {"p": "3"})
    world.delete("id = 0")
    world.merge([{"p": 1, "id": 3, "x": 31}, {"p": 5, "id": 7, "x": 70}])
    world.append({"p": 5, "id": 8, "x": 80})
    world.optimize(where="p = 5")
    assert {tuple(names) for names in columns_of_files(world)} == {("id", "x", "p")}
    feed = [pq.read_schema(file).names for file in Path(world.path, "_change_data").rglob("*.parquet")]
    assert feed
    assert all("p" in names for names in feed)
    for stats in world.log.snapshot().files["stats"].to_pylist():
        assert "p" not in json.loads(stats)["nullCount"]
    found = [(row["id"], row["p"], row["x"]) for row in world.rows()]
    assert sorted(found) == [(1, 1, 11), (2, 3, 20), (3, 1, 31), (7, 5, 70), (8, 5, 80)]
    world.assert_clean()


def test_without_spark_files_with_partition_columns_are_compacted_and_not_ordered(tmp_path: Path) -> None:
    world = made(tmp_path, **{WRITTEN: "true"})
    world.append(*ROWS)
    with pytest.raises(NeedsSpark, match="partition columns"):
        anabranch.table(world.path).optimize().z_order("id")
    assert anabranch.table(world.path).optimize().compact().committed
    assert columns_of_files(world) == [["id", "x", "p"]] * 2
    world.assert_clean()


def test_an_old_table_gets_the_feature_and_loses_it_without_a_change_of_its_files(tmp_path: Path) -> None:
    world = made(tmp_path)
    assert SetProperties(world.path, {ENABLED: "true"}).run()
    assert FEATURE in features(world)
    world.append({"p": 9, "id": 9, "x": 90})
    assert sorted(columns_of_files(world)) == [["id", "x"], ["id", "x"], ["id", "x", "p"]]
    DropFeature(world.path, FEATURE).run(world.engine)
    assert FEATURE not in features(world)
    assert ENABLED not in world.log.snapshot().metadata.configuration
    world.append({"p": 10, "id": 10, "x": 100})
    assert sorted(columns_of_files(world)) == [["id", "x"], ["id", "x"], ["id", "x"], ["id", "x", "p"]]
    assert len(world.rows()) == 6
    world.assert_clean()


def test_the_log_says_the_partition_of_a_row_whatever_its_file_says(tmp_path: Path) -> None:
    world = made(tmp_path, **{WRITTEN: "true"})
    for path in world.log.snapshot().files["path"].to_pylist():
        file = Path(world.path, decode(path))
        rows = pq.read_table(file)
        liar = rows.set_column(2, "p", pa.array([77] * len(rows), pa.int64()))
        before = file.stat().st_size
        pq.write_table(liar, file)
        log = Path(world.path, "_delta_log", f"{0:020d}.json")
        log.write_text(log.read_text().replace(f'"size":{before}', f'"size":{file.stat().st_size}'))
    forget()
    assert world.rows() == ROWS_BY_PARTITION
    assert anabranch.table(world.path).to_arrow(where="p = 77").num_rows == 0
    assert sorted(anabranch.table(world.path).to_arrow(where="p = 1")["id"].to_pylist()) == [1, 3]
    anabranch.table(world.path).update("id = 1", {"x": "5"})
    assert [row["p"] for row in world.rows() if row["id"] == 1] == [1]


ROWS_BY_PARTITION = sorted(ROWS, key=lambda row: (row["p"], row["id"]))
