"""What tests of statements share: a schema of their own, and statements run in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from tests.support.readers import deltalake_rows


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """The current schema, empty, and gone afterwards."""
    name, before = f"s_{uuid.uuid4().hex[:10]}", spark.catalog.currentDatabase()
    spark.sql(f"CREATE DATABASE {name}")
    anabranch.sql(spark, f"USE {name}")
    yield name
    anabranch.sql(spark, f"USE {before}")
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def run(spark: SparkSession, schema: str) -> Any:
    """A statement's rows, sorted."""

    def rows(text: str, args: Any = None) -> list[Any]:
        return sorted(tuple(row) for row in anabranch.sql(spark, text, args).collect())

    return rows


@pytest.fixture
def path_of(spark: SparkSession, schema: str) -> Any:
    """The folder of a managed table of a name."""
    folder = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")  # type: ignore[union-attr]
    return lambda name: f"{folder}/{schema}.db/{name}"


@pytest.fixture
def held(path_of: Any) -> Any:
    """The rows of a managed table, sorted, as delta-rs reads them: for where what Spark shows is not the point."""

    def rows(name: str) -> list[Any]:
        return sorted(tuple(row.values()) for row in deltalake_rows(path_of(name)))

    return rows
