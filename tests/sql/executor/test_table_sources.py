"""A MERGE whose source is a small table, or values of its rows, reads that without Spark, and does what it does with
Spark's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import anabranch
from anabranch._arrow import finding
from anabranch._spark.merging import merge_source
from anabranch._sql.executor import row_statements
from tests.support.readers import deltalake_rows
from tests.support.tiers import few_of

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, x INT, w STRING, d DECIMAL(9,2), f DOUBLE, at TIMESTAMP, day DATE, b BOOLEAN"
ROWS = """(1, 1, 'a', 1.5, 0.25, TIMESTAMP'2024-01-01 00:00:00', DATE'2024-02-29', true),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (7, 70, '', -0.01, -0.0, TIMESTAMP'1969-12-31 23:59:59.5',
    DATE'0001-01-01', false), (8, 80, '\\uffff', 9999999.99, 1e300, TIMESTAMP'2024-07-01 12:00:00', NULL, true)"""
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
MAPPED = ") TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"

SOURCES: dict[str, tuple[str, list[str]]] = {
    "plain": (")", []),
    "partitioned": (") PARTITIONED BY (day, x)", []),
    "by a timestamp": (") PARTITIONED BY (at)", []),
    "with deleted rows": (")", ["DELETE FROM {} WHERE id = 7"]),
    "of several files": (")", ["INSERT INTO {} (id, w) VALUES (9, 'nine')", "UPDATE {} SET x = 5 WHERE id < 3"]),
    "of no row": (")", ["DELETE FROM {}"]),
    "mapped": (MAPPED, ["ALTER TABLE {} RENAME COLUMN w TO v", "ALTER TABLE {} RENAME COLUMN v TO w"]),
    "with a new column": (")", ["ALTER TABLE {} ADD COLUMN more STRING"]),
    "with a char": (", c CHAR(3))", ["UPDATE {} SET c = 'a'"]),
    "with a nested column": (", s STRUCT<a: INT>)", []),
}
SPELLINGS = {
    "an alias": ("{} s", "s"),
    "AS": ("{} AS s", "s"),
    "a quoted alias": ("{} AS `the source`", "`the source`"),
    "an older version": ("{} VERSION AS OF 1 s", "s"),
    "a query": ("(SELECT * FROM {} WHERE id > 1 LIMIT 10) s", "s"),
    "other names": ("{} AS s(id, x, w, d, f, at, day, b)", "s"),
}

READ_HERE = (
    "* FROM {} WHERE id > 1",
    "* FROM {} AS q WHERE q.w IS NULL OR q.f < 1",
    "* FROM {} VERSION AS OF 1 WHERE x > 0",
    "b, day, at, f, d, w, x, id FROM {}",
    "id, x, w, d, f, at, day, b FROM {} WHERE d < 5 AND at < current_timestamp()",
    "q.id + 1 AS id, coalesce(x, 0) x, upper(trim(w)) AS w, d, -f AS f, at, day + 1 AS day, NOT b AS b FROM {} q",
    "`id`, x, concat(w, '-', CAST(id AS STRING)) AS w, d, abs(f) AS f, at, day, id > 5 AS b FROM {} WHERE true",
    "*, year(day) AS y, 'a text' AS more FROM {}",
)
LEFT_TO_SPARK = (
    "DISTINCT * FROM {}",
    "* FROM {} ORDER BY id",
    "* FROM {} WHERE id = (SELECT max(id) FROM {})",
    "* EXCEPT (b), true AS b FROM {}",
    "max(id) AS id, 1 AS x, 'w' AS w, 1.5 AS d, 2D AS f, max(at) AS at, max(day) AS day, true AS b FROM {}",
    "id, row_number() OVER (ORDER BY id) AS x, w, d, f, at, day, b FROM {}",
    "id, x, w, d, f, at, day, b FROM {} GROUP BY ALL",
    "id, x, w, d, f, at, day, b FROM {} UNION ALL SELECT * FROM {} WHERE false",
    "id, x + 1 AS z, z AS x, w, d, f, at, day, b FROM {}",
    "id, x, NULL AS w, d, f, at, day, b FROM {}",
    "x.id, x.x, x.w, x.d, x.f, x.at, x.day, x.b FROM {} x",
    "id, x, uuid() = '' AS b, w, d, f, at, day FROM {}",
    "id, x, substr(w, x) AS w, d, f, at, day, assert_true(id > 0) IS NULL AS b FROM {}",
)


def merged(spark: SparkSession, folder: Path, source: str, on: str, clauses: str = UPSERT) -> tuple[Any, Any, Any]:
    """What a MERGE into a new table says and leaves, and what the history counts of it."""
    path = str(folder / uuid4().hex)
    anabranch.sql(spark, f"CREATE TABLE delta.`{path}` ({COLUMNS})")
    anabranch.append(path, pa.table({"id": [1, 2, 3], "x": pa.array([10, 20, 30], pa.int32())}))
    said = anabranch.sql(spark, f"MERGE INTO delta.`{path}` t USING {source} ON {on} {clauses}").collect()
    metrics = anabranch.history(path)[0]["operationMetrics"]
    rows = sorted(map(repr, deltalake_rows(path)))
    return said, rows, {name: number for name, number in metrics.items() if name.endswith("Rows")}


def source_of(spark: SparkSession, folder: Path, layout: str, statements: list[str]) -> str:
    source = f"delta.`{folder / uuid4().hex}`"
    anabranch.sql(spark, f"CREATE TABLE {source} ({COLUMNS}{layout}")
    names = ", ".join(column.split()[0] for column in COLUMNS.replace("(9,2)", "").split(", "))
    anabranch.sql(spark, f"INSERT INTO {source} ({names}) VALUES {ROWS}")
    for each in statements:
        anabranch.sql(spark, each.format(source))
    return source


def same_both_ways(spark: SparkSession, folder: Path, source: str, on: str, *, here: bool) -> None:
    """Hold that Spark's rows make no difference; ``here``: whether the rows are read without Spark."""
    ours = noted(spark, folder, source, on, here=here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_statements, "table_rows", lambda *_: None)
        assert ours == merged(spark, folder, source, on)


def noted(spark: SparkSession, folder: Path, source: str, on: str, *, here: bool) -> tuple[Any, Any, Any]:
    """As `merged`, of rows that are read without Spark, or are not."""
    read: list[Any] = []
    live, project = finding.fetch_live, merge_source.project
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "fetch_live", lambda *given: read.append(live(*given)) or read[-1])
        patch.setattr(merge_source, "project", lambda *given: read.append(project(*given)) or read[-1])
        found = merged(spark, folder, source, on)
    assert [each is not None for each in read] == ([True] if here else [False] * len(read))
    return found


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[None]:
    """Another one than that in which Python thinks."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("kind", SOURCES)
def test_the_rows_of_a_table_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    source = source_of(spark, tmp_path, *SOURCES[kind])
    is_left_to_spark = kind in ("with a char", "with a nested column")
    same_both_ways(spark, tmp_path, f"{source} s", "t.id = s.id", here=not is_left_to_spark)


@pytest.mark.exhaustive(
    "tests/sql/executor/test_table_sources.py::test_the_rows_of_a_table_are_those_that_spark_reads",
    "tests/sql/executor/test_table_sources.py::test_a_view_a_name_and_a_cached_table_are_sources_as_before",
)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_source_is_a_whole_table_only_where_the_statement_says_no_more(
    spark: SparkSession, tmp_path: Path, spelling: str
) -> None:
    said, alias = SPELLINGS[spelling]
    source = source_of(spark, tmp_path, ")", ["UPDATE {} SET w = 'newer'"])
    is_whole = spelling not in ("a query", "other names")
    same_both_ways(spark, tmp_path, said.format(source), f"t.id = {alias}.id", here=is_whole)


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("selected", [*READ_HERE, *LEFT_TO_SPARK])
def test_values_of_a_tables_rows_are_those_that_spark_computes(
    spark: SparkSession, tmp_path: Path, selected: str
) -> None:
    source = source_of(
        spark, tmp_path, ")", ["UPDATE {} SET w = ' newer ' WHERE id = 1", "DELETE FROM {} WHERE id = 8"]
    )
    said = f"(SELECT {selected.replace('{}', source)}) s"
    same_both_ways(spark, tmp_path, said, "t.id = s.id", here=selected in READ_HERE)


def test_a_value_that_cannot_be_computed_is_the_error_that_it_is_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path, ")", [])
    said = f"(SELECT id, id DIV (x - 70) AS x, w, d, f, at, day, b FROM {source}) s"
    with pytest.raises(anabranch.errors.ExecutionFailed, match="DIVIDE_BY_ZERO"):
        merged(spark, tmp_path, said, "t.id = s.id")


def test_a_table_that_is_merged_into_itself_is_read_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    for is_whole in few_of((True, False), 1):
        target = source_of(spark, tmp_path, ")", [])
        with pytest.MonkeyPatch.context() as patch:
            if not is_whole:
                patch.setattr(row_statements, "table_rows", lambda *_: None)
            on = "t.id = s.id + 6"
            anabranch.sql(
                spark,
                f"MERGE INTO {target} t USING {target} s ON {on} WHEN MATCHED THEN UPDATE SET x = s.id"
                " WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id + 100, s.x)",
            )
        found = sorted((row["id"], row["x"]) for row in deltalake_rows(target.split("`")[1]))
        assert found == [(1, 1), (2, None), (7, 1), (8, 2), (107, 70), (108, 80)]


def test_rows_of_a_tracked_table_take_the_identity_values_that_are_reserved_for_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = source_of(
        spark, tmp_path, ") TBLPROPERTIES ('delta.enableRowTracking' = 'true')", ["DELETE FROM {} WHERE id < 7"]
    )
    target = f"delta.`{tmp_path / uuid4().hex}`"
    anabranch.sql(spark, f"CREATE TABLE {target} (id BIGINT, n BIGINT GENERATED BY DEFAULT AS IDENTITY)")
    for _ in range(2):
        on = "false WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        anabranch.sql(spark, f"MERGE INTO {target} t USING {source} s ON {on}")
    assert sorted(row["n"] for row in deltalake_rows(target.split("`")[1])) == [1, 2, 3, 4]


@pytest.mark.exhaustive(
    "tests/spark/merging/test_merge.py::test_several_source_rows_that_would_change_one_row_are_ambiguous",
    "tests/sql/executor/test_table_sources.py::test_the_rows_of_a_table_are_those_that_spark_reads",
)
def test_several_source_rows_of_one_row_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path, ")", ["INSERT INTO {} (id) VALUES (1)"])
    with pytest.raises(anabranch.errors.AmbiguousMerge):
        merged(spark, tmp_path, f"{source} s", "t.id = s.id")


def test_a_view_a_name_and_a_cached_table_are_sources_as_before(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path, ")", [])
    by_arrow = noted(spark, tmp_path, f"{source} s", "t.id = s.id", here=True)
    anabranch.sql(spark, f"CREATE OR REPLACE TEMP VIEW merged_from AS SELECT * FROM {source}")
    try:
        assert noted(spark, tmp_path, "merged_from", "t.id = merged_from.id", here=False) == by_arrow
    finally:
        spark.catalog.dropTempView("merged_from")
    anabranch.sql(spark, f"CACHE TABLE {source}")
    try:
        assert noted(spark, tmp_path, f"{source} s", "t.id = s.id", here=False) == by_arrow
    finally:
        anabranch.sql(spark, f"UNCACHE TABLE {source}")
