"""One column of a schema is made another; everything else stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.errors import InvalidOption, UnknownColumn
from anabranch.protocol.schema.editing import edited, field_at, moved
from anabranch.protocol.schema.types import Array, Field, Map, Struct

INNER = Struct((Field("x", "long"), Field("y", "long"), Field("z", "long")))
SCHEMA = Struct((Field("a", "long"), Field("s", INNER), Field("l", Array(Map("string", INNER)))))


@pytest.mark.parametrize("path", [("a",), ("s", "y"), ("l", "element", "value", "y"), ("S", "Y")])
def test_only_the_field_at_the_path_is_edited(path: tuple[str, ...]) -> None:
    after = edited(SCHEMA, path, lambda field: replace(field, nullable=False))
    assert field_at(after, path) == replace(field_at(SCHEMA, path), nullable=False)
    assert edited(after, path, lambda field: replace(field, nullable=True)) == SCHEMA


def test_a_column_moves_among_its_neighbours() -> None:
    assert moved(SCHEMA, ("l",), first=True).names == ("l", "a", "s")
    assert moved(SCHEMA, ("a",), after="S").names == ("s", "a", "l")
    assert moved(SCHEMA, ("a",)) == SCHEMA
    inside = moved(SCHEMA, ("l", "element", "value", "x"), after="z")
    assert inside.fields[2].type.element.value.names == ("y", "z", "x")  # type: ignore[union-attr]
    assert inside.fields[:2] == SCHEMA.fields[:2]


def test_a_place_must_be_one() -> None:
    with pytest.raises(InvalidOption):
        moved(SCHEMA, ("a",), after="A")
    with pytest.raises(UnknownColumn):
        moved(SCHEMA, ("s", "x"), after="a")


@pytest.mark.parametrize("path", [("b",), ("a", "x"), ("s", "w"), ("l", "x"), ("l", "element", "w", "x"), ("l", "key")])
def test_a_path_that_leads_nowhere_is_an_unknown_column(path: tuple[str, ...]) -> None:
    with pytest.raises(UnknownColumn):
        field_at(SCHEMA, path)


def test_no_path_is_refused() -> None:
    with pytest.raises(InvalidOption):
        field_at(SCHEMA, ())
