"""``df.mergeInto`` of an installed session, and sessions that come from one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import errors
from tests.support.readers import deltalake_rows

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """An installed session in a schema of its own."""
    schema = f"m_{uuid.uuid4().hex[:10]}"
    anabranch.install(spark)
    spark.sql(f"CREATE DATABASE {schema}")
    spark.sql(f"USE {schema}")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["old"] * 3})
    anabranch.append(tmp_path / "target", rows)
    spark.sql(f"CREATE TABLE target USING delta LOCATION '{tmp_path / 'target'}'")
    yield spark
    spark.sql("USE default")
    anabranch.uninstall(spark)
    spark.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.fixture
def path(session: SparkSession, tmp_path: Path) -> str:
    """Where the table `target` lies."""
    return str(tmp_path / "target")


def rows(path: str) -> list[Any]:
    return [tuple(row.values()) for row in deltalake_rows(path)]


def source(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (2, 'new'), (3, 'gone'), (4, 'new') AS s (id, v)").alias("s")


def merging(spark: SparkSession) -> Any:
    return source(spark).mergeInto("target", F.expr("target.id = s.id"))


def test_rows_are_merged_into_a_name(session: SparkSession, path: str) -> None:
    writer = merging(session)
    writer.whenMatched(F.col("s.v") == "new").updateAll().whenMatched().delete()
    writer.whenNotMatched().insertAll().whenNotMatchedBySource(F.expr("target.id = 1")).delete()
    writer.merge()
    assert rows(path) == [(2, "new"), (4, "new")]
    assert anabranch.history(path, 1)[0]["operation"] == "MERGE"


def test_every_clause_takes_columns(session: SparkSession, path: str) -> None:
    writer = merging(session).whenMatched().update({"v": F.concat("s.v", F.lit("!"))})
    writer = writer.whenNotMatched(F.expr("s.id > 3")).insert({"id": F.col("s.id"), "v": F.lit("born")})
    writer.whenNotMatchedBySource(F.expr("target.id = 1")).update({"v": F.lit("alone")}).merge()
    assert rows(path) == [(1, "alone"), (2, "new!"), (3, "gone!"), (4, "born")]


def test_new_columns_come_where_that_is_said(session: SparkSession, path: str) -> None:
    wider = session.sql("SELECT 1 AS id, 'new' AS v, 7 AS extra").alias("s")
    wider.mergeInto("target", F.expr("target.id = s.id")).whenMatched().updateAll().withSchemaEvolution().merge()
    assert session.table("target").columns == ["id", "v", "extra"]
    assert rows(path)[0] == (1, "new", 7)


def test_there_is_no_source_row_to_take_all_columns_from(session: SparkSession) -> None:
    with pytest.raises(errors.InvalidOption, match="updateAll"):
        merging(session).whenNotMatchedBySource().updateAll()


def test_a_table_of_sparks_stays_its_own(session: SparkSession) -> None:
    session.sql("CREATE TABLE plain (id INT, v STRING) USING parquet")
    with pytest.raises(Exception, match=r"(?i)merge") as refused:
        source(session).mergeInto("plain", F.expr("plain.id = s.id")).whenMatched().delete().merge()
    assert not isinstance(refused.value, errors.AnabranchError)


def test_a_session_that_comes_from_an_installed_one_is_installed(session: SparkSession) -> None:
    schema = session.catalog.currentDatabase()
    other = session.newSession()
    try:
        other.sql(f"INSERT INTO {schema}.target VALUES (9, 'other')")
        assert other.table(f"{schema}.target").count() == 4
        assert other.catalog.currentDatabase() == "default"
    finally:
        anabranch.uninstall(other)
