"""A condition whose second half is missing changes nothing, by whatever door it comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable
from anabranch.errors import AnabranchError

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def installed(spark: SparkSession) -> Iterator[None]:
    anabranch.install(spark)
    yield
    anabranch.uninstall(spark)


@pytest.mark.parametrize(
    "text", ["id = 1 and", "id = 1 x", "id = 1 AS x", "id = 1 as `x`", "id = 1 AS (x)", "id = 1 AND -- x"]
)
def test_no_door_changes_rows_by_half_a_condition(text: str, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, {"id": [0, 1, 2]})
    table: Any = DeltaTable.forPath(spark, path)
    merge = table.alias("t").merge(spark.range(3).alias("s"), "t.id = s.id")
    tries = [
        lambda: table.delete(text),
        lambda: table.update(text, {"id": "7"}),
        lambda: anabranch.sql(spark, f"DELETE FROM delta.`{path}` WHERE {text}"),
        lambda: merge.whenMatchedDelete(f"t.{text}").execute(),
        lambda: table.alias("t").merge(spark.range(3).alias("s"), f"t.{text}").whenMatchedDelete().execute(),
        lambda: spark.range(1, 2).write.format("delta").mode("overwrite").option("replaceWhere", text).save(path),
        lambda: table.update("id = 1", {"id": text.removeprefix("id = ")}),
    ]
    for attempt in tries:
        with pytest.raises(AnabranchError):
            attempt()
    assert len(anabranch.history(path)) == 1


def test_conditions_that_end_by_a_word_are_still_understood(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    anabranch.append(path, {"id": [0, 1, 2, 3]})
    table = DeltaTable.forPath(spark, path)
    table.delete("CASE WHEN id = 0 THEN true END")
    table.delete("timestamp_seconds(id) < TIMESTAMP '1970-01-01 00:00:00Z' + INTERVAL 2 SECONDS")
    assert sorted(row.id for row in table.toDF().collect()) == [2, 3]
