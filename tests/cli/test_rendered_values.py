"""Every value has a JSON value, and nothing of it is lost."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, types
from pyspark.sql.types import VariantVal

from anabranch._cli.rendered_values import cell_text, json_value

MOMENT = dt.datetime(2026, 1, 31, 12, 30)
NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dt.date(2026, 1, 31), "2026-01-31"),
        (MOMENT, "2026-01-31 12:30:00.000"),
        (MOMENT.replace(microsecond=123456), "2026-01-31 12:30:00.123456"),
        (dt.time(12, 30), "12:30:00"),
        (dt.timedelta(days=1, seconds=1.5), "INTERVAL '1 00:00:01.5' DAY TO SECOND"),
        (Decimal("1.50"), "1.50"),
        (Decimal("0E-9"), "0.000000000"),
        (b"\x00\xff", "AP8="),
        (bytearray(b"\x00\xff"), "AP8="),
        (NAN, "NaN"),
        (float("-inf"), "-Infinity"),
        (1.5, 1.5),
        (True, True),
        (None, None),
        ("é", "é"),
        ([dt.date(2026, 1, 31), [NAN]], ["2026-01-31", ["NaN"]]),
        ({dt.date(2026, 1, 31): Decimal(1), 7: None, True: 1}, {"2026-01-31": "1", "7": None, "True": 1}),
        (Row(a=Row(b=b"\x00"), c=[MOMENT]), {"a": {"b": "AA=="}, "c": ["2026-01-31 12:30:00.000"]}),
    ],
)
def test_a_value_has_its_json_value(value: Any, expected: Any) -> None:
    assert json_value(value) == expected
    json.dumps(json_value(value), allow_nan=False)


def test_a_variant_is_the_json_value_that_it_holds() -> None:
    variant = VariantVal.parseJson('{"a": [1, null]}')
    assert json_value([variant]) == [{"a": [1, None]}]
    assert cell_text(variant) == '{"a": [1, null]}'


@pytest.mark.skipif(not hasattr(types, "Geometry"), reason="PySpark has geometries from 4.1 on")
def test_a_geometry_is_its_well_known_binary() -> None:
    assert json_value([types.Geometry(b"\x00\xff", 4326)]) == ["AP8="]


@pytest.mark.parametrize(
    ("value", "text"), [([dt.date(2026, 1, 31)], '["2026-01-31"]'), ({"a": b"\x00"}, '{"a": "AA=="}'), (1, "1")]
)
def test_a_cell_shows_what_has_parts_as_json(value: Any, text: str) -> None:
    assert cell_text(value) == text
