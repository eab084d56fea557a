"""One column of a schema is made another; everything else stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch._protocol.schema.editing import edit_field, field_at, insert_field, move_field
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch.errors import InvalidOption, UnknownColumn

INNER = Struct((Field("x", "long"), Field("y", "long"), Field("z", "long")))
SCHEMA = Struct((Field("a", "long"), Field("s", INNER), Field("l", Array(Map("string", INNER)))))


@pytest.mark.parametrize("path", [("a",), ("s", "y"), ("l", "element", "value", "y"), ("S", "Y")])
def test_only_the_field_at_the_path_is_edited(path: tuple[str, ...]) -> None:
    after = edit_field(SCHEMA, path, lambda field: replace(field, nullable=False))
    assert field_at(after, path) == replace(field_at(SCHEMA, path), nullable=False)
    assert edit_field(after, path, lambda field: replace(field, nullable=True)) == SCHEMA


def test_a_column_moves_among_its_neighbours() -> None:
    assert move_field(SCHEMA, ("l",), first=True).names == ("l", "a", "s")
    assert move_field(SCHEMA, ("a",), after="S").names == ("s", "a", "l")
    assert move_field(SCHEMA, ("a",)) == SCHEMA
    inside = move_field(SCHEMA, ("l", "element", "value", "x"), after="z")
    assert inside.fields[2].type.element.value.names == ("y", "z", "x")  # type: ignore[union-attr]
    assert inside.fields[:2] == SCHEMA.fields[:2]


def test_a_column_comes_into_a_struct_wherever_that_is() -> None:
    new = Field("n", "string")
    assert insert_field(SCHEMA, (), new, after="A").names == ("a", "n", "s", "l")
    assert insert_field(SCHEMA, ("S",), new, first=True).field("s").type.names == ("n", "x", "y", "z")  # type: ignore[union-attr]
    inside = insert_field(SCHEMA, ("l", "ELEMENT", "value"), new)
    assert inside.field("l").type.element.value.names == ("x", "y", "z", "n")  # type: ignore[union-attr]
    assert inside.fields[:2] == SCHEMA.fields[:2]


@pytest.mark.parametrize("parent", [("a",), ("l",), ("l", "element"), ("l", "element", "key"), ("nothing",)])
def test_no_column_comes_into_what_is_no_struct(parent: tuple[str, ...]) -> None:
    with pytest.raises(UnknownColumn):
        insert_field(SCHEMA, parent, Field("n", "string"))


def test_a_column_comes_once_and_behind_one_that_is_there() -> None:
    with pytest.raises(InvalidOption):
        insert_field(SCHEMA, ("s",), Field("X", "long"))
    with pytest.raises(UnknownColumn):
        insert_field(SCHEMA, ("s",), Field("n", "long"), after="a")


def test_a_column_behind_itself_stays_where_it_is() -> None:
    assert move_field(SCHEMA, ("a",), after="A") == SCHEMA


def test_a_place_must_be_one() -> None:
    with pytest.raises(UnknownColumn) as refused:
        move_field(SCHEMA, ("l", "element", "value", "x"), after="a")
    assert refused.value.facts["column"] == "l.element.value.a"


@pytest.mark.parametrize("path", [("b",), ("a", "x"), ("s", "w"), ("l", "x"), ("l", "element", "w", "x"), ("l", "key")])
def test_a_path_that_leads_nowhere_is_an_unknown_column(path: tuple[str, ...]) -> None:
    with pytest.raises(UnknownColumn):
        field_at(SCHEMA, path)


def test_no_path_is_refused() -> None:
    with pytest.raises(InvalidOption):
        field_at(SCHEMA, ())
