"""A filter on a table's DataFrame opens only the files that may hold its rows: the others may be damaged.

Each table has the files 0 to 7, of ten rows each, with ids from ten times its number. In the tables of one kind some
rows are deleted, so that the scan is a union of files with deletion vectors and without.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import __version__ as SPARK
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable

FILES, ROWS = 8, 10

pytestmark = pytest.mark.spark
needs_skipping = pytest.mark.skipif(SPARK < "4.2", reason="before, Spark may open files that a filter rules out")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return anabranch.install(spark)


def table_of(path: Path, session: SparkSession, deleted: str | None = None, **properties: str) -> str:
    """A table of which some rows are deleted, if a condition says so."""
    table = str(path / "t")
    names = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    session.sql(
        f"CREATE TABLE delta.`{table}` (id BIGINT, part STRING, s STRUCT<n: BIGINT>) PARTITIONED BY (part)"
        + (f" TBLPROPERTIES ({names})" if names else "")
    )
    for file in range(FILES):
        ids = range(file * ROWS, file * ROWS + ROWS)
        rows = [{"id": i, "part": "odd" if file % 2 else "a b", "s": {"n": -i}} for i in ids]
        anabranch.append(table, rows)
    if deleted:
        session.sql(f"DELETE FROM delta.`{table}` WHERE {deleted}")
    return table


def rows_of(frames: list[DataFrame]) -> list[Any]:
    """The rows of several frames, in one query."""
    return sorted(map(tuple, reduce(DataFrame.unionAll, frames).collect()))


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def damage(table: str, *, but: str) -> None:
    """Make each file unreadable that cannot hold a row of a condition."""
    kept = set(anabranch.files(table, but)["path"].to_pylist())
    for path in anabranch.files(table)["path"].to_pylist():
        if path not in kept:
            file = Path(table) / path.replace("%20", " ")
            file.write_bytes(b"x" * file.stat().st_size)


@pytest.fixture(scope="module", params=[None, "id = 33 OR id = 51"], ids=["no row deleted", "rows deleted"])
def damaged(request: Any, session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Only the file with the ids from 50 to 59 can be read."""
    table = table_of(tmp_path_factory.mktemp("skipping"), session, request.param)
    damage(table, but="id = 57")
    return table


@pytest.fixture(scope="module")
def intact(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every file can be read, and one row is deleted."""
    return table_of(tmp_path_factory.mktemp("intact"), session, "id = 33")


SKIP: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a text": lambda df: df.where("id = 57"),
    "filter": lambda df: df.filter("id = 57"),
    "a column by its name": lambda df: df.where(F.col("id") == 57),
    "a column of the frame": lambda df: df.where(df["id"] == 57),
    "the frame by a column": lambda df: df[df.id == 57],
    "two conditions": lambda df: df.where("id > 53").where((F.col("id") < 59) & (F.col("id") == 57)),
    "a part that says nothing": lambda df: df.where("id = 57 AND rand() >= 0"),
    "a member of a struct": lambda df: df.where("s.n = -57"),
    "an alias": lambda df: df.alias("t").where("t.id = 57"),
    "an alias, and a column": lambda df: df.alias("t").where(F.col("t.id") == 57),
    "behind a select": lambda df: df.select("s", "id").where("id = 57").select("id"),
    "behind a list": lambda df: df.select(["part", "id"]).where("id = 57").select("id"),
    "a column that was left out": lambda df: df.select("part", "s").where("id = 57").select(F.lit(57).alias("id")),
    "behind a drop": lambda df: df.drop("s").where("id = 57"),
    "columns of the frame afterwards": lambda df: df.where("id = 57").select(df["id"]),
    "a join's side": lambda df: df.where("id = 57").join(
        df.sparkSession.range(100).withColumnRenamed("id", "k"), F.col("id") == F.col("k")
    ),
    "joined with itself": lambda df: (
        df.where("id = 57").alias("a").join(df.where("id = 57").alias("b"), "id").select("a.id")
    ),
    "grouped": lambda df: df.where("id = 57").groupBy("id").count(),
}


@needs_skipping
@pytest.mark.parametrize("way", SKIP.values(), ids=SKIP.keys())
def test_a_filter_opens_no_file_that_it_rules_out(
    session: SparkSession, damaged: str, way: Callable[[DataFrame], DataFrame]
) -> None:
    assert [row["id"] for row in way(session.read.format("delta").load(damaged)).collect()] == [57]


@needs_skipping
def test_every_door_gives_such_a_frame(session: SparkSession, damaged: str) -> None:
    frames = (
        session.read.table(f"delta.`{damaged}`"),
        session.table(f"delta.`{damaged}`"),
        DeltaTable.forPath(session, damaged).toDF(),
        DeltaTable.forPath(session, damaged).alias("t").toDF(),
        session.read.option("versionAsOf", FILES).format("delta").load(damaged),
    )
    assert rows_of([frame.where("id = 57").select("id") for frame in frames]) == [(57,)] * len(frames)


def test_what_no_row_satisfies_opens_no_file(session: SparkSession, damaged: str) -> None:
    assert session.read.format("delta").load(damaged).where("id = 1000").count() == 0


READ_ALL: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a column that was computed": lambda df: df.withColumn("id", F.col("id") + 10).where("id = 67"),
    "a column of that name": lambda df: df.select((-F.col("s.n")).alias("id")).where("id = 57"),
    "another's name": lambda df: df.select(F.col("id").alias("k"), "s").where("k = 57"),
    "the first rows": lambda df: df.orderBy("id").limit(60).where("id = 57"),
}


@pytest.mark.parametrize("way", READ_ALL.values(), ids=READ_ALL.keys())
def test_a_condition_on_something_else_leaves_no_file_out(
    session: SparkSession, intact: str, way: Callable[[DataFrame], DataFrame]
) -> None:
    assert way(session.read.format("delta").load(intact)).count() == 1


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}, {"delta.columnMapping.mode": "id"}])
@pytest.mark.parametrize("deleted", [None, "id % 10 = 3", "id >= 40 AND id % 10 = 3"])
def test_the_rows_are_those_of_sql(
    session: SparkSession, tmp_path: Path, properties: dict[str, str], deleted: str | None
) -> None:
    table = table_of(tmp_path, session, deleted, **properties)
    frame = session.read.format("delta").load(table)
    conditions = ("id = 57", "id BETWEEN 8 AND 12", "part = 'a b' AND id < 9", "part = 'odd'", "id IN (3, 44, 71)")
    found = [frame.where(condition).select(F.lit(condition), "id") for condition in conditions]
    wanted = [
        session.sql(f'SELECT "{condition}", id FROM delta.`{table}` WHERE {condition}') for condition in conditions
    ]
    assert rows_of(found) == rows_of(wanted)


read_again = pytest.mark.classic("there Spark reads every text again whenever rows are asked for")
BEFORE = "CREATE OR REPLACE TEMPORARY VIEW wanted_ids AS SELECT id FROM range(100)"
AFTER = "CREATE OR REPLACE TEMPORARY VIEW wanted_ids AS SELECT id FROM range(1)"
CHANGED: dict[str, tuple[str, str, str]] = {
    "a view": (BEFORE, "id IN (SELECT id FROM wanted_ids)", AFTER),
    "a variable": ("DECLARE OR REPLACE VARIABLE most INT DEFAULT 99", "id < most", "SET VARIABLE most = 1"),
    "a function": (
        "CREATE OR REPLACE TEMPORARY FUNCTION wanted(n BIGINT) RETURNS BOOLEAN RETURN n < 99",
        "wanted(id)",
        "CREATE OR REPLACE TEMPORARY FUNCTION wanted(n BIGINT) RETURNS BOOLEAN RETURN n < 1",
    ),
    "the time zone": (
        "SET spark.sql.session.timeZone = UTC",
        "hour(timestamp_seconds(id * 0)) = 0",
        "SET spark.sql.session.timeZone = America/New_York",
    ),
    "the time zone of a time": (
        "SET spark.sql.session.timeZone = UTC",
        "id >= 0 AND (id < 0 OR TIMESTAMP_NTZ '2020-01-01 00:00:00' = TIMESTAMP '2020-01-01 00:00:00Z')",
        "SET spark.sql.session.timeZone = America/New_York",
    ),
}


@read_again
@pytest.mark.parametrize(("before", "condition", "after"), CHANGED.values(), ids=CHANGED.keys())
def test_a_filter_means_what_it_meant_when_it_was_made_whatever_the_session_says_later(
    session: SparkSession, intact: str, before: str, condition: str, after: str
) -> None:
    frame = session.read.format("delta").load(intact)
    zone = str(session.conf.get("spark.sql.session.timeZone"))
    try:
        session.sql(before)
        filtered = frame.where(condition)
        session.sql(after)
        assert ids_of(filtered.where("id = 57")) == [57]
    finally:
        session.conf.set("spark.sql.session.timeZone", zone)


def test_a_column_that_was_dropped_stays_so_whatever_the_session_says_later(session: SparkSession, intact: str) -> None:
    frame = session.read.format("delta").load(intact).drop("PART")
    session.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert frame.where("id = 57").columns == ["id", "s"]
    finally:
        session.conf.unset("spark.sql.caseSensitive")


@read_again
def test_rows_that_were_drawn_stay_those_that_were_drawn(session: SparkSession, intact: str) -> None:
    drawn = session.read.format("delta").load(intact).where("rand() < 0.5")
    assert ids_of(drawn.where("id > 50 AND id < 60")) == [i for i in ids_of(drawn) if 50 < i < 60]


def test_a_variable_is_not_taken_for_a_column_that_was_left_out(session: SparkSession, tmp_path: Path) -> None:
    frame = session.read.format("delta").load(table_of(tmp_path, session))
    session.sql("DECLARE OR REPLACE VARIABLE id BIGINT DEFAULT 1000")
    try:
        assert frame.drop("id").select("part", "id").where("id = 1000").count() == FILES * ROWS
        assert frame.select("part").select("part", "id").where(F.col("id") == 1000).count() == FILES * ROWS
    finally:
        session.sql("DROP TEMPORARY VARIABLE id")


def test_a_column_that_is_called_by_a_number_is_not_taken_for_it(session: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    session.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, `57` BIGINT)")
    for i in range(FILES):
        anabranch.append(table, [{"id": i, "57": i}], spark=session)
    frame = session.read.format("delta").load(table)
    assert ids_of(frame.where(F.col("id") == F.col("57"))) == list(range(FILES))
    assert ids_of(frame.where(F.col("id") == 5)) == [5]


def test_rows_that_are_cached_are_not_read_again(session: SparkSession, tmp_path: Path) -> None:
    table = table_of(tmp_path, session)
    frame = session.read.format("delta").load(table).cache()
    try:
        assert frame.count() == FILES * ROWS
        damage(table, but="id = 1000")
        assert ids_of(frame.where("id = 57")) == [57]
        assert ids_of(frame.alias("t").where("t.id = 57")) == [57]
    finally:
        frame.unpersist()


def test_a_file_that_spark_spells_in_another_way_is_read(
    session: SparkSession, intact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch._spark.reading.pruned_frames.have_expected_paths", lambda *_: False)
    assert ids_of(session.read.format("delta").load(intact).where("id = 57")) == [57]


def test_a_frame_that_is_gone_is_forgotten(session: SparkSession, damaged: str) -> None:
    """What is known of it must not keep it alive."""
    loaded = session.read.format("delta").load(damaged)
    named = loaded.alias("t")
    frames = [loaded, named, named.where("id = 57")]
    kept = [weakref.ref(each) for each in frames]
    del loaded, named, frames
    gc.collect()
    assert [each() for each in kept] == [None] * 3
