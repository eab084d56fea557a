"""A literal is compared with a column's values only where the result is Spark's, for every value of the column."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.predicates import compare_values
from anabranch._protocol.schema.types import Field
from anabranch._protocol.stats.literals import domain, limit, members

CHAR = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
VARCHAR = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}
COLLATED = {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}

RANGES = {"byte": 2**7, "short": 2**15, "integer": 2**31, "long": 2**63}

near = st.sampled_from([0, 1, 2**24, 2**31, 2**53, 2**63, 10**5, 10**20]).flatmap(
    lambda edge: st.sampled_from([-1, 1]).flatmap(
        lambda sign: st.integers(-2, 2).map(lambda offset: sign * edge + offset)
    )
)
numbers = st.one_of(
    near,
    near.map(float),
    st.builds(lambda n, s: Decimal(n).scaleb(-s), near, st.integers(0, 4)),
    st.sampled_from([nan, inf, -inf, 0.5, -0.0, Decimal("1E+5"), Decimal("0.1"), Decimal("1E-30"), True, "1"]),
)


def values_of(data_type: str) -> st.SearchStrategy[Any]:
    if data_type in RANGES:
        return near.filter(lambda n: -RANGES[data_type] <= n < RANGES[data_type])
    if data_type.startswith("decimal"):
        return near.filter(lambda n: abs(n) < 10**10).map(lambda n: Decimal(n).scaleb(-2))
    rounded = near.map(lambda n: float(np.float32(n)) if data_type == "float" else float(n))
    return rounded | st.sampled_from([nan, inf, -inf, 0.5, -0.0, float(np.float32(0.1))])


columns = st.sampled_from([*RANGES, "decimal(12,2)", "float", "double"])
cases = columns.flatmap(lambda name: st.tuples(st.just(name), values_of(name)))


def meetings(data_type: str, value: Any, literals: list[Any]) -> list[tuple[Any, list[Any]]]:
    """The column's value and the literals in each type that Spark may compare them in."""
    if any(isinstance(each, float) for each in [value, *literals]):
        doubles = (float(value), [float(each) for each in literals])
        singles = (value, [float(np.float32(each)) for each in literals])
        return [doubles, singles] if data_type == "float" and all(type(x) is int for x in literals) else [doubles]
    return [(value, literals)]


@pytest.mark.slow
@given(cases, st.sampled_from(["<", "<=", ">", ">="]), numbers)
def test_an_inequality_says_what_spark_says(case: tuple[str, Any], op: Any, literal: Any) -> None:
    data_type, value = case
    found = limit(Field("x", data_type), op, literal)
    if found is None:
        return
    for left, (right,) in meetings(data_type, value, [literal]):
        truth = found if isinstance(found, bool) else compare_values(value, found[0], found[1])  # type: ignore[arg-type]
        assert truth is compare_values(left, op, right)


@given(cases, st.lists(numbers, min_size=1, max_size=3))
def test_membership_says_what_spark_says(case: tuple[str, Any], literals: list[Any]) -> None:
    data_type, value = case
    found = members(Field("x", data_type), literals)
    if found is None:
        return
    assert found == sorted(found)
    for left, rights in meetings(data_type, value, literals):
        assert any(compare_values(value, "=", each) for each in found) == any(
            compare_values(left, "=", each) for each in rights
        )


@given(columns, numbers)
def test_points_are_values_of_the_column(data_type: str, literal: Any) -> None:
    field = Field("x", data_type)
    for op in ("<", ">="):
        found = limit(field, op, literal)
        if isinstance(found, tuple):
            assert pa.scalar(found[1], domain(field)).as_py() == found[1]
    for each in members(field, [literal]) or []:
        assert pa.scalar(each, domain(field)).as_py() == each


@pytest.mark.parametrize(
    ("data_type", "literal"),
    [
        ("long", 2.0**53),
        ("long", -(2.0**53) - 2),
        ("long", nan),
        ("integer", "1"),
        ("integer", True),
        ("boolean", 1),
        ("decimal(10,2)", 0.5),
        ("decimal(38,30)", 5),
        ("decimal(30,0)", Decimal("1E-9")),
        ("float", 2**24 + 1),
        ("double", nan),
        pytest.param("double", 10**400, id="beyond every double"),
        ("double", "1"),
        ("double", True),
        ("string", 1),
        ("string", "\ud800"),
        ("string", "a\udfff"),
        ("date", "2020-1-1"),
        ("date", datetime(2020, 1, 1)),
        ("timestamp", datetime(2020, 1, 1)),
        ("timestamp", "2020-01-01"),
        ("timestamp", date(2020, 1, 1)),
        ("timestamp_ntz", datetime(2020, 1, 1, tzinfo=UTC)),
        ("binary", b"x"),
        ("variant", 1),
    ],
)
def test_what_meets_in_a_type_that_may_round_is_not_compared(data_type: str, literal: Any) -> None:
    assert limit(Field("x", data_type), "<", literal) is None
    assert members(Field("x", data_type), [literal]) is None


@pytest.mark.parametrize(
    ("data_type", "literal"),
    [
        ("long", 2**53 + 1),
        ("long", 2**63 - 1),
        ("long", -(2**63)),
        ("long", Decimal(5)),
        ("integer", 5.0),
        ("decimal(18,2)", 5),
        ("decimal(38,0)", 5),
        ("float", 0.5),
        ("float", 2**24),
        ("double", Decimal("0.5")),
        ("string", "x"),
        ("boolean", False),
        ("date", date(2020, 1, 1)),
        ("timestamp", datetime(2020, 1, 1, tzinfo=UTC)),
        ("timestamp_ntz", datetime(2020, 1, 1)),
    ],
)
def test_what_meets_exactly_is_compared(data_type: str, literal: Any) -> None:
    assert limit(Field("x", data_type), "<", literal) == ("<", literal)
    assert members(Field("x", data_type), [literal]) == [literal]


def test_bounds_between_two_values_move_to_the_next_one() -> None:
    whole, cents = Field("x", "long"), Field("x", "decimal(5,2)")
    half = Decimal("2.5")
    assert [limit(whole, op, half) for op in ("<", "<=", ">", ">=")] == [("<", 3), ("<=", 2), (">", 2), (">=", 3)]
    assert limit(cents, "<", Decimal("-0.001")) == ("<", Decimal("0.00"))
    assert limit(cents, ">", Decimal("-0.001")) == (">", Decimal("-0.01"))
    assert members(whole, [half, 3, 1]) == [1, 3]
    assert members(cents, [Decimal("0.001")]) == []


def test_literals_beyond_every_value_decide_alone() -> None:
    for data_type, beyond in [("byte", 2**63), ("long", 10**25), ("decimal(5,2)", 1000)]:
        field = Field("x", data_type)
        assert [limit(field, op, beyond) for op in ("<", "<=", ">", ">=")] == [True, True, False, False]
        assert [limit(field, op, -beyond - 1) for op in ("<", "<=", ">", ">=")] == [False, False, True, True]
        assert members(field, [beyond]) == []


def test_one_double_makes_all_literals_doubles() -> None:
    assert members(Field("x", "long"), [2**53 + 1, 5.0]) is None
    assert members(Field("x", "integer"), [Decimal("1.00000000000000000001"), 5.0]) is None
    assert members(Field("x", "long"), [7, 5.0]) == [5, 7]


def test_strings_are_in_the_order_of_their_bytes() -> None:
    assert members(Field("s", "string"), ["\U0001f600", "\uffff", "a"]) == ["a", "\uffff", "\U0001f600"]


def test_dates_may_be_written_as_text() -> None:
    assert members(Field("d", "date"), ["2020-01-02", date(2020, 1, 1)]) == [date(2020, 1, 1), date(2020, 1, 2)]


@pytest.mark.parametrize("metadata", [CHAR, COLLATED])
def test_padded_and_collated_strings_have_no_bytewise_order(metadata: dict[str, Any]) -> None:
    assert domain(Field("s", "string", metadata=metadata)) is None
    assert limit(Field("s", "string", metadata=metadata), "<", "x") is None
    assert domain(Field("s", "string", metadata=VARCHAR)) == pa.string()
