"""Intervals keep their values in the log's texts, and their names in schemas are those that writers use."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.schema.intervals import (
    DAY_SECOND,
    YEAR_MONTH,
    canonical_type,
    interval_text,
    read_interval,
)
from anabranch._protocol.schema.types import Array, Map, parse_schema, schema_json

OF_MONTHS = ["interval year", "interval year to month", "interval month"]
OF_SECONDS = [
    *("interval day", "interval day to hour", "interval day to minute", "interval day to second"),
    *("interval hour", "interval hour to minute", "interval hour to second"),
    *("interval minute", "interval minute to second", "interval second"),
]
MOST_MICROS = timedelta(microseconds=2**63 - 1)


@pytest.mark.parametrize("name", OF_MONTHS + OF_SECONDS)
def test_every_spelling_of_a_type_is_read_and_the_canonical_one_written(name: str) -> None:
    canonical = YEAR_MONTH if name in OF_MONTHS else DAY_SECOND
    map_type = {"type": "map", "keyType": "string", "valueType": name, "valueContainsNull": True}
    types = [name, {"type": "array", "elementType": name, "containsNull": True}, map_type]
    fields = [{"name": f"c{i}", "type": type_, "nullable": True, "metadata": {}} for i, type_ in enumerate(types)]
    schema = parse_schema(json.dumps({"type": "struct", "fields": fields}))
    assert [field.type for field in schema] == [canonical, Array(canonical), Map("string", canonical)]
    assert schema_json(schema).count(f'"{canonical}"') == 3


@pytest.mark.parametrize(
    "name",
    ["interval", "interval month to second", "interval second to day", "INTERVAL Year To Month", "interval day to day"],
)
def test_no_other_name_becomes_an_interval(name: str) -> None:
    assert canonical_type(name) == name


@given(st.integers(-(2**31), 2**31 - 1))
def test_months_survive_their_text(months: int) -> None:
    assert read_interval(interval_text(months, YEAR_MONTH), YEAR_MONTH) == months


@given(st.integers(-(2**63), 2**63 - 1).map(lambda micros: timedelta(microseconds=micros)))
def test_spans_survive_their_text(span: timedelta) -> None:
    assert read_interval(interval_text(span, DAY_SECOND), DAY_SECOND) == span


SPELLED = [
    (YEAR_MONTH, 12, "INTERVAL '1-0' YEAR TO MONTH"),
    (YEAR_MONTH, -(2**31), "INTERVAL '-178956970-8' YEAR TO MONTH"),
    (YEAR_MONTH, 2**31 - 1, "INTERVAL '178956970-7' YEAR TO MONTH"),
    (DAY_SECOND, timedelta(7, 45_296, 123_456), "INTERVAL '7 12:34:56.123456' DAY TO SECOND"),
    (DAY_SECOND, timedelta(seconds=-1.5), "INTERVAL '-0 00:00:01.5' DAY TO SECOND"),
    (DAY_SECOND, timedelta(microseconds=-(2**63)), "INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND"),
    (DAY_SECOND, MOST_MICROS, "INTERVAL '106751991 04:00:54.775807' DAY TO SECOND"),
]


@pytest.mark.parametrize(("kind", "value", "text"), SPELLED, ids=[text for _, _, text in SPELLED])
def test_values_are_spelled_as_spark_spells_them(kind: str, value: int | timedelta, text: str) -> None:
    assert interval_text(value, kind) == text
    assert read_interval(text, kind) == value


NARROW = [
    (YEAR_MONTH, "INTERVAL '3' YEAR", 36),
    (YEAR_MONTH, "interval '18' month", 18),
    (YEAR_MONTH, "INTERVAL -'1-6' YEAR TO MONTH", -18),
    (YEAR_MONTH, "INTERVAL -'-1-6' YEAR TO MONTH", 18),
    (DAY_SECOND, "INTERVAL '2' DAY", timedelta(2)),
    (DAY_SECOND, "INTERVAL '2 03' DAY TO HOUR", timedelta(2, hours=3)),
    (DAY_SECOND, "INTERVAL '36:05' HOUR TO MINUTE", timedelta(hours=36, minutes=5)),
    (DAY_SECOND, "INTERVAL '90:01.25' MINUTE TO SECOND", timedelta(minutes=90, seconds=1.25)),
    (DAY_SECOND, "INTERVAL '100.000001' SECOND", timedelta(seconds=100, microseconds=1)),
]


@pytest.mark.parametrize(("kind", "text", "value"), NARROW, ids=[text for _, text, _ in NARROW])
def test_narrowed_literals_are_read(kind: str, text: str, value: int | timedelta) -> None:
    assert read_interval(text, kind) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (YEAR_MONTH, "18"),
        (YEAR_MONTH, "1-6"),
        (YEAR_MONTH, "INTERVAL '1-12' YEAR TO MONTH"),
        (YEAR_MONTH, "INTERVAL '178956970-8' YEAR TO MONTH"),
        (YEAR_MONTH, "INTERVAL '1' DAY"),
        (YEAR_MONTH, "INTERVAL '1 2' MONTH TO DAY"),
        (DAY_SECOND, "INTERVAL '1-0' YEAR TO MONTH"),
        (DAY_SECOND, "INTERVAL '1 24:00:00' DAY TO SECOND"),
        (DAY_SECOND, "INTERVAL '1 02:60:00' DAY TO SECOND"),
        (DAY_SECOND, "INTERVAL '106751991 04:00:54.775808' DAY TO SECOND"),
        (DAY_SECOND, "INTERVAL '1' DAY; DROP"),
    ],
)
def test_a_text_that_is_no_literal_of_the_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"interval|fit"):
        read_interval(text, kind)
