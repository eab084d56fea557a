"""CACHE TABLE keeps a table's rows in Spark, and nobody ever reads older rows for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors

pytestmark = pytest.mark.spark


@pytest.fixture
def run(spark: SparkSession, run: Any) -> Iterator[Any]:
    run("CREATE TABLE t (id INT) USING delta")
    run("INSERT INTO t VALUES (1), (2)")
    yield run
    spark.catalog.clearCache()


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


def test_every_commit_is_seen_and_the_newest_version_is_cached_instead(spark: SparkSession, run: Any) -> None:
    run("CACHE TABLE t")
    run("INSERT INTO t VALUES (3)")
    assert run("SELECT * FROM t") == [(1,), (2,), (3,)]
    run("DELETE FROM t WHERE id = 1")
    assert run("SELECT * FROM t") == [(2,), (3,)]
    location = anabranch.sql(spark, "DESCRIBE DETAIL t").first().location
    anabranch.append(spark, location, [{"id": 4}])
    assert run("SELECT * FROM t") == [(2,), (3,), (4,)]
    assert is_cached(run)
    run("MERGE INTO t USING (SELECT 5 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    run("ALTER TABLE t ADD COLUMN v INT")
    assert run("SELECT * FROM t WHERE id > 3") == [(4, None), (5, None)]


def test_an_older_version_is_read_as_ever(run: Any) -> None:
    run("CACHE TABLE t")
    run("INSERT INTO t VALUES (3)")
    assert is_cached(run)
    assert not is_cached(run, "SELECT * FROM t VERSION AS OF 0")
    assert run("SELECT * FROM t VERSION AS OF 1") == [(1,), (2,)]
    assert is_cached(run)


def test_another_table_of_the_name_is_not_cached(run: Any) -> None:
    run("CACHE TABLE t")
    run("DROP TABLE t")
    run("CREATE TABLE t (id INT) USING delta")
    run("INSERT INTO t VALUES (7)")
    assert not is_cached(run)
    assert run("SELECT * FROM t") == [(7,)]


def test_clear_cache_ends_it(run: Any) -> None:
    run("CACHE LAZY TABLE t OPTIONS ('storageLevel' = 'disk_only')")
    assert is_cached(run)
    run("CLEAR CACHE")
    assert not is_cached(run)
    run("INSERT INTO t VALUES (3)")
    assert not is_cached(run)


def test_what_is_cached_is_a_table_at_a_level_that_spark_has(run: Any) -> None:
    for options in ("'storageLevel' = 'nowhere'", "'storageLevel' = 'NONE'", "'level' = 'DISK_ONLY'"):
        with pytest.raises(errors.InvalidOption):
            run(f"CACHE TABLE t OPTIONS ({options})")
    with pytest.raises(errors.NotBuilt, match="make a view"):
        run("CACHE TABLE some AS SELECT * FROM t")
    assert not is_cached(run)


def test_a_cached_table_is_the_source_of_a_change_of_itself(run: Any) -> None:
    run("CACHE TABLE t")
    run("INSERT INTO t SELECT id + 10 FROM t")
    run("MERGE INTO t USING (SELECT max(id) AS id FROM t) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert run("SELECT * FROM t") == [(1,), (2,), (11,)]
