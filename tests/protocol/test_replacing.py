"""All columns of a table declared anew: what may differ, and what a column that stays keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from anabranch._protocol.replacing import paths_to_drop, replace_columns
from anabranch._protocol.rules.table_rules import DEFAULT
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct
from anabranch.errors import InvalidOption

TABLE = Struct(
    (
        Field("id", "long", False, {"delta.columnMapping.id": 1}),
        Field("s", "string", True, {"comment": "old", DEFAULT: "'x'"}),
        Field("n", Struct((Field("a", "integer", metadata={"k": 1}), Field("b", "string")))),
        Field("l", Array(Struct((Field("x", "integer"),)))),
        Field("m", Map("string", "integer", value_contains_null=False)),
    )
)


def no_objection(column: str, before: DataType, after: DataType) -> str | None:
    return None


def with_field(name: str, **changed: Any) -> Struct:
    return Struct(tuple(replace(each, **changed) if each.name == name else each for each in TABLE))


def test_order_comments_and_null_may_differ_and_the_rest_is_kept() -> None:
    n, ell, m = (TABLE.field(name) for name in "nlm")
    wanted = Struct((m, Field("S", "string", metadata={"comment": "new"}), Field("ID", "long"), ell, n))
    found = replace_columns(TABLE, wanted, no_objection)
    assert found.names == ("m", "s", "id", "l", "n")
    assert found.field("s").metadata == {"comment": "new", DEFAULT: "'x'"}
    assert found.field("id") == Field("id", "long", True, {"delta.columnMapping.id": 1})
    assert replace_columns(TABLE, Struct(tuple(TABLE)), no_objection) == TABLE


def test_what_is_nested_is_replaced_too() -> None:
    inner = Struct((Field("b", "string", metadata={"comment": "c"}), Field("a", "long"), Field("z", "date")))
    found = replace_columns(TABLE, with_field("n", type=inner), no_objection).field("n").type
    assert isinstance(found, Struct)
    assert found.names == ("b", "a", "z")
    assert found.field("a").type == "long"
    assert found.field("a").metadata["k"] == 1
    assert found.field("a").metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    deeper = replace_columns(TABLE, with_field("l", type=Array(Struct((Field("x", "long"),)))), no_objection)
    assert deeper.field("l").type.element.field("x").type == "long"  # type: ignore[union-attr]
    loosened = replace_columns(TABLE, with_field("m", type=Map("string", "integer")), no_objection)
    assert loosened.field("m").type == Map("string", "integer")


def test_columns_that_go_are_told() -> None:
    inner = Struct((Field("a", "integer"),))
    assert list(paths_to_drop(TABLE, with_field("n", type=inner))) == [("n", "b")]
    assert list(paths_to_drop(TABLE, Struct((TABLE.field("id"),)))) == [("s",), ("n",), ("l",), ("m",)]
    element = with_field("l", type=Array(Struct((Field("y", "integer"),))))
    assert list(paths_to_drop(TABLE, element)) == [("l", "element", "x")]


@pytest.mark.parametrize(
    ("wanted", "column"),
    [
        (with_field("s", nullable=False), "s"),
        (with_field("s", type="integer"), "s"),
        (with_field("n", type="string"), "n"),
        (with_field("l", type=Array(Struct((Field("x", "integer"),)), contains_null=False)), "l"),
        (with_field("s", metadata={DEFAULT: "'y'"}), "s"),
        (with_field("s", metadata={LENGTH: "varchar(3)"}), "s"),
        (with_field("l", type=Array(Struct((Field("y", "integer"),)))), "l.element.y"),
        (Struct((*TABLE.fields[1:], Field("new", "long"))), "new"),
        (Struct((*TABLE, Field("new", "long", False))), "new"),
        (Struct((*TABLE, Field("new", "long", metadata={DEFAULT: "1"}))), "new"),
        (Struct((*TABLE, Field("ID", "long"))), "id"),
    ],
)
def test_what_would_change_rows_or_could_be_a_rename_is_refused(wanted: Struct, column: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        replace_columns(TABLE, wanted, no_objection)
    assert column in (refused.value.facts["value"], refused.value.facts.get("column"))


def test_a_table_may_object_to_another_type() -> None:
    with pytest.raises(InvalidOption, match="first"):
        replace_columns(
            TABLE, with_field("n", type=Struct((Field("a", "long"), Field("b", "string")))), lambda *_: "first"
        )
