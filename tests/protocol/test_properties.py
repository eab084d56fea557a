"""Table properties: what they mean, and what may be set."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol import inactive_properties, properties
from anabranch._protocol.properties import Properties, check_properties
from anabranch._protocol.property_values import interval_ms
from anabranch.errors import InvalidProperty

DAY_MS = 86_400_000


def test_what_is_not_set_has_its_default() -> None:
    plain = Properties({})
    assert plain.isolation_level == "WriteSerializable"
    assert plain.vectors is False
    assert plain.append_only is False
    assert plain.checkpoint_interval == 10
    assert plain.tombstone_retention_ms == 7 * DAY_MS
    assert plain.indexed_columns() == 32


@pytest.mark.parametrize("text", ["serializable", "SERIALIZABLE", " Serializable "])
def test_case_and_white_space_do_not_matter(text: str) -> None:
    assert Properties({"delta.isolationLevel": text}).isolation_level == "Serializable"
    assert Properties({"delta.enableDeletionVectors": " TRUE "}).vectors is True


def test_the_row_level_needs_vectors() -> None:
    assert Properties({"anabranch.conflictResolution": "row"}).conflict_resolution == "file"
    on = {"delta.enableDeletionVectors": "true"}
    assert Properties(on).conflict_resolution == "row"
    assert Properties({**on, "anabranch.conflictResolution": "FILE"}).conflict_resolution == "file"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 30 days", 30 * DAY_MS),
        ("INTERVAL 1 WEEK", 7 * DAY_MS),
        ("1 week 2 hours", 7 * DAY_MS + 7_200_000),
        ("interval 1 day 1 hour 1 minute 1 second 1 millisecond", DAY_MS + 3_661_001),
        ("interval 0 days", 0),
        ("  interval   7   days  ", 7 * DAY_MS),
    ],
)
def test_intervals_are_read(text: str, milliseconds: int) -> None:
    assert interval_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "interval",
        "30",
        "days",
        "interval 30",
        "interval -5 days",
        "interval 1.5 days",
        "interval 5 days ago",
        "interval 5 days and some",
        "interval 1 month",
        "interval 1 year",
        "5days",
        "interval interval 5 days",
        "interval ٥ days",
    ],
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="interval"):
        interval_ms(text)


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["day", "hour", "minute", "second"])), min_size=1))
def test_the_parts_of_an_interval_add_up(parts: list[tuple[int, str]]) -> None:
    text = "interval " + " ".join(f"{number} {unit}s" for number, unit in parts)
    assert interval_ms(text) == sum(interval_ms(f"{number} {unit}") for number, unit in parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a, b.c", (("a",), ("b", "c"))), ("`a`,`b.c`.d", (("a",), ("b.c", "d"))), (" ", ()), ("", ()), (None, 32)],
)
def test_columns_with_statistics_are_named_or_counted(text: str | None, expected: Any) -> None:
    given = {} if text is None else {"delta.dataSkippingStatsColumns": text}
    assert Properties(given).indexed_columns() == expected


@pytest.mark.parametrize("text", ["a-b", "a b", "a,", ",a", "a..b", "`a", "a.", "``", ";"])
def test_a_list_of_columns_that_delta_spark_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidProperty, match="backticks"):
        check_properties({"delta.dataSkippingStatsColumns": text})


def test_all_columns_are_minus_one() -> None:
    assert Properties({"delta.dataSkippingNumIndexedCols": "-1"}).indexed_columns() == -1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.isolationLevel", "SnapshotIsolation"),
        ("delta.enableDeletionVectors", "yes"),
        ("delta.appendOnly", "1"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.checkpointInterval", ""),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.logRetentionDuration", "forever"),
        ("delta.deletedFileRetentionDuration", "interval -1 days"),
        ("anabranch.conflictResolution", "rows"),
    ],
)
def test_a_value_that_a_property_does_not_take_is_refused_by_both_names(key: str, value: str) -> None:
    with pytest.raises(InvalidProperty) as refused:
        check_properties({key: value})
    assert (refused.value.facts["property"], refused.value.facts["value"]) == (key, value)


@pytest.mark.parametrize("other", inactive_properties.INACTIVE, ids=lambda other: other.key)
def test_a_property_that_nothing_acts_upon_is_kept_or_refused_with_its_reason(
    other: inactive_properties.InactiveProperty,
) -> None:
    value = {"false": "true", "true": "false", "classic": "v2", "none": "name"}.get(other.default, "interval 9 days")
    if other.treatment is inactive_properties.Treatment.KEPT:
        check_properties({other.key: other.default})
        check_properties({other.key: "12" if other.default.isdigit() else value})
        return
    with pytest.raises(InvalidProperty) as refused:
        check_properties({other.key: "12" if other.default.isdigit() else value})
    if other.treatment is inactive_properties.Treatment.OWNED or "it takes" not in str(refused.value):
        assert other.why in str(refused.value)


@pytest.mark.parametrize("other", inactive_properties.INACTIVE, ids=lambda other: other.key)
def test_what_is_so_anyway_may_be_said_but_of_what_engines_own(other: inactive_properties.InactiveProperty) -> None:
    if other.treatment is not inactive_properties.Treatment.OWNED:
        return check_properties({other.key: other.default})
    with pytest.raises(InvalidProperty, match="no user sets it"):
        check_properties({other.key: other.default or "1"})


def test_no_property_is_listed_twice() -> None:
    keys = [*properties.HONOURED, *(each.key for each in inactive_properties.INACTIVE)]
    assert sorted(keys, key=str.lower) == sorted({key.lower(): key for key in keys}.values(), key=str.lower)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("delta.appendsOnly", "delta.appendOnly"),
        ("delta.logRetention", None),
        ("delta.enableDeletionVector", "delta.enableDeletionVectors"),
        ("delta.autoOptimize.autocompaction", "delta.autoOptimize.autoCompact"),
        ("delta.typo", None),
        ("anabranch.typo", None),
        ("anabranch.resolutionSecond", "anabranch.resolutionSeconds"),
    ],
)
def test_an_unknown_property_is_refused_with_the_one_that_may_be_meant(key: str, meant: str | None) -> None:
    with pytest.raises(InvalidProperty, match="does not honour") as refused:
        check_properties({key: "true"})
    assert (f"Did you mean {meant}?" in str(refused.value)) is (meant is not None)


def test_snapshot_isolation_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidProperty, match="write skew"):
        check_properties({"delta.isolationLevel": "SnapshotIsolation"})


@pytest.mark.parametrize(
    ("text", "codec"), [("ZSTD", "zstd"), ("lz4", "lz4_raw"), ("none", "uncompressed"), (" snappy ", "snappy")]
)
def test_ways_to_compress_are_named_as_spark_names_them(text: str, codec: str) -> None:
    assert Properties({"delta.parquet.compression.codec": text})["delta.parquet.compression.codec"] == codec
    with pytest.raises(InvalidProperty, match="zstd"):
        check_properties({"delta.parquet.compression.codec": "lzo"})


def test_a_random_prefix_has_the_length_that_is_asked_for_or_there_is_none() -> None:
    assert Properties({"delta.randomPrefixLength": "5"}).prefix_length == 0
    assert Properties({"delta.randomizeFilePrefixes": "true"}).prefix_length == 2
    assert Properties({"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "5"}).prefix_length == 5


@pytest.mark.parametrize("value", [True, False, 5, None, 1.5, ["true"]])
@pytest.mark.parametrize("key", ["delta.appendOnly", "owner"])
def test_a_value_that_is_no_text_is_refused_before_it_reaches_the_log(key: str, value: Any) -> None:
    with pytest.raises(InvalidProperty, match="text"):
        check_properties({key: value})


def test_a_users_own_properties_are_kept_as_they_are() -> None:
    check_properties({"owner": "them", "deltaish": "whatever", "": ""})


@pytest.mark.parametrize("key", ["delta.appendonly", "Delta.appendOnly", "DELTA.APPENDONLY"])
def test_a_property_in_another_case_is_refused_with_its_right_spelling(key: str) -> None:
    """Kept as a user's own, it would protect nothing."""
    with pytest.raises(InvalidProperty, match=r"spelled delta\.appendOnly"):
        check_properties({key: "true"})


def test_a_strange_value_that_another_engine_set_is_refused_when_it_matters_only() -> None:
    odd = Properties({"delta.isolationLevel": "Snapshot"})
    assert odd.checkpoint_interval == 10
    with pytest.raises(InvalidProperty, match="Snapshot"):
        _ = odd.isolation_level


@given(st.dictionaries(st.sampled_from(["delta.checkpointInterval", "delta.appendOnly", "x"]), st.text(max_size=6)))
def test_what_validates_can_be_read(configuration: dict[str, str]) -> None:
    try:
        check_properties(configuration)
    except InvalidProperty:
        return
    known = Properties(configuration)
    assert known.checkpoint_interval >= 1
    assert known.append_only in (True, False)
