"""Several catalogs: what is another catalog's stays so, beside Delta tables in one statement."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import anabranch
from anabranch import errors

pytestmark = pytest.mark.spark
DERBY = {
    "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    ".url": "jdbc:derby:memory:{name};create=true",
    ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
}


@pytest.fixture
def other(spark: SparkSession) -> Iterator[str]:
    """A catalog of another kind, in which ``APP.few`` has the ids 1 and 2."""
    name = f"other_{uuid.uuid4().hex[:8]}"
    for key, value in DERBY.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value.format(name=name))
    spark.sql(f"CREATE TABLE {name}.APP.few (id BIGINT)")
    spark.sql(f"INSERT INTO {name}.APP.few VALUES (1), (2)")
    yield name
    spark.sql("USE spark_catalog.default")
    for key in DERBY:
        spark.conf.unset(f"spark.sql.catalog.{name}{key}")


def test_a_statement_reads_and_writes_tables_of_two_catalogs(spark: SparkSession, other: str, tmp_path: Path) -> None:
    def run(text: str) -> Any:
        return anabranch.sql(spark, text.format(other=other, path=tmp_path / "t"))

    try:
        run("CREATE TABLE of_two USING delta AS SELECT id, id * 10 AS x FROM {other}.APP.few")
        run("INSERT INTO of_two SELECT id + 2, 0 FROM {other}.APP.few AS f")
        few = "{other}.APP.few"
        assert run(f"DELETE FROM of_two WHERE id IN (SELECT {few}.id FROM {few})").first()[0] == 2
        run("USE {other}.APP")
        joined = "SELECT t.id FROM few JOIN spark_catalog.default.of_two AS t ON t.id = few.id + 2"
        assert sorted(row[0] for row in run(joined).collect()) == [3, 4]
        run("INSERT INTO few SELECT id FROM spark_catalog.default.of_two")
        assert run("SELECT count(*) FROM {other}.APP.few").first()[0] == 4
        with pytest.raises(AnalysisException, match="of_two"):
            run("SELECT * FROM of_two").collect()
    finally:
        spark.sql("USE spark_catalog.default")
        anabranch.sql(spark, "DROP TABLE IF EXISTS of_two")


def test_a_catalog_that_keeps_no_views_keeps_no_name_of_ours(spark: SparkSession, other: str, tmp_path: Path) -> None:
    made = (
        "CREATE TABLE {other}.APP.ours (id BIGINT) USING delta",
        "CREATE TABLE {other}.APP.ours (id BIGINT) USING delta LOCATION '{path}'",
        "CREATE TABLE {other}.APP.ours USING delta LOCATION '{path}' AS SELECT id FROM {other}.APP.few",
    )
    for text in made:
        with pytest.raises(errors.NoPlaceForNames):
            anabranch.sql(spark, text.format(other=other, path=tmp_path / "t"))
    anabranch.append(tmp_path / "t", [{"id": 1}], spark=spark)
    with pytest.raises(errors.NoPlaceForNames):
        anabranch.sql(spark, f"CREATE VIEW {other}.APP.ours AS SELECT id FROM delta.`{tmp_path / 't'}`")
    assert len(anabranch.history(tmp_path / "t")) == 1
    assert not spark.catalog.tableExists(f"{other}.APP.ours")
