"""Bounds: the smallest and the largest value of each column of a data file, by its footer or by its rows.

Knows Parquet and Arrow, not the log. Pure. Guarantee: a bound without a Python value (a date after the year 9999) is
unknown, and raises no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
Bounds = Mapping[str, tuple[Any, Any, int | None]]
"""Column -> smallest value, largest value (None: unknown), number of NULLs."""


def bounds_of_footer(footer: Any) -> Bounds:
    """The bounds of each top-level column in a footer; columns with a chunk without statistics are left out."""
    bounds: dict[str, tuple[Any, Any, int | None]] = {}
    for index in range(footer.num_columns if footer.num_row_groups else 0):
        name = footer.row_group(0).column(index).path_in_schema
        chunks = [footer.row_group(group).column(index).statistics for group in range(footer.num_row_groups)]
        if "." in name or any(chunk is None or not chunk.has_null_count for chunk in chunks):
            continue
        is_bounded = all(chunk.has_min_max or chunk.num_values == 0 for chunk in chunks)
        values = [chunk for chunk in chunks if chunk.has_min_max] if is_bounded else []
        lows, highs = ([_read_bound(chunk, which) for chunk in values] for which in ("min", "max"))
        low = None if None in lows else min(lows, default=None)
        high = None if None in highs else max(highs, default=None)
        bounds[name] = (low, high, sum(chunk.null_count for chunk in chunks))
    return bounds


def _read_bound(chunk: pq.Statistics, which: str) -> Any:
    """A bound of a chunk; None for a date or timestamp after the year 9999, which Python cannot represent."""
    try:
        return getattr(chunk, which)
    except (OverflowError, ValueError):
        return None


def bounds_of_rows(rows: pa.Table) -> Bounds:
    """The bounds of each column, from the rows themselves."""
    result: dict[str, tuple[Any, Any, int | None]] = {}
    for name in rows.column_names:
        column = rows.column(name)
        bounds = pc.min_max(column)
        result[name] = (python_of(bounds["min"]), python_of(bounds["max"]), column.null_count)
    return result


def python_of(value: pa.Scalar) -> Any:
    """A bound as a Python value; None, as for an unknown one, for a date or timestamp after the year 9999."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return None


def to_orderable(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A column in a type that Arrow can order; None if its values have no order."""
    type_ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string_view(type_):
        type_ = pa.string()
    if pa.types.is_duration(type_):  # Arrow orders these numbers, but not as spans
        type_ = pa.int64()
    if pa.types.is_nested(type_) or any(is_bytes(type_) for is_bytes in _BYTES):
        return None
    return column if type_ == column.type else column.cast(type_)


def is_above(left: Any, right: Any) -> bool:
    """Whether both are known and comparable, and ``left`` is greater."""
    if left is None or right is None or left != left or right != right:  # NaN has no place in an order
        return False
    try:
        return bool(_comparable(left) > _comparable(right))
    except TypeError:
        return False


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value.replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value
