"""What tests of statements share: a schema of their own, and statements run in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch


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
