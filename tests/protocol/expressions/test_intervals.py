"""Intervals are read as Spark reads them, or not at all."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from anabranch._protocol.expressions.computation import computation_over
from anabranch._protocol.expressions.intervals import DAY, Span, span_of
from anabranch._protocol.expressions.lexer import ParseError
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.skipping import predicate_of
from anabranch._protocol.expressions.syntax import Interval
from anabranch._protocol.predicates import Compare, Not, Unknown
from anabranch._protocol.schema.types import Field, Struct, to_arrow
from anabranch._protocol.unsupported import Unsupported

SCHEMA = Struct(
    (Field("t", "timestamp"), Field("n", "timestamp_ntz"), Field("d", "date"), Field("i", "long"), Field("s", "string"))
)


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


# -- calls with a unit -------------------------------------------------------------------------------------------------


def computed(text: str, zone: dt.tzinfo | None = dt.UTC, **row: Any) -> tuple[Any, Any]:
    """The type and the value for a row."""
    found = computation_over(text, SCHEMA, zone)
    assert found.reason is None
    (value,) = found.values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA))).to_pylist()
    return found.tree.type, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DATEADD(DAY, 1, n)", dt.datetime(2024, 2, 1, 12, 30)),
        ("date_add(dayofyear, - 1, n)", dt.datetime(2024, 1, 30, 12, 30)),
        ("TIMESTAMPADD(WEEK, 2, n)", dt.datetime(2024, 2, 14, 12, 30)),
        ("dateadd(MONTH, 1, n)", dt.datetime(2024, 2, 29, 12, 30)),
        ("dateadd(QUARTER, -3, n)", dt.datetime(2023, 4, 30, 12, 30)),
        ("dateadd(YEAR, 1L, n)", dt.datetime(2025, 1, 31, 12, 30)),
        ("dateadd(HOUR, -13, n)", dt.datetime(2024, 1, 30, 23, 30)),
        ("dateadd(MINUTE, 40, n)", dt.datetime(2024, 1, 31, 13, 10)),
        ("dateadd(SECOND, 1, n)", dt.datetime(2024, 1, 31, 12, 30, 1)),
        ("dateadd(MILLISECOND, 1, n)", dt.datetime(2024, 1, 31, 12, 30, 0, 1000)),
        ("dateadd(MICROSECOND, 1, n)", dt.datetime(2024, 1, 31, 12, 30, 0, 1)),
        ("dateadd(MONTH, i, n)", dt.datetime(2023, 11, 30, 12, 30)),
        ("dateadd(DAY, i * 2, n)", dt.datetime(2024, 1, 27, 12, 30)),
        ("dateadd(DAY, NULL, n)", None),
    ],
)
def test_a_local_time_is_moved_by_units(text: str, expected: dt.datetime | None) -> None:
    assert computed(text, n=dt.datetime(2024, 1, 31, 12, 30), i=-2) == ("timestamp_ntz", expected)


@pytest.mark.parametrize("text", ["dateadd(DAY, 1, d)", "dateadd(DAY, 1, s)", "dateadd(HOUR, 24, d)"])
def test_a_date_and_a_text_become_a_timestamp_before_they_are_moved(text: str) -> None:
    zone = dt.timezone(dt.timedelta(hours=3))
    expected = dt.datetime(2024, 2, 1, tzinfo=zone)
    assert computed(text, zone, d=dt.date(2024, 1, 31), s="2024-01-31") == ("timestamp", expected)
    assert computed(text, zone) == ("timestamp", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DATEDIFF(DAY, n, TIMESTAMP_NTZ '2024-02-01 12:29:59')", 0),
        ("date_diff(DAY, n, TIMESTAMP_NTZ '2024-02-01 12:30:00')", 1),
        ("datediff(DAY, n, d)", -1),
        ("timestampdiff(WEEK, n, '2024-02-29')", 4),
        ("timestampdiff(HOUR, TIMESTAMP_NTZ '2024-01-31 14:00:00', n)", -1),
        ("timestampdiff(MICROSECOND, n, n)", 0),
        ("timestampdiff(MONTH, n, TIMESTAMP_NTZ '2024-02-29 12:30:00')", 0),
        ("timestampdiff(MONTH, n, TIMESTAMP_NTZ '2024-03-31 12:30:00')", 2),
        ("timestampdiff(MONTH, n, TIMESTAMP_NTZ '2024-03-31 12:29:00')", 1),
        ("timestampdiff(MONTH, n, TIMESTAMP_NTZ '2024-03-01 06:00:00')", 0),
        ("timestampdiff(MONTH, n, TIMESTAMP_NTZ '2023-12-31 12:31:00')", 0),
        ("timestampdiff(QUARTER, n, TIMESTAMP_NTZ '2023-04-30 00:00:00')", -3),
        ("timestampdiff(YEAR, TIMESTAMP_NTZ '2020-02-29 12:30:00', n)", 3),
        ("timestampdiff(YEAR, n, NULL)", None),
    ],
)
def test_whole_units_between_two_moments_are_counted(text: str, expected: int | None) -> None:
    """A last day that is not full is left out first, so that of January 31 to March 1, by the clock, no month is."""
    moment = dt.datetime(2024, 1, 31, 12, 30)
    assert computed(text, n=moment, d=dt.date(2024, 1, 30)) == ("long", expected)


@pytest.mark.parametrize(
    "text",
    [
        *("dateadd(WEEKS, 1, t)", "dateadd(NANOSECOND, 1, t)", "datediff(DAYOFYEAR, t, t)", "dateadd('DAY', 1, t)"),
        *("dateadd(DAY, 1.5, t)", "dateadd(DAY, '1', t)", "dateadd(DAY, 1, i)", "datediff(DAY, i, t)"),
        *("dateadd(DAY, 1, TIMESTAMP '2024-01-01 00:00:00')", "dateadd(DAY, rand(), t)", "`timestampadd`(DAY, 1, t)"),
    ],
)
def test_a_call_with_a_unit_that_spark_may_read_in_another_way_is_left_to_it(text: str) -> None:
    assert computation_over(text, SCHEMA).reason is not None


@pytest.mark.parametrize(
    "text",
    [
        *("dateadd(DAY, 2147483647, n)", "dateadd(YEAR, i, n)", "dateadd(MICROSECOND, 3000000000L, n)"),
        *("dateadd(WEEK, i, n)", "dateadd(DAY, 1, s)", "datediff(DAY, n, s)"),
    ],
)
def test_what_lies_outside_of_its_type_or_is_no_moment_is_left_to_spark(text: str) -> None:
    row = {"n": dt.datetime(2024, 1, 31), "i": 1 << 31, "s": "soon"}
    with pytest.raises(Unsupported):
        computed(text, **row)


def test_where_clocks_change_units_shorter_than_a_day_are_added_and_none_are_counted() -> None:
    moment = dt.datetime(2024, 3, 31, 0, 30)
    row = {"t": moment.replace(tzinfo=dt.UTC), "n": moment, "d": moment.date(), "i": 24}
    assert computed("dateadd(HOUR, 23, t)", None, **row)[1] == dt.datetime(2024, 3, 31, 23, 30, tzinfo=dt.UTC)
    assert computed("dateadd(MINUTE, i, t)", None, **row)[1] == dt.datetime(2024, 3, 31, 0, 54, tzinfo=dt.UTC)
    assert computed("dateadd(DAY, i, n)", None, **row)[1] == dt.datetime(2024, 4, 24, 0, 30)
    for text in (
        *("dateadd(HOUR, 24, t)", "dateadd(HOUR, i, t)", "dateadd(MONTH, 1, t)", "dateadd(HOUR, 1, d)"),
        *("datediff(SECOND, t, t)", "datediff(SECOND, n, n)", "datediff(DAY, d, d)"),
    ):
        with pytest.raises(Unsupported):
            computed(text, None, **row)


def test_a_moved_constant_rules_files_out() -> None:
    def said(text: str, zone: dt.tzinfo | None) -> object:
        fixed = zone if zone is dt.UTC else None
        return predicate_of(computation_over(text, SCHEMA, fixed, timestamp="timestamp").tree, zone)

    berlin, moved = ZoneInfo("Europe/Berlin"), "t < dateadd(MONTH, -1, TIMESTAMP '2024-03-31 01:30:00 UTC')"
    expected = Compare("t", "<", dt.datetime(2024, 2, 29, 1, 30, tzinfo=dt.UTC))
    assert said(moved, dt.UTC) == expected
    assert said("t < DATEADD(DAY, -1, to_timestamp('20240301013000', 'yyyyMMddHHmmss'))", dt.UTC) == expected
    assert said("t < TIMESTAMPADD(HOUR, -3, TIMESTAMP '2024-02-29 04:30:00 UTC')", berlin) == expected
    assert said("d < dateadd(MONTH, -6, DATE '2024-08-31')", dt.UTC) == Not(Compare("d", ">=", dt.date(2024, 2, 29)))
    assert said("i > datediff(DAY, DATE '2024-01-01', DATE '2024-03-01')", dt.UTC) == Compare("i", ">", 60)
    assert said(moved, berlin) == Unknown()
