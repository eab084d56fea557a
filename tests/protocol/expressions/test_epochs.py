"""Counts of units since the epoch, and timestamps of them, are Spark's in every time zone."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from anabranch._protocol.expressions.computation import computation_over
from anabranch._protocol.expressions.skipping import predicate_of
from anabranch._protocol.predicates import Compare, IsNull, Not, Or, Unknown
from anabranch._protocol.schema.types import Field, Struct, to_arrow
from anabranch._protocol.unsupported import Unsupported

SCHEMA = Struct(
    (
        *(Field("t", "timestamp"), Field("n", "timestamp_ntz"), Field("d", "date"), Field("s", "string")),
        *(Field("l", "long"), Field("i", "integer"), Field("b", "byte"), Field("x", "double"), Field("f", "float")),
    )
)
UTC = dt.UTC
BEFORE = dt.datetime(1969, 12, 31, 23, 59, 58, 499_999, UTC)
"""A second and a half before the epoch, and a microsecond more."""
ZONES = [UTC, dt.timezone(dt.timedelta(hours=-5)), None]


def computed(text: str, zone: dt.tzinfo | None = None, **row: Any) -> tuple[Any, Any]:
    """The type and the value for a row."""
    found = computation_over(text, SCHEMA, zone, timestamp="timestamp")
    assert found.reason is None, found.reason
    (value,) = found.values(pa.RecordBatch.from_pylist([row], to_arrow(SCHEMA))).to_pylist()
    return found.tree.type, value


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("unix_seconds(t)", -2), ("unix_millis(t)", -1501), ("unix_micros(t)", -1_500_001)),
        *(("CAST(t AS BIGINT)", -2), ("bigint(t)", -2), ("t::long", -2)),
    ],
)
def test_units_that_began_are_counted_before_the_epoch_too(text: str, expected: int, zone: dt.tzinfo | None) -> None:
    assert computed(text, zone, t=BEFORE) == ("long", expected)
    assert computed(text, zone) == ("long", None)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", ["unix_timestamp(t)", "to_unix_timestamp(t)"])
def test_a_unix_timestamp_is_rounded_towards_zero(text: str, zone: dt.tzinfo | None) -> None:
    assert computed(text, zone, t=BEFORE) == ("long", -1)


@pytest.mark.parametrize(("kind", "name"), [("integer", "INT"), ("short", "SMALLINT"), ("byte", "TINYINT")])
def test_seconds_are_cast_to_shorter_types_if_they_fit(kind: str, name: str) -> None:
    assert computed(f"CAST(t AS {name})", t=BEFORE) == (kind, -2)
    with pytest.raises(Unsupported):
        computed(f"CAST(t AS {name})", t=dt.datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("text", "micros"),
    [
        *(("timestamp_seconds(l)", -7_000_000), ("timestamp_millis(l)", -7000), ("timestamp_micros(l)", -7)),
        *(("CAST(l AS TIMESTAMP)", -7_000_000), ("CAST(b AS TIMESTAMP_LTZ)", 5_000_000)),
        *(("timestamp(i)", 3_000_000), ("to_timestamp(l)", -7_000_000), ("timestamp_seconds(b)", 5_000_000)),
        *(("timestamp_seconds(x)", -1_000_001), ("timestamp_seconds(253402214400L)", 253_402_214_400_000_000)),
    ],
)
def test_a_timestamp_is_so_many_units_from_the_epoch(text: str, micros: int, zone: dt.tzinfo | None) -> None:
    moment = dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=micros)
    assert computed(text, zone, l=-7, b=5, i=3, x=-1.0000019) == ("timestamp", moment)


def test_days_are_counted_from_the_epoch() -> None:
    assert computed("unix_date(d)", d=dt.date(1969, 12, 31)) == ("integer", -1)
    assert computed("date_from_unix_date(i)", i=-1) == ("date", dt.date(1969, 12, 31))
    assert computed("date_from_unix_date(b)", b=1) == ("date", dt.date(1970, 1, 2))
    assert computed("date_from_unix_date(unix_date(d))", d=dt.date(9999, 12, 31)) == ("date", dt.date(9999, 12, 31))


@pytest.mark.parametrize(
    ("text", "row"),
    [
        *(("timestamp_seconds(l)", {"l": 1 << 62}), ("timestamp_millis(l)", {"l": -(1 << 62)})),
        *(("timestamp_micros(l)", {"l": 1 << 62}), ("CAST(l AS TIMESTAMP)", {"l": 253_402_300_800})),
        *(("timestamp_seconds(x)", {"x": float("nan")}), ("timestamp_seconds(x)", {"x": 1e300})),
        *(("timestamp_seconds(l)", {"l": -62_135_596_801}), ("date_from_unix_date(i)", {"i": 2_932_897})),
    ],
)
def test_what_overflows_or_lies_outside_the_years_1_to_9999_is_left_to_spark(text: str, row: dict[str, Any]) -> None:
    with pytest.raises(Unsupported):
        computed(text, UTC, **row)


@pytest.mark.parametrize(
    "text",
    [
        *("unix_seconds(d)", "unix_seconds(s)", "unix_date(t)", "unix_timestamp()", "unix_timestamp(s)"),
        *("unix_timestamp(t, 'yyyy')", "unix_timestamp(d)", "timestamp_seconds(f)", "timestamp_seconds(1.5)"),
        *("unix_seconds(n)", "unix_micros(n)", "unix_timestamp(n)"),  # not each version of Spark takes local times
        *("timestamp_millis(x)", "date_from_unix_date(l)", "CAST(n AS BIGINT)", "CAST(l AS TIMESTAMP_NTZ)"),
        *("CAST(t AS DOUBLE)", "CAST(d AS INT)", "t = l", "t + l > t", "CASE WHEN true THEN t ELSE l END = t"),
    ],
)
def test_other_arguments_are_left_to_spark(text: str) -> None:
    assert computation_over(text, SCHEMA, UTC, timestamp="timestamp").reason is not None


def test_where_timestamp_means_a_local_time_no_number_is_cast_to_it() -> None:
    for text in ("CAST(l AS TIMESTAMP)", "to_timestamp(l)"):
        assert computation_over(text, SCHEMA, UTC, timestamp="timestamp_ntz").reason is not None


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin"), None])
def test_counts_since_the_epoch_rule_files_out(zone: dt.tzinfo | None) -> None:
    def said(text: str) -> object:
        fixed = zone if zone is UTC else None
        return predicate_of(computation_over(text, SCHEMA, fixed, timestamp="timestamp").tree, zone)

    def at(micros: int) -> dt.datetime:
        return dt.datetime(1970, 1, 1, tzinfo=UTC) + dt.timedelta(microseconds=micros)

    assert said("unix_seconds(t) >= 5") == said("CAST(t AS BIGINT) >= 5") == Compare("t", ">=", at(5_000_000))
    assert said("unix_seconds(t) <= -5") == Not(Compare("t", ">=", at(-4_000_000)))
    assert said("CAST(t AS BIGINT) > 4.5") == said("TRY_CAST(t AS BIGINT) > 4") == Compare("t", ">=", at(5_000_000))
    assert said("unix_millis(t) > 5") == Compare("t", ">=", at(6000))
    assert said("unix_micros(t) < 5L") == Not(Compare("t", ">=", at(5)))
    assert said("unix_date(d) > 0") == Compare("d", ">", dt.date(1970, 1, 1))
    assert said("CAST(t AS BIGINT) IS NULL") == IsNull("t")
    assert said("t >= timestamp_seconds(5)") == said("t >= timestamp_millis(5000)") == Compare("t", ">=", at(5_000_000))
    assert said("d < date_from_unix_date(1)") == Compare("d", "<", dt.date(1970, 1, 2))


@pytest.mark.parametrize(
    "text",
    [
        *("unix_timestamp(t) > 5", "CAST(t AS INT) > 5", "timestamp_seconds(l) > t"),
        *("unix_seconds(t) > 1000000000000", "unix_micros(t) > 9007199254740993D"),
    ],
)
def test_what_is_not_certain_of_counts_rules_no_file_out(text: str) -> None:
    found = predicate_of(computation_over(text, SCHEMA, UTC, timestamp="timestamp").tree, UTC)
    assert found in (Unknown(), Or((Unknown(),)))
