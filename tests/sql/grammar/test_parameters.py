"""Parameters are values, and never become a text that they could change."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from anabranch._catalog.table_names import path_in
from anabranch._sql import reading as parsing
from anabranch._sql.grammar.parameters import literal
from anabranch.errors import InvalidOption

_WEST = dt.timezone(dt.timedelta(hours=-12))


def where(text: str, args: Any) -> str:
    return parsing.statement(f"DELETE FROM delta.`/t` WHERE {text}", args, path_in).where.text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (False, "FALSE"),
        (0, "0"),
        (-7, "(-7)"),
        (1 << 31, "2147483648L"),
        (-(1 << 63), "(-9223372036854775807L - 1L)"),
        (1.5, "1.5D"),
        (-1e300, "(-1e+300D)"),
        (float("nan"), "CAST('NaN' AS DOUBLE)"),
        (float("-inf"), "CAST('-Infinity' AS DOUBLE)"),
        (Decimal("1.50"), "1.50BD"),
        (Decimal("-1E+3"), "(-1000BD)"),
        ("plain", "'plain'"),
        ("O'Brien", "CAST(X'4F27427269656E' AS STRING)"),
        ("a\\", "CAST(X'615C' AS STRING)"),
        ("", "''"),
        (b"\x00\xff", "X'00FF'"),
        (dt.date(999, 1, 2), "DATE'0999-01-02'"),
        (dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC), "TIMESTAMP'2020-01-02 03:00:00.000000 UTC'"),
    ],
)
def test_a_value_is_a_literal(value: Any, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, object(), Decimal("NaN"), 1 << 64, "\ud800", dt.datetime.max.replace(tzinfo=_WEST)]
)
def test_what_has_no_literal_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOption):
        literal(value)


@given(st.text())
def test_no_text_ends_its_literal_early(value: str) -> None:
    try:
        tree = sqlglot.parse_one(f"SELECT {literal(value)}", dialect="databricks")
    except InvalidOption:
        return  # half of a character, which no engine takes
    (only,) = tree.expressions
    assert only.key in ("literal", "cast")
    if only.key == "literal":
        assert only.this == value


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_no_number_becomes_a_comment(value: int) -> None:
    assert "--" not in f"1 -{literal(value)}"


def test_names_and_places_are_bound() -> None:
    assert where("a = :x AND b = :y", {"x": 1, "y": "z"}) == "a = 1 AND b = 'z'"
    assert where("a = ? AND b = ?", [1, "z"]) == "a = 1 AND b = 'z'"


def test_what_stands_in_a_text_or_a_comment_is_no_parameter() -> None:
    assert where("a = ':x ?' /* :x */ AND b = :x", {"x": 1}) == "a = ':x ?' /* :x */ AND b = 1"


def test_a_value_that_looks_like_a_parameter_stays_a_value() -> None:
    assert where("a = :x AND b = :y", {"x": ":y", "y": 1}) == "a = ':y' AND b = 1"


def test_a_name_without_a_value_is_left_to_spark() -> None:
    assert where("a = CAST(:x AS STRUCT<b: INT>).b", {"x": None}) == "a = CAST(NULL AS STRUCT<b: INT>).b"


def test_places_count_over_the_whole_statement() -> None:
    text = "INSERT INTO delta.`/t` REPLACE WHERE d = ? SELECT ?, ?"
    found = parsing.statement(text, ["d", 1, 2], path_in)
    assert found.where.text == "d = 'd'"
    assert found.query.text == "SELECT ?, ?"
    assert found.query.arguments == (1, 2)


def test_a_query_gets_its_values_and_no_literals() -> None:
    found = parsing.statement("SELECT * FROM delta.`/t` WHERE a = :x", {"x": "'"}, path_in)
    assert found.text.endswith("a = :x")
    assert found.arguments == {"x": "'"}


def test_the_values_are_a_dict_or_a_list() -> None:
    with pytest.raises(InvalidOption):
        where("a = ?", "x")
