"""Statistics from footers are true, in Delta's shapes, and silent where a footer does not show enough."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.schema.types import Array, Field, Map, Struct, from_arrow, to_arrow
from anabranch._protocol.stats.footers import footer_stats

UTC = UTC
SPARK = "parquet-mr version 1.17.0 (build fac0c746532e133beb928a7f6a7e57b510b477a1)"
MS = timedelta(milliseconds=1)


class Footer:
    """A footer that says another writer's name."""

    def __init__(self, metadata: pq.FileMetaData, created_by: str) -> None:
        self._metadata, self.created_by = metadata, created_by

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return pq.read_metadata(io.BytesIO(buffer.getvalue()))


def stats_of(columns: dict[str, pa.Array], schema: Struct | None = None, **options: Any) -> dict[str, Any]:
    table = pa.table(columns)
    return json.loads(footer_stats(footer(table, **options), schema or from_arrow(table.schema)), parse_float=Decimal)


def bounds(array: pa.Array, delta_type: Any, **options: Any) -> tuple[Any, Any]:
    stats = stats_of({"x": array}, Struct((Field("x", delta_type),)), **options)
    return stats["minValues"].get("x"), stats["maxValues"].get("x")


def test_statistics_have_deltas_shapes() -> None:
    schema = Struct(
        (
            Field("id", "long"),
            Field("day", "date"),
            Field("at", "timestamp"),
            Field("local", "timestamp_ntz"),
            Field("price", "decimal(20,2)"),
            Field("name", "string"),
            Field("s", Struct((Field("a", "integer"), Field("t", Struct((Field("b", "short"),)))))),
        )
    )
    row = {
        "id": 7,
        "day": date(2020, 1, 31),
        "at": datetime(2020, 1, 31, 1, 2, 3, 4567, UTC),
        "local": datetime(2020, 1, 31, 1, 2, 3, 4000),
        "price": Decimal("123456789012345678.90"),
        "name": "ü",
        "s": {"a": 1, "t": {"b": 2}},
    }
    table = pa.Table.from_pylist([row, dict.fromkeys(row)], to_arrow(schema))
    assert footer_stats(footer(table), schema) == (
        '{"numRecords":2,'
        '"minValues":{"id":7,"day":"2020-01-31","at":"2020-01-31T01:02:03.004Z","local":"2020-01-31T01:02:03.004",'
        '"price":123456789012345678.90,"name":"ü","s":{"a":1,"t":{"b":2}}},'
        '"maxValues":{"id":7,"day":"2020-01-31","at":"2020-01-31T01:02:03.005Z","local":"2020-01-31T01:02:03.004",'
        '"price":123456789012345678.90,"name":"ü","s":{"a":1,"t":{"b":2}}},'
        '"nullCount":{"id":1,"day":1,"at":1,"local":1,"price":1,"name":1,"s":{"a":1,"t":{"b":1}}}}'
    )


# -- truth -------------------------------------------------------------------------------------------------------------

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "byte": st.integers(-128, 127),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "float": st.floats(allow_nan=False, width=32),
    "decimal(9,2)": st.integers(1 - 10**9, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "decimal(30,5)": st.integers(1 - 10**30, 10**30 - 1).map(lambda n: Decimal(f"{n}E-5")),
    "string": st.text(max_size=4) | st.text("az\x7f\uffff\U0010ffff", min_size=30, max_size=70),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
}


def read_back(stated: Any, data_type: str) -> Any:
    if data_type == "date":
        return date.fromisoformat(stated)
    if data_type.startswith("timestamp"):
        return datetime.fromisoformat(stated.replace("Z", "+00:00"))
    return float(stated) if data_type in ("float", "double") else stated


def order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@given(st.data(), st.sampled_from(sorted(VALUES)), st.integers(1, 3))
def test_every_value_lies_between_the_bounds(data: st.DataObject, data_type: str, rows_per_group: int) -> None:
    values = data.draw(st.lists(st.none() | VALUES[data_type], max_size=6))
    schema = Struct((Field("x", data_type),))
    table = pa.table([pa.array(values, to_arrow(schema).field(0).type)], schema=to_arrow(schema))
    text = footer_stats(footer(table, row_group_size=rows_per_group), schema, nan_free=["x"])
    stats = json.loads(text, parse_float=Decimal)
    known = [value for value in values if value is not None]
    assert stats["numRecords"] == len(values)
    assert stats["nullCount"]["x"] == values.count(None)
    for value in known:
        for part, fits in (("minValues", order(value).__ge__), ("maxValues", order(value).__le__)):
            if "x" in stats[part]:
                assert fits(order(read_back(stats[part]["x"], data_type))) is True
    if known and data_type in ("byte", "long", "date", "decimal(9,2)", "decimal(30,5)"):
        assert [read_back(stats[part]["x"], data_type) for part in ("minValues", "maxValues")] == [
            min(known),
            max(known),
        ]


def test_bounds_are_merged_over_row_groups_and_groups_of_nulls_do_not_hide_them() -> None:
    stats = stats_of({"x": pa.array([None, None, 5, 3, None, 9])}, row_group_size=2)
    assert (stats["minValues"], stats["maxValues"], stats["nullCount"]) == ({"x": 3}, {"x": 9}, {"x": 3})


def test_a_file_without_rows_has_no_bounds_and_no_nulls() -> None:
    stats = stats_of({"x": pa.array([], pa.int64())})
    assert stats == {"numRecords": 0, "minValues": {}, "maxValues": {}, "nullCount": {"x": 0}}


def test_a_column_of_nulls_has_no_bounds() -> None:
    stats = stats_of({"x": pa.array([None, None], pa.int64())})
    assert stats == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"x": 2}}


@pytest.mark.parametrize("data_type", ["decimal(5,2)", "decimal(30,2)"])
@pytest.mark.parametrize("as_integers", [True, False])
def test_decimals_keep_their_sign(data_type: str, as_integers: bool) -> None:
    values = [Decimal("-1.50"), Decimal("0.25")]
    array = pa.array(values, to_arrow(Struct((Field("x", data_type),))).field(0).type)
    assert bounds(array, data_type, store_decimal_as_integer=as_integers) == tuple(values)


def test_timestamps_are_cut_downwards_for_the_minimum_and_upwards_for_the_maximum() -> None:
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert bounds(pa.array([before_1970]), "timestamp_ntz") == ("1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000")
    for unit, ticks in (("ms", 1), ("us", 1_001), ("ns", 1_000_001)):
        low, high = bounds(pa.array([ticks], pa.timestamp(unit, "UTC")), "timestamp")
        assert low == "1970-01-01T00:00:00.001Z"
        assert high == ("1970-01-01T00:00:00.001Z" if unit == "ms" else "1970-01-01T00:00:00.002Z")


def test_instants_beyond_the_years_that_text_can_say_have_no_bounds() -> None:
    last = pa.array([2**62], pa.timestamp("us"))
    assert bounds(last, "timestamp_ntz") == (None, None)
    assert bounds(pa.array([2**31 - 1], pa.date32()), "date") == (None, None)


@pytest.mark.parametrize("year", [1500, 1899, 1950])
def test_old_days_that_are_counted_by_the_julian_calendar_have_no_bounds(year: int) -> None:
    rows = pa.table({"day": [date(year, 3, 1)], "moment": [datetime(year, 3, 1, tzinfo=UTC)]})
    found = footer(rows.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}))
    said = json.loads(footer_stats(found, from_arrow(rows.schema)))
    assert set(said["minValues"]) == set(said["maxValues"]) == ({"day", "moment"} if year == 1950 else set())
    assert said["nullCount"] == {"day": 0, "moment": 0}


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a" * 32, "a" * 32, "a" * 32),
        ("a" * 33, "a" * 32, "a" * 32 + "\x7f"),
        ("a" * 32 + "\x7f", "a" * 32, "a" * 32 + "\U0010ffff"),
        ("a" * 32 + "é" + "b", "a" * 32, "a" * 32 + "\U0010ffff"),
        ("\U0001f600" * 33, "\U0001f600" * 32, "\U0001f600" * 32 + "\U0010ffff"),
        ("a" * 32 + "\U0010ffff" + "bc", "a" * 32, "a" * 32 + "\U0010ffff" + "\x7f"),
        ("\U0010ffff" * 40, "\U0010ffff" * 32, "\U0010ffff" * 40),
        ("\U0010ffff" * 65, "\U0010ffff" * 32, None),
        ("\U0010ffff" * 65 + "a", "\U0010ffff" * 32, None),
    ],
)
def test_long_strings_are_cut_and_the_maximum_stays_one(text: str, low: str, high: str | None) -> None:
    assert bounds(pa.array([text]), "string") == (low, high)


def test_strings_that_are_not_utf8_have_no_bounds() -> None:
    assert bounds(pa.array([b"\xff"]).view(pa.string()), "string") == (None, None)


# -- floating point ----------------------------------------------------------------------------------------------------


def float_stats(values: list[float], created_by: str, **options: Any) -> dict[str, Any]:
    table = pa.table({"x": pa.array(values)})
    return json.loads(footer_stats(Footer(footer(table), created_by), from_arrow(table.schema), **options))


@pytest.mark.parametrize(
    "writer",
    [
        "parquet-cpp-arrow version 26.0.1",
        "parquet-mr",
        "parquet-mr version 1.8.2",
        "parquet-mr version 1.18.0 (build x)",
        "DuckDB version v1.5.5 (build 1)",
        "",
    ],
)
def test_floats_of_a_writer_that_may_hide_nan_have_no_bounds(writer: str) -> None:
    stats = float_stats([1.5, 2.5], writer)
    assert (stats["minValues"], stats["maxValues"], stats["nullCount"]) == ({}, {}, {"x": 0})


def test_floats_known_to_be_without_nan_have_bounds() -> None:
    assert float_stats([1.5, 2.5], "parquet-cpp-arrow version 26.0.1", nan_free=["x"])["maxValues"] == {"x": 2.5}


@pytest.mark.parametrize("writer", ["parquet-mr version 1.10.1 (build a)", SPARK])
def test_floats_of_parquet_mr_have_bounds(writer: str) -> None:
    stats = float_stats([1.5, 2.5], writer)
    assert (stats["minValues"], stats["maxValues"]) == ({"x": 1.5}, {"x": 2.5})


def chunk(**stated: Any) -> SimpleNamespace:
    given = {"has_null_count": True, "null_count": 0, "has_min_max": True, **stated}
    return SimpleNamespace(num_values=2, statistics=SimpleNamespace(**given))


def stated_footer(physical: str, *chunks: SimpleNamespace, logical: str = '{"Type":"None"}') -> Any:
    """A footer of one column ``x`` with these column chunks, one per row group."""
    kind = SimpleNamespace(to_json=lambda: logical)
    column = SimpleNamespace(path="x", physical_type=physical, logical_type=kind, max_repetition_level=0)
    groups = [SimpleNamespace(column=lambda _, found=found: found) for found in chunks]
    schema = SimpleNamespace(column=lambda _: column)
    return SimpleNamespace(
        created_by=SPARK,
        num_rows=2 * len(chunks),
        num_columns=1,
        num_row_groups=len(chunks),
        schema=schema,
        row_group=groups.__getitem__,
    )


def stated(metadata: Any, data_type: str) -> dict[str, Any]:
    return json.loads(footer_stats(metadata, Struct((Field("x", data_type),))))


def test_a_nan_that_parquet_mr_shows_as_maximum_leaves_both_bounds_out() -> None:
    first, second = chunk(min_raw=1.0, max_raw=2.0), chunk(min_raw=1.0, max_raw=nan)
    assert stated(stated_footer("DOUBLE", first, first), "double")["maxValues"] == {"x": 2.0}
    found = stated(stated_footer("DOUBLE", first, second), "double")
    assert (found["minValues"], found["maxValues"]) == ({}, {})


def test_zeros_are_written_with_the_sign_that_every_reader_takes_for_a_bound() -> None:
    for zero in (0.0, -0.0):
        stats = stated(stated_footer("DOUBLE", chunk(min_raw=zero, max_raw=zero)), "double")
        assert (str(stats["minValues"]["x"]), str(stats["maxValues"]["x"])) == ("-0.0", "0.0")


def test_infinities_have_no_bounds_because_json_has_none() -> None:
    assert float_stats([-inf, 1.0], SPARK)["minValues"] == {}


def test_a_float_is_written_with_the_digits_of_its_value() -> None:
    table = pa.table({"x": pa.array([0.1], pa.float32())})
    text = footer_stats(Footer(footer(table), SPARK), from_arrow(table.schema))
    assert json.loads(text)["maxValues"]["x"] == float(np.float32(0.1))


# -- silence -----------------------------------------------------------------------------------------------------------


def test_one_chunk_without_statistics_hides_bounds_and_null_count() -> None:
    full = chunk(min_raw=1, max_raw=2)
    bare = SimpleNamespace(num_values=2, statistics=None)
    assert stated(stated_footer("INT64", full, full), "long")["maxValues"] == {"x": 2}
    found = stated(stated_footer("INT64", full, bare), "long")
    assert found == {"numRecords": 4, "minValues": {}, "maxValues": {}, "nullCount": {}}


def test_one_chunk_without_bounds_hides_the_bounds_only() -> None:
    found = stated(stated_footer("INT64", chunk(min_raw=1, max_raw=2), chunk(has_min_max=False)), "long")
    assert found == {"numRecords": 4, "minValues": {}, "maxValues": {}, "nullCount": {"x": 0}}


def test_one_chunk_without_a_null_count_hides_the_null_count_only() -> None:
    full = chunk(min_raw=1, max_raw=2)
    found = stated(stated_footer("INT64", full, chunk(min_raw=0, max_raw=1, has_null_count=False)), "long")
    assert found == {"numRecords": 4, "minValues": {"x": 0}, "maxValues": {"x": 2}, "nullCount": {}}


def test_files_written_without_statistics_state_only_their_rows() -> None:
    stats = stats_of({"x": pa.array([1, 2])}, write_statistics=False)
    assert stats == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}


def test_int96_timestamps_have_no_bounds() -> None:
    array = pa.array([datetime(2020, 1, 1, tzinfo=UTC)])
    assert bounds(array, "timestamp", use_deprecated_int96_timestamps=True) == (None, None)


@pytest.mark.parametrize(
    ("array", "data_type"),
    [
        (pa.array([True]), "boolean"),
        (pa.array([b"x"]), "binary"),
        (pa.array([1], pa.uint32()), "long"),
        (pa.array([1], pa.timestamp("us")), "timestamp"),
        (pa.array([1], pa.timestamp("us", "UTC")), "timestamp_ntz"),
        (pa.array([1], pa.timestamp("us")), "long"),
        (pa.array([Decimal("1.5")]), "decimal(10,2)"),
        (pa.array(["x"]), "date"),
        (pa.array([b"x"]), "string"),
        (pa.array([1.5]), "long"),
        (pa.array([1]), "variant"),
    ],
    ids=str,
)
def test_a_column_of_another_physical_type_has_no_bounds(array: pa.Array, data_type: str) -> None:
    assert bounds(array, data_type) == (None, None)


HOLDERS = Struct((Field("a", Array("long")), Field("m", Map("string", "long")), Field("i", "long")))


def holder_stats(lists: list[Any], maps: list[Any]) -> dict[str, Any]:
    columns = {"a": lists, "m": pa.array(maps, pa.map_(pa.string(), pa.int64())), "i": [1] * len(lists)}
    return stats_of({name: pa.array(each) for name, each in columns.items()}, HOLDERS)


def test_lists_and_maps_have_no_bounds_and_null_counts_only_where_none_is_null() -> None:
    none = holder_stats([[1], [2, 3]], [[("k", None)], [("k", 1), ("l", 2)]])
    assert none["nullCount"] == {"a": 0, "m": 0, "i": 0}
    assert none["minValues"] == {"i": 1}
    for lists, maps in (([[1], None], [[("k", 1)], None]), ([[1], []], [[("k", 1)], []])):
        assert holder_stats(lists, maps)["nullCount"] == {"i": 0}
    assert holder_stats([[1], [None]], [[("k", 1)], [("k", 2)]])["nullCount"] == {"m": 0, "i": 0}


def test_a_list_in_the_place_of_a_struct_is_left_out() -> None:
    schema = Struct((Field("a", Struct((Field("list", Struct((Field("element", "long"),))),))),))
    assert stats_of({"a": pa.array([[1, 2]])}, schema) == {
        "numRecords": 1,
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
    }


def test_a_column_that_the_file_does_not_have_is_left_out() -> None:
    schema = Struct((Field("x", "long"), Field("new", "long")))
    assert stats_of({"x": pa.array([1])}, schema)["nullCount"] == {"x": 0}


def test_a_dotted_path_that_two_columns_share_is_left_out() -> None:
    nested = pa.array([{"b": 1}], pa.struct([("b", pa.int64())]))
    stats = stats_of({"a": nested, "a.b": pa.array([100]), "c": pa.array([5])})
    assert stats["nullCount"] == {"c": 0}


# -- which columns -----------------------------------------------------------------------------------------------------


def indexed(schema: Struct, *args: Any) -> set[str]:
    row = {each.name: {m.name: 1 for m in each.type} if isinstance(each.type, Struct) else 1 for each in schema}
    table = pa.Table.from_pylist([row], to_arrow(schema))
    found = json.loads(footer_stats(footer(table), schema, *args))["minValues"]
    inner = {f"{name}.{each}" for name, value in found.items() if isinstance(value, dict) for each in value}
    return {name for name, value in found.items() if not isinstance(value, dict)} | inner


def longs(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, "long") for name in names)


PAIR = Struct((*longs("p", "a"), Field("s", Struct(longs("b", "c"))), *longs("d")))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, {"a", "s.b", "s.c", "d"}),
        (-1, {"a", "s.b", "s.c", "d"}),
        (0, set()),
        (2, {"a", "s.b"}),
        (["D", ("s", "C")], {"d", "s.c"}),
        (["s"], {"s.b", "s.c"}),
        (["p"], set()),
    ],
)
def test_columns_are_chosen_by_name_or_number_and_never_partition_columns(wanted: Any, found: set[str]) -> None:
    assert indexed(PAIR, wanted, ["p"]) == found


def test_without_a_choice_the_first_32_leaves_count_lists_and_structs_included() -> None:
    many = Struct((Field("s", Struct(longs("b", "c"))), *longs(*(f"c{i}" for i in range(40)))))
    assert len(indexed(many)) == 32
    assert "c29" in indexed(many)
    assert "c30" not in indexed(many)


def test_mapped_columns_are_named_by_their_physical_names() -> None:
    schema = Struct((Field("a", "long", metadata={"delta.columnMapping.physicalName": "col-1"}),))
    assert stats_of({"col-1": pa.array([4])}, schema)["minValues"] == {"col-1": 4}
    table = pa.table({"col-1": pa.array([4])})
    assert json.loads(footer_stats(footer(table), schema, ["a"]))["nullCount"] == {"col-1": 0}
