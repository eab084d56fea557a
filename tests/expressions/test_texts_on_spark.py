"""Texts with quotes and backslashes have the value that Spark gives them, where the session reads them as usual."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import anabranch
from anabranch import DeltaTable
from anabranch._expressions import condition
from anabranch._expressions.computations import computation_of
from anabranch._protocol.schema.types import Field, Struct
from anabranch._spark.engine import QUOTES, SparkEngine
from anabranch._sql.conditions import context_for

pytestmark = pytest.mark.spark

TEXTS = (
    *(
        '"NEW"',
        '"it\'s"',
        '"a""b"',
        "'it''s'",
        "'a''''b'",
        "'a' 'b'",
        "'a' \"b\"",
        "''",
        '""',
        "'a\nb'",
        r"'\''",
        r'"\""',
    ),
    *(r"'a\%b'", r"'a\_b'", r"'\\d+'", r"'tab\tx'", r"'\0'", r"'\x41'", r"'\u0041'", r"'\101'", r"'\Z'", r"'\b\r\n'"),
    *(
        r"'\a\q\e'",
        r"'\U0001F600'",
        r"'\777'",
        r"'\400'",
        r"'\1'",
        r"'a\\\\b'",
        r"'\u12'",
        r"'x\\'",
        r"r'\d'",
        r'R"x\y"',
    ),
)
ONLY_OF_SPARK = (r"'\uD83D\uDE00'", r"'\U00110000'", "'${x}'")


@pytest.fixture
def changed(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get(request.param, "false")
    spark.conf.set(request.param, "true")
    yield request.param
    spark.conf.set(request.param, before)


def computed(spark: SparkSession, text: str) -> Any:
    found = computation_of(text, context_for("t", Struct((Field("id", "long"),)), SparkEngine(spark)))
    return None if found.reason is not None else found.value().to_pylist()[0]


def joins_texts(spark: SparkSession) -> bool:
    """Whether a doubled quote means none, as to Spark 4.0: then texts with quotes are left to Spark."""
    return bool(spark.sql("SELECT 'it''s'").first()[0] == "its")


def test_each_text_has_sparks_value(spark: SparkSession) -> None:
    by_spark = [spark.sql(f"SELECT {text}").first()[0] for text in TEXTS]
    left = [None] * len(TEXTS) if joins_texts(spark) else by_spark
    for text, found, wanted, otherwise in zip(
        TEXTS, [computed(spark, text) for text in TEXTS], by_spark, left, strict=True
    ):
        assert found in (wanted, otherwise), text


def test_what_no_text_holds_and_what_a_session_replaces_is_left_to_spark(spark: SparkSession) -> None:
    assert [computed(spark, text) for text in ONLY_OF_SPARK] == [None] * len(ONLY_OF_SPARK)


@pytest.mark.parametrize("changed", QUOTES, indirect=True)
def test_where_a_setting_gives_them_another_meaning_they_are_left_to_spark(spark: SparkSession, changed: str) -> None:
    assert computed(spark, '"NEW"') is None
    assert computed(spark, "'plain'") == "plain"


def test_a_condition_with_double_quotes_and_backslashes_starts_no_job(spark: SparkSession, tmp_path: Path) -> None:
    if joins_texts(spark):
        pytest.skip("this version of Spark means another text by them")
    anabranch.append(tmp_path, {"id": [1, 2, 3], "status": ["NEW", "OLD", "status"]})
    where = 'status = "NEW" OR status RLIKE "^O\\\\w+$"'
    context = context_for("t", Struct((Field("status", "string"),)), SparkEngine(spark))
    assert condition('status = "NEW"', context).row_local
    plan = anabranch.sql(spark, f"EXPLAIN DELETE FROM delta.`{tmp_path}` WHERE {where}").first()[0]
    assert "find rows: Arrow" in plan
    assert anabranch.sql(spark, f"DELETE FROM delta.`{tmp_path}` WHERE {where}").first()[0] == 2


def test_a_text_that_a_column_prints_is_not_read_as_one_of_sql(spark: SparkSession, tmp_path: Path) -> None:
    anabranch.append(tmp_path, {"id": [1, 2, 3, 4], "c": ["O'Hara", "a\\b", "x", "it\\'s"]})
    table = DeltaTable.forPath(spark, str(tmp_path))
    table.delete(F.col("c") == "O'Hara")
    table.update(F.col("c") == "a\\b", {"c": F.lit("c\\d'")})
    on = (F.col("t.id") == F.col("s.id")) & (F.col("t.c") == "c\\d'")
    table.alias("t").merge(spark.range(9).alias("s"), on).whenMatchedDelete().execute()
    assert sorted((row["id"], row["c"]) for row in table.toDF().collect()) == [(3, "x"), (4, "it\\'s")]
    table.delete(F.col("c").isin("it\\'s", "y"))
    assert [row["id"] for row in table.toDF().collect()] == [3]
