"""Space-filling curves: an order of rows in which rows close in several columns share a file.

Pure data and arithmetic, shared by the code that chooses an order and the engine that sorts by it. A value becomes the
number of its range (`bits_per_column` gives their count); a curve visits each cell of the grid of these numbers once,
and a cell's place is its index on the curve. `places` returns the places of all cells.

Guarantees: both curves are bijections between the grid and its places; neighbours on the Hilbert curve differ by one in
one column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

Kind = Literal["zorder", "hilbert"]
ORIGINS = pa.schema([pa.field("source", pa.int32(), nullable=False), pa.field("row", pa.int64(), nullable=False)])
"""The origin of a row: the index of its file in the list of files that was read, and its position there."""

_BITS = 18
"""The number of bits of a place: far more cells than a table has files, and few enough to send all places with a
query.
"""
MOST_COLUMNS = _BITS
"""The maximum number of columns of a curve; further ones would have no bit, and are ignored."""


@dataclass(frozen=True)
class Curve:
    """An order over the values of some columns (by logical names, nested ones with dots)."""

    columns: tuple[str, ...]
    kind: Kind


def bits_per_column(columns: int) -> int:
    """The number of bits of the number of a value's range.

    Example:
        >>> bits_per_column(2), bits_per_column(4)
        (9, 4)
    """
    return max(1, _BITS // columns)


def places(kind: Kind, columns: int) -> pa.Array:
    """The place of each cell of a grid with this many columns; the first column's number is in the highest bits.

    Example:
        >>> bits = bits_per_column(2)
        >>> places("zorder", 2)[0b10 << bits | 0b01].as_py()
        9
    """
    bits = bits_per_column(columns)
    numbers = np.arange(1 << bits * columns, dtype=np.int32)
    cell = [numbers >> bits * (columns - 1 - i) & (1 << bits) - 1 for i in range(columns)]
    return pa.array(zorder(cell, bits) if kind == "zorder" else hilbert(cell, bits), pa.int32())


def zorder(cell: Sequence[Any], bits: int) -> Any:
    """The place of a cell on the Z-order curve: the bits of its numbers interleaved, the highest first.

    Numbers may be arrays, for many cells at once; the same holds for `hilbert`.

    Example:
        >>> zorder((0b10, 0b01), 2)
        9
    """
    place = 0 * cell[0]
    for bit in reversed(range(bits)):
        for number in cell:
            place = place << 1 | number >> bit & 1
    return place


def hilbert(cell: Sequence[Any], bits: int) -> Any:
    """The place of a cell on the Hilbert curve (J. Skilling, "Programming the Hilbert curve", 2004).

    Example:
        >>> [hilbert(cell, 1) for cell in ((0, 0), (0, 1), (1, 1), (1, 0))]
        [0, 1, 2, 3]
    """
    turned = list(cell)
    for bit in reversed(range(1, bits)):
        low = (1 << bit) - 1
        for i, number in enumerate(turned):
            is_set = number >> bit & 1
            swapped = (turned[0] ^ number) & low * (1 - is_set)
            turned[i] = number ^ swapped
            turned[0] = turned[0] ^ (swapped | low * is_set)
    for i in range(1, len(turned)):
        turned[i] = turned[i] ^ turned[i - 1]
    flipped = 0 * turned[-1]
    for bit in range(1, bits):
        flipped = flipped ^ ((1 << bit) - 1) * (turned[-1] >> bit & 1)
    return zorder([number ^ flipped for number in turned], bits)
