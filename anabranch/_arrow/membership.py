"""Tests which values of a column are in a set, batch by batch. Pure.

Arrow's ``is_in`` builds its hash table anew for each batch, which takes longer than testing the batch. So numbers are
looked up in a bit table first, and only the candidates are searched in the set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LEAST_BITS, _MOST_BITS = 1 << 12, 1 << 26
_SPARSE = 16
"""One bit out of this number is set in the bit table, so that few searches are in vain."""


def make_membership_test(values: pa.Array) -> Callable[[pa.Array], Any]:
    """A function that tests for each value of an array whether it is one of these values, as a NumPy array. These are
    of the same type; NULL is a member only if it is one of them.

    Example:
        >>> make_membership_test(pa.array([3, 5]))(pa.array([5, 4, None])).tolist()
        [True, False, False]
        >>> make_membership_test(pa.array([3, None]))(pa.array([5, 4, None])).tolist()
        [False, False, True]
    """
    if not _is_number(values.type):
        return lambda column: pc.is_in(column, value_set=values).to_numpy(zero_copy_only=False)
    members, has_null = np.unique(_numbers(values.drop_null())), values.null_count > 0
    mask = min(max(_LEAST_BITS, 1 << (len(members) * _SPARSE - 1).bit_length()), _MOST_BITS) - 1 if len(members) else 0
    bits = np.zeros(mask + 1, bool)
    bits[members & mask] = True

    def are_among(column: pa.Array) -> Any:
        numbers = _numbers(column)
        is_member = bits[numbers & mask]
        candidates = np.flatnonzero(is_member)
        candidate_numbers = numbers[candidates]
        places = np.minimum(np.searchsorted(members, candidate_numbers), max(len(members) - 1, 0))
        is_member[candidates] = members[places] == candidate_numbers if len(members) else False
        if column.null_count:
            is_member[column.is_null().to_numpy(zero_copy_only=False)] = has_null
        return is_member

    return are_among


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _numbers(column: pa.Array) -> Any:
    """The values as 64-bit integers; NULL becomes an arbitrary number."""
    whole = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
