"""A table from a stranger: Spark, which follows each link, writes nothing outside of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors

pytestmark = pytest.mark.spark

CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "update": lambda table: table.update("id % 3 = 0", {"id": "id + 1"}),
    "delete": lambda table: table.delete("id % 5 = 1"),
    "merge": lambda table: (
        table.alias("t")
        .merge(table.toDF().limit(3).alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"id": "-t.id"})
        .execute()
    ),
}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    anabranch.install(spark)
    yield spark
    anabranch.uninstall(spark)


@pytest.mark.parametrize("change", CHANGES)
def test_no_changes_are_recorded_through_a_link_out_of_the_table(
    session: SparkSession, tmp_path: Path, change: str
) -> None:
    outside, path = tmp_path / "outside", str(tmp_path / "table")
    outside.mkdir()
    frame = session.range(10).selectExpr("id", "id % 2 AS p").write.format("delta").partitionBy("p")
    has_marks = "false" if change == "delete" else "true"  # which record a delete by themselves
    frame = frame.option("delta.enableDeletionVectors", has_marks)
    frame.option("delta.enableChangeDataFeed", "true").save(path)
    (tmp_path / "table" / "_change_data").symlink_to(outside)
    table = DeltaTable.forPath(session, path)
    with pytest.raises(errors.StoreError, match="leads out of the root"):
        CHANGES[change](table)
    assert list(outside.iterdir()) == []
    assert sorted(row[0] for row in table.toDF().collect()) == list(range(10))
