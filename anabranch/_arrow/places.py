"""Computes the order of rows along a curve from the values of its columns, with Arrow and numpy.

Imports pyarrow and numpy only, since it travels to executors by value, as `anabranch._arrow.files` does. Knows nothing
of files. Guarantee: the order is that of `anabranch._spark.writing.relocating`, for the same rows.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SAMPLE_LENGTH = 1024
_MOST_LOOKED_UP = 1 << 20
"""Maximum span of integers that are numbered by a lookup table."""
_HALF_BITS = 9
"""Half the number of bits of a place (`anabranch._protocol.layout.curves`)."""


def bounds_of(sample: pa.Array, ranges: int) -> pa.Array:
    """The lowest values of all ranges but the first, so that each range has about the same number of these values.

    NULL has the first range for itself.
    """
    values = sample.drop_null()
    ordered = values.take(pc.sort_indices(values))
    places = sorted({len(ordered) * i // ranges for i in range(1, ranges)} - {0}) if len(ordered) else []
    return pc.unique(ordered.take(pa.array(places, pa.int64())))


def curve_places(values: Sequence[pa.Array], bounds: Sequence[pa.Array], bits: int, cells: Any) -> Any:
    """The places of rows on the curve. ``cells`` has the place of each cell of a grid, whose coordinates have ``bits``
    bits.
    """
    numbers = [range_numbers(*column_and_bounds) for column_and_bounds in zip(values, bounds, strict=True)]
    return cells[reduce(lambda left, right: left << bits | right, numbers)]


def range_numbers(values: pa.Array, bounds: pa.Array) -> Any:
    """The number of each value's range; 0 for NULL."""
    non_null = values.drop_null()
    numbers = (_bound_counts_of_numbers if _is_number(values.type) else _bound_counts_of_others)(non_null, bounds) + 1
    if len(non_null) == len(values):
        return numbers
    with_nulls = np.zeros(len(values), np.int32)
    with_nulls[values.is_valid().to_numpy(zero_copy_only=False)] = numbers
    return with_nulls


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_date32(kind) or types.is_timestamp(kind))


def _bound_counts_of_numbers(values: pa.Array, bounds: pa.Array) -> Any:
    """For each of these numbers, how many bounds are not above it."""
    integers, limits = _as_numbers(values), _as_numbers(bounds)
    if len(integers) and integers.dtype.kind == "i":
        least, most = int(integers.min()), int(integers.max())
        if most - least < min(_MOST_LOOKED_UP, len(integers)):
            table = np.searchsorted(limits, np.arange(least, most + 1), side="right").astype(np.int32)
            return table[integers.astype(np.int64) - least]
    return np.searchsorted(limits, integers, side="right").astype(np.int32)


def _as_numbers(values: pa.Array) -> Any:
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    return values.to_numpy(zero_copy_only=False)


def _bound_counts_of_others(values: pa.Array, bounds: pa.Array) -> Any:
    """As `_bound_counts_of_numbers`, for other types; each distinct value is compared once."""
    encoded = values.dictionary_encode()
    order = pc.sort_indices(pa.concat_arrays([bounds, encoded.dictionary])).to_numpy()  # stable
    reached = np.empty(len(order), np.int32)
    reached[order] = np.cumsum(order < len(bounds), dtype=np.int32)
    return reached[len(bounds) :][encoded.indices.to_numpy()]


def sort_indexes(keys: pa.Array) -> Any:
    """Indexes of rows in the order of their keys, NULLs first; a stable sort."""
    if _are_places(keys):
        return _by_digits(keys.to_numpy())
    return pc.array_sort_indices(keys, null_placement="at_start").to_numpy().astype(np.uint32)


def _are_places(keys: pa.Array) -> bool:
    if not pa.types.is_int32(keys.type) or keys.null_count or not len(keys):
        return False
    least, most = pc.min_max(keys).as_py().values()
    return bool(least >= 0 and most < 1 << 2 * _HALF_BITS)


def _by_digits(places: Any) -> Any:
    """Sort places: by the higher half of their bits, which has few values, then the rows of each by the lower half,
    which lie close together. A single sort takes three times as long.
    """
    high, low = places >> _HALF_BITS, (places & (1 << _HALF_BITS) - 1).astype(np.uint16)
    order = pc.array_sort_indices(pa.array(high)).to_numpy().astype(np.uint32)
    begin = 0
    for end in np.cumsum(np.bincount(high)).tolist():
        rows = order[begin:end]
        order[begin:end] = rows[np.argsort(low[rows], kind="stable")]
        begin = end
    return order


def splits_of(sample: pa.Array, outputs: int) -> Any:
    """Indexes of the rows of a sample at which all outputs but the first begin, so that each output gets an equal
    share.
    """
    order = sort_indexes(sample)
    return order[sorted({len(order) * i // outputs for i in range(1, outputs)} - {0})]


def output_bounds(keys: pa.Array, order: Any, splits: pa.Array, rows: Any) -> Any:
    """Where each output begins in an order, and where the last one ends.

    Args:
        keys: sort keys of all rows.
        order: indexes of the rows in their order.
        splits: keys of the rows at which outputs begin; long texts are shortened.
        rows: indexes of these rows.
    """
    bounds = [0, *(_first_not_before(keys, order, *split) for split in zip(splits, rows, strict=True)), len(order)]
    return np.array(bounds, np.int64)


def _first_not_before(keys: pa.Array, order: Any, split: pa.Scalar, row: Any) -> int:
    def is_reached(at: int) -> bool:
        key = keys[order[at]]
        if key.is_valid != split.is_valid:
            return bool(key.is_valid)
        if key.is_valid and not pc.equal(key, split).as_py():
            return not pc.less(key, split).as_py()
        return bool(order[at] >= row)

    return bisect.bisect_left(range(len(order)), True, key=is_reached)


def shorten(values: pa.Array) -> pa.Array:
    """Long texts cut to their beginnings, which split rows about as well."""
    if pa.types.is_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, SAMPLE_LENGTH)
    return pc.binary_slice(values, 0, SAMPLE_LENGTH) if pa.types.is_binary(values.type) else values


# -- the sample --------------------------------------------------------------------------------------------------------

_P = [np.uint64(prime) for prime in (0, 11400714785074694791, 14029467366897019727, 1609587929392839161)]
_P4, _P5, _SEED = np.uint64(9650029242287828579), np.uint64(2870177450012600261), np.uint64(42)


def xxhash64(values: Any) -> Any:
    """Spark's ``xxhash64`` of numbers, so that both backends sample the same rows."""
    with np.errstate(over="ignore"):
        mixed = _rotate_left(values.astype(np.uint64) * _P[2], 31) * _P[1]
        hashes = _rotate_left((_SEED + _P5 + np.uint64(8)) ^ mixed, 27) * _P[1] + _P4
        for shift, factor in ((33, _P[2]), (29, _P[3]), (32, np.uint64(1))):
            hashes = (hashes ^ (hashes >> np.uint64(shift))) * factor
    return hashes.astype(np.int64)


def _rotate_left(values: Any, bits: int) -> Any:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)
