"""Statistics are the same whichever way rows are written."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch._protocol.schema.types import Array, Field, Map, Struct, to_arrow
from anabranch._spark.columns.types import arrow_rows

pytestmark = pytest.mark.spark
UTC = dt.UTC
SCHEMA = Struct(
    (
        *(Field(name, name) for name in ("byte", "short", "integer", "long", "float", "double", "boolean", "binary")),
        *(Field(name, name) for name in ("string", "date", "timestamp", "timestamp_ntz")),
        Field("nan", "double"),
        Field("zero", "float"),
        Field("small", "decimal(5,2)"),
        Field("large", "decimal(30,5)"),
        Field(
            "s",
            Struct((Field("a", "long"), Field("deep", Struct((Field("x.y", "string"), Field("f", "double")))))),
        ),
        Field("list", Array("long")),
        Field("nulls", Array("long")),
        Field("map", Map("string", "long")),
        Field("odd.name", "integer"),
        Field("empty", "string"),
    )
)
ROWS: list[dict[str, Any]] = [
    {
        **dict.fromkeys(("byte", "short", "integer", "long", "odd.name"), n),
        **dict.fromkeys(("float", "double"), n / 2),
        "boolean": n > 0,
        "binary": b"\xff",
        "string": "ab\U0001f600" * 15 + str(n),
        "date": dt.date(1500, 1, 1) + dt.timedelta(days=n),
        "timestamp": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC) + dt.timedelta(microseconds=n),
        "timestamp_ntz": dt.datetime(2020, 1, 1, microsecond=1) + dt.timedelta(days=n),
        "nan": nan if n == 1 else 1.0,
        "zero": -0.0,
        "small": Decimal("-1.50") * n,
        "large": Decimal("123456789012345678901234.56789") + n,
        "s": {"a": n, "deep": {"x.y": str(n), "f": n / 4}} if n else None,
        "list": [n, None],
        "nulls": [n] if n else None,
        "map": [(str(n), n)],
    }
    for n in (0, 1, 100)
]
PROPERTIES: list[dict[str, str]] = [
    {},
    {"delta.dataSkippingNumIndexedCols": "3"},
    {"delta.dataSkippingStatsColumns": "s, `odd.name`"},
]


def stated(path: Path) -> list[dict[str, Any]]:
    """The statistics in each commit."""
    commits = sorted((path / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    return [json.loads(action["add"]["stats"]) for action in actions if "add" in action]


@pytest.mark.parametrize("options", PROPERTIES, ids=str)
def test_both_ways_of_writing_state_the_same(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    rows, path = pa.Table.from_pylist(ROWS, to_arrow(SCHEMA)), tmp_path / "table"
    anabranch.append(path, rows, properties=options)
    anabranch.install(spark)
    arrow_rows(spark, rows).coalesce(1).write.format("delta").mode("append").save(str(path))
    by_arrow, by_spark = stated(path)
    assert by_spark["nullCount"].pop("nan", 0) == by_arrow["nullCount"].get("nan", 0) == 0, "Arrow says nothing of it"
    assert by_arrow == by_spark
    if not options:
        assert by_arrow["nullCount"]["s"] == {"a": 1, "deep": {"x.y": 1, "f": 1}}
        assert by_arrow["minValues"]["s"]["deep"]["f"] == 0.25
        assert by_arrow["maxValues"]["string"].startswith("ab\U0001f600" * 10)
        assert by_arrow["maxValues"]["timestamp"] == "1970-01-01T00:00:00.001Z"
        assert "nan" not in by_arrow["maxValues"]
        assert (by_arrow["nullCount"]["map"], "nulls" in by_arrow["nullCount"]) == (0, False)
    assert anabranch.check(path, deep=True).is_clean
