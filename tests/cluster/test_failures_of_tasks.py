"""Tasks that fail, executors that are killed and attempts that run twice: nothing is lost, nothing is there twice, and
nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from tests.cluster.strikes import Strike, fails, is_killed, sleeps

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

ROWS = 40_000
AT = 7_777
"""Rows of a table, of which each task has a quarter; and the one at which something happens, behind others."""

Rows = dict[int, int]


def test_the_workers_have_no_package_of_ours(session: SparkSession) -> None:
    def found(batches: Any) -> Any:
        import importlib.util

        import pyarrow

        for _ in batches:
            names = [
                name for name in ("anabranch", "obstore", "sqlglot", "pyroaring") if importlib.util.find_spec(name)
            ]
            yield pyarrow.RecordBatch.from_pydict({"found": [",".join(names)]})

    rows = session.range(0, 4, 1, 4).mapInArrow(found, "found STRING").collect()
    assert {row["found"] for row in rows} == {""}


def written(spark: SparkSession, path: str) -> Rows:
    """A write whose rows are computed as they are written."""
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id + 100000 AS id", "struck(id) AS x")
    rows.write.format("delta").mode("append").save(path)
    return {**before(), **{id + 100_000: id for id in range(ROWS)}}


def merged_from_a_struck_source(spark: SparkSession, path: str) -> Rows:
    source = spark.range(0, ROWS, 1, 4).selectExpr("id * 2 AS id", "struck(id) AS x")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    return {**before(), **{id * 2: id for id in range(ROWS)}}


def merged_by_a_struck_clause(spark: SparkSession, path: str) -> Rows:
    source = spark.range(0, ROWS, 1, 4).selectExpr("id * 2 AS id", "id AS x")
    values = {"id": "s.id", "x": F.expr("struck(s.x)")}
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set=values).whenNotMatchedInsert(values=values).execute()
    return {**before(), **{id * 2: id for id in range(ROWS)}}


def updated(spark: SparkSession, path: str) -> Rows:
    DeltaTable.forPath(spark, path).update("id % 2 = 1", {"x": F.expr("struck(id) + 1")})
    return {id: id + 1 if id % 2 else x for id, x in before().items()}


def streamed(spark: SparkSession, path: str) -> Rows:
    """A stream of the table's own rows into another one, which is put in its place."""
    sink, folder = f"{path}-sink", Path(f"{path}-checkpoint")
    rows = spark.readStream.format("delta").load(path).selectExpr("id", "struck(id) AS x")
    query = rows.writeStream.format("delta").option("checkpointLocation", str(folder)).trigger(availableNow=True)
    query.start(sink).awaitTermination()
    DeltaTable.forPath(spark, path).delete()
    spark.read.format("delta").load(sink).write.format("delta").mode("append").save(path)
    check_folder(sink)
    return {id: id for id in before()}


def before() -> Rows:
    return dict.fromkeys(range(ROWS), 0)


@pytest.mark.parametrize(
    "command", [written, merged_from_a_struck_source, merged_by_a_struck_clause, updated, streamed]
)
@pytest.mark.parametrize("strike", [fails, is_killed, sleeps])
def test_a_command_that_is_struck_gives_each_row_once_and_leaves_nothing_behind(
    session: SparkSession,
    tmp_path: Path,
    strike: Callable[[Path, int], Strike],
    command: Callable[[SparkSession, str], Rows],
) -> None:
    path, flag = str(tmp_path / "t"), tmp_path / "struck"
    session.range(0, ROWS, 1, 4).selectExpr("id", "0L AS x").write.format("delta").save(path)
    session.udf.register("struck", strike(flag, AT), "long")
    try:
        expected = command(session, path)  # whoever hangs is not waited for: that would never end
    finally:
        flag.with_name("over").touch()
    assert flag.exists(), "nothing was struck"
    found = session.read.format("delta").load(path).collect()
    assert len(found) == len(expected)
    assert {row["id"]: row["x"] for row in found} == expected
    check_folder(path)


def check_folder(path: str) -> None:
    """The table is sound, and its folder holds what its versions name and the mark of a job that has ended, no more."""
    report = anabranch.check(path, deep=True)
    assert report.is_clean, str(report)
    inside = [str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()]
    known = {unquote(file) for file in every_path(path)}
    known |= {
        f"{folder}/.{name}.crc" for folder, _, name in (file.rpartition("/") for file in known)
    }  # by Hadoop, on disks
    left = [name for name in inside if name not in known and not name.startswith(("_delta_log/", "deletion_vector_"))]
    assert [name for name in left if "/_committed_" not in name] == []


def every_path(path: str) -> set[str]:
    """The data files that some version names."""
    newest = anabranch.history(path)[0]["version"]
    return {
        file for version in range(newest + 1) for file in anabranch.files(path, version=version)["path"].to_pylist()
    }
