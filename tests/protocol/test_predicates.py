"""Predicates: Spark's meaning, and the forms that keep it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.predicates import (
    Always,
    And,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
    columns_of,
    compare_values,
    date_of,
    holds,
    negate,
    normal_form,
    truth_form,
)

NUMBERS = [None, -1, 0, 2, Decimal("1.5"), -0.0, 0.0, 2.0, nan, inf]
TEXTS = [None, "", "a", "ab", "b", "\uffff", "\U0001f600"]
OPERATORS = ["=", "<=>", "<", "<=", ">", ">=", "!="]

leaves = st.one_of(
    st.builds(Always, st.booleans()),
    st.builds(Compare, st.just("n"), st.sampled_from(OPERATORS), st.sampled_from(NUMBERS)),
    st.builds(Compare, st.just("s"), st.sampled_from(OPERATORS), st.sampled_from(TEXTS)),
    st.builds(In, st.just("n"), st.lists(st.sampled_from(NUMBERS), max_size=3).map(tuple)),
    st.builds(IsNull, st.sampled_from("ns")),
    st.builds(StartsWith, st.just("s"), st.sampled_from(["", "a", "\uffff"])),
)


def grown(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.builds(Not, inner) | st.builds(And, several) | st.builds(Or, several)


predicates = st.recursive(leaves, grown, max_leaves=6)
rows = st.fixed_dictionaries({"n": st.sampled_from(NUMBERS), "s": st.sampled_from(TEXTS)})


def parts(predicate: Predicate) -> list[Predicate]:
    if isinstance(predicate, And | Or):
        return [predicate, *(part for each in predicate.ps for part in parts(each))]
    return [predicate, *(parts(predicate.p) if isinstance(predicate, Not) else [])]


@given(predicates, rows)
def test_the_normal_form_means_the_same_for_every_row(predicate: Predicate, row: dict[str, Any]) -> None:
    assert holds(normal_form(predicate), row) is holds(predicate, row)


@given(predicates, rows)
def test_a_negation_means_not(predicate: Predicate, row: dict[str, Any]) -> None:
    assert holds(negate(predicate), row) is holds(Not(predicate), row)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_every_comparison_keeps_its_meaning_in_every_form(op: Any) -> None:
    for value in NUMBERS:
        for held in NUMBERS:
            compare, within = Compare("n", op, value), In("n", (value,))
            for each in (compare, Not(compare), within, Not(within)):
                truth = holds(each, {"n": held})
                assert holds(normal_form(each), {"n": held}) is truth
                assert (holds(truth_form(each), {"n": held}) is True) == (truth is True)
                assert_leaves_follow_their_columns(truth_form(each), {"n": held})


@given(predicates)
def test_the_normal_form_negates_nothing_but_leaves(predicate: Predicate) -> None:
    inner = [each.p for each in parts(normal_form(predicate)) if isinstance(each, Not)]
    assert all(isinstance(each, In | IsNull | StartsWith) for each in inner)


@given(predicates, rows)
def test_the_truth_form_is_true_for_the_same_rows(predicate: Predicate, row: dict[str, Any]) -> None:
    assert (holds(truth_form(predicate), row) is True) == (holds(predicate, row) is True)


@given(predicates, rows)
def test_a_leaf_of_the_truth_form_is_null_exactly_where_its_column_is(
    predicate: Predicate, row: dict[str, Any]
) -> None:
    assert_leaves_follow_their_columns(truth_form(predicate), row)


def assert_leaves_follow_their_columns(predicate: Predicate, row: dict[str, Any]) -> None:
    for each in parts(predicate):
        if isinstance(each, Compare | In | StartsWith):
            assert (holds(each, row) is None) == (row[each.column] is None)


@given(predicates)
def test_a_truth_form_is_its_own(predicate: Predicate) -> None:
    assert truth_form(truth_form(predicate)) == truth_form(predicate)


def test_nothing_becomes_known_by_negation() -> None:
    assert normal_form(Not(Unknown())) == Unknown()
    assert normal_form(Not(And((Unknown(), Compare("x", "<", 1))))) == Or((Unknown(), Compare("x", ">=", 1)))


def test_what_is_unknown_has_no_truth_value() -> None:
    with pytest.raises(ValueError, match="Unknown"):
        holds(And((Always(False), Unknown())), {})


def test_columns_are_those_that_any_part_names() -> None:
    predicate = Not(Or((Compare("a", "=", 1), And((In("b", (1,)), IsNull("c"), StartsWith("d", "x"), Unknown())))))
    assert columns_of(predicate) == {"a", "b", "c", "d"}
    assert columns_of(Always(True)) == frozenset()


@pytest.mark.parametrize(
    ("left", "op", "right", "truth"),
    [
        (nan, "=", nan, True),
        (nan, ">", inf, True),
        (nan, "<=", nan, True),
        (nan, "!=", 1, True),
        (-0.0, "=", 0.0, True),
        (-0.0, "<", 0.0, False),
        (None, "=", None, None),
        (None, "<=>", None, True),
        (None, "<=>", 1, False),
        (1, "!=", None, None),
        (2**53 + 1, "=", float(2**53), True),
        (2**53 + 1, "=", Decimal(2**53), False),
        (Decimal("0.1"), "=", 0.1, True),
        ("\uffff", "<", "\U0001f600", True),
        ("a", "<", "aa", True),
        ("Z", "<", "a", True),
        (False, "<", True, True),
        (date(2020, 1, 2), ">", "2020-01-01", True),
        ("2020-01-01", "=", date(2020, 1, 1), True),
        (datetime(2020, 1, 1, tzinfo=UTC), "<", datetime(2020, 1, 2, tzinfo=UTC), True),
    ],
)
def test_values_compare_as_in_spark(left: Any, op: Any, right: Any, truth: bool | None) -> None:
    assert compare_values(left, op, right) is truth


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, "1"), (True, 1), (date(2020, 1, 1), datetime(2020, 1, 1)), ("2020-1-1", date(2020, 1, 1)), ("x", 1.0)],
)
def test_values_of_different_kinds_are_not_compared(left: Any, right: Any) -> None:
    with pytest.raises(TypeError):
        compare_values(left, "=", right)


def test_in_is_null_where_a_null_might_have_matched() -> None:
    assert holds(In("x", (1, None)), {"x": 1}) is True
    assert holds(In("x", (1, None)), {"x": 2}) is None
    assert holds(Not(In("x", (1, 2))), {"x": 3}) is True
    assert holds(In("x", (1,)), {"x": None}) is None
    assert holds(In("x", ()), {"x": None}) is False


def test_and_is_false_and_or_true_whatever_the_null() -> None:
    null = Compare("x", "=", None)
    assert holds(And((null, Always(False))), {"x": 1}) is False
    assert holds(And((null, Always(True))), {"x": 1}) is None
    assert holds(Or((null, Always(True))), {"x": 1}) is True
    assert holds(Or((null, Always(False))), {"x": 1}) is None


@pytest.mark.parametrize("text", ["2020-02-30", "2020-1-1", " 2020-01-01", "20200101", "2020-W01-1", "٢٠٢٠-01-01"])
def test_only_a_strict_date_is_one(text: str) -> None:
    with pytest.raises(TypeError):
        date_of(text)
