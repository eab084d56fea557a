"""The arguments of ``DeltaTable.update``: what is refused, in delta-spark's words, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import anabranch
from anabranch import DeltaTable, errors

REFUSED: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "a dict in the place of the condition": (({"id": "2"},), ValueError, "set cannot be None"),
    "a condition alone": (("id = 1",), ValueError, "set cannot be None"),
    "a condition that is a number": ((1, {"id": "2"}), TypeError, "must be a Spark SQL Column or a string"),
    "a number with nothing to set": ((1, {}), TypeError, "must be a Spark SQL Column or a string"),
    "nothing to set": ((None, {}), errors.InvalidOption, "names no column"),
    "what is set is no dict": ((None, 1), TypeError, "must be a dict"),
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path: Path = tmp_path_factory.mktemp("update") / "t"
    anabranch.append(path, [{"id": 1}])
    return DeltaTable.forPath(spark, str(path))


@pytest.mark.spark
@pytest.mark.parametrize(("given", "expected", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_an_argument_that_makes_no_sense_is_refused(
    table: DeltaTable, given: Any, expected: type[Exception], words: str
) -> None:
    with pytest.raises(expected, match=words):
        table.update(*given)
    assert table.history().count() == 1
