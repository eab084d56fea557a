"""``_metadata`` says of each row in which file it lies, and where, by name and by path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch import errors
from tests.support.worlds import World

pytestmark = pytest.mark.spark


@pytest.fixture
def table(run: Any, tmp_path: Path) -> str:
    """Two files, of which one has a row that is deleted."""
    rows = [*({"id": i, "p": 0} for i in range(3)), {"id": 9, "p": 1}]
    world = World(str(tmp_path / "t")).create(rows, partition_by=("p",), delta_enableDeletionVectors="true")
    world.delete("id = 1")
    run(f"CREATE TABLE t USING delta LOCATION '{world.path}'")
    return world.path


def test_each_row_has_its_file_and_its_place_there(run: Any, table: str) -> None:
    said = "_metadata.row_index, _metadata.file_path, _metadata.file_name, _metadata.file_size"
    found = run(f"SELECT id, {said} FROM t")
    assert [(id_, place) for id_, place, *_ in found] == [(0, 0), (2, 2), (9, 0)]
    for id_, _, path, name, size in found:
        file = Path(path.removeprefix("file:"))
        assert (file.name, file.stat().st_size) == (name, size), id_
        assert file.is_relative_to(table)
    paths = run(f"SELECT _metadata.file_path FROM delta.`{table}`")
    assert (len(paths), len(set(paths))) == (3, 2)


def test_a_star_does_not_show_it(run: Any, table: str) -> None:
    assert run("SELECT *, _metadata.row_index AS i FROM t AS a WHERE a._metadata.row_index > 0") == [(2, 0, 2)]
    assert run("SELECT a.* FROM t AS a ORDER BY _metadata.file_name") == [(0, 0), (2, 0), (9, 1)]
    nested = "SELECT max(i) FROM (SELECT _metadata.row_index AS i FROM t)"
    assert run(nested) == [(2,)]


def test_rows_that_are_tracked_have_their_ids(run: Any, tmp_path: Path) -> None:
    world = World(str(tmp_path / "r")).create([{"id": 0}, {"id": 1}], delta_enableRowTracking="true")
    world.append({"id": 7})
    world.update("id = 1", id=8)
    base = "_metadata.base_row_id, _metadata.default_row_commit_version"
    found = run(f"SELECT id, _metadata.row_id, _metadata.row_commit_version, {base} FROM delta.`{world.path}`")
    assert [row[:3] for row in found] == [(0, 0, 0), (7, 2, 1), (8, 1, 2)]
    assert [row[3:] for row in found[:2]] == [(0, 0), (2, 1)]


def test_a_table_without_rows_has_the_same_column(run: Any) -> None:
    run("CREATE TABLE e (id INT) USING delta")
    assert run("SELECT *, _metadata.file_name, _metadata.row_index FROM e") == []


def test_a_view_and_an_insert_may_ask_for_it(run: Any, held: Any, table: str) -> None:
    run("CREATE TABLE places (id INT, i BIGINT) USING delta")
    run("WITH s AS (SELECT id, _metadata.row_index AS i FROM t) INSERT INTO places SELECT id, i FROM s")
    run("CREATE OR REPLACE TEMP VIEW placed_rows AS SELECT id, _metadata.row_index AS i FROM t")
    assert run("SELECT * FROM placed_rows") == held("places") == [(0, 0), (2, 2), (9, 0)]
    run("DROP VIEW placed_rows")


def test_a_column_of_that_name_is_the_tables_own(run: Any) -> None:
    run("CREATE TABLE with_its_metadata (id INT, _metadata STRUCT<file_name: STRING>) USING delta")
    run("INSERT INTO with_its_metadata VALUES (1, named_struct('file_name', 'mine'))")
    assert run("SELECT *, _metadata.file_name FROM with_its_metadata NATURAL JOIN (SELECT 1 AS id)") == [
        (1, ("mine",), "mine")
    ]


def test_where_it_cannot_be_had_the_query_is_refused_by_name(run: Any, table: str) -> None:
    for text in (
        "SELECT id, _metadata.file_name FROM t NATURAL JOIN (SELECT 1 AS id)",
        "SELECT * FROM (SELECT id, _metadata.file_name FROM t)",
    ):
        with pytest.raises(errors.NotBuilt, match="_metadata"):
            run(text)
    with pytest.raises(errors.InputError, match="row_id"):
        run("SELECT _metadata.row_id FROM t")
