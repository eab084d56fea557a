"""Rounding of doubles to decimal places, as Spark does it: by the decimal that a double is printed as.

Pure. Guarantee: what is given is what Spark gives; a number of too many digits is left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch._protocol.expressions.table import Datum
from anabranch._protocol.unsupported import Unsupported

WHOLE_DOUBLE = 1 << 52
"""From here on doubles have no fraction."""
_MOST_UNITS = 10**14
"""What is half-way between two of fewer units has 15 digits at most."""


def units(values: Datum, places: int, *, even: bool = False) -> Any:
    """Doubles as whole numbers of units of a decimal place, without their sign, as doubles: rounded half up, or half to
    the ``even`` one; NaN stays. Raises Unsupported: one has too many digits.

    Spark rounds the shortest decimal of a double. A decimal that is half-way between two units has at most 15 digits,
    and no two of those are the same double; so exactly its double is half-way, and others are on the side they are on.
    """
    numbers, one = np.abs(values.to_numpy(zero_copy_only=False)), 10.0**places
    with np.errstate(invalid="ignore", over="ignore"):
        many = numbers * one
        if np.any(many >= _MOST_UNITS):
            raise Unsupported("a number with too many digits is rounded")
        near = np.floor(many + 0.5)
        low, high = (2 * near - 1) / (2 * one), (2 * near + 1) / (2 * one)
        up = (numbers > high) | ((numbers == high) & ~(even & (near % 2 == 0)))
        down = (numbers < low) | ((numbers == low) & even & (near % 2 == 1))
        return near + up - down
