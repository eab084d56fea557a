"""MERGE by itself: which clause acts on which row, what is written, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch import errors
from anabranch._protocol.merges import Clause
from tests.support.worlds import World, insert_all, table_path, update_all

ROWS = [{"id": i, "p": i % 2, "x": i * 10} for i in range(4)]
COLUMNS = ("id", "p", "x")
DELETE = Clause("matched", "delete")


@pytest.fixture(params=["vectors", "whole files", "partitioned"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    properties = {"delta_enableDeletionVectors": "false"} if request.param == "whole files" else {}
    partitions = ("p",) if request.param == "partitioned" else ()
    made = World(table_path(tmp_path)).create(ROWS, partition_by=partitions, **properties)
    yield made
    made.assert_clean()


def xs(world: World) -> dict[int, int]:
    return {row["id"]: row["x"] for row in world.rows()}


def test_an_upsert_updates_what_matches_and_inserts_the_rest(world: World) -> None:
    done = world.merge([{"id": 1, "p": 0, "x": 11}, {"id": 9, "p": 1, "x": 99}])
    assert xs(world) == {0: 0, 1: 11, 2: 20, 3: 30, 9: 99}
    counts = ("numSourceRows", "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    assert [done.metrics[name] for name in counts] == [2, 1, 1, 0]
    assert world.info()["operation"] == "MERGE"
    assert world.info()["isBlindAppend"] is False


def test_a_null_key_matches_nothing_and_is_inserted(world: World) -> None:
    world.merge([{"id": None, "p": 0, "x": 5}])
    world.merge([{"id": None, "p": 0, "x": 6}])
    assert sorted(row["x"] for row in world.rows() if row["id"] is None) == [5, 6]


def test_the_first_clause_whose_condition_holds_acts(world: World) -> None:
    big = Clause("matched", "delete", lambda row, source: row["x"] > 15)
    world.merge([{"id": i, "p": 0, "x": 7} for i in range(4)], big, update_all("x"))
    assert xs(world) == {0: 7, 1: 7}


def test_an_insert_only_merge_leaves_what_matches(world: World) -> None:
    done = world.merge([{"id": 1, "p": 1, "x": 11}, {"id": 9, "p": 1, "x": 99}], insert_all(*COLUMNS))
    assert xs(world) == {0: 0, 1: 10, 2: 20, 3: 30, 9: 99}
    assert done.metrics["numTargetRowsInserted"] == 1


def test_a_row_that_no_source_row_matches_can_be_changed(world: World) -> None:
    gone = Clause("not matched by source", "delete", lambda row, source: row["x"] < 15)
    marked = Clause("not matched by source", "update", None, {"x": -1})
    done = world.merge([{"id": 1, "p": 0, "x": 11}], update_all("x"), gone, marked)
    assert xs(world) == {1: 11, 2: -1, 3: -1}
    assert done.metrics["numTargetRowsNotMatchedBySourceDeleted"] == 1
    assert done.metrics["numTargetRowsNotMatchedBySourceUpdated"] == 2


def test_two_source_rows_for_one_row_are_refused_and_nothing_is_written(world: World) -> None:
    with pytest.raises(errors.AmbiguousMerge) as refused:
        world.merge([{"id": 1, "p": 0, "x": 1}, {"id": 1, "p": 0, "x": 2}])
    assert refused.value.count == 1
    assert world.version == 0


def test_two_source_rows_may_delete_one_row(world: World) -> None:
    world.merge([{"id": 1, "p": 0, "x": 1}, {"id": 1, "p": 0, "x": 2}], DELETE)
    assert xs(world) == {0: 0, 2: 20, 3: 30}


def test_a_merge_that_finds_nothing_to_do_commits_nothing(world: World) -> None:
    done = world.merge([{"id": 9, "p": 0, "x": 9}], DELETE)
    assert done.committed is None
    assert done.rows == 0
    assert world.version == 0


def test_all_rows_of_a_file_may_go(world: World) -> None:
    world.merge([{"id": i, "p": 0, "x": 0} for i in range(4)], DELETE)
    assert world.rows() == []
    assert len(world.log.snapshot().files) == 0


def test_a_condition_on_the_table_alone_spares_files(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create([{"id": 1, "x": 1}])
    world.append({"id": 50, "x": 2})
    world.engine.evaluated.clear()
    world.merge([{"id": 50, "x": 3}], also="id > 40")
    assert len(world.engine.evaluated) == 1
    assert xs(world) == {1: 1, 50: 3}


def test_an_append_only_table_takes_inserts_only(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_appendOnly="true")
    world.merge([{"id": 9, "p": 0, "x": 9}], insert_all(*COLUMNS))
    with pytest.raises(errors.AppendOnlyTable):
        world.merge([{"id": 9, "p": 0, "x": 10}])
    assert xs(world)[9] == 9


def test_rows_that_are_copied_beside_changed_ones_are_output_too(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, delta_enableDeletionVectors="false")
    done = world.merge([{"id": 1, "p": 0, "x": 11}, {"id": 9, "p": 1, "x": 99}])
    assert done.metrics["numTargetRowsCopied"] == 3
    assert done.metrics["numOutputRows"] == 5
