"""Whose column a name in a MERGE is, and which columns its clauses set."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from anabranch import errors
from anabranch._expressions import Context, MergeColumns, resolve_assignments
from anabranch._expressions.sides import evolve_by_clause, name_parts
from anabranch._protocol.merges import SourceColumn
from anabranch._protocol.schema.assignments import Members
from anabranch._protocol.schema.types import Field, Struct

SCHEMA = Struct(
    (
        Field("id", "long"),
        Field("Name", "string"),
        Field("a b", "string"),
        Field("a.b", "string"),
        Field("st", Struct((Field("x", "integer"),))),
    )
)
CONTEXT = Context("table", SCHEMA, dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)


def set_of(values: Any, *, columns: tuple[str, ...] = ("ID", "name", "a b", "a.b", "st", "more")) -> dict[str, Any]:
    return resolve_assignments(values, "set", MergeColumns(SCHEMA, columns, "t", "s"), CONTEXT)


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


@pytest.mark.parametrize("key", ["st.x", "t.st.x", "ST.`X`", "t.st.X"])
def test_a_member_of_a_struct_is_set_by_its_path(key: str) -> None:
    assert set_of({key: "1", "id": "2"}) == {"st": Members({"x": "1"}), "id": "2"}


AMBIGUOUS = Struct((Field("a", Struct((Field("b", "long"),))), Field("a.b", "long"), Field("b", "long")))


@pytest.mark.parametrize(
    ("key", "alias", "wanted"),
    [
        ("a.b", "t", {"a": Members({"b": 1})}),
        ("`a`.`b`", "t", {"a": Members({"b": 1})}),
        ("t.a.b", "t", {"a": Members({"b": 1})}),
        ("`a.b`", "t", {"a.b": 1}),
        ("t.`a.b`", "t", {"a.b": 1}),
        ("a.b", "a", {"b": 1}),
        ("a.a.b", "a", {"a": Members({"b": 1})}),
        ("a.`a.b`", "a", {"a.b": 1}),
    ],
)
def test_a_member_and_a_column_with_a_dot_in_its_name_are_told_apart(key: str, alias: str, wanted: Any) -> None:
    assert (
        resolve_assignments({key: 1}, "set", MergeColumns(AMBIGUOUS, (), alias), replace(CONTEXT, schema=AMBIGUOUS))
        == wanted
    )


def test_a_struct_that_is_called_as_the_table_is_has_its_members() -> None:
    sides = MergeColumns(SCHEMA, (), "st")
    assert resolve_assignments({"st.x": 1, "st.id": 2}, "set", sides, CONTEXT) == {"st": Members({"x": 1}), "id": 2}


def test_a_member_that_is_set_adds_no_column_with_a_dot_in_its_name() -> None:
    given = Struct((Field("a.b", "long"), Field("a", Struct((Field("c", "long"),)))))
    table = Struct(AMBIGUOUS.fields[:1])
    sides = MergeColumns(table, tuple(given.names), "t", "s", described=given)
    assert evolve_by_clause({"a.b": "1"}, table, sides, lambda was, rows: was) == table
    assert evolve_by_clause({"`a.b`": "1"}, table, sides, lambda was, rows: was).names == ("a", "a.b")


@pytest.mark.parametrize("key", ["st.nope", "st.x.y", "id.x"])
def test_a_member_that_the_struct_lacks_is_refused(key: str) -> None:
    with pytest.raises(errors.UnknownColumn):
        set_of({key: "1"})


@pytest.mark.parametrize(
    "values",
    [{}, {"id": "1", "ID": "2"}, {"name": "1", "t.Name": "2"}, {"st": "1", "st.x": "2"}, {"st.x": "1", "t.st.X": "2"}],
)
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
    assert refused.value.expected == "Name"
    assert refused.value.found == "id, a b, a.b, st, more"


# -- columns that a MERGE may add --------------------------------------------------------------------------------------

INNER = Struct((Field("x", "integer"), Field("y", "date")))
SOURCE = Struct((Field("ID", "integer"), Field("st", Struct((Field("Y", "date"),))), Field("new", "long")))
TARGET = Struct((Field("id", "long"), Field("kept", "string"), Field("st", INNER)))


def as_it_was(columns: Struct, rows: Struct) -> Struct:
    """Of a table whose types never widen."""
    return columns


def evolving() -> MergeColumns:
    plain = MergeColumns(TARGET, SOURCE.names, "t", "s", described=SOURCE)
    return replace(plain, evolved=evolve_by_clause(None, TARGET, plain, as_it_was))


def test_a_star_adds_all_that_only_the_source_has() -> None:
    assert evolve_by_clause(None, TARGET, evolving(), as_it_was) == Struct((*TARGET.fields, Field("new", "long")))


@pytest.mark.parametrize(
    ("key", "added"),
    [("new", ["new"]), ("t.NEW", ["new"]), ("id", []), ("nothing", []), ("st.y", []), ("st.nothing", []), ("", [])],
)
def test_a_key_adds_what_the_source_has_of_its_name(key: str, added: list[str]) -> None:
    assert [
        name for name in evolve_by_clause({key: "1"}, TARGET, evolving(), as_it_was).names if name not in TARGET.names
    ] == added


def test_a_key_adds_a_member() -> None:
    table = Struct((Field("st", Struct((Field("x", "integer"),))),))
    sides = MergeColumns(table, SOURCE.names, described=SOURCE)
    inner = evolve_by_clause({"st.y": "1"}, table, sides, as_it_was).field("st").type
    assert inner == Struct((Field("x", "integer"), Field("Y", "date")))


@pytest.mark.parametrize(
    ("key", "seen"), [("id", ["ID"]), ("st.y", ["st"]), ("nothing", []), (None, ["ID", "st", "new"])]
)
def test_what_a_clause_sets_may_widen_what_is_there(key: str | None, seen: list[str]) -> None:
    asked: list[str] = []
    evolve_by_clause(
        None if key is None else {key: "1"}, TARGET, evolving(), lambda was, rows: asked.extend(rows.names) or was
    )
    assert asked == seen


def test_a_star_that_evolves_keeps_what_the_source_lacks_in_an_update_only() -> None:
    updated = resolve_assignments(None, "set", evolving(), CONTEXT, keeps=True)
    member = Members({"y": SourceColumn("st", ("Y",))}, SourceColumn("st"))
    assert updated == {"id": SourceColumn("ID"), "st": member, "new": SourceColumn("new")}
    inserted = resolve_assignments(None, "set", evolving(), CONTEXT)
    assert inserted == {"id": SourceColumn("ID"), "st": SourceColumn("st"), "new": SourceColumn("new")}


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
