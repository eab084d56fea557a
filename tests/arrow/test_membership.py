"""Membership means equality, whatever the values."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._arrow.membership import make_membership_test
from tests.support.tiers import examples

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "small numbers": (pa.int64(), st.integers(-5, 5)),
    "large numbers": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "numbers that share their lowest bits": (pa.int64(), st.integers(0, 50).map(lambda n: n << 32)),
    "days": (pa.date32(), st.integers(-3, 3).map(lambda n: date(1970, 1, 1) + timedelta(n))),
    "moments": (
        pa.timestamp("us", "UTC"),
        st.integers(-3, 3).map(lambda n: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=n)),
    ),
    "texts": (pa.string(), st.text("ab\u00e9", max_size=2)),
    "flags": (pa.bool_(), st.booleans()),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_value_is_among_others_where_it_equals_one_of_them_and_null_where_it_is_one(
    kind: str, data: st.DataObject
) -> None:
    type_, one = KINDS[kind]
    wanted = data.draw(st.lists(st.none() | one, max_size=6))
    given_values = data.draw(st.lists(st.none() | one, max_size=20))
    found = make_membership_test(pa.array(wanted, type_))(pa.array(given_values, type_))
    assert found.tolist() == [value in wanted for value in given_values]


@pytest.mark.slow
def test_many_values_are_told_from_their_neighbours() -> None:
    end = examples(2_000_000, 200_000)
    are_among = make_membership_test(pa.array(np.arange(0, end, 2)))
    found = are_among(pa.array(np.arange(-10, end + 10))).nonzero()[0]
    assert np.array_equal(found, np.arange(10, end + 10, 2))
