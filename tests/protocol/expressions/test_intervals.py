"""Intervals are read as Spark reads them, or not at all."""

from __future__ import annotations

import contextlib
import datetime as dt

import pyarrow as pa
import pytest

from anabranch._protocol.expressions.computation import computation_over
from anabranch._protocol.expressions.intervals import DAY, Span, span_of
from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.syntax import Interval
from anabranch._protocol.schema.types import Field, Struct, to_arrow
from anabranch._protocol.unsupported import Unsupported

SCHEMA = Struct((Field("t", "timestamp"), Field("n", "timestamp_ntz")))


def span(text: str, *, is_negative: bool = False) -> Span | None:
    found = parse_expression(text)
    assert isinstance(found, Interval)
    return span_of(found, is_negative=is_negative)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INTERVAL 1 DAY", Span("days", DAY)),
        ("INTERVAL '2' WEEKS", Span("days", 14 * DAY)),
        ("INTERVAL -3 days", Span("days", -3 * DAY)),
        ("INTERVAL 1 DAY 2 HOURS", Span("both", DAY + DAY // 12)),
        ("INTERVAL '1 day -24 hours'", Span("both", 0)),
        ("INTERVAL '1 year 2 months'", Span("months", 14)),
        ("INTERVAL '3 weeks -1 day'", Span("days", 20 * DAY)),
        ("INTERVAL 5 MILLISECONDS 7 MICROSECONDS", Span("time", 5007)),
    ],
)
def test_units_and_amounts_are_read(text: str, expected: Span) -> None:
    assert span(text) == expected
    assert span(text, is_negative=True) == Span(expected.unit, -expected.amount)


@pytest.mark.parametrize(
    "text",
    [
        *("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '1 10:00:00' DAY TO SECOND", "INTERVAL 1 YEAR 1 DAY"),
        *("INTERVAL '1.5' SECONDS", "INTERVAL 1.5 SECONDS", "INTERVAL (1 + 1) DAYS", "INTERVAL '1 century'"),
        *(
            "INTERVAL '+1 day'",
            "INTERVAL 9999999999 DAYS",
            "INTERVAL 106751992 DAYS",
            "INTERVAL 1 NANOSECONDS",
            "INTERVAL '1'",
        ),
    ],
)
def test_every_other_interval_is_left_to_spark(text: str) -> None:
    with contextlib.suppress(ParseError):
        assert span(text) is None


def moved(text: str, zone: dt.tzinfo | None) -> dt.datetime:
    local = dt.datetime(2024, 3, 31, 1, 30)
    row = {"t": local.replace(tzinfo=dt.UTC), "n": local}
    found = computation_over(text, SCHEMA, zone)
    assert found.reason is None
    (value,) = found.values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA))).to_pylist()
    return value  # type: ignore[no-any-return]


def test_a_month_is_added_to_the_local_time() -> None:
    west = dt.timezone(dt.timedelta(hours=-3))  # where it is still the 30th
    assert moved("t - INTERVAL 1 MONTH", dt.UTC) == dt.datetime(2024, 2, 29, 1, 30, tzinfo=dt.UTC)
    assert moved("t + INTERVAL 1 MONTH", west) == dt.datetime(2024, 5, 1, 1, 30, tzinfo=dt.UTC)
    assert moved("n + INTERVAL 1 MONTH", None) == dt.datetime(2024, 4, 30, 1, 30)


def test_where_clocks_change_only_what_is_shorter_than_a_day_is_added() -> None:
    assert moved("t + INTERVAL 23 HOURS", None) == dt.datetime(2024, 4, 1, 0, 30, tzinfo=dt.UTC)
    assert moved("n + INTERVAL 24 HOURS", None) == dt.datetime(2024, 4, 1, 1, 30)
    for text in (
        "t + INTERVAL 24 HOURS",
        "t - INTERVAL 1 MONTH",
        "t + INTERVAL '1 day -23 hours'",
        "t + INTERVAL 0 DAYS",
    ):
        with pytest.raises(Unsupported):
            moved(text, None)
