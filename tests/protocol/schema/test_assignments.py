"""Assignments to columns and to members of structs."""

from __future__ import annotations

import pytest

from anabranch._protocol.schema.assignments import (
    Members,
    Path,
    build_assignments,
    find_path,
    leaves,
    map_values,
    whole_structs,
)
from anabranch._protocol.schema.types import Array, Field, Struct
from anabranch.errors import InvalidOption

DEEP = Struct((Field("A", Struct((Field("b.c", Struct((Field("D", "long"),))),))), Field("l", Array(Struct()))))


def pairs(*paths: Path) -> list[tuple[str, Path, int]]:
    return [(".".join(path), path, i) for i, path in enumerate(paths)]


def test_members_of_one_struct_are_gathered_and_come_apart_again() -> None:
    paths: list[Path] = [("s", "a"), ("x",), ("s", "t", "b"), ("s", "t", "c")]
    found = build_assignments(pairs(*paths), "set")
    assert found == {"s": Members({"a": 0, "t": Members({"b": 2, "c": 3})}), "x": 1}
    assert sorted(leaves(found), key=lambda leaf: int(leaf[1])) == list(zip(paths, range(4), strict=True))
    assert map_values(found, lambda value: value * 10) == {
        "s": Members({"a": 0, "t": Members({"b": 20, "c": 30})}),
        "x": 10,
    }


def test_what_members_are_taken_from_stays_where_their_values_change() -> None:
    inner = Members({"b": 2}, whole="u.t")
    found = map_values(
        {"s": Members({"a": 1, "t": inner}, whole="u"), "r": Members({"x": 3})}, lambda value: value * 10
    )
    assert dict(whole_structs(found)) == {("s",): "u", ("s", "t"): "u.t"}
    assert dict(leaves(found)) == {("s", "a"): 10, ("s", "t", "b"): 20, ("r", "x"): 30}


@pytest.mark.parametrize(
    "paths",
    [
        [("x",), ("x",)],
        [("s", "a"), ("s", "a")],
        [("s",), ("s", "a")],
        [("s", "a"), ("s",)],
        [("s", "t", "b"), ("s", "t")],
        [("s", "t"), ("s", "t", "b")],
    ],
)
def test_nothing_is_set_twice_nor_whole_and_in_part(paths: list[Path]) -> None:
    with pytest.raises(InvalidOption) as refused:
        build_assignments(pairs(*paths), "values")
    assert (refused.value.option, refused.value.value) == ("values", ".".join(paths[1]))


def test_a_dict_of_the_user_is_a_value_like_any_other() -> None:
    with pytest.raises(InvalidOption):
        build_assignments([("s", ("s",), {}), ("s.a", ("s", "a"), 1)], "set")
    assert build_assignments([("s", ("s",), {})], "set") == {"s": {}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("a",), ("A",)),
        (("a", "B.C", "d"), ("A", "b.c", "D")),
        (("a", "b"), None),
        (("l", "element"), None),
        (("a", "b.c", "d", "e"), None),
        ((), None),
    ],
)
def test_a_path_is_spelled_as_the_schema_does(path: Path, found: Path | None) -> None:
    assert find_path(path, DEEP) == found
