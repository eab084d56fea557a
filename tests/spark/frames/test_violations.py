"""A row that breaks a rule: what Spark's logs hold of it is a sentence, and the error has every detail again."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from anabranch._spark.frames.violations import error_sentence, raise_in_query, violation_in
from anabranch.errors import AnabranchError, CheckConstraintViolated, LengthExceeded, NotNullViolated

TABLE = "file:///table"
MARK = "A row to write breaks a rule of its Delta table: "
CHECK = {"constraint": 'a "b"', "expression": "x > 0 AND\ny <> '}'"}
LENGTH = {"column": "s.`t`", "limit": "varchar(5)"}
SENTENCES = {
    'CHECK constraint "a \\"b\\"" is not TRUE: "x > 0 AND\\ny <> \'}\'".': (CheckConstraintViolated, CHECK),
    'a text is longer than the type "varchar(5)" of the column "s.`t`".': (LengthExceeded, LENGTH),
    'NULL stands in the NOT NULL column "n".': (NotNullViolated, {"column": "n"}),
}
ROW = ' The row has {"a b":"1","n":null}. Nothing is committed.'


@pytest.mark.spark
@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_spark_logs_of_a_row_is_a_sentence(spark: SparkSession, sentence: str) -> None:
    error, facts = SENTENCES[sentence]
    values: dict[str, Column] = {"a b": F.lit("1"), "n": F.lit(None).cast("string")}
    with pytest.raises(PySparkException) as caught:
        spark.range(1).select(raise_in_query(error, error_sentence(error, **facts), values, TABLE)).collect()
    assert f"{MARK}{sentence}{ROW}" in str(caught.value)
    found = violation_in(str(caught.value), TABLE)
    assert (type(found), found and found.facts["values"]) == (error, {"a b": "1", "n": None})


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("before", ["", MARK, f"{MARK}CHECK constraint {{}} ", f"{MARK}NULL stands in "])
@pytest.mark.parametrize("row", [ROW, " Nothing is committed.", ""])
def test_a_sentence_is_found_whatever_stands_around_it(sentence: str, before: str, row: str) -> None:
    error, facts = SENTENCES[sentence]
    found = violation_in(f"[USER_RAISED] {before}{MARK}{sentence}{row} SQLSTATE: P0001", TABLE)
    assert isinstance(found, AnabranchError)
    assert type(found) is error
    assert {name: found.facts[name] for name in facts} == facts
    assert found.facts["values"] == ({"a b": "1", "n": None} if row is ROW else {})


@pytest.mark.parametrize(
    "text", ["", "a row", MARK, f"{MARK}NULL stands in the NOT NULL column 5.", f'{MARK}CHECK constraint "c"', MARK * 3]
)
def test_a_text_that_only_looks_like_one_is_none(text: str) -> None:
    assert violation_in(text, TABLE) is None
