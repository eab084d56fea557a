"""Evolution: how rows fit a table's columns, and what the table becomes where they may add to it."""

from __future__ import annotations

import pytest

from anabranch._protocol.schema.evolution import all_nullable, evolve_schema, misfit, sql_name
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch.errors import SchemaMismatch


def struct(**types: DataType) -> Struct:
    return Struct(tuple(Field(name, type_) for name, type_ in types.items()))


PERSON = struct(name="string", age="integer")


def test_new_columns_stand_at_the_end_in_the_order_of_the_rows() -> None:
    table, rows = struct(id="long", x="string"), struct(b="date", X="string", a="integer")
    assert evolve_schema(table, rows, "t") == struct(id="long", x="string", b="date", a="integer")


def test_nothing_changes_where_the_rows_have_no_new_column() -> None:
    table = Struct((Field("id", "long", nullable=False, metadata={"comment": "key"}), Field("p", PERSON)))
    assert evolve_schema(table, struct(ID="integer", P=struct(AGE="short")), "t") == table


@pytest.mark.parametrize(
    ("table", "rows", "after"),
    [
        (PERSON, struct(age="integer", city="string"), struct(name="string", age="integer", city="string")),
        (Array(PERSON), Array(struct(city="string")), Array(struct(name="string", age="integer", city="string"))),
        (
            Map("date", PERSON),
            Map("date", struct(x="long")),
            Map("date", struct(name="string", age="integer", x="long")),
        ),
        (struct(a=struct(b="long")), struct(A=struct(c="long")), struct(a=struct(b="long", c="long"))),
        (Array(Array(struct(a="long"))), Array(Array(struct(b="long"))), Array(Array(struct(a="long", b="long")))),
    ],
    ids=str,
)
def test_members_are_added_at_any_depth(table: DataType, rows: DataType, after: DataType) -> None:
    assert evolve_schema(struct(c=table), struct(c=rows), "t") == struct(c=after)


def test_what_the_table_declares_is_kept_where_members_are_added() -> None:
    table = Struct((Field("p", Struct((Field("a", "long", False),)), False, {"comment": "kept"}),))
    after = evolve_schema(table, struct(p=struct(b="long")), "t").field("p")
    assert (after.nullable, after.metadata) == (False, {"comment": "kept"})
    assert isinstance(after.type, Struct)
    assert after.type.fields == (Field("a", "long", False), Field("b", "long"))


@pytest.mark.parametrize(
    ("table", "rows", "path", "expected", "found"),
    [
        ("integer", "long", "c", "int", "bigint"),
        ("string", "integer", "c", "string", "int"),
        (PERSON, struct(age="string"), "c.age", "int", "string"),
        (Array(PERSON), Array(struct(AGE="long")), "c.element.age", "int", "bigint"),
        (Map("string", PERSON), Map("long", PERSON), "c.key", "string", "bigint"),
        (Map("string", PERSON), Map("string", struct(age="date")), "c.value.age", "int", "date"),
        (PERSON, "string", "c", "struct<name:string,age:int>", "string"),
        ("string", Array("string"), "c", "string", "array<string>"),
        ("decimal(10,2)", "decimal(11,2)", "c", "decimal(10,2)", "decimal(11,2)"),
    ],
    ids=str,
)
def test_another_type_is_refused_by_full_path_and_both_types(
    table: DataType, rows: DataType, path: str, expected: str, found: str
) -> None:
    with pytest.raises(SchemaMismatch) as refused:
        evolve_schema(struct(c=table), struct(c=rows), "t")
    error = refused.value
    assert (error.column, error.expected, error.found, error.table) == (path, expected, found, "t")
    assert "cast" in error.message


def test_types_may_be_left_to_whoever_fits_the_values() -> None:
    assert evolve_schema(struct(c="integer"), struct(c="string", d="long"), None) == struct(c="integer", d="long")


def test_a_narrower_type_fits_and_changes_nothing() -> None:
    table = struct(a="long", b="double", c="decimal(12,2)", d=Array("long"))
    rows = struct(a="byte", b="float", c="integer", d=Array("integer"))
    assert evolve_schema(table, rows, "t") == table


def test_members_that_the_values_lack_fit_unless_they_must_be_whole() -> None:
    assert misfit(struct(age="integer"), PERSON, "p") is None
    found = misfit(struct(age="integer"), PERSON, "p", whole=True)
    assert found is not None
    assert (found.column, found.expected, found.found) == ("p.name", "name, age", "age")


def test_a_member_too_many_is_a_misfit() -> None:
    found = misfit(Array(struct(city="string")), Array(PERSON), "p")
    assert found is not None
    assert (found.column, found.expected, found.found) == ("p.element.city", "name, age", "city")


def test_rows_promise_no_not_null() -> None:
    inner = Struct((Field("a", "long", False),))
    given = Struct((Field("s", inner, False), Field("l", Array(inner, False)), Field("m", Map("string", inner, False))))
    plain = struct(a="long")
    assert all_nullable(given) == struct(s=plain, l=Array(plain), m=Map("string", plain))


def test_types_are_spelled_as_sql_does() -> None:
    nested = Map("short", Array(struct(a="byte", b="decimal(3,1)")))
    assert sql_name(nested) == "map<smallint,array<struct<a:tinyint,b:decimal(3,1)>>>"
