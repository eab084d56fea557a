"""Curves: the order in which clustered rows lie, so that rows which are near in several columns share a file.

Pure data and arithmetic, passed between the rooms that choose an order and the engine that sorts by it. A value becomes
the number of its range (`ranges_per_column` of them for each column); a curve leads through the grid of these numbers
and visits each cell once, so that a cell is a number as well: its place on the curve.

`zorder` and `hilbert` are what an engine's expressions must give. Guarantees: both are bijections between the grid and
its places; neighbours on the Hilbert curve differ by one in one column; a column that is named earlier counts for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

Kind = Literal["zorder", "hilbert"]
ORIGINS = pa.schema([pa.field("source", pa.int32(), nullable=False), pa.field("row", pa.int64(), nullable=False)])
"""Where a row comes from: the place of its file in the list of files that was read, and its position in that file."""

MOST_COLUMNS = 63
"""More than a place on a curve, a signed integer of 64 bits, has room for; columns behind these are left out."""
_MOST_BITS = 10


@dataclass(frozen=True)
class Curve:
    """An order over the values of some columns (names as users say them, nested ones with dots)."""

    columns: tuple[str, ...]
    kind: Kind


def bits_per_column(columns: int) -> int:
    """How many bits the number of a value's range has, so that a place on the curve has 63 at most.

    Example:
        >>> bits_per_column(2), bits_per_column(20)
        (10, 3)
    """
    return max(1, min(_MOST_BITS, MOST_COLUMNS // columns))


def zorder(cell: Sequence[int], bits: int) -> int:
    """The place of a cell on the Z-order curve: the bits of its numbers by turns, the highest ones first.

    Example:
        >>> zorder((0b10, 0b01), 2)
        9
    """
    place = 0
    for bit in reversed(range(bits)):
        for number in cell:
            place = place << 1 | number >> bit & 1
    return place


def hilbert(cell: Sequence[int], bits: int) -> int:
    """The place of a cell on the Hilbert curve (J. Skilling, "Programming the Hilbert curve", 2004).

    Example:
        >>> [hilbert(cell, 1) for cell in ((0, 0), (0, 1), (1, 1), (1, 0))]
        [0, 1, 2, 3]
    """
    turned = list(cell)
    for bit in reversed(range(1, bits)):
        for i, number in enumerate(turned):
            if number >> bit & 1:
                turned[0] ^= (1 << bit) - 1
            else:
                swapped = (turned[0] ^ turned[i]) & ((1 << bit) - 1)
                turned[0] ^= swapped
                turned[i] ^= swapped
    for i in range(1, len(turned)):
        turned[i] ^= turned[i - 1]
    flipped = 0
    for bit in reversed(range(1, bits)):
        flipped ^= ((1 << bit) - 1) if turned[-1] >> bit & 1 else 0
    return zorder([number ^ flipped for number in turned], bits)
