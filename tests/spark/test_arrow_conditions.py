"""Arrow judges rows as the meaning of predicates says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.protocol.exactness import is_exact
from anabranch.protocol.predicates import (
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
    holds,
)
from anabranch.protocol.schema.types import Field, Struct, to_arrow
from anabranch.spark.arrow_conditions import ERRORS, selected
from tests.protocol.test_predicates import OPERATORS

MOMENTS = [
    datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(1969, 5, 6, 7, tzinfo=UTC),
]
NUMBERS = [-1, 0, 2, 2**31, 2**63 - 1, Decimal("1.5"), Decimal("2"), Decimal("-0.25")]
VALUES: Mapping[str, Sequence[Any]] = {
    "byte": [None, -128, -1, 0, 2, 127],
    "integer": [None, -(2**31), -1, 0, 2, 2**31 - 1],
    "long": [None, -(2**63), -1, 0, 2, 2**53 + 1, 2**63 - 1],
    "float": [None, -1.5, -0.0, 0.0, 2.0, nan, inf, -inf],
    "double": [None, -1.5, -0.0, 0.0, 2.0, nan, inf, -inf, 1e300],
    "decimal(9,2)": [None, Decimal("-1.00"), Decimal("0.00"), Decimal("1.50"), Decimal("9999999.99")],
    "string": [None, "", "a", "ab", "b", "\uffff", "\U0001f600"],
    "boolean": [None, True, False],
    "date": [None, date(2020, 1, 1), date(1969, 12, 31), date(9999, 12, 31)],
    "timestamp": [None, *MOMENTS],
}
LITERALS: Mapping[str, Sequence[Any]] = {
    **{name: [None, *NUMBERS] for name in ("byte", "integer", "long", "decimal(9,2)")},
    "float": [None, -1, 0, 2, Decimal("1.5"), Decimal("-0.25")],
    "double": [None, *NUMBERS, -0.0, 2.0, nan, inf, -inf],
    "string": VALUES["string"],
    "boolean": VALUES["boolean"],
    "date": [*VALUES["date"], "2020-01-01", "2020-02-30"],
    "timestamp": VALUES["timestamp"],
}
SCHEMA = Struct(tuple(Field(f"c_{name}", name) for name in VALUES))


def leaves_of(name: str) -> st.SearchStrategy[Predicate]:
    column, literals = st.just(f"c_{name}"), st.sampled_from(LITERALS[name])
    return st.one_of(
        st.builds(Compare, column, st.sampled_from(OPERATORS), literals),
        st.builds(In, column, st.lists(literals, max_size=3).map(tuple)),
        st.builds(IsNull, column),
    )


leaves = st.one_of(
    st.builds(Always, st.booleans()),
    *map(leaves_of, VALUES),
    st.builds(StartsWith, st.just("c_string"), st.sampled_from(["", "a", "\uffff"])),
)
predicates = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=6,
)
tables = st.lists(st.fixed_dictionaries({f"c_{n}": st.sampled_from(v) for n, v in VALUES.items()}), max_size=8)


def batch_of(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    schema = to_arrow(SCHEMA)
    return pa.RecordBatch.from_arrays(
        [pa.array([row[name] for row in rows], schema.field(name).type) for name in schema.names], schema=schema
    )


@pytest.mark.slow
@given(predicates, tables)
def test_the_rows_selected_are_those_for_which_the_predicate_is_true(
    predicate: Predicate, rows: list[dict[str, Any]]
) -> None:
    if not is_exact(predicate, SCHEMA):
        return
    assert selected(predicate, batch_of(rows)).to_pylist() == [holds(predicate, row) is True for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_every_comparison_of_every_type_is_judged_so_or_not_at_all(name: str) -> None:
    rows = [{f"c_{n}": (value if n == name else None) for n in VALUES} for value in VALUES[name]]
    batch, judged = batch_of(rows), 0
    for literal in LITERALS[name]:
        for op in OPERATORS:
            for predicate in (Compare(f"c_{name}", op, literal), Not(Compare(f"c_{name}", op, literal))):  # type: ignore[arg-type]
                if not is_exact(predicate, SCHEMA):
                    continue
                assert selected(predicate, batch).to_pylist() == [holds(predicate, row) is True for row in rows], (
                    predicate
                )
                judged += 1
    assert judged >= 2 * len(OPERATORS)


@pytest.mark.parametrize(
    "predicate",
    [
        Unknown(),
        And((Always(True), Unknown())),
        Compare("c_string", "=", 5),
        Compare("c_timestamp", "<", date(2020, 1, 1)),
        Compare("c_long", "=", 2**63),
        Compare("nowhere", "=", 1),
        Compare(("c_string", "x"), "=", 1),
    ],
)
def test_what_arrow_does_not_know_is_an_error_and_never_a_guess(predicate: Predicate) -> None:
    with pytest.raises(ERRORS):
        selected(predicate, batch_of([dict.fromkeys(f"c_{n}" for n in VALUES)]))
