"""Moments are read as Spark reads them, or refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
import pytest

from anabranch._protocol.timestamps import at_milliseconds, milliseconds, zone_of
from anabranch.errors import InvalidTimestamp

NOON = int(dt.datetime(2024, 1, 31, 12, 30, 5, tzinfo=dt.UTC).timestamp() * 1000)
DAY = int(dt.datetime(2024, 1, 31, tzinfo=dt.UTC).timestamp() * 1000)
PLUS_ONE = dt.timezone(dt.timedelta(hours=1))
WORDS = ("", "x", "now", "12:30:00", "1700000000", "20240131", "2024-13-01", "2024-02-30", "2024-01-31 25:00:00")
WORDS += ("2024-01-31T", "2024-01-31 12:30:05 Mars/Olympus", "2024-01-31 12:30:05+19:00", "2024-01-31 12:30:05z")
WORDS += ("99999-01-01", "2024-01-31 12:30Z")


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("2024-01-31", DAY),
        ("2024-1-31", DAY),
        ("2024-01-31 12:30:05", NOON),
        ("2024-01-31T12:30:05", NOON),
        ("2024-01-31 12:30:05.25", NOON + 250),
        ("2024-01-31 12:30:05.250999", NOON + 250),
        ("2024-01-31 12:30", NOON - 5000),
        ("2024-01-31T12:30:05Z", NOON),
        ("2024-01-31 13:30:05+01:00", NOON),
        ("2024-01-31 13:30:05 +1", NOON),
        ("2024-01-31 13:30:05 Europe/Paris", NOON),
        ("2024-01-31 14:30:05UTC+2", NOON),
        (dt.date(2024, 1, 31), DAY),
        (dt.datetime(2024, 1, 31, 12, 30, 5, 250999), NOON + 250),
        (dt.datetime(2024, 1, 31, 13, 30, 5, tzinfo=PLUS_ONE), NOON),
        (pd.Timestamp("2024-01-31 12:30:05"), NOON),
        ("1969-12-31 23:59:59.9995", -1),
    ],
)
def test_a_moment_is_read_in_its_zone_or_in_that_of_the_session(given: Any, moment: int) -> None:
    assert milliseconds(given, "UTC") == moment


@pytest.mark.parametrize("zone", ["Europe/Paris", "+01:00", "GMT+1"])
def test_what_names_no_zone_is_of_the_session(zone: str) -> None:
    assert milliseconds("2024-01-31 13:30:05", zone) == NOON
    assert milliseconds(dt.date(2024, 1, 31), zone) == DAY - 3_600_000
    assert milliseconds("2024-01-31 12:30:05Z", zone) == NOON
    assert at_milliseconds("20240131133005250", zone) == NOON + 250


def test_an_hour_that_the_clock_skips_or_repeats_is_as_in_java() -> None:
    def of(text: str) -> int:
        return milliseconds(text, "Europe/Paris")

    assert of("2024-03-31 02:30:00") == of("2024-03-31 03:30:00")
    assert of("2024-10-27 03:30:00") - of("2024-10-27 02:30:00") == 2 * 3_600_000


@pytest.mark.parametrize(
    "given",
    [*WORDS, 5, 5.0, None, dt.time(1)],
)
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(InvalidTimestamp) as refused:
        milliseconds(given, "UTC")
    assert refused.value.getCondition() == "DELTA_TIMESTAMP_INVALID"


@pytest.mark.parametrize("digits", ["20241301000000000", "20240131250000000", "20240230000000000"])
def test_digits_that_are_no_moment_are_refused(digits: str) -> None:
    with pytest.raises(InvalidTimestamp):
        at_milliseconds(digits, "UTC")


@pytest.mark.parametrize("name", ["+19:00", "+01:75", "-01:30:60"])
def test_an_offset_beyond_what_java_takes_is_no_zone(name: str) -> None:
    with pytest.raises(ValueError, match="there is no time zone"):
        zone_of(name)
