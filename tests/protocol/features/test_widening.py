"""Which types may become which, and how a schema remembers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anabranch._protocol.actions import Metadata
from anabranch._protocol.features.widening import (
    can_read,
    can_widen,
    find_dependency,
    iceberg_keeps,
    types_to_read,
    unreadable_change,
    widen_to_rows,
    with_type,
)
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, parse_schema, schema_json
from anabranch._protocol.session_settings import SessionSettings, apply_settings
from anabranch.errors import InvalidOption, UnknownColumn

ALLOWED = [
    *[
        ("byte", to)
        for to in ("short", "integer", "long", "double", "decimal(10,0)", "decimal(12,2)", "decimal(38,28)")
    ],
    *[("short", to) for to in ("integer", "long", "double", "decimal(10,0)", "decimal(11,1)")],
    *[("integer", to) for to in ("long", "double", "decimal(10,0)", "decimal(20,10)")],
    *[("long", to) for to in ("decimal(20,0)", "decimal(22,2)", "decimal(38,18)")],
    ("float", "double"),
    ("date", "timestamp_ntz"),
    ("decimal(5,2)", "decimal(6,2)"),
    ("decimal(5,2)", "decimal(8,5)"),
    ("decimal(6, 2)", "decimal(10, 4)"),
]
"""PROTOCOL.md, "Type Widening": every kind of change that it lists."""

REFUSED = [
    *[("long", to) for to in ("integer", "double", "decimal(19,0)", "decimal(21,2)", "string", "timestamp")],
    *[("integer", to) for to in ("short", "float", "decimal(9,0)", "decimal(11,2)", "string")],
    ("byte", "decimal(3,0)"),
    ("double", "float"),
    ("date", "timestamp"),
    ("timestamp", "timestamp_ntz"),
    ("timestamp_ntz", "date"),
    ("decimal(5,2)", "decimal(5,3)"),
    ("decimal(5,2)", "decimal(6,4)"),
    ("decimal(5,2)", "decimal(6,1)"),
    ("decimal(5,2)", "double"),
    ("string", "binary"),
    ("long", "long"),
    ("decimal(5,2)", "decimal(5, 2)"),
]


def anything(before: DataType, after: DataType) -> None:
    """No objection."""


def changes(field: Field) -> list[dict[str, str]]:
    return list(field.metadata.get("delta.typeChanges", []))


@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_a_type_may_become_any_that_the_protocol_lists(before: str, after: str) -> None:
    assert can_widen(before, after)


@pytest.mark.parametrize(("before", "after"), REFUSED)
def test_a_type_becomes_no_other(before: str, after: str) -> None:
    assert not can_widen(before, after)
    if before.replace(" ", "") == after.replace(" ", ""):
        schema = Struct((Field("c", before),))
        assert with_type(schema, ("c",), after, anything) == schema
        return
    with pytest.raises(InvalidOption) as refused:
        with_type(Struct((Field("c", before),)), ("c",), after, anything)
    assert (refused.value.column, refused.value.option) == ("c", "type")
    assert refused.value.from_type.upper() in str(refused.value)
    assert refused.value.to_type in str(refused.value)


def follows(before: str, after: str, **properties: str) -> bool:
    """Whether a column takes the type of the rows."""
    metadata = metadata_of(Field("c", before), **properties)
    return widen_to_rows(metadata, Struct((Field("c", after),))).fields[0].type == after


@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_rows_widen_a_column_as_far_as_the_session_lets_them(before: str, after: str) -> None:
    assert follows(before, after)
    with apply_settings(SessionSettings(widens="never")):
        assert not follows(before, after)
    across = before in ("byte", "short", "integer", "long") and (after == "double" or after.startswith("decimal"))
    with apply_settings(SessionSettings(widens="same_family_type")):
        assert follows(before, after) is not across


@pytest.mark.parametrize("compat", ["delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"])
@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_rows_widen_a_column_of_an_iceberg_table_only_as_iceberg_does(before: str, after: str, compat: str) -> None:
    assert follows(before, after, **{compat.replace(".", "_", 1): "true"}) is iceberg_keeps(before, after)


def test_iceberg_knows_only_some_of_the_changes() -> None:
    """PROTOCOL.md, "Writer Requirements for Type Widening": what is refused beside icebergCompat."""
    kept = {(before, after) for before, after in ALLOWED if iceberg_keeps(before, after)}
    assert kept >= {("integer", "long"), ("float", "double"), ("decimal(5,2)", "decimal(6,2)")}
    assert not kept & {("byte", "double"), ("date", "timestamp_ntz"), ("decimal(5,2)", "decimal(8,5)")}
    assert not {(before, after) for before, after in kept if before == "long"}


# -- what is remembered ------------------------------------------------------------------------------------------------


def test_each_change_of_a_column_is_remembered_behind_the_others() -> None:
    """The example of PROTOCOL.md, "Type Change Metadata"."""
    schema = Struct((Field("e", "short", metadata={"comment": "kept"}),))
    schema = with_type(with_type(schema, ("E",), "integer", anything), ("e",), "long", anything)
    (field,) = parse_schema(schema_json(schema))
    assert field.type == "long"
    assert field.metadata == {
        "comment": "kept",
        "delta.typeChanges": [
            {"fromType": "short", "toType": "integer"},
            {"fromType": "integer", "toType": "long"},
        ],
    }


def test_a_change_inside_a_map_or_an_array_is_remembered_with_its_path() -> None:
    """Both other examples of PROTOCOL.md, "Type Change Metadata"."""
    keyed = with_type(Struct((Field("e", Map("float", "integer")),)), ("e", "key"), "double", anything)
    assert keyed.fields[0].type == Map("double", "integer")
    assert changes(keyed.fields[0]) == [{"fromType": "float", "toType": "double", "fieldPath": "key"}]
    deep = Struct((Field("e", Array(Map("string", "decimal(6,2)"))),))
    deep = with_type(deep, ("e", "element", "value"), "decimal(10,4)", anything)
    assert deep.fields[0].type == Array(Map("string", "decimal(10,4)"))
    assert changes(deep.fields[0]) == [
        {"fromType": "decimal(6,2)", "toType": "decimal(10,4)", "fieldPath": "element.value"}
    ]


def test_a_member_remembers_its_own_change_wherever_its_struct_stands() -> None:
    inner = Struct((Field("n", "integer"), Field("o", "string")))
    schema = Struct((Field("s", inner), Field("l", Array(inner))))
    schema = with_type(schema, ("s", "n"), "long", anything)
    schema = with_type(schema, ("l", "element", "N"), "long", anything)
    for found in (schema.fields[0].type, schema.fields[1].type.element):  # type: ignore[union-attr]
        assert isinstance(found, Struct)
        assert changes(found.field("n")) == [{"fromType": "integer", "toType": "long"}]
        assert not changes(found.field("o"))
    assert not changes(schema.fields[0])
    assert not changes(schema.fields[1])


@pytest.mark.parametrize("path", [("x",), ("e", "x"), ("m", "element"), ("m", "value", "x"), ("s", "x")])
def test_a_path_that_leads_nowhere_is_an_unknown_column(path: tuple[str, ...]) -> None:
    inner = Struct((Field("n", "integer"),))
    schema = Struct((Field("e", "integer"), Field("m", Map("string", "integer")), Field("s", inner)))
    with pytest.raises(UnknownColumn):
        with_type(schema, path, "long", anything)


def test_a_table_may_object() -> None:
    with pytest.raises(InvalidOption, match="because I say so"):
        with_type(Struct((Field("c", "integer"),)), ("c",), "long", lambda before, after: "because I say so")


def test_a_remembered_change_that_is_no_widening_is_found_at_any_depth() -> None:
    def with_change(before: str, after: str) -> Struct:
        facts = {"delta.typeChanges": [{"fromType": before, "toType": after, "fieldPath": "element"}]}
        return Struct((Field("a", Array(Struct((Field("b", Array(after), metadata=facts),)))),))

    assert unreadable_change(with_change("integer", "long")) is None
    assert unreadable_change(with_change("byte", "decimal(4,1)")) is not None
    found = unreadable_change(with_change("string", "integer"))
    assert found is not None
    assert "a.element.b was changed from string to integer" in found


TIGHT = [
    ("byte", "decimal(4,1)", "decimal(11,1)"),
    ("short", "decimal(5,0)", "decimal(10,0)"),
    ("long", "decimal(19,0)", "decimal(20,0)"),
    ("byte", "decimal(37,28)", "decimal(38,28)"),
]
"""Changes that the protocol does not list, although all values fit, and the types as which Spark reads both kinds of
file.
"""


@pytest.mark.parametrize(("before", "after", "read"), TIGHT)
def test_decimals_that_just_hold_all_integers_are_read_but_never_made(before: str, after: str, read: str) -> None:
    facts = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
    schema = Struct((Field("c", after, metadata=facts), Field("s", Struct((Field("c", after, metadata=facts),)))))
    assert unreadable_change(schema) is None
    top, struct = types_to_read(schema)
    assert (top.type, struct.type) == (read, Struct((Field("c", read, metadata=facts),)))
    with pytest.raises(InvalidOption):
        with_type(Struct((Field("c", before),)), ("c",), after, anything)


@pytest.mark.parametrize(
    ("before", "after"),
    [("byte", "decimal(3,1)"), ("integer", "decimal(9,0)"), ("long", "decimal(18,0)"), ("byte", "decimal(38,35)")],
)
def test_decimals_that_lack_a_place_for_some_integer_are_not_read(before: str, after: str) -> None:
    assert not can_read(before, after)


def test_such_decimals_inside_arrays_are_not_read() -> None:
    facts = {"delta.typeChanges": [{"fromType": "byte", "toType": "decimal(4,1)"}]}
    member = Struct((Field("c", "decimal(4,1)", metadata=facts),))
    assert unreadable_change(Struct((Field("a", Array(member)),))) is not None
    assert unreadable_change(Struct((Field("a", member),))) is None


def test_columns_that_were_widened_as_the_protocol_lists_are_read_as_they_are() -> None:
    facts = {"delta.typeChanges": [{"fromType": "integer", "toType": "decimal(12,2)"}]}
    schema = Struct((Field("c", "decimal(12,2)", metadata=facts), Field("d", "decimal(3,1)")))
    assert types_to_read(schema) == schema


# -- following the rows ------------------------------------------------------------------------------------------------

ON = {"delta.enableTypeWidening": "true"}


def metadata_of(*fields: Field, **configuration: str) -> Metadata:
    named = {key.replace("_", ".", 1): value for key, value in configuration.items()}
    return Metadata("x", schema_json(Struct(fields)), configuration={**ON, **named})


def test_columns_become_as_wide_as_the_rows_at_any_depth() -> None:
    table = (
        Field("id", "integer"),
        Field("p", "decimal(5,2)"),
        Field("s", Struct((Field("f", "float"), Field("same", "long")))),
        Field("m", Map("short", Array("date"))),
        Field("left", "integer"),
        Field("narrow", "long"),
    )
    rows = Struct(
        (
            Field("ID", "long"),
            Field("P", "decimal(8,3)"),
            Field("s", Struct((Field("F", "double"), Field("more", "long")))),
            Field("m", Map("long", Array("timestamp_ntz"))),
            Field("left", "string"),
            Field("narrow", "integer"),
            Field("new", "long"),
        )
    )
    after = widen_to_rows(metadata_of(*table), rows)
    assert [each.type for each in after] == [
        "long",
        "decimal(8,3)",
        Struct(
            (
                Field("f", "double", metadata={"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}),
                Field("same", "long"),
            )
        ),
        Map("long", Array("timestamp_ntz")),
        "integer",
        "long",
    ]
    assert [each["fieldPath"] for each in changes(after.field("m"))] == ["key", "value.element"]
    assert not changes(after.field("left"))


def test_nothing_widens_where_the_table_does_not_say_so() -> None:
    metadata = Metadata("x", schema_json(Struct((Field("id", "integer"),))))
    assert widen_to_rows(metadata, Struct((Field("id", "long"),))) == metadata.schema


def computed() -> Iterator[tuple[Metadata, str]]:
    wide = Field("id", "integer")
    yield metadata_of(wide, **{"delta_constraints.c": "id > 0"}), "the constraint c"
    generated = Field("g", "integer", metadata={"delta.generationExpression": "id + 1"})
    yield metadata_of(wide, generated), "g is generated as id + 1"


@pytest.mark.parametrize(("metadata", "why"), list(computed()))
def test_a_column_from_which_something_is_computed_keeps_its_type(metadata: Metadata, why: str) -> None:
    assert widen_to_rows(metadata, Struct((Field("id", "long"),))) == metadata.schema
    assert why in str(find_dependency(metadata, ("id",)))


def test_members_beside_the_one_that_a_rule_speaks_of_may_widen() -> None:
    pair = Struct((Field("a", "integer"), Field("b", "integer")))
    rows = Struct((Field("s", Struct((Field("a", "long"), Field("b", "long")))),))
    after = widen_to_rows(metadata_of(Field("s", pair), **{"delta_constraints.c": "s.a > 0"}), rows).field("s").type
    assert isinstance(after, Struct)
    assert [each.type for each in after] == ["integer", "long"]
