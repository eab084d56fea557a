"""What a schema and a table's properties demand of rows, read off them without a gap."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anabranch import errors
from anabranch._protocol.actions import Metadata
from anabranch._protocol.rules.table_rules import NONE, Check, Generated, columns_in_text, may_use, rules_of
from anabranch._protocol.schema.lengths import LENGTH, Inside, Length, limits_of
from anabranch._protocol.schema.types import Array, Field, Map, Struct, schema_json


def metadata_of(*fields: Field, **constraints: str) -> Metadata:
    configuration = {f"delta.constraints.{name}": text for name, text in constraints.items()}
    return Metadata("x", schema_json(Struct(fields)), configuration=configuration)


def invariant(text: str) -> dict[str, Any]:
    return {"delta.invariants": json.dumps({"expression": {"expression": text}})}


def test_a_plain_table_demands_nothing() -> None:
    assert rules_of(metadata_of(Field("id", "long"))) == NONE
    assert not NONE.bind_rows


def test_constraints_and_invariants_are_checks_with_the_columns_that_they_may_read() -> None:
    member = Field("s", Struct((Field("a", "long", metadata=invariant("s.a > 0")),)))
    found = rules_of(metadata_of(Field("id", "long", metadata=invariant("id < 9")), member, b="ID > 0", a="true"))
    assert found.checks == (
        Check("a", "true"),
        Check("b", "ID > 0", frozenset({"id"})),
        Check("EXPRESSION(id < 9)", "id < 9", frozenset({"id"})),
        Check("EXPRESSION(s.a > 0)", "s.a > 0", frozenset({"s"})),
    )
    assert found.bind_rows


def test_a_constraint_counts_however_its_key_is_spelled() -> None:
    found = rules_of(
        Metadata("x", schema_json(Struct((Field("id", "long"),))), configuration={"DELTA.Constraints.A": "id = 1"})
    )
    assert [check.name for check in found.checks] == ["A"]


@pytest.mark.parametrize("written", ["", "{}", '{"expression":{}}', '{"expression":7}', "id > 0", "null"])
def test_an_invariant_that_cannot_be_read_is_refused(written: str) -> None:
    with pytest.raises(errors.InvalidSchema, match="invariant"):
        rules_of(metadata_of(Field("id", "long", metadata={"delta.invariants": written})))


def test_generated_columns_and_defaults_are_texts_by_column() -> None:
    found = rules_of(
        metadata_of(
            Field("id", "long"),
            Field("g", "long", metadata={"delta.generationExpression": "id * 2"}),
            Field("d", "long", metadata={"CURRENT_DEFAULT": "5"}),
        )
    )
    assert found.generated == (Generated("g", "id * 2", frozenset({"id"})),)
    assert found.generated[0].check == Check("Generated Column", "g <=> id * 2", frozenset({"g", "id"}))
    assert found.defaults == {"d": "5"}
    assert not rules_of(metadata_of(Field("d", "long", metadata={"CURRENT_DEFAULT": "5"}))).bind_rows


def test_not_null_is_found_at_every_depth_outer_ones_first() -> None:
    inner = Struct((Field("a", "long", nullable=False), Field("b", "long")))
    deep = Field("l", Array(Map("string", inner, value_contains_null=False), contains_null=False))
    found = rules_of(metadata_of(Field("id", "long", nullable=False), Field("s", inner), deep)).not_null
    assert [rule.column for rule in found] == ["id", "s.a", "l.element", "l.element.value", "l.element.value.a"]
    assert found[-1].path == ("l", Inside.ELEMENTS, Inside.VALUES, "a")
    keyed = rules_of(metadata_of(Field("m", Map(inner, "long")))).not_null
    assert [rule.column for rule in keyed] == ["m.key.a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b", {"a", "b"}),
        ("A.x", {"a"}),
        ("`a b` > 1", {"a b", "a", "b"}),
        ("`x``y`", {"x`y"}),
        ("ab > 1", set()),
        ("a_b", set()),
        ("'a'", {"a"}),
        ("b:c", {"b"}),
        ("hash( *)", {"a", "b", "a b", "x`y"}),
        ("2 * b", {"b"}),
    ],
)
def test_a_column_that_a_text_may_speak_of_is_never_missed(text: str, expected: set[str]) -> None:
    assert columns_in_text(text, ["a", "b", "a b", "x`y"]) == expected
    assert {each for each in ("a", "b", "a b", "x`y") if may_use(text, [each])} == expected


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("a.x > 0", {"x"}),
        ("A . X > 0 AND a.y < 1", {"x", "y"}),
        ("`a`.`x`", {"x"}),
        ("`a` . `z``z`", {"z`z"}),
        ("a IS NOT NULL", {"x", "y", "z`z"}),
        ("f(a, 1) > 0", {"x", "y", "z`z"}),
        ("a.x > 0 OR f(a)", {"x", "y", "z`z"}),
        ("a['x']", {"x", "y", "z`z"}),
        ("a /* . */ .x", {"x", "y", "z`z"}),
        ("struct(a.*).x", {"x", "y", "z`z"}),
        ("b.a > 0", {"x", "y", "z`z"}),
        ("`a.y` > 0", {"y"}),
        ("b.x > a.x.y", {"x"}),
        ("b > 0", set()),
    ],
)
def test_a_member_that_a_text_may_use_is_never_missed(text: str, used: set[str]) -> None:
    assert {each for each in ("x", "y", "z`z") if may_use(text, ["a", each])} == used


def test_members_of_members_are_told_apart() -> None:
    assert may_use("a.x.y > 0", ["a", "x"])
    assert may_use("a.x.y > 0", ["a", "x", "y"])
    assert not may_use("a.x.y > 0", ["a", "x", "z"])
    assert may_use("a.x > 0", ["a", "x", "z"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("varchar(3)", Length(3)),
        ("CHAR( 5 )", Length(5, padded=True)),
        ("character(5)", Length(5, padded=True)),
        ("string", None),
        ("decimal(10,2)", None),
        ("array<char(2)>", {Inside.ELEMENTS: Length(2, padded=True)}),
        ("map<varchar(1),string>", {Inside.KEYS: Length(1)}),
        ("map<string,varchar(1)>", {Inside.VALUES: Length(1)}),
        ("struct<n:decimal(3,1),c:char(2)>", {"c": Length(2, padded=True)}),
        ("struct<`a,b:c`:array<varchar(2)>,d:int>", {"a,b:c": {Inside.ELEMENTS: Length(2)}}),
        ("struct<s:struct<`x``y`:varchar(9)>>", {"s": {"x`y": Length(9)}}),
    ],
)
def test_lengths_are_read_from_sparks_note_on_the_column(text: str, expected: Any) -> None:
    assert limits_of(Field("c", "string", metadata={LENGTH: text})) == expected


def test_a_column_without_a_note_has_no_length() -> None:
    assert limits_of(Field("c", "string")) is None
    for given in (5, ["char(3)"], {"a": 1}, True):
        assert limits_of(Field("c", "string", metadata={LENGTH: given})) is None, "another writer's, and no text"
    assert (str(Length(3)), str(Length(3, padded=True))) == ("varchar(3)", "char(3)")
