"""Streams: what is not built is refused by name, and what is Spark's stays Spark's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import anabranch
from anabranch import errors

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    anabranch.install(spark)
    yield spark
    anabranch.uninstall(spark)


@pytest.fixture
def path(session: SparkSession, tmp_path: Path) -> str:
    anabranch.append(None, str(tmp_path / "t"), [{"id": 1}])
    return str(tmp_path / "t")


def rates(session: SparkSession) -> DataFrame:
    return session.readStream.format("rate").load().selectExpr("value AS id")


READS: dict[str, Callable[[SparkSession, str], Any]] = {
    "load": lambda session, path: session.readStream.format("delta").load(path),
    "load with options": lambda session, path: session.readStream.format("delta").option("a", "b").name("q").load(path),
    "load by a format": lambda session, path: session.readStream.load(path, format="delta"),
    "table": lambda session, path: session.readStream.table(f"delta.`{path}`"),
}
WRITES: dict[str, Callable[[DataFrame, str], Any]] = {
    "start": lambda rows, path: rows.writeStream.format("delta").start(path),
    "start behind other methods": lambda rows, path: (
        rows.writeStream.queryName("q").format("delta").outputMode("append").trigger(once=True).start(path)
    ),
    "start by a format": lambda rows, path: rows.writeStream.start(path, format="delta"),
    "toTable": lambda rows, path: rows.writeStream.toTable(f"delta.`{path}`"),
}


@pytest.mark.parametrize("read", READS)
def test_reading_a_stream_from_a_delta_table_is_refused_by_name(session: SparkSession, path: str, read: str) -> None:
    with pytest.raises(errors.NotBuilt, match=r"as a stream is not built yet.*readChangeFeed"):
        READS[read](session, path)


@pytest.mark.parametrize("write", WRITES)
def test_writing_a_stream_to_a_delta_table_is_refused_by_name(session: SparkSession, path: str, write: str) -> None:
    with pytest.raises(errors.NotBuilt, match=r"Writing a stream to .* is not built yet.*foreachBatch"):
        WRITES[write](rates(session), path)
    assert len(anabranch.history(path)) == 1


def test_a_function_writes_each_batch_once(session: SparkSession, path: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    session.range(3).coalesce(1).write.parquet(str(source))
    rows = session.readStream.schema("id BIGINT").format("parquet").load(str(source))

    def write(batch: DataFrame, number: int) -> None:
        for _ in range(2):  # the second time is done already
            once = batch.write.format("delta").mode("append").option("txnAppId", "q").option("txnVersion", number)
            once.save(path)

    query = rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).foreachBatch(write)
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(row["id"] for row in anabranch.read(session, path).collect()) == [0, 1, 1, 2]


def test_streams_of_other_formats_are_sparks(session: SparkSession, tmp_path: Path) -> None:
    source, sink = str(tmp_path / "in"), str(tmp_path / "out")
    session.range(3).write.parquet(source)
    rows = session.readStream.schema("id BIGINT").parquet(source)
    query = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start(sink).awaitTermination()
    assert session.read.parquet(sink).count() == 3
