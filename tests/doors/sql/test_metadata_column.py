"""``_metadata`` says of each row in which file it lies, and where, by name and by path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors

pytestmark = pytest.mark.spark


@pytest.fixture
def table(run: Any) -> str:
    """Two files, of which one has a row that is deleted."""
    run("CREATE TABLE t (id INT, p INT) USING delta PARTITIONED BY (p)")
    run("INSERT INTO t SELECT /*+ COALESCE(1) */ id, 0 FROM range(3)")
    run("INSERT INTO t VALUES (9, 1)")
    run("DELETE FROM t WHERE id = 1")
    return "t"


def test_each_row_has_its_file_and_its_place_there(spark: SparkSession, run: Any, table: str) -> None:
    assert run("SELECT id, _metadata.row_index FROM t") == [(0, 0), (2, 2), (9, 0)]
    folder = anabranch.sql(spark, "DESCRIBE DETAIL t").first().location.removeprefix("file://")
    for id_, path, name, size in run("SELECT id, _metadata.file_path, _metadata.file_name, _metadata.file_size FROM t"):
        file = Path(path.removeprefix("file:"))
        assert (file.name, file.stat().st_size) == (name, size), id_
        assert file.is_relative_to(folder)
    counted = "SELECT count(DISTINCT _metadata.file_path), count(_metadata.file_size), count(*) FROM"
    assert run(f"{counted} t") == run(f"{counted} delta.`{folder}`") == [(2, 3, 3)]


def test_a_star_does_not_show_it(run: Any, table: str) -> None:
    assert run("SELECT *, _metadata.row_index AS i FROM t AS a WHERE a._metadata.row_index > 0") == [(2, 0, 2)]
    assert run("SELECT a.* FROM t AS a ORDER BY _metadata.file_name") == [(0, 0), (2, 0), (9, 1)]
    nested = "SELECT max(i) FROM (SELECT _metadata.row_index AS i FROM t)"
    assert run(nested) == [(2,)]


def test_rows_that_are_tracked_have_their_ids(run: Any) -> None:
    run("CREATE TABLE r (id INT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    run("INSERT INTO r SELECT /*+ COALESCE(1) */ id FROM range(2)")
    run("INSERT INTO r VALUES (7)")
    run("UPDATE r SET id = 8 WHERE id = 1")
    said = "_metadata.row_id, _metadata.row_commit_version"
    assert run(f"SELECT id, {said} FROM r") == [(0, 0, 1), (7, 2, 2), (8, 1, 3)]
    base = "_metadata.base_row_id, _metadata.default_row_commit_version"
    assert run(f"SELECT id, {base} FROM r WHERE id IN (0, 7)") == [(0, 0, 1), (7, 2, 2)]


def test_a_table_without_rows_has_the_same_column(run: Any) -> None:
    run("CREATE TABLE e (id INT) USING delta")
    assert run("SELECT *, _metadata.file_name, _metadata.row_index FROM e") == []


def test_a_view_and_an_insert_may_ask_for_it(run: Any, table: str) -> None:
    run("CREATE TABLE places (id INT, i BIGINT) USING delta")
    run("WITH s AS (SELECT id, _metadata.row_index AS i FROM t) INSERT INTO places SELECT id, i FROM s")
    run("CREATE OR REPLACE TEMP VIEW placed_rows AS SELECT id, _metadata.row_index AS i FROM t")
    assert run("SELECT * FROM placed_rows") == run("SELECT * FROM places") == [(0, 0), (2, 2), (9, 0)]
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
