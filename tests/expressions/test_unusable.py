"""A condition that cannot be used without a session says what is wrong with it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import anabranch
from anabranch.errors import InvalidCondition, UnreadableExpression


@pytest.fixture(scope="module")
def path() -> str:
    place = "memory://unusable/t"
    anabranch.append(place, pa.table({"id": [1], "city": ["a"]}))
    return place


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("idd = 1", "idd is none of its columns; it has id, city."),
        ("id = 1 AND cty = 'x' OR cty = 'y' OR foo.bar > 1", "cty, foo.bar are none of its columns; it has id, city."),
        ("id.x = 1", "id.x is none of its columns; it has id, city."),
    ],
)
@pytest.mark.parametrize("verb", [anabranch.files, anabranch.explain])
def test_names_that_are_no_columns_are_named(path: str, where: str, says: str, verb: object) -> None:
    with pytest.raises(InvalidCondition) as raised:
        verb(path, where)  # type: ignore[operator]
    assert type(raised.value) is InvalidCondition
    assert raised.value.reason == says


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("id = = 1", "it has a syntax error at or near '='."),
        ("id = 1 AND", "it has a syntax error at its end."),
        ("(id = 1", "it has a syntax error at its end."),
        ("where id = 1", "it has a syntax error at or near 'id'."),
    ],
)
def test_a_syntax_error_says_where(path: str, where: str, says: str) -> None:
    with pytest.raises(UnreadableExpression) as raised:
        anabranch.files(path, where)
    assert raised.value.reason == says
