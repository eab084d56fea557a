"""Schemas keep everything that Delta's JSON says, and go to Arrow and back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.schema.types import (
    Array,
    DataType,
    Field,
    Map,
    Struct,
    arrow_type,
    decimal_of,
    digits_of,
    from_arrow,
    parse_schema,
    schema_json,
    to_arrow,
    upcastable,
)
from anabranch.errors import InvalidSchema, UnknownColumn, UnsupportedType

PRIMITIVES = ["string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp"]
PRIMITIVES += ["timestamp_ntz", "decimal(10,2)", "decimal(38,38)", "interval day to second"]

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
json_scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
metadata = st.dictionaries(st.text(max_size=5), json_scalars | st.lists(json_scalars, max_size=2), max_size=2)
numbers = ["byte", "short", "integer", "long", "float", "double"]
decimals = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"decimal({p},{s})"))


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
    fields = st.builds(Field, names, types, st.booleans(), metadata)
    return st.lists(fields, max_size=3, unique_by=lambda each: each.name.lower()).map(
        lambda found: Struct(tuple(found))
    )


def nested(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    arrays, maps = st.builds(Array, types, st.booleans()), st.builds(Map, types, types, st.booleans())
    return structs(types) | arrays | maps


data_types = st.recursive(st.sampled_from(PRIMITIVES), nested, max_leaves=6)
schemas = structs(data_types)


def without_metadata(data_type: Any) -> Any:
    if isinstance(data_type, Struct):
        return Struct(tuple(Field(each.name, without_metadata(each.type), each.nullable) for each in data_type))
    if isinstance(data_type, Array):
        return Array(without_metadata(data_type.element), data_type.contains_null)
    if isinstance(data_type, Map):
        return Map(without_metadata(data_type.key), without_metadata(data_type.value), data_type.value_contains_null)
    return data_type


@pytest.mark.slow
@given(schemas)
def test_a_schema_comes_back_from_its_json(schema: Struct) -> None:
    assert parse_schema(schema_json(schema)) == schema


@pytest.mark.slow
@given(schemas)
def test_a_schema_without_metadata_comes_back_from_arrow(schema: Struct) -> None:
    assert from_arrow(to_arrow(schema)) == without_metadata(schema)


def test_the_json_is_what_spark_writes() -> None:
    text = (
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{"delta.x":1.50}},'
        '{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"decimal(10,2)",'
        '"containsNull":true},"valueContainsNull":false},"nullable":true,"metadata":{}}]}'
    ).replace("1.50", "1.5")
    assert schema_json(parse_schema(text)) == text


def test_types_that_are_not_known_are_kept_by_name() -> None:
    text = '{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}'
    assert schema_json(parse_schema(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '"long"',
        '{"type":"array","elementType":"long","containsNull":true}',
        '{"type":"struct"}',
        '{"type":"struct","fields":[{"name":"x"}]}',
        '{"type":"struct","fields":[{"name":1,"type":"long"}]}',
        '{"type":"struct","fields":[{"name":"x","type":{"type":"udt"}}]}',
        '{"type":"struct","fields":[{"name":"x","type":7}]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_schema(text)


def test_a_field_is_found_by_its_exact_name_first_and_then_whatever_the_case() -> None:
    schema = Struct((Field("ID", "long"), Field("id", "string"), Field("Name", "string")))
    assert schema.field("id").type == "string"
    assert schema.field("Id").type == "long"
    assert schema.field("NAME").name == "Name"
    assert schema.find("nom") is None
    with pytest.raises(UnknownColumn) as error:
        schema.field("nom")
    assert error.value.facts["column"] == "nom"


def test_every_column_of_very_many_is_found_without_a_look_at_all_others() -> None:
    looks: list[int] = []

    class Counted(str):
        def lower(self) -> str:
            looks.append(1)
            return super().lower()

    schema = Struct(tuple(Field(Counted(f"C{i}"), "long") for i in range(500)))
    assert all(schema.find(f"c{i}") is schema.fields[i] for i in range(500))
    assert len(looks) == 500


def test_the_physical_name_is_the_mapped_one_where_there_is_one() -> None:
    assert Field("a", "long").physical_name == "a"
    assert Field("a", "long", metadata={"delta.columnMapping.physicalName": "col-1"}).physical_name == "col-1"


@pytest.mark.parametrize(
    ("arrow", "delta"),
    [
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.float16(), "float"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "long"),
        (pa.large_binary(), "binary"),
        (pa.binary(16), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ns", "Europe/Paris"), "timestamp"),
        (pa.timestamp("s"), "timestamp_ntz"),
        (pa.duration("ms"), "interval day to second"),
        (pa.decimal256(38, 10), "decimal(38,10)"),
        (pa.large_list(pa.field("item", pa.int8(), nullable=False)), Array("byte", False)),
        (pa.list_(pa.int8(), 3), Array("byte", True)),
        (pa.map_(pa.string(), pa.float64()), Map("string", "double", True)),
        (pa.struct([pa.field("a", pa.bool_(), nullable=False)]), Struct((Field("a", "boolean", False),))),
    ],
    ids=str,
)
def test_arrow_types_that_delta_can_hold_become_its_own(arrow: pa.DataType, delta: DataType) -> None:
    assert from_arrow(pa.schema([("x", arrow)])) == Struct((Field("x", delta),))


@pytest.mark.parametrize(
    "arrow",
    [pa.uint64(), pa.month_day_nano_interval(), pa.time64("us"), pa.decimal256(40, 2), pa.decimal128(5, -2)],
    ids=str,
)
def test_an_arrow_type_that_delta_cannot_hold_is_refused_by_column_and_type(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedType) as error:
        from_arrow(pa.schema([("a", pa.list_(pa.struct([("b", arrow)])))]))
    assert error.value.facts == {"column": "a.element.b", "type": str(arrow)}


def test_a_delta_type_that_arrow_rows_cannot_hold_is_refused_by_column_and_type() -> None:
    with pytest.raises(UnsupportedType) as error:
        to_arrow(Struct((Field("s", Struct((Field("v", "variant"),))),)))
    assert error.value.facts == {"column": "s.v", "type": "variant", "holder": "a row outside Spark"}


def test_two_arrow_columns_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(InvalidSchema):
        from_arrow(pa.schema([("a", pa.int8()), ("A", pa.int8())]))


def test_intervals_are_durations_and_numbers_of_months_in_arrow() -> None:
    assert arrow_type("interval day to second") == pa.duration("us")
    assert arrow_type(Array("interval year to month")).value_type == pa.int32()


def test_timestamps_are_microseconds_in_arrow() -> None:
    assert arrow_type("timestamp") == pa.timestamp("us", "UTC")
    assert arrow_type("timestamp_ntz") == pa.timestamp("us")


@pytest.mark.parametrize(
    ("text", "digits"), [("decimal(10,2)", (10, 2)), ("decimal( 5 , 0 )", (5, 0)), ("decimal", (10, 0)), ("long", None)]
)
def test_decimals_are_told_by_precision_and_scale(text: str, digits: tuple[int, int] | None) -> None:
    assert decimal_of(text) == digits


@pytest.mark.parametrize("inside", [False, True])
def test_two_columns_of_one_name_are_no_schema(inside: bool) -> None:
    twice = {"type": "struct", "fields": [{"name": "x", "type": "long"}, {"name": "x", "type": "string"}]}
    whole = {"type": "struct", "fields": [{"name": "s", "type": twice}]} if inside else twice
    with pytest.raises(InvalidSchema, match="one name"):
        parse_schema(json.dumps(whole))


@pytest.mark.parametrize(
    "text", ["decimal(0,0)", "decimal(39,0)", "decimal(10,11)", "decimal(9,-99)", f"decimal({'9' * 5000},1)"]
)
def test_a_decimal_that_there_is_not_is_a_type_that_nobody_knows(text: str) -> None:
    """A log may name any."""
    found = parse_schema(json.dumps({"type": "struct", "fields": [{"name": "x", "type": text}]}))
    with pytest.raises(UnsupportedType):
        to_arrow(found)
    assert not upcastable("long", text)
    assert decimal_of(text) is None


# -- widening ----------------------------------------------------------------------------------------------------------


@given(data_types)
def test_every_type_widens_to_itself(data_type: DataType) -> None:
    assert upcastable(data_type, data_type)


@given(*[st.sampled_from(PRIMITIVES + numbers) | decimals] * 3)
def test_widening_is_transitive(a: DataType, b: DataType, c: DataType) -> None:
    if upcastable(a, b) and upcastable(b, c):
        assert upcastable(a, c)


@given(*[st.sampled_from(numbers) | decimals] * 2)
def test_types_that_widen_both_ways_are_the_same(a: DataType, b: DataType) -> None:
    if upcastable(a, b) and upcastable(b, a):
        assert a == b


@given(st.sampled_from(numbers[:4]) | decimals, decimals)
def test_an_exact_number_widens_to_a_decimal_that_holds_its_greatest_value(source: str, target: str) -> None:
    before, after = digits_of(source) or (0, 0)
    (precision, scale) = decimal_of(target) or (0, 0)
    assert upcastable(source, target) == (before <= precision - scale and after <= scale)


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("byte", "long", True),
        ("long", "integer", False),
        ("float", "double", True),
        ("double", "float", False),
        ("integer", "double", False),
        ("integer", "decimal(10,0)", True),
        ("long", "decimal(19,0)", False),
        ("date", "timestamp_ntz", False),
        ("string", "long", False),
        (Array("integer", False), Array("long", True), True),
        (Array("integer", True), Array("integer", False), False),
        (Map("integer", "float", False), Map("long", "double", False), True),
        (Map("integer", "float", True), Map("long", "double", False), False),
        (Map("long", "float", False), Map("integer", "double", False), False),
        (Struct((Field("a", "short"),)), Struct((Field("A", "long"),)), True),
        (Struct((Field("a", "short"),)), Struct((Field("b", "long"),)), False),
        (Struct((Field("a", "short"),)), Struct((Field("a", "long", nullable=False),)), False),
        (Struct((Field("a", "short"),)), Struct((Field("a", "long"), Field("b", "long"))), False),
        (Struct(()), "long", False),
        ("variant", "variant", True),
    ],
)
def test_widening_keeps_every_value(source: DataType, target: DataType, fits: bool) -> None:
    assert upcastable(source, target) is fits


def test_the_json_has_no_escapes_that_it_does_not_need() -> None:
    assert "é" in schema_json(Struct((Field("é", "long"),)))
    assert json.loads(schema_json(Struct((Field("é", "long"),))))["fields"][0]["name"] == "é"


def test_a_list_or_a_map_widens_to_nothing_else() -> None:
    several, by_name = Array("long"), Map("string", "long")
    for source, target in ((several, "long"), ("long", several), (by_name, several), (several, by_name)):
        assert not upcastable(source, target)
