"""A path without a scheme means in each door what it means to Spark in this session."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors
from anabranch._spark.sessions.working_folder import working_folder
from tests.support.readers import deltalake_rows

pytestmark = pytest.mark.spark
DEFAULT = "fs.defaultFS"
Door = Callable[[SparkSession, str], Any]


def converted(spark: SparkSession, path: str) -> None:
    spark.read.format("delta").load(path).coalesce(1).write.parquet(f"{path}-files")
    DeltaTable.convertToDelta(spark, f"parquet.`{path}-files`")


DOORS: dict[str, Door] = {
    "read": lambda spark, path: spark.read.format("delta").load(path).collect(),
    "write": lambda spark, path: spark.range(1).write.format("delta").mode("append").save(path),
    "write to": lambda spark, path: spark.range(1).writeTo(f"delta.`{path}`").append(),
    "stream": lambda spark, path: spark.readStream.format("delta").load(path),
    "handle": lambda spark, path: DeltaTable.forPath(spark, path).update("id < 0", {"id": "1"}),
    "create": lambda spark, path: (
        DeltaTable.createIfNotExists(spark).location(path).addColumn("id", "BIGINT").execute()
    ),
    "clone": lambda spark, path: DeltaTable.forPath(spark, path).clone(f"{path}-clone", isShallow=True),
    "convert": converted,
    "append": lambda spark, path: anabranch.append(path, [{"id": 1}], spark=spark),
    "appender": lambda spark, path: anabranch.appender(path, spark=spark).append([{"id": 1}]),
    "anabranch.read": lambda spark, path: anabranch.read(path, spark=spark).collect(),
    "changes": lambda spark, path: anabranch.changes(path, 0, spark=spark),
}
"""Ways to a table by its path."""
ABSOLUTE = ("write to",)
"""Those that take absolute paths only, since others are names; as statements do."""
STATEMENTS = {
    "query": "SELECT * FROM delta.`{path}`",
    "insert": "INSERT INTO delta.`{path}` VALUES (7)",
    "delete": "DELETE FROM delta.`{path}` WHERE id = 7",
    "detail": "DESCRIBE DETAIL '{path}'",
    "history": "DESCRIBE HISTORY delta.`{path}`",
    "restore": "RESTORE delta.`{path}` TO VERSION AS OF 0",
    "vacuum": "VACUUM '{path}'",
    "optimize": "OPTIMIZE delta.`{path}`",
    "location": "CREATE TABLE {name} (id BIGINT) USING delta LOCATION '{path}'",
    "shallow clone": "CREATE TABLE delta.`{path}-{name}` SHALLOW CLONE delta.`{path}`",
    "as select": "CREATE TABLE delta.`{path}-{name}` USING delta AS SELECT 1L AS id",
    "convert": "CONVERT TO DELTA parquet.`{path}`",
}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """An installed session of its own."""
    session = anabranch.install(spark.newSession())
    yield session
    session.conf.unset(DEFAULT)
    anabranch.uninstall(session)


def ran(spark: SparkSession, statement: str, path: str) -> None:
    name = f"w_{uuid.uuid4().hex[:8]}"
    spark.sql(statement.format(path=path, name=name))
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_relative_path_begins_where_spark_begins_wherever_python_has_gone_since(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = working_folder(session).removeprefix("file://").removeprefix("file:")
    path = os.path.relpath(tmp_path / "t", there)
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    session.range(3).write.parquet(f"{path}-plain")
    assert (tmp_path / "t-plain").exists()
    session.range(3).write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)
    assert len(deltalake_rows(str(tmp_path / "t"))) == 3
    for name, door in DOORS.items():
        if name not in ABSOLUTE:
            door(session, path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "t", "t-clone", "t-files", "t-plain"]
    assert list((tmp_path / "a" / "b").iterdir()) == []
    anabranch.append("t", [{"id": 1}])
    assert (tmp_path / "a" / "b" / "t").exists()


def test_a_file_system_of_the_sessions_own_is_never_taken_for_the_disk(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    session.range(3).write.format("delta").save(path)
    before = sorted(tmp_path.rglob("*"))
    session.conf.set(DEFAULT, "nosuch://server/")
    for door in DOORS.values():
        with pytest.raises(errors.UnknownStore, match="write the whole URL"):
            door(session, path)
    for statement in STATEMENTS.values():
        with pytest.raises(errors.UnknownStore, match="write the whole URL"):
            ran(session, statement, path)
    assert sorted(tmp_path.rglob("*")) == before
    assert session.read.format("delta").load(f"file:{path}").count() == 3
    session.conf.unset(DEFAULT)
    for statement in list(STATEMENTS.values())[:-1]:
        ran(session, statement, path)
