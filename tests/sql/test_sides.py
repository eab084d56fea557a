"""Whose column a name in a MERGE is, and which columns its clauses set."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from anabranch import errors
from anabranch.protocol.merges import SourceColumn
from anabranch.protocol.schema import Field, Struct
from anabranch.sql import Context, Sides, assigned
from anabranch.sql.sides import name_parts

SCHEMA = Struct(
    (
        Field("id", "long"),
        Field("Name", "string"),
        Field("a b", "string"),
        Field("a.b", "string"),
        Field("st", Struct((Field("x", "integer"),))),
    )
)
CONTEXT = Context("table", SCHEMA, dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc), "UTC", lambda names: True)


def set_of(values: Any, *, columns: tuple[str, ...] = ("ID", "name", "a b", "a.b", "st", "more")) -> dict[str, Any]:
    return assigned(values, "set", Sides(SCHEMA, columns, "t", "s"), CONTEXT)


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("id", "id"),
        ("ID", "id"),
        ("name", "Name"),
        ("t.name", "Name"),
        ("T.`NAME`", "Name"),
        ("`t`.`id`", "id"),
        ("`id`", "id"),
        ("a b", "a b"),
        ("t.`a b`", "a b"),
        ("t.a b", "a b"),
        ("`a.b`", "a.b"),
        ("a.b", "a.b"),
        (" id ", "id"),
    ],
)
def test_a_key_is_spelled_as_the_table_spells_it(key: str, column: str) -> None:
    assert set_of({key: "1"}) == {column: "1"}


@pytest.mark.parametrize("key", ["nope", "s.id", "u.id", "t.nope", "t.t.id", "id.x", "", ".", "t.", "`id", "more"])
def test_a_column_that_the_table_lacks_is_refused_by_name(key: str) -> None:
    with pytest.raises(errors.UnknownColumn) as refused:
        set_of({key: "1"})
    assert (refused.value.column, refused.value.table) == (key, "table")


@pytest.mark.parametrize("key", ["st.x", "t.st.x", "st.nope"])
def test_a_member_of_a_struct_cannot_be_set_yet(key: str) -> None:
    with pytest.raises(errors.NotBuilt):
        set_of({key: "1"})


@pytest.mark.parametrize("values", [{}, {"id": "1", "ID": "2"}, {"name": "1", "t.Name": "2"}])
def test_each_column_is_set_once_and_one_at_least(values: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidOption) as refused:
        set_of(values)
    assert refused.value.option == "set"


def test_a_star_takes_every_column_of_the_table_from_the_source() -> None:
    assert set_of(None) == {
        "id": SourceColumn("ID"),
        "Name": SourceColumn("name"),
        "a b": SourceColumn("a b"),
        "a.b": SourceColumn("a.b"),
        "st": SourceColumn("st"),
    }


def test_a_star_prefers_the_column_of_just_that_case() -> None:
    assert set_of(None, columns=("ID", "id", "NAME", "Name", "a b", "a.b", "st"))["id"] == SourceColumn("id")


def test_a_star_names_the_column_that_the_source_lacks() -> None:
    with pytest.raises(errors.SchemaMismatch) as refused:
        set_of(None, columns=("id", "a b", "a.b", "st", "more"))
    assert refused.value.column == "Name"
    assert refused.value.expected == "Name string"
    assert refused.value.found == "id, a b, a.b, st, more"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a", ["a"]),
        ("a.b.c", ["a", "b", "c"]),
        ("`a.b`.c", ["a.b", "c"]),
        ("`a``b`", ["a`b"]),
        (" a . `b` ", ["a", "b"]),
        ("", []),
        ("a.", []),
        (".a", []),
        ("`a", []),
        ("a`b", []),
        ("``", []),
    ],
)
def test_a_dotted_name_is_taken_apart_as_spark_does(name: str, parts: list[str]) -> None:
    assert name_parts(name) == parts
