"""Statistics are read as columns, whoever wrote them and whatever stands in them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.schema.types import Array, Field, Struct
from anabranch._protocol.stats.literals import domain
from anabranch._protocol.stats.statistics import num_records, stats_columns, stats_json, with_wide_bounds

UTC = UTC
MS = timedelta(milliseconds=1)
TYPES = {
    "i": "integer",
    "l": "long",
    "f": "float",
    "d": "double",
    "n": "decimal(10,2)",
    "s": "string",
    "b": "boolean",
    "day": "date",
    "at": "timestamp",
    "ntz": "timestamp_ntz",
    "bin": "binary",
}
SCHEMA = Struct((*(Field(name, data_type) for name, data_type in TYPES.items()), Field("a", Array("long"))))

GOOD: dict[str, list[tuple[Any, Any]]] = {
    "i": [(5, 5), (-(2**31), -(2**31))],
    "l": [(2**63 - 1, 2**63 - 1)],
    "f": [(0.1, float(np.float32(0.1))), (-0.0, 0.0), (2, 2.0)],
    "d": [(0.1, 0.1), (-0.0, 0.0), (7, 7.0)],
    "n": [(1.5, Decimal("1.50")), (-12345678, Decimal("-12345678.00"))],
    "s": [("", ""), ('é\n"\\', 'é\n"\\'), ("\U0001f600", "\U0001f600")],
    "b": [(True, True)],
    "day": [("2020-01-31", date(2020, 1, 31)), ("0001-01-01", date(1, 1, 1))],
    "at": [
        ("2020-01-31T10:20:30.123Z", datetime(2020, 1, 31, 10, 20, 30, 123000, UTC)),
        ("2020-01-31T10:20:30.123456+02:00", datetime(2020, 1, 31, 8, 20, 30, 123456, UTC)),
        ("2020-01-31 10:20:30-0730", datetime(2020, 1, 31, 17, 50, 30, 0, UTC)),
    ],
    "ntz": [
        ("2020-01-31T10:20:30.123", datetime(2020, 1, 31, 10, 20, 30, 123000)),
        ("2020-01-31", datetime(2020, 1, 31)),
    ],
}
BAD: dict[str, list[Any]] = {
    "i": ["5", 1.5, True, 2**70, [], {}],
    "l": [2**63, 1e300],
    "f": ["NaN", "Infinity", True, 1e300],
    "d": ["NaN", "0.1", False, {}],
    "n": [1.555, 10**40, "x", True],
    "s": [5, True, "\ud83d", ["x"]],
    "b": [1, "true"],
    "day": ["2020-02-30", "2020-01-01T00:00:00Z", "+12020-01-01", 5, ""],
    "at": ["2020-01-01T00:00:00", "2020-01-01", "2020-01-01T25:00:00Z", "2020-13-01T00:00:00Z", "x", 5],
    "ntz": ["2020-01-01T00:00:00Z", "20200101", "2020-01-32", None],
}


def read(texts: list[str | None], *names: str, schema: Struct = SCHEMA) -> Any:
    return stats_columns(pa.array(texts, pa.string()), schema, names or schema.names)


def text(count: Any = 3, part: str = "minValues", **values: Any) -> str:
    return json.dumps({"numRecords": count, part: values})


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "stated", "value"), [(name, *each) for name in GOOD for each in GOOD[name]], ids=repr)
def test_what_writers_state_is_read(name: str, stated: Any, value: Any) -> None:
    found = read([text(**{name: stated})], name)
    assert found.num_records.to_pylist() == [3]
    assert found.columns[name].minimum.type == domain(SCHEMA.field(name))
    assert found.columns[name].minimum.to_pylist() == [value]
    assert found.columns[name].maximum.to_pylist() == [None]


stated_values = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from([each for each, _ in GOOD[name]] + BAD[name]) for name in GOOD}
)
counts = st.fixed_dictionaries({}, optional={name: st.sampled_from([0, 7, None, "x", 1.5, -1]) for name in TYPES})
whole = st.fixed_dictionaries(
    {},
    optional={
        "numRecords": st.sampled_from([0, 9, None, "9", 2**70]),
        "minValues": stated_values | st.sampled_from([None, [], 5, "x"]),
        "maxValues": stated_values,
        "nullCount": counts | st.just([0]),
        "tightBounds": st.sampled_from([True, False, None]),
        "new": st.just({"x": [1, {"y": 2}]}),
    },
)
broken = st.sampled_from(["", " ", "{", "}", "{}{}", "null", "[]", "5", '{"numRecords":1', '{"a":1}\n{"a":2}', " {}"])
texts = st.lists(st.none() | broken | st.text(max_size=8) | whole.map(json.dumps), max_size=6)


def expected(value: Any, name: str) -> Any:
    """What a stated value means; None where it is not one that the column can have."""
    for each, meaning in GOOD.get(name, []):
        if type(each) is type(value) and repr(each) == repr(value):
            return meaning
    return None


@pytest.mark.slow
@given(texts, st.sets(st.sampled_from(sorted(TYPES)), min_size=1))
def test_each_text_is_read_by_itself_whatever_stands_in_the_others(rows: list[str | None], names: set[str]) -> None:
    rows = [None if row is not None and any("\ud800" <= c <= "\udfff" for c in row) else row for row in rows]
    together = read(rows, *names)
    alone = [read([row], *names) for row in rows]
    assert together.num_records.to_pylist() == [each.num_records[0].as_py() for each in alone]
    for name in names:
        for part in ("minimum", "maximum", "null_count"):
            values = getattr(together.columns[name], part).to_pylist()
            assert values == [getattr(each.columns[name], part)[0].as_py() for each in alone]


@given(stated_values, st.sampled_from([0, 5]))
def test_bad_values_are_unknown_and_good_ones_beside_them_are_read(stated: dict[str, Any], count: int) -> None:
    found = read([text(part="minValues", **stated), text(count)], *GOOD)
    assert found.num_records.to_pylist() == [3, count]
    for name in GOOD:
        assert found.columns[name].minimum.to_pylist() == [expected(stated.get(name), name), None]


@pytest.mark.parametrize(
    "garbage",
    ["", " ", "{", "}", "null", "5", '{"numRecords":', "{}{}", "\x00", '{"numRecords":1}}', "[" * 5000, '{"a":' * 5000],
)
def test_garbage_counts_as_no_statistics(garbage: str) -> None:
    found = read([text(1), garbage, text(3, l=5)], "l")
    assert found.num_records.to_pylist() == [1, None, 3]
    assert found.columns["l"].minimum.to_pylist() == [None, None, 5]


def test_a_text_that_is_not_utf8_counts_as_no_statistics() -> None:
    rows = [b'{"minValues":{"s":"\xff"}}', text(3, s="x").encode(), None, b'{"maxValues":{"s":"\xff\xef\xbf\xbd"}}']
    found = stats_columns(pa.array(rows, pa.binary()).view(pa.string()), SCHEMA, ["s"])
    assert found.num_records.to_pylist() == [None, 3, None, None]
    assert found.columns["s"].minimum.to_pylist() == [None, "x", None, None]


def test_garbage_costs_its_neighbours_nothing_in_a_long_column() -> None:
    rows: list[str | None] = [text(i, l=i) for i in range(5000)]
    rows[1500], rows[3000], rows[4999] = "{", None, "{}{}"
    found = read(rows, "l")
    lost = {1500, 3000, 4999}
    assert found.num_records.to_pylist() == [None if i in lost else i for i in range(5000)]
    assert found.columns["l"].minimum.to_pylist() == [None if i in lost else i for i in range(5000)]


def test_the_columns_of_chunks_and_slices_stay_in_order() -> None:
    array = pa.array([text(i, l=i) for i in range(10)])
    chunked = pa.chunked_array([array.slice(2, 3), array.slice(0, 0), array.slice(7)])
    found = stats_columns(chunked, SCHEMA, ["l"])
    assert found.columns["l"].minimum.to_pylist() == [2, 3, 4, 7, 8, 9]


@pytest.mark.parametrize(
    "arrow", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_texts_of_any_arrow_string_type_are_read(arrow: pa.DataType) -> None:
    array = pa.array([text(2, l=7), None]).cast(arrow)
    assert stats_columns(array, SCHEMA, ["l"]).columns["l"].minimum.to_pylist() == [7, None]


@pytest.mark.parametrize(
    "stats", [pa.array([], pa.string()), pa.chunked_array([], pa.string())], ids=["array", "chunks"]
)
def test_no_files_have_no_statistics(stats: Any) -> None:
    found = stats_columns(stats, SCHEMA, ["l", "s"])
    assert (len(found.num_records), len(found.columns["s"].maximum), found.columns["l"].minimum.type) == (
        0,
        0,
        pa.int64(),
    )


def test_a_text_longer_than_a_block_is_read() -> None:
    rows = ['{"other":"' + "x" * 3_000_000 + '","numRecords":4}', text(5)]
    assert read(rows, "l").num_records.to_pylist() == [4, 5]


def test_types_without_an_order_have_only_null_counts() -> None:
    row = '{"numRecords":2,"minValues":{"bin":"x"},"nullCount":{"bin":1,"a":2,"s":0}}'
    found = read([row])
    assert set(found.columns) == {*TYPES, "a"}
    assert found.columns["a"].minimum.to_pylist() == [None]
    assert found.columns["a"].null_count.to_pylist() == [2]
    assert found.columns["bin"].minimum.to_pylist() == [None]
    assert found.columns["bin"].null_count.to_pylist() == [1]
    assert found.columns["s"].null_count.to_pylist() == [0]


def test_mapped_columns_are_found_by_their_physical_names() -> None:
    schema = Struct((Field("a", "long", metadata={"delta.columnMapping.physicalName": "col-1"}),))
    row = '{"minValues":{"col-1":1,"a":2},"maxValues":{"col-1":3},"nullCount":{"col-1":4}}'
    found = read([row], schema=schema).columns["a"]
    assert [each.to_pylist() for each in (found.minimum, found.maximum, found.null_count)] == [[1], [3], [4]]


# -- what known writers cut too short ----------------------------------------------------------------------------------


def test_the_maximum_of_a_timestamp_is_a_millisecond_later() -> None:
    for name, moment in (("at", datetime(2020, 1, 1, tzinfo=UTC)), ("ntz", datetime(2020, 1, 1))):
        stated = "2020-01-01T00:00:00.000" + ("Z" if name == "at" else "")
        found = read([text(part="maxValues", **{name: stated}), text(**{name: stated})], name).columns[name]
        assert found.maximum.to_pylist() == [moment + MS, None]
        assert found.minimum.to_pylist() == [None, moment]


def old_cut(longest: str) -> str:
    """The maximum as delta-spark cut it before it learned the order of UTF-8: 32 units of UTF-16, then U+FFFD."""
    units = longest.encode("utf-16-be")
    pairs = [units[i : i + 2] for i in range(0, len(units), 2)]
    if len(pairs) <= 32:
        return longest
    rest = pairs[32:]
    kept = next((i for i, pair in enumerate(rest) if pair < b"\xff\xfd"), len(rest))
    return b"".join([*pairs[:32], *rest[:kept]]).decode("utf-16-be", "replace").replace("\ufffd", "?") + "\ufffd"


@given(st.text("a\uffff\U0001f600\U0010fffe", min_size=30, max_size=36))
def test_a_maximum_cut_by_an_old_writer_is_above_the_string(longest: str) -> None:
    assert old_cut("a" * 31 + "\U0001f600").endswith("?\ufffd")
    found = read([text(part="maxValues", s=old_cut(longest))], "s").columns["s"].maximum[0].as_py()
    assert found is None or found.encode() >= longest.encode()


def test_maxima_without_the_old_tie_breaker_are_kept() -> None:
    stated = ["a" * 32 + "\ufffd", "a" * 32 + "?\ufffd", "b", None, "a\ufffdb", "\U0010ffff"]
    found = read([text(part="maxValues", s=each) for each in stated], "s").columns["s"].maximum.to_pylist()
    assert found == ["a" * 32 + "\U0010ffff", None, "b", None, "a\ufffdb", "\U0010ffff"]


def test_bounds_of_a_float_that_became_a_double_are_unknown() -> None:
    schema = Struct(
        (Field("x", "double", metadata={"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}),)
    )
    row = '{"numRecords":1,"minValues":{"x":0.1},"maxValues":{"x":0.1},"nullCount":{"x":0}}'
    found = read([row], schema=schema).columns["x"]
    assert [each.to_pylist() for each in (found.minimum, found.maximum, found.null_count)] == [[None], [None], [0]]


def test_statistics_from_before_a_column_was_widened_are_read() -> None:
    schema = Struct((Field("n", "decimal(20,2)"), Field("t", "timestamp_ntz"), Field("d", "double")))
    found = read(['{"minValues":{"n":5,"t":"2020-01-01","d":7}}'], schema=schema)
    assert found.columns["n"].minimum.to_pylist() == [Decimal("5.00")]
    assert found.columns["t"].minimum.to_pylist() == [datetime(2020, 1, 1)]
    assert found.columns["d"].minimum.to_pylist() == [7.0]


# -- one text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stats", "count"),
    [
        ('{"numRecords":3}', 3),
        ('{"numRecords":0}', 0),
        ('{"numRecords":-1}', None),
        ('{"numRecords":3.0}', None),
        ('{"numRecords":true}', None),
        ('{"numRecords":"3"}', None),
        ("{}", None),
        ("[3]", None),
        ("{", None),
        ("[" * 100_000, None),
        ("", None),
        (None, None),
    ],
)
def test_the_number_of_records_is_stated_or_not(stats: str | None, count: int | None) -> None:
    assert num_records(stats) == count


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["numRecords", "minValues", "tightBounds", "é", "\ud83d"]), json_values))
def test_wide_bounds_change_nothing_else_and_lose_no_digit(stats: dict[str, Any]) -> None:
    wide = with_wide_bounds(stats_json(stats))
    assert json.loads(wide, parse_float=Decimal) == json.loads(
        stats_json({**stats, "tightBounds": False}), parse_float=Decimal
    )
    assert wide.encode()
    assert num_records(wide) == num_records(stats_json(stats))


def test_numbers_keep_their_spelling() -> None:
    stats = '{"minValues":{"a":1.10,"b":1E+2,"c":12345678901234567890.123456789,"d":NaN,"e":-0.0},"tightBounds":true}'
    assert with_wide_bounds(stats) == stats.replace("true", "false")


@pytest.mark.parametrize("stats", [None, "", "{", "[]"])
def test_statistics_that_cannot_be_read_become_wide_all_the_same(stats: str | None) -> None:
    assert with_wide_bounds(stats) == '{"tightBounds":false}'
