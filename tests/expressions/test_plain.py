"""Which texts are plain values, and which could mean something else to Spark."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from anabranch.expressions import assignment
from anabranch.expressions.context import Context
from anabranch.protocol.plain_values import Assigned, Computed, Constant, OldValue, PlainValue
from anabranch.protocol.schema.types import Field, Struct

SCHEMA = Struct(
    (
        Field("x", "long"),
        Field("two words", "double"),
        Field("user", "string"),
        Field("s", Struct((Field("x", "long"),))),
    )
)
CONTEXT = Context("t", SCHEMA, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "UTC", lambda names: True)


def plain(text: str, *names: str) -> PlainValue | None:
    found = assignment(text, CONTEXT, names)
    return found.plain if isinstance(found, Assigned) else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", Constant(5)),
        ("-5", Constant(-5)),
        ("(5)", Constant(5)),
        ("1.50", Constant(Decimal("1.50"))),
        ("'it''s'", None),
        ("'a b'", Constant("a b")),
        ("NULL", Constant(None)),
        ("true", Constant(True)),
        ("DATE '2024-02-29'", Constant(dt.date(2024, 2, 29))),
        ("TIMESTAMP '2024-01-01 00:00:00'", Constant(CONTEXT.now)),
        ("TIMESTAMP_LTZ '2024-01-01 00:00:00'", Constant(CONTEXT.now)),
        ("current_date()", Constant(dt.date(2024, 1, 1))),
        ("current_timestamp()", Constant(CONTEXT.now)),
        ("X", OldValue("x")),
        ("`two words`", OldValue("two words")),
        ("`user`", OldValue("user")),
        ("x + 1", Computed("x", "+", 1)),
        ("1 + x", Computed("x", "+", 1)),
        ("(x) * (-2)", Computed("x", "*", -2)),
        ("x - 1.5", Computed("x", "-", Decimal("1.5"))),
    ],
)
def test_a_literal_a_column_and_a_sum_are_plain(text: str, value: PlainValue | None) -> None:
    assert plain(text) == value


def test_the_tables_alias_says_nothing() -> None:
    assert plain("t.x + 1", "t") == Computed("x", "+", 1)


@pytest.mark.parametrize(
    "text",
    [
        *("1 - x", "x / 2", "x + y", "x + x", "x + 1 + 1", "x + NULL", "x + '1'", "s.x", "s.x + 1", "y", "abs(x)"),
        *(
            "+x",
            "+'a'",
            "x + +1",
            "1e3",
            "x + 1e3",
            "5 {# foo #}",
            "5 /* foo */",
            "user",
            "`user` || 'a'",
            "session_user",
        ),
        *("TIMESTAMPTZ '2020-01-01 00:00:00'", "TIMESTAMP(3) '2020-01-01 00:00:00'", "TIMESTAMP WITH TIME ZONE '2020'"),
        *("CAST('2020-01-01' AS DATE)", "'2020-01-01'::date", "CAST('2020-01-01 00:00:00' AS TIMESTAMP(3))"),
        *("CAST('2020-01-01' AS DATE DEFAULT 1 ON CONVERSION ERROR)", "CAST('2020-01-01' AS DATE FORMAT 'x')"),
        *("x % 2", "5L", "1.5D", "0x10", "CAST(5 AS BIGINT)", "-x", "x || 1", "CASE WHEN x > 1 THEN 1 END", "x y"),
    ],
)
def test_anything_else_is_left_to_spark(text: str) -> None:
    assert plain(text) is None


@pytest.mark.parametrize("text", ["TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59'"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_a_moment_that_python_has_not_in_every_zone_is_no_error(text: str, zone: str) -> None:
    found = assignment(text, replace(CONTEXT, zone=zone))
    assert isinstance(found, str) or isinstance(found.plain, Constant)


def test_the_text_stays_what_it_was() -> None:
    assert str(assignment("x + 1", CONTEXT)) == "x + 1"
