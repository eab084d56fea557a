"""Partition values survive the log's strings and Spark's folder names."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.partitions import (
    has_zone,
    hive_segment,
    map_column,
    parse_hive_path,
    partition_arrays,
    read_value,
    read_values,
    split,
    write_value,
    write_values,
)
from anabranch._protocol.schema.types import Field, Struct, arrow_type
from anabranch.errors import InvalidPartitionValue

UTC = UTC
MAPS = pa.map_(pa.string(), pa.string())


def bits(width: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(min_size=1, max_size=8),
    "binary": st.text(min_size=1, max_size=8).map(str.encode),
    "boolean": st.booleans(),
    "byte": bits(8),
    "short": bits(16),
    "integer": bits(32),
    "long": bits(64),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(7,3)": st.integers(1 - 10**7, 10**7 - 1).map(lambda n: Decimal(n).scaleb(-3)),
    "decimal(38,0)": st.integers(1 - 10**38, 10**38 - 1).map(Decimal),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=-30))])).filter(
        lambda moment: 1 < moment.year < 9999
    ),
    "timestamp_ntz": st.datetimes(),
    "interval year to month": bits(32),
    "interval day to second": bits(64).map(lambda micros: timedelta(microseconds=micros)),
}

typed = st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))


def same(left: Any, right: Any) -> bool:
    return left == right or (isnan(left) and isnan(right))


@given(typed)
def test_a_value_comes_back_from_its_text(pair: tuple[str, Any]) -> None:
    data_type, value = pair
    assert same(read_value(write_value(value, data_type), data_type), value)


@pytest.mark.parametrize("data_type", VALUES)
def test_null_and_the_empty_string_are_null_for_every_type(data_type: str) -> None:
    assert write_value(None, data_type) is None
    assert read_value(None, data_type) is None
    assert read_value("", data_type) is None


def test_an_empty_string_is_written_as_null() -> None:
    assert write_value("", "string") is None
    assert write_value(b"", "binary") is None


@given(st.sampled_from(sorted(VALUES)), st.text(max_size=30) | st.text("0123456789.eE+-: TZ_infa", max_size=30))
def test_any_text_is_a_value_or_a_value_error(data_type: str, text: str) -> None:
    try:
        value = read_value(text, data_type)
    except ValueError:
        return
    pa.array([value], arrow_type(data_type))


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("2020-01-31 10:20:30", "timestamp", datetime(2020, 1, 31, 10, 20, 30, tzinfo=UTC)),
        ("2020-01-31 10:20:30.5", "timestamp", datetime(2020, 1, 31, 10, 20, 30, 500000, tzinfo=UTC)),
        ("2020-01-31T10:20:30.123456Z", "timestamp", datetime(2020, 1, 31, 10, 20, 30, 123456, tzinfo=UTC)),
        ("2020-01-31T10:20:30+02:00", "timestamp", datetime(2020, 1, 31, 8, 20, 30, tzinfo=UTC)),
        ("2020-01-31T10:20:30-0130", "timestamp", datetime(2020, 1, 31, 11, 50, 30, tzinfo=UTC)),
        ("2020-01-31 10:20:30.123456", "timestamp_ntz", datetime(2020, 1, 31, 10, 20, 30, 123456)),
        ("2020-01-31T10:20:30.123456Z", "timestamp_ntz", datetime(2020, 1, 31, 10, 20, 30, 123456)),
        ("2020-01-31", "timestamp_ntz", datetime(2020, 1, 31)),
        ("2020-1-5", "date", date(2020, 1, 5)),
        ("+7", "integer", 7),
        (" 7 ", "long", 7),
        ("1.0E3", "double", 1000.0),
        ("0.1", "float", float(np.float32(0.1))),
        ("-Infinity", "double", float("-inf")),
        ("TRUE", "boolean", True),
        ("1.5", "decimal(5,2)", Decimal("1.50")),
        ("1E2", "decimal(5,2)", Decimal("100.00")),
        ("0e999", "decimal(5,2)", Decimal("0.00")),
        ("\x01\x02", "binary", b"\x01\x02"),
    ],
)
def test_texts_of_other_writers_are_read(text: str, data_type: str, value: Any) -> None:
    assert read_value(text, data_type) == value


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("128", "byte"),
        ("1_000", "integer"),
        ("٣", "integer"),
        ("1.0", "long"),
        ("1e400x", "double"),
        ("1_0.5", "double"),
        ("yes", "boolean"),
        ("2020-02-30", "date"),
        ("2020-01-01 24:00:00", "timestamp"),
        ("2020-01-01 10:20", "timestamp"),
        ("9999-12-31T23:00:00-05:00", "timestamp"),
        ("1.555", "decimal(5,2)"),
        ("1000", "decimal(5,2)"),
        ("1e999999999", "decimal(5,2)"),
        ("1e-999999999", "decimal(5,2)"),
        ("1", "variant"),
        ("1", "nonsense"),
    ],
)
def test_a_text_that_is_no_value_of_its_type_is_refused(text: str, data_type: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (the promise is the class)
        read_value(text, data_type)


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (7, "string"),
        (128, "byte"),
        (True, "integer"),
        (Decimal("1.555"), "decimal(5,2)"),
        (datetime(2020, 1, 1), "timestamp"),
        (datetime(2020, 1, 1), "date"),
        (datetime(2020, 1, 1, tzinfo=UTC), "timestamp_ntz"),
        (b"\xff", "binary"),
    ],
)
def test_a_value_that_is_not_of_the_type_is_not_written(value: Any, data_type: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        write_value(value, data_type)


@pytest.mark.parametrize(
    ("value", "data_type", "text"),
    [
        (datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "timestamp", "2020-01-01T00:00:00.000000Z"),
        (datetime(2020, 1, 1), "timestamp_ntz", "2020-01-01 00:00:00"),
        (datetime(2020, 1, 1, microsecond=10), "timestamp_ntz", "2020-01-01 00:00:00.000010"),
        (date(999, 1, 1), "date", "0999-01-01"),
        (nan, "double", "NaN"),
        (float("-inf"), "float", "-Infinity"),
        (float(np.float32(0.1)), "float", "0.1"),
        (-0.0, "double", "-0.0"),
        (0.001, "double", "0.001"),
        (0.00012, "double", "1.2E-4"),
        (-9999999.0, "double", "-9999999.0"),
        (1e7, "double", "1.0E7"),
        (-1.7976931348623157e308, "double", "-1.7976931348623157E308"),
        (float(np.float32(3.4028235e38)), "float", "3.4028235E38"),
        (True, "boolean", "true"),
        (Decimal("1.5"), "decimal(5,2)", "1.50"),
        (Decimal("-0.5"), "decimal(1,1)", "-0.5"),
        (Decimal("1E2"), "decimal(5,0)", "100"),
    ],
)
def test_texts_are_written_as_the_protocol_says(value: Any, data_type: str, text: str) -> None:
    assert write_value(value, data_type) == text


def test_only_a_zone_tells_the_instant() -> None:
    texts = ["2020-01-01 00:00:00", "2020-01-01", "2020-01-01T00:00:00.5Z", "2020-01-01 00:00:00-08:00", None]
    assert has_zone(pa.array(texts)).to_pylist() == [False, False, True, True, None]


# -- columns -----------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.none() | st.dictionaries(st.sampled_from("abc"), st.none() | st.text(max_size=2))), st.integers(0, 3)
)
def test_a_map_column_gives_what_each_map_holds(maps: list[dict[str, str | None] | None], start: int) -> None:
    pairs = [None if each is None else list(each.items()) for each in maps]
    expected = [(each or {}).get("b") for each in maps][start:]
    array = pa.array(pairs, MAPS)
    assert map_column(array.slice(start), "b").to_pylist() == expected
    chunked = pa.chunked_array([array.slice(0, start), array.slice(start)], MAPS)
    assert map_column(chunked, "b").to_pylist()[min(start, len(maps)) :] == expected


def test_the_last_value_of_a_key_counts() -> None:
    assert map_column(pa.array([[("b", "1"), ("b", "2")]], MAPS), "b").to_pylist() == ["2"]


def files(values: list[str | None], key: str = "p") -> pa.Table:
    paths = [f"{i}.parquet" for i in range(len(values))]
    return pa.table({"path": paths, "partitionValues": pa.array([[(key, each)] for each in values], MAPS)})


@given(typed.flatmap(lambda pair: st.tuples(st.just(pair[0]), st.lists(st.none() | VALUES[pair[0]], max_size=4))))
def test_partition_columns_are_typed_arrays(case: tuple[str, list[Any]]) -> None:
    data_type, values = case
    table = files([write_value(each, data_type) for each in values])
    found = partition_arrays(table, Struct((Field("p", data_type),)), ["p"])["p"]
    assert found.type == arrow_type(data_type)
    assert all(same(a, b) if a is not None else b is None for a, b in zip(found.to_pylist(), values, strict=True))


def test_mapped_columns_are_found_by_their_physical_names() -> None:
    schema = Struct((Field("p", "integer", metadata={"delta.columnMapping.physicalName": "col-7"}),))
    assert partition_arrays(files(["5"], "col-7"), schema, ["p"])["p"].to_pylist() == [5]


def test_a_value_that_cannot_be_read_names_file_and_column() -> None:
    with pytest.raises(InvalidPartitionValue) as error:
        partition_arrays(files(["5", "x", None]), Struct((Field("p", "integer"),)), ["p"])
    assert error.value.facts == {"file": "1.parquet", "column": "p", "type": "integer", "value": "x"}


def test_a_file_without_a_value_for_the_column_has_null() -> None:
    assert partition_arrays(files(["5"], "other"), Struct((Field("p", "integer"),)), ["p"])["p"].to_pylist() == [None]


def test_typed_values_say_which_texts_are_none() -> None:
    values, valid = read_values(pa.array(["5", "x", None, ""]), "integer")
    assert values.to_pylist() == [5, None, None, None]
    assert valid.to_pylist() == [True, False, True, True]


def test_typed_values_are_written_as_they_were_read() -> None:
    texts = pa.chunked_array([["2020-01-31", None], ["0001-01-01", "2020-01-31"]], pa.string())
    values, _ = read_values(texts.combine_chunks(), "date")
    assert write_values(pa.chunked_array([values]), "date").to_pylist() == texts.to_pylist()
    with pytest.raises(ValueError, match="is not a string"):
        write_values(pa.array([2**31]), "string")


def test_rows_are_split_by_the_texts_of_their_partitions_in_which_an_empty_one_is_null() -> None:
    rows = pa.table({"id": [1, 2, 3, 4, 5]})
    texts = {"p": pa.array(["a", "", "a", None, "b"]), "q": pa.chunked_array([["x", "x", "y"], ["x", "x"]])}
    found = [(values, part["id"].to_pylist()) for values, part in split(rows, texts)]
    assert found == [
        ({"p": "a", "q": "x"}, [1]),
        ({"p": None, "q": "x"}, [2, 4]),
        ({"p": "a", "q": "y"}, [3]),
        ({"p": "b", "q": "x"}, [5]),
    ]
    assert [(values, len(part)) for values, part in split(rows, {})] == [({}, 5)]


# -- folders -----------------------------------------------------------------------------------------------------------


@given(st.dictionaries(st.text(min_size=1, max_size=6), st.none() | st.text(min_size=1, max_size=8), max_size=3))
def test_values_come_back_from_their_folders(values: dict[str, str | None]) -> None:
    by_case = {column.lower(): (column, value) for column, value in values.items()}
    kept = dict(by_case.values())
    path = "/".join([*(hive_segment(column, value) for column, value in kept.items()), "part-0.parquet"])
    assert parse_hive_path(path, kept) == kept


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_folder_name_has_no_separator_and_one_equals_sign(column: str, value: str) -> None:
    segment = hive_segment(column, value)
    assert "/" not in segment
    assert segment.count("=") == 1


def test_folders_are_escaped_as_spark_does() -> None:
    special = "\x01\x1f\"#%'*/:=?\\\x7f{[]^"
    escaped = "%01%1F%22%23%25%27%2A%2F%3A%3D%3F%5C%7F%7B%5B%5D%5E"
    assert hive_segment("p", special) == f"p={escaped}"
    assert hive_segment("p", "a b}<>|é.-_~!$&(),;@`+") == "p=a b}<>|é.-_~!$&(),;@`+"


def test_null_has_hives_name() -> None:
    assert hive_segment("p", None) == "p=__HIVE_DEFAULT_PARTITION__"
    assert hive_segment("p", "") == "p=__HIVE_DEFAULT_PARTITION__"
    assert parse_hive_path("p=__HIVE_DEFAULT_PARTITION__/q=/f", ["p", "q"]) == {"p": None, "q": None}


def test_only_folders_of_partition_columns_count() -> None:
    path = "job-1/Year=2020/x=1/day=a%2Fb%2/part=3.parquet"
    assert parse_hive_path(path, ["year", "day", "part", "month"]) == {"year": "2020", "day": "a/b%2"}
