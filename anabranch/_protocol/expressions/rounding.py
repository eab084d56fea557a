"""Rounding of doubles to decimal places, as Spark does it: by the shortest decimal of a double.

Pure. Guarantee: the result is Spark's; a number of too many digits is left to Spark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch._protocol.expressions.table import Datum
from anabranch._protocol.unsupported import Unsupported

WHOLE_DOUBLE = 1 << 52
"""Doubles of at least this size have no fraction."""
_MOST_UNITS = 10**14
"""The maximum number of units: half-way between two smaller numbers of units, a decimal has at most 15 digits."""


def units(values: Datum, places: int, *, even: bool = False) -> Any:
    """Doubles as whole numbers of units of a decimal place, without their sign, as doubles: rounded half up, or half to
    the ``even`` one; NaN stays. Raises Unsupported: one has too many digits.

    Spark rounds the shortest decimal of a double. A decimal half-way between two units has at most 15 digits, and no
    two of those have the same double; so exactly its double is half-way, and all others are on their own side.
    """
    numbers, scale = np.abs(values.to_numpy(zero_copy_only=False)), 10.0**places
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = numbers * scale
        if np.any(scaled >= _MOST_UNITS):
            raise Unsupported("a number with too many digits is rounded")
        near = np.floor(scaled + 0.5)
        low, high = (2 * near - 1) / (2 * scale), (2 * near + 1) / (2 * scale)
        up = (numbers > high) | ((numbers == high) & ~(even & (near % 2 == 0)))
        down = (numbers < low) | ((numbers == low) & even & (near % 2 == 1))
        return near + up - down
