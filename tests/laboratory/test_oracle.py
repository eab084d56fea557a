"""What the oracle calls an order, by histories whose answer is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.predicates import holds
from laboratory.oracle import Landed, serial_order
from laboratory.statements import (
    COLUMNS,
    All,
    Any,
    Append,
    Copy,
    Delete,
    Missing,
    Not,
    Plus,
    Put,
    Row,
    Rows,
    Statement,
    Test,
    Update,
    Value,
    Where,
)
from laboratory.verbs import condition_of

ONE: Rows = ((1, 1, 0),)
UPDATE = Update((Put("x", 5),), Test("p", "=", 1))
APPEND = Append(((2, 1, 0),))
COPY = Copy((Put("p", 2),), Test("p", "=", 1))

values: st.SearchStrategy[Value] = st.none() | st.integers(-1, 2)
tests = st.builds(Test, st.sampled_from(COLUMNS), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.integers(0, 2))
wheres: st.SearchStrategy[Where] = st.recursive(
    tests | st.builds(Missing, st.sampled_from(COLUMNS)),
    lambda parts: (
        st.builds(Not, parts)
        | st.lists(parts, min_size=1, max_size=3).map(lambda many: All(tuple(many)))
        | st.lists(parts, min_size=1, max_size=3).map(lambda many: Any(tuple(many)))
    ),
    max_leaves=5,
)


def landed(*statements: tuple[Statement, int, int]) -> list[Landed]:
    return [Landed(i, s, i + 1, began, ended) for i, (s, began, ended) in enumerate(statements)]


def explained(level: str, history: list[Landed], *versions: Rows) -> bool:
    return serial_order(ONE, history, {i + 1: rows for i, rows in enumerate(versions)}, level=level) is not None


def test_an_append_may_be_put_behind_an_update_that_did_not_see_it() -> None:
    history = landed((APPEND, 0, 5), (UPDATE, 0, 9))
    seen = ((*ONE, (2, 1, 0)), ((1, 1, 5), (2, 1, 0)))
    assert explained("WriteSerializable", history, *seen)
    assert not explained("Serializable", history, *seen)


def test_real_time_is_kept() -> None:
    history = landed((APPEND, 0, 5), (UPDATE, 6, 9))
    assert not explained("WriteSerializable", history, (*ONE, (2, 1, 0)), ((1, 1, 5), (2, 1, 0)))


def test_a_reader_between_them_ties_the_order() -> None:
    """Design: W1 blind, W2 copies what W1 brought, ours changes only the row that W2 did not see changed."""
    history = landed((APPEND, 0, 5), (COPY, 6, 7), (UPDATE, 0, 9))
    one, two = (*ONE, (2, 1, 0)), (*ONE, (2, 1, 0), (1, 2, 0), (2, 2, 0))
    assert not explained("WriteSerializable", history, one, two, ((1, 1, 5), (2, 1, 0), (1, 2, 0), (2, 2, 0)))
    assert explained("WriteSerializable", history, one, two, ((1, 1, 5), (2, 1, 5), (1, 2, 0), (2, 2, 0)))


def test_a_count_that_no_order_gives_is_wrong() -> None:
    lies = [Landed(0, UPDATE, 1, 0, 1, reported=2)]
    assert serial_order(ONE, lies, {1: ((1, 1, 5),)}, level="WriteSerializable") is None


def test_statements_mean_what_sql_means() -> None:
    rows: Rows = ((1, 0, None), (2, 1, 1), (3, None, 2))
    assert Delete(Not(Test("p", "=", 0))).apply(rows) == (((1, 0, None), (3, None, 2)), 1)
    assert Update((Plus("x"), Put("p", 9)), Missing("x")).apply(rows)[0][0] == (1, 9, None)
    assert Delete(All()).apply(rows) == ((), 3)


@given(where=wheres, row=st.tuples(values, values, values))
def test_the_product_and_the_oracle_agree_on_every_condition(where: Where, row: Row) -> None:
    """They were written apart: where they differ, one of them is wrong about SQL."""
    assert holds(condition_of(str(where)).predicate, dict(zip(COLUMNS, row, strict=True))) is where.truth(row)
