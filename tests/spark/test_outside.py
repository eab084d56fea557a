"""What Spark opens for a table from a stranger: no other store, and nothing that is not Parquet is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors
from anabranch.tables import DeltaTable
from tests.support.counting import Counting, counting
from tests.support.raw_logs import PROTOCOL, add, info, metadata, put_commit, put_rows, remove

pytestmark = pytest.mark.spark
SECRET = b"root:x:0:0:the words of another file:/root:/bin/sh\n" * 4


@pytest.fixture
def server() -> Iterator[Counting]:
    with counting() as server:
        yield server


def hostile(table: Path, path: str, size: int = 9) -> str:
    put_commit(table, 0, PROTOCOL, metadata(), add(path, size=size))
    return str(table)


def test_spark_opens_no_file_on_another_store(spark: SparkSession, tmp_path: Path, server: Counting) -> None:
    host = server.url.removeprefix("http://")
    urls = [f"{scheme}://{host}/a.parquet" for scheme in ("http", "https", "ftp", "hdfs", "webhdfs", "s3a", "file")]
    for number, url in enumerate(urls):
        path = hostile(tmp_path / f"t{number}", url)
        with pytest.raises(errors.FileOutsideTable):
            anabranch.read(path, spark=spark).collect()
        with pytest.raises(errors.FileOutsideTable):
            DeltaTable.forPath(spark, path).delete("id = 1")
        with pytest.raises(errors.FileOutsideTable):
            DeltaTable.forPath(spark, path).update("id = 1", {"x": "2"})
    assert server.requests == []


def test_spark_opens_no_change_data_on_another_store(spark: SparkSession, tmp_path: Path, server: Counting) -> None:
    on, url = metadata(delta_enableChangeDataFeed="true"), f"{server.url}/c.parquet"
    put_commit(tmp_path, 0, PROTOCOL, on, put_rows(tmp_path, "a.parquet", [{"id": 1, "x": 1}]))
    put_commit(tmp_path, 1, info(), {"cdc": {"path": url, "partitionValues": {}, "size": 1}}, remove("a.parquet"))
    with pytest.raises(errors.FileOutsideTable):
        anabranch.changes(str(tmp_path), 1, spark=spark).collect()
    assert server.requests == []


def test_what_another_file_holds_is_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    """Spark says the last four bytes of what it takes for Parquet."""
    private = tmp_path / "passwd"
    private.write_bytes(SECRET)
    path = hostile(tmp_path / "t", private.as_uri(), len(SECRET))
    with pytest.raises(errors.AnabranchError) as told:
        DeltaTable.forPath(spark, path).delete("id = 1")
    assert "Parquet" in str(told.value)
    assert "passwd" in str(told.value)
    for shown in ("words", str(list(SECRET[-4:])), ", ".join(map(str, SECRET[-4:]))):
        assert shown not in str(told.value)


def test_a_path_that_is_encoded_twice_stays_in_the_table(spark: SparkSession, tmp_path: Path) -> None:
    put_rows(tmp_path, "outside.parquet", [{"id": 1, "x": 1}])
    for number, path in enumerate(("%252e%252e/outside.parquet", "..%255coutside.parquet", "..\\outside.parquet")):
        table = DeltaTable.forPath(spark, hostile(tmp_path / f"t{number}", path))
        with pytest.raises(errors.MissingDataFile):
            table.delete("id = 1")
