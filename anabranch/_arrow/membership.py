"""Membership: which values of a column are among some others, asked batch by batch. Pure.

Arrow's ``is_in`` makes its table of the others anew for each batch, which takes longer than a batch does. So numbers
are looked up in a table of bits first, and only what may be among the others is searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LEAST_BITS, _MOST_BITS = 1 << 12, 1 << 26
_SPARSE = 16
"""One bit in so many is set, so that few values are searched for in vain."""


def among(values: pa.Array) -> Callable[[pa.Array], Any]:
    """What tells of each value of an array of the same type whether it is one of these, of which none is NULL, as a
    NumPy array; NULL is not.

    Example:
        >>> among(pa.array([3, 5]))(pa.array([5, 4, None])).tolist()
        [True, False, False]
    """
    if not _is_number(values.type):
        return lambda column: pc.is_in(column, value_set=values).to_numpy(zero_copy_only=False)
    wanted = np.unique(_numbers(values))
    mask = min(max(_LEAST_BITS, 1 << (len(wanted) * _SPARSE - 1).bit_length()), _MOST_BITS) - 1 if len(wanted) else 0
    bits = np.zeros(mask + 1, bool)
    bits[wanted & mask] = True

    def are_among(column: pa.Array) -> Any:
        numbers = _numbers(column)
        found = bits[numbers & mask]
        likely = np.flatnonzero(found)
        some = numbers[likely]
        places = np.minimum(np.searchsorted(wanted, some), max(len(wanted) - 1, 0))
        found[likely] = wanted[places] == some if len(wanted) else False
        return found & column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else found

    return are_among


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _numbers(column: pa.Array) -> Any:
    """The values as numbers of 64 bits, NULL as any."""
    whole = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
