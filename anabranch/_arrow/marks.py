"""Sets of row positions as bitmaps: made from arrays, and converted to and from 64-bit words. Pure."""

from __future__ import annotations

from array import array
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
"""A set of positions: position ``p`` is bit ``p % 64`` of word ``p // 64``."""


def marks_of(paths: pa.ChunkedArray, rows: pa.ChunkedArray) -> dict[str, BitMap64]:
    """Rows by their addresses."""
    encoded = paths.combine_chunks().dictionary_encode()
    numbers, positions = encoded.indices.to_numpy(zero_copy_only=False), rows.to_numpy()
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(encoded.dictionary)))
    parts = np.split(positions[order], ends[:-1]) if len(ends) else []
    return {path: bitmap(part) for path, part in zip(encoded.dictionary.to_pylist(), parts, strict=True)}


def words_of(rows: BitMap64) -> Words:
    """The words up to the last position."""
    if not rows:
        return np.zeros(0, np.int64)
    marked = np.zeros((rows.max() // 64 + 1) * 64, np.bool_)
    marked[np.asarray(rows.to_array())] = True
    return np.packbits(marked, bitorder="little").view(np.int64)


def positions_of(numbers: Words, words: Words) -> BitMap64:
    """The positions of words with their numbers, which must ascend.

    Example:
        >>> positions_of(np.array([1]), np.array([5]))
        BitMap64([64, 66])
    """
    bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    return bitmap(numbers[bits >> 6] * 64 + (bits & 63))


def bitmap(positions: Words) -> BitMap64:
    """The set of these positions."""
    # 3 times as fast as from the NumPy array itself.
    return BitMap64(array("Q", positions.astype(np.uint64).tobytes()))
