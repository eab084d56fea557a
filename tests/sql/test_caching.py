"""CACHE TABLE keeps a table's rows in Spark, and nobody ever reads older rows for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import anabranch
from anabranch import errors
from tests.support.readers import deltalake_rows
from tests.support.worlds import World

pytestmark = pytest.mark.spark


@pytest.fixture
def run(spark: SparkSession, run: Any, append: Any) -> Iterator[Any]:
    run("CREATE TABLE t (id INT) USING delta")
    append("t", 1, 2)
    yield run
    spark.catalog.clearCache()


@pytest.fixture
def append(path_of: Any) -> Any:
    """Append to a table, by another process as it were: the session hears nothing of it."""

    def rows(name: str, *ids: int) -> None:
        anabranch.append(path_of(name), pa.table({"id": pa.array(ids, pa.int32())}))

    return rows


def is_cached(run: Any, query: str = "SELECT * FROM t WHERE id > 0") -> bool:
    return "InMemoryTableScan" in run(f"EXPLAIN {query}")[0][0]


def test_a_query_of_a_cached_table_reads_no_file(spark: SparkSession, run: Any) -> None:
    assert not is_cached(run)
    assert run("CACHE TABLE t") == []
    assert is_cached(run)
    location = anabranch.sql(spark, "DESCRIBE DETAIL t").first().location
    assert is_cached(run, f"SELECT count(*) FROM delta.`{location}`")
    assert run("SELECT * FROM t WHERE id > 1") == [(2,)]
    assert run("UNCACHE TABLE t") == []
    assert not is_cached(run)
    run("UNCACHE TABLE IF EXISTS t")


def test_every_commit_is_seen_and_the_newest_version_is_cached_instead(run: Any, append: Any, path_of: Any) -> None:
    run("CACHE TABLE t")
    run("INSERT INTO t VALUES (3)")
    assert run("SELECT * FROM t") == [(1,), (2,), (3,)]
    World(path_of("t")).delete("id = 1")
    append("t", 4)
    assert is_cached(run)
    assert run("SELECT * FROM t") == [(2,), (3,), (4,)]
    run("ALTER TABLE t ADD COLUMN v INT")
    assert run("SELECT * FROM t WHERE id > 3") == [(4, None)]


def test_an_older_version_is_read_as_ever(run: Any, append: Any) -> None:
    run("CACHE TABLE t")
    append("t", 3)
    assert is_cached(run)
    assert not is_cached(run, "SELECT * FROM t VERSION AS OF 0")
    assert run("SELECT * FROM t VERSION AS OF 1") == [(1,), (2,)]
    assert is_cached(run)


def test_another_table_of_the_name_is_not_cached(run: Any, append: Any) -> None:
    run("CACHE LAZY TABLE t")
    run("DROP TABLE t")
    run("CREATE TABLE t (id INT) USING delta")
    append("t", 7)
    assert not is_cached(run)
    assert run("SELECT * FROM t") == [(7,)]


def test_clear_cache_ends_it(run: Any, append: Any) -> None:
    run("CACHE LAZY TABLE t OPTIONS ('storageLevel' = 'disk_only')")
    assert is_cached(run)
    run("CLEAR CACHE")
    assert not is_cached(run)
    append("t", 3)
    assert not is_cached(run)


def test_what_is_cached_is_a_table_at_a_level_that_spark_has(run: Any) -> None:
    for options in ("'storageLevel' = 'nowhere'", "'storageLevel' = 'NONE'", "'level' = 'DISK_ONLY'"):
        with pytest.raises(errors.InvalidOption):
            run(f"CACHE TABLE t OPTIONS ({options})")
        with pytest.raises(errors.InvalidOption):
            run(f"CACHE TABLE some OPTIONS ({options}) AS SELECT * FROM t")
    assert not is_cached(run)
    with pytest.raises(AnalysisException):
        run("SELECT * FROM some")


def test_a_query_is_cached_as_a_temporary_view_until_its_table_changes(run: Any, append: Any, path_of: Any) -> None:
    assert run("CACHE TABLE doubled AS SELECT id * 2 AS id, rand() AS r FROM t") == []
    first = run("SELECT * FROM doubled")
    assert [row[0] for row in first] == [2, 4]
    assert is_cached(run, "SELECT id FROM doubled")
    assert run("SELECT * FROM doubled") == first, "rows are kept, and not computed anew"
    assert not is_cached(run)
    append("t", 3)
    assert run("SELECT id FROM doubled") == [(2,), (4,), (6,)]
    assert is_cached(run, "SELECT id FROM doubled")
    run("UNCACHE TABLE doubled")
    assert not is_cached(run, "SELECT id FROM doubled")
    World(path_of("t")).delete("id = 1")
    assert run("SELECT id FROM doubled") == [(4,), (6,)]
    assert not is_cached(run, "SELECT id FROM doubled")


@pytest.mark.exhaustive(
    "tests/sql/test_caching.py::test_a_query_is_cached_as_a_temporary_view_until_its_table_changes",
    "tests/sql/test_caching.py::test_a_temporary_view_is_made_anew_only_where_it_would_show_other_rows",
    "tests/sql/test_sql.py::test_a_temporary_view_follows_its_tables",
)
def test_a_cached_query_of_other_views_is_never_behind_their_tables(spark: SparkSession, run: Any) -> None:
    run("CREATE OR REPLACE TEMPORARY VIEW few AS SELECT * FROM t WHERE id < 3")
    run("CREATE VIEW lasting AS SELECT * FROM t")
    query = "SELECT id FROM few UNION ALL SELECT id FROM lasting"
    run(f"CACHE LAZY TABLE both OPTIONS ('storageLevel' = 'DISK_ONLY') {query}")
    assert run("SELECT * FROM both") == [(1,), (1,), (2,), (2,)]
    run("INSERT INTO t VALUES (7)")
    anabranch.sql(spark, "SELECT * FROM few")
    assert run("SELECT * FROM both") == [(1,), (1,), (2,), (2,), (7,)]
    assert is_cached(run, "SELECT * FROM both")
    assert spark.table("both").storageLevel.useMemory is False
    spark.catalog.dropTempView("both")
    spark.catalog.dropTempView("few")


def test_a_query_that_fails_leaves_no_view(run: Any) -> None:
    with pytest.raises(errors.ExecutionFailed):
        run("CACHE TABLE broken AS SELECT 1 / (id - id) AS x FROM t")
    with pytest.raises(AnalysisException):
        run("SELECT * FROM broken")
    run("CREATE TEMPORARY VIEW broken AS SELECT 7 AS x")
    with pytest.raises(AnalysisException):
        run("CACHE TABLE broken AS SELECT * FROM t")
    assert run("SELECT * FROM broken") == [(7,)]
    run("DROP VIEW broken")


def test_a_cached_table_is_the_source_of_a_change_of_itself(run: Any) -> None:
    run("CACHE TABLE t")
    run("INSERT INTO t SELECT id + 10 FROM t")
    run("MERGE INTO t USING (SELECT max(id) AS id FROM t) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert run("SELECT * FROM t") == [(1,), (2,), (11,)]


# -- what a temporary view reads ---------------------------------------------------------------------------------------


def test_a_temporary_view_reads_what_its_names_mean_now(spark: SparkSession, run: Any, tmp_path: Path) -> None:
    for name, value in (("first", 1), ("second", 2), ("third", 3)):
        anabranch.append(tmp_path / name, [{"a": value}])
    run(f"CREATE TABLE x USING delta LOCATION '{tmp_path / 'first'}'")
    run("CREATE OR REPLACE TEMPORARY VIEW by_name AS SELECT * FROM x")
    run(f"CREATE OR REPLACE TEMPORARY VIEW by_path AS SELECT * FROM delta.`{tmp_path / 'first'}`")
    run("CACHE LAZY TABLE kept AS SELECT a FROM x")
    run("DROP TABLE x")
    for statement in ("SELECT * FROM by_name", "SELECT * FROM kept", "INSERT INTO by_name VALUES (5)"):
        with pytest.raises(errors.UnknownTable):
            run(statement)
    run(f"CREATE TABLE x USING delta LOCATION '{tmp_path / 'second'}'")
    assert run("SELECT a FROM by_name UNION ALL SELECT a FROM kept") == [(2,), (2,)]
    run("INSERT INTO by_name VALUES (5)")
    assert deltalake_rows(f"{tmp_path}/second") == [{"a": 2}, {"a": 5}]
    run("ALTER TABLE x RENAME TO y")
    run(f"CREATE TABLE x USING delta LOCATION '{tmp_path / 'third'}'")
    every = " UNION ALL ".join(f"SELECT '{name}', a FROM {name}" for name in ("by_name", "by_path", "kept"))
    assert run(every) == [("by_name", 3), ("by_path", 1), ("kept", 3)]
    for name in ("by_name", "by_path", "kept"):
        spark.catalog.dropTempView(name)


def test_a_temporary_view_is_made_anew_only_where_it_would_show_other_rows(
    spark: SparkSession, run: Any, append: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark is told to make is noted: each such view is analysed anew, which a statement has to wait for."""
    frames = type(spark.range(1))
    made, real = list[str](), frames.createOrReplaceTempView

    def watched(rows: DataFrame, name: str) -> None:
        made.extend({name.strip("`")} & {"inner", "outer", "beside"})  # others stand for the tables of one query
        real(rows, name)

    def made_by(*statements: str) -> list[str]:
        made.clear()
        for each in statements:
            anabranch.sql(spark, each)
        return list(made)

    monkeypatch.setattr(frames, "createOrReplaceTempView", watched)
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW theirs AS SELECT 1 AS id")
    run("CREATE OR REPLACE TEMPORARY VIEW inner AS SELECT id FROM t")
    run("CREATE OR REPLACE TEMPORARY VIEW outer AS SELECT id FROM inner UNION ALL SELECT id FROM t WHERE id > 2")
    run("CREATE OR REPLACE TEMPORARY VIEW beside AS SELECT id FROM t WHERE id > 2 UNION ALL SELECT id FROM theirs")
    asked = "SELECT * FROM outer"
    made_by(asked)
    assert made_by(asked) == []
    append("t", 7)
    assert made_by(asked, asked) == ["inner", "outer"]
    assert made_by("SET spark.sql.session.timeZone = Asia/Tokyo", asked) == ["inner", "outer"]
    run("SET spark.sql.session.timeZone = UTC")
    run("CREATE OR REPLACE TEMPORARY VIEW inner AS SELECT id FROM t WHERE id < 3")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW theirs AS SELECT 2 AS id")
    both = "SELECT 'outer', id FROM outer UNION ALL SELECT 'beside', id FROM beside"
    assert run(both) == [("beside", 2), ("beside", 7), ("outer", 1), ("outer", 2), ("outer", 7)]
    run("DROP TABLE t")
    run("CREATE TABLE t (id INT) USING delta")
    assert run(both) == [("beside", 2)]
    for name in ("outer", "beside", "inner", "theirs"):
        spark.catalog.dropTempView(name)


def test_a_temporary_view_of_an_odd_name_follows_its_table_too(spark: SparkSession, run: Any, append: Any) -> None:
    run("CREATE OR REPLACE TEMPORARY VIEW `k``v` AS SELECT * FROM t")
    append("t", 3)
    assert run("SELECT * FROM `k``v`") == [(1,), (2,), (3,)]
    spark.sql("DROP VIEW `k``v`")


def test_a_lasting_view_is_not_cached_and_its_query_is_advised(run: Any) -> None:
    run("CREATE VIEW lasting AS SELECT * FROM t")
    with pytest.raises(errors.NotBuilt, match="AS SELECT \\* FROM lasting"):
        run("CACHE TABLE lasting")
