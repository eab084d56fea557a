"""No text is taken for an expression with a name behind it."""

from __future__ import annotations

import datetime as dt

import pytest

from anabranch._expressions import Context, assignment, condition
from anabranch._expressions.aliases import prevent_alias
from anabranch._expressions.dialect import TokenizedText
from anabranch._protocol.schema.types import Field, Struct
from anabranch.errors import UnreadableExpression

CONTEXT = Context("t", Struct((Field("id", "long"),)), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "UTC", lambda _: True)
WHOLE = [
    *("id = 1", "id = x", "true", "id IS NULL", "id IS NOT NULL", "NOT flag", "a AND b", "t.id", "f(id)", "a[1] = b"),
    *("name = 'x'", "x IS DISTINCT FROM y", "day = DATE '2026-01-01'", "x LIKE y", "id IN (1, 2)", "`and`", "10L = id"),
    *('name = "x"', "name = 'x' 'y'", 'name LIKE "x"'),
]
IN_PARENTHESES = [
    *("CASE WHEN id = 1 THEN true END", "ts > now() - INTERVAL 1 DAY", "id = 1 x", "id = 1 AS x", "id = 1 `AND`"),
    *("f(id) x", "name = 'x' nad", "id nand"),
    *("name = 'x' \"y\"", 'id = 1 "x"', 'f(id) "x"'),  # a name, where double quotes are those of names
]


@pytest.mark.parametrize("text", WHOLE)
def test_an_expression_that_ends_by_itself_stays(text: str) -> None:
    assert prevent_alias(TokenizedText(text), "t") == text


@pytest.mark.parametrize("text", IN_PARENTHESES)
def test_where_the_last_word_may_be_a_name_no_name_can_stand(text: str) -> None:
    assert prevent_alias(TokenizedText(text), "t") == f"({text})"


def test_a_comment_at_the_end_hides_no_parenthesis() -> None:
    assert prevent_alias(TokenizedText("id = 1 x -- why"), "t") == "(id = 1 x -- why\n)"


@pytest.mark.parametrize("text", ["id = 1 and", "id = 1 OR", "(id = 1) AND -- id = 2"])
def test_half_a_condition_is_refused(text: str) -> None:
    for read in (condition, assignment):
        with pytest.raises(UnreadableExpression, match="a syntax error at its end"):
            read(text, CONTEXT)
