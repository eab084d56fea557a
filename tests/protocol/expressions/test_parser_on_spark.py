"""What a text is to the parser, it is to Spark: both plans are the same."""

from __future__ import annotations

import random
import re

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.spelling import to_sql
from tests.protocol.expressions.drawn_texts import drawn_text
from tests.support.tiers import examples

pytestmark = pytest.mark.spark

COLUMNS = frozenset({"a", "b", "date", "end", "year", "day"})
_PARSED = re.compile(r"== Parsed Logical Plan ==\n(.*?)\n== ", re.DOTALL)


def plan(spark: SparkSession, text: str) -> str | None:
    """How Spark reads an expression, before it looks for columns; None where it does not."""
    try:
        (row,) = spark.sql(f"EXPLAIN EXTENDED SELECT ({text}\n) AS x FROM nowhere").collect()
    except PySparkException:
        return None
    found = _PARSED.search(row[0])
    assert found is not None, row[0]
    return re.sub(r"#\d+L?", "#", found[1]).replace("NOT isnull(", "isnotnull(")


@pytest.mark.classic("EXPLAIN of a text that names no table")
def test_spark_reads_what_the_parser_reads(spark: SparkSession) -> None:
    draw, read, stricter = random.Random(7), 0, 0
    for _ in range(examples(3000, 60)):
        text = drawn_text(draw, draw.randint(1, 4))
        try:
            ours = to_sql(parse_expression(text, COLUMNS))
        except ParseError:
            stricter += 1
            continue
        theirs = plan(spark, text)
        assert theirs is not None, text
        # Of IS UNKNOWN the plan says nothing, so NOT before it or in it are two texts.
        assert plan(spark, ours) == theirs or "unknown" in text.lower(), text
        read += 1
    assert read > stricter
