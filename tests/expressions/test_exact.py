"""SQL that means one thing only, so that rows can be judged without Spark; all other is left to Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from anabranch.expressions import exact_literal, exact_predicate
from anabranch.protocol.predicates import holds
from anabranch.protocol.schema.types import Field, Struct

TYPES = {
    "id": "long",
    "s": "string",
    "d": "date",
    "t": "timestamp",
    "b": "boolean",
    "x": "double",
    "f": "float",
    "m": "decimal(5,2)",
    "w": "decimal(38,0)",
    "fine": "decimal(38,10)",
    "n": "timestamp_ntz",
}
LONG = "-1234567890123456789012345678.9123456789"
SCHEMA = Struct(tuple(Field(name, kind) for name, kind in TYPES.items()))


@pytest.mark.parametrize(
    ("text", "row", "truth"),
    [
        ("id > 0", {"id": 1}, True),
        ("id > 0", {"id": None}, None),
        ("ID IS NOT NULL AND (s = 'x' OR s LIKE 'a%')", {"id": 1, "s": "ab"}, True),
        ("id BETWEEN 1 AND 3", {"id": 4}, False),
        ("id IN (1, 2)", {"id": 2}, True),
        ("NOT b = true", {"b": False}, True),
        ("b", {"b": None}, None),
        ("d >= DATE '2024-01-01'", {"d": dt.date(2024, 1, 1)}, True),
        ("d >= '2024-01-01'", {"d": dt.date(2023, 1, 1)}, False),
        ("x < 0.5", {"x": 0.25}, True),
        ("m > 1.25", {"m": Decimal("1.26")}, True),
        ("id > 0.5", {"id": 1}, True),
        ("t > TIMESTAMP '2024-01-01 00:00:00 UTC'", {"t": dt.datetime(2025, 1, 1, tzinfo=dt.UTC)}, True),
        (
            "fine = -1234567890123456789012345678.9123456789",
            {"fine": Decimal("-1234567890123456789012345678.9123456789")},
            True,
        ),
        ("fine < -1234567890123456789012345678.5", {"fine": Decimal("-1234567890123456789012345678.7")}, True),
        ("true", {}, True),
    ],
)
def test_a_simple_condition_is_judged_row_by_row(text: str, row: dict[str, Any], truth: bool | None) -> None:
    predicate = exact_predicate(text, SCHEMA)
    assert predicate is not None
    assert holds(predicate, row) is truth


@pytest.mark.parametrize(
    "text",
    [
        "length(s) > 2",
        "id > x",
        "id + 1 > 2",
        "w",
        "year(d) = 2024",
        "CAST(t AS DATE) = DATE '2024-01-01'",
        "t >= DATE '2024-01-01'",
        "s > 5",
        "id = '5'",
        "id > 0 AND rand() < 1",
        's = "x"',
        "s = 'a\\n'",
        "d > '2024-1-1'",
        "t > '2024-01-01'",
        "t > TIMESTAMP '2024-01-01 00:00:00'",
        "d > current_date()",
        "nope > 1",
        "id > NULL",
        "id IN (1, 'x')",
        "w > 0.5",
        "f > 16777217",
        f"m IN ({10**30}.5, 0.0000000001)",
        "x < 1e400",
        "x BETWEEN 0 AND 1e400",
        f"x < {10**39}",
        f"x < {10**39}.5",
        f"x > 0.{'0' * 38}1",
        "n > TIMESTAMP '2024-01-01 00:00:00 UTC'",
        "+s = '1.5'",
        "id = 5 {# foo #}",
        "d = CAST('2024-01-01' AS DATE DEFAULT 1 ON CONVERSION ERROR)",
        "t > CAST('2024-01-01 00:00:00 UTC' AS TIMESTAMP)",
        "t > '2024-01-01 00:00:00Z'::timestamp",
        "s = +'1.5'",
        "NOT +b",
        "id BETWEEN 1 AND +s",
        "id >",
        "id > 0; id < 1",
        "",
    ],
)
def test_whatever_spark_might_read_in_another_way_is_not_judged(text: str) -> None:
    assert exact_predicate(text, SCHEMA) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("-5", -5), ("'x'", "x"), ("true", True), ("NULL", None), ("1.50", Decimal("1.50")), ("1e3", 1000.0)],
)
def test_a_literal_has_its_value(text: str, value: Any) -> None:
    assert exact_literal(text) == (value,)


@pytest.mark.parametrize(
    "text", ["now()", "current_date", "1 + 1", "uuid()", '"x"', "cast('1' as int)", "x", "array(1)"]
)
def test_what_is_no_literal_has_none(text: str) -> None:
    assert exact_literal(text) is None
