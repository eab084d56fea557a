"""Which columns get statistics, and which a table may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.schema.leaves import (
    STATS_COLUMNS,
    check_stats_columns,
    column_list,
    format_column_list,
    leaf_at,
    leaves_of,
    leaves_with_stats,
)
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch.errors import InvalidProperty

INNER = Struct((Field("b", "long"), Field("c", "string")))
SCHEMA = Struct(
    (
        Field("p", "integer"),
        Field("S", INNER),
        Field("s.b", "date"),
        Field("bin", "binary"),
        Field("flag", "boolean"),
        Field("list", Array("long")),
        Field("map", Map("string", "long")),
        Field("deep", Struct((Field("x", INNER), Field("bytes", "binary")))),
        Field("n", "decimal(5,2)"),
    )
)


def test_leaves_stand_in_the_order_of_the_schema_and_a_list_is_one() -> None:
    assert [".".join(leaf.names) for leaf in leaves_of(SCHEMA.fields)] == (
        ["p", "S.b", "S.c", "s.b", "bin", "flag", "list", "map", "deep.x.b", "deep.x.c", "deep.bytes", "n"]
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("n", ("n",)),
        (("s", "B"), ("S", "b")),
        ("s.b", ("s.b",)),
        (("deep", "x", "c"), ("deep", "x", "c")),
        ("S", None),
        (("deep", "x"), None),
        (("n", "x"), None),
        ("none", None),
    ],
)
def test_a_leaf_is_found_by_its_path_and_a_dot_in_a_name_is_no_path(name: Any, found: Any) -> None:
    leaf = leaf_at(SCHEMA, name)
    assert (None if leaf is None else leaf.names) == found


@given(st.lists(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3), max_size=4))
def test_any_names_can_be_listed_in_backticks(paths: list[list[str]]) -> None:
    text = " , ".join(".".join("`" + name.replace("`", "``") + "`" for name in path) for path in paths)
    assert column_list(text) == tuple(map(tuple, paths))
    assert column_list(format_column_list(paths)) == tuple(map(tuple, paths))


def test_a_struct_stands_for_all_that_it_holds() -> None:
    found = leaves_with_stats(SCHEMA, [("DEEP",), ("s", "b")], [])
    assert [".".join(leaf.names) for leaf in found] == ["S.b", "deep.x.b", "deep.x.c", "deep.bytes"]


@pytest.mark.parametrize("text", ["", "n, s", "`s.b`, s.b", "deep.x, n", "P"])
def test_columns_with_an_order_may_be_asked_for(text: str) -> None:
    check_stats_columns(SCHEMA, [], {STATS_COLUMNS: text})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("n, P", "p partitions the table"),
        ("nowhere", "no column nowhere"),
        ("s.z", "no column s.z"),
        ("n.x", "no column n.x"),
        ("bin", "bin is of the type binary"),
        ("flag", "flag is of the type boolean"),
        ("list", "list is of the type array"),
        ("map", "map is of the type map"),
        ("deep", "deep.bytes is of the type binary"),
        ("n, N", "n is named twice"),
        ("s, s.b", "S.b is named twice"),
    ],
)
def test_other_columns_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidProperty, match=reason):
        check_stats_columns(SCHEMA, ["p"], {STATS_COLUMNS: text})
