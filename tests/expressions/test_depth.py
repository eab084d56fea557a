"""Long and deep conditions: what is long is understood, what is too deep is refused, and nothing overflows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import anabranch
from anabranch._expressions import Context, condition, conjuncts
from anabranch._expressions.blocks import block_predicate
from anabranch._expressions.depth import MOST_NESTED, shallow
from anabranch._expressions.dialect import TokenizedText
from anabranch._expressions.printed_columns import column_condition
from anabranch._protocol.expressions.computation import computation_over
from anabranch._protocol.predicates import And, Compare, Or, Unknown
from anabranch._protocol.schema.types import Field, Struct
from anabranch.errors import InvalidCondition, InvalidProperty, NotBuilt
from tests.support.tiers import examples

SCHEMA = Struct((Field("id", "long"), Field("s", "string")))
CONTEXT = Context("/t", SCHEMA, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)


def mixed(levels: int) -> str:
    return "(id = 1 OR (id = 2 AND " * levels + "id = 3" + "))" * levels


class Printed:
    """What PySpark prints of a Column."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f"Column<'{self.text}'>"


@pytest.mark.slow
@pytest.mark.parametrize(("word", "kind", "op"), [("OR", Or, "="), ("AND", And, "!=")])
def test_a_chain_of_thousands_is_understood_part_by_part(word: str, kind: type, op: str) -> None:
    parts = examples(3000, 1200)
    text = f" {word} ".join(f"id {op} {i}" for i in range(parts))
    known = condition(text, CONTEXT).predicate
    assert known == kind(tuple(Compare("id", op, i) for i in range(parts)))
    assert computation_over(text, SCHEMA).is_condition
    assert len(conjuncts(text, CONTEXT)) == (parts if word == "AND" else 1)


@pytest.mark.slow
def test_a_printed_chain_of_thousands_is_understood_too() -> None:
    text = "=(id, 0)"
    for i in range(1, 5000):
        text = f"or({text}, =(id, {i}))"
    known = column_condition(Printed(text), CONTEXT).predicate
    assert known == Or(tuple(Compare("id", "=", i) for i in range(5000)))
    assert column_condition(Printed("not(" * 3000 + "=(id, 1)" + ")" * 3000), CONTEXT).row_local
    found = column_condition(Printed(text.replace("or(", "and(")), CONTEXT).computation
    assert found is not None
    assert found.is_condition


@pytest.mark.parametrize("text", ["and(=(id, 1)", "and(=(id, 1), )", "=(id 1)", "(id)", "id id", "", "=(id,, 1)", ")"])
def test_a_print_that_is_not_put_together_so_says_nothing(text: str) -> None:
    assert column_condition(Printed(text), CONTEXT).predicate == Unknown()


def test_parentheses_around_parentheses_say_nothing() -> None:
    text = "(" * 1000 + "id = 1" + ")" * 1000
    assert shallow(TokenizedText(text), "/t").text == "(id = 1)"
    assert condition(f"{text} AND {text}", CONTEXT).predicate == And((Compare("id", "=", 1), Compare("id", "=", 1)))
    assert condition(text, CONTEXT).text == text
    few = "((id = 1))"
    assert shallow(TokenizedText(few), "/t").text == few


@pytest.mark.parametrize(
    "kept",
    ["id IN ((1, 2))", "f((id, 1))", "struct((id), (s))", "((1, 2), 3) IN ((id, 2), 3)", "'((((' = s", "`((` = 1"],
)
def test_no_other_parenthesis_is_left_out(kept: str) -> None:
    text = f"{'(' * 30}id = 1{')' * 30} AND {kept}"
    assert shallow(TokenizedText(text), "/t").text == f"(id = 1) AND {kept}"


DEEP: dict[str, str] = {
    "AND in OR": mixed(1000),
    "calls": "abs(" * 1000 + "id" + ")" * 1000 + " = 1",
    "NOT": "NOT " * 1000 + "id = 1",
    "lists": "array(" * 1000 + "id" + ")" * 1000 + "[0] = 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(InvalidCondition, match=f"more than {MOST_NESTED} deep"):
        condition(text, CONTEXT)


def long_or(i: int) -> str:
    return " OR ".join(f"id = {n}" for n in range(i))


@pytest.mark.parametrize("door", [anabranch.files, anabranch.explain])
@pytest.mark.slow
def test_every_door_skips_by_a_long_condition_and_refuses_a_deep_one(
    tmp_path: Path, door: Callable[[str, str], object]
) -> None:
    path = str(tmp_path / "t")
    for first in (0, 5000):
        anabranch.append(path, pa.table({"id": pa.array(range(first, first + 5), pa.int64()), "s": ["x"] * 5}))
    long = long_or(examples(2000, 600))
    assert door(path, long)
    assert anabranch.files(path, long).num_rows == 1
    deep = ["CASE WHEN id = 1 THEN " * 500 + "1" + " END" * 500 + " = 1", "- " * 1000 + "id = 1", mixed(60)]
    for text in [*deep, *DEEP.values()]:
        with pytest.raises(InvalidCondition):
            door(path, text)


@pytest.mark.slow
def test_a_check_is_held_however_long_it_is_and_refused_where_it_is_deep(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64()), "s": ["x"]})
    anabranch.append(tmp_path / "long", rows, properties={"delta.constraints.c": long_or(2000)})
    for text in [*DEEP.values(), mixed(150)]:
        with pytest.raises((InvalidCondition, NotBuilt, InvalidProperty)):
            anabranch.append(tmp_path / "deep", rows, properties={"delta.constraints.c": text})
    assert not (tmp_path / "deep" / "_delta_log").exists()


CASTS = ("::int", "::decimal(10,2)", "::array<int>", "::map<int, array<int>>")


@pytest.mark.parametrize(("cast", "times"), [*((cast, MOST_NESTED + 1) for cast in CASTS), ("::int", 500)])
def test_a_cast_of_casts_without_end_is_refused(cast: str, times: int) -> None:
    assert_refused(cast * times)


@pytest.mark.exhaustive("tests/expressions/test_depth.py::test_a_cast_of_casts_without_end_is_refused")
@pytest.mark.parametrize("cast", CASTS)
@pytest.mark.parametrize("times", [500, 5000])
def test_casts_of_casts_are_refused_however_many_there_are(cast: str, times: int) -> None:
    assert_refused(cast * times)


def assert_refused(casts: str) -> None:
    text = f"id{casts} IS NULL"
    with pytest.raises(InvalidCondition, match="nested"):
        condition(text, CONTEXT)
    assert block_predicate(text, ("t",), CONTEXT, sole=True) == Unknown()
    assert [predicate for _, predicate in conjuncts(text, CONTEXT)] == [Unknown()]


@pytest.mark.parametrize("times", [MOST_NESTED, 2 * MOST_NESTED])
def test_casts_side_by_side_are_not_deep(times: int) -> None:
    text = " OR ".join(["id::array<int>::string = 'a'"] * times)
    assert shallow(TokenizedText(text), "/t").text == text


@pytest.mark.parametrize("kind", ["array<", "map<int, ", "struct<a: "])
def test_a_cast_to_a_type_without_end_is_refused(kind: str) -> None:
    with pytest.raises(InvalidCondition, match="nested"):
        condition(f"CAST(id AS {kind * 500}int{'>' * 500}) IS NULL", CONTEXT)
