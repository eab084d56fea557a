"""Which assigned values every engine computes alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from math import inf, nan
from zoneinfo import ZoneInfo

import pytest

from anabranch.protocol.plain_values import (
    Assigned,
    Computed,
    Constant,
    OldValue,
    PlainValue,
    are_plain,
    are_plain_rows,
)
from anabranch.protocol.rules.table_rules import LENGTH
from anabranch.protocol.schema.types import Field, Struct

KINDS = {
    **{"b": "byte", "i": "integer", "l": "long", "f": "float", "d": "double", "n": "decimal(5,2)", "w": "string"},
    **{"t": "boolean", "day": "date", "at": "timestamp"},
}
SHORT = Field("short", "string", metadata={LENGTH: "varchar(3)"})
SCHEMA = Struct((*(Field(name, kind) for name, kind in KINDS.items()), SHORT, Field("s", Struct((SHORT,)))))


def is_plain(column: str, value: PlainValue) -> bool:
    return are_plain({column: Assigned("", value)}, SCHEMA)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("i", 5),
        ("b", 5),
        ("l", -(2**63)),
        ("f", 2**24),
        ("d", 2**53),
        ("d", Decimal("0.1")),
        ("d", 1e300),
        ("n", 999),
        ("n", Decimal("-0.25")),
        ("w", "5"),
        ("t", True),
        ("day", dt.date(2020, 1, 1)),
        ("at", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        *((name, None) for name in KINDS),
    ],
)
def test_a_literal_of_a_columns_own_kind_is_plain(column: str, value: object) -> None:
    assert is_plain(column, Constant(value))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("i", True),
        ("i", Decimal("1.5")),
        ("l", 2**63),
        ("l", 1.0),
        ("f", 2**24 + 1),
        ("f", Decimal("0.1")),
        ("d", 2**53 + 1),
        ("d", Decimal("0.1234567890123456")),
        ("d", inf),
        ("d", nan),
        ("n", 1000),
        ("n", Decimal("0.125")),
        ("w", 5),
        ("t", 1),
        ("t", "true"),
        ("day", "2020-01-01"),
        ("at", dt.date(2020, 1, 1)),
        ("at", dt.datetime(2020, 1, 1)),
        ("at", dt.datetime(2020, 1, 1, tzinfo=ZoneInfo("Europe/Paris"))),
        ("day", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        ("short", "abc"),
        ("short", None),
        ("s", None),
    ],
)
def test_what_would_have_to_be_changed_for_its_column_is_not(column: str, value: object) -> None:
    assert not is_plain(column, Constant(value))  # type: ignore[arg-type]


def test_another_column_is_plain_where_both_are_of_one_type_without_a_length() -> None:
    assert is_plain("w", OldValue("w"))
    assert not is_plain("w", OldValue("short")), "what is short may come with blanks"
    assert not is_plain("short", OldValue("w"))
    assert not is_plain("l", OldValue("i"))


@pytest.mark.parametrize(
    ("column", "value"),
    [("i", Computed("i", "+", 1)), ("d", Computed("d", "*", Decimal("1.1"))), ("d", Computed("d", "-", 1))],
)
def test_a_number_and_a_column_of_its_own_type_are_plain(column: str, value: PlainValue) -> None:
    assert is_plain(column, value)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("l", Computed("i", "+", 1)),
        ("i", Computed("i", "+", Decimal("1.5"))),
        ("l", Computed("l", "+", 2**63)),
        ("f", Computed("f", "+", 1)),
        ("n", Computed("n", "+", 1)),
        ("d", Computed("d", "+", 2**53 + 1)),
        ("w", Computed("w", "+", 1)),
        ("day", Computed("day", "+", 1)),
    ],
)
def test_what_has_another_type_first_is_not(column: str, value: PlainValue) -> None:
    assert not is_plain(column, value)


def test_one_value_of_which_nothing_is_known_spoils_all() -> None:
    assert not are_plain({"i": Assigned("5", Constant(5)), "l": "id + 1"}, SCHEMA)
    assert are_plain({}, SCHEMA)


# -- rows of VALUES ----------------------------------------------------------------------------------------------------


def are_rows_of(kind: str, *values: object) -> bool:
    return are_plain_rows([[Constant(value)] for value in values], [Field("x", kind)])  # type: ignore[arg-type]


def test_literals_of_one_kind_are_plain_rows() -> None:
    assert are_rows_of("long", 1, None, -5)
    assert are_rows_of("decimal(9,2)", Decimal("1.5"), Decimal("9999999.99"))
    assert are_rows_of("string", None, None)
    assert are_plain_rows([[Constant(1), Constant("a")]], [Field("id", "integer"), Field("w", "string")])


@pytest.mark.parametrize("kind", ["double", "decimal(38,2)"])
def test_literals_of_several_kinds_become_one_first_and_are_not_plain(kind: str) -> None:
    assert are_rows_of(kind, 1, 2)
    assert are_rows_of(kind, Decimal("1.5"), None)
    assert not are_rows_of(kind, 1, Decimal("1.5"))


def test_decimals_that_are_plain_have_a_common_type() -> None:
    """Of 38 digits at most, as those of a decimal of Spark's."""
    longest = {
        "decimal(38,18)": (Decimal(10**20 - 1), Decimal("1E-18")),
        "double": (Decimal(10**15 - 1), Decimal("1E-22")),
    }
    for kind, (whole, tiny) in longest.items():
        assert are_rows_of(kind, whole, tiny)
        assert whole.adjusted() + 1 - int(tiny.as_tuple().exponent) <= 38
        assert not are_rows_of(kind, whole * 10 + 1, tiny)
        assert not are_rows_of(kind, whole, tiny / 10)


def test_one_literal_that_is_not_plain_makes_the_rows_so() -> None:
    assert not are_rows_of("long", 1, "1")
    assert not are_plain_rows([[Constant("a")]], [SHORT])
